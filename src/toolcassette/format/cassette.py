"""A verified cassette: its lines, and an index of them (FORMAT.md section 8).

Rule: there is one way to get a ``Cassette``, through the ``Reader``, and it gives a whole one or an error. The lines
that were verified are the lines that are used, and each use of a frame proves again that it is the canonical spelling.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from toolcassette.errors import EncryptionError, FormatError
from toolcassette.format.chain import TRAILER_BYTES
from toolcassette.format.codec import LINE_BYTES_MAX, bulk_span, decode_any, decode_frame, decode_head, encode_body
from toolcassette.format.frames import CallChunk, CallResult, CallStart, Complete, Header
from toolcassette.format.grammar import CALLS_MAX
from toolcassette.format.index import CassetteIndex, HeldLines, ReadLines
from toolcassette.format.opening import opened
from toolcassette.format.reader import Reader
from toolcassette.format.writer import RecordedOutcome, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from toolcassette.format.index import Lines
    from toolcassette.format.reader import RunIndex
    from toolcassette.format.runs import Survey
    from toolcassette.format.sealing import Opener

    Opens = Callable[[Header], Opener]

__all__ = [
    "Cassette",
    "RecordedCall",
    "frame_number",
    "index_cassette",
    "parse_cassette",
    "recorded_call",
    "write_cassette",
]

_BLOCK_BYTES = 256 * 1024  # what a reader is fed at once: it goes through a core's own cache
_ARGS = b',"args":'
_PLAIN = re.compile(rb'\{"seq":[0-9]+,"kind":"call/result","call":[0-9]+,"outcome":"ok","at":([0-9]+),"value":')
_LATER = re.compile(rb',"(?:args|value|contexts|meta|enc)":|,"error":\{')


class RecordedCall(NamedTuple):
    """One call of a cassette, its bulk members as canonical bytes. Times are microseconds since ``created``.

    ``chunks`` is None for a call that was no stream. What ``outcome`` does not have is None.
    """

    tool: str
    args: bytes
    path: tuple[str, ...] = ()
    boundary: str = "tool"
    outcome: str = "ok"
    value: bytes | None = None
    error: bytes | None = None
    chunks: tuple[bytes, ...] | None = None
    contexts: bytes | None = None
    meta: bytes | None = None
    effect: str | None = None
    omitted: tuple[str, ...] = ()
    phase: str | None = None
    started_at: int = 0
    ended_at: int = 0


class Cassette:
    """A whole, verified cassette. ``header`` and ``complete`` are its first and last frame, ``head`` its last hash.

    One that is ``encrypted`` in its file was opened: header and calls are as they were before.
    """

    __slots__ = ("__weakref__", "_close", "_index", "_lines", "complete", "encrypted", "head", "header")

    def __init__(self, lines: Lines, index: CassetteIndex, header: Header, complete: Complete, head: str) -> None:
        self._lines = lines
        self._index = index
        self._close: Callable[[], object] | None = None
        self.encrypted = False
        self.header = header
        self.complete = complete
        self.head = head

    def __repr__(self) -> str:
        return f"<Cassette {self.header.cassette} calls={len(self)}>"

    def closing(self, close: Callable[[], object]) -> None:
        """Have ``close`` called when this cassette is closed: its lines come from something that is open."""
        self._close = close

    def close(self) -> None:
        """Let go of the file, if its lines are read from one; it cannot be used any more then. Idempotent."""
        close, self._close = self._close, None
        if close is not None:
            close()

    def __len__(self) -> int:
        """Number of calls."""
        return len(self._index.starts)

    def __iter__(self) -> Iterator[RecordedCall]:
        return (self.call(number) for number in range(len(self)))

    @property
    def paths(self) -> Mapping[tuple[str, ...], Sequence[int]]:
        """The calls of each call path, in start order."""
        return self._index.paths

    def place(self, call: int) -> tuple[CallStart, bytes]:
        """Head of a call's start frame, and its arguments as stored; for comparing, which proves their spelling."""
        line = self._lines.start(call)
        head = decode_head(line)
        start, end = bulk_span(line)
        assert isinstance(head, CallStart)  # the index holds nothing else
        return head, line[start + len(_ARGS) : end]

    def span(self, call: int) -> tuple[int, int]:
        """Where a call's start frame and its result frame begin, in bytes: an order of events."""
        return self._index.starts.offsets[call], self._index.ends.offsets[call]

    def adjacent(self, call: int) -> bool:
        """True if a call's result frame follows its start frame at once: nothing overlapped it."""
        starts = self._index.starts
        return starts.offsets[call] + starts.lengths[call] == self._index.ends.offsets[call]

    def has_chunks(self, call: int) -> bool:
        """True for a stream of at least one item."""
        return call in self._index.chunks

    def chunks_before(self, call: int, offset: int) -> int:
        """How many items of a stream stand before a place in the file, as ``span`` tells places."""
        return self._index.chunks[call].before(offset)

    def tool(self, call: int) -> str:
        """Name of the tool of a call."""
        return self._index.naming(call)[0]

    @property
    def tools(self) -> frozenset[str]:
        """Names of the tools that occur."""
        return frozenset(tool for tool, _ in self._index.names)

    def is_call(self, call: int, tool: str, args: bytes, boundary: str = "tool") -> bool:
        """Whether a recorded call is one of this tool with these canonical arguments.

        Nothing is decoded. A start frame ends in its arguments; an object that stands inside them cannot pass for
        them, because more brackets would have to follow it.
        """
        if self._index.naming(call) != (tool, boundary):
            return False
        return self._lines.start(call)[:-TRAILER_BYTES].endswith(_ARGS + args)

    def outcome(self, call: int, *, quick: bool = False) -> RecordedOutcome:
        """How a call ended. Raises ``FormatError`` ``bulk`` where a bulk member is not canonical.

        A lone ``value`` is handed out as it stands; decoding it proves its spelling, and that nothing stands behind it.
        ``quick``: so is all that begins as a value; where it cannot be decoded, ask again.
        """
        line = self._lines.end(call)
        plain = _PLAIN.match(line)  # its head was verified when the cassette was opened
        if plain is not None:
            start, end = plain.end(), len(line) - TRAILER_BYTES
            if quick or not _LATER.search(line, start, end):
                return RecordedOutcome("ok", int(plain.group(1)), line[start:end])
        return _outcome(decode_frame(line, CallResult))

    def all_lines(self) -> Iterator[bytes]:
        """Its lines, in order, each with its LF."""
        return (line + b"\n" for line in self._lines.whole().split(b"\n")[:-1])

    def content(self) -> list[bytes]:
        """What the cassette says: every frame without what differs from run to run (id, times, producer, hashes)."""
        return [_content(line) for line in self.all_lines()]

    def call(self, call: int) -> RecordedCall:
        """One call, whole. Raises ``FormatError`` as ``outcome`` does."""
        start, *chunks, end = self.lines(call)
        return recorded_call(start, chunks, end)

    def lines(self, call: int) -> list[bytes]:
        """The lines of one call, with LF: its start, its chunks, its result."""
        chunks = range(len(self._index.chunks.get(call, ())))
        return [
            self._lines.start(call),
            *(self._lines.chunk(call, chunk) for chunk in chunks),
            self._lines.end(call),
        ]

    def chunk(self, call: int, chunk: int) -> bytes:
        """One item of a stream, as canonical bytes. Raises ``FormatError`` as ``outcome`` does."""
        return _item(self._lines.chunk(call, chunk))

    def chunks(self, call: int) -> Iterator[bytes]:
        """The items of a stream, as canonical bytes."""
        return (self.chunk(call, number) for number in range(len(self._index.chunks.get(call, ()))))


