"""Who waits for what in a replay: calls for the mark that lets them begin, outcomes for the event that lets them out.

Rule: under the replayer's lock, and indexed by what is waited for, so that an event wakes those whom it concerns and
nobody else. To be woken is a hint: the waiter asks again.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcassette.engine.order import Event, Path

__all__ = ["ThreadWaiter", "Turns", "Waiter"]


class Waiter(Protocol):
    """Something that waits, on a thread or in a task."""

    def wake(self) -> None:
        """Let it ask again; from any thread, any number of times."""
        ...


class ThreadWaiter:
    """A thread that waits."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    def wake(self) -> None:
        """Let the thread ask again."""
        self._event.set()

    def wait(self, seconds: float) -> None:
        """Block until woken, at most ``seconds``."""
        self._event.wait(seconds)


class Turns:
    """The waiters of one replay."""

    def __init__(self) -> None:
        self._for_marks: dict[Path, list[tuple[int, int, Waiter]]] = {}  # heaps by mark
        self._for_events: dict[Event, list[Waiter]] = {}
        self._tickets = itertools.count()  # those who wait for one mark are woken as they came

    def until_mark(self, path: Path, mark: int, waiter: Waiter) -> None:
        """Wake ``waiter`` when the mark of ``path`` reaches ``mark``."""
        heapq.heappush(self._for_marks.setdefault(path, []), (mark, next(self._tickets), waiter))

    def until_event(self, event: Event, waiter: Waiter) -> None:
        """Wake ``waiter`` when ``event`` has happened."""
        self._for_events.setdefault(event, []).append(waiter)

    def marks_moved(self, moved: Iterable[tuple[Path, int]]) -> None:
        """The marks of some paths moved."""
        for path, mark in moved:
            heap = self._for_marks.get(path, [])
            while heap and heap[0][0] <= mark:
                heapq.heappop(heap)[2].wake()

    def happened(self, event: Event) -> None:
        """An event happened."""
        if self._for_events:  # few calls are ever held
            for waiter in self._for_events.pop(event, ()):
                waiter.wake()

    def wake_all(self) -> None:
        """Everything is different: the session is poisoned, or over, or holds nothing back any more."""
        for heap in self._for_marks.values():
            for _, _, waiter in heap:
                waiter.wake()
        for waiters in self._for_events.values():
            for waiter in waiters:
                waiter.wake()
        self._for_marks.clear()
        self._for_events.clear()
