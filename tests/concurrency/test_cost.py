"""What a replay keeps for each recorded call, and that a call costs the same however many there are."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from typing import Any

import pytest

from tests.concurrency.helpers import overlapping, write
from toolcassette.engine import Call
from toolcassette.engine.playback import Playback
from toolcassette.format import parse_cassette

BYTES_MAX = 64  # a recorded call, beside its own bytes
COUNT = 6_000


def playback_of(data: bytes, policy: str) -> Playback:
    return Playback(parse_cassette(data), policy=policy, completion="recorded", stall_after=5, is_open=lambda: True)


@pytest.mark.parametrize(("policy", "scopes"), [("strict", 0), ("any", 0), ("causal", 0), ("causal", 2)])
def test_memory_for_a_recorded_call(policy: str, scopes: int) -> None:
    data = write(overlapping(COUNT, scopes=scopes))
    playback_of(write(overlapping(10)), policy)  # what is loaded once is not counted
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        playback = playback_of(data, policy)
        for n in range(COUNT // 2):  # and in the middle of a replay
            path = (f"s{n % scopes}",) if scopes else ()
            playback.handed_out(playback.take(Call("t", b'{"n":%d}' % n, path=path)))
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(playback.cassette) == COUNT
    assert kept / COUNT <= BYTES_MAX


@pytest.mark.parametrize("alike", [False, True], ids=["different", "alike"])
@pytest.mark.parametrize("policy", ["any", "causal"])
def test_a_call_costs_the_same_however_many_there_are(policy: str, alike: bool) -> None:
    """Twelve times as many: what is linear would cost twelve times as much."""

    def microseconds(count: int) -> float:
        events = [
            (kind, call, (rest[0], rest[1], b"{}") if alike and rest is not None else rest)
            for kind, call, rest in overlapping(count)
        ]
        playback = playback_of(write(events), policy)
        spent = []
        for n in range(count):
            call = Call("t", b"{}" if alike else b'{"n":%d}' % n)
            began = time.perf_counter()
            number = playback.take(call)
            playback.handed_out(number)
            spent.append(time.perf_counter() - began)
        return statistics.median(spent) * 1e6

    few, many = microseconds(500), microseconds(COUNT)
    assert many < 4 * few


def test_many_scopes_are_built_and_matched_in_time_that_grows_with_their_number() -> None:
    def seconds(count: int) -> float:
        events: list[tuple[str, int, Any]] = []
        for n in range(count):
            events += [("start", n, ((f"agent:{n}",), "t", b"{}")), ("end", n, None)]
        data = write(events)
        began = time.perf_counter()
        playback = playback_of(data, "causal")
        for n in range(count):
            playback.handed_out(playback.take(Call("t", b"{}", path=(f"agent:{n}",))))
        return time.perf_counter() - began

    few, many = seconds(300), seconds(6000)
    assert many < 80 * few  # twenty times as many; what is quadratic would take four hundred times as long
