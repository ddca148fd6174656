"""What a survey of 24 neighbouring tools asked of them, asked of this one: tasks, threads and streams.

Rule: as in test_peers_probes.py, which has the table. Who ends first is arranged with events, never with sleeps.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import toolcassette as tc
from tests.cases.programs import dead, fails, live, record, refused, replay


@pytest.fixture
def file(tmp_path):
    return tmp_path / "probe.cassette.jsonl"


def tool_a(q):
    return {"q": q}


def test_probe_async(file):
    async def atool(q):
        await asyncio.sleep(0)
        return {"q": q}

    async def program(tool):
        return [await tool("a"), await tool(q="b")]

    assert record(file, lambda: asyncio.run(program(live(atool)))) == [{"q": "a"}, {"q": "b"}]
    assert replay(file, lambda: asyncio.run(program(dead(atool)))) == [{"q": "a"}, {"q": "b"}]


def ends_of(file):
    """Call numbers in the order in which they ended."""
    calls = list(tc.read_cassette(file))
    return sorted(range(len(calls)), key=lambda number: calls[number].ended_at)


@pytest.mark.parametrize("sync", ["none", "frame"])
def test_probe_conc_diff(file, sync):
    async def program(make):
        first_may_end = asyncio.Event()

        async def atool(q):
            await first_may_end.wait() if q == "A" else first_may_end.set()
            return f"result of {q}"

        tool = make(atool)
        return await asyncio.gather(tool("A"), tool("B"))

    expected = ["result of A", "result of B"]
    assert record(file, lambda: asyncio.run(program(live)), sync=sync) == expected
    assert ends_of(file) == [1, 0]  # they did complete the other way round
    assert replay(file, lambda: asyncio.run(program(dead))) == expected


@pytest.mark.parametrize("sync", ["none", "frame"])
def test_probe_conc_same(file, sync):
    async def program(make):
        started = []
        first_may_end = asyncio.Event()

        async def atool(q):
            started.append(q)
            number = len(started)
            await first_may_end.wait() if number == 1 else first_may_end.set()
            return f"start {number}"

        tool = make(atool)
        return await asyncio.gather(tool("same"), tool("same"))

    expected = ["start 1", "start 2"]
    assert record(file, lambda: asyncio.run(program(live)), sync=sync) == expected
    assert ends_of(file) == [1, 0]
    assert replay(file, lambda: asyncio.run(program(dead))) == expected


def test_probe_gen(file):
    """Item by item, as it arrives; the same items on replay, and no body."""
    seen = []

    def numbers(q):
        for i in range(3):
            seen.append(f"made {i}")
            yield i

    def program(tool):
        found = []
        for i in tool("a"):
            seen.append(f"got {i}")
            found.append(i)
        return found

    assert record(file, lambda: program(live(numbers))) == [0, 1, 2]
    assert seen == ["made 0", "got 0", "made 1", "got 1", "made 2", "got 2"]
    assert replay(file, lambda: program(dead(numbers))) == [0, 1, 2]
    (call,) = tc.read_cassette(file)
    assert (call.outcome, call.chunks) == ("ok", (b"0", b"1", b"2"))


def test_probe_asyncgen(file):
    async def numbers(q):
        for i in range(3):
            await asyncio.sleep(0)
            yield i

    async def program(tool):
        return [i async for i in tool("a")]

    assert record(file, lambda: asyncio.run(program(live(numbers)))) == [0, 1, 2]
    assert replay(file, lambda: asyncio.run(program(dead(numbers)))) == [0, 1, 2]


def test_probe_gen_closed_early(file):
    """The cassette says that the consumer stopped, and the source was told; who reads on has parted from it."""
    closed = []

    def numbers(q):
        try:
            yield from range(5)
        finally:
            closed.append(q)

    def take(tool, count):
        stream = tool("a")
        found = [next(stream) for _ in range(count)]
        stream.close()
        return found

    assert record(file, lambda: take(live(numbers), 2)) == [0, 1]
    assert closed == ["a"]
    (call,) = tc.read_cassette(file)
    assert (call.outcome, call.chunks) == ("left_early", (b"0", b"1"))
    assert replay(file, lambda: take(dead(numbers), 2)) == [0, 1]
    with fails(tc.CassetteMismatch), tc.replay(file):
        refused(lambda: take(dead(numbers), 3))


def test_probe_gen_that_raises(file):
    def numbers(q):
        yield 1
        raise ValueError("mid stream")

    def program(tool):
        found = []
        with pytest.raises(ValueError, match="mid stream"):
            found.extend(tool("a"))
        return found

    assert record(file, lambda: program(live(numbers))) == [1]
    assert replay(file, lambda: program(dead(numbers))) == [1]


def test_probe_gen_returned(file):
    """A generator that hides behind a plain function is a stream too, unless the annotation says that there is none."""

    def numbers(q):
        return (i for i in range(3))

    assert record(file, lambda: list(live(numbers)("a"))) == [0, 1, 2]
    assert replay(file, lambda: list(dead(numbers)("a"))) == [0, 1, 2]

    def promised(q) -> list[int]:
        return (i for i in range(3))  # type: ignore[return-value]  # the mistake that is shown

    with fails(tc.UnrecordableValue) as left:
        record(file.with_name("promised.cassette.jsonl"), lambda: live(promised)("a"))
    assert left["error"].type_name == "generator"


def in_thread(function):
    found = []

    def run():
        try:
            found.append(function())
        except tc.CassetteError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_probe_thread(file):
    record(file, lambda: live(tool_a)("a"))
    tool = dead(tool_a)
    assert replay(file, lambda: in_thread(lambda: tool("a"))) == {"q": "a"}


def test_probe_executor(file):
    tool = live(tool_a)
    record(file, lambda: [tool(q) for q in "abc"])
    tool = dead(tool_a)

    async def program():
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as pool:
            return await loop.run_in_executor(pool, tool, "c")

    async def default_executors():
        loop = asyncio.get_running_loop()
        return [await loop.run_in_executor(None, tool, "a"), await asyncio.to_thread(tool, "b")]

    with tc.replay(file):
        assert asyncio.run(default_executors()) == [{"q": "a"}, {"q": "b"}]
        assert asyncio.run(program()) == {"q": "c"}


def test_probe_executor_older_than_the_session(file):
    """Nobody can know whose call it is: it is refused in both modes, never run; ``bind`` says whose it is."""
    ran = []

    def tool_c(q):
        ran.append(q)
        return q

    tool = live(tool_c)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # the worker is there before the session
        with tc.record(file, ["*"], sync="none"):
            assert isinstance(refused(pool.submit(tool, "a").result), tc.NoSession)
            assert ran == []
            assert pool.submit(tc.bind(tool), "a").result() == "a"
        with tc.replay(file):
            assert isinstance(refused(pool.submit(tool, "a").result), tc.NoSession)
            assert pool.submit(tc.bind(tool), "a").result() == "a"
    assert ran == ["a"]


def test_probe_thread_record(file):
    tool = live(tool_a)

    def program():
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(tool, "abcdefgh"))

    assert record(file, program) == [{"q": q} for q in "abcdefgh"]
    order = [tc.canonical_json({"q": q}) for q in "abcdefgh"]
    recorded = [call.args for call in tc.read_cassette(file)]
    assert sorted(recorded) == order
    by_args = {tc.canonical_json({"q": q}): q for q in "abcdefgh"}
    again = dead(tool_a)
    # Calls that overlapped are made one after the other here: the first outcome is held for a moment, then none is.
    program_order = [by_args[args] for args in recorded]
    assert replay(file, lambda: [again(q)["q"] for q in program_order], stall_after=0.05) == program_order
