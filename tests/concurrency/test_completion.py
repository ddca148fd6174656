"""When a replayed outcome goes out: who looks at completion order takes the recorded way, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_first
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest

import toolcassette as tc
from tests.concurrency.helpers import outcome, seeded, times, write
from toolcassette.engine import Call
from toolcassette.engine.playback import Playback
from toolcassette.format import parse_cassette

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

SECONDS = {"a": 0.009, "b": 0.001, "c": 0.005, "d": 0.003, "e": 0.007}
RUNS = times(10, 100)


@pytest.fixture(params=["none", "frame"])
def sync(request: pytest.FixtureRequest) -> str:
    policy: str = request.param
    return policy


@tc.cassette_tool(name="fetch")
async def fetch(name: str) -> str:
    await anyio.sleep(SECONDS.get(name, 0.0005))
    return name


@tc.cassette_tool(name="fetch_sync")
def fetch_sync(name: str) -> str:
    time.sleep(SECONDS.get(name, 0.0005))
    return name


# -- control flow that depends on completion order --------------------------------------------------------------------


async def as_they_complete() -> list[str]:
    """What is asked next depends on what came first."""
    trace = []
    for coming in asyncio.as_completed([fetch(name) for name in SECONDS]):
        name = await coming
        trace.append(name)
        trace.append(await fetch(f"after {name} as {len(trace)}"))
    return trace


gates: dict[str, asyncio.Event] = {}


@tc.cassette_tool(name="gated")
async def gated(name: str) -> str:
    await gates[name].wait()
    return name


async def races() -> list[str]:
    """The first to complete wins, and decides who races next; the losers go on beside.

    Live, the next one completes only when the last one's race is over: two that the loop lets complete in one step
    would be one set of winners, and no order could tell.
    """
    gates.update({name: asyncio.Event() for name in SECONDS})
    coming = list("cebda")
    trace: list[str] = []
    left = {asyncio.ensure_future(gated(name)): name for name in SECONDS}
    while left:
        gates[coming.pop(0)].set()
        done, _ = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        trace.append("+".join(sorted(left.pop(task) for task in done)))
        trace.append(await fetch("".join(trace)))
    return trace


async def as_they_land() -> list[str]:
    landed: list[str] = []

    async def one(name: str) -> None:
        landed.append(await fetch(name))
        landed.append(await fetch(f"{name} was {len(landed)}"))

    async with anyio.create_task_group() as group:
        for name in SECONDS:
            group.start_soon(one, name)
    return landed


@pytest.mark.parametrize("program", [as_they_complete, races, as_they_land])
def test_the_recorded_way_is_taken(file: Path, sync: str, program: Callable[[], Any]) -> None:
    with tc.record(file, ["fetch", "gated"], order="causal", sync=sync):
        recorded = asyncio.run(program())
    for seed in RUNS:
        with seeded(seed), tc.replay(file, completion="required"):
            assert asyncio.run(program()) == recorded


def test_the_recorded_way_is_taken_on_trio(file: Path, sync: str) -> None:
    with tc.record(file, ["fetch", "gated"], order="causal", sync=sync):
        recorded = anyio.run(as_they_land, backend="trio")
    for seed in RUNS:
        with seeded(seed), tc.replay(file, completion="required"):
            assert anyio.run(as_they_land, backend="trio") == recorded


def test_the_recorded_way_is_taken_by_threads(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The winner is asked for at once: with threads, what comes after is a race of the program's own."""
    for name, seconds in SECONDS.items():  # far enough apart for a busy machine: one winner
        monkeypatch.setitem(SECONDS, name, seconds * 10)

    def program() -> list[str]:
        with ThreadPoolExecutor(len(SECONDS)) as pool:
            racing = {pool.submit(fetch_sync, name) for name in SECONDS}
            done, racing = wait_for_first(racing, return_when=FIRST_COMPLETED)
            won = [future.result() for future in done]
            return [*won, fetch_sync("the winner was " + won[0])]

    with tc.record(file, ["fetch_sync"], order="causal", sync="none"):
        recorded = program()
    for seed in RUNS:
        with seeded(seed), tc.replay(file):
            assert program() == recorded


