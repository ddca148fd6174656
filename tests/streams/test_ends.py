"""The four ends of a stream: what the recording says, that a replay ends the same way, and that no other way passes."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import warnings

import anyio.lowlevel
import pytest

import toolcassette as tc
from tests.cases.programs import dead, live, record, refused, replay
from tests.streams.helpers import End, aboth, adiffers, both, differs, end, reason, refusal

# -- read as it comes -------------------------------------------------------------------------------------------------


def test_each_item_is_durable_before_it_is_seen_and_seen_before_the_next_is_made(store):
    def numbers():
        for number in range(2):
            store.log.append(f"made {number}")
            yield number
        store.log.append("done")

    with tc.record("x.cassette.jsonl", ["*"], store=store):
        for number in live(numbers)():
            store.log.append(f"seen {number}")
    first = ["call/start", "sync", "made 0", "call/chunk", "sync", "seen 0"]
    second = ["made 1", "call/chunk", "sync", "seen 1"]
    assert store.log[1:-1] == [*first, *second, "done", "call/result", "sync"]


@pytest.mark.anyio
async def test_each_item_is_durable_before_it_is_seen_async(store):
    async def numbers():
        for number in range(2):
            store.log.append(f"made {number}")
            yield number

    async with tc.record("x.cassette.jsonl", ["*"], store=store):
        async for number in live(numbers)():
            store.log.append(f"seen {number}")
    first = ["call/start", "sync", "made 0", "call/chunk", "sync", "seen 0"]
    second = ["made 1", "call/chunk", "sync", "seen 1"]
    assert store.log[1:-1] == [*first, *second, "call/result", "sync"]


# -- left early: rows 18 and 19, C-21 ---------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_c21_the_consumer_leaves_early(file):
    closed = []

    async def chunks():
        try:
            for i in range(5):
                made.append(i)
                yield i
        finally:
            closed.append(True)

    async def program(tool, last):
        seen = []
        async with contextlib.aclosing(tool()) as stream:
            async for c in stream:
                assert made in ([], list(range(c + 1)))  # chunk 0 is here before chunk 1 is produced
                seen.append(c)
                if c == last:
                    break
        return seen

    made: list[int] = []
    async with tc.record(file, ["*"]):
        assert await program(live(chunks), 1) == [0, 1]
    assert closed == [True]
    assert end(file) == End("left_early", [0, 1], "async_iterator", "")
    made.clear()
    async with tc.replay(file):
        assert await program(dead(chunks), 1) == [0, 1]
    error = await adiffers(file, lambda make: program(make(chunks), 4))
    assert "at item 2" in str(error)
    error = await adiffers(file, lambda make: program(make(chunks), 0))
    assert "at item 1" in str(error)
    assert made == []


def five():
    yield from range(5)


def take(make, count, how="close"):
    """Take some items, then close the stream, or drop it."""
    stream = make(five)()
    seen = [next(stream) for _ in range(count)]
    if how == "close":
        stream.close()
        stream.close()
        with pytest.raises(StopIteration):
            next(stream)
    return seen


@pytest.mark.parametrize("how", ["close", "drop"])
def test_left_early(file, how):
    both(file, lambda make: take(make, 2, how))
    assert end(file) == End("left_early", [0, 1], "iterator", "")
    differs(file, lambda make: take(make, 1, how))
    differs(file, lambda make: refused(lambda: take(make, 3, how)))


def test_reading_past_a_recorded_early_stop_is_no_clean_end(file):
    record(file, lambda: take(live, 2))

    def program(make):
        stream = make(five)()
        assert [next(stream), next(stream)] == [0, 1]
        error = refused(lambda: next(stream))
        assert reason(error) == "stream_differs"
        assert isinstance(refused(lambda: next(make(five)())), tc.CassettePoisoned)

    differs(file, program)


@pytest.mark.parametrize("how", ["close", "drop"])
def test_stopping_where_the_recorded_consumer_read_on(file, how):
    record(file, lambda: list(live(five)()))
    for count in (1, 5):  # also after the last item: the recorded consumer saw the end
        differs(file, functools.partial(take, count=count, how=how))


def test_stopping_at_the_last_item_is_not_reading_to_the_end(file):
    record(file, lambda: take(live, 5))
    assert end(file).outcome == "left_early"
    replay(file, lambda: take(dead, 5))
    differs(file, lambda make: refused(lambda: list(make(five)())))


def test_a_break_in_a_for_loop_is_an_early_stop(file):
    closed = []

    def numbers():
        try:
            yield from range(5)
        finally:
            closed.append(True)

    def program(make):
        for number in make(numbers)():
            if number == 1:
                break
        return number

    both(file, program)
    assert closed == [True]
    assert end(file) == End("left_early", [0, 1], "iterator", "")


def test_what_the_source_does_when_it_is_closed_belongs_to_the_stream(file):
    def numbers():
        try:
            yield 1
        finally:
            raise ValueError("while closing")

    def program(make):
        stream = make(numbers)()
        next(stream)
        with pytest.raises(ValueError) as caught:
            stream.close()
        return caught.value.args

    both(file, program)
    assert end(file) == End("error", [1], "iterator", "closed")


@pytest.mark.anyio
async def test_what_an_async_source_does_when_it_is_closed(file):
    async def numbers():
        try:
            yield 1
        finally:
            raise ValueError("while closing")

    async def program(make):
        stream = make(numbers)()
        await anext(stream)
        with pytest.raises(ValueError) as caught:
            await stream.aclose()
        return caught.value.args

    await aboth(file, program)
    assert end(file) == End("error", [1], "async_iterator", "closed")


# -- raised -----------------------------------------------------------------------------------------------------------


def test_raised_in_the_middle(file):
    def breaks():
        yield 1
        raise KeyError("k")

    def program(make):
        seen, stream = [], make(breaks)()
        with pytest.raises(KeyError) as caught:
            seen.extend(stream)  # extends by nothing: the exception comes first
        with pytest.raises(StopIteration):
            next(stream)
        return caught.value.args

    both(file, program)
    assert end(file) == End("error", [1], "iterator", "")
    differs(file, lambda make: next(make(breaks)()) and None)


def test_raised_before_the_first_item(file):
    def breaks():
        raise OSError(2, "gone")
        yield

    def program(make):
        with pytest.raises(FileNotFoundError) as caught:
            next(make(breaks)())
        return caught.value.args

    both(file, program)
    assert end(file) == End("error", [], "iterator", "")


class Mine(Exception):
    pass


def test_an_undeclared_exception_is_kept_whole_also_where_warnings_are_errors(file):
    def breaks():
        yield 1
        raise Mine("here")

    with tc.record(file, ["*"]):
        stream = live(breaks)()
        next(stream)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="errors="):
                next(stream)
    assert end(file).outcome == "error"
    with pytest.raises(tc.RecordedToolError) as caught:
        replay(file, lambda: list(dead(breaks)()))
    assert caught.value.message == "here"


def test_a_replays_stand_in_inside_a_source_is_the_tools_own(file):
    """A tool that replays something inside raises what that raises: an outcome, and no failure of the recording."""

    def outer():
        yield 1
        raise tc.RecordedToolError("m.Mine", "inner")

    def program(make):
        stream = make(outer)()
        next(stream)
        with pytest.raises(tc.RecordedToolError):
            next(stream)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both(file, program)
    assert end(file).outcome == "error"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_outcome_leaves_the_stream_open(file, kind):
    def breaks():
        yield 1
        raise kind

    session = tc.record(file, ["*"])
    with pytest.raises(tc.NotPublished) as caught, session:
        stream = live(breaks)()
        next(stream)
        with pytest.raises(kind):
            next(stream)
    assert caught.value.reason == "open_call"


# -- thrown into, sent into -------------------------------------------------------------------------------------------


def throwing(make, fn, *error):
    stream = make(fn)()
    seen = [next(stream)]
    try:
        stream.throw(*error)
    except Exception as raised:
        seen.append((type(raised).__name__, raised.args))
    with pytest.raises(StopIteration):
        next(stream)
    return seen


def lets_through():
    yield 1
    yield 2


def turns():
    try:
        yield 1
    except ValueError:
        raise KeyError("turned") from None


def test_thrown_and_let_through(file):
    assert both(file, lambda make: throwing(make, lets_through, ValueError("v"))) == [1, ("ValueError", ("v",))]
    assert end(file) == End("left_early", [1], "iterator", "")


def test_thrown_and_turned_into_another(file):
    assert both(file, lambda make: throwing(make, turns, ValueError("v"))) == [1, ("KeyError", ("turned",))]
    assert end(file) == End("error", [1], "iterator", "thrown")


def test_thrown_in_the_older_ways(file):
    """``contextlib`` of Python 3.11 passes class, value and traceback."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        both(file, lambda make: throwing(make, lets_through, ValueError, ValueError("v"), None))
        both(file.with_name("y.cassette.jsonl"), lambda make: throwing(make, lets_through, ValueError))
        both(file.with_name("z.cassette.jsonl"), lambda make: throwing(make, lets_through, ValueError, "v"))


