"""What finding the right record costs under ``causal``, among few recorded calls and among many.

Rule: only matching is timed, over a whole cassette whose calls overlap; base is the same under ``strict``.
"""

from __future__ import annotations

import time
from functools import cached_property, partial
from typing import TYPE_CHECKING

from tests.benchmarks.measure import Benchmark
from tests.concurrency.helpers import overlapping, write
from toolcassette.engine import Call
from toolcassette.engine.playback import Playback
from toolcassette.format import parse_cassette

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcassette.format import Cassette

__all__ = ["matching"]


class _Work:
    """A cassette of some calls that overlap; made when it is first asked for, since the large one takes seconds."""

    def __init__(self, count: int) -> None:
        self.count = count

    @cached_property
    def _cassette(self) -> Cassette:
        return parse_cassette(write(overlapping(self.count), order="any"))

    @cached_property
    def _calls(self) -> list[Call]:
        return [Call("t", b'{"n":%d}' % n) for n in range(self.count)]

    def seconds(self, policy: str) -> float:
        """Match all calls, without what it takes to open."""
        calls = self._calls
        playback = Playback(self._cassette, policy=policy, completion="recorded", stall_after=5, is_open=lambda: True)
        began = time.perf_counter()
        for call in calls:
            playback.handed_out(playback.take(call))
        return time.perf_counter() - began


def matching(calls: int) -> Iterator[Benchmark]:
    """A 200th as many calls, half as many, and fifty times as many: 10, 1,000 and 100,000 if not told otherwise."""
    for name, count in (("few", calls // 200), ("more", calls // 2), ("many", calls * 50)):
        work = _Work(max(count, 1))
        yield Benchmark(
            f"causal-{name}",
            partial(work.seconds, "strict"),
            partial(work.seconds, "causal"),
            work.count,
            f"a match among {work.count} that overlap; base: under strict",
        )