def recorded_call(start_line: bytes, chunk_lines: Sequence[bytes], end_line: bytes) -> RecordedCall:
    """The call that some lines are: a start, its chunks, its result. Raises ``FormatError`` as ``outcome`` does."""
    start = decode_frame(start_line, CallStart)
    ended = _outcome(decode_frame(end_line, CallResult))
    return RecordedCall(
        tool=start.tool,
        args=bytes(start.args) if isinstance(start.args, Raw) else b"{}",
        path=tuple(start.path),
        boundary=start.boundary,
        outcome=ended.outcome,
        value=ended.value,
        error=ended.error,
        chunks=None if ended.chunks is None else tuple(map(_item, chunk_lines)),
        contexts=ended.contexts,
        meta=ended.meta,
        effect=None if start.effect is UNSET else start.effect,
        omitted=() if start.omitted is UNSET else tuple(start.omitted),
        phase=ended.phase,
        started_at=start.at,
        ended_at=ended.at,
    )


def frame_number(line: bytes) -> int:
    """The ``seq`` of a line whose head was verified."""
    return decode_head(line).seq


def _item(line: bytes) -> bytes:
    frame = decode_frame(line, CallChunk)
    return bytes(frame.value) if isinstance(frame.value, Raw) else b"null"


def _content(line: bytes) -> bytes:
    frame = decode_any(line)
    if isinstance(frame, Header):
        frame = msgspec.structs.replace(frame, cassette="", created="", producer="")
    elif not isinstance(frame, Complete):
        frame = msgspec.structs.replace(frame, at=0)
    return encode_body(frame)


def _outcome(frame: CallResult) -> RecordedOutcome:
    return RecordedOutcome(
        outcome=frame.outcome,
        at=frame.at,
        value=_bytes(frame.value),
        error=_bytes(frame.error),
        contexts=_bytes(frame.contexts),
        meta=_bytes(frame.meta),
        phase=None if frame.phase is UNSET else frame.phase,
        chunks=None if frame.chunks is UNSET else frame.chunks,
    )


def _bytes(raw: Any) -> bytes | None:
    return bytes(raw) if isinstance(raw, Raw) else None


