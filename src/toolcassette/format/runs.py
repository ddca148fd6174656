"""Many lines at once: cutting blocks into runs of whole lines, and what a sound run says (FORMAT.md section 8).

Rule: a survey is given only where the ``Reader`` would find nothing wrong with the lines taken one by one; in every
other case it is None, and the lines are taken one by one. So a survey decides no fault, and may be made anywhere, in
any order, by another thread or process.

Theory. What a line says by itself (its hash, its head) needs no other line; what it says of its neighbours (links,
numbers, calls) is cheap. So the first is surveyed for a whole run with as few steps of Python as can be, and the second
is left to the one reader that sees the runs in order.
"""

from __future__ import annotations

import hashlib
from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

from toolcassette.errors import FormatError
from toolcassette.format.chain import TRAILER_BYTES, has_trailer, leaf_hash, linked_tails, prev_and_hash
from toolcassette.format.codec import (
    LINE_BYTES_MAX,
    QUICK_OK,
    QUICK_START,
    decode_any,
    decode_head,
    naming_of,
    quick_head,
)
from toolcassette.format.grammar import CHUNK, ERROR, OK, START, Steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcassette.format.codec import QuickHead

__all__ = ["LARGE_LINE_BYTES", "Cutter", "Run", "Survey", "survey"]

LARGE_LINE_BYTES: Final = 64 * 1024  # from here on the hash is nearly all of the work, and threads share it
_PIECE_BYTES: Final = 64 * 1024  # lines that are split at once: they stay in a core's own cache
_HEAD_BYTES: Final = 4096  # where a head is looked for; a longer one is decoded the long way
_TAIL: Final = TRAILER_BYTES - 1  # without LF, at which the lines were split
_HASH_PART: Final = 75  # ,"hash":"<64>"}
_sha256 = hashlib.sha256


class Run(NamedTuple):
    """Bytes that follow one another in a file: whole lines; or, without its LF, one that is longer than allowed.

    ``large``: one line of at least ``LARGE_LINE_BYTES``.
    """

    parts: list[bytes | memoryview]
    size: int
    large: bool = False

    def data(self) -> bytes:
        """The bytes, in one piece."""
        return _joined(self.parts)

    def lines(self) -> list[bytes]:
        """The lines, each with the LF that it has."""
        lines = [line + b"\n" for line in self.data().split(b"\n")]
        last = lines.pop()[:-1]
        return [*lines, last] if last else lines


class Survey(NamedTuple):
    """What a sound run says. ``prev``: what its first line follows; ``head``: hash of its last; ``seq``: of its first.

    ``steps`` are for ``Grammar.run``; ``lengths`` in bytes and ``hashes`` of every line, 64 hex digits each.
    """

    prev: str
    head: str
    seq: int
    steps: Steps
    lengths: array[int]
    hashes: list[str]


def _joined(parts: list[bytes | memoryview]) -> bytes:
    only = parts[0] if len(parts) == 1 else None
    return only if isinstance(only, bytes) else b"".join(parts)


class Cutter:
    """Cuts the blocks of a file into runs. What is begun and not ended is its ``rest``."""

    __slots__ = ("_limit", "_rest", "_size")

    def __init__(self, line_bytes_max: int = LINE_BYTES_MAX) -> None:
        self._limit = line_bytes_max
        self._rest: list[bytes | memoryview] = []
        self._size = 0

    @property
    def rest(self) -> bytes:
        """What stands behind the last LF."""
        return _joined(self._rest)

    def cut(self, block: bytes) -> Iterator[Run]:
        """The runs that end in the next block. Of a line without end no more than the limit and a block is held."""
        start = 0
        if self._size >= LARGE_LINE_BYTES and (first := block.find(b"\n") + 1):
            yield self._ended(memoryview(block)[:first], large=True)
            start = first
        if end := block.rfind(b"\n", start) + 1:
            piece = block if start == 0 and end == len(block) else memoryview(block)[start:end]
            yield self._ended(piece, large=False)
            start = end
        if start < len(block):
            self._rest.append(memoryview(block)[start:] if start else block)
            self._size += len(block) - start
        if self._size > self._limit:
            yield self._ended(b"", large=False)

    def _ended(self, piece: bytes | memoryview, *, large: bool) -> Run:
        run = Run([*self._rest, piece] if len(piece) else self._rest, self._size + len(piece), large)
        self._rest, self._size = [], 0
        return run


def survey(run: Run, *, deep: bool = False, line_bytes_max: int = LINE_BYTES_MAX) -> Survey | None:
    """What a run says; None where anything is wrong with it, or cannot be told here. ``deep``: bulk members too."""
    try:
        if run.large:
            return _survey_line(run, deep=deep) if run.size <= line_bytes_max else None
        return _survey_lines(run.data(), deep=deep, line_bytes_max=line_bytes_max)
    except FormatError:
        return None


