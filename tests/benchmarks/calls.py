"""What a call costs: recorded, replayed and made durable, against calling the bare function or writing bare lines.

Rule: the time of a session counts whole, with opening, verifying, publishing and leaving, spread over its calls.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import toolcassette as tc
from tests.benchmarks.measure import Benchmark
from tests.benchmarks.work import SHAPES, arguments, lines_of, rows, write_synced

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

__all__ = ["benchmarks", "durable", "redacting"]


class _Work(NamedTuple):
    """A tool, the arguments of its calls, and how a run of all of them is timed."""

    fn: Callable[..., Any]
    arguments: list[dict[str, Any]]

    def seconds(self, tool: Callable[..., Any], session: Any = None) -> float:
        """A run of all calls of ``tool``, with the session around it where there is one."""
        if inspect.iscoroutinefunction(tool):
            return asyncio.run(self._seconds_async(tool, session))
        began = time.perf_counter()
        if session is None:
            for each in self.arguments:
                tool(**each)
        else:
            with session:
                for each in self.arguments:
                    tool(**each)
        return time.perf_counter() - began

    async def _seconds_async(self, tool: Callable[..., Awaitable[Any]], session: Any) -> float:
        began = time.perf_counter()
        if session is None:
            for each in self.arguments:
                await tool(**each)
        else:
            async with session:
                for each in self.arguments:
                    await tool(**each)
        return time.perf_counter() - began


def _as_async(fn: Callable[..., Any]) -> Callable[..., Any]:
    async def tool(query: str, limit: int, filters: dict[str, Any]) -> Any:
        return fn(query, limit, filters)

    return tool


def benchmarks(folder: Path, calls: int) -> Iterator[Benchmark]:
    """Recording (``sync="none"``) and replaying, sync and async, nested rows and flat text; without redaction."""
    every = [arguments(number) for number in range(calls)]
    for kind, (shape, fn) in itertools.product(("sync", "async"), SHAPES.items()):
        work = _Work(fn if kind == "sync" else _as_async(fn), every)
        tool = tc.Registry().wrap(work.fn, name="search")
        file = folder / f"{kind}-{shape}.cassette.jsonl"

        def record(work: _Work = work, tool: Any = tool, file: Path = file) -> float:
            file.unlink(missing_ok=True)
            return work.seconds(tool, tc.record(file, ["search"], sync="none", redact=False))

        def replay(work: _Work = work, tool: Any = tool, file: Path = file) -> float:
            return work.seconds(tool, tc.replay(file, on_secret="ignore"))

        def bare(work: _Work = work) -> float:
            return work.seconds(work.fn)

        yield Benchmark(f"record-{kind}-{shape}", bare, record, calls, "a call; base: the bare function")
        record()  # for a run of the replay alone
        yield Benchmark(f"replay-{kind}-{shape}", bare, replay, calls, "a call; base: the bare function")


def redacting(folder: Path, calls: int) -> Iterator[Benchmark]:
    """What the default rules cost on top of the same session without them, for results of 1 KB and of 1 MB."""
    for size, fn, count in (("1KB", rows, calls), ("1MB", _large, max(calls // 200, 1))):
        work = _Work(fn, [arguments(number) for number in range(count)])
        tool = tc.Registry().wrap(work.fn, name="search")
        files = {on: folder / f"redact-{size}-{on}.cassette.jsonl" for on in (True, False)}

        def record(on: bool, work: _Work = work, tool: Any = tool, files: dict[bool, Path] = files) -> float:
            files[on].unlink(missing_ok=True)
            return work.seconds(tool, tc.record(files[on], ["search"], sync="none", redact=on))

        def replay(on: bool, work: _Work = work, tool: Any = tool, files: dict[bool, Path] = files) -> float:
            return work.seconds(tool, tc.replay(files[on], on_secret="refuse" if on else "ignore"))

        for name, run in (("record", record), ("replay", replay)):
            yield Benchmark(
                f"redact-{name}-{size}", partial(run, False), partial(run, True), count, "a call; base: without rules"
            )
            record(True)
            record(False)


def _large(query: str, limit: int, filters: dict[str, Any]) -> dict[str, Any]:
    """About 1 MB of rows."""
    return {"pages": [rows(query, limit, filters) for _ in range(1000)]}


def durable(folder: Path, calls: int) -> Iterator[Benchmark]:
    """Recording with ``sync="frame"``, against one write and one ``fdatasync`` for each of the same frames."""
    work = _Work(rows, [arguments(number) for number in range(calls)])
    tool = tc.Registry().wrap(work.fn, name="search")
    file, plain = folder / "durable.cassette.jsonl", folder / "plain.jsonl"
    work.seconds(tool, tc.record(file, ["search"], sync="none", redact=False))
    lines = lines_of(file)

    def base() -> float:
        return write_synced(plain, lines, os.fdatasync)

    def ours() -> float:
        file.unlink(missing_ok=True)
        return work.seconds(tool, tc.record(file, ["search"], sync="frame", redact=False))

    yield Benchmark("record-durable", base, ours, calls, "a call; base: write and fdatasync of the same frames")
