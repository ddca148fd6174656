"""One call while replaying: it takes its record when entered, and hands out what was recorded.

Rule: no body runs here, ever. A record is consumed at the match, and nothing later gives it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from toolcassette.engine.stream_replaying import ReplayedContext, ReplayedFeed, StreamDeck
from toolcassette.engine.streams import handle, handle_context
from toolcassette.errors import ToolCancelled

if TYPE_CHECKING:
    from types import TracebackType

    from toolcassette.engine.call import Call, ToolContract
    from toolcassette.format import RecordedOutcome

__all__ = ["Deck", "ReplayedCall"]


class Deck(StreamDeck, Protocol):
    """What a call needs of its replayer."""

    def take(self, call: Call) -> int:
        """Match and consume. Returns the number of the record. Raises ``CassetteMismatch`` or ``CassettePoisoned``."""
        ...

    async def atake(self, call: Call) -> int:
        """As ``take``, for a task."""
        ...

    def ended(self, number: int, call: Call) -> RecordedOutcome:
        """How a recorded call ended. Raises a mismatch where its frame is not canonical."""
        ...

    def stream_end(self, number: int, ended: RecordedOutcome, call: Call, contract: ToolContract) -> tuple[str, str]:
        """The shape of a recorded stream, and what its end notes. Raises ``ContractMismatch`` where it does not fit."""
        ...

    def going(self, number: int, feed: ReplayedFeed) -> None:
        """A stream begins; it must have ended when the session ends."""
        ...


class ReplayedCall:
    """A selected call that is answered from the cassette."""

    runs_body = False

    def __init__(self, deck: Deck, call: Call, contract: ToolContract) -> None:
        self._deck = deck
        self._call = call
        self._contract = contract
        self._number = -1
        self._ended: RecordedOutcome | None = None

    def keep(self, value: object) -> None:
        """Misuse: a body was run. Raises ``RuntimeError``."""
        message = "a replayed call keeps no value: ask runs_body first"
        raise RuntimeError(message)

    def outcome(self) -> object:
        """A fresh copy of the recorded value; raises what was recorded to be raised."""
        ended = self._ended
        if ended is None:
            message = "the call was not entered"
            raise RuntimeError(message)
        if ended.chunks is not None:
            return self._stream(ended)
        if ended.outcome == "cancelled":
            raise ToolCancelled(self._call.tool)
        return self._deck.hand_out(self._number, ended, self._call, self._contract)

    def _stream(self, ended: RecordedOutcome) -> object:
        """A handle of the recorded shape."""
        shape, note = self._deck.stream_end(self._number, ended, self._call, self._contract)
        parts = (self._deck, self._call, self._contract, self._number, shape, ended, note)
        if "context" in shape:
            entered = ReplayedContext(*parts)
            self._deck.going(self._number, entered)
            return handle_context(shape, entered)
        feed = ReplayedFeed(*parts)
        self._deck.going(self._number, feed)
        return handle(shape, feed)

    def __enter__(self) -> Self:
        self._number = self._deck.take(self._call)
        self._ended = self._deck.ended(self._number, self._call)
        return self

    async def __aenter__(self) -> Self:
        from toolcassette.engine import aio

        await aio.checkpoint()
        self._number = await self._deck.atake(self._call)
        self._ended = ended = self._deck.ended(self._number, self._call)
        if ended.outcome == "cancelled" and ended.chunks is None:
            # A recorded cancellation is never invented: the program's own ends this wait, as it ended the call live.
            try:
                await aio.wait_for_cancellation(self._deck.patience(self._number, ended))
            finally:
                self._deck.handed_out(self._number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the outcome's turn; a stream's comes at its end."""
        if self._ended is not None and self._ended.chunks is None:
            self._deck.turn(self._number, self._call)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the outcome's turn; a stream's comes at its end."""
        if self._ended is not None and self._ended.chunks is None:
            await self._deck.aturn(self._number, self._call)
