"""Cancellation of streams and calls: it is an outcome, and the replay takes the recorded way."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading

import anyio
import pytest

import toolcassette as tc
from tests.cases.programs import dead, live
from tests.engine.doubles import NAME
from tests.streams.helpers import aboth, adiffers, end, reason, until

pytestmark = pytest.mark.anyio
only_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])
dropped_on_trio = pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning")


def outcomes(file):
    return [(call.tool, call.outcome) for call in tc.read_cassette(file)]


# -- streams ----------------------------------------------------------------------------------------------------------


def hanging(log, items=2):
    async def made():
        try:
            for number in range(items):
                yield number
            await anyio.sleep(60)
        finally:
            log.append("finally")

    return made


async def read_until_cancelled(make, fn, seconds=0.1):
    seen: list[object] = []
    with anyio.move_on_after(seconds) as scope:
        async for number in make(fn)():
            seen += [number]
        seen += ["end"]
    return seen, scope.cancelled_caught


async def test_a_stream_that_is_cancelled(file):
    log: list[str] = []
    fn = hanging(log)
    assert await aboth(file, lambda make: read_until_cancelled(make, fn), stall_after=30.0) == ([0, 1], True)
    assert log == ["finally"]
    assert (end(file).outcome, end(file).items) == ("cancelled", [0, 1])
    assert b"Cancel" not in file.read_bytes()  # the kind, never the message


async def test_a_stream_that_is_cancelled_before_its_first_item(file):
    fn = hanging([], items=0)
    assert await aboth(file, lambda make: read_until_cancelled(make, fn), stall_after=30.0) == ([], True)
    assert (end(file).outcome, end(file).items) == ("cancelled", [])


async def test_where_no_cancellation_comes_the_stream_says_so(file):
    fn = hanging([])
    async with tc.record(file, ["*"], sync="none"):
        await read_until_cancelled(live, fn)
    for options in ({"stall_after": 0.05}, {"stall_after": 60.0, "cancelled": "raise"}):
        with anyio.fail_after(5):
            async with tc.replay(file, **options):
                stream = dead(fn)()
                assert [await anext(stream), await anext(stream)] == [0, 1]
                with pytest.raises(tc.ToolCancelled):
                    await anext(stream)
                with pytest.raises(StopAsyncIteration):
                    await anext(stream)


async def test_a_cancelled_stream_that_is_left_at_the_same_item(file):
    """The program's own cancellation may strike a moment earlier than the recorded one: between two items."""
    fn = hanging([])
    async with tc.record(file, ["*"], sync="none"):
        await read_until_cancelled(live, fn)
    async with tc.replay(file):
        with anyio.move_on_after(0.05) as scope:
            async with contextlib.aclosing(dead(fn)()) as stream:
                assert [await anext(stream), await anext(stream)] == [0, 1]
                await anyio.sleep(60)
        assert scope.cancelled_caught

    async def leaves_at(make, count):
        async with contextlib.aclosing(make(fn)()) as stream:
            for _ in range(count):
                await anext(stream)

    await adiffers(file, lambda make: leaves_at(make, 1))


async def test_a_source_that_swallows_the_cancellation(file):
    async def stubborn():
        try:
            await anyio.sleep(60)
        except anyio.get_cancelled_exc_class():
            yield "caught"

    async def program(make):
        seen = []
        with anyio.move_on_after(0.05):
            async with contextlib.aclosing(make(stubborn)()) as stream:
                seen.append(await anext(stream))
        return seen

    # Nothing waits in the replay: what the source made of the cancellation is what its consumer saw.
    async with tc.record(file, ["*"], sync="none"):
        assert await program(live) == ["caught"]
    async with tc.replay(file):
        assert await program(dead) == ["caught"]


@dropped_on_trio
async def test_cancelled_in_the_consumers_own_work(file):
    log: list[str] = []
    fn = hanging(log)

    async def program(make):
        seen = []
        with anyio.move_on_after(0.1) as scope:
            async for number in make(fn)():
                seen.append(number)
                await anyio.sleep(60)
        return seen, scope.cancelled_caught

    async with tc.record(file, ["*"], sync="none"):
        assert await program(live) == ([0], True)
    assert (end(file).outcome, end(file).items) == ("left_early", [0])
    assert log == ["finally"]
    async with tc.replay(file):
        assert await program(dead) == ([0], True)


