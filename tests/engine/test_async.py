"""Recording and replaying on asyncio and trio: the loop never waits for the disk, cancellation is an outcome."""

from __future__ import annotations

import asyncio
import functools
import time
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

import toolcassette as tc
from tests.engine.doubles import NAME, WatchedStore
from tests.streams.helpers import until

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

pytestmark = pytest.mark.anyio
only_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=False)

CALL = ["call/start", "call/result"]


class Tools:
    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.began = 0
        wrap = tc.Registry().wrap
        self.fetch: Callable[..., Coroutine[Any, Any, Any]] = wrap(self._fetch, name="fetch")
        self.hang: Callable[..., Coroutine[Any, Any, Any]] = wrap(self._hang, name="hang")
        self.fails: Callable[..., Coroutine[Any, Any, Any]] = wrap(self._fails, name="fails")

    def has_run(self, key: str) -> bool:
        return key in self.bodies

    async def _fetch(self, key: str, seconds: float = 0.0) -> dict[str, str]:
        self.bodies.append(key)
        await anyio.sleep(seconds)
        return {"of": key}

    async def _hang(self) -> None:
        self.bodies.append("hang")
        self.began += 1
        await anyio.sleep(60)

    async def _fails(self) -> None:
        self.bodies.append("fails")
        raise KeyError("k")


# -- there and back ---------------------------------------------------------------------------------------------------


async def test_record_and_replay(file):
    recording, replaying = Tools(), Tools()

    async def program(tools: Tools) -> list[Any]:
        found: list[Any] = [await tools.fetch("a", 0.0), await tools.fetch(key="b", seconds=0.0)]
        with pytest.raises(KeyError) as caught:
            await tools.fails()
        return [*found, caught.value.args]

    async with tc.record(file, ["fetch", "fails"]) as session:
        recorded = await program(recording)
    assert session.verdict == tc.Verdict(mode="record", outcome="published", calls=3)
    async with tc.replay(file) as replay:
        replayed = await program(replaying)
    assert replay.verdict == tc.Verdict(mode="replay", outcome="consumed", calls=3)
    assert recorded == replayed == [{"of": "a"}, {"of": "b"}, ("k",)]
    assert (recording.bodies, replaying.bodies) == (["a", "b", "fails"], [])


async def test_a_plain_with_works_on_a_loop_too(file):
    tools = Tools()
    with tc.record(file, ["fetch"]):
        await tools.fetch("a", 0.0)
    with tc.replay(file):
        assert await tools.fetch("a", 0.0) == {"of": "a"}
    assert tools.bodies == ["a"]


async def test_calls_that_ended_in_another_order_than_they_began(file):
    recording, replaying = Tools(), Tools()

    async def program(tools: Tools) -> dict[str, Any]:
        found: dict[str, Any] = {}

        async def one(key: str, seconds: float) -> None:
            found[key] = await tools.fetch(key, seconds)

        async with anyio.create_task_group() as group:
            for key, seconds in (("slow", 0.05), ("middle", 0.02), ("quick", 0.0)):
                group.start_soon(one, key, seconds)
                if tools is recording:
                    await until(functools.partial(tools.has_run, key))
                else:
                    await anyio.wait_all_tasks_blocked()
        return found

    async with tc.record(file, ["fetch"]):
        recorded = await program(recording)
    outcomes = [call.args for call in sorted(tc.read_cassette(file), key=lambda call: call.ended_at)]
    assert [b"quick" in args for args in outcomes] == [True, False, False]
    async with tc.replay(file):
        assert await program(replaying) == recorded
    assert replaying.bodies == []


@only_asyncio
async def test_gather(file):
    async def program(tools: Tools) -> list[Any]:
        return await asyncio.gather(*(tools.fetch(key, wait) for key, wait in (("a", 0.02), ("b", 0.01), ("c", 0.0))))

    recording, replaying = Tools(), Tools()
    async with tc.record(file, ["fetch"]):
        recorded = await program(recording)
    async with tc.replay(file):
        assert await program(replaying) == recorded == [{"of": "a"}, {"of": "b"}, {"of": "c"}]
    assert replaying.bodies == []


async def test_a_mismatch_in_a_task_fails_the_block(file):
    tools = Tools()
    async with tc.record(file, ["fetch"]):
        await tools.fetch("a", 0.0)
    with pytest.raises(tc.CassetteMismatch) as caught:
        async with tc.replay(file):
            with pytest.raises(tc.CassetteMismatch):
                await tools.fetch("z", 0.0)
            with pytest.raises(tc.CassettePoisoned):
                await tools.fetch("a", 0.0)
    assert caught.value.differs == ("$.key",)
    assert tools.bodies == ["a"]


# -- the disk ---------------------------------------------------------------------------------------------------------


async def test_the_loop_is_not_blocked_by_a_slow_disk(store):
    store.sync_seconds = 0.05
    tools = Tools()
    gaps: list[float] = []

    async def tick() -> None:
        last = time.perf_counter()
        while True:
            await anyio.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        async with tc.record(NAME, ["fetch"], store=store):
            for key in "abc":
                await tools.fetch(key, 0.0)
        group.cancel_scope.cancel()
    assert store.syncs == 6
    assert len(gaps) > 30  # 300 ms of syncs
    assert sum(gap > 0.045 for gap in gaps) <= 2  # a busy machine may be late now and then; six syncs are not


