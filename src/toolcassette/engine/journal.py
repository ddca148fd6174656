"""Lines on their way to the disk: when may the program go on?

Theory. Appending is cheap and happens inside the recorder's critical section, in frame order. Making durable is dear,
and one sync covers everything that was appended before it. So a caller takes a *position* when it appends and later
waits until that position is durable. Callers on threads are leader and follower: whoever gets the lock syncs for all
who appended by then, the others find their position covered. Callers on an event loop hand their position to one worker
thread, which takes all that wait, syncs once and wakes them.

Rule: a position is covered only by a sync that began after its append. The first error sticks, and is never retried.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import TYPE_CHECKING, Final, TypeAlias

from toolcassette.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcassette.stores import Spool

__all__ = ["SYNC_POLICIES", "Journal"]

# sync policy -> the kinds of frame whose caller waits until they are durable
SYNC_POLICIES: Final = {
    "frame": frozenset({"call/start", "call/chunk", "call/result"}),
    "call": frozenset({"call/chunk", "call/result"}),
    "close": frozenset[str](),
    "none": frozenset[str](),
}

_Request: TypeAlias = "tuple[int, Callable[[], None]]"

# Those who were let go together soon come back together. Whoever syncs next waits for as many lines as the last sync
# covered, for as long as more keep coming: else each sync would cover the first to come back, and the rest would wait
# for the one after it. A caller on its own never waits.
_GAP_SHARE: Final = 0.1  # of the time that the last sync took: so long without a new line, and nobody is coming
_GAP_SECONDS_MAX: Final = 0.002


def _take(requests: queue.SimpleQueue[_Request | None], waiting: list[_Request], *, block: bool) -> bool:
    """Move what was asked to ``waiting``. Returns True if it was the last that will be."""
    with contextlib.suppress(queue.Empty):
        while (request := requests.get(block=block)) is not None:
            waiting.append(request)
            block = False
        return True
    return False


class Journal:
    """The lines of one recording. ``append`` under the recorder's lock; the rest from any thread."""

    def __init__(self, spool: Spool, sync: str) -> None:
        self._spool = spool
        self._waits_for = SYNC_POLICIES[sync]
        self._promises = sync != "none"
        self._appended = 0
        self._awaited = 0  # the last position that somebody may wait for
        self._durable = 0
        # Re-entrant: garbage collection may run a finaliser that ends a stream, and settles, in the middle of a step.
        self._lock = threading.RLock()  # not held while the disk works
        self._turn = threading.Condition(self._lock)
        self._waiting = 0  # threads that wait for their turn
        self._leader = 0  # the thread that syncs, 0 for none
        self._covered_last = 1  # lines that the last sync covered
        self._took_last = 0.0  # seconds
        self._worker_lock = threading.Lock()
        self._stopped = False
        self._requests: queue.SimpleQueue[_Request | None] | None = None

    def append(self, line: bytes, kind: str) -> int:
        """Hand a line to the store. Returns the position to wait for, 0 where the policy waits for nothing.

        Raises ``StoreError``; the line is then not part of the recording.
        """
        self._spool.append(line)
        self._appended += 1
        if kind not in self._waits_for:
            return 0
        self._awaited = self._appended
        return self._awaited

    def is_durable(self, position: int) -> bool:
        """True if nothing is left to wait for."""
        return position <= self._durable

    def settle(self, position: int) -> None:
        """Block until ``position`` is durable. Raises ``StoreError``."""
        if position <= self._durable or not self._lead(position):
            return
        covered = self._durable
        try:
            if self._covered_last > 1:
                self._gather()
            appended, began = self._appended, time.monotonic()
            self._spool.sync()
            covered, self._took_last = appended, time.monotonic() - began
        finally:
            with self._lock:
                self._covered_last = max(covered - self._durable, 1)
                self._durable = covered
                self._leader = 0
                if self._waiting:
                    self._turn.notify_all()

    def _lead(self, position: int) -> bool:
        """Wait until ``position`` is durable (False), or it is this thread's turn to sync (True)."""
        me = threading.get_ident()
        with self._lock:
            while position > self._durable:
                if self._leader == me:
                    return False  # such a finaliser, in the middle of our own sync: a later one covers it
                if not self._leader:
                    self._leader = me
                    return True
                self._waiting += 1
                try:
                    self._turn.wait()
                finally:
                    self._waiting -= 1
        return False

    def _gather(self) -> None:
        """Before a sync: let those come back who were let go together, as long as they keep coming."""
        gap = min(self._took_last * _GAP_SHARE, _GAP_SECONDS_MAX)
        last_came, end = time.monotonic(), time.monotonic() + self._took_last
        seen = self._appended
        while self._appended - self._durable < self._covered_last:
            time.sleep(gap / 8)
            now = time.monotonic()
            if self._appended != seen:
                seen, last_came = self._appended, now
            elif now - last_came >= gap or now >= end:
                return

    def request(self, position: int, wake: Callable[[], None]) -> None:
        """Have ``wake`` called, from the worker thread, once ``position`` is durable or never will be."""
        with self._worker_lock:
            if self._stopped:
                wake()
                return
            if self._requests is None:
                self._requests = queue.SimpleQueue()
                worker = threading.Thread(
                    target=self._work, args=(self._requests,), name="toolcassette-sync", daemon=True
                )
                worker.start()
            self._requests.put((position, wake))

    def _work(self, requests: queue.SimpleQueue[_Request | None]) -> None:
        waiting: list[_Request] = []
        ends = False
        while waiting or not ends:
            ends |= _take(requests, waiting, block=not waiting)
            failed = False
            try:
                self.settle(max((position for position, _ in waiting), default=0))
            except StoreError:
                failed = True  # sticks in the spool; each waiter meets it when it asks again
            ends |= _take(requests, waiting, block=False)
            for position, wake in waiting:
                if failed or position <= self._durable:
                    wake()
            waiting = [] if failed else [request for request in waiting if request[0] > self._durable]

    def finish(self, *, kept: bool = False) -> None:
        """Before the spool ends, after the last append: whoever still waits is let go. Raises ``StoreError``.

        ``kept``: it will not be published, which would sync; so what was recorded is made durable here, but for the
        policy that promises nothing.
        """
        self.settle(self._appended if kept and self._promises else self._awaited)

    def stop(self) -> None:
        """Let the worker thread end."""
        with self._worker_lock:
            self._stopped = True
            if self._requests is not None:
                self._requests.put(None)
