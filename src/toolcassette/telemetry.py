"""Each call a span, for any tracer with ``start_as_current_span``: sessions that tell OpenTelemetry what they do.

Theory. A span begins when its call is entered and is the current one while the body runs, so that spans of the body lie
below it. It ends with the call: with the value, or when the stream that the call handed out has ended. Names are those
of the GenAI conventions, and ``toolcassette.*`` for what only a cassette knows.

Rule: a session without a tracer is another class, and pays nothing. Arguments, results and what a tool's own exception
says are in a span only where that was asked for; a mismatch is told in full, since its text holds no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from toolcassette.engine import Call, Recorder, Replayer
from toolcassette.errors import CassetteError, CassetteMismatch, RecordedToolError, ToolCancelled
from toolcassette.format import decode_tree

if TYPE_CHECKING:
    from types import TracebackType

    from toolcassette.engine import (
        Pending,
        RecorderSettings,
        ReplayedFeed,
        ReplayerSettings,
        Selection,
        ToolContract,
        Verdict,
    )
    from toolcassette.format import RecordedOutcome
    from toolcassette.stores import Store

__all__ = ["TracedRecorder", "TracedReplayer"]

_TOOLS_OWN: Final = (RecordedToolError, ToolCancelled)
_VALUES: Final = {  # boundary -> names of what is told of values, if it is
    "tool": ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"),
    "model": ("toolcassette.request", "toolcassette.response"),
}


class _Traced(Call):
    """A call with its span. The engine hands it on as it is, and the hooks below find the span in it."""

    span: _Span

    def changed(self, **parts: Any) -> Self:
        """See ``Call.changed``."""
        again = super().changed(**parts)
        again.span = self.span
        return again


class _Span:
    """One span: begun when the call is entered, ended once."""

    def __init__(self, tracer: Any, call: Call, mode: str, *, values: bool) -> None:
        self._values = values
        self._boundary = call.boundary
        self._tracer = tracer
        self._open = True
        self._told = False
        self._numbered = False
        self.chunks = 0
        self.is_stream = False
        self._name, self._attributes = _described(call, mode)

    def enter(self) -> None:
        self._current: Any = self._tracer.start_as_current_span(
            self._name,
            attributes=self._attributes,
            end_on_exit=False,
            record_exception=False,
            set_status_on_exception=False,
        )
        self._span: Any = self._current.__enter__()

    def leave(self) -> None:
        """It is not the current one any more; it may go on."""
        self._current.__exit__(None, None, None)

    def tell(self, name: str, value: object) -> None:
        self._span.set_attribute(f"toolcassette.{name}", value)

    def number(self, ordinal: int, cassette: str, *, hit: bool) -> None:
        """The call has its place."""
        self._numbered = True
        self.tell("hit", hit)
        self.tell("ordinal", ordinal)
        self.tell("cassette", cassette)

    def arguments(self, args: bytes) -> None:
        """What the call is made with, without secrets."""
        if self._values:
            self._span.set_attribute(_VALUES[self._boundary][0], args.decode())

    def outcome(self, ended: RecordedOutcome) -> None:
        """What became of the call."""
        self._told = True
        self.tell("outcome", ended.outcome)
        if ended.chunks is not None:
            self.tell("chunks", self.chunks)
        if self._values and ended.value is not None:
            self._span.set_attribute(_VALUES[self._boundary][1], ended.value.decode())
        if ended.outcome == "error":
            error: Any = decode_tree(ended.error or b"{}")
            self._span.set_attribute("error.type", str(error.get("type")).removeprefix("builtins."))
            self._failed(str(error.get("message")) if self._values else "")

    def fail(self, error: BaseException) -> None:
        """The call came to nothing that is written down, or to a mismatch."""
        ours = isinstance(error, CassetteError) and not isinstance(error, _TOOLS_OWN)
        if not self._open or (self._told and not ours):
            self.end()  # it was told already, as the outcome that is written down
            return
        kind = type(error)
        self._span.set_attribute("error.type", kind.__qualname__)
        if isinstance(error, CassetteMismatch):
            self.tell("hit", False)
            self.tell("reason", error.reason)
        if ours or self._values:
            self._span.record_exception(error)
        self._failed(str(error) if ours or self._values else "")
        self.end()

    def _failed(self, text: str) -> None:
        try:
            from opentelemetry.trace import Status, StatusCode
        except ModuleNotFoundError:  # a tracer of another kind
            self._span.set_status("ERROR")
        else:
            self._span.set_status(Status(StatusCode.ERROR, text or None))

    def handed_out(self) -> None:
        """The caller has its value: the end, but of a stream, and of nothing that left a record."""
        if (self._told or not self._numbered) and not self.is_stream:
            self.end()

    def end(self) -> None:
        if self._open:
            self._open = False
            self._span.end()


def _described(call: Call, mode: str) -> tuple[str, dict[str, Any]]:
    attributes: dict[str, Any] = {"toolcassette.mode": mode}
    if call.path:
        attributes["toolcassette.path"] = call.path
    if call.boundary == "tool":
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.tool}
        return f"execute_tool {call.tool}", attributes | tool
    model = {"gen_ai.operation.name": "chat", "gen_ai.request.model": _model(call)}
    return f"chat {call.tool}", attributes | model


def _model(call: Call) -> str:
    """The id of the model, where the request says it; else the name that was given to the boundary."""
    request: Any = decode_tree(call.args)
    places = [request, *(member for member in request.values() if isinstance(member, dict))]
    return next((place["model"] for place in places if isinstance(place.get("model"), str)), call.tool)


class _TracedPending:
    """Around one call: begins and ends its span."""

    def __init__(self, pending: Pending, call: _Traced) -> None:
        self._pending = pending
        self._span = call.span

    @property
    def runs_body(self) -> bool:
        return self._pending.runs_body

    def keep(self, value: object) -> None:
        self._pending.keep(value)

    def outcome(self) -> object:
        try:
            value = self._pending.outcome()
        except BaseException as error:
            self._span.fail(error)
            raise
        self._span.handed_out()
        return value

    def __enter__(self) -> Self:
        self._span.enter()
        try:
            self._pending.__enter__()
        except BaseException as error:
            self._span.leave()
            self._span.fail(error)
            raise
        return self

    async def __aenter__(self) -> Self:
        self._span.enter()
        try:
            await self._pending.__aenter__()
        except BaseException as error:
            self._span.leave()
            self._span.fail(error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._pending.__exit__(kind, error, trace)
        except BaseException as raised:
            self._span.fail(raised)
            raise
        finally:
            self._left(error)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._pending.__aexit__(kind, error, trace)
        except BaseException as raised:
            self._span.fail(raised)
            raise
        finally:
            self._left(error)

    def _left(self, error: BaseException | None) -> None:
        self._span.leave()
        if error is not None:
            self._span.fail(error)


class TracedRecorder(Recorder):
    """A recorder that tells a tracer of each call."""

    def __init__(
        self,
        store: Store,
        name: str,
        selection: Selection,
        settings: RecorderSettings,
        *,
        tracer: object,
        values: bool,
    ) -> None:
        super().__init__(store, name, selection, settings)
        self._tracer = tracer
        self._values = values
        self._spans: dict[int, _Span] = {}
        self._ordinals: dict[tuple[str, ...], int] = {}

    def begin(self, call: Call, contract: ToolContract) -> Pending:
        """See ``Recorder.begin``."""
        traced = _Traced(*call)
        traced.span = _Span(self._tracer, call, self.mode, values=self._values)
        return _TracedPending(super().begin(traced, contract), traced)

    def _start_line(self, call: Call, shuffled: bool) -> tuple[bytes, int]:
        data, number = super()._start_line(call, shuffled)
        ordinal = self._ordinals.get(call.path, 0)
        self._ordinals[call.path] = ordinal + 1
        if isinstance(call, _Traced):
            self._spans[number] = call.span
            call.span.arguments(call.args)
            call.span.number(ordinal, self.cassette_id, hit=False)
        return data, number

    def chunk(self, number: int, tool: str, chunk: int, value: bytes) -> int:
        """See ``Recorder.chunk``."""
        self._spans[number].chunks += 1
        return super().chunk(number, tool, chunk, value)

    def end(self, number: int, tool: str, ended: RecordedOutcome) -> int:
        """See ``Recorder.end``; the span of a stream ends here."""
        span = self._spans.pop(number)
        span.outcome(ended)
        if ended.chunks is not None or ended.outcome != "ok":
            span.end()
        return super().end(number, tool, ended)

    def _end(self, error: BaseException | None) -> Verdict:
        verdict = super()._end(error)
        for span in self._spans.values():  # calls without an end
            span.end()
        return verdict


class TracedReplayer(Replayer):
    """A replayer that tells a tracer of each call."""

    def __init__(
        self,
        store: Store,
        name: str,
        selection: Selection | None,
        settings: ReplayerSettings,
        *,
        tracer: object,
        values: bool,
    ) -> None:
        super().__init__(store, name, selection, settings)
        self._tracer = tracer
        self._values = values
        self._spans: dict[int, _Span] = {}
        self._recorded: dict[int, RecordedOutcome] = {}

    def begin(self, call: Call, contract: ToolContract) -> Pending:
        """See ``Replayer.begin``."""
        traced = _Traced(*call)
        traced.span = _Span(self._tracer, call, self.mode, values=self._values)
        return _TracedPending(super().begin(traced, contract), traced)

    def take(self, call: Call) -> int:
        """See ``Replayer.take``."""
        self._tell_arguments(call)
        return self._taken(super().take(call), call)

    async def atake(self, call: Call) -> int:
        """See ``Replayer.atake``."""
        self._tell_arguments(call)
        return self._taken(await super().atake(call), call)

    def _tell_arguments(self, call: Call) -> None:
        if isinstance(call, _Traced) and self._values:
            redacted = self._redacted(call)
            call.span.arguments(redacted.redacted or redacted.args)

    def _taken(self, number: int, call: Call) -> int:
        if isinstance(call, _Traced):
            self._spans[number] = call.span
            call.span.number(self._played.ordinal(number, call.path), self.cassette.header.cassette, hit=True)
            call.span.tell("head", self.cassette.head)
        return number

    def ended(self, number: int, call: Call) -> RecordedOutcome:
        """See ``Replayer.ended``."""
        found = self._recorded[number] = super().ended(number, call)
        return found

    def going(self, number: int, feed: ReplayedFeed) -> None:
        """See ``Replayer.going``; the span ends when the stream does."""
        self._spans[number].is_stream = True
        super().going(number, feed)

    def item(self, number: int, chunk: int, call: Call, contract: ToolContract) -> object:
        """See ``Replayer.item``."""
        try:
            item = super().item(number, chunk, call, contract)
        except CassetteMismatch as mismatch:
            self._spans[number].fail(mismatch)
            raise
        self._spans[number].chunks += 1
        return item

    def turn(self, number: int, call: Call) -> None:
        """See ``Replayer.turn``."""
        super().turn(number, call)
        self._told(number, whole=True)

    async def aturn(self, number: int, call: Call) -> None:
        """See ``Replayer.aturn``."""
        await super().aturn(number, call)
        self._told(number, whole=True)

    def handed_out(self, number: int) -> None:
        """See ``Replayer.handed_out``."""
        super().handed_out(number)
        ended, span = self._recorded.get(number), self._spans.get(number)
        if ended is None or span is None:
            return
        # A stream whose consumer stops where the recorded one did not is told as a mismatch, which comes next.
        whole = ended.outcome in ("left_early", "cancelled") and span.chunks >= (ended.chunks or 0)
        self._told(number, whole=whole or not span.is_stream)

    def _told(self, number: int, *, whole: bool) -> None:
        ended = self._recorded.pop(number, None)
        if ended is None:
            return
        span = self._spans.pop(number) if whole else self._spans[number]
        span.outcome(ended)
        if whole and span.is_stream:
            span.end()

    def stream_differs(self, number: int, call: Call, read: int, why: str) -> CassetteError:
        """See ``Replayer.stream_differs``."""
        error = super().stream_differs(number, call, read, why)
        span = self._spans.pop(number, None)
        if span is not None:
            span.fail(error)
        return error

    def _end(self, error: BaseException | None) -> Verdict:
        verdict = super()._end(error)
        for span in self._spans.values():
            span.end()
        return verdict