def test_a_wrapped_generator_as_a_context_manager(file):
    """``contextmanager`` around a tool: an exception of the block is thrown into it."""

    def one():
        yield 1

    def program(make):
        seen = []
        with contextlib.suppress(LookupError), contextlib.contextmanager(make(one))() as number:
            seen.append(number)
            raise LookupError
        return seen

    assert both(file, program) == [1]


def test_a_source_that_answers_what_is_thrown_is_refused(file):
    def answers():
        try:
            yield 1
        except ValueError:
            yield "caught"

    def swallows():
        with contextlib.suppress(ValueError):
            yield 1

    for fn in (answers, swallows):
        error = refusal(file, functools.partial(throwing, live, fn, ValueError()))
        assert "thrown" in str(error)
        file.with_name(file.name + ".partial").unlink()


def test_values_sent_in_are_refused(file):
    def echo():
        heard = yield 1
        yield heard

    def program(make):
        stream = make(echo)()
        assert stream.send(None) == 1
        return refused(lambda: stream.send("a"))

    error = refusal(file, lambda: program(live))
    assert "sent" in str(error)
    other = file.with_name("y.cassette.jsonl")
    record(other, lambda: next(live(echo)()))
    assert reason(differs(other, program)) == "stream_differs"


@pytest.mark.anyio
async def test_thrown_into_an_async_stream(file):
    async def lets():
        yield 1
        yield 2

    async def turns_it():
        try:
            yield 1
        except ValueError:
            raise KeyError("turned") from None

    async def program(make):
        seen = []
        for fn in (lets, turns_it):
            stream = make(fn)()
            seen.append(await anext(stream))
            with pytest.raises((ValueError, KeyError)) as caught:
                await stream.athrow(ValueError("v"))
            seen.append(caught.value.args)
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
        return seen

    assert await aboth(file, program) == [1, ("v",), 1, ("turned",)]


