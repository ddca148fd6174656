"""Where the frames of each call stand, and how their lines are had again (FORMAT.md section 8).

Rule: a line that is handed out is the line that was verified: cut from the very bytes, or read again and compared with
a digest kept since.

An index costs some 30 bytes a call; where lines are read again, 16 more for each call and each chunk.
"""

from __future__ import annotations

import bisect
import hashlib
from array import array
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Final, Protocol, cast

from toolcassette.errors import FormatError
from toolcassette.format.chain import own_fault, prev_and_hash
from toolcassette.format.frames import CallChunk, CallResult, CallStart, SealedChunk, SealedResult, SealedStart
from toolcassette.format.grammar import CHUNK, START

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolcassette.format.frames import Frame
    from toolcassette.format.grammar import Naming
    from toolcassette.format.runs import Survey

    ReadAt = Callable[[int, int], bytes]

__all__ = ["CassetteIndex", "HeldLines", "Lines", "ReadLines"]

_DIGEST_BYTES: Final = 16  # 128 bits: nobody finds other lines with the same
_NO_DIGEST: Final = bytes(_DIGEST_BYTES)
_CODES: Final = {"B": 1 << 8, "H": 1 << 16, "I": 1 << 32}  # array types, and how many numbers they can tell apart


class CassetteIndex:
    """Where the frames of each call stand; filled by a ``Reader``, run by run. ``digests``: keep them too."""

    __slots__ = ("_calls", "_names", "_naming", "_started", "chunks", "digests", "ends", "names", "paths", "starts")

    def __init__(self, *, digests: bool = False) -> None:
        self.names: list[tuple[str, str]] = []  # tool and boundary, of each pair that occurs
        self._names: dict[tuple[str, str], int] = {}
        self._naming: array[int] = array("B")  # by call: which of them
        self._calls: dict[tuple[str, ...], array[int]] = {}
        self.paths: Mapping[tuple[str, ...], Sequence[int]] = self._calls  # calls of a path, in start order
        self.starts = Spans()
        self.ends = Spans()
        self.chunks: dict[int, Chunks] = {}
        self.digests: bytearray | bytes | None = (
            bytearray() if digests else None
        )  # by call, of its start and its result together
        self._started: dict[int, str] = {}  # hash of the start of a call that has not ended

    def naming(self, call: int) -> tuple[str, str]:
        """Tool and boundary of a call."""
        return self.names[self._naming[call]]

    def take_run(self, found: Survey, accepted: int, offset: int) -> None:
        """Take the first frames of a survey (see ``RunIndex``)."""
        if self.digests is None and accepted == len(found.lengths) and found.steps.in_turn():
            self._take_turns(found, offset)
            return
        more = iter(found.steps.more)
        codes, places = found.steps.codes[:accepted], accumulate(found.lengths, initial=offset)
        for code, at, length, digest in zip(codes, places, found.lengths, found.hashes, strict=False):
            kind, call = code & 3, code >> 2
            if code < 0:
                self._frame(cast("Frame", next(more)), at, length, digest)
            elif kind == START:
                self._start(cast("Naming", next(more)), call, at, length, digest)
            elif kind == CHUNK:
                next(more)
                self._chunk(call, at, length, digest)
            else:
                self._end(call, at, length, digest)

    def _take_turns(self, found: Survey, offset: int) -> None:
        """Take a whole run of calls in turn (``Steps.in_turn``): every second frame is a start, the others are ends."""
        offsets, lengths = array("Q", accumulate(found.lengths, initial=offset)), found.lengths
        offsets.pop()  # where the next run begins
        call, start = found.steps.codes[0] >> 2, 0
        if found.steps.codes[0] & 2:
            self.ends.offsets[call], self.ends.lengths[call] = offsets[0], lengths[0]
            call, start = call + 1, 1
        for naming, group in groupby(found.steps.more):
            count = len(list(group))
            self._name(cast("Naming", naming), range(call, call + count))
            call += count
        for spans, first in ((self.starts, start), (self.ends, start + 1)):
            spans.offsets += offsets[first::2]
            spans.lengths += lengths[first::2]
        if len(self.ends) < len(self.starts):
            self.ends.append(0, 0)

    def settle(self) -> None:
        """Give back what was set aside for growing: nothing more will come."""
        self._naming = self._naming[:]
        for path, calls in self._calls.items():
            self._calls[path] = calls[:]
        for spans in (self.starts, self.ends):
            spans.offsets, spans.lengths = spans.offsets[:], spans.lengths[:]
        if self.digests is not None:
            self.digests = bytes(self.digests)

    def _frame(self, frame: Frame, at: int, length: int, digest: str) -> None:
        if isinstance(frame, CallStart):
            self._start((tuple(frame.path), frame.tool, frame.boundary), frame.call, at, length, digest)
        elif isinstance(frame, SealedStart):
            self._start(None, frame.call, at, length, digest)
        elif isinstance(frame, CallResult | SealedResult):
            self._end(frame.call, at, length, digest)
        elif isinstance(frame, CallChunk | SealedChunk):
            self._chunk(frame.call, at, length, digest)

    def name_call(self, naming: Naming, call: int) -> None:
        """Keep the naming of a call; of all calls, in their order."""
        self._name(naming, (call,))

    def _name(self, naming: Naming, started: Sequence[int]) -> None:
        """Keep the naming of calls that follow one another."""
        path, tool, boundary = naming
        number = self._names.setdefault((tool, boundary), len(self.names))
        if number == len(self.names):
            self.names.append((tool, boundary))
            if number == _CODES[self._naming.typecode]:
                self._naming = array("I" if self._naming.typecode == "H" else "H", self._naming)
        self._naming.extend([number] * len(started))
        calls = self._calls.get(path)
        if calls is None:
            calls = self._calls[path] = array("I")
        calls.extend(started)

    def _start(self, naming: Naming | None, call: int, at: int, length: int, digest: str) -> None:
        if naming is not None:  # else it is sealed, and told by ``name_call`` later
            self.name_call(naming, call)
        self.starts.append(at, length)
        self.ends.append(0, 0)
        if self.digests is not None:
            self._started[call] = digest
            self.digests += _NO_DIGEST

    def _end(self, call: int, at: int, length: int, digest: str) -> None:
        self.ends.offsets[call] = at
        self.ends.lengths[call] = length
        if isinstance(self.digests, bytearray):
            pair = _short(self._started.pop(call) + digest)
            self.digests[call * _DIGEST_BYTES : (call + 1) * _DIGEST_BYTES] = pair

    def _chunk(self, call: int, at: int, length: int, digest: str) -> None:
        chunks = self.chunks.get(call)
        if chunks is None:
            chunks = self.chunks[call] = Chunks()
        chunks.append(at, length)
        if self.digests is not None:
            chunks.digests += _short(digest)


