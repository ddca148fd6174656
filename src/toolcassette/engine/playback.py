"""The matching half of a replay: which record a call takes, when it may begin, when its outcome may go out.

Theory. A call whose record may not be taken yet, because one that precedes it is not consumed, is *held*, not refused:
fast bodies that happened not to overlap when recorded, a shuffling scheduler, or a pool of threads would else fail now
and then. It waits at its start until its turn comes. So does an outcome, until what was recorded while its call was
open has happened again. The session *moves* when a call begins or ends. Where nothing has moved for ``stall_after``
seconds, a held call is a true swap (``order_differs``), and held outcomes belong to a program that no longer overlaps
as it did: they go out, and from then on nothing is held back (or, if completion is ``required``, that is the mismatch
``stalled``). A call is not held where nobody else could bring what it waits for, nor on a thread whose event loop it
would stop.

Rule: the first mismatch poisons, and wakes all who wait. The lock is never held while waiting. A finaliser that drops a
stream may run in the middle of a step of ours: what it wants done waits until the step is whole.
"""

from __future__ import annotations

import bisect
import collections
import secrets
import sys
import threading
import time
from typing import TYPE_CHECKING, Final, TypeVar, TypeVarTuple

from toolcassette.engine.likeness import Likeness
from toolcassette.engine.mismatch import explain
from toolcassette.engine.order import Ambiguous, Order
from toolcassette.engine.turns import ThreadWaiter, Turns
from toolcassette.errors import CassetteMismatch, CassettePoisoned, SessionClosed

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcassette.engine.call import Call
    from toolcassette.engine.turns import Waiter
    from toolcassette.format import Cassette

__all__ = ["COMPLETIONS", "Playback"]

_R = TypeVar("_R")
_W = TypeVar("_W", bound="Waiter")
_Parts = TypeVarTuple("_Parts")

COMPLETIONS: Final = ("recorded", "required", "immediate")

_STALLED_NOTE: Final = (
    "calls no longer overlap as they did when recorded: outcomes were held for stall_after, then handed out at once; "
    "record again, or pass completion='immediate'"
)
_SWAPPED: Final = "when recorded, another call had ended before this one began; make that first, or record again"
_AMBIGUOUS: Final = "make the calls in the order in which they were recorded, or record with order='strict'"
_MISSED: Final = "a call that overlapped this one when recorded was not made; make it, or record again"


