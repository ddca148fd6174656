"""The asynchronous edges: everything that is different on an event loop.

Rule: the loop never waits for the disk, and what must not be interrupted is shielded twice, against the cancel scopes
of anyio and trio and against a native ``Task.cancel()``, which anyio's shield does not stop. A cancellation that came
meanwhile is raised afterwards, never lost.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcassette.engine.journal import Journal

__all__ = [
    "AsyncWaiter",
    "checkpoint",
    "checkpoint_if_cancelled",
    "is_cancellation",
    "let_finalisers_run",
    "off_loop",
    "others_may_run",
    "settle",
    "shuffles",
    "wait_at_most",
    "wait_for_cancellation",
    "waiter",
]

_T = TypeVar("_T")
_CYCLES: Final = 20  # of the loop: one or two until the finaliser runs, and some for what it awaits


class AsyncWaiter(Protocol):
    """A task that waits."""

    def wake(self) -> None:
        """Let it go on; from any thread, any number of times."""
        ...

    async def wait(self) -> None:
        """Wait until woken; a cancellation ends it."""
        ...

    async def outlast(self) -> BaseException | None:
        """Wait until woken, through native cancellations, the last of which is returned."""
        ...


async def checkpoint() -> None:
    """Let a pending cancellation win."""
    await anyio.lowlevel.checkpoint()


def is_cancellation(error: BaseException) -> bool:
    """True if ``error`` is how the running event loop cancels a task."""
    try:
        return isinstance(error, anyio.get_cancelled_exc_class())
    except RuntimeError:  # a task that outlived its loop is thrown away; nobody cancels it
        return False


async def settle(journal: Journal, position: int) -> None:
    """Wait, shielded, until ``position`` is durable. Raises ``StoreError``, or afterwards a native cancellation.

    Also where it is durable already it takes its turn: calls go on in the order of their frames, as in a replay.
    """
    if not position:
        return
    durable = _AsyncioWaiter() if _on_asyncio() else _TrioInLine()
    cancelled: BaseException | None = None
    with anyio.CancelScope(shield=True):
        journal.request(position, durable.wake)
        cancelled = await durable.outlast()
    if not journal.is_durable(position):
        journal.settle(position)  # the worker failed; the error sticks, so this raises without touching the disk
    if cancelled is not None:
        raise cancelled


async def checkpoint_if_cancelled() -> None:
    """Let a cancellation win that came while we were shielded."""
    await anyio.lowlevel.checkpoint_if_cancelled()


async def let_finalisers_run(pending: Callable[[], bool]) -> BaseException | None:
    """Let the loop go round a few times, shielded, while ``pending``; a native cancellation meanwhile is returned.

    The loop closes an asynchronous generator that was dropped in a task of its own, a cycle or two later.
    """
    cancelled: BaseException | None = None
    for _ in range(_CYCLES):
        if not pending():
            break
        with anyio.CancelScope(shield=True):
            try:
                await anyio.lowlevel.checkpoint()
            except asyncio.CancelledError as error:
                cancelled = error
    return cancelled


async def off_loop(function: Callable[[], _T]) -> _T:
    """Run a blocking function in a worker thread to its end, shielded."""
    if not _on_asyncio():
        with anyio.CancelScope(shield=True):
            return await anyio.to_thread.run_sync(function)
    cancelled: BaseException | None = None
    task = asyncio.ensure_future(anyio.to_thread.run_sync(function))
    with anyio.CancelScope(shield=True):
        cancelled = await _outlast(task)
    if cancelled is not None:
        task.exception()  # seen: the cancellation is what goes on
        raise cancelled
    return task.result()


def waiter() -> AsyncWaiter:
    """Something for a task to wait on; woken from any thread."""
    return _AsyncioWaiter() if _on_asyncio() else _TrioWaiter()


async def wait_at_most(waiter: AsyncWaiter, seconds: float) -> None:
    """Wait until woken, at most ``seconds``; a cancellation ends the wait."""
    with anyio.move_on_after(max(seconds, 0)):
        await waiter.wait()


def others_may_run() -> bool:
    """True unless this is surely the only task of the only thread."""
    if threading.active_count() > 1:
        return True
    return len(asyncio.all_tasks()) > 1 if _on_asyncio() else _others_on_trio()


def _others_on_trio() -> bool:
    """True unless this is the main task, and has no other below it."""
    import trio

    task = trio.lowlevel.current_task()
    around = task.parent_nursery
    main = around is not None and around.parent_task.parent_nursery is None  # what lies around it is trio's own
    return not main or any(nursery.child_tasks for nursery in task.child_nurseries)


def shuffles() -> bool:
    """True on a loop that starts tasks in random order (trio)."""
    return not _on_asyncio()


async def wait_for_cancellation(seconds: float) -> None:
    """Wait for a cancellation to end this task, at most ``seconds``."""
    await anyio.sleep(seconds)


def _on_asyncio() -> bool:
    return asyncio._get_running_loop() is not None  # noqa: SLF001 - documented; the public form raises, at ten times the cost


async def _outlast(future: asyncio.Future[Any]) -> BaseException | None:
    """Wait for a future through any number of cancellations; the last of them is returned."""
    cancelled: BaseException | None = None
    while not future.done():
        try:
            await asyncio.wait({future})  # unlike awaiting it, this does not pass a cancellation on
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


class _AsyncioWaiter:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future = self._loop.create_future()

    def wake(self) -> None:
        """Those who are woken in one burst share one call into the loop, which costs a system call."""
        woken = _woken.setdefault(self._loop, collections.deque())
        woken.append(self)
        # Whoever stands first calls. That nobody does any more means that the loop has let this one go already.
        with contextlib.suppress(IndexError, RuntimeError):  # or it was closed under us, and nobody waits
            if woken[0] is self:
                self._loop.call_soon_threadsafe(self._let_go, woken)

    @staticmethod
    def _let_go(woken: collections.deque[_AsyncioWaiter]) -> None:
        """On the loop: let all that were woken go on, those too that are woken meanwhile."""
        while woken:
            future = woken.popleft()._future  # noqa: SLF001 - its own class
            if not future.done():
                future.set_result(None)

    async def wait(self) -> None:
        await self._future

    async def outlast(self) -> BaseException | None:
        return await _outlast(self._future)


# Waiters that were woken, by the loop that is to let them go on.
_woken: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, collections.deque[_AsyncioWaiter]] = (
    weakref.WeakKeyDictionary()
)


class _TrioWaiter:
    def __init__(self) -> None:
        import trio

        self._event = trio.Event()
        self._token = trio.lowlevel.current_trio_token()

    def wake(self) -> None:
        import trio

        with contextlib.suppress(trio.RunFinishedError):  # the run ended under us; nobody waits any more
            self._token.run_sync_soon(self._event.set)

    async def wait(self) -> None:
        await self._event.wait()

    async def outlast(self) -> BaseException | None:
        await self._event.wait()
        return None


class _TrioInLine(_TrioWaiter):
    """A task that goes on after those that came before it. Trio would let those that are woken at once go on in any
    order.
    """

    def __init__(self) -> None:
        super().__init__()
        self._line = _lines.setdefault(self._token, collections.deque())
        self._line.append(self)
        self._is_ready = False

    def wake(self) -> None:
        import trio

        with contextlib.suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._ready)

    def _ready(self) -> None:
        self._is_ready = True
        self._let_first_go()

    def _let_first_go(self) -> None:
        if self._line and self._line[0]._is_ready:  # noqa: SLF001 - its own class
            self._line[0]._event.set()  # noqa: SLF001

    async def outlast(self) -> BaseException | None:
        try:
            return await super().outlast()
        finally:
            self._line.remove(self)
            self._let_first_go()


# The tasks that wait in line, by the run they belong to.
_lines: weakref.WeakKeyDictionary[object, collections.deque[_TrioInLine]] = weakref.WeakKeyDictionary()
