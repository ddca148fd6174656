"""The feed of a stream while replaying: hands out the recorded items, and demands the recorded end.

Theory. A stream that is read at once ends at its last item: exhausted, failed or cancelled there, or left by its
consumer. One that a context manager gives ends when that is left, unless reading it failed. The end waits for its turn
at the place where it was recorded, and nowhere else: what the program did between the last item and leaving the context
manager must happen first.

Rule: no source, ever. A consumer that ends the stream otherwise than the recorded one did has parted from the
recording; one that has not ended it when the session ends is taken to leave it there.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, Protocol

from toolcassette.engine.streams import CONTEXTS
from toolcassette.errors import CassetteError, ToolCancelled

if TYPE_CHECKING:
    from types import TracebackType

    from toolcassette.engine.call import Call, ToolContract
    from toolcassette.format import RecordedOutcome

__all__ = ["ReplayedContext", "ReplayedFeed", "StreamDeck"]

_STOPPED: Final = ("thrown", "closed", "exit_early")  # notes of a consumer that asked for no further item


class StreamDeck(Protocol):
    """What a replayed stream needs of its replayer."""

    def ready(self, tool: str) -> None:
        """Raise if nothing is served any more: the session is over, or poisoned."""
        ...

    def item(self, number: int, chunk: int, call: Call, contract: ToolContract) -> object:
        """One recorded item, decoded. Raises ``ContractMismatch``, which poisons."""
        ...

    def hand_out(self, number: int, ended: RecordedOutcome, call: Call, contract: ToolContract) -> object:
        """The recorded value; raises the recorded error, or ``ContractMismatch``, which poisons."""
        ...

    def patience(self, number: int, ended: RecordedOutcome) -> float:
        """Seconds to wait for the program to cancel a call that was cancelled when recorded."""
        ...

    def turn(self, number: int, call: Call) -> None:
        """Block until the outcome may go out."""
        ...

    async def aturn(self, number: int, call: Call) -> None:
        """As ``turn``, for a task."""
        ...

    def handed_out(self, number: int) -> None:
        """The outcome goes out without waiting for its turn."""
        ...

    def stream_differs(self, number: int, call: Call, read: int, why: str) -> CassetteError:
        """Poison: the consumer does not end the stream as the recorded one did. The error to raise."""
        ...


class ReplayedFeed:
    """Hands out the recorded items, and demands that the consumer end the stream as it did then.

    ``note`` is one of ``END_NOTES``, or empty.
    """

    def __init__(
        self,
        deck: StreamDeck,
        call: Call,
        contract: ToolContract,
        number: int,
        shape: str,
        end: RecordedOutcome,
        note: str,
    ) -> None:
        self._deck = deck
        self._call = call
        self._contract = contract
        self._number = number
        self._shape = shape
        self._end = end
        self._note = note
        self._outcome = end.outcome
        self._chunks = (end.chunks or 0) - (note == "unseen")
        self._at = 0
        self._read = True  # False once nothing more is given
        self._ended = False

    # -- reading ------------------------------------------------------------------------------------------------

    def pull(self) -> object:
        """The next recorded item, or how the stream ended."""
        if not self._read:
            raise StopIteration
        self._deck.ready(self._call.tool)
        if self._at < self._chunks:
            return self._next()
        if self._ends_here():
            self._finish()
        raise StopIteration

    async def apull(self) -> object:
        """The next recorded item, or how the stream ended."""
        from toolcassette.engine import aio

        if not self._read:
            raise StopAsyncIteration
        await aio.checkpoint()
        self._deck.ready(self._call.tool)
        if self._at < self._chunks:
            return self._next()
        if self._ends_here():
            await self._afinish()
        raise StopAsyncIteration

    def _next(self) -> object:
        item = self._deck.item(self._number, self._at, self._call, self._contract)
        self._at += 1
        return item

    # -- the end ------------------------------------------------------------------------------------------------

    def _ends_here(self) -> bool:
        """The consumer reads past the last item. Raises if the recorded one did not; False if the end comes later."""
        self._read = False
        if self._outcome == "left_early" or self._note in _STOPPED:
            raise self._differs(f"the recorded consumer stopped after {self._chunks} items")
        return True

    def _finish(self) -> None:
        """The end is reached. Waits for its turn; raises what was recorded there."""
        self._ended, self._read = True, False
        self._deck.turn(self._number, self._call)
        self._raise_end()

    async def _afinish(self) -> None:
        """As ``_finish``; a cancellation that was recorded there waits for the program's own."""
        from toolcassette.engine import aio

        self._ended, self._read = True, False
        if self._outcome == "cancelled":
            try:
                await aio.wait_for_cancellation(self._deck.patience(self._number, self._end))
            finally:
                self._deck.handed_out(self._number)
        else:
            await self._deck.aturn(self._number, self._call)
        self._raise_end()

    def _raise_end(self) -> None:
        if self._outcome == "error":
            self._deck.hand_out(self._number, self._end, self._call, self._contract)
        elif self._outcome == "cancelled":
            raise ToolCancelled(self._call.tool)

    def _differs(self, why: str) -> CassetteError:
        self._ended, self._read = True, False
        return self._deck.stream_differs(self._number, self._call, self._at, why)

    # -- the consumer ends it -----------------------------------------------------------------------------------

    def leave(self) -> None:
        """The consumer stops; had it stopped here when recorded? Raises what closing the source raised then."""
        if self._ended:
            return
        if self._fails_when("closed"):
            self._finish()
        self._judge()

    async def aleave(self) -> None:
        """As ``leave``."""
        if self._ended:
            return
        if self._fails_when("closed"):
            await self._afinish()
        self._judge()

    def drop(self) -> None:
        """As ``leave``, from a finaliser, or where the session ends before the stream."""
        with contextlib.suppress(Exception):  # nobody is there to hear it; the session's end says it
            if not self._ended:
                self._judge()

    def _judge(self) -> None:
        """The consumer asks for no more: nothing is raised, as nothing would be live; the session's end says it."""
        self._ended, self._read = True, False
        self._deck.handed_out(self._number)
        if self._at < self._chunks or not self._may_stop():
            self._differs(f"the consumer stopped after {self._at} items, the recorded one did not")

    def _may_stop(self) -> bool:
        """True if one that has got all items and asks for no more does what the recorded consumer did."""
        return self._outcome == "left_early" or (self._outcome == "cancelled" and self._note in ("", "unseen"))

    def _fails_when(self, note: str) -> bool:
        """True where the recorded source failed in answer to what the consumer does now."""
        return self._note == note and self._at == self._chunks

    def throw(self, error: BaseException) -> None:
        """The consumer throws into the stream; had it ended that way when recorded?"""
        if not self._read:
            raise error
        if self._fails_when("thrown"):
            self._finish()
        self._let_through()
        raise error

    async def athrow(self, error: BaseException) -> None:
        """As ``throw``."""
        if not self._read:
            raise error
        if self._fails_when("thrown"):
            await self._afinish()
        self._let_through()
        raise error

    def _let_through(self) -> None:
        self._judge()

    def refuse_send(self) -> BaseException:
        """A value was sent into the stream."""
        return self._differs("a value was sent into it, and no recording holds an answer to that")


