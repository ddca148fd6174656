"""Streams that a context manager gives: every way in, through and out again."""

from __future__ import annotations

import contextlib
import functools

import anyio.lowlevel
import pytest

import toolcassette as tc
from tests.cases.programs import live, record, refused
from tests.streams.helpers import End, aboth, adiffers, both, differs, end, refusal

LOG: list[str] = []


@pytest.fixture(autouse=True)
def _empty_log():
    LOG.clear()


@contextlib.contextmanager
def opened(fails_at=""):
    if fails_at == "enter":
        raise KeyError("enter")

    def items():
        yield 1
        yield 2
        if fails_at == "source":
            raise KeyError("source")

    try:
        yield items()
    finally:
        LOG.append("left")
        if fails_at == "exit":
            raise KeyError("exit")


def reading(make, fails_at, count):
    """Where each step got to: how far a reader of ``count`` items comes, ``None`` for all of them."""
    seen = []
    try:
        with make(opened)(fails_at) as stream:
            seen.append("in")
            for item in stream:
                seen.append(item)
                if item == count:
                    break
            seen.append("read")
        seen.append("out")
    except KeyError as error:
        seen.append(error.args[0])
    return seen


WAYS = {
    ("", None): (["in", 1, 2, "read", "out"], "ok", ""),
    ("", 1): (["in", 1, "read", "out"], "left_early", ""),
    ("", 2): (["in", 1, 2, "read", "out"], "left_early", ""),
    ("enter", None): (["enter"], "error", ""),
    ("source", None): (["in", 1, 2, "source"], "error", ""),
    ("source", 2): (["in", 1, 2, "read", "out"], "left_early", ""),
    ("exit", None): (["in", 1, 2, "read", "exit"], "error", "exit"),
    ("exit", 1): (["in", 1, "read", "exit"], "error", "exit_early"),
    ("exit", 2): (["in", 1, 2, "read", "exit"], "error", "exit_early"),
}


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_ways(file, way):
    seen, outcome, note = WAYS[way]
    assert both(file, lambda make: reading(make, *way)) == seen
    left = [] if way[0] == "enter" else ["left"]  # of the recording
    assert left == LOG
    found = end(file)
    assert (found.outcome, found.note) == (outcome, note)
    assert found.shape == ("context" if way[0] == "enter" else "context/iterator")


@pytest.mark.parametrize("way", [way for way in WAYS if way[0] != "enter"], ids=str)
def test_any_other_way_differs(file, way):
    """The same call read to another place than recorded parts from the recording, whatever its end was."""
    fails_at, count = way
    record(file, lambda: reading(live, fails_at, count))
    for other in {None, 1, 2} - {count}:
        differs(file, functools.partial(refuses, fails_at=fails_at, count=other))


def refuses(make, fails_at, count):
    with contextlib.suppress(tc.CassetteMismatch):
        reading(make, fails_at, count)


def test_never_entered(file):
    both(file, lambda make: make(opened)() and None)
    assert end(file) == End("left_early", [], "context", "")

    def enters(make):
        with contextlib.suppress(tc.CassetteMismatch), make(opened)():
            raise AssertionError

    differs(file, enters)
    other = file.with_name("y.cassette.jsonl")
    record(other, lambda: reading(live, "", None))
    differs(other, lambda make: make(opened)() and None)


def test_calls_between_the_last_item_and_leaving(file):
    """The stream ends when its context manager is left: what is called before that must not wait for it."""

    def plain():
        return "p"

    def program(make):
        with make(opened)() as stream:
            items = list(stream)
            return items, make(plain)()

    both(file, program, completion="required", stall_after=0.2)


def test_the_blocks_own_exception(file):
    def program(make, count=None):
        seen = []
        with contextlib.suppress(LookupError), make(opened)() as stream:
            for item in stream:
                seen.append(item)
                if item == count:
                    break
            raise LookupError
        return seen

    both(file, program)
    assert end(file).outcome == "ok"  # it was read to its end
    other = file.with_name("y.cassette.jsonl")
    both(other, lambda make: program(make, 1))
    assert end(other).outcome == "left_early"
    assert LOG == ["left", "left"]


def test_closed_inside_the_context(file):
    def program(make):
        with make(opened)() as stream:
            seen = [next(stream)]
            stream.close()
            seen.extend(stream)
        return seen

    assert both(file, program) == [1]
    assert end(file) == End("left_early", [1], "context/iterator", "")


def test_thrown_into_inside_the_context(file):
    def program(make):
        with make(opened)() as stream:
            seen = [next(stream)]
            with contextlib.suppress(LookupError):
                stream.throw(LookupError())
            seen.extend(stream)
        return seen

    assert both(file, program) == [1]
    assert end(file).outcome == "left_early"