def _short(hashes: str) -> bytes:
    return hashlib.sha256(hashes.encode("ascii")).digest()[:_DIGEST_BYTES]


class Spans:
    """Offsets and lengths of lines, by number."""

    __slots__ = ("lengths", "offsets")

    def __init__(self) -> None:
        self.offsets = array("Q")
        self.lengths = array("I")

    def append(self, offset: int, length: int) -> None:
        """The next one."""
        self.offsets.append(offset)
        self.lengths.append(length)

    def after(self, number: int) -> int:
        """Where the line behind it begins."""
        return self.offsets[number] + self.lengths[number]

    def before(self, offset: int) -> int:
        """How many begin before a place in the file; the lines must stand in their order."""
        return bisect.bisect_left(self.offsets, offset)

    def __len__(self) -> int:
        return len(self.offsets)


class Chunks(Spans):
    """The lines of a stream's chunks, with their digests where these are kept."""

    __slots__ = ("digests",)

    def __init__(self) -> None:
        super().__init__()
        self.digests = bytearray()


class Lines(Protocol):
    """The verified lines of a cassette. Each raises ``FormatError`` ``hash`` where a line is not the verified one."""

    def start(self, call: int) -> bytes:
        """The line that begins a call."""
        ...

    def end(self, call: int) -> bytes:
        """The line that ends a call."""
        ...

    def chunk(self, call: int, chunk: int) -> bytes:
        """The line of one item of a stream."""
        ...

    def whole(self) -> bytes:
        """All lines."""
        ...


