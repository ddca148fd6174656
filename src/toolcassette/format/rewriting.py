"""A recording with other values in the same frames: what a late finding makes of the lines written so far.

Rule: pure, and streaming: nothing but bulk members changes, and with them ``prev`` and ``hash``. The lines were written
by us and are read as such.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import UNSET, Raw

from toolcassette.format.codec import decode_any
from toolcassette.format.frames import CallChunk, CallResult, CallStart, Frame, Header

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolcassette.format.frames import Origin
    from toolcassette.format.writer import Writer

__all__ = ["Change", "bulk_members", "lines_of", "rewrapped", "rewritten"]

_MEMBERS: dict[type[Frame], tuple[str, ...]] = {
    CallStart: ("args",),
    CallChunk: ("value",),
    CallResult: ("value", "error", "contexts", "meta"),
}


class Change(Protocol):
    """What becomes of one bulk member of a call's frame."""

    def __call__(self, call: int, member: str, data: bytes, /) -> bytes:
        """The canonical bytes to write. ``member``: args, chunk, value, error, contexts or meta."""
        ...


def lines_of(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of some bytes, each with its LF; what is cut short at the end is left out."""
    rest = b""
    for block in blocks:
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        for line in lines:
            yield line + b"\n"


def bulk_members(line: bytes) -> tuple[int, list[tuple[str, bytes]]]:
    """The call that a line belongs to (-1: none) and its bulk members, as ``Change`` gets them."""
    frame = decode_any(line)
    return (frame.call if isinstance(frame, CallStart | CallChunk | CallResult) else -1), list(_members(frame))


def _members(frame: Frame) -> Iterator[tuple[str, bytes]]:
    for member in _MEMBERS.get(type(frame), ()):
        data: Any = getattr(frame, member)
        if data is not UNSET:
            yield ("chunk" if isinstance(frame, CallChunk) else member), bytes(data)


def rewritten(lines: Iterable[bytes], writer: Writer, change: Change) -> Iterator[bytes]:
    """The lines as ``writer``, a new one, writes them with what ``change`` makes of their bulk members."""
    for line in lines:
        frame = decode_any(line)
        if isinstance(frame, CallStart | CallChunk | CallResult):
            parts: dict[str, Any] = {
                "value" if member == "chunk" else member: Raw(change(frame.call, member, data))
                for member, data in _members(frame)
            }
            frame = msgspec.structs.replace(frame, **parts)
        yield writer.line(frame)


def rewrapped(
    lines: Iterable[bytes], writer: Writer, *, cassette: str, producer: str, origin: Origin
) -> Iterator[bytes]:
    """The lines of a cassette as ``writer``, a new one, writes them under another id: the same calls, in another chain.

    Raises ``FormatError`` for a line that is not canonical, or longer than the writer allows.
    """
    for line in lines:
        frame = decode_any(line)
        if isinstance(frame, Header):
            frame = msgspec.structs.replace(frame, cassette=cassette, producer=producer, origin=origin)
        yield writer.line(frame)