@pytest.mark.anyio
async def test_an_async_source_that_answers_is_refused(file):
    async def answers():
        heard = "nothing"
        while True:
            try:
                heard = yield heard
            except ValueError:
                heard = "caught"

    async def throws(stream):
        await stream.athrow(ValueError())

    async def sends(stream):
        await stream.asend("a")

    for number, act in enumerate((throws, sends)):
        with pytest.raises(tc.UnrecordableValue):
            async with tc.record(file.with_name(f"{number}.cassette.jsonl"), ["*"]):
                stream = live(answers)()
                assert await stream.asend(None) == "nothing"
                with pytest.raises(tc.UnrecordableValue):
                    await act(stream)


@pytest.mark.anyio
async def test_aclose_twice_and_then_nothing(file):
    async def numbers():
        yield 1
        yield 2

    async def program(make):
        stream = make(numbers)()
        seen = [await anext(stream)]
        await stream.aclose()
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        return seen

    assert await aboth(file, program) == [1]
    assert end(file).outcome == "left_early"


# -- sessions ---------------------------------------------------------------------------------------------------------


def test_a_session_that_ends_before_the_stream(file):
    session = tc.record(file, ["*"])
    with pytest.raises(tc.NotPublished) as caught, session:
        stream = live(five)()
        next(stream)
    assert caught.value.reason == "open_call"
    with pytest.raises(tc.SessionClosed):
        next(stream)
    stream.close()  # is quiet: the verdict has said it


def test_a_stream_dropped_after_its_session_makes_no_noise(file):
    hooked: list[object] = []
    hook, sys.unraisablehook = sys.unraisablehook, hooked.append
    try:
        with contextlib.suppress(tc.NotPublished), tc.record(file, ["*"]):
            stream = live(five)()
            next(stream)
        del stream
        gc.collect()
    finally:
        sys.unraisablehook = hook
    assert hooked == []


def test_a_replay_that_ends_before_the_stream_left_it_there(file):
    record(file, lambda: list(live(five)()))
    kept = []

    def program(make):
        kept.append(make(five)())
        next(kept[-1])

    differs(file, program)
    other = file.with_name("y.cassette.jsonl")
    record(other, lambda: take(live, 1))
    replay(other, lambda: program(dead))  # at the same place: the program says no less than the recorded one


def test_a_poisoned_session_ends_its_streams(file):
    made = []

    def numbers():
        for number in range(5):
            made.append(number)
            yield number

    def bad():
        return object()

    def program():
        stream = live(numbers)()
        next(stream)
        refused(live(bad))
        assert isinstance(refused(lambda: next(stream)), tc.UnrecordableValue)

    error = refusal(file, program)
    assert error.tool == "bad"
    assert made == [0]

    other = file.with_name("y.cassette.jsonl")
    record(other, lambda: list(live(numbers)()))

    def parts(make):
        stream = make(numbers)()
        next(stream)
        refused(lambda: next(make(five)()))
        assert isinstance(refused(lambda: next(stream)), tc.CassettePoisoned)

    with pytest.raises(tc.CassetteMismatch) as caught:
        replay(other, lambda: parts(dead))
    assert caught.value.tool == "five"


def test_selected_calls_between_items_are_not_nested_and_those_in_the_source_are(file):
    def plain(n):
        return n

    def program(make):
        tool = make(plain)
        return [tool(number) for number in make(five)()]

    assert both(file, program, stall_after=0.2) == [0, 1, 2, 3, 4]

    def calls():
        yield 1
        yield live(plain)(2)

    with pytest.raises(tc.NestedSelection) as caught:
        record(file.with_name("y.cassette.jsonl"), lambda: list(live(calls)()))
    assert (caught.value.tool, caught.value.inside) == ("plain", "calls")


@pytest.mark.anyio
async def test_selected_calls_between_items_are_not_nested_async(file):
    async def numbers():
        yield 1
        await anyio.lowlevel.checkpoint()
        yield 2

    async def plain(n):
        return n

    async def program(make):
        tool = make(plain)
        return [await tool(number) async for number in make(numbers)()]

    assert await aboth(file, program) == [1, 2]
    with pytest.raises(tc.NestedSelection):
        async with tc.record(file.with_name("y.cassette.jsonl"), ["*"]):

            async def calls():
                yield 1
                yield await live(plain)(2)

            assert [item async for item in live(calls)()] == [1, 2]
