"""The order policies: what each takes, what it holds, what it refuses, and how soon."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest

import toolcassette as tc
from tests.cases.programs import run_script
from tests.concurrency.helpers import hurried, in_threads, outcome, seeded, times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

SLEEP = {"dog": 0.006, "cat": 0.004, "elk": 0.002}
RUNS = times(60, 500)


@tc.cassette_tool(name="embed")
async def embed(word: str) -> list[Any]:
    await anyio.sleep(SLEEP[word])
    return [len(word), word]


@tc.cassette_tool(name="instant")
async def instant(word: str) -> str:
    return word.upper()


@tc.cassette_tool(name="search")
def search(query: str) -> str:
    return f"found {query}"


@tc.cassette_tool(name="slow")
def slow(query: str) -> str:
    time.sleep(0.002)
    return f"found {query}"


async def together(call: Callable[[str], Any], words: list[str]) -> dict[str, object]:
    """Each word in a task of its own; what each got, or the error of ours."""
    found: dict[str, object] = {}

    async def one(word: str) -> None:
        try:
            found[word] = await call(word)
        except tc.CassetteError as error:
            found[word] = error

    async with anyio.create_task_group() as group:
        for word in words:
            group.start_soon(one, word)
    return found


def record(file: Path, call: Callable[[str], Any], words: list[str], order: str, backend: str = "asyncio") -> None:
    with tc.record(file, ["*"], order=order, sync="none"):
        anyio.run(together, call, words, backend=backend)


def sequence(file: Path, order: str, queries: Iterable[str] = "ab") -> None:
    with tc.record(file, ["*"], order=order, sync="none"):
        for query in queries:
            search(query)


# -- what each policy takes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["any", "causal"])
def test_c02_parallel_calls_that_end_in_reverse(file: Path, order: str) -> None:
    record(file, embed, ["dog", "cat", "elk"], order)
    ended = [c.ended_at for c in tc.read_cassette(file)]
    assert ended == sorted(ended, reverse=True)
    with tc.replay(file):
        got = anyio.run(together, embed, ["elk", "dog", "cat"])
    assert got == {word: [3, word] for word in SLEEP}


def test_c02_under_strict_another_start_order_is_a_mismatch(file: Path) -> None:
    record(file, embed, ["dog", "cat", "elk"], "strict")
    with pytest.raises(tc.CassetteMismatch, match="order='causal'") as raised, tc.replay(file):
        got = anyio.run(together, embed, ["elk", "dog", "cat"])
    assert raised.value.reason == "order_differs"
    assert [type(got[word]) for word in ("elk", "dog", "cat")] == [tc.CassetteMismatch, *[tc.CassettePoisoned] * 2]


def test_c03_the_model_asks_in_another_order(file: Path) -> None:
    sequence(file, "any", ["flights", "hotels"])
    with tc.replay(file):
        assert search("hotels") == "found hotels"
        assert search("flights") == "found flights"
    for order in ("causal", "strict"):
        with pytest.raises(tc.CassetteMismatch) as raised, tc.replay(file, order=order):
            assert isinstance(outcome(lambda: search("hotels")), tc.CassetteMismatch)
        assert raised.value.reason == "order_differs"


def test_equal_calls_get_their_records_in_start_order(file: Path) -> None:
    numbers = iter(range(6))
    pop = tc.Registry().wrap(lambda queue: next(numbers), name="pop")
    with tc.record(file, ["pop"], order="any", sync="none"):
        recorded = [pop("x"), pop("y"), pop("x"), pop("y"), pop("x"), pop("x")]
    with tc.replay(file):
        again = [pop("y"), pop("y"), pop("x"), pop("x"), pop("x"), pop("x")]
    assert (recorded, again) == ([0, 1, 2, 3, 4, 5], [1, 3, 0, 2, 4, 5])
    with pytest.raises(tc.CassetteMismatch) as raised, tc.replay(file):
        for _ in range(5):
            outcome(lambda: pop("x"))
    assert raised.value.reason == "exhausted"


@pytest.mark.parametrize("order", ["any", "causal", "strict"])
def test_a_replay_may_be_stricter_and_never_looser(file: Path, order: str) -> None:
    sequence(file, order)
    names = ["any", "causal", "strict"]
    for wanted in names:
        if names.index(wanted) >= names.index(order):
            with tc.replay(file, order=wanted):
                assert (search("a"), search("b")) == ("found a", "found b")
        else:
            with pytest.raises(ValueError, match="only be stricter"), tc.replay(file, order=wanted):
                raise AssertionError
    assert tc.inspect(file).order == order


# -- hold, do not refuse ----------------------------------------------------------------------------------------------


def test_a_call_waits_for_what_precedes_it(file: Path) -> None:
    sequence(file, "causal")
    began = threading.Event()

    def second() -> str:
        began.set()
        return search("b")

    def first() -> str:
        began.wait()
        time.sleep(0.02)
        return search("a")

    with tc.replay(file):
        assert in_threads([second, first]) == ["found b", "found a"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_true_swap_in_a_concurrent_program_is_found_within_stall_after(file: Path, backend: str) -> None:
    """The other branch waits for something else; it would not bring what precedes."""

    async def program(words: str) -> None:
        async with anyio.create_task_group() as group:
            idle = anyio.Event()
            group.start_soon(idle.wait)
            for word in words:
                await instant(word)
            idle.set()

    async def replay() -> float:
        began = time.monotonic()
        with pytest.raises((tc.CassetteMismatch, ExceptionGroup)) as raised:
            async with tc.replay(file, stall_after=0.1) as session:
                try:
                    await program("ba")
                finally:
                    assert session.is_open
        seconds = time.monotonic() - began
        error = raised.value
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        assert isinstance(error, tc.CassetteMismatch)
        assert error.reason == "order_differs"
        return seconds

    with tc.record(file, ["instant"], order="causal", sync="none"):
        anyio.run(program, "ab", backend=backend)
    assert 0.1 <= anyio.run(replay, backend=backend) < 2


ALONE = """
import sys, time
import anyio
import toolcassette as tc