async def test_concurrent_calls_share_syncs(store):
    store.sync_seconds = 0.02
    tools = Tools()
    async with tc.record(NAME, ["fetch"], store=store), anyio.create_task_group() as group:
        for n in range(10):
            group.start_soon(tools.fetch, f"k{n}", 0.0)
    assert len(store.kinds()) == 22
    assert store.syncs <= 8


async def test_the_body_starts_after_its_start_is_durable_and_the_caller_goes_on_after_its_result(store):
    give = tc.Registry().wrap(_async_logger(store), name="give")
    async with tc.record(NAME, ["give"], store=store):
        await give()
        store.log.append("back")
    assert store.log[:7] == ["header", "call/start", "sync", "body", "call/result", "sync", "back"]


def _async_logger(store: WatchedStore) -> Callable[[], Coroutine[Any, Any, None]]:
    async def body() -> None:
        store.log.append("body")

    return body


async def test_a_failed_sync_reaches_everybody_who_waits_and_no_body_runs(store):
    tools = Tools()
    store.fail_sync = True
    found: list[str] = []

    async def one(key: str) -> None:
        try:
            await tools.fetch(key, 0.0)
        except tc.StoreError as error:
            found.append(str(error.errno_name))

    with pytest.raises(tc.StoreError):
        async with tc.record(NAME, ["fetch"], store=store), anyio.create_task_group() as group:
            for key in "abc":
                group.start_soon(one, key)
    assert found == ["EIO"] * 3
    assert tools.bodies == []


async def test_a_task_that_waits_for_the_disk_when_the_session_ends_is_let_go(store):
    store.sync_seconds = 0.1
    tools = Tools()
    found: list[object] = []

    async def leaked() -> None:
        found.append(await tools.fetch("a", 0.0))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            async with tc.record(NAME, ["fetch"], store=store, sync="call") as session:
                group.start_soon(leaked)
                await until(lambda: "call/result" in store.log)
    assert found == [{"of": "a"}]
    assert session.verdict is not None
    assert session.verdict.outcome == "published"


# -- cancellation while recording -------------------------------------------------------------------------------------


async def test_cancelled_before_entry_takes_no_place(file):
    tools = Tools()
    async with tc.record(file, ["fetch"]):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await tools.fetch("never", 0.0)
        assert scope.cancelled_caught
        await tools.fetch("a", 0.0)
    assert tools.bodies == ["a"]
    assert [call.args for call in tc.read_cassette(file)] == [b'{"key":"a","seconds":0.0}']
    async with tc.replay(file):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await tools.fetch("never", 0.0)
        assert await tools.fetch("a", 0.0) == {"of": "a"}
    assert tools.bodies == ["a"]


async def test_cancelled_between_entry_and_body(store):
    store.sync_seconds = 0.1
    tools = Tools()
    async with tc.record(NAME, ["fetch"], store=store):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(tools.fetch, "never", 0.0)
                await until(lambda: "call/start" in store.log)
                scope.cancel()
    assert scope.cancelled_caught
    assert tools.bodies == []
    result = store.lines()[2]
    assert (result["outcome"], result["phase"]) == ("cancelled", "before_body")
    assert "error" not in result
    async with tc.replay(NAME, store=store):
        with anyio.move_on_after(0.02) as scope:
            await tools.fetch("never", 0.0)
    assert scope.cancelled_caught
    assert tools.bodies == []


async def test_cancelled_in_flight_by_a_scope(file):
    tools = Tools()
    async with tc.record(file, ["hang"]):
        with anyio.move_on_after(0.05) as scope:
            await tools.hang()
        assert scope.cancelled_caught
    (call,) = tc.read_cassette(file)
    assert (call.outcome, call.phase, call.error) == ("cancelled", None, None)


async def replay_hang(file: Path, **options: Any) -> tuple[Tools, tc.Replayer]:
    """A replay whose program cancels as the recorded one did."""
    tools = Tools()
    session = tc.replay(file, **options)
    async with session:
        with anyio.move_on_after(0.05) as scope:
            await tools.hang()
        assert scope.cancelled_caught
    return tools, session


async def recorded_hang(file: Path) -> Path:
    async with tc.record(file, ["hang"]):
        with anyio.move_on_after(0.02):
            await Tools().hang()
    return file


async def test_a_recorded_cancellation_waits_for_the_programs_own(file):
    tools, session = await replay_hang(await recorded_hang(file))
    assert tools.bodies == []
    assert session.verdict is not None
    assert (session.verdict.ok, session.verdict.calls) == (True, 1)


async def test_where_none_comes_the_call_says_so(file):
    await recorded_hang(file)
    tools = Tools()
    began = time.perf_counter()
    async with tc.replay(file, stall_after=0.05):
        with pytest.raises(tc.ToolCancelled) as caught:
            await tools.hang()
    assert caught.value.tool == "hang"
    assert 0.05 <= time.perf_counter() - began < 3
    assert tools.bodies == []