class Playback:
    """One replay's records and where it is among them. ``is_open`` tells whether the session still answers."""

    def __init__(
        self,
        cassette: Cassette,
        likeness: Likeness | None = None,
        *,
        policy: str,
        completion: str,
        stall_after: float,
        is_open: Callable[[], bool],
    ) -> None:
        self.cassette = cassette
        self.likeness = likeness or Likeness(cassette)
        self.order = Order(cassette, policy, self.likeness)
        self.first: CassetteMismatch | None = None
        self.notes: list[str] = []
        self._completion = completion
        self._stall_after = stall_after
        self._is_open = is_open
        self._lock = threading.RLock()
        self._busy = False
        self._put_off: collections.deque[Callable[[], object]] = collections.deque()
        self._turns = Turns()
        self._moved = 0.0
        self._key = secrets.token_bytes(32)  # of the fingerprints; never stored

    # -- poison ---------------------------------------------------------------------------------------------------

    def ready(self, tool: str) -> None:
        """Raise if nothing is served any more: ``SessionClosed``, or ``CassettePoisoned``."""
        if not self._is_open():
            raise SessionClosed(tool)
        if self.first is not None:
            raise CassettePoisoned(self.first)

    def poison(self, mismatch: CassetteMismatch) -> CassetteMismatch:
        """Keep the first mismatch; every later call fails. The error to raise."""
        self._soon(self._poison, mismatch)
        return mismatch

    def _poison(self, mismatch: CassetteMismatch) -> CassetteMismatch:
        self.first = self.first or mismatch
        self._turns.wake_all()
        return mismatch

    def closed(self) -> None:
        """The session is over: let those who wait see it."""
        self._soon(self._turns.wake_all)

    def forget(self) -> None:
        """We are a forked child, where the thread that holds the lock may not exist."""
        self._lock = threading.RLock()

    # -- the critical section -------------------------------------------------------------------------------------

    def _step(self, step: Callable[[*_Parts], _R], *parts: *_Parts) -> _R:
        """Do one step whole. Raises ``RuntimeError`` for a finaliser that makes a call within another step."""
        with self._lock:
            if self._busy:
                message = "a tool was called by a finaliser while the replayer was matching a call"
                raise RuntimeError(message)
            return self._whole(step, *parts)

    def _whole(self, step: Callable[[*_Parts], _R], *parts: *_Parts) -> _R:
        """Do one step, and then what finalisers asked for meanwhile. Under the lock."""
        self._busy = True
        try:
            return step(*parts)
        finally:
            while self._busy:
                while self._put_off:
                    self._put_off.popleft()()
                self._busy = False
                self._busy = bool(self._put_off)  # a finaliser came in between

    def _soon(self, step: Callable[[*_Parts], object], *parts: *_Parts) -> None:
        """Do a step now, or when the step is whole in which a finaliser asks for it."""
        with self._lock:
            if self._busy:
                self._put_off.append(lambda: step(*parts))
            else:
                self._whole(step, *parts)

    # -- beginning ------------------------------------------------------------------------------------------------

    def take(self, call: Call) -> int:
        """The number of the record that a call takes. Raises ``CassetteMismatch``; may block until its turn comes."""
        held_since = 0.0
        while True:
            taken = self._step(self._try, call, held_since, ThreadWaiter, _other_threads_may_run)
            if isinstance(taken, int):
                return taken
            held_since = held_since or time.monotonic()
            taken.wait(self._stall_left(held_since))

    async def atake(self, call: Call) -> int:
        """As ``take``, for a task: it waits without stopping the loop, and a cancellation ends the wait."""
        from toolcassette.engine import aio

        held_since = 0.0
        while True:
            taken = self._step(self._try, call, held_since, aio.waiter, aio.others_may_run)
            if isinstance(taken, int):
                return taken
            held_since = held_since or time.monotonic()
            await aio.wait_at_most(taken, self._stall_left(held_since))

    def _try(
        self, call: Call, held_since: float, waiter: Callable[[], _W], others_may_run: Callable[[], bool]
    ) -> int | _W:
        """Take the record; or make the waiter that will be woken.

        Few calls wait, so who could bring what one waits for is asked only then: counting tasks costs their number.
        """
        self.ready(call.tool)
        try:
            number = self.order.candidate(call)
        except Ambiguous as ambiguous:
            raise self._poison(self.mismatch("redaction_ambiguous", ambiguous.number, call, _AMBIGUOUS)) from None
        if number is None:
            raise self._poison(self._explain(call))
        held = self.order.waits_for(number, call.path)
        if held is None:
            self._moved = time.monotonic()
            self.likeness.take(number, call)
            moved = self.order.consume(number, call.path)
            if moved:
                self._turns.marks_moved(moved)
            self._turns.happened(("start", number))
            return number
        if not others_may_run() or (held_since and self._stall_left(held_since) <= 0):
            raise self._poison(self.mismatch("order_differs", number, call, _SWAPPED))
        waits = waiter()
        self._turns.until_mark(*held, waits)
        return waits

    def _stall_left(self, held_since: float | None) -> float:
        """Seconds until a wait that began at ``held_since`` has stalled, if nothing moves meanwhile."""
        if held_since is None:
            return 0.0
        return max(self._moved, held_since) + self._stall_after - time.monotonic()

    def _explain(self, call: Call) -> CassetteMismatch:
        return explain(self.cassette, call, self.order, self.likeness, self._key)

    def mismatch(self, reason: str, number: int, call: Call, advice: str) -> CassetteMismatch:
        """The mismatch of a call at the place of a record."""
        ordinal = self.ordinal(number, call.path)
        return CassetteMismatch(reason, tool=call.tool, path=call.path, ordinal=ordinal, advice=advice)

    def ordinal(self, number: int, path: tuple[str, ...]) -> int:
        """A record's place in start order among the calls of its path."""
        return bisect.bisect_left(self.cassette.paths[path], number)

    # -- ending ---------------------------------------------------------------------------------------------------

    def turn(self, number: int, call: Call) -> None:
        """Block until a record's outcome may go out, and count it as handed out. Raises ``stalled`` if required."""
        if self.order.is_free(number) or _on_loop():
            self.handed_out(number)
            return
        # Where there is no other thread, what is waited for cannot come: that has stalled already.
        held_since = time.monotonic() if threading.active_count() > 1 else None
        try:
            while waiter := self._step(self._let_out, number, call, held_since, ThreadWaiter):
                waiter.wait(self._stall_left(held_since))
        except BaseException:
            self.handed_out(number)
            raise

    async def aturn(self, number: int, call: Call) -> None:
        """As ``turn``, for a task; one that is cancelled while it waits counts as handed out."""
        if self.order.is_free(number):
            self.handed_out(number)
            return
        from toolcassette.engine import aio

        held_since = time.monotonic()
        try:
            while waiter := self._step(self._let_out, number, call, held_since, aio.waiter):
                await aio.wait_at_most(waiter, self._stall_left(held_since))
        except BaseException:
            self.handed_out(number)
            raise

    def _let_out(self, number: int, call: Call, held_since: float | None, waiter: Callable[[], _W]) -> _W | None:
        """Hand an outcome out; or make the waiter that will be woken when that may be."""
        event = None
        if self._completion != "immediate" and self.first is None and self._is_open():
            event = self.order.held_by(number, call.path)
        if event is not None and self._stall_left(held_since) > 0:
            waits = waiter()
            self._turns.until_event(event, waits)
            return waits
        if event is not None:
            self._stalled(number, call)
        self._hand_out(number)
        return None

    def _stalled(self, number: int, call: Call) -> None:
        if self._completion == "required":
            raise self._poison(self.mismatch("stalled", number, call, _MISSED))
        self._completion = "immediate"
        self.notes.append(_STALLED_NOTE)
        self._turns.wake_all()

    def handed_out(self, number: int) -> None:
        """An outcome went out without waiting for its turn: a stream that was left, a cancelled waiter."""
        self._soon(self._hand_out, number)

    def item_out(self, number: int) -> None:
        """The next item of a stream reached the program."""
        self._soon(self._item_out, number)

    def _item_out(self, number: int) -> None:
        self._moved = time.monotonic()
        self.order.hand_out_item(number)
        self._turns.happened(("chunk", number))

    def _hand_out(self, number: int) -> None:
        self._moved = time.monotonic()
        self.order.hand_out(number)
        self._turns.happened(("end", number))


def _other_threads_may_run() -> bool:
    """True where another thread could bring what this one waits for, and no event loop would stop."""
    return not _on_loop() and threading.active_count() > 1


def _on_loop() -> bool:
    """True if this thread runs an event loop that a wait would stop. Loads none."""
    asyncio, trio = sys.modules.get("asyncio"), sys.modules.get("trio")
    if asyncio is not None and asyncio._get_running_loop() is not None:  # noqa: SLF001 - documented; the public form raises
        return True
    if trio is None:
        return False
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True
