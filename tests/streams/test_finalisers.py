"""Streams that are dropped: garbage collection ends them at any moment, and an event loop a few cycles later."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import sys
import threading

import anyio
import pytest

import toolcassette as tc
from tests.cases.programs import dead, live, record
from tests.engine.doubles import NAME
from tests.streams.helpers import aboth, both, end, ends

# trio says so for any asynchronous generator that is dropped
dropped_on_trio = pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning")


@pytest.fixture(autouse=True)
def _quiet():
    """Nothing may be printed by a finaliser."""
    heard = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda raised: heard.append(raised.exc_value)
    yield
    gc.collect()
    sys.unraisablehook = hook
    assert heard == []


def numbers(count=5):
    yield from range(count)


def returned(count=5):
    return iter(range(count))


def cycle(stream):
    """Keep a stream in a reference cycle: only the collector can end it."""
    knot: list[object] = [stream]
    knot.append(knot)


@pytest.mark.parametrize("fn", [numbers, returned])
def test_ended_by_the_collector(file, fn):
    def program(make):
        stream = make(fn)()
        seen = [next(stream)]
        cycle(stream)
        del stream
        gc.collect()
        return seen

    both(file, program)
    assert end(file).outcome == "left_early"


class Finaliser:
    """Drops a stream when the store is in the middle of an append, or of a sync."""

    def __init__(self, streams):
        self.streams = streams

    def __call__(self):
        if self.streams:
            self.streams.pop()


@pytest.mark.parametrize("fn", [numbers, returned])
def test_in_the_recorders_own_critical_section(store, fn):
    """The end of a stream that is dropped while a frame is being written comes after that frame, and is not lost."""
    tool, plain = live(fn), live(lambda: "p", name="plain")
    with tc.record(NAME, ["*"], store=store) as session:
        streams = [tool(), tool()]
        for stream in streams:
            next(stream)
        del stream
        store.during_append = Finaliser(streams)
        plain()
    assert session.verdict is not None
    assert session.verdict.outcome == "published"
    lines = store.lines()
    assert [line["outcome"] for line in lines if line["kind"] == "call/result"] == ["left_early", "left_early", "ok"]
    assert [line["kind"] for line in lines[5:8]] == ["call/start", "call/result", "call/result"]


def test_in_the_very_last_frame(store):
    tool, plain = live(numbers), live(lambda: "p", name="plain")
    with tc.record(NAME, ["*"], store=store):
        streams = [tool()]
        next(streams[0])
        number = len(store.log)

        def at_the_result():
            if "call/start" in store.log[number:]:
                Finaliser(streams)()

        store.during_append = at_the_result
        plain()
    assert store.kinds()[-3:] == ["call/result", "call/result", "complete"]


@pytest.mark.parametrize("fn", [numbers, returned])
def test_in_the_middle_of_a_sync(store, fn):
    """A finaliser that ends a stream while its own thread holds the lock of the disk must not wait for that lock."""
    tool, plain = live(fn), live(lambda: "p", name="plain")

    def run():
        with tc.record(NAME, ["*"], store=store):
            streams = [tool()]
            next(streams[0])
            store.during_sync = Finaliser(streams)
            plain()
        done.append(True)

    done: list[bool] = []
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    assert done == [True]
    assert [line["outcome"] for line in store.lines() if line["kind"] == "call/result"] == ["left_early", "ok"]


def test_in_the_replayers_own_critical_section(file):
    """The collector may run whenever the replayer takes a step; a stream it ends there is judged when that is whole."""

    def plain(n):
        return n

    def program(make):
        stream = make(numbers)()
        seen = [next(stream)]
        stream.close()
        tool = make(plain)
        return [*seen, tool(1), tool(2)]

    record(file, lambda: program(live))
    tool = dead(plain)
    with tc.replay(file, completion="immediate") as session:
        streams: list[object] = []
        stream = dead(numbers)()
        next(stream)
        streams.append(stream)
        del stream
        played = session._played

        def step():
            streams.clear()  # within a step of the replayer
            return played.order.cursor(())

        played._step(step)
        assert [tool(1), tool(2)] == [1, 2]
    assert session.verdict is not None
    assert session.verdict.ok


# -- event loops ------------------------------------------------------------------------------------------------------


def atools(log):
    async def made(count=5):
        try:
            for number in range(count):
                yield number
        finally:
            await anyio.lowlevel.cancel_shielded_checkpoint()
            log.append("finally")

    async def by_coroutine(count=5):
        return made(count)

    return made, by_coroutine


async def break_at_one(stream):
    seen = []
    async for number in stream:
        seen.append(number)
        if number == 1:
            break
    return seen


@dropped_on_trio
@pytest.mark.anyio
async def test_break_right_before_the_session_ends(file):
    """The loop closes the abandoned generator a cycle or two later: leaving waits for that."""
    log: list[str] = []
    made, _ = atools(log)
    async with tc.record(file, ["*"]):
        seen = await break_at_one(live(made)())
    assert seen == [0, 1]
    assert log == ["finally"]
    assert end(file).outcome == "left_early"
    async with tc.replay(file):
        assert await break_at_one(dead(made)()) == [0, 1]


@dropped_on_trio
@pytest.mark.anyio
async def test_break_right_before_the_session_ends_of_a_returned_stream(file):
    log: list[str] = []
    _, by_coroutine = atools(log)
    async with tc.record(file, ["*"]):
        seen = await break_at_one(await live(by_coroutine)())
    assert seen == [0, 1]
    assert end(file).outcome == "left_early"
    async with tc.replay(file):
        assert await break_at_one(await dead(by_coroutine)()) == [0, 1]


@dropped_on_trio
@pytest.mark.anyio
async def test_break_elsewhere_than_recorded_right_before_the_session_ends(file):
    made, _ = atools([])
    async with tc.record(file, ["*"]):
        assert [number async for number in live(made)()] == [0, 1, 2, 3, 4]
    with pytest.raises(tc.CassetteMismatch) as caught:
        async with tc.replay(file):
            await break_at_one(dead(made)())
    assert caught.value.reason == "stream_differs"


@dropped_on_trio
@pytest.mark.anyio
async def test_break_and_then_other_calls(file):
    made, _ = atools([])

    async def plain(n):
        return n

    async def program(make):
        seen = await break_at_one(make(made)())
        return [*seen, await make(plain)(1), await break_at_one(make(made)(2)), await make(plain)(2)]

    await aboth(file, program)
    assert [e.outcome for e in ends(file)] == ["left_early", "ok", "left_early", "ok"]


@pytest.mark.anyio
async def test_a_stream_that_is_held_is_not_waited_for(file):
    made, _ = atools([])
    with anyio.fail_after(5):
        with pytest.raises(tc.NotPublished) as caught:
            async with tc.record(file, ["*"]):
                stream = live(made)()
                await anext(stream)
        assert caught.value.reason == "open_call"
    with pytest.raises(tc.SessionClosed):
        await anext(stream)
    await stream.aclose()


@pytest.mark.anyio
async def test_leaving_in_a_cancelled_scope_ends_the_session(file):
    made, _ = atools([])
    session = tc.record(file, ["*"])
    with anyio.CancelScope() as scope:
        with pytest.raises(tc.NotPublished):
            async with session:
                stream = live(made)()
                await anext(stream)
                scope.cancel()
        await anyio.sleep(60)
    assert scope.cancelled_caught
    assert session.verdict is not None
    await stream.aclose()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
async def test_a_native_cancellation_while_finalisers_run_is_not_lost(file):
    made, _ = atools([])
    session = tc.record(file, ["*"])
    kept = []

    async def program():
        async with session:
            kept.append(live(made)())
            await anext(kept[0])
            asyncio.get_running_loop().call_soon(task.cancel)  # strikes in the first of the cycles

    task = asyncio.ensure_future(program())
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert "no end" in caught.value.__notes__[0]
    assert session.verdict is not None
    assert session.verdict.outcome == "kept"
    await kept[0].aclose()


def test_a_loop_that_closes_its_generators_at_the_end(file):
    """``asyncio.run`` closes what is left when its main function is done; the session is over by then."""
    kept, closed = [], []

    async def made():
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    async def main():
        with contextlib.suppress(tc.NotPublished):
            async with tc.record(file, ["*"]):
                kept.append(live(made)())
                await anext(kept[0])

    problems: list[object] = []

    async def run():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
        await main()

    asyncio.run(run())
    assert (problems, closed) == ([], [True])


def test_a_stream_that_outlives_its_loop(file):
    """Dropped when the loop is closed: an asynchronous iterator that a tool returned ends at once, without a loop."""

    class Counter:
        def __init__(self):
            self.at = 0

        def __aiter__(self):
            return self

        async def __anext__(self):
            self.at += 1
            return self.at

    async def counting():
        return Counter()

    def program(make):
        async def first():
            stream = await make(counting)()
            return stream, [await anext(stream), await anext(stream)]

        stream, seen = asyncio.run(first())
        del stream
        return seen

    both(file, program)
    assert end(file).outcome == "left_early"

    def after_the_loop(make):
        async def first():
            stream = await make(counting)()
            return stream, await anext(stream)

        stream, seen = asyncio.run(first())
        return [seen, asyncio.run(second(stream))]

    async def second(stream):
        return await anext(stream)

    both(file.with_name("y.cassette.jsonl"), after_the_loop)


# -- threads and tasks ------------------------------------------------------------------------------------------------


def test_a_stream_read_in_another_thread_than_its_call(file):
    def program(make):
        seen: list[int] = []
        stream = make(returned)(3)
        thread = threading.Thread(target=lambda: seen.extend(stream))
        thread.start()
        thread.join()
        return seen

    assert both(file, program) == [0, 1, 2]
    assert end(file).outcome == "ok"


def test_a_generator_that_changes_threads(file):
    def program(make):
        stream = make(numbers)(3)
        seen = [next(stream)]
        thread = threading.Thread(target=lambda: seen.extend(stream))
        thread.start()
        thread.join()
        return seen

    assert both(file, program) == [0, 1, 2]


@pytest.mark.anyio
async def test_a_stream_read_in_another_task_than_its_call(file):
    made, by_coroutine = atools([])

    async def program(make):
        seen: list[int] = []

        async def reads(stream):
            seen.extend([number async for number in stream])

        generator = make(made)(3)
        seen.append(await anext(generator))
        async with anyio.create_task_group() as group:
            group.start_soon(reads, generator)
        async with anyio.create_task_group() as group:
            group.start_soon(reads, await make(by_coroutine)(2))
        return seen

    assert await aboth(file, program) == [0, 1, 2, 0, 1]


def test_a_stream_outside_the_context_of_its_session(file):
    """What was begun in a session stays its own, wherever it is read."""
    outside = contextvars.copy_context()

    def program(make):
        return outside.copy().run(list, make(returned)(2))

    assert both(file, program) == [0, 1]
