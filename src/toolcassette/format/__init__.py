"""What a cassette is, as bytes: the front door of the ground floor.

Rule: pure. Bytes in, values out; no files, clocks, threads, loops or random numbers, which are passed in. The
specification is ``schemas/v1/FORMAT.md``; another language needs nothing else.
"""

from __future__ import annotations

from toolcassette.format.canonical import (
    DEPTH_MAX,
    INT_DIGITS_MAX,
    Tree,
    decode_tree,
    encode_tree,
    may_hold_tags,
    plain_copy,
)
from toolcassette.format.cassette import (
    Cassette,
    RecordedCall,
    frame_number,
    index_cassette,
    parse_cassette,
    recorded_call,
    write_cassette,
)
from toolcassette.format.chain import TRAILER_BYTES, frame_hash, has_trailer
from toolcassette.format.codec import LINE_BYTES_CEILING, LINE_BYTES_MAX, decode_any, decode_frame, decode_head
from toolcassette.format.containers import members_of
from toolcassette.format.frames import (
    FORMAT,
    CallChunk,
    CallResult,
    CallStart,
    Complete,
    Envelope,
    ErrorBody,
    Frame,
    Header,
    Origin,
)
from toolcassette.format.grammar import CALLS_MAX, Grammar
from toolcassette.format.opening import header_hash, open_line, sealed_in
from toolcassette.format.reader import Finding, Reader, RunIndex, state_of
from toolcassette.format.refusal import Refused, json_path
from toolcassette.format.rewriting import bulk_members, lines_of, rewrapped, rewritten
from toolcassette.format.runs import LARGE_LINE_BYTES, Cutter, Run, Survey, survey
from toolcassette.format.salvaging import Salvaged, salvage
from toolcassette.format.schema import json_schemas
from toolcassette.format.sealing import RECIPIENTS_MAX, Opener, Sealer, is_sealed
from toolcassette.format.values import (
    TAG,
    TAGS,
    TYPES,
    Decoder,
    Encoder,
    canonical_json,
    decode_value,
    encode_value,
)
from toolcassette.format.writer import RecordedOutcome, Writer

__all__ = [
    "CALLS_MAX",
    "DEPTH_MAX",
    "FORMAT",
    "INT_DIGITS_MAX",
    "LARGE_LINE_BYTES",
    "LINE_BYTES_CEILING",
    "LINE_BYTES_MAX",
    "RECIPIENTS_MAX",
    "TAG",
    "TAGS",
    "TRAILER_BYTES",
    "TYPES",
    "CallChunk",
    "CallResult",
    "CallStart",
    "Cassette",
    "Complete",
    "Cutter",
    "Decoder",
    "Encoder",
    "Envelope",
    "ErrorBody",
    "Finding",
    "Frame",
    "Grammar",
    "Header",
    "Opener",
    "Origin",
    "Reader",
    "RecordedCall",
    "RecordedOutcome",
    "Refused",
    "Run",
    "RunIndex",
    "Salvaged",
    "Sealer",
    "Survey",
    "Tree",
    "Writer",
    "bulk_members",
    "canonical_json",
    "decode_any",
    "decode_frame",
    "decode_head",
    "decode_tree",
    "decode_value",
    "encode_tree",
    "encode_value",
    "frame_hash",
    "frame_number",
    "has_trailer",
    "header_hash",
    "index_cassette",
    "is_sealed",
    "json_path",
    "json_schemas",
    "lines_of",
    "may_hold_tags",
    "members_of",
    "open_line",
    "parse_cassette",
    "plain_copy",
    "recorded_call",
    "rewrapped",
    "rewritten",
    "salvage",
    "sealed_in",
    "state_of",
    "survey",
    "write_cassette",
]