class _Both:
    """Two that are told of the same frames."""

    def __init__(self, *told: RunIndex) -> None:
        self._told = told

    def take_run(self, found: Survey, accepted: int, offset: int) -> None:
        for told in self._told:
            told.take_run(found, accepted, offset)


def parse_cassette(
    data: bytes,
    *,
    line_bytes_max: int = LINE_BYTES_MAX,
    calls_max: int = CALLS_MAX,
    watch: RunIndex | None = None,
    opens: Opens | None = None,
) -> Cassette:
    """The cassette that some bytes are. Raises ``FormatError`` on any defect: half a cassette is never returned.

    ``watch`` is told of every frame as it is taken. ``opens`` finds the key of an encrypted one by its header; without
    it, and where it finds none, ``EncryptionError`` is raised, once the cassette was seen to be whole.
    """
    index = CassetteIndex()
    runs = index if watch is None else _Both(index, watch)
    reader = Reader(runs=runs, line_bytes_max=line_bytes_max, calls_max=calls_max)
    blocks = (data[start : start + _BLOCK_BYTES] for start in range(0, len(data), _BLOCK_BYTES))
    return _whole(reader.feed_all(blocks), index, HeldLines(data, index), opens)


def index_cassette(
    blocks: Iterable[bytes],
    read_at: Callable[[int, int], bytes],
    size: int,
    *,
    line_bytes_max: int = LINE_BYTES_MAX,
    calls_max: int = CALLS_MAX,
    watch: RunIndex | None = None,
    opens: Opens | None = None,
) -> Cassette:
    """The cassette that ``size`` bytes in ``blocks`` are, of which only an index is kept.

    Its lines are read again when they are used: ``read_at(offset, length)`` must give the same bytes, and where it does
    not, that use raises ``FormatError`` ``hash``. Raises ``FormatError`` on any defect, as ``parse_cassette``.
    """
    index = CassetteIndex(digests=True)
    runs = index if watch is None else _Both(index, watch)
    reader = Reader(runs=runs, line_bytes_max=line_bytes_max, calls_max=calls_max)

    def check(data: bytes) -> None:
        again = Reader(line_bytes_max=line_bytes_max, calls_max=calls_max).feed_all([data])
        if again.finish() is not None or again.head != reader.head:
            raise FormatError("hash")

    return _whole(reader.feed_all(blocks), index, ReadLines(read_at, index, size, check), opens)


def _whole(reader: Reader, index: CassetteIndex, lines: Lines, opens: Opens | None) -> Cassette:
    """The cassette that a reader has seen to its end. Raises what it found."""
    finding = reader.finish()
    if finding is not None:
        raise finding.as_error()
    if reader.header is None or reader.complete is None:  # cannot be: the grammar lets nothing else be complete
        raise FormatError("tail_missing")
    header, encrypted = reader.header, bool(reader.header.requires)
    if encrypted:
        if opens is None:
            raise EncryptionError("identity_missing")
        lines, header = opened(lines, index, header, opens(header))
    index.settle()
    cassette = Cassette(lines, index, header, reader.complete, reader.head)
    cassette.encrypted = encrypted
    return cassette


def write_cassette(
    calls: Iterable[RecordedCall],
    *,
    cassette: str,
    created: str,
    producer: str,
    include: Sequence[str] | None = None,
    order: str = "strict",
) -> bytes:
    """The bytes of a cassette that holds these calls, each ended before the next one starts.

    ``cassette`` is 32 hex digits (random in a real recording), ``created`` RFC 3339 UTC with microseconds. Without
    ``include`` every tool that occurs is included. Raises ``FormatError`` for what the format does not allow.
    """
    calls = list(calls)
    names = include if include is not None else sorted({call.tool for call in calls})
    writer = Writer()
    lines = [
        writer.header(cassette=cassette, created=created, producer=producer, include=names, order=order, sync="close")
    ]
    for number, call in enumerate(calls):
        lines.extend(_lines(writer, number, call))
    lines.append(writer.complete())
    data = b"".join(lines)
    finding = Reader(deep=True).feed_all([data]).finish()
    if finding is not None:  # nothing is written that would not be read
        raise finding.as_error()
    return data


def _lines(writer: Writer, number: int, call: RecordedCall) -> Iterator[bytes]:
    yield writer.start(
        tool=call.tool,
        args=call.args,
        at=call.started_at,
        boundary=call.boundary,
        path=call.path,
        effect=call.effect,
        omitted=call.omitted,
    )
    for chunk, value in enumerate(call.chunks or ()):
        yield writer.chunk(number, chunk, value=value, at=call.started_at)
    ended = RecordedOutcome(
        outcome=call.outcome,
        at=call.ended_at,
        value=call.value,
        error=call.error,
        contexts=call.contexts,
        meta=call.meta,
        phase=call.phase,
        chunks=None if call.chunks is None else len(call.chunks),
    )
    yield writer.result(number, ended)
