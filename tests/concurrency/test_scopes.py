"""The call path: scopes and composites in tasks and threads, late children, both of a pair selected, many agents."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import anyio
import pytest

import toolcassette as tc
from tests.cases.programs import run_script
from tests.concurrency.helpers import frames_of, in_threads, outcome, seeded, times

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@tc.cassette_tool(name="find")
def find(query: str) -> str:
    return f"found {query}"


@tc.cassette_tool(name="afind")
async def afind(query: str) -> str:
    return f"found {query}"


@tc.composite
def research(topic: str, depth: int = 1) -> list[str]:
    return [find(topic), *(found for _ in range(depth - 1) for found in research(topic))]


def paths_of(file: Path) -> list[list[str]]:
    return [list(call.path) for call in tc.read_cassette(file)]


def digest(name: str, args: dict[str, Any]) -> str:
    import hashlib

    return hashlib.sha256(name.encode() + b"\0" + tc.canonical_json(args)).hexdigest()[:16]


# -- segments ---------------------------------------------------------------------------------------------------------


def test_scopes_composites_and_their_numbers(file: Path) -> None:
    def program() -> None:
        find("top")
        with tc.scope("a/b"), tc.scope("x", key=7):
            find("in")
        with tc.scope("a/b"):
            find("again")
        research("tea")
        research(topic="tea", depth=1)
        research("tea", 2)

    with tc.record(file, ["find"], sync="none"):
        program()
    one = f"research:{digest('research', {'depth': 1, 'topic': 'tea'})}"
    two = f"research:{digest('research', {'depth': 2, 'topic': 'tea'})}"
    assert paths_of(file) == [
        [],
        ["a%2Fb", "x:7"],
        ["a%2Fb#1"],
        [f"{one}#0"],
        [f"{one}#1"],
        [f"{two}#0"],
        [f"{two}#0", f"{one}#0"],
    ]
    with tc.replay(file):
        program()


def test_no_scope_passes_for_a_composite(file: Path) -> None:
    key = digest("find", {})
    with tc.record(file, ["find"], sync="none"):
        find("x")
        for _ in range(2):
            with tc.scope("find", key=key):
                find("y")
    assert paths_of(file) == [[], [f"find:%{ord(key[0]):02X}{key[1:]}"], [f"find:%{ord(key[0]):02X}{key[1:]}#1"]]
    assert tc.verify(file).ok


def test_paths_begin_at_the_session(file: Path) -> None:
    with tc.scope("around"), tc.record(file, ["find"], sync="none"), tc.scope("within"):
        find("x")
    assert paths_of(file) == [["within"]]
    with tc.replay(file), tc.scope("within"):
        assert find("x") == "found x"


def test_the_path_goes_with_tasks_and_threads(file: Path) -> None:
    async def program() -> None:
        with tc.scope("s"):
            await asyncio.gather(asyncio.create_task(afind("task")), asyncio.to_thread(find, "to_thread"))
            await anyio.to_thread.run_sync(find, "anyio")
            with ThreadPoolExecutor(1) as pool:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(pool, tc.bind(find), "bound")
                await loop.run_in_executor(pool, find, "not bound")
        in_threads([lambda: find("bare")])

    with tc.record(file, ["*"], order="causal", sync="none"):
        asyncio.run(program())
    found = {str(frame["args"]["query"]): frame["path"] for frame in frames_of(file) if "args" in frame}
    within = ["task", "to_thread", "anyio", "bound"]
    assert found == {q: ["s"] for q in within} | {"not bound": [], "bare": []}
    with tc.replay(file):
        asyncio.run(program())


def test_equal_scopes_at_once_are_ambiguous(file: Path) -> None:
    async def both(keys: tuple[object, object]) -> list[object]:
        async def one(key: object) -> object:
            with tc.scope("agent", key=key):
                await asyncio.sleep(0.001)
                return await afind("x")

        return await asyncio.gather(*(one(key) for key in keys), return_exceptions=True)

    with tc.record(file, ["afind"], sync="none"):
        first, second = asyncio.run(both((None, None)))
        assert first == "found x"
        assert isinstance(second, tc.AmbiguousScope)
        assert second.label == "agent"
        assert "key=" in str(second)
        assert asyncio.run(both((1, 2))) == ["found x"] * 2
    assert sorted(paths_of(file)) == [["agent"], ["agent:1"], ["agent:2"]]


def test_without_any_session_scopes_are_never_refused_and_nothing_grows() -> None:
    """A server that serves in scopes of one label must not fail because nobody records it."""
    from toolcassette.engine import path

    together = threading.Barrier(4)

    def serve() -> str:
        with tc.scope("request"):
            together.wait()
            return find("x")

    before = len(path._process_root._seen)
    assert in_threads([serve] * 4) == ["found x"] * 4
    for number in range(100):
        with tc.scope("request", key=number):
            research("x")
    assert len(path._process_root._seen) == before


def test_a_scope_needs_a_label() -> None:
    with pytest.raises(ValueError, match="label"), tc.scope(""):
        raise AssertionError


# -- composites -------------------------------------------------------------------------------------------------------


def test_a_composite_that_is_selected_alone_is_a_leaf(file: Path) -> None:
    with tc.record(file, ["research"], sync="none"):
        assert research("tea") == ["found tea"]
    assert [(c.tool, c.path) for c in tc.read_cassette(file)] == [("research", ())]
    with tc.replay(file):
        assert research("tea") == ["found tea"]


def test_equal_composites_at_once_have_their_own_numbers(file: Path) -> None:
    @tc.composite
    async def agent(topic: str) -> str:
        return await afind(topic)

    async def program() -> list[str]:
        return list(await asyncio.gather(agent("x"), agent("x"), agent("y")))

    with tc.record(file, ["afind"], order="causal", sync="none"):
        asyncio.run(program())
    assert len({tuple(path) for path in paths_of(file)}) == 3
    with tc.replay(file):
        assert asyncio.run(program()) == ["found x", "found x", "found y"]


def test_the_options_of_a_composite(file: Path) -> None:
    class Connection:
        pass

    @tc.composite(name="crew", omit=["conn"])
    def crew_of(conn: Connection, topic: str) -> str:
        return find(topic)

    @tc.composite
    @tc.cassette_tool(name="team", omit=["conn"])
    def team_of(conn: Connection, topic: str) -> str:
        return find(topic)

    @tc.composite
    def plain(conn: Connection) -> str:
        return find("x")

    with tc.record(file, ["find"], sync="none"):
        crew_of(Connection(), "tea")
        team_of(Connection(), "tea")
        with pytest.raises(tc.UnrecordableValue) as raised:
            plain(Connection())
        assert str(raised.value.tool).endswith("plain")
    names = [path[0].split(":")[0] for path in paths_of(file)]
    assert names == ["crew", "team"]
    with pytest.raises(TypeError, match="generator"):
        tc.composite(lambda: (yield 1))


def test_a_composite_may_be_what_opens_the_session_of_a_process(tmp_path: Path) -> None:
    program = """