def _survey_lines(data: bytes, *, deep: bool, line_bytes_max: int) -> Survey | None:
    """Piece by piece, each small enough to stay in the cache."""
    line = data[: data.find(b"\n") + 1]
    if not has_trailer(line):
        return None
    steps, lengths, hashes = Steps(), array("I"), list[str]()
    prev = head = prev_and_hash(line)[0]
    first = start = 0
    while start < len(data):
        end = data.rfind(b"\n", start, start + _PIECE_BYTES) + 1 or data.find(b"\n", start) + 1
        if not end:
            return None
        lines = (b"\0" + data[start : end - 1].replace(b"\n", b"\n\0")).split(b"\n")  # 0x00 is hashed too
        sizes = array("I", map(len, lines))  # with 0x00 instead of LF
        if min(sizes) <= TRAILER_BYTES or max(sizes) > line_bytes_max:
            return None
        hexes = [_sha256(line[:-_HASH_PART]).hexdigest() for line in lines]
        if linked_tails(head, hexes) != b"".join([line[-_TAIL:] for line in lines]):
            return None
        seq = _heads(lines, steps)
        first = first if hashes else seq
        if (
            seq < 0
            or seq != first + len(hashes)
            or (deep and not all(_is_canonical(line[1:] + b"\n") for line in lines))
        ):
            return None
        lengths += sizes
        hashes += hexes
        head, start = hexes[-1], end
    return Survey(prev, head, first, steps, lengths, hashes)


def _heads(lines: list[bytes], steps: Steps) -> int:
    """Add what the heads of some lines say to ``steps``. Returns the first ``seq``, or -1 if they do not count up.

    Most heads are those of starts and of results that are ok: what is done for these is written out here.
    """
    code, more = steps.codes.append, steps.more.append
    numbers: list[bytes] = []
    for line in lines:
        quick = quick_head(line, 1)  # behind 0x00
        if quick is None:
            numbers.append(_long_step(line[1:] + b"\n", steps))
            continue
        kind = quick.lastindex
        if kind == QUICK_OK:
            seq, call = quick.group(1, 6)
            code(int(call) << 2 | OK)
        elif kind == QUICK_START:
            seq, call, naming = quick.group(1, 2, 3)
            code(int(call) << 2 | START)
            more(naming_of(naming))
        else:
            seq = _quick_step(quick, steps)
        numbers.append(seq)
    first = int(numbers[0])
    return first if b",".join(numbers) == _counted(first, len(numbers)) else -1


def _counted(first: int, count: int) -> bytes:
    """Numbers in a row, as text."""
    return b",".join([b"%d"] * count) % tuple(range(first, first + count))


def _quick_step(quick: QuickHead, steps: Steps) -> bytes:
    """Add one head. Returns its ``seq``."""
    seq, started, naming, chunked, chunk, ended, ok, _ = quick.groups()
    if naming is not None:
        steps.codes.append(int(started) << 2 | START)
        steps.more.append(naming_of(naming))
    elif chunk is not None:
        steps.codes.append(int(chunked) << 2 | CHUNK)
        steps.more.append(int(chunk))
    else:
        steps.codes.append(int(ended) << 2 | (OK if ok else ERROR))
    return seq


def _long_step(line: bytes, steps: Steps) -> bytes:
    """Add a head of any other kind. Returns its ``seq``; raises ``FormatError``."""
    frame = decode_head(line)
    steps.add_frame(frame)
    return b"%d" % frame.seq


def _is_canonical(line: bytes) -> bool:
    """True; or ``FormatError`` is raised."""
    decode_any(line)
    return True


def _survey_line(run: Run, *, deep: bool) -> Survey | None:
    """One large line, none of which is copied but for both of its ends."""
    tail = _last(run.parts, TRAILER_BYTES)
    if not has_trailer(tail):
        return None
    prev, head = prev_and_hash(tail)
    if leaf_hash(*_without(run.parts, _HASH_PART + 1)) != head:
        return None
    steps = Steps()
    quick = quick_head(_first(run.parts, _HEAD_BYTES), 0)
    seq = int(_long_step(run.data(), steps) if quick is None else _quick_step(quick, steps))
    if deep and not _is_canonical(run.data()):
        return None
    return Survey(prev, head, seq, steps, array("I", [run.size]), [head])


def _first(parts: list[bytes | memoryview], count: int) -> bytes:
    found = b""
    for part in parts:
        found += part[: count - len(found)]
        if len(found) == count:
            break
    return found


def _last(parts: list[bytes | memoryview], count: int) -> bytes:
    found = b""
    for part in reversed(parts):
        found = bytes(part[-(count - len(found)) :]) + found
        if len(found) == count:
            break
    return found


def _without(parts: list[bytes | memoryview], count: int) -> Iterator[memoryview]:
    """The parts without the last ``count`` bytes."""
    left = sum(map(len, parts)) - count
    for part in parts:
        yield memoryview(part)[: max(left, 0)]
        left -= len(part)
