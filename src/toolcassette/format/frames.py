"""The five kinds of frame and their members, in the order in which they stand in a line (FORMAT.md section 2).

Rule: a member that is not used is absent, never null. Bulk members (``args``, ``value``, ``error``, ``contexts``,
``meta``, ``enc``) come after every other member and hold canonical JSON bytes; all that stands before the first of them
is the head. The JSON Schemas are generated from these structs.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

__all__ = [
    "BULK_MEMBERS",
    "ENCRYPTION",
    "FORMAT",
    "GENESIS",
    "KINDS",
    "SEALED",
    "CallChunk",
    "CallResult",
    "CallStart",
    "Complete",
    "Envelope",
    "ErrorBody",
    "Frame",
    "Header",
    "Origin",
    "SealedChunk",
    "SealedResult",
    "SealedStart",
]

FORMAT: Final = "toolcassette/1"  # name and major version; a reader refuses any other
GENESIS: Final = "0" * 64  # prev of the header: nothing comes before it
ENCRYPTION: Final = "encryption"  # what the header of an encrypted cassette requires of its readers
BULK_MEMBERS: Final = ("args", "value", "error", "contexts", "meta", "enc")

Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]  # what every JSON parser reads exactly; in microseconds 285 years
# The lengths are not idle: `$` alone lets a last LF pass, and `\d` digits of other scripts.
Hex32 = Annotated[str, Meta(pattern="^[0-9a-f]{32}$", max_length=32)]
Hex64 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
Moment = Annotated[
    str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{6}Z$", max_length=27)
]
Text = Annotated[str, Meta(min_length=1)]
# Written with msgspec's union so that an absent member costs nothing and is told apart from null.
Bulk: TypeAlias = Raw | UnsetType


class _Frame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """What all frames share: a place, a kind, and the trailer of constant width."""


class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a cassette that was made from another one came from. ``how`` names the step (``salvage``, ...)."""

    cassette: Hex32
    head: Hex64
    how: Text


class Header(_Frame, frozen=True, kw_only=True):
    """Frame 0. ``created`` is RFC 3339 UTC with microseconds; ``requires`` names what a reader must know."""

    kind_name: ClassVar[str] = "header"
    seq: Count
    kind: Literal["header"] = "header"
    format: Text
    cassette: Hex32
    created: Moment
    producer: str
    requires: list[Text]
    include: list[Text]
    order: Literal["strict", "causal", "any"]
    sync: Literal["frame", "call", "close", "none"]
    rules: list[Text]
    enc: Bulk = UNSET
    origin: Origin | UnsetType = msgspec.field(default=UNSET, name="from")
    prev: Hex64 = ""
    hash: Hex64 = ""


class CallStart(_Frame, frozen=True, kw_only=True):
    """A call begins. ``at`` is microseconds since ``created``; ``args`` an object with sorted keys."""

    kind_name: ClassVar[str] = "call/start"
    seq: Count
    kind: Literal["call/start"] = "call/start"
    call: Count
    boundary: Literal["tool", "model"]
    path: list[Text]
    tool: Text
    effect: Text | UnsetType = UNSET
    omitted: list[Text] | UnsetType = UNSET
    at: Count
    args: Bulk = UNSET
    enc: Bulk = UNSET
    prev: Hex64 = ""
    hash: Hex64 = ""


class CallChunk(_Frame, frozen=True, kw_only=True):
    """One item of a stream; ``chunk`` counts from 0 in its call."""

    kind_name: ClassVar[str] = "call/chunk"
    seq: Count
    kind: Literal["call/chunk"] = "call/chunk"
    call: Count
    chunk: Count
    at: Count
    value: Bulk = UNSET
    enc: Bulk = UNSET
    prev: Hex64 = ""
    hash: Hex64 = ""