async def test_closing_is_cancelled(file):
    """The consumer stopped; that the source's own cleaning up was cut short is no other end."""

    async def slow_to_close():
        try:
            yield 1
        finally:
            await anyio.sleep(60)

    async def program(make):
        with anyio.move_on_after(0.1) as scope:
            stream = make(slow_to_close)()
            await anext(stream)
            await stream.aclose()
            await anyio.sleep(60)
        return scope.cancelled_caught

    assert await aboth(file, program) is True
    assert end(file).outcome == "left_early"


@only_asyncio
async def test_an_item_that_was_being_made_durable(store):
    """A native cancellation strikes while the disk is busy: the item is on it, and the consumer never got it."""
    store.sync_seconds = 0.15
    seen: list[int] = []

    async def numbers():
        yield 0
        yield 1
        yield 2

    async def program(make):
        async for number in make(numbers)():
            seen.insert(len(seen), number)

    async with tc.record(NAME, ["*"], store=store):
        task = asyncio.ensure_future(program(live))
        await until(lambda: store.log.count("call/chunk") == 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert seen == [0]
    result = store.lines()[-2]
    assert (result["outcome"], result["chunks"], result["meta"]["end"]) == ("cancelled", 2, "unseen")
    seen.clear()
    async with tc.replay(NAME, store=store):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(program(dead), 0.05)
    assert seen == [0]


async def test_two_streams_and_a_failing_sibling(file):
    """The sibling's failure cancels the reader, in both modes at the same item."""
    fn = hanging([])

    async def program(make):
        seen: list[object] = []
        reader, failing = make(fn), make(fails)
        ready = anyio.Event()

        async def reads():
            async for number in reader():
                seen.append(number)
                if number == 1:
                    ready.set()

        async def sibling():
            await ready.wait()
            await failing()

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(reads)
                group.start_soon(sibling)
        except BaseExceptionGroup as group:
            seen.append([type(error).__name__ for error in group.exceptions])
        return seen

    assert await aboth(file, program, stall_after=30.0) == [0, 1, ["KeyError"]]
    assert sorted(outcomes(file)) == [("fails", "error"), ("made", "cancelled")]


async def fails():
    raise KeyError("sibling")


# -- calls ------------------------------------------------------------------------------------------------------------


async def slow(n):
    await anyio.sleep(60 if n == "slow" else 0)
    return n


async def test_cancelled_before_begin_takes_nothing(file):
    async def program(make):
        tool, stream = make(slow), make(hanging([]))
        with anyio.CancelScope() as scope:
            scope.cancel()
            await tool("never")
        with anyio.CancelScope() as again:
            again.cancel()
            await anext(stream())
        return scope.cancelled_caught, again.cancelled_caught, await tool("quick")

    assert await aboth(file, program) == (True, True, "quick")
    assert outcomes(file) == [("slow", "ok")]


@pytest.mark.parametrize("kind", ["call", "stream"])
async def test_cancelled_before_the_body(store, kind):
    """Between the start frame and the body: the body is not run, in either mode."""
    store.sync_seconds = 0.1
    ran: list[str] = []

    async def call():
        ran.append("call")

    async def stream():
        ran.append("stream")
        yield 1

    fn = {"call": call, "stream": stream}[kind]

    async def once(tool):
        await (tool() if kind == "call" else anext(tool()))

    async with tc.record(NAME, ["*"], store=store):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(once, live(fn))
                await until(lambda: "call/start" in store.log)
                scope.cancel()
    assert scope.cancelled_caught
    result = store.lines()[2]
    assert (result["outcome"], result["phase"], "chunks" in result) == ("cancelled", "before_body", False)
    async with tc.replay(NAME, store=store, stall_after=30.0):
        with anyio.move_on_after(0.02) as scope:
            await once(dead(fn))
    assert scope.cancelled_caught
    assert ran == []


async def test_a_body_that_swallows_the_cancellation(file):
    """A value or another error after a cancellation is what the caller saw: that is the outcome."""

    async def value():
        try:
            await anyio.sleep(60)
        except anyio.get_cancelled_exc_class():
            return "saved"

    async def other():
        try:
            await anyio.sleep(60)
        except anyio.get_cancelled_exc_class():
            raise ValueError("instead") from None

    async def program(make):
        seen = []
        with anyio.move_on_after(0.05):
            seen.append(await make(value)())
        try:
            with anyio.move_on_after(0.05):
                await make(other)()
        except ValueError as error:
            seen.append(error.args)
        return seen

    assert await aboth(file, program) == ["saved", ("instead",)]
    assert outcomes(file) == [("value", "ok"), ("other", "error")]


async def test_timeouts_outside(file):
    async def program(make):
        tool = make(slow)
        seen: list[object] = []
        with anyio.move_on_after(0.05) as scope:
            await tool("slow")
        seen.append(scope.cancelled_caught)
        try:
            with anyio.fail_after(0.05):
                await tool("slow")
        except TimeoutError:
            seen.append("timeout")
        return [*seen, await tool("quick")]

    assert await aboth(file, program, stall_after=30.0) == [True, "timeout", "quick"]
    assert [outcome for _, outcome in outcomes(file)] == ["cancelled", "cancelled", "ok"]


@only_asyncio
async def test_timeouts_outside_on_asyncio(file):
    async def program(make):
        tool, seen = make(slow), []
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(tool("slow"), 0.05)
        try:
            async with asyncio.timeout(0.05):
                await tool("slow")
        except TimeoutError:
            seen.append("timeout")
        seen.append(await asyncio.wait_for(tool("quick"), 5))
        return seen

    assert await aboth(file, program, stall_after=30.0) == ["timeout", "quick"]


async def test_a_timeout_inside_the_body_is_an_error_and_replays_at_once(file):
    async def impatient():
        with anyio.fail_after(0.05):
            await anyio.sleep(60)

    async def program(make):
        with pytest.raises(TimeoutError):
            await make(impatient)()

    await aboth(file, program)
    assert outcomes(file) == [("impatient", "error")]


async def test_the_first_completed_wins(file):
    """A race whose loser is cancelled: the replay has the same winner, and the same loser."""

    async def program(make):
        tool, winners = make(slow), []

        async with anyio.create_task_group() as group:

            async def runs(n):
                winners.append(await tool(n))
                group.cancel_scope.cancel()

            group.start_soon(runs, "slow")
            await anyio.wait_all_tasks_blocked()
            group.start_soon(runs, "quick")
        return winners

    async with tc.record(file, ["*"], order="causal"):
        assert await program(live) == ["quick"]
    async with tc.replay(file, stall_after=30.0):
        assert await program(dead) == ["quick"]
    assert sorted(outcome for _, outcome in outcomes(file)) == ["cancelled", "ok"]


@only_asyncio
async def test_the_first_completed_wins_on_asyncio(file):
    async def program(make):
        tool = make(slow)
        tasks = [asyncio.ensure_future(tool(n)) for n in ("slow", "quick")]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.wait(pending)
        return [task.result() for task in done], [task.cancelled() for task in pending]

    assert await aboth(file, program, stall_after=30.0) == (["quick"], [True])


async def test_a_failing_sibling_cancels(file):
    async def program(make):
        tool, failing = make(slow), make(fails)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(tool, "slow")
                await anyio.wait_all_tasks_blocked()
                group.start_soon(failing)
        except BaseExceptionGroup as found:
            return [type(error).__name__ for error in found.exceptions]

    async with tc.record(file, ["*"], order="causal"):
        assert await program(live) == ["KeyError"]
    async with tc.replay(file, stall_after=30.0):
        assert await program(dead) == ["KeyError"]
    assert sorted(outcomes(file)) == [("fails", "error"), ("slow", "cancelled")]


@only_asyncio
async def test_gather_with_a_failing_sibling(file):
    """``gather`` does not cancel the others: they go on, and are awaited here."""

    async def program(make):
        tool, failing = make(slow), make(fails)
        other = asyncio.ensure_future(tool("quick"))
        with pytest.raises(KeyError):
            await asyncio.gather(other, failing())
        return await other

    assert await aboth(file, program) == "quick"


async def test_the_write_is_shielded(store):
    """A cancelled call's result is durable before the cancellation goes on, however often it is asked for."""
    tool = live(slow)
    async with tc.record(NAME, ["*"], store=store):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(tool, "slow")
                await until(lambda: store.log[-1] == "sync")
                await anyio.wait_all_tasks_blocked()
                store.sync_seconds = 0.05
                scope.cancel()
        assert store.log[-2:] == ["call/result", "sync"]
    assert store.lines()[2]["outcome"] == "cancelled"


@only_asyncio
async def test_native_cancellations_while_the_cancelled_result_is_being_synced(store):
    tool = live(slow)
    async with tc.record(NAME, ["*"], store=store):
        task = asyncio.ensure_future(tool("slow"))
        await until(lambda: "sync" in store.log)
        await anyio.wait_all_tasks_blocked()
        store.sync_seconds = 0.1
        task.cancel()
        await until(lambda: "call/result" in store.log)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert store.log[-1] == "sync"
    assert store.lines()[2]["outcome"] == "cancelled"


@only_asyncio
async def test_cancelled_while_the_result_is_being_synced(store):
    """The body had returned: that is the outcome. The caller hears the cancellation, here and in a replay."""
    store.sync_seconds = 0.1
    tool = live(slow)
    async with tc.record(NAME, ["*"], store=store):
        task = asyncio.ensure_future(tool("quick"))
        await until(lambda: "call/result" in store.log)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert store.lines()[2]["outcome"] == "ok"
    async with tc.replay(NAME, store=store):
        again = asyncio.ensure_future(dead(slow)("quick"))
        await asyncio.sleep(0)
        again.cancel()
        with pytest.raises(asyncio.CancelledError):
            await again
        # It took its record all the same, or nothing: a program that goes on asks once more, and is told.
        with contextlib.suppress(tc.CassetteMismatch):
            await dead(slow)("quick")


@only_asyncio
async def test_a_task_that_is_destroyed_with_its_loop_leaves_its_call_open(file):
    """What a closed loop throws away has no outcome."""
    session = tc.record(file, ["*"])
    loop = asyncio.new_event_loop()
    found: list[object] = []

    def other_loop():
        async def program():
            task = asyncio.ensure_future(live(slow)("slow"))
            await asyncio.sleep(0.05)
            return task

        loop.set_exception_handler(lambda _, context: found.append(context["message"]))
        task = loop.run_until_complete(program())
        loop.close()
        del task

    with pytest.raises(tc.NotPublished) as caught, session:
        thread = threading.Thread(target=other_loop)
        thread.start()
        thread.join()
        gc.collect()
    assert reason(caught.value) == "open_call"
    assert found == ["Task was destroyed but it is pending!"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
@only_asyncio
async def test_what_is_no_outcome_leaves_the_call_open(file, kind):
    async def raises():
        raise kind

    with pytest.raises(tc.NotPublished) as caught:
        async with tc.record(file, ["*"]):
            with contextlib.suppress(kind):
                await live(raises)()
    assert reason(caught.value) == "open_call"
    assert tc.verify(f"{file}.partial").state == "open"


@only_asyncio
async def test_a_cancelled_error_out_of_a_body_that_nobody_cancelled(file):
    """A body may await a task that somebody else cancelled: to its caller that is a cancellation like any other."""

    async def awaits_a_cancelled_task():
        inner = asyncio.ensure_future(asyncio.sleep(60))
        inner.cancel()
        await inner

    async with tc.record(file, ["*"]):
        with pytest.raises(asyncio.CancelledError):
            await live(awaits_a_cancelled_task)()
    assert outcomes(file) == [("awaits_a_cancelled_task", "cancelled")]
    async with tc.replay(file, cancelled="raise"):
        with pytest.raises(tc.ToolCancelled):
            await dead(awaits_a_cancelled_task)()
