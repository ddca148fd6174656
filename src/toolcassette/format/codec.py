"""Frames as lines and back (FORMAT.md sections 2 and 4).

Rule: a line is read only if writing what was read gives the same bytes. ``decode_head`` proves it for the part before
the bulk members, which is all that the chain of meaning needs; ``decode_frame`` proves it for the whole line, and every
use of a frame goes through it or compares the stored bytes.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET

from toolcassette.errors import FormatError
from toolcassette.format.canonical import DEPTH_MAX, decode_tree, depth_exceeds, escape
from toolcassette.format.chain import TRAILER_BYTES
from toolcassette.format.frames import (
    BULK_MEMBERS,
    ENCRYPTION,
    FORMAT,
    KINDS,
    SEALED,
    CallChunk,
    CallResult,
    CallStart,
    Complete,
    ErrorBody,
    Frame,
    Header,
)
from toolcassette.format.sealing import envelope_of, sealed_frame, sealed_head

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcassette.format.grammar import Naming

__all__ = [
    "LINE_BYTES_CEILING",
    "LINE_BYTES_MAX",
    "QUICK_OK",
    "QUICK_START",
    "QuickHead",
    "bulk_span",
    "decode_any",
    "decode_frame",
    "decode_head",
    "encode_body",
    "naming_of",
    "quick_head",
]

LINE_BYTES_MAX: Final = 16 * 1024 * 1024  # a larger frame is a file, not an argument; bounds a reader's memory
LINE_BYTES_CEILING: Final = 64 * 1024 * 1024  # the most that the option can ask for

_EMPTY_TRAILER: Final = b',"prev":"","hash":""}'
_KIND = re.compile(rb'\{"seq":(?:0|[1-9][0-9]{0,17}),"kind":"([a-z/]{1,16})"')
_BULK = re.compile(rb',"(?:args|value|contexts|meta|enc)":|,"error":\{')  # complete has a count called error
_FORMAT_ID = re.compile(rb'"format":"([^"\\]{1,64})"')
_REQUIRES = re.compile(rb'"requires":\[(?!\]|"%b"\])' % ENCRYPTION.encode())
_NUMBER = rb"(0|[1-9][0-9]{0,14})"
_TEXT = rb'"[ !#-\[\]-~]+"'
_AT = rb',"at":(?:0|[1-9][0-9]{0,14})'
_NAMING = rb'"boundary":"(?:tool|model)","path":\[(?:%b(?:,%b)*+)?\],"tool":%b' % ((_TEXT,) * 3)
# The heads that most lines have, of plain names: a part of the canonical spellings, and nothing else. Its groups are
# seq; call and naming of a start; call and number of a chunk; call of a result, and whether it is ok or an error.
_QUICK = re.compile(
    rb'\{"seq":%b,"kind":"call/(?:'
    rb'start","call":%b,(%b)%b,"args":|'
    rb'chunk","call":%b,"chunk":%b%b,"value":|'
    rb'result","call":%b,"outcome":"(?:(ok)"%b,"value":|(error)"%b,"error":\{))'
    % (_NUMBER, _NUMBER, _NAMING, _AT, _NUMBER, _NUMBER, _AT, _NUMBER, _AT, _AT)
)
quick_head = _QUICK.match  # (line, where it begins): a QuickHead, or None for a head that takes the long way
QuickHead: TypeAlias = re.Match[bytes]
QUICK_START: Final = 3  # the last group of a start
QUICK_OK: Final = 7  # and of a result that is ok

_encode = msgspec.json.Encoder().encode
_DECODERS: Final[dict[bytes, Callable[[bytes], Frame]]] = {
    kind.encode(): cast("Callable[[bytes], Frame]", msgspec.json.Decoder(cls).decode) for kind, cls in KINDS.items()
}
_decode_error = msgspec.json.Decoder(ErrorBody).decode
_decode_naming: Callable[[bytes], dict[str, Any]] = msgspec.json.Decoder(dict[str, Any]).decode
_F = TypeVar("_F", bound=Frame)


def encode_body(frame: Frame) -> bytes:
    """A frame as canonical JSON without trailer and closing brace: what ``Chain.link`` takes.

    Raises ``FormatError`` ``head`` for text that is not clean Unicode (a tool's name with a lone surrogate).
    """
    try:
        data = _encode(frame)
    except UnicodeEncodeError:
        raise FormatError("head") from None
    return escape(data)[: -len(_EMPTY_TRAILER)]


def bulk_span(line: bytes) -> tuple[int, int]:
    """Where the bulk members of a line begin and end (offsets; equal where it has none).

    A name with its quotes and colon cannot stand inside a JSON string, so the first match is a member.
    """
    end = len(line) - TRAILER_BYTES
    match = _BULK.search(line, 0, end)
    return (match.start(), end) if match else (end, end)


def decode_head(line: bytes) -> Frame:
    """The frame of a line without its bulk members.

    Raises ``FormatError`` ``head``, ``members``, ``too_deep``; of a header, also what makes it another format.
    The line's own bytes must have been checked. Of the bulk members only the first is looked at, by name.
    """
    quick = _quick_head(line)
    if quick is not None:
        return quick
    sealed = sealed_head(line)
    if sealed is not None:
        return sealed
    start, end = bulk_span(line)
    head = line[:start]
    frame = _decode(head, 2)  # numbers, strings and lists of strings
    if frame is None or encode_body(frame) != head:
        raise FormatError("head")
    if isinstance(frame, CallResult) and frame.error is not UNSET:
        raise FormatError("members")  # an error that is no object does not end the head
    first = line[start + 2 : line.index(b'"', start + 2)].decode("ascii") if start < end else None
    if first not in _FIRST_BULK[_shape(frame)]:
        raise FormatError("members")
    # What an encrypted header says goes on behind its bulk member.
    return frame if first != "enc" else decode_frame(line, Header)


def _quick_head(line: bytes) -> Frame | None:
    """What the long way says of the heads that ``quick_head`` takes, at a third of its cost; None for any other."""
    match = quick_head(line)
    if match is None:
        return None
    seq, started, naming, chunked, chunk, ended, ok, _ = match.groups()
    head = line[: match.end()]
    at = int(head[head.rindex(b'"at":') + 5 : head.rindex(b",")])
    if naming is not None:
        path, tool, boundary = naming_of(naming)
        return CallStart(
            seq=int(seq), call=int(started), boundary=cast("Any", boundary), path=list(path), tool=tool, at=at
        )
    if chunk is not None:
        return CallChunk(seq=int(seq), call=int(chunked), chunk=int(chunk), at=at)
    return CallResult(seq=int(seq), call=int(ended), outcome="ok" if ok else "error", at=at)


@functools.lru_cache(maxsize=4096)  # a few tools under a few paths are named again and again
def naming_of(text: bytes) -> Naming:
    """Path, tool and boundary of a start's head: what a ``QuickHead`` found."""
    named = _decode_naming(b"{%b}" % text)
    return tuple(named["path"]), named["tool"], named["boundary"]


def _decode(text: bytes, depth: int) -> Frame | None:
    """The frame of a line without trailer and closing brace, or None where it is none of the five kinds."""
    match = _KIND.match(text)
    decode = _DECODERS.get(match.group(1)) if match else None
    if decode is None:
        return None
    if match and match.group(1) == b"header":
        _check_version(text)
    text += b"}"
    if depth_exceeds(text, depth):
        raise FormatError("too_deep")
    try:
        return decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None  # a decoder's message echoes file data


def _check_version(line: bytes) -> None:
    """A newer format may have any other header: it is named before anything else is asked of the line."""
    match = _FORMAT_ID.search(line)
    if match and match.group(1) != FORMAT.encode():
        known = match.group(1).startswith(FORMAT.split("/")[0].encode() + b"/")
        raise FormatError("format_unknown" if known else "not_a_cassette")
    if _REQUIRES.search(line):
        raise FormatError("requires_unknown")


def _shape(frame: Frame) -> str:
    """The row of ``_FIRST_BULK`` that a frame belongs to; '' for a combination of members that no writer makes."""
    if isinstance(frame, Header):
        return "header/sealed" if frame.requires else frame.kind
    if not isinstance(frame, CallResult):
        return frame.kind
    streamed = frame.chunks is not UNSET
    if frame.phase is not UNSET and (frame.outcome != "cancelled" or streamed):
        return ""
    return f"{frame.outcome}/stream" if streamed else frame.outcome


# shape -> what may be the first bulk member (None: there is none)
_FIRST_BULK: Final[dict[str, frozenset[str | None]]] = {
    "": frozenset(),
    "header": frozenset({None}),
    "header/sealed": frozenset({"enc"}),
    "call/start": frozenset({"args"}),
    "call/chunk": frozenset({"value"}),
    "complete": frozenset({None}),
    "ok": frozenset({"value"}),
    "ok/stream": frozenset({None, "contexts", "meta"}),
    "error": frozenset({"error"}),
    "error/stream": frozenset({"error"}),
    "cancelled": frozenset({None}),
    "cancelled/stream": frozenset({None, "contexts", "meta"}),
    "left_early": frozenset(),
    "left_early/stream": frozenset({None, "contexts", "meta"}),
}
# shape -> the bulk members it may have, all told
_ALL_BULK: Final[dict[str, frozenset[str]]] = {
    "": frozenset(),
    "header": frozenset(),
    "header/sealed": frozenset({"enc"}),
    "call/start": frozenset({"args"}),
    "call/chunk": frozenset({"value"}),
    "complete": frozenset(),
    "ok": frozenset({"value", "contexts", "meta"}),
    "ok/stream": frozenset({"contexts", "meta"}),
    "error": frozenset({"error", "contexts", "meta"}),
    "error/stream": frozenset({"error", "contexts", "meta"}),
    "cancelled": frozenset(),
    "cancelled/stream": frozenset({"contexts", "meta"}),
    "left_early": frozenset(),
    "left_early/stream": frozenset({"contexts", "meta"}),
}


def decode_frame(line: bytes, kind: type[_F]) -> _F:
    """The whole frame of a line, its bulk members as canonical bytes in ``msgspec.Raw``.

    Raises ``FormatError`` ``head``, ``members``, ``bulk`` or ``too_deep``. The line's own bytes must have been checked.
    """
    if kind in SEALED:
        return cast("_F", sealed_frame(line))
    body = line[:-TRAILER_BYTES]
    frame = _decode(body, DEPTH_MAX + 1)
    if not isinstance(frame, kind) or encode_body(frame) != body:
        decode_head(line)  # says what is wrong with the head, if that is what it is
        raise FormatError("bulk")
    shape = _shape(frame)
    bulk = () if isinstance(frame, Complete) else BULK_MEMBERS  # its member called error is a count
    present = [name for name in bulk if getattr(frame, name, UNSET) is not UNSET]
    if (present[0] if present else None) not in _FIRST_BULK[shape] or not _ALL_BULK[shape].issuperset(present):
        raise FormatError("members")
    for name in present:
        tree = decode_tree(bytes(getattr(frame, name)), sort=name == "args")
        if type(tree) is not _CONTAINERS.get(name, type(tree)):
            raise FormatError("members")
        if name == "enc" and envelope_of(bytes(getattr(frame, name))) is None:
            raise FormatError("members")
        if name == "error" and not _is_error_body(bytes(getattr(frame, name))):
            raise FormatError("members")
    return frame


def decode_any(line: bytes) -> Frame:
    """As ``decode_frame``, of a frame of any kind."""
    return decode_frame(line, type(decode_head(line)))


def _is_error_body(data: bytes) -> bool:
    """Whether canonical bytes are an ``ErrorBody`` with its members in their order."""
    try:
        return escape(_encode(_decode_error(data))) == data
    except msgspec.MsgspecError:
        return False


# what a bulk member is, where it is not just any value
_CONTAINERS: Final[dict[str, type]] = {"args": dict, "error": dict, "contexts": list, "meta": dict, "enc": dict}
