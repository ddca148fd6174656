"""Nothing that runs later changes what was recorded, and no two callers share what was handed out."""

from __future__ import annotations

import asyncio
import functools
import io
import warnings

import pytest

import toolcassette as tc
from tests.cases.programs import dead, live, record, refused, replay
from tests.streams.helpers import aboth, both, end, refusal


@pytest.fixture(autouse=True)
def _quiet_about_changes():
    """That a body changes its arguments is told by a warning of its own, which is not what is tested here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*changed its arguments in place.*")
        yield


def test_row38_arguments_are_frozen_before_the_body(file):
    def grows(rows):
        rows.append("grown")
        return len(rows)

    def program(make):
        rows = ["a"]
        return make(grows)(rows)

    assert both(file, program) == 2
    (call,) = tc.read_cassette(file)
    assert call.args == b'{"rows":["a"]}'


def test_row38_results_are_frozen_before_the_caller(file):
    kept = {"n": [1]}

    def gives():
        return kept

    def program(make):
        found = make(gives)()
        found["n"].append("by the caller")
        return found

    both(file, program)
    assert kept == {"n": [1]}  # the tool's own is another object
    (call,) = tc.read_cassette(file)
    assert call.value == b'{"n":[1]}'


def test_a_result_that_the_tool_changes_afterwards(file):
    shared: list[int] = []

    def grows(n):
        shared.append(n)
        return shared

    def program(make):
        tool = make(grows)
        return [tool(1), tool(2)]

    assert both(file, program) == [[1], [1, 2]]


def test_each_replayed_call_gets_a_copy_of_its_own(file):
    def gives():
        return {"rows": [1]}

    def program(make):
        tool = make(gives)
        first = tool()
        first["rows"].append(2)
        return first, tool()

    assert both(file, program) == ({"rows": [1, 2]}, {"rows": [1]})


def test_each_item_is_frozen_when_it_is_given(file):
    """A source that hands out one object again and again, changed, and a consumer that changes it too."""

    def reuses():
        row = {"n": 0}
        for number in range(3):
            row["n"] = number
            yield row

    def program(make):
        seen = []
        for row in make(reuses)():
            seen.append(row)
            row["seen"] = True
        return seen

    assert both(file, program) == [{"n": n, "seen": True} for n in range(3)]
    assert end(file).items == [{"n": 0}, {"n": 1}, {"n": 2}]


@pytest.mark.anyio
async def test_each_item_is_frozen_when_it_is_given_async(file):
    async def reuses():
        row = {"n": 0}
        for number in range(3):
            row["n"] = number
            yield row

    async def program(make):
        seen = []
        async for row in make(reuses)():
            seen.append(row)
            row["seen"] = True
        return seen

    assert await aboth(file, program) == [{"n": n, "seen": True} for n in range(3)]


def test_a_generators_arguments_are_those_of_its_first_next(file):
    """Its body sees them then, and so does the recording."""

    def counts(rows):
        yield len(rows)

    def program(make):
        rows = ["a"]
        stream = make(counts)(rows)
        rows.append("b")
        return list(stream)

    assert both(file, program) == [2]
    (call,) = tc.read_cassette(file)
    assert call.args == b'{"rows":["a","b"]}'


def test_an_argument_that_is_consumed_by_being_read_is_refused_before_it_is(file, tmp_path):
    ran = []

    def takes(source):
        ran.append(source)

    (tmp_path / "f.txt").write_text("text")
    with (tmp_path / "f.txt").open() as opened:
        sources = [iter([1, 2]), (n for n in (1, 2)), map(int, "12"), io.StringIO("12"), opened]
        names = ["list_iterator", "generator", "map", "StringIO", "TextIOWrapper"]
        for number, (source, name) in enumerate(zip(sources, names, strict=True)):
            target = file.with_name(f"{number}.cassette.jsonl")
            error = refusal(target, functools.partial(live(takes), source))
            assert (error.json_path, error.type_name) == ("$.source", name)
        assert [list(map(int, source)) for source in sources[:4]] == [[1, 2]] * 3 + [[12]]
        assert opened.read() == "text"
    assert ran == []


def test_the_same_in_a_replay(file):
    def takes(source):
        return list(source)

    record(file, lambda: live(takes)([1, 2]))
    source = iter([1, 2])

    def program():
        error = refused(lambda: dead(takes)(source))
        assert getattr(error, "reason", "") == "arguments_differ"

    with pytest.raises(tc.CassetteMismatch):
        replay(file, program)
    assert list(source) == [1, 2]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_generator_that_changes_its_arguments_is_told(file, kind):
    def pops(rows):
        while rows:
            yield rows.pop()

    async def apops(rows):
        while rows:
            yield rows.pop()

    async def drain(stream):
        return [row async for row in stream]

    def program(make):
        if kind == "sync":
            return list(make(pops)([1, 2]))
        return asyncio.run(drain(make(apops)([1, 2])))

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert record(file, lambda: program(live)) == [2, 1]
    assert ["changed its arguments in place at $.rows" in str(w.message) for w in told] == [True]
    assert replay(file, lambda: program(dead)) == [2, 1]