class HeldLines:
    """Cut from the bytes that were verified."""

    __slots__ = ("_data", "_index")

    def __init__(self, data: bytes, index: CassetteIndex) -> None:
        self._data = data
        self._index = index

    # The first two are asked for by every call of a replay, and written out.

    def start(self, call: int) -> bytes:
        """See ``Lines``."""
        starts = self._index.starts
        offset = starts.offsets[call]
        return self._data[offset : offset + starts.lengths[call]]

    def end(self, call: int) -> bytes:
        """See ``Lines``."""
        ends = self._index.ends
        offset = ends.offsets[call]
        return self._data[offset : offset + ends.lengths[call]]

    def chunk(self, call: int, chunk: int) -> bytes:
        """See ``Lines``."""
        chunks = self._index.chunks[call]
        offset = chunks.offsets[chunk]
        return self._data[offset : offset + chunks.lengths[chunk]]

    def whole(self) -> bytes:
        """See ``Lines``."""
        return self._data


class ReadLines:
    """Read when they are used, and compared with their digests. ``read_at(offset, length)`` gives bytes of the file.

    A call's two lines are read and compared together, and the last such pair is kept: matching a call and handing out
    its outcome is one read. ``check(data)`` raises where the whole file is not the verified one.
    """

    __slots__ = ("_check", "_index", "_last", "_read_at", "_size")

    def __init__(self, read_at: ReadAt, index: CassetteIndex, size: int, check: Callable[[bytes], None]) -> None:
        self._read_at = read_at
        self._index = index
        self._size = size
        self._check = check
        self._last: tuple[int, bytes, bytes] | None = None  # call, its start, its end: swapped as one

    def start(self, call: int) -> bytes:
        """See ``Lines``."""
        return self._pair(call)[1]

    def end(self, call: int) -> bytes:
        """See ``Lines``."""
        return self._pair(call)[2]

    def chunk(self, call: int, chunk: int) -> bytes:
        """See ``Lines``."""
        chunks = self._index.chunks[call]
        offset = chunks.offsets[chunk]
        line = self._read_at(offset, chunks.lengths[chunk])
        kept = bytes(chunks.digests[chunk * _DIGEST_BYTES : (chunk + 1) * _DIGEST_BYTES])
        if own_fault(line) is not None or _short(prev_and_hash(line)[1]) != kept:
            raise FormatError("hash", offset=offset)
        return line

    def whole(self) -> bytes:
        """See ``Lines``."""
        data = self._read_at(0, self._size)
        self._check(data)
        return data

    def _pair(self, call: int) -> tuple[int, bytes, bytes]:
        last = self._last
        if last is not None and last[0] == call:
            return last
        starts, ends = self._index.starts, self._index.ends
        offset, size = starts.offsets[call], starts.lengths[call]
        if starts.after(call) == ends.offsets[call]:
            both = self._read_at(offset, size + ends.lengths[call])
            start, end = both[:size], both[size:]
        else:
            start = self._read_at(offset, size)
            end = self._read_at(ends.offsets[call], ends.lengths[call])
        for line, at in ((start, offset), (end, ends.offsets[call])):
            if own_fault(line) is not None:
                raise FormatError("hash", offset=at)
        digests = self._index.digests or b""
        kept = bytes(digests[call * _DIGEST_BYTES : (call + 1) * _DIGEST_BYTES])
        if _short(prev_and_hash(start)[1] + prev_and_hash(end)[1]) != kept:
            raise FormatError("hash", offset=offset)
        self._last = pair = (call, start, end)
        return pair