class ReplayedContext(ReplayedFeed):
    """A stream that a context manager gave; there is no real one."""

    _exhausted = False  # the consumer has read to the clean end

    def _ends_here(self) -> bool:
        super()._ends_here()
        self._exhausted = self._outcome == "ok" or self._note == "exit"
        return not self._exhausted

    def enter(self) -> str:
        """Returns how the stream is read; raises an error on the way in, which was recorded as the stream's own."""
        if self._may_enter():
            return self._shape.rpartition("/")[2]
        self._finish()
        raise self._never_entered()

    async def aenter(self) -> str:
        """As ``enter``."""
        from toolcassette.engine import aio

        await aio.checkpoint()
        if self._may_enter():
            return self._shape.rpartition("/")[2]
        await self._afinish()
        raise self._never_entered()

    def _may_enter(self) -> bool:
        self._deck.ready(self._call.tool)
        if self._shape in CONTEXTS and self._outcome == "left_early":
            raise self._never_entered()
        return self._shape not in CONTEXTS

    def _never_entered(self) -> CassetteError:
        return self._differs("it was not entered when recorded")

    def leave(self) -> None:
        """The consumer stops; what it makes of the context manager then is the end."""
        if self._fails_when("closed") and not self._ended:
            self._finish()
        self._read = False

    async def aleave(self) -> None:
        """As ``leave``."""
        if self._fails_when("closed") and not self._ended:
            await self._afinish()
        self._read = False

    def _let_through(self) -> None:
        self._read = False

    def exit(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leave; raises an error on the way out, which was recorded as the stream's own."""
        if self._ended:
            return
        if self._as_recorded():
            self._finish()
        else:
            self._judge()

    async def aexit(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As ``exit``. A recorded cancellation does not wait for another one than the program's that is under way."""
        from toolcassette.engine import aio

        if self._ended:
            return
        if not self._as_recorded():
            self._judge()
        elif self._outcome == "cancelled" and error is not None and aio.is_cancellation(error):
            self._ended, self._read = True, False
            self._deck.handed_out(self._number)
        else:
            await self._afinish()

    def _as_recorded(self) -> bool:
        """True where the context manager is left at the place where it was left when recorded, or failed."""
        if self._outcome == "ok" or self._note == "exit":
            return self._exhausted
        return self._note == "exit_early" and self._at == self._chunks

    def drop(self) -> None:
        """As for any stream; one that was read to its end needs no more."""
        if self._exhausted and self._outcome == "ok" and not self._ended:
            self._ended = True
            self._deck.handed_out(self._number)
        super().drop()