class CallResult(_Frame, frozen=True, kw_only=True):
    """A call ends. ``chunks`` only for a stream (then no ``value``); ``phase`` only for a cancellation."""

    kind_name: ClassVar[str] = "call/result"
    seq: Count
    kind: Literal["call/result"] = "call/result"
    call: Count
    outcome: Literal["ok", "error", "cancelled", "left_early"]
    phase: Literal["before_body"] | UnsetType = UNSET
    chunks: Count | UnsetType = UNSET
    at: Count
    value: Bulk = UNSET
    error: Bulk = UNSET
    contexts: Bulk = UNSET
    meta: Bulk = UNSET
    enc: Bulk = UNSET
    prev: Hex64 = ""
    hash: Hex64 = ""


# Frames of calls in an encrypted cassette (FORMAT.md section 14): what a reader without a key has to go by, and one
# member that holds the rest.


class SealedStart(_Frame, frozen=True, kw_only=True):
    """A call begins; which, only a recipient can read. ``enc``: base64 of the sealed members of a ``call/start``."""

    kind_name: ClassVar[str] = "call/start"
    seq: Count
    kind: Literal["call/start"] = "call/start"
    call: Count
    enc: Bulk = UNSET
    prev: Hex64 = ""
    hash: Hex64 = ""


class SealedChunk(_Frame, frozen=True, kw_only=True):
    """One item of a stream, sealed."""

    kind_name: ClassVar[str] = "call/chunk"
    seq: Count
    kind: Literal["call/chunk"] = "call/chunk"
    call: Count
    chunk: Count
    enc: Bulk = UNSET
    prev: Hex64 = ""
    hash: Hex64 = ""


class SealedResult(_Frame, frozen=True, kw_only=True):
    """A call ends. How is in the clear, so that the counts of the last frame can be checked; with what is sealed."""

    kind_name: ClassVar[str] = "call/result"
    seq: Count
    kind: Literal["call/result"] = "call/result"
    call: Count
    outcome: Literal["ok", "error", "cancelled", "left_early"]
    chunks: Count | UnsetType = UNSET
    enc: Bulk = UNSET
    prev: Hex64 = ""
    hash: Hex64 = ""


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What ``enc`` of a header holds; all but ``alg`` is base64.

    ``commit`` commits to the data key, ``to`` is the data key for each recipient (and for nobody, as padding),
    ``sealed`` the members ``include`` and ``rules``, which an encrypted header has empty.
    """

    alg: Literal["A256GCM"] = "A256GCM"
    commit: str
    to: list[str]
    sealed: str


class Complete(_Frame, frozen=True, kw_only=True):
    """The last frame. ``frames`` counts it too; ``rejected`` counts calls that never reached the recorder."""

    kind_name: ClassVar[str] = "complete"
    seq: Count
    kind: Literal["complete"] = "complete"
    calls: Count
    frames: Count
    ok: Count
    error: Count
    cancelled: Count
    left_early: Count
    rejected: Count
    prev: Hex64 = ""
    hash: Hex64 = ""


class ErrorBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What the member ``error`` holds. Values are trees of ``values``; ``type`` is a qualified name and names no code.

    ``attributes`` is the exception's own dict; ``state`` what a builtin class keeps elsewhere (``OSError.filename``).
    ``parts`` are the exceptions of a group.
    """

    type: Text
    message: Any
    args: list[Any] | UnsetType = UNSET
    attributes: dict[str, Any] | UnsetType = UNSET
    state: dict[str, Any] | UnsetType = UNSET
    error_code: Any = UNSET
    data: Any = UNSET
    notes: list[Any] | UnsetType = UNSET
    cause: ErrorBody | UnsetType = UNSET
    parts: list[ErrorBody] | UnsetType = UNSET


Frame: TypeAlias = Header | CallStart | CallChunk | CallResult | SealedStart | SealedChunk | SealedResult | Complete
KINDS: Final[dict[str, type[Frame]]] = {
    cls.kind_name: cls for cls in (Header, CallStart, CallChunk, CallResult, Complete)
}
SEALED: Final = (SealedStart, SealedChunk, SealedResult)
