"""What is left of a file that is no whole cassette: its intact beginning, made into a new cassette.

Rule: what is salvaged never passes for the original. It has an id and hashes of its own, and its header says ``from``:
the id of the file it was made of, and the hash of the last frame that was intact there.

Only calls that have their result are kept, numbered anew. Their frames stay in the order in which they stood, so that
calls which overlapped still do; ``created`` stays too, because the times of the calls count from it.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from toolcassette.errors import EncryptionError
from toolcassette.format.chain import prev_and_hash
from toolcassette.format.codec import LINE_BYTES_CEILING, decode_any
from toolcassette.format.frames import (
    CallResult,
    CallStart,
    Complete,
    Header,
    Origin,
    SealedChunk,
    SealedResult,
    SealedStart,
)
from toolcassette.format.reader import Reader
from toolcassette.format.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcassette.format.frames import Frame
    from toolcassette.format.reader import Finding

__all__ = ["Salvaged", "salvage"]


class Salvaged(NamedTuple):
    """What could be kept. ``data``: the new cassette, None where no call had ended or nothing is wrong (``finding``).

    ``frames`` were intact; of the calls begun in them, ``kept`` had ended and ``lost`` had not.
    """

    data: bytes | None
    finding: Finding | None
    frames: int
    kept: int
    lost: int


class _Prefix:
    """The frames of the intact beginning, as a ``Reader`` meets them (its ``index``)."""

    def __init__(self) -> None:
        self.ended: set[int] = set()
        self._offsets = array("Q")
        self._lengths = array("Q")

    def __call__(self, frame: Frame, offset: int, length: int) -> None:
        self._offsets.append(offset)
        self._lengths.append(length)
        if isinstance(frame, CallResult):
            self.ended.add(frame.call)

    def lines(self, data: bytes) -> Iterator[bytes]:
        return (data[at : at + length] for at, length in zip(self._offsets, self._lengths, strict=True))

    def head(self, data: bytes) -> str:
        """Hash of the last of them."""
        return prev_and_hash(data[self._offsets[-1] : self._offsets[-1] + self._lengths[-1]])[1]


def salvage(data: bytes, *, cassette: str, producer: str) -> Salvaged:
    """The intact beginning of ``data`` as a new cassette of the id ``cassette`` (32 random hex digits).

    Raises ``FormatError`` where not even the header is intact.
    """
    prefix = _Prefix()
    # Deep: what goes into a new cassette must be canonical, and a value that is not is where the intact part ends.
    reader = Reader(index=prefix, deep=True, line_bytes_max=LINE_BYTES_CEILING).feed_all([data])
    finding = reader.finish()
    if finding is not None and reader.header is None:
        raise finding.as_error()
    if finding is not None and reader.header is not None and reader.header.requires:
        raise EncryptionError("salvage")
    kept = len(prefix.ended)
    made = None if finding is None or not kept else _made(data, prefix, cassette, producer)
    return Salvaged(made, finding, reader.grammar.frames, kept, reader.grammar.calls - kept)


def _made(data: bytes, prefix: _Prefix, cassette: str, producer: str) -> bytes:
    writer = Writer(line_bytes_max=LINE_BYTES_CEILING)
    numbers: dict[int, int] = {}  # number of a kept call in the file -> its new one
    rejected = 0
    lines: list[bytes] = []
    for line in prefix.lines(data):
        frame = decode_any(line)
        if isinstance(frame, Header):
            origin = Origin(cassette=frame.cassette, head=prefix.head(data), how="salvage")
            frame = msgspec.structs.replace(frame, cassette=cassette, producer=producer, origin=origin)
        elif isinstance(frame, Complete):  # damage came after it
            rejected = frame.rejected
            continue
        elif isinstance(frame, SealedStart | SealedChunk | SealedResult) or frame.call not in prefix.ended:
            continue
        else:
            if isinstance(frame, CallStart):
                numbers[frame.call] = len(numbers)
            frame = msgspec.structs.replace(frame, seq=writer.seq, call=numbers[frame.call])
        lines.append(writer.line(frame))
    lines.append(writer.complete(rejected=rejected))
    made = b"".join(lines)
    fault = Reader(line_bytes_max=LINE_BYTES_CEILING).feed_all([made]).finish()
    if fault is not None:  # nothing is handed out that would not be read
        raise fault.as_error()
    return made
