"""Frames in, finished lines out: the one way to make a cassette's bytes (FORMAT.md section 7).

Rule: a frame that the grammar refuses leaves nothing changed, and a line longer than the limit is refused before chain
and grammar have moved. Reading back is the very same grammar and chain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec import UNSET, Raw, UnsetType

from toolcassette.errors import FormatError
from toolcassette.format.chain import TRAILER_BYTES, Chain
from toolcassette.format.codec import LINE_BYTES_MAX, encode_body
from toolcassette.format.frames import FORMAT, CallChunk, CallResult, CallStart, Complete, Header
from toolcassette.format.grammar import CALLS_MAX, Grammar
from toolcassette.format.opening import open_line, seal_header
from toolcassette.format.sealing import sealed_body, sealed_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolcassette.format.frames import Frame
    from toolcassette.format.sealing import Sealer

__all__ = ["RecordedOutcome", "Writer"]


class RecordedOutcome(NamedTuple):
    """How a call ended, ``at`` microseconds since ``created``; bulk members as canonical bytes. ``chunks`` counts them,
    None for no stream.
    """

    outcome: str
    at: int = 0
    value: bytes | None = None
    error: bytes | None = None
    contexts: bytes | None = None
    meta: bytes | None = None
    phase: str | None = None
    chunks: int | None = None

    def __repr__(self) -> str:
        return f"<RecordedOutcome {self.outcome}>"  # a traceback with locals must show no value


def _raw(data: bytes | None) -> Raw | UnsetType:
    return UNSET if data is None else Raw(data)


_START = b'{"seq":0,"kind":"call/start","call":0'
_PLAIN_OK = ("ok", None, None, None, None, None)  # outcome; error, contexts, meta, phase, chunks
_HEADS_MAX = 256  # names remembered; a composite makes a new path for each of its calls


class Writer:
    """Writes one cassette, frame by frame. ``seq`` of the frames given is filled in here.

    ``sealing`` makes an encrypted one: given the id of the cassette, it makes a key that nothing was sealed with.
    """

    __slots__ = ("_chain", "_heads", "_line_bytes_max", "_link", "_sealer", "_sealing", "grammar")

    def __init__(
        self,
        *,
        line_bytes_max: int = LINE_BYTES_MAX,
        calls_max: int = CALLS_MAX,
        sealing: Callable[[str], Sealer] | None = None,
    ) -> None:
        self.grammar = Grammar(calls_max=calls_max)
        self._chain = Chain()
        self._sealing = sealing
        self._sealer: Sealer | None = None  # with the header
        self._link = self._chain.link if sealing is None else self._sealed
        self._heads: dict[
            tuple[str, tuple[str, ...], str], bytes
        ] = {}  # what of a plain start frame is always the same
        self._line_bytes_max = line_bytes_max

    def again(self) -> Writer:
        """A new writer with the same limits, and a key of its own: no two texts are sealed as one frame of one key."""
        return Writer(line_bytes_max=self._line_bytes_max, calls_max=self.grammar.calls_max, sealing=self._sealing)

    def opened(self, line: bytes) -> bytes:
        """A line that this writer has made, as it would be in the clear."""
        return line if self._sealer is None else open_line(line, self._sealer)

    @property
    def head(self) -> str:
        """Hash of the last frame."""
        return self._chain.head

    @property
    def seq(self) -> int:
        """Number of the frame that comes next."""
        return self._chain.seq

    def line(self, frame: Frame) -> bytes:
        """The line of the next frame, whose ``seq`` must be ``self.seq``.

        Raises ``FormatError``; then nothing changed.
        """
        body = encode_body(frame)
        self._check_length(body)
        if frame.seq != self.seq:
            raise FormatError("seq", frame=self.seq)
        self.grammar.step(frame)
        if self._sealing is not None and isinstance(frame, Header):
            return self._sealed_header(frame, self._sealing(frame.cassette))
        return self._link(body)

    def _check_length(self, body: bytes) -> None:
        size = len(body) if self._sealer is None else sealed_size(body)
        if size + TRAILER_BYTES > self._line_bytes_max:
            raise FormatError("line_too_long", frame=self.seq)

    def _sealed_header(self, header: Header, sealer: Sealer) -> bytes:
        line = self._chain.link(encode_body(seal_header(header, sealer)))
        self._sealer = sealer
        sealer.bind(bytes.fromhex(self._chain.head))
        return line

    def _sealed(self, body: bytes) -> bytes:
        """As ``Chain.link``, of what becomes of a body; nothing can refuse it any more, so it is sealed once."""
        assert self._sealer is not None  # the grammar lets nothing come before the header
        return self._chain.link(sealed_body(body, self._chain.seq, self._sealer))

    def header(
        self,
        *,
        cassette: str,
        created: str,
        producer: str,
        include: Sequence[str],
        order: str,
        sync: str,
        rules: Sequence[str] = (),
    ) -> bytes:
        """The first line. ``cassette``: 32 random hex digits; ``created``: RFC 3339 UTC with microseconds; ``rules``:
        what was redacted by.
        """
        return self.line(
            Header(
                seq=self.seq,
                format=FORMAT,
                cassette=cassette,
                created=created,
                producer=producer,
                requires=[],
                include=list(include),
                order=cast("Any", order),
                sync=cast("Any", sync),
                rules=list(rules),
            )
        )

    def start(
        self,
        *,
        tool: str,
        args: bytes,
        at: int,
        boundary: str = "tool",
        path: Sequence[str] = (),
        effect: str | None = None,
        omitted: Sequence[str] = (),
    ) -> bytes:
        """The line that begins the next call; its number is ``grammar.calls`` before it. ``args``: canonical bytes."""
        if effect is None and not omitted:
            return self._plain_start(tool, args, at, boundary, tuple(path))
        return self.line(
            CallStart(
                seq=self.seq,
                call=self.grammar.calls,
                boundary=cast("Any", boundary),
                path=list(path),
                tool=tool,
                effect=UNSET if effect is None else effect,
                omitted=list(omitted) if omitted else UNSET,
                at=at,
                args=Raw(args),
            )
        )

    def chunk(self, call: int, chunk: int, *, value: bytes, at: int) -> bytes:
        """The line of one item of a stream."""
        return self.line(CallChunk(seq=self.seq, call=call, chunk=chunk, at=at, value=Raw(value)))

    def result(self, call: int, ended: RecordedOutcome, *, at: int | None = None) -> bytes:
        """The line that ends a call, at its own time or ``at``; what is None is absent."""
        at = ended.at if at is None else at
        if ended[:1] + ended[3:] == _PLAIN_OK and ended.value is not None and self.grammar.may_end_plainly(call):
            return self._plain_result(call, at, ended.value)
        return self.line(
            CallResult(
                seq=self.seq,
                call=call,
                outcome=cast("Any", ended.outcome),
                phase=UNSET if ended.phase is None else cast("Any", ended.phase),
                chunks=UNSET if ended.chunks is None else ended.chunks,
                at=at,
                value=_raw(ended.value),
                error=_raw(ended.error),
                contexts=_raw(ended.contexts),
                meta=_raw(ended.meta),
            )
        )

    # The two frames that most recordings are made of, without the detour through their structs: the same bytes.

    def _plain_start(self, tool: str, args: bytes, at: int, boundary: str, path: tuple[str, ...]) -> bytes:
        key = (boundary, path, tool)
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= _HEADS_MAX:
                self._heads.clear()
            frame = CallStart(seq=0, call=0, boundary=cast("Any", boundary), path=list(path), tool=tool, at=0)
            head = self._heads[key] = encode_body(frame)[len(_START) : -len(b',"at":0')]
        body = b'{"seq":%d,"kind":"call/start","call":%d%b,"at":%d,"args":%b' % (
            self._chain.seq,
            self.grammar.calls,
            head,
            at,
            args,
        )
        self._check_length(body)
        self.grammar.begin(path, tool)
        return self._link(body)

    def _plain_result(self, call: int, at: int, value: bytes) -> bytes:
        body = b'{"seq":%d,"kind":"call/result","call":%d,"outcome":"ok","at":%d,"value":%b' % (
            self._chain.seq,
            call,
            at,
            value,
        )
        self._check_length(body)
        self.grammar.end_plainly(call)
        return self._link(body)

    def complete(self, *, rejected: int = 0) -> bytes:
        """The last line. Raises ``FormatError`` ``call_open`` while a call has no end."""
        counted = self.grammar.outcomes
        return self.line(
            Complete(
                seq=self.seq,
                calls=self.grammar.calls,
                frames=self.grammar.frames + 1,
                ok=counted["ok"],
                error=counted["error"],
                cancelled=counted["cancelled"],
                left_early=counted["left_early"],
                rejected=rejected,
            )
        )