def test_one_that_holds_back_an_exception_is_refused(file):
    @contextlib.contextmanager
    def swallows():
        with contextlib.suppress(LookupError):
            yield iter([1])

    def program():
        with live(swallows)() as stream:
            next(stream)
            raise LookupError

    assert "thrown" in str(refusal(file, program))


def test_one_that_turns_the_sources_exception_into_another_is_refused(file):
    @contextlib.contextmanager
    def turns():
        def items():
            yield 1
            raise KeyError("inner")

        try:
            yield items()
        except KeyError as error:
            raise ValueError("outer") from error

    def program():
        with live(turns)() as stream:
            list(stream)

    assert "thrown" in str(refusal(file, program))


def test_one_that_gives_no_stream_is_refused_and_left(file):
    @contextlib.contextmanager
    def gives_a_value():
        try:
            yield {"a": "value"}
        finally:
            LOG.append("left")

    def program():
        with live(gives_a_value)():
            raise AssertionError

    error = refusal(file, program)
    assert (error.type_name, LOG) == ("dict", ["left"])


def test_a_dropped_context_was_left(file):
    def program(make):
        context = make(opened)()
        return next(context.__enter__())

    assert both(file, program) == 1
    assert end(file) == End("left_early", [1], "context/iterator", "")


def test_a_session_poisoned_inside_the_context(file):
    def bad():
        return object()

    def program():
        with live(opened)() as stream:
            next(stream)
            refused(live(bad))

    assert refusal(file, program).tool == "bad"
    assert LOG == ["left"]


# -- async ------------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def aopened(fails_at=""):
    await anyio.lowlevel.checkpoint()
    if fails_at == "enter":
        raise KeyError("enter")

    async def items():
        yield 1
        yield 2
        if fails_at == "source":
            raise KeyError("source")

    try:
        async with contextlib.aclosing(items()) as stream:
            yield stream
    finally:
        LOG.append("left")
        if fails_at == "exit":
            raise KeyError("exit")


async def areading(make, fails_at, count):
    seen = []
    try:
        async with make(aopened)(fails_at) as stream:
            seen.append("in")
            async for item in stream:
                seen.append(item)
                if item == count:
                    break
            seen.append("read")
        seen.append("out")
    except KeyError as error:
        seen.append(error.args[0])
    return seen


@pytest.mark.anyio
@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_async_ways(file, way):
    seen, outcome, note = WAYS[way]
    assert await aboth(file, lambda make: areading(make, *way)) == seen
    found = end(file)
    assert (found.outcome, found.note) == (outcome, note)
    assert found.shape == ("async_context" if way[0] == "enter" else "async_context/async_iterator")
    for other in {None, 1, 2} - {way[1]} if way[0] != "enter" else ():

        async def parts(make, other=other):
            with contextlib.suppress(tc.CassetteMismatch):
                await areading(make, way[0], other)

        await adiffers(file, parts)


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["enter", "source", "exit"])
async def test_cancelled_inside(file, where):
    @contextlib.asynccontextmanager
    async def hangs():
        async def items():
            yield 1
            if where == "source":
                await anyio.sleep(60)

        if where == "enter":
            await anyio.sleep(60)
        yield items()
        if where == "exit":
            await anyio.sleep(60)

    async def program(make):
        seen = []
        with anyio.move_on_after(0.1) as scope:
            async with make(hangs)() as stream:
                seen.append("in")
                async for item in stream:
                    seen += [item]
                seen.append("read")
            seen.append("out")
        return seen, scope.cancelled_caught

    expected = {"enter": [], "source": ["in", 1], "exit": ["in", 1, "read"]}[where]
    assert await aboth(file, program, stall_after=30.0) == (expected, True)
    found = end(file)
    assert (found.outcome, found.note) == ("cancelled", "exit" if where == "exit" else "")


@pytest.mark.anyio
async def test_cancelled_in_the_block(file):
    """The cancellation strikes in the consumer's own work: the stream is left, and the real one was told."""

    async def program(make):
        seen = []
        with anyio.move_on_after(0.1) as scope:
            async with make(aopened)() as stream:
                seen.append(await anext(stream))
                await anyio.sleep(60)
        return seen, scope.cancelled_caught

    assert await aboth(file, program) == ([1], True)
    assert LOG == ["left"]
    assert end(file).outcome == "left_early"


@pytest.mark.anyio
async def test_cancelled_in_the_block_and_again_on_the_way_out(file):
    @contextlib.asynccontextmanager
    async def says_goodbye():
        try:
            yield iter([1])
        finally:
            await anyio.sleep(60)  # cancelled too

    async def program(make):
        with anyio.move_on_after(0.1) as scope:
            async with make(says_goodbye)() as stream:
                next(stream)
                await anyio.sleep(60)
        return scope.cancelled_caught

    assert await aboth(file, program, stall_after=30.0) is True
    assert end(file).outcome == "cancelled"
