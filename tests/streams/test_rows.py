"""Rows of a survey of what goes wrong elsewhere with streams, failures and interrupted calls, one test each.

Row 38 is in ``test_aliasing.py``, the case of the consumer that leaves early in ``test_ends.py``.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import subprocess
import sys

import pytest

import toolcassette as tc
from tests.cases.programs import SRC, dead, live, record, refused, replay
from tests.streams.helpers import both, differs, end, reason


@dataclasses.dataclass
class Point:
    x: int
    tags: set[tuple[int, int]]


def test_row13_types_do_not_change_on_the_way(file):
    """What a call returns while recording is what a replay returns, in type and value; or it fails, with the path."""

    def point() -> Point:
        return Point(1, {(1, 2), (3, 4)})

    recorded = both(file, lambda make: make(point)())
    assert (type(recorded), recorded.tags) == (Point, {(1, 2), (3, 4)})

    class Unknown:
        pass

    def nested():
        return {"rows": [1, Unknown()]}

    with pytest.raises(tc.UnrecordableValue) as caught:
        record(file.with_name("y.cassette.jsonl"), lambda: live(nested)())
    assert (caught.value.json_path, "Unknown" in caught.value.type_name) == ("$.rows[1]", True)

    def kept_or_refused():
        return collections.defaultdict(list, {"a": [1]})

    seen = both(file.with_name("z.cassette.jsonl"), lambda make: make(kept_or_refused)())
    assert (type(seen), seen.default_factory) == (collections.defaultdict, list)


class Refused(Exception):
    def __init__(self, *, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


def test_row14_failures_are_replayed_as_failures(file):
    def declared(n):
        if n:
            raise Refused(status=n)

    def program(make):
        tool = make(declared, errors=[Refused])
        seen = [tool(0)]  # None is a value, and no failure
        try:
            tool(429)
        except Refused as error:
            seen.append((type(error), str(error), error.status))
        return seen

    assert both(file, program) == [None, (Refused, "status 429", 429)]
    assert [call.outcome for call in tc.read_cassette(file)] == ["ok", "error"]


def test_row18_the_recorder_does_not_eat_the_stream(file):
    made: list[int] = []

    def endless():
        number = 0
        while True:
            made.append(number)
            yield number
            number += 1

    def program(make):
        seen = []
        for number in make(endless)():
            seen.append((number, len(made)))
            if number == 2:
                break
        return seen

    recorded = record(file, lambda: program(live))
    assert recorded == [(0, 1), (1, 2), (2, 3)]  # each came when it was made, and the source never ran ahead
    made.clear()
    assert replay(file, lambda: program(dead)) == [(0, 0), (1, 0), (2, 0)]


def test_row18_an_empty_stream_is_no_lost_one(file):
    def nothing():
        yield from ()

    assert both(file, lambda make: list(make(nothing)())) == []
    assert (end(file).outcome, end(file).items) == ("ok", [])


def test_row19_half_a_stream_is_not_stored_as_a_whole_one(file):
    def answer():
        yield from ["The ", "whole ", "answer."]

    def reads(make, count):
        stream = make(answer)()
        seen = [next(stream) for _ in range(count)]
        stream.close()
        return seen

    assert both(file, lambda make: reads(make, 2)) == ["The ", "whole "]
    assert end(file).outcome == "left_early"

    def everything(make):
        seen: list[str] = []
        error = refused(lambda: seen.extend(make(answer)()))
        assert reason(error) == "stream_differs"

    differs(file, everything)


KILLED = """
import os, sys
import toolcassette as tc

@tc.cassette_tool
def numbers():
    yield 1
    os._exit(9)

with tc.record(sys.argv[1], ["*"]):
    list(numbers())
"""


def test_row19_a_stream_that_the_process_did_not_survive_is_published_by_nobody(file):
    done = subprocess.run([sys.executable, "-c", KILLED, str(file)], env={"PYTHONPATH": str(SRC)}, check=False)
    assert done.returncode == 9
    assert not file.exists()
    report = tc.verify(f"{file}.partial")
    assert (report.state, report.calls, report.frames) == ("open", 1, 3)  # the item that was made is there


def test_row31_every_call_has_one_end_and_a_crash_is_none(file):
    """ok, error, cancelled, left early: each its own; and a call without an end is neither success nor cancellation."""

    async def hangs():
        await asyncio.sleep(60)

    def works():
        return None

    def breaks():
        raise ValueError("v")

    def streams():
        yield 1

    def program(make):
        make(works)()
        with pytest.raises(ValueError, match="v"):
            make(breaks)()
        next(make(streams)())

        async def cancels():
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(make(hangs)(), 0.05)

        asyncio.run(cancels())

    both(file, program, stall_after=30.0)
    assert [call.outcome for call in tc.read_cassette(file)] == ["ok", "error", "left_early", "cancelled"]

    def interrupted():
        raise KeyboardInterrupt

    other = file.with_name("y.cassette.jsonl")
    with pytest.raises(tc.NotPublished) as caught, tc.record(other, ["*"]):
        with pytest.raises(KeyboardInterrupt):
            live(interrupted)()
    assert caught.value.reason == "open_call"
    assert not other.exists()