def test_immediate_hands_out_at_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in SECONDS.items():  # far enough apart for a busy machine
        monkeypatch.setitem(SECONDS, name, seconds * 10)
    with tc.record(file, ["fetch"], order="causal", sync="none"):
        assert [name for name in asyncio.run(as_they_land()) if len(name) == 1] == ["b", "d", "c", "e", "a"]
    session = tc.replay(file, completion="immediate", stall_after=0.1)
    with pytest.raises((tc.CassetteMismatch, ExceptionGroup)), session:
        asyncio.run(as_they_land())
    assert session.verdict is not None
    assert isinstance(session.verdict.error, tc.CassetteMismatch)
    assert session.verdict.error.reason == "arguments_differ"


# -- streams ----------------------------------------------------------------------------------------------------------


@tc.cassette_tool(name="tokens")
async def tokens(number: int) -> AsyncIterator[int]:
    for i in range(number):
        await anyio.sleep(0.002)
        yield i


def test_items_of_a_stream_keep_their_place_among_the_outcomes_of_others(file: Path) -> None:
    async def program() -> list[object]:
        landed: list[object] = []

        async def read() -> None:
            async for item in tokens(6):
                landed.append(item)
                await anyio.sleep(0.001)

        async def ask(name: str) -> None:
            landed.append(await fetch(name))

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            for name in "de":
                group.start_soon(ask, name)
        return landed

    with tc.record(file, ["fetch", "tokens"], order="causal", sync="none"):
        recorded = asyncio.run(program())
    assert recorded[0] == 0
    assert recorded[-1] == 5
    for seed in RUNS:
        with seeded(seed), tc.replay(file, completion="required"):
            assert asyncio.run(program()) == recorded


def test_a_stream_that_is_dropped_in_the_middle_of_a_step_does_not_deadlock(file: Path) -> None:
    """The collector may run anywhere, also where the replay counts; here it is made to."""

    @tc.cassette_tool(name="count")
    def count(number: int) -> Iterator[int]:
        yield from range(number)

    def program() -> list[object]:
        stream = count(3)
        first = next(stream)
        cycle: list[object] = [stream]
        cycle.append(cycle)
        del stream, cycle
        return [first]

    with tc.record(file, ["count", "fetch_sync"], order="any", sync="none"):
        assert program() == [0]
        gc.collect()
        assert fetch_sync("x") == "x"
    with tc.replay(file) as session:
        assert program() == [0]
        playback = session._played
        consume = playback.order.consume

        def collecting(*args: Any) -> Any:
            gc.collect()
            return consume(*args)

        playback.order.consume = collecting  # type: ignore[assignment,method-assign]  # where a collection may fall
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append(outcome(lambda: fetch_sync("x"))), daemon=True)
        thread.start()
        thread.join(10)
        assert found == ["x"]


def test_a_call_from_a_finaliser_in_the_middle_of_a_step_is_refused() -> None:
    data = write([("start", 0, ((), "t", b"{}")), ("end", 0, None)])
    playback = Playback(parse_cassette(data), policy="any", completion="recorded", stall_after=1, is_open=lambda: True)
    with pytest.raises(RuntimeError, match="finaliser"):
        playback._step(lambda: playback.take(Call("t", b"{}")))
    assert playback.take(Call("t", b"{}")) == 0


# -- no program waits for ever ----------------------------------------------------------------------------------------


def overlap(file: Path) -> None:
    """Two calls that overlap; the first ends last."""

    async def program() -> None:
        await asyncio.gather(fetch("a"), fetch("b"))

    with tc.record(file, ["fetch"], order="causal", sync="none"):
        asyncio.run(program())


async def one_by_one() -> list[str]:
    return [await fetch("a"), await fetch("b")]


def test_a_program_that_overlaps_no_more_goes_on_with_a_note(file: Path) -> None:
    overlap(file)
    began = time.monotonic()
    with tc.replay(file, stall_after=0.1) as session:
        assert asyncio.run(one_by_one()) == ["a", "b"]
    assert 0.1 <= time.monotonic() - began < 3
    assert session.verdict is not None
    assert [note for note in session.verdict.notes if "overlap" in note] == list(session.verdict.notes)
    assert len(session.verdict.notes) == 1


