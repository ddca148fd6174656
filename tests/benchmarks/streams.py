"""What a stream costs: each item recorded and replayed, against stepping the bare generator.

Rule: as for calls, the time of a session counts whole, spread over the items.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import toolcassette as tc
from tests.benchmarks.measure import Benchmark

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

__all__ = ["streaming"]

_CHUNK = "0123456789abcdef" * 64  # 1 KB of text


def _plain(count: int) -> Iterator[str]:
    for _ in range(count):
        yield _CHUNK


async def _async(count: int) -> AsyncIterator[str]:
    for _ in range(count):
        yield _CHUNK


def _seconds(tool: Callable[[int], Iterator[str]], count: int, session: Any = None) -> float:
    began = time.perf_counter()
    if session is None:
        for _ in tool(count):
            pass
    else:
        with session:
            for _ in tool(count):
                pass
    return time.perf_counter() - began


async def _seconds_async(tool: Callable[[int], AsyncIterator[str]], count: int, session: Any = None) -> float:
    began = time.perf_counter()
    if session is None:
        async for _ in tool(count):
            pass
    else:
        async with session:
            async for _ in tool(count):
                pass
    return time.perf_counter() - began


def streaming(folder: Path, chunks: int) -> Iterator[Benchmark]:
    """One stream of ``chunks`` items of 1 KB, sync and async: recorded (``sync="none"``) and replayed."""
    for kind in ("sync", "async"):
        source: Any = _plain if kind == "sync" else _async
        tool = tc.Registry().wrap(source, name="chunks")
        file = folder / f"{kind}-stream.cassette.jsonl"

        def run(fn: Any, session: Any = None, kind: str = kind) -> float:
            return _seconds(fn, chunks, session) if kind == "sync" else asyncio.run(_seconds_async(fn, chunks, session))

        def bare(run: Any = run, source: Any = source) -> float:
            return float(run(source))

        def record(run: Any = run, tool: Any = tool, file: Path = file) -> float:
            file.unlink(missing_ok=True)
            return float(run(tool, tc.record(file, ["chunks"], sync="none")))

        def replay(run: Any = run, tool: Any = tool, file: Path = file) -> float:
            return float(run(tool, tc.replay(file)))

        yield Benchmark(f"record-stream-{kind}", bare, record, chunks, "an item of 1 KB; base: the bare generator")
        record()  # for a run of the replay alone
        yield Benchmark(f"replay-stream-{kind}", bare, replay, chunks, "an item of 1 KB; base: the bare generator")