import toolcassette as tc

@tc.cassette_tool
def find(query: str) -> str:
    print("body")
    return query

@tc.composite
def research(topic: str) -> str:
    return find(topic)

print(research("tea"))
"""
    for include, path in (("research", []), ("find", [f"research:{digest('research', {'topic': 'tea'})}#0"])):
        name = f"{include}.cassette.jsonl"
        done = run_script(tmp_path, program, under=("record", name, "--include", include))
        assert (done.returncode, done.stdout) == (0, "body\ntea\n"), done.stderr
        assert [(c.tool, list(c.path)) for c in tc.read_cassette(tmp_path / name)] == [(include, path)]
        done = run_script(tmp_path, program, under=("replay", name))
        assert (done.returncode, done.stdout) == (0, "tea\n"), done.stderr


# -- selecting both ---------------------------------------------------------------------------------------------------


def test_selecting_both_leaves_the_live_child_alone_and_publishes_nothing(file: Path) -> None:
    with pytest.raises(tc.NestedSelection) as raised, tc.record(file, ["research", "find"], sync="none"):
        assert research("tea") == ["found tea"]
    assert (raised.value.tool, raised.value.inside) == ("find", "research")
    assert not file.exists()


def test_selecting_both_is_found_in_a_file(file: Path) -> None:
    """As another recorder might have written it, one level deeper, and in either order."""
    segment = f"research:{digest('research', {'depth': 1, 'topic': 'tea'})}#0"
    outer = tc.RecordedCall("research", tc.canonical_json({"depth": 1, "topic": "tea"}), ("a",), value=b'["found tea"]')
    inner = tc.RecordedCall("find", tc.canonical_json({"query": "tea"}), ("a", segment), value=b'"found tea"')
    options = {"cassette": "0" * 32, "created": "2026-01-01T00:00:00.000000Z", "producer": "test"}
    for calls in ([outer, inner], [inner, outer]):
        with pytest.raises(tc.FormatError) as raised:
            tc.write_cassette(calls, **options)
        assert (raised.value.reason, raised.value.frame) == ("nested", 3)
    for alone in (outer, inner):
        assert len(tc.parse_cassette(tc.write_cassette([alone], **options))) == 1
    elsewhere = outer._replace(path=("b",))
    assert len(tc.parse_cassette(tc.write_cassette([elsewhere, inner], **options))) == 2


# -- late children ----------------------------------------------------------------------------------------------------


async def leaves_a_child_behind(wait: float) -> object:
    """A task that outlives the scope it was started in."""

    async def child() -> object:
        await asyncio.sleep(0.002)
        try:
            return await afind("late")
        except tc.CassetteError as error:
            return error

    with tc.scope("parent"):
        await afind("in time")
        task = asyncio.ensure_future(child())
        await asyncio.sleep(wait)
    return await task


def test_a_late_child_keeps_a_recording_from_being_published(file: Path) -> None:
    with pytest.raises(tc.NotPublished) as raised, tc.record(file, ["afind"], sync="none"):
        assert asyncio.run(leaves_a_child_behind(0)) == "found late"  # it is not disturbed
    assert raised.value.reason == "late_child"
    assert "afind below parent" in str(raised.value)
    assert not file.exists()


def test_a_late_child_is_a_mismatch_in_a_replay(file: Path) -> None:
    with tc.record(file, ["afind"], sync="none"):
        asyncio.run(leaves_a_child_behind(0.01))
    with pytest.raises(tc.CassetteMismatch) as raised, tc.replay(file):
        assert isinstance(asyncio.run(leaves_a_child_behind(0)), tc.CassetteMismatch)
    assert (raised.value.reason, raised.value.path) == ("path_differs", ("parent",))


# -- concurrent sub-agents --------------------------------------------------------------------------------------------

AGENTS, CALLS = 6, 5


def test_agents_at_once_replay_under_any_interleaving(file: Path) -> None:
    """Each asks the same questions and has its own answers."""
    serial = iter(range(10_000))
    ask = tc.Registry().wrap(lambda q: [q, next(serial)], name="ask")

    async def aask(question: str) -> Any:
        return ask(question)

    async def program(chance: random.Random) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = {number: [] for number in range(AGENTS)}

        async def agent(number: int) -> None:
            with tc.scope("agent", key=number):
                for step in range(CALLS):
                    await anyio.sleep(chance.choice([0, 0, 0.0005]))
                    found[number].append(await aask(f"question {step}"))

        async with anyio.create_task_group() as group:
            for number in chance.sample(range(AGENTS), AGENTS):
                group.start_soon(agent, number)
        return found

    with tc.record(file, ["ask"], sync="none"):
        recorded = anyio.run(program, random.Random(0))
    for seed in times(20, 200):
        for backend in ("asyncio", "trio"):
            with seeded(seed), tc.replay(file, completion="required", stall_after=20):
                assert anyio.run(program, random.Random(seed), backend=backend) == recorded


def test_agents_on_threads(file: Path) -> None:
    serial = iter(range(10_000))
    ask = tc.Registry().wrap(lambda q: [q, next(serial)], name="ask")

    def agent(number: int, chance: random.Random) -> list[Any]:
        found = []
        with tc.scope("agent", key=number):
            for step in range(CALLS):
                time.sleep(chance.choice([0, 0.0005]))
                found.append(ask(f"question {step}"))
        return found

    def program(seed: int) -> list[object]:
        chance = random.Random(seed)
        calls: list[Callable[[], object]] = [lambda n=n: agent(n, chance) for n in range(AGENTS)]  # type: ignore[misc]
        return in_threads(calls)

    with tc.record(file, ["ask"], sync="none"):
        recorded = program(0)
    for seed in times(10, 100):
        with seeded(seed), tc.replay(file, completion="required", stall_after=20):
            assert program(seed) == recorded


def test_scopes_that_ran_one_after_the_other_are_ordered_as_wholes(file: Path) -> None:
    def agent(name: str) -> str:
        with tc.scope(name):
            return find(name)

    with tc.record(file, ["find"], sync="none"):
        agent("first")
        agent("second")
    with pytest.raises(tc.CassetteMismatch) as raised, tc.replay(file, stall_after=0.05):
        assert isinstance(outcome(lambda: agent("second")), tc.CassetteMismatch)
    assert (raised.value.reason, raised.value.path) == ("order_differs", ("second",))
    with tc.replay(file, stall_after=5):
        began = threading.Event()

        def second() -> str:
            began.set()
            return agent("second")

        def first() -> str:
            began.wait()
            time.sleep(0.01)
            return agent("first")

        assert in_threads([second, first]) == ["found second", "found first"]