def test_required_makes_that_a_mismatch(file: Path) -> None:
    overlap(file)
    with pytest.raises(tc.CassetteMismatch) as raised, tc.replay(file, stall_after=0.1, completion="required"):
        asyncio.run(one_by_one())
    assert (raised.value.reason, raised.value.tool, raised.value.ordinal) == ("stalled", "fetch", 0)


def test_immediate_never_holds(file: Path) -> None:
    overlap(file)
    began = time.monotonic()
    with tc.replay(file, stall_after=60, completion="immediate") as session:
        assert asyncio.run(one_by_one()) == ["a", "b"]
    assert time.monotonic() - began < 10
    assert session.verdict is not None
    assert session.verdict.notes == ()


def test_a_branch_that_waits_long_for_something_else_is_no_stall_while_the_session_moves(file: Path) -> None:
    """The first call's outcome is held for far longer than ``stall_after``, while others come and go."""

    async def program(pause: float) -> list[str]:
        async def long() -> str:
            return await fetch("a")

        async def steps() -> list[str]:
            found = []
            for n in range(8):
                await asyncio.sleep(pause)
                found.append(await fetch(f"step {n}"))
            return found

        first, rest = await asyncio.gather(long(), steps())
        return [first, *rest]

    with tc.record(file, ["fetch"], order="causal", sync="none"):
        recorded = asyncio.run(program(0))
    with tc.replay(file, stall_after=0.2, completion="required"):
        assert asyncio.run(program(0.06)) == recorded


def test_a_held_call_whose_waiter_is_cancelled_counts_as_handed_out(file: Path) -> None:
    async def record() -> None:
        await asyncio.gather(fetch("a"), fetch("b"), fetch("c"))

    async def replay() -> list[str]:
        held = asyncio.ensure_future(fetch("a"))  # until c has ended
        waits = asyncio.ensure_future(fetch("b"))
        await asyncio.sleep(0.01)
        held.cancel()
        await asyncio.sleep(0)
        return [await waits, await fetch("c")]

    with tc.record(file, ["fetch"], order="causal", sync="none"):
        asyncio.run(record())
    with tc.replay(file, stall_after=0.3):
        assert asyncio.run(replay()) == ["b", "c"]


def test_a_sync_call_on_a_running_loop_is_never_held(file: Path) -> None:
    def record() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(fetch_sync, ["a", "b"]))

    async def replay() -> list[str]:
        other = asyncio.ensure_future(asyncio.sleep(0))
        found = [fetch_sync("a"), fetch_sync("b")]
        await other
        return found

    with tc.record(file, ["fetch_sync"], order="any", sync="none"):
        record()
    began = time.monotonic()
    with tc.replay(file, stall_after=60) as session:
        assert asyncio.run(replay()) == ["a", "b"]
    assert time.monotonic() - began < 10
    assert session.verdict is not None
    assert session.verdict.notes == ()


def test_many_calls_beside_a_long_one_cost_what_they_cost_alone() -> None:
    """One outcome is held over thousands of others: it is not asked for at each of them."""
    count = 4000
    events: list[tuple[str, int, Any]] = [("start", 0, ((), "long", b"{}"))]
    for n in range(1, count):
        events += [("start", n, ((), "t", b'{"n":%d}' % n)), ("end", n, None)]
    playback = Playback(
        parse_cassette(write([*events, ("end", 0, None)])),
        policy="causal",
        completion="required",
        stall_after=20,
        is_open=lambda: True,
    )
    long = Call("long", b"{}")
    asked = []
    held_by = playback.order.held_by

    def counting(number: int, path: tuple[str, ...]) -> tuple[str, int] | None:
        asked.append(number)
        return held_by(number, path)

    playback.order.held_by = counting  # type: ignore[method-assign]  # counted, and asked all the same
    playback.take(long)
    thread = threading.Thread(target=partial(playback.turn, 0, long))
    thread.start()
    for n in range(1, count):
        call = Call("t", b'{"n":%d}' % n)
        playback.turn(playback.take(call), call)
    thread.join(20)
    assert not thread.is_alive()
    assert asked.count(0) < 20