@tc.cassette_tool
def sync_tool(word: str) -> str:
    return word

@tc.cassette_tool
async def async_tool(word: str) -> str:
    return word

async def tasks(words):
    for word in words:
        await async_tool(word)

def program(words):
    if sys.argv[1] == "sync":
        for word in words:
            sync_tool(word)
    else:
        anyio.run(tasks, words, backend=sys.argv[1])

with tc.record("x.cassette.jsonl", ["*"], order="causal", sync="none"):
    program("ab")
began = time.monotonic()
try:
    with tc.replay("x.cassette.jsonl", stall_after=60):
        program("ba")
except tc.CassetteMismatch as error:
    print(error.reason, time.monotonic() - began < 10)
"""


@pytest.mark.parametrize("kind", ["sync", "asyncio", "trio"])
def test_a_true_swap_in_a_sequential_program_is_found_at_once(tmp_path: Path, kind: str) -> None:
    """In a process of its own: threads that tests before this one left idle could bring anything."""
    done = run_script(tmp_path, ALONE, kind)
    assert (done.stdout.strip(), done.stderr) == ("order_differs True", "")


def test_a_sync_call_on_a_thread_with_a_running_loop_is_never_held(file: Path) -> None:
    sequence(file, "causal")

    async def program() -> None:
        other = asyncio.ensure_future(asyncio.sleep(0.01))
        search("b")
        await other

    began = time.monotonic()
    with pytest.raises(tc.CassetteMismatch), tc.replay(file, stall_after=60):
        asyncio.run(program())
    assert time.monotonic() - began < 5


def test_a_held_call_is_let_go_when_the_session_is_poisoned_or_over(file: Path) -> None:
    sequence(file, "causal")
    found: list[object] = []
    session = tc.replay(file, stall_after=60)
    with pytest.raises(tc.CassetteMismatch), session:
        thread = threading.Thread(target=lambda: found.append(outcome(lambda: search("b"))))
        thread.start()
        time.sleep(0.02)
        outcome(lambda: search("c"))
        thread.join(10)
    assert isinstance(found[0], tc.CassettePoisoned)
    with pytest.raises(tc.UnconsumedCalls), tc.replay(file, stall_after=60):
        thread = threading.Thread(target=lambda: found.append(outcome(lambda: search("b"))))
        thread.start()
        time.sleep(0.02)
    thread.join(10)
    assert isinstance(found[1], tc.SessionClosed)


@pytest.mark.anyio
async def test_a_held_call_that_is_cancelled_takes_nothing(file: Path, anyio_backend: str) -> None:
    async with tc.record(file, ["instant"], order="causal", sync="none"):
        await instant("a")
        await instant("b")
    async with tc.replay(file), anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 0.01)
        with anyio.move_on_after(0.005) as scope:
            await instant("b")
        assert scope.cancelled_caught
        assert await instant("a") == "A"
        assert await instant("b") == "B"


# -- no flakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [embed, instant], ids=["overlapping", "instant"])
def test_trio_which_starts_tasks_in_random_order(file: Path, call: Any) -> None:
    words = ["dog", "cat", "elk"]
    record(file, call, words, "causal", "trio")
    for seed in RUNS:
        with seeded(seed), tc.replay(file, completion="required"):
            got = anyio.run(together, call, words, backend="trio")
            assert got == {word: [3, word] if call is embed else word.upper() for word in words}


@pytest.mark.parametrize("call", [slow, search], ids=["overlapping", "instant"])
@pytest.mark.parametrize("threads", ["pool", "bare", "to_thread"])
def test_threads_that_are_switched_all_the_time(file: Path, call: Callable[[str], str], threads: str) -> None:
    queries = [f"q{n}" for n in range(6)]

    async def tasks() -> list[str]:
        return list(await asyncio.gather(*(asyncio.to_thread(call, q) for q in queries)))

    def program() -> list[object]:
        if threads == "bare":
            return in_threads([partial(call, q) for q in queries])
        if threads == "to_thread":
            return list(asyncio.run(tasks()))
        with ThreadPoolExecutor(len(queries)) as pool:
            return list(pool.map(call, queries))

    with hurried():
        with tc.record(file, ["*"], order="causal", sync="none"):
            program()
        for seed in RUNS:
            with seeded(seed), tc.replay(file):
                assert program() == [f"found {q}" for q in queries]


def test_reversed_completion_of_the_same_start_order(file: Path) -> None:
    """Where bodies would end the other way round than they began, replays hand out in that order, every time."""
    landed: list[str] = []

    async def one(word: str) -> None:
        await embed(word)
        landed.append(word)

    async def program() -> list[str]:
        landed.clear()
        async with anyio.create_task_group() as group:
            for word in ("dog", "cat", "elk"):
                group.start_soon(one, word)
        return list(landed)

    with tc.record(file, ["embed"], order="causal", sync="none"):
        recorded = anyio.run(program)
    assert recorded == ["elk", "cat", "dog"]
    for seed in RUNS:
        with seeded(seed), tc.replay(file):
            assert anyio.run(program) == recorded


# -- what the recording says ------------------------------------------------------------------------------------------


def notes(session: tc.Session) -> list[str]:
    assert session.verdict is not None
    return [note for note in session.verdict.notes if "causal" in note]


@pytest.mark.parametrize("order", ["strict", "causal"])
def test_the_recording_names_causal_once_where_threads_overlap(file: Path, order: str) -> None:
    both = threading.Barrier(2)
    meet = tc.Registry().wrap(lambda n: [both.wait(), n][1], name="meet")
    with tc.record(file, ["meet"], order=order, sync="none") as session:
        for _ in range(3):
            assert in_threads([lambda: meet(1), lambda: meet(2)]) == [1, 2]
    assert len(notes(session)) == (1 if order == "strict" else 0)


@pytest.mark.parametrize(("backend", "said"), [("asyncio", 0), ("trio", 1)])
def test_the_recording_names_causal_once_where_the_scheduler_shuffles(file: Path, backend: str, said: int) -> None:
    with tc.record(file, ["embed"], sync="none") as session:
        anyio.run(together, embed, list(SLEEP), backend=backend)
    assert len(notes(session)) == said


def test_nothing_is_said_where_threads_take_turns(file: Path) -> None:
    with tc.record(file, ["search"], sync="none") as session:
        for query in "abc":
            in_threads([partial(search, query)])
    assert notes(session) == []