async def test_cancelled_raise(file):
    await recorded_hang(file)
    tools = Tools()
    async with tc.replay(file, cancelled="raise", stall_after=60.0):
        with anyio.fail_after(5), pytest.raises(tc.ToolCancelled):
            await tools.hang()
        assert tools.bodies == []


async def test_an_exception_of_a_sibling_cancels_and_keeps_its_place(store):
    tools = Tools()
    give = tc.Registry().wrap(_gives_object, name="give")

    async def after_hang_began() -> None:
        await until(lambda: tools.began == 1)
        await give()

    with pytest.raises(ExceptionGroup) as caught:
        async with tc.record(NAME, ["hang", "give"], store=store):
            async with anyio.create_task_group() as group:
                group.start_soon(tools.hang)
                group.start_soon(after_hang_began)
    # The sibling was cancelled: it must not raise our error a second time in place of its cancellation.
    assert [type(error) for error in caught.value.exceptions] == [tc.UnrecordableValue]
    assert store.kinds(partial=True) == ["header", "call/start", "call/start"]


async def _gives_object() -> object:
    return object()


@only_asyncio
async def test_native_cancel_in_flight(file):
    tools = Tools()
    async with tc.record(file, ["hang"]):
        task = asyncio.ensure_future(tools.hang())
        await until(lambda: tools.began == 1)
        task.cancel("why not")
        with pytest.raises(asyncio.CancelledError, match="why not"):
            await task
    assert tc.read_cassette(file).outcome(0).outcome == "cancelled"
    assert b"why not" not in file.read_bytes()


@only_asyncio
async def test_native_cancel_while_the_start_is_being_synced(store):
    store.sync_seconds = 0.1
    tools = Tools()
    async with tc.record(NAME, ["fetch"], store=store):
        task = asyncio.ensure_future(tools.fetch("never", 0.0))
        await until(lambda: "call/start" in store.log)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert tools.bodies == []
    assert store.lines()[2]["phase"] == "before_body"


@only_asyncio
async def test_native_cancel_while_the_result_is_being_synced(store):
    store.sync_seconds = 0.1
    tools = Tools()
    async with tc.record(NAME, ["fetch"], store=store):
        task = asyncio.ensure_future(tools.fetch("a", 0.0))
        await until(lambda: "call/result" in store.log)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.005)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert store.log[-1] == "sync"  # the result was durable before the caller heard of the cancellation
    assert store.lines()[2]["outcome"] == "ok"


@only_asyncio
async def test_wait_for(file):
    tools = Tools()
    async with tc.record(file, ["hang"]):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(tools.hang(), 0.05)
    replaying = Tools()
    async with tc.replay(file):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(replaying.hang(), 0.05)
    assert replaying.bodies == []


@only_asyncio
async def test_timeout_while_the_start_is_being_synced_is_still_a_timeout(store):
    store.sync_seconds = 0.1
    tools = Tools()
    async with tc.record(NAME, ["fetch"], store=store):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await tools.fetch("never", 0.0)
    assert store.lines()[2]["phase"] == "before_body"


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_trio_scope(file):
    import trio

    tools = Tools()
    async with tc.record(file, ["hang"]):
        with trio.move_on_after(0.02) as scope:
            await tools.hang()
        assert scope.cancelled_caught
    replaying = Tools()
    async with tc.replay(file):
        with trio.move_on_after(0.02) as scope:
            await replaying.hang()
        assert scope.cancelled_caught
    assert replaying.bodies == []


# -- opening and leaving ----------------------------------------------------------------------------------------------


class SlowToOpen(WatchedStore):
    def create(self, name: str, **options: Any) -> Any:
        time.sleep(0.1)
        self.log.append("created")
        return super().create(name, **options)


@only_asyncio
async def test_cancelled_while_opening_leaves_no_live_partial():
    store = SlowToOpen()

    async def program() -> None:
        async with tc.record(NAME, ["fetch"], store=store):
            raise AssertionError

    task = asyncio.ensure_future(program())
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "created" in store.log
    with tc.record(NAME, ["fetch"], store=store, stale="set-aside", allow_empty=True):
        pass


async def test_a_scope_cancelled_while_opening_leaves_no_live_partial():
    store = SlowToOpen()
    with anyio.move_on_after(0.02) as scope:
        async with tc.record(NAME, ["fetch"], store=store):
            await anyio.lowlevel.checkpoint()
            raise AssertionError
    assert scope.cancelled_caught
    with tc.record(NAME, ["fetch"], store=store, stale="set-aside", allow_empty=True):
        pass


async def test_a_cancelled_block_ends_its_recording(file):
    tools = Tools()
    session = tc.record(file, ["fetch"])
    with anyio.CancelScope() as scope:
        async with session:
            await tools.fetch("a", 0.0)
            scope.cancel()
            await anyio.sleep(1)
    assert scope.cancelled_caught
    assert session.verdict is not None
    assert getattr(session.verdict.error, "reason", None) == "block_raised"
    assert tc.verify(f"{file}.partial").state == "open"
