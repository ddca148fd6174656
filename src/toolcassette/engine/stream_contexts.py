"""The feed of a stream that a context manager gives, while recording: enters, reads and leaves the real one.

Rule: such a stream ends when its context manager is left, unless its source failed before. What a replay could not do
(hold back an exception, or turn the source's into another one) is refused.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from toolcassette.engine.stream_recording import RecordingFeed, StreamLog
from toolcassette.engine.streams import iterator_of, shape_of
from toolcassette.errors import UnrecordableValue

if TYPE_CHECKING:
    from types import TracebackType

    from toolcassette.engine.call import Call, ToolContract

__all__ = ["RecordingContext"]


class RecordingContext(RecordingFeed):
    """Enters the real context manager, steps the source that it gives, and leaves it."""

    def __init__(
        self, log: StreamLog, call: Call, contract: ToolContract, number: int, manager: Any, shape: str
    ) -> None:
        super().__init__(log, call, contract, number, None, shape)
        self._manager: Any = manager

    def enter(self) -> str:
        """Enter the real context manager. Returns how the stream is read."""
        self._log.ready(self._call.tool)
        try:
            with self._running():
                given: Any = self._manager.__enter__()
        except BaseException as error:
            self._raised(error)
            raise
        try:
            return self._given(given)
        except UnrecordableValue as refused:
            with contextlib.suppress(Exception), self._running():
                self._manager.__exit__(type(refused), refused, refused.__traceback__)
            raise

    async def aenter(self) -> str:
        """As ``enter``."""
        self._log.ready(self._call.tool)
        try:
            with self._running():
                given: Any = await self._manager.__aenter__()
        except BaseException as error:
            await self._araised(error)
            raise
        try:
            return self._given(given)
        except UnrecordableValue as refused:
            with contextlib.suppress(Exception), self._running():
                await self._manager.__aexit__(type(refused), refused, refused.__traceback__)
            raise

    def _given(self, given: Any) -> str:
        read = shape_of(given)
        if read not in ("iterator", "async_iterator"):
            raise self._unfit(given, "is given by a context manager and is no stream; return a value, or an iterator")
        self._source = iterator_of(given)
        self._shape = f"{self._shape}/{read}"
        return read

    def _end_of_reading(self) -> int:
        return 0  # it comes when the context manager is left

    def _end_of_leaving(self) -> int:
        return 0

    def exit(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leave the real context manager; the stream ends here."""
        try:
            with self._running():
                suppressed = self._manager.__exit__(kind, error, trace)
        except BaseException as raised:
            if raised is error:
                self._settle(self._stop())
            else:
                self._note_exit(raised)
                self._raised(raised)
            raise
        self._settle(self._left(suppressed=bool(suppressed)))

    async def aexit(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As ``exit``."""
        try:
            with self._running():
                suppressed = await self._manager.__aexit__(kind, error, trace)
        except BaseException as raised:
            if raised is error:
                await self._log.asettle(self._stop())
            else:
                self._note_exit(raised)
                await self._araised(raised)
            raise
        await self._log.asettle(self._left(suppressed=bool(suppressed)))

    def _note_exit(self, raised: BaseException) -> None:
        """Leaving fails: say where the consumer was. Raises where the stream had ended in another failure already."""
        if self._ended and isinstance(raised, Exception):
            raise self._answered() from raised
        self._note = "exit" if self._exhausted else "exit_early"

    def _left(self, *, suppressed: bool) -> int:
        if suppressed:
            raise self._answered()
        return self._stop()
