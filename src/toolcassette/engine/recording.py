"""One call while recording: start frame, body, result frame.

Rule: every way out of the block is an outcome, or none. A value and an exception of the tool's are; a cancellation is,
shielded; an error of ours, ``KeyboardInterrupt``, ``SystemExit`` and the like are not: the call then has no end.
"""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Protocol, Self

from toolcassette.engine.stream_contexts import RecordingContext
from toolcassette.engine.stream_recording import TOOLS_OWN, RecordingFeed, StreamLog
from toolcassette.engine.streams import CONTEXTS, handle, handle_context, shape_of
from toolcassette.errors import CassetteError, UnrecordableValue
from toolcassette.format import RecordedOutcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from toolcassette.engine.call import Call, Kept, ToolContract

__all__ = ["Inside", "Log", "NestedCall", "RecordingCall", "inside"]

_inside: contextvars.ContextVar[tuple[object, str] | None] = contextvars.ContextVar("toolcassette_inside", default=None)


def inside(log: object) -> str | None:
    """The tool whose body, recorded by ``log``, this context is in; or None."""
    running = _inside.get()
    return running[1] if running is not None and running[0] is log else None


class Log(StreamLog, Protocol):
    """What a call needs of its recorder. All raise what poisons it."""

    def start(self, call: Call, *, shuffled: bool = False) -> tuple[int, int]:
        """Write the start frame. Returns the call's number and the position to wait for.

        ``shuffled``: the scheduler starts tasks in random order.
        """
        ...


class Inside:
    """Around a step of a body: selected calls that it makes are nested ones."""

    __slots__ = ("_running", "_token")

    def __init__(self, log: object, tool: str) -> None:
        self._running = (log, tool)

    def __enter__(self) -> None:
        self._token = _inside.set(self._running)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:  # noqa: SIM105 - around every call, where a suppress costs as much as the rest of this
            _inside.reset(self._token)
        except ValueError:
            pass  # another context than the one entered: it dies with its task


class RecordingCall:
    """A selected call whose body runs for real."""

    runs_body = True

    def __init__(self, log: Log, call: Call, contract: ToolContract) -> None:
        self._log = log
        self._call = call
        self._contract = contract
        self._number = -1
        self._kept: Kept | None = None
        self._stream: object = None  # its frames come as it is read, and so does its end
        self._comes_back = True  # False where a replay cannot raise the body's exception as it was
        self._inside = log.running(call.tool)

    def keep(self, value: object) -> None:
        """Freeze the body's value, or begin the stream that it is. Raises ``UnrecordableValue``, which poisons."""
        shape = shape_of(value, contexts=self._contract.contexts) if self._contract.may_stream else None
        if shape in CONTEXTS:
            entered = RecordingContext(self._log, self._call, self._contract, self._number, value, shape)
            self._stream = handle_context(shape, entered)
            return
        if shape is not None:
            feed = RecordingFeed(self._log, self._call, self._contract, self._number, value, shape)
            self._stream = handle(shape, feed)
            return
        try:
            kept = self._contract.keep(value)
            redaction = self._log.redaction
            self._kept = kept if redaction is None else redaction.kept(self._call, self._contract, kept)
        except CassetteError as error:
            raise self._log.poison(_named(error, self._call.tool)) from None

    def outcome(self) -> object:
        """The copy that a replay will hand out; of a stream, a handle of the same shape."""
        if self._stream is not None:
            return self._stream
        if self._kept is None:
            message = "no value was kept"
            raise RuntimeError(message)
        return self._kept.copy

    def __enter__(self) -> Self:
        position = self._start()
        try:
            if position:
                self._log.settle(position)
                self._log.ready(self._call.tool)  # another call's failure while this one waited: no body runs after it
        except BaseException:
            self._leave()
            raise
        return self

    async def __aenter__(self) -> Self:
        from toolcassette.engine import aio

        await aio.checkpoint()
        position = self._start(shuffled=aio.shuffles())
        try:
            if position:
                await self._log.asettle(position)
                await aio.checkpoint_if_cancelled()
                self._log.ready(self._call.tool)  # as above
        except BaseException as error:
            self._leave()
            if aio.is_cancellation(error):
                await self._log.end_cancelled(lambda: self._end_cancelled("before_body"))
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        position = self._end(error)
        if position:
            self._log.settle(position)
        if error is not None:
            self._warn(error)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from toolcassette.engine import aio

        self._leave()
        if error is not None and aio.is_cancellation(error):
            await self._log.end_cancelled(self._end_cancelled)
            return
        position = self._end(error)
        if position:
            await self._log.asettle(position)
        self._warn(error)

    def _start(self, *, shuffled: bool = False) -> int:
        self._number, position = self._log.start(self._call, shuffled=shuffled)
        self._inside.__enter__()
        return position

    def _leave(self) -> None:
        self._inside.__exit__(None, None, None)

    def _end(self, error: BaseException | None) -> int | None:
        """Write the result frame for a way out of the block, or nothing where there is no outcome."""
        if error is None:
            if self._stream is not None:
                return None
            if self._kept is None:
                message = "the block was left without a value: keep(...) the body's value"
                raise RuntimeError(message)
            _, value, contexts, meta = self._kept
            return self._written(RecordedOutcome("ok", 0, value, None, contexts, meta))  # by place: by name costs more
        if isinstance(error, CassetteError) and not isinstance(error, TOOLS_OWN):
            self._log.poison(error)  # an error of ours is no outcome of the tool's, wherever in the body it arose
            return None
        if not isinstance(error, Exception):
            return None
        try:
            data, self._comes_back = self._contract.encode_error(error)
            if self._log.redaction is not None:
                data = self._log.redaction.error(self._call, self._contract, data)
        except CassetteError as refused:
            raise self._log.poison(_named(refused, self._call.tool)) from error
        return self._written(RecordedOutcome("error", error=data))

    def _written(self, ended: RecordedOutcome) -> int:
        position = self._log.end(self._number, self._call.tool, ended)
        if self._log.redaction is not None:
            self._log.redaction.landed(self._call)
        return position

    def _end_cancelled(self, phase: str | None = None) -> int:
        return self._log.end(self._number, self._call.tool, RecordedOutcome("cancelled", phase=phase))

    def _warn(self, error: BaseException | None) -> None:
        """Last of all: where warnings are errors, what was recorded is whole all the same."""
        if isinstance(error, Exception) and not self._comes_back:
            self._log.undeclared(self._call.tool, error)


class NestedCall:
    """A selected call inside the body of another one: it runs as if nobody were looking, and leaves no frame."""

    runs_body = True

    def __init__(self, found: Callable[[], None]) -> None:
        self._found = found  # tells the recorder that it happened
        self._value: object = None

    def keep(self, value: object) -> None:
        """Take the value as it is."""
        self._value = value

    def outcome(self) -> object:
        """The value as it is."""
        return self._value

    def __enter__(self) -> Self:
        self._found()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """An exception goes on as it is."""

    async def __aenter__(self) -> Self:
        self._found()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """An exception goes on as it is."""


def _named(error: CassetteError, tool: str) -> CassetteError:
    return error.of(tool) if isinstance(error, UnrecordableValue) else error
