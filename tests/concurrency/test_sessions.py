"""Sessions beside, after and inside each other; calls from every kind of thread; one tool for all of them."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest

import toolcassette as tc
from tests.concurrency import oracle
from tests.concurrency.helpers import frames_of, hurried, in_threads, seeded, times

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@tc.cassette_tool(name="double")
def double(x: int) -> int:
    return 2 * x


@tc.cassette_tool(name="adouble")
async def adouble(x: int) -> int:
    await anyio.sleep(0.001)
    return 2 * x


@tc.cassette_tool(name="other")
def other(x: int) -> int:
    return x


def args_of(file: Path) -> list[int]:
    return [frame["args"]["x"] for frame in frames_of(file) if frame["kind"] == "call/start"]


# -- many sessions ----------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_session_for_each_task_side_by_side(tmp_path: Path, anyio_backend: str) -> None:
    async def record(number: int) -> None:
        async with tc.record(tmp_path / f"{number}", ["adouble"], sync="none"):
            for step in range(4):
                await adouble(10 * number + step)

    async def replay(number: int) -> None:
        async with tc.replay(tmp_path / f"{number}"):
            for step in range(4):
                assert await adouble(10 * number + step) == 2 * (10 * number + step)

    for work in (record, replay):
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(work, number)
    for number in range(8):
        assert args_of(tmp_path / f"{number}") == [10 * number + step for step in range(4)]


@pytest.mark.anyio
async def test_recording_and_replaying_side_by_side(tmp_path: Path, anyio_backend: str) -> None:
    async with tc.record(tmp_path / "old", ["adouble"], sync="none"):
        await adouble(1)

    async def record() -> None:
        async with tc.record(tmp_path / "new", ["adouble"], sync="none"):
            await adouble(2)

    async def replay() -> None:
        async with tc.replay(tmp_path / "old"):
            assert await adouble(1) == 2

    async with anyio.create_task_group() as group:
        group.start_soon(record)
        group.start_soon(replay)
    assert args_of(tmp_path / "new") == [2]


def test_one_tool_in_many_sessions_in_turn(tmp_path: Path) -> None:
    for number in range(5):
        with tc.record(tmp_path / f"{number}", ["double"], sync="none"):
            assert double(number) == 2 * number
    for number in range(5):
        with tc.replay(tmp_path / f"{number}"):
            assert double(number) == 2 * number


def test_a_session_for_each_thread_side_by_side(tmp_path: Path) -> None:
    def work(number: int) -> list[int]:
        with tc.record(tmp_path / f"{number}", ["double"], sync="none"):
            first = [double(number) for _ in range(5)]
        with tc.replay(tmp_path / f"{number}"):
            return first + [double(number) for _ in range(5)]

    with hurried():
        assert in_threads([partial(work, n) for n in range(6)]) == [[2 * n] * 10 for n in range(6)]


# -- sessions inside sessions -----------------------------------------------------------------------------------------


def test_a_recording_inside_a_replay_is_refused(tmp_path: Path) -> None:
    with tc.record(tmp_path / "old", ["double"], sync="none"):
        double(1)

    async def inside() -> None:
        async with tc.record(tmp_path / "new", ["other"]):
            raise AssertionError

    with tc.replay(tmp_path / "old", ["double"]):
        session = tc.record(tmp_path / "new", ["other"])
        with pytest.raises(RuntimeError, match="inside a replay"), session:
            raise AssertionError
        with pytest.raises(RuntimeError, match="inside a replay"):
            asyncio.run(inside())
        with pytest.raises(RuntimeError, match="inside a replay"):
            session.open()
        assert double(1) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old"]
    with session:  # it was not used up
        other(1)
    assert args_of(tmp_path / "new") == [1]


def test_a_recording_inside_a_recording_of_other_tools(tmp_path: Path) -> None:
    with tc.record(tmp_path / "outer", ["double"], sync="none"):
        double(1)
        with tc.record(tmp_path / "inner", ["other"], sync="none"):
            double(2)
            other(3)
        double(4)
    assert (args_of(tmp_path / "outer"), args_of(tmp_path / "inner")) == ([1, 2, 4], [3])


def test_a_replay_inside_a_replay_and_inside_a_recording(tmp_path: Path) -> None:
    with tc.record(tmp_path / "a", ["double"], sync="none"):
        double(1)
    with tc.record(tmp_path / "b", ["other"], sync="none"):
        other(2)
    with tc.replay(tmp_path / "a", ["double"]), tc.replay(tmp_path / "b", ["other"]):
        assert (double(1), other(2)) == (2, 2)
    with tc.record(tmp_path / "c", ["other"], sync="none"), tc.replay(tmp_path / "a", ["double"]):
        assert (double(1), other(5)) == (2, 5)
    assert args_of(tmp_path / "c") == [5]


def test_a_body_may_open_a_session_of_its_own(tmp_path: Path) -> None:
    """The tool it calls belongs to the inner session, and the outer one sees its own call only."""

    def agent(x: int) -> int:
        with tc.record(tmp_path / "inner", ["double"], sync="none"):
            return double(x)

    tool = tc.Registry().wrap(agent, name="agent")
    with tc.record(tmp_path / "outer", ["agent"], sync="none"):
        assert tool(3) == 6
    assert (args_of(tmp_path / "outer"), args_of(tmp_path / "inner")) == ([3], [3])


def test_bare_threads_of_each_session_count_their_scopes_from_the_start(tmp_path: Path) -> None:
    def scoped() -> int:
        with tc.scope("s"):
            return double(1)

    for name in "ab":
        with tc.record(tmp_path / name, ["double"], sync="none"):
            in_threads([scoped])
            in_threads([scoped])
    with tc.replay(tmp_path / "a"):
        assert in_threads([scoped]) == in_threads([scoped]) == [2]
    assert [c.path for c in tc.read_cassette(tmp_path / "b")] == [("s",), ("s#1",)]


# -- C-20: thread pools -----------------------------------------------------------------------------------------------

COUNT = 50


def through_pool(workers: int, call: Callable[[int], int]) -> list[Any]:
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(call, range(COUNT)))


def through_executor(workers: int, call: Callable[[int], int]) -> list[Any]:
    async def program() -> list[int]:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(workers) as pool:
            return list(await asyncio.gather(*(loop.run_in_executor(pool, call, x) for x in range(COUNT))))

    return asyncio.run(program())


def through_to_thread(workers: int, call: Callable[[int], int]) -> list[Any]:
    async def program() -> list[int]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(workers))
        return list(await asyncio.gather(*(asyncio.to_thread(call, x) for x in range(COUNT))))

    return asyncio.run(program())


def through_anyio(workers: int, call: Callable[[int], int]) -> list[Any]:
    found: dict[int, int] = {}

    async def one(x: int, limiter: anyio.CapacityLimiter) -> None:
        found[x] = await anyio.to_thread.run_sync(call, x, limiter=limiter)

    async def program() -> None:
        limiter = anyio.CapacityLimiter(workers)
        async with anyio.create_task_group() as group:
            for x in range(COUNT):
                group.start_soon(one, x, limiter)

    anyio.run(program)
    return [found[x] for x in range(COUNT)]


def through_bare_threads(workers: int, call: Callable[[int], int]) -> list[Any]:
    gate = threading.Semaphore(workers)

    def one(x: int) -> int:
        with gate:
            return call(x)

    return in_threads([partial(one, x) for x in range(COUNT)])


@pytest.mark.parametrize(
    "through", [through_pool, through_executor, through_to_thread, through_anyio, through_bare_threads]
)
def test_c20_fifty_calls_on_eight_threads_replay_on_one_and_on_sixteen(
    file: Path, through: Callable[[int, Callable[[int], int]], list[Any]]
) -> None:
    expected = [2 * x for x in range(COUNT)]
    with tc.record(file, ["double"], order="any", sync="none"):
        assert through(8, double) == expected
    starts = [f for f in frames_of(file) if f["kind"] == "call/start"]
    assert [f["call"] for f in starts] == list(range(COUNT))
    assert sorted(args_of(file)) == list(range(COUNT))
    assert tc.verify(file, deep=True).ok
    # A queue that hands out by number can keep a recorded order of ends and starts only where that went by number too.
    kept = through is not through_bare_threads and in_order(file)
    for workers, order in ((1, "any"), (16, "any"), *(((1, "causal"), (16, "causal")) if kept else ())):
        with tc.replay(file, order=order, completion="immediate"):
            assert through(workers, double) == expected


@pytest.mark.parametrize("workers", [1, 16])
def test_c20_under_causal(file: Path, workers: int) -> None:
    """All of them overlap: any number of workers may take them."""
    groups = threading.Barrier(8)
    meet = tc.Registry().wrap(lambda x: [groups.wait(), 2 * x][1], name="meet")
    with tc.record(file, ["meet"], order="causal", sync="none"), ThreadPoolExecutor(8) as pool:
        assert list(pool.map(meet, range(8))) == [2 * x for x in range(8)]
    for _ in times(5, 50):
        with tc.replay(file, completion="immediate"), ThreadPoolExecutor(workers) as pool:
            assert list(pool.map(meet, range(8))) == [2 * x for x in range(8)]


def in_order(file: Path) -> bool:
    """True if one worker that takes the calls by number meets no call before one that precedes it."""
    calls = oracle.calls_of(frames_of(file))
    number = {x: call for call, x in enumerate(args_of(file))}
    return not any(oracle.precedes(calls, number[y], number[x]) for x in range(COUNT) for y in range(x + 1, COUNT))


def test_c20_one_worker_after_eight_goes_on_with_a_note(file: Path) -> None:
    """What overlapped does so no more: outcomes are held once, then handed out."""
    together = threading.Barrier(8)
    meet = tc.Registry().wrap(lambda x: [together.wait(), 2 * x][1], name="meet")
    with tc.record(file, ["meet"], order="causal", sync="none"):
        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(meet, range(8))) == [2 * x for x in range(8)]
    with tc.replay(file, stall_after=0.1) as session, ThreadPoolExecutor(1) as pool:
        assert list(pool.map(meet, range(8))) == [2 * x for x in range(8)]
    assert session.verdict is not None
    assert len(session.verdict.notes) == 1


def test_many_threads_record_without_a_gap(file: Path) -> None:
    for seed in times(1, 30):
        path = file.with_name(f"{seed}")
        with seeded(seed), hurried():
            with tc.record(path, ["double"], order="any", sync="frame"):
                assert through_pool(16, double) == [2 * x for x in range(COUNT)]
            assert tc.verify(path, deep=True).ok
            with tc.replay(path):
                assert through_bare_threads(16, double) == [2 * x for x in range(COUNT)]
