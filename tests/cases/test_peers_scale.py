"""The faults of neighbouring tools that show only with many calls: quadratic matching, files their own reader refuses.

Rule: work is counted in calls of functions, and never timed.
"""

from __future__ import annotations

import asyncio
import cProfile
import functools

import pytest

import toolcassette as tc
from tests.cases.programs import fails, live, record, refused, replay


def search(query, page):
    return {"page": page, "rows": [query, page]}


def counted(program):
    """What a program returns, and how many functions were called meanwhile."""
    profile = cProfile.Profile()
    profile.enable()
    try:
        result = program()
    finally:
        profile.disable()
    return result, sum(entry.callcount for entry in profile.getstats())


WINDOW = 300  # calls that are counted at the beginning and at the end


def windows(calls):
    """Run the calls one after the other. Returns their results, and the work of the first and the last ``WINDOW``."""
    first, first_work = counted(lambda: [call() for call in calls[:WINDOW]])
    middle = [call() for call in calls[WINDOW:-WINDOW]]
    last, last_work = counted(lambda: [call() for call in calls[-WINDOW:]])
    return [*first, *middle, *last], first_work, last_work


@pytest.mark.parametrize("count", [2_000, 20_000])
@pytest.mark.parametrize("same", [False, True], ids=["different", "identical"])
def test_2k_and_20k_are_linear(tmp_path, count, same):
    """The last calls take the work of the first ones, recorded and replayed, equal to each other or not."""
    file = tmp_path / "many.cassette.jsonl"
    tool = live(search)
    calls = [functools.partial(tool, "orders", 0 if same else number) for number in range(count)]

    recorded, first, last = record(file, lambda: windows(calls))
    assert last <= first * 1.02
    replayed, first, last = replay(file, lambda: windows(calls))
    assert last <= first * 1.02
    assert recorded == replayed
    assert tc.verify(file).calls == count


def run_all(tool, count):
    return [tool("orders", number) for number in range(count)]


def test_fault_24_looking_at_a_file_is_linear(tmp_path):
    """Opening a replay, verifying, and listing: the work for each call is the same for 300 calls and for 3,000."""
    tool = live(search)
    work = []
    for count in (300, 3_000):
        file = tmp_path / f"{count}.cassette.jsonl"
        record(file, functools.partial(run_all, tool, count))
        looks = (tc.verify, tc.inspect, lambda name: replay(name, lambda: None, allow_unconsumed=True))
        work.append([counted(functools.partial(look, file))[1] / count for look in looks])
    for few, many in zip(*work, strict=True):
        assert many <= few * 1.05


def test_fault_14_what_was_written_is_read(tmp_path):
    """A recording that its own limits allow can be read under them; one call too many is refused when it is made."""
    file = tmp_path / "limits.cassette.jsonl"
    tool = live(lambda text: text, name="echo")
    record(file, lambda: [tool("x" * 3000) for _ in range(50)], line_bytes_max=4096, calls_max=50)
    assert len(replay(file, lambda: [tool("x" * 3000) for _ in range(50)], line_bytes_max=4096)) == 50

    with fails(tc.FormatError) as left, tc.record(tmp_path / "long.cassette.jsonl", ["*"], line_bytes_max=4096):
        refused(lambda: tool("x" * 5000))
    assert left["error"].reason == "line_too_long"
    with fails(tc.FormatError) as left, tc.record(tmp_path / "many.cassette.jsonl", ["*"], sync="none", calls_max=2):
        tool("a"), tool("b")
        refused(lambda: tool("c"))
    assert left["error"].reason == "too_many_calls"
    assert [p.name for p in tmp_path.glob("*.jsonl")] == ["limits.cassette.jsonl"]


@pytest.mark.parametrize("sync", ["none", "frame"])
def test_fault_38_twenty_at_once_are_twenty(tmp_path, sync):
    file = tmp_path / "twenty.cassette.jsonl"

    async def double(n):
        await asyncio.sleep(0)
        return 2 * n

    tool = live(double)

    async def program():
        return await asyncio.gather(*(tool(n) for n in range(20)))

    assert record(file, lambda: asyncio.run(program()), sync=sync) == [2 * n for n in range(20)]
    assert len(tc.read_cassette(file)) == 20
    assert replay(file, lambda: asyncio.run(program())) == [2 * n for n in range(20)]


def run_tasks(program, count):
    return asyncio.run(program(count))


def test_fault_38_many_in_flight_are_linear(tmp_path):
    """A call among 1,000 in flight takes the work of one among 100, but for searches that take its logarithm."""

    async def double(n):
        await asyncio.sleep(0)
        return 2 * n

    tool = live(double)

    async def program(count):
        return await asyncio.gather(*(tool(n) for n in range(count)))

    work = []
    for count in (100, 1_000):
        file = tmp_path / f"{count}.cassette.jsonl"
        runs = [
            functools.partial(mode, file, functools.partial(run_tasks, program, count)) for mode in (record, replay)
        ]
        work.append([counted(run)[1] / count for run in runs])
    for few, many in zip(*work, strict=True):
        assert many <= few * 1.25


def test_fault_24_a_second_recording_does_not_join_the_first(tmp_path):
    """Re-recorded, the new answers are served, and the old ones are gone from the file."""
    file = tmp_path / "again.cassette.jsonl"
    answers = ["old", "new"]
    tool = live(lambda q: answers.pop(0), name="give")
    record(file, lambda: tool("a"))
    record(file, lambda: tool("a"), replace=True)
    assert replay(file, lambda: tool("a")) == "new"
    assert b"old" not in file.read_bytes()
    assert tc.verify(file).calls == 1
