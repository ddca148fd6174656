"""The feed of a stream while recording: steps the real source, and writes each item down before the consumer gets it.

Rule: an item is durable before it is seen, and the frame that ends the stream says how it ended. An answer that a
replay could not give (to a value sent in, to an exception thrown in) is refused. Where the session is over or poisoned
no further item is given; to stop reading then is no error, for the verdict says what became of the session.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Protocol

from toolcassette.engine.streams import iterator_of
from toolcassette.errors import CassetteError, RecordedToolError, ToolCancelled, UnrecordableValue
from toolcassette.format import RecordedOutcome, encode_value

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from toolcassette.engine.call import Call, ToolContract
    from toolcassette.engine.redacting import Chunks, RecordedRedaction

__all__ = ["TOOLS_OWN", "RecordingFeed", "StreamLog"]

TOOLS_OWN = (RecordedToolError, ToolCancelled)  # what a replay inside a body raises in the place of its tools


class StreamLog(Protocol):
    """What a recorded stream needs of its call and recorder. All raise what poisons the recorder."""

    def ready(self, tool: str) -> None:
        """Raise if no more of the body may run: the session is over, or poisoned."""
        ...

    def running(self, tool: str) -> AbstractContextManager[None]:
        """Around a step of the body, so that selected calls inside it are known as nested."""
        ...

    def chunk(self, number: int, tool: str, chunk: int, value: bytes) -> int:
        """Write a chunk frame. Returns the position to wait for."""
        ...

    def end(self, number: int, tool: str, ended: RecordedOutcome) -> int:
        """Write the result frame (its time is the recorder's). Returns the position to wait for."""
        ...

    def settle(self, position: int) -> None:
        """Block until a position is durable."""
        ...

    async def asettle(self, position: int) -> None:
        """As ``settle``, for a task."""
        ...

    async def end_cancelled(self, end: Callable[[], int]) -> None:
        """Write how a cancelled call ended, by ``end()``, and wait, shielded. What fails here is kept for the end."""
        ...

    def poison(self, error: CassetteError) -> CassetteError:
        """Refuse every later call; the error to raise."""
        ...

    @property
    def redaction(self) -> RecordedRedaction | None:
        """What the parts of a call lose their secrets by; None where nothing is redacted."""
        ...

    def undeclared(self, tool: str, error: Exception) -> None:
        """Note that a replay will not raise this exception's own class."""
        ...


class RecordingFeed:
    """Steps the real source, and writes each item down before the consumer gets it."""

    def __init__(
        self, log: StreamLog, call: Call, contract: ToolContract, number: int, source: Any, shape: str
    ) -> None:
        self._log = log
        self._call = call
        self._contract = contract
        self._number = number
        self._source: Any = iterator_of(source)
        self._shape = shape
        self._note = ""  # one of END_NOTES
        self._chunks = 0
        redaction = log.redaction
        self._held = None if redaction is None else redaction.chunks(call, contract)  # items that may hold a secret
        self._read = True  # False once nothing more is given: the source is exhausted, or the consumer stopped
        self._exhausted = False
        self._ended = False
        self._comes_back = True  # False where a replay cannot raise the source's exception as it was

    # -- reading ------------------------------------------------------------------------------------------------

    def pull(self) -> object:
        """One step of a source that is read with ``for``."""
        if not self._read:
            raise StopIteration
        try:
            self._log.ready(self._call.tool)
        except CassetteError:
            self._give_up()
            raise
        try:
            with self._running():
                item = next(self._source)
        except StopIteration as stop:
            self._settle(self._exhaust(stop.value))
            raise StopIteration from None
        except BaseException as error:
            self._raised(error)
            raise
        try:
            position, copy = self._keep(item)
        except CassetteError:
            self._give_up()
            raise
        self._settle(position)
        return copy

    async def apull(self) -> object:
        """One step of a source that is read with ``async for``."""
        from toolcassette.engine import aio

        if not self._read:
            raise StopAsyncIteration
        try:
            self._log.ready(self._call.tool)
        except CassetteError:
            await self._agive_up()
            raise
        try:
            with self._running():
                item = await anext(self._source)
        except StopAsyncIteration:
            await self._log.asettle(self._exhaust(None))
            raise
        except BaseException as error:
            await self._araised(error)
            raise
        try:
            position, copy = self._keep(item)
        except CassetteError:
            await self._agive_up()
            raise
        try:
            await self._log.asettle(position)
        except BaseException as error:
            if aio.is_cancellation(error):
                self._note = "unseen"
                await self._log.end_cancelled(lambda: self._end("cancelled"))
            raise
        return copy

    def _running(self) -> AbstractContextManager[None]:
        return self._log.running(self._call.tool)

    def _keep(self, item: object) -> tuple[int, object]:
        try:
            data, copy = self._contract.round_trip_chunk(item)
        except UnrecordableValue as error:
            raise self._refused(error.of(self._call.tool)) from None
        position = 0
        for ready in [data] if self._held is None else self._without_secrets(lambda held: held.add(data)):
            position = self._written(ready)
        self._landed()
        return position, copy

    def _without_secrets(self, step: Callable[[Chunks], list[bytes]]) -> list[bytes]:
        """The items that may be written now. Raises what poisons where a rule cannot do its work."""
        try:
            return [] if self._held is None else step(self._held)
        except CassetteError as error:
            raise self._refused(error) from None

    def _written(self, data: bytes) -> int:
        """Write an item down. Returns the position to wait for."""
        position = self._log.chunk(self._number, self._call.tool, self._chunks, data)
        self._chunks += 1
        return position

    def _landed(self) -> None:
        if self._log.redaction is not None:
            self._log.redaction.landed(self._call)

    # -- ending -------------------------------------------------------------------------------------------------

    def _exhaust(self, returned: object) -> int:
        """The source has no more."""
        if returned is not None:
            why = "is returned by a stream beside its items, and has no place in a recording; yield it"
            raise self._unfit(returned, why)
        self._exhausted, self._read = True, False
        return self._end_of_reading()

    def _end_of_reading(self) -> int:
        return self._end("ok")

    def _end(self, outcome: str, error: bytes | None = None) -> int:
        """Write the frame that ends the stream. Returns the position to wait for."""
        if self._ended:
            return 0
        self._ended, self._read = True, False
        for ready in self._without_secrets(lambda held: held.end()):
            self._written(ready)
        meta = {"stream": self._shape} | ({"end": self._note} if self._note else {})
        ended = RecordedOutcome(outcome, error=error, meta=encode_value(meta), chunks=self._chunks)
        position = self._log.end(self._number, self._call.tool, ended)
        self._landed()
        return position

    def _stop(self) -> int:
        """The consumer wants no more. Where nothing is written any more, there is nothing to tell it either."""
        if self._ended:
            return 0
        try:
            self._log.ready(self._call.tool)
        except CassetteError:
            self._ended, self._read = True, False
            return 0
        return self._end("ok" if self._exhausted else "left_early")

    def _failed(self, error: BaseException) -> int:
        """An exception out of the source: an outcome if it is the tool's own."""
        if isinstance(error, CassetteError) and not isinstance(error, TOOLS_OWN):
            self._refused(error)  # an error of ours is no outcome of the tool's, wherever in the source it arose
            return 0
        if not isinstance(error, Exception):
            self._ended, self._read = True, False
            return 0
        try:
            data, self._comes_back = self._contract.encode_error(error)
            if self._log.redaction is not None:
                data = self._log.redaction.error(self._call, self._contract, data)
        except UnrecordableValue as refused:
            raise self._refused(refused.of(self._call.tool)) from error
        return self._end("error", data)

    def _raised(self, error: BaseException) -> None:
        self._settle(self._failed(error))
        self._warn(error)

    async def _araised(self, error: BaseException) -> None:
        from toolcassette.engine import aio

        if aio.is_cancellation(error):
            await self._log.end_cancelled(lambda: self._end("cancelled"))
            return
        await self._log.asettle(self._failed(error))
        self._warn(error)

    def _warn(self, error: BaseException) -> None:
        """Last of all: where warnings are errors, what was recorded is whole all the same."""
        if isinstance(error, Exception) and not self._comes_back:
            self._log.undeclared(self._call.tool, error)

    def _settle(self, position: int) -> None:
        if position:
            self._log.settle(position)

    def _refused(self, error: CassetteError) -> CassetteError:
        """The stream has no end that could be recorded: the error to raise."""
        self._ended, self._read = True, False
        return self._log.poison(error)

    def _unfit(self, value: object, why: str) -> CassetteError:
        name = type(value).__qualname__
        return self._refused(UnrecordableValue(json_path="$", type_name=name, why=why, tool=self._call.tool))

    # -- the consumer ends it -----------------------------------------------------------------------------------

    def leave(self) -> None:
        """The consumer stops: the source is closed, and may still fail."""
        if self._ended:
            return
        self._read = False
        try:
            self._close_source()
        except BaseException as error:
            self._note = "closed"
            self._raised(error)
            raise
        self._settle(self._end_of_leaving())

    async def aleave(self) -> None:
        """The consumer stops: the source is closed, and may still fail; what interrupts that is no end of the call."""
        from toolcassette.engine import aio

        if self._ended:
            return
        self._read = False
        try:
            await self._aclose_source()
        except BaseException as error:
            if aio.is_cancellation(error):
                await self._log.end_cancelled(lambda: self._end("left_early"))
            else:
                self._note = "closed"
                await self._araised(error)
            raise
        await self._log.asettle(self._end_of_leaving())

    def _give_up(self) -> None:
        """Nothing more can be recorded, and so nothing given: let the source clean up after itself."""
        self._ended, self._read = True, False
        with contextlib.suppress(Exception):  # what keeps the recording from going on is what the consumer hears
            self._close_source()

    async def _agive_up(self) -> None:
        """As ``_give_up``."""
        self._ended, self._read = True, False
        with contextlib.suppress(Exception):
            await self._aclose_source()

    def _close_source(self) -> None:
        close = getattr(self._source, "close", None)
        if close is not None:
            with self._running():
                close()

    async def _aclose_source(self) -> None:
        close = getattr(self._source, "aclose", None)
        if close is not None and not getattr(self._source, "ag_running", False):  # else a loop that ends is closing it
            with self._running():
                await close()

    def _end_of_leaving(self) -> int:
        return self._stop()

    def drop(self) -> None:
        """The handle is gone; the source follows it. A finaliser waits for nothing: the next sync covers the frame."""
        with contextlib.suppress(Exception):  # nobody is there to hear it; the call then has no end
            self._stop()

    def throw(self, error: BaseException) -> None:
        """The consumer throws into the source, which must let it through: an answer could not be replayed."""
        if not self._read:
            raise error
        self._log.ready(self._call.tool)
        try:
            with self._running():
                throw = getattr(self._source, "throw", None)
                if throw is None:
                    raise error
                throw(error)
        except BaseException as raised:
            self._refuse_answer(raised)
            if raised is error:
                self._settle(self._end("left_early"))
            else:
                self._note = "thrown"
                self._raised(raised)
            raise
        raise self._answered()

    async def athrow(self, error: BaseException) -> None:
        """As ``throw``."""
        if not self._read:
            raise error
        self._log.ready(self._call.tool)
        try:
            with self._running():
                throw = getattr(self._source, "athrow", None)
                if throw is None:
                    raise error
                await throw(error)
        except BaseException as raised:
            self._refuse_answer(raised)
            if raised is error:
                await self._log.asettle(self._end("left_early"))
            else:
                self._note = "thrown"
                await self._araised(raised)
            raise
        raise self._answered()

    def _refuse_answer(self, raised: BaseException) -> None:
        if isinstance(raised, (StopIteration, StopAsyncIteration)):
            raise self._answered() from None

    def _answered(self) -> CassetteError:
        """A source that goes on after an exception was thrown into it."""
        return self._unfit(self._source, "answers an exception that is thrown into it, which a replay could not")

    def refuse_send(self) -> BaseException:
        """A value was sent into the source."""
        why = "takes values that are sent into it, which a replay could not; pass them as arguments"
        return self._unfit(self._source, why)
