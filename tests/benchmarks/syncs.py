"""What durability costs where the disk is slow: with a sync of a known length put in the place of the disk's own.

Rule: only the sync of data is replaced, by a sleep; lines are really written, and the cassette is really published.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import toolcassette as tc
from tests.benchmarks.measure import Benchmark
from tests.benchmarks.work import lines_of, write_synced
from toolcassette.stores import FileOps, FileStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Recording = Callable[[], tc.Recorder]

__all__ = ["Group", "group_commits", "waiting"]

_SYNC_S = 0.010  # of the counts
_ASYNC_SYNC_S = 0.002  # of the one caller
_CALLERS = (10, 100)


class SlowOps(FileOps):
    """The operating system, with a sync of data that takes ``seconds`` and is counted."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.syncs = 0

    def fdatasync(self, fd: int) -> None:
        """Sleep."""
        self.syncs += 1
        time.sleep(self.seconds)


class Group(NamedTuple):
    """How many frames went to the disk with one sync, where ``callers`` call at once."""

    name: str
    callers: int
    frames: int
    syncs: int

    @property
    def share(self) -> float:
        """Frames of a sync over callers: 1 if every caller's frame goes with every sync."""
        return self.frames / self.syncs / self.callers


def group_commits(folder: Path, calls: int, only: str = "") -> Iterator[Group]:
    """Frames per sync with 10 and 100 callers at once, tasks and threads, each of them making ``calls`` calls."""
    for (kind, run), callers in itertools.product((("async", _tasks), ("threads", _threads)), _CALLERS):
        name = f"frames-per-sync-{kind}-{callers}"
        if only in name:
            yield _group(name, run, callers, calls, folder / f"{name}.cassette.jsonl")


def _group(name: str, run: Callable[[Recording, int, int], None], callers: int, calls: int, file: Path) -> Group:
    file.unlink(missing_ok=True)
    ops = SlowOps(_SYNC_S)
    run(lambda: tc.record(file, ["number"], sync="frame", order="causal", store=FileStore(ops)), callers, calls)
    return Group(name, callers, file.read_bytes().count(b"\n"), ops.syncs)


def _tasks(recording: Recording, callers: int, calls: int) -> None:
    tool = tc.Registry().wrap(_number_async, name="number")

    async def caller(first: int) -> None:
        for k in range(calls):
            await tool(first + k)

    async def main() -> None:
        async with recording():
            await asyncio.gather(*(caller(k * calls) for k in range(callers)))

    asyncio.run(main())


def _threads(recording: Recording, callers: int, calls: int) -> None:
    tool = tc.Registry().wrap(_number, name="number")
    together = threading.Barrier(callers)

    def caller(first: int) -> None:
        together.wait()
        for k in range(calls):
            tool(first + k)

    with recording(), ThreadPoolExecutor(callers) as pool:
        list(pool.map(caller, range(0, callers * calls, calls)))


def _number(k: int) -> int:
    return k


async def _number_async(k: int) -> int:
    return k


def waiting(folder: Path, calls: int) -> Iterator[Benchmark]:
    """One task that records with a sync of 2 ms, against one write and one such sync for each of the same frames."""
    file, plain = folder / "waiting.cassette.jsonl", folder / "waiting.jsonl"
    tool = tc.Registry().wrap(_number_async, name="number")

    async def main() -> float:
        began = time.perf_counter()
        async with tc.record(file, ["number"], store=FileStore(SlowOps(_ASYNC_SYNC_S))):
            for k in range(calls):
                await tool(k)
        return time.perf_counter() - began

    def ours() -> float:
        file.unlink(missing_ok=True)
        return asyncio.run(main())

    def base() -> float:
        return write_synced(plain, lines, lambda _: time.sleep(_ASYNC_SYNC_S))

    ours()
    lines = lines_of(file)
    yield Benchmark("record-async-2ms", base, ours, calls, "a call; base: write and a sync of 2 ms for the same frames")
