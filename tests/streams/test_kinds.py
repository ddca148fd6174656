"""Every kind of stream that a tool hands out, there and back, and when its call begins."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import inspect
import itertools
import threading
from collections.abc import (  # noqa: TC003 - hints of tools, resolved in these tests
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Generator,
    Iterable,
    Iterator,
)
from contextlib import AbstractAsyncContextManager, AbstractContextManager

import pytest

import toolcassette as tc
from tests.cases.programs import dead, live, record, replay
from tests.streams.helpers import End, aboth, both, end, ends, refusal

# -- sync -------------------------------------------------------------------------------------------------------------


def generator(count):
    for number in range(count):
        yield {"n": number}


def typed_generator(count: int) -> Generator[dict[str, int], None, None]:
    for number in range(count):
        yield {"n": number}


def returns_generator(count):
    return ({"n": number} for number in range(count))


def returns_iterator(count: int) -> Iterator[dict[str, int]]:
    return itertools.starmap(lambda number: {"n": number}, ((number,) for number in range(count)))


def returns_iterable(count: int) -> Iterable[dict[str, int]]:
    return iter([{"n": number} for number in range(count)])


class Counter:
    def __init__(self, count):
        self.left = list(range(count))

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        return {"n": self.left.pop(0)}


def returns_object(count):
    return Counter(count)


SYNC = [generator, typed_generator, returns_generator, returns_iterator, returns_iterable, returns_object]


@pytest.mark.parametrize("fn", SYNC, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_sync(file, fn, count):
    assert both(file, lambda make: list(make(fn)(count))) == [{"n": n} for n in range(count)]
    assert end(file) == End("ok", [{"n": n} for n in range(count)], "iterator", "")


def test_a_wrapped_generator_function_is_one():
    assert inspect.isgeneratorfunction(live(generator))
    assert inspect.isgenerator(live(generator)(1))


@pytest.mark.parametrize("around", [contextlib.nullcontext, lambda: tc.session("live")], ids=["none", "live"])
def test_where_nothing_is_recorded_the_generator_is_the_tools_own(around):
    def talks():
        heard = yield 1
        while heard != "stop":
            try:
                heard = yield heard
            except KeyError:
                heard = yield "caught"
        return "returned"

    with around():
        stream = live(talks)()
        assert next(stream) == 1
        assert stream.send("a") == "a"
        assert stream.throw(KeyError()) == "caught"
        with pytest.raises(StopIteration) as stop:
            stream.send("stop")
    assert stop.value.value == "returned"


@pytest.mark.parametrize("items", [[b"\x00\xff", b""], ["\udcb2", "\u2028"], [(1, 2), {3}, None], [1, 1.0, True]])
def test_items_come_back_as_they_were(file, items):
    def numbers():
        yield from items

    seen = both(file, lambda make: list(make(numbers)()))
    assert [type(item) for item in seen] == [type(item) for item in items]
    assert seen == items


def test_boundaries_are_kept(file):
    """``["a", "", "bc"]`` is not ``["abc"]``, nor ``["a", "bc"]``."""

    def pieces():
        yield from ["a", "", "bc"]

    assert both(file, lambda make: list(make(pieces)())) == ["a", "", "bc"]


@dataclasses.dataclass
class Row:
    name: str
    price: float


def rows(count: int) -> Iterator[Row]:
    for number in range(count):
        yield Row(f"r{number}", number / 2)


async def arows(count: int) -> AsyncIterator[Row]:
    for number in range(count):
        yield Row(f"r{number}", number / 2)


def test_typed_items(file):
    seen = both(file, lambda make: list(make(rows)(3)))
    assert seen == [Row("r0", 0.0), Row("r1", 0.5), Row("r2", 1.0)]
    assert end(file).items[1] == {"name": "r1", "price": 0.5}


def test_an_item_that_does_not_fit_the_annotation_is_refused(file):
    closed = []

    def wrong() -> Iterator[int]:
        try:
            yield 1
            yield "two"  # type: ignore[misc]  # the mistake that is shown
        finally:
            closed.append(True)

    error = refusal(file, lambda: list(live(wrong)()))
    assert (error.tool, error.type_name) == ("wrong", "str")
    assert closed == [True]


def test_drift_of_an_item_is_told_at_that_item(file):
    def items() -> Iterator[dict[str, int | str]]:
        yield {"n": 1}
        yield {"n": "two"}

    record(file, lambda: list(live(items)()))

    def changed() -> Iterator[dict[str, int]]:
        raise AssertionError
        yield

    tool = live(changed, name="items")
    seen = []
    with pytest.raises(tc.ContractMismatch) as caught:
        replay(file, lambda: seen.extend(tool()))
    assert seen == [{"n": 1}]
    assert caught.value.json_path == "$.n"


def list_or_stream(fn):
    return live(fn, name="t")


def yields_numbers():
    yield from [1, 2]


async def ayields_numbers():
    yield 1
    yield 2


def returns_a_list():
    return [1, 2]


def promises_a_list() -> list[int]:
    return [1, 2]


DRIFTS = [
    (yields_numbers, promises_a_list, "a value, and no stream"),
    (returns_a_list, yields_numbers, "a stream"),
    (returns_a_list, ayields_numbers, "a stream"),
    (yields_numbers, ayields_numbers, "a stream read as async_iterator"),
    (ayields_numbers, yields_numbers, "a stream read as iterator"),
]


def all_of(stream):
    async def drain():
        return [item async for item in stream]

    return asyncio.run(drain()) if hasattr(stream, "__anext__") else list(stream)


@pytest.mark.parametrize(("before", "now", "wanted"), DRIFTS, ids=lambda x: getattr(x, "__name__", ""))
def test_drift_between_a_value_and_the_kinds_of_streams(file, before, now, wanted):
    record(file, lambda: all_of(list_or_stream(before)()))
    with pytest.raises(tc.ContractMismatch) as caught:
        replay(file, lambda: all_of(dead(now, name="t")()))
    assert caught.value.wanted == wanted


def test_a_generators_return_value_is_refused(file):
    def returns():
        yield 1
        return "and this"

    error = refusal(file, lambda: list(live(returns)()))
    assert error.type_name == "str"
    assert "yield it" in str(error)


# -- when a call begins -----------------------------------------------------------------------------------------------


def test_a_generators_call_begins_at_its_first_next(file):
    def program(make):
        first, second = make(generator, name="first"), make(generator, name="second")
        a, b = first(1), second(1)
        return list(b), list(a)

    both(file, program)
    assert [call.tool for call in tc.read_cassette(file)] == ["second", "first"]


def test_a_returned_iterators_call_begins_at_the_call(file):
    def program(make):
        first, second = make(returns_generator, name="first"), make(returns_generator, name="second")
        a, b = first(1), second(1)
        return list(b), list(a)

    both(file, program)
    assert [call.tool for call in tc.read_cassette(file)] == ["first", "second"]


def test_a_generator_that_nobody_iterates_leaves_no_frame(file):
    def program(make):
        make(generator)(5)
        make(generator)(6).close()
        return list(make(generator)(1))

    both(file, program)
    assert len(tc.read_cassette(file)) == 1


def test_a_returned_iterator_that_nobody_iterates_was_left_early(file):
    def program(make):
        make(returns_generator)(5)

    both(file, program)
    assert end(file) == End("left_early", [], "iterator", "")


def test_a_stream_of_no_items_is_told_apart_from_a_lost_one(file):
    both(file, lambda make: list(make(generator)(0)))
    (call,) = tc.read_cassette(file)
    assert (call.outcome, call.chunks, call.value) == ("ok", (), None)
    kinds = [line.split(b'"kind":"')[1].split(b'"')[0] for line in file.read_bytes().splitlines()]
    assert kinds == [b"header", b"call/start", b"call/result", b"complete"]
    assert b'"chunks":0' in file.read_bytes()


def test_two_interleaved_streams_are_not_ordered_against_each_other(file):
    def program(order, make):
        tool = make(generator)
        streams = {"a": tool(2), "b": tool(3)}
        seen = {"a": [next(streams["a"])], "b": [next(streams["b"])]}
        for name in order:
            seen[name].extend(item for item in [next(streams[name], None)] if item)
        return seen

    expected = {"a": [{"n": 0}, {"n": 1}], "b": [{"n": 0}, {"n": 1}, {"n": 2}]}
    assert record(file, lambda: program("ababab", live)) == expected
    for order in ("ababab", "babab" + "a", "bbabaa"):
        assert replay(file, functools.partial(program, order, dead), completion="immediate") == expected
    assert [e.items for e in ends(file)] == [expected["a"], expected["b"]]


# -- async ------------------------------------------------------------------------------------------------------------


async def agenerator(count):
    for number in range(count):
        yield {"n": number}


async def typed_agenerator(count: int) -> AsyncGenerator[dict[str, int], None]:
    for number in range(count):
        yield {"n": number}


def plain_returns_agenerator(count):
    return agenerator(count)


def plain_typed(count: int) -> AsyncIterator[dict[str, int]]:
    return agenerator(count)


async def async_returns_agenerator(count) -> AsyncIterator[dict[str, int]]:
    return agenerator(count)


class Pages:
    def __init__(self, count):
        self.count = count

    async def __aiter__(self):
        for number in range(self.count):
            yield {"n": number}


def returns_async_iterable(count: int) -> AsyncIterable[dict[str, int]]:
    return Pages(count)


class ACounter(Counter):
    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.left:
            raise StopAsyncIteration
        return next(self)


def returns_async_object(count):
    return ACounter(count)


ASYNC = [
    agenerator,
    typed_agenerator,
    plain_returns_agenerator,
    plain_typed,
    async_returns_agenerator,
    returns_async_iterable,
    returns_async_object,
]


async def areadable(made):
    return await made if inspect.isawaitable(made) else made


@pytest.mark.anyio
@pytest.mark.parametrize("fn", ASYNC, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("count", [0, 3])
async def test_async(file, fn, count):
    async def program(make):
        return [item async for item in await areadable(make(fn)(count))]

    assert await aboth(file, program, sync="frame") == [{"n": n} for n in range(count)]
    assert end(file) == End("ok", [{"n": n} for n in range(count)], "async_iterator", "")


@pytest.mark.anyio
async def test_typed_items_async(file):
    async def program(make):
        return [item async for item in make(arows)(2)]

    assert await aboth(file, program) == [Row("r0", 0.0), Row("r1", 0.5)]


@pytest.mark.anyio
async def test_a_sync_stream_of_an_async_tool(file):
    async def numbers() -> Iterator[int]:
        return iter([1, 2])

    async def program(make):
        return list(await make(numbers)())

    assert await aboth(file, program) == [1, 2]
    assert end(file).shape == "iterator"


@pytest.mark.anyio
async def test_an_async_generators_call_begins_at_its_first_next(file):
    async def program(make):
        first, second = make(agenerator, name="first"), make(agenerator, name="second")
        a, b = first(1), second(1)
        await first(9).aclose()
        return [item async for item in b], [item async for item in a]

    await aboth(file, program)
    assert [call.tool for call in tc.read_cassette(file)] == ["second", "first"]


@pytest.mark.anyio
@pytest.mark.parametrize("around", [contextlib.nullcontext, lambda: tc.session("live")], ids=["none", "live"])
async def test_where_nothing_is_recorded_the_async_generator_is_the_tools_own(around):
    async def talks():
        heard = yield 1
        try:
            yield heard
        except KeyError:
            yield "caught"

    assert inspect.isasyncgenfunction(live(talks))
    async with around():
        stream = live(talks)()
        assert await anext(stream) == 1
        assert await stream.asend("a") == "a"
        assert await stream.athrow(KeyError()) == "caught"
        assert [item async for item in stream] == []


# -- values that are no streams ---------------------------------------------------------------------------------------


def test_an_open_file_is_no_stream(file, tmp_path):
    (tmp_path / "f.txt").write_text("a\nb\n")
    opened = []

    def reads():
        opened.append((tmp_path / "f.txt").open())
        return opened[0]

    error = refusal(file, lambda: live(reads)())
    assert error.type_name == "TextIOWrapper"
    with opened[0] as it:
        assert it.read() == "a\nb\n"


def test_a_lock_is_no_stream(file):
    def lock():
        return threading.Lock()

    error = refusal(file, lambda: live(lock)())
    assert error.type_name == "lock"


def test_an_annotation_that_promises_a_stream_is_held_to_it(file):
    def numbers() -> Iterator[int]:
        return [1, 2]  # type: ignore[return-value]  # the mistake that is shown

    error = refusal(file, lambda: live(numbers)())
    assert error.type_name == "list"
    assert "stream" in str(error)


# -- context managers -------------------------------------------------------------------------------------------------

LOG: list[str] = []


@contextlib.contextmanager
def opened(count):
    LOG.append("enter")
    try:
        yield ({"n": n} for n in range(count))
    finally:
        LOG.append("exit")


class Opened:
    def __init__(self, count):
        self.count = count

    def __enter__(self):
        LOG.append("enter")
        return returns_generator(self.count)

    def __exit__(self, *_):
        LOG.append("exit")

    async def __aenter__(self):
        LOG.append("enter")
        return agenerator(self.count)

    async def __aexit__(self, *_):
        LOG.append("exit")


def annotated(count: int) -> AbstractContextManager[Iterator[dict[str, int]]]:
    return Opened(count)


def annotated_async(count: int) -> AbstractAsyncContextManager[AsyncIterator[dict[str, int]]]:
    return Opened(count)


def closes(count):
    return contextlib.closing(returns_generator(count))


@pytest.mark.parametrize("fn", [opened, annotated, closes], ids=lambda fn: fn.__name__)
def test_a_context_manager_that_gives_a_stream(file, fn):
    def program(make):
        with make(fn)(2) as stream:
            return list(stream)

    LOG.clear()
    both(file, program)
    log = [] if fn is closes else ["enter", "exit"]  # of the recording; the replay enters nothing
    assert log == LOG
    assert end(file) == End("ok", [{"n": 0}, {"n": 1}], "context/iterator", "")


@contextlib.asynccontextmanager
async def aopened(count):
    LOG.append("enter")
    try:
        yield agenerator(count)
    finally:
        LOG.append("exit")


async def aopened_by_coroutine(count):
    return aopened(count)


def acloses(count):
    return contextlib.aclosing(agenerator(count))


@pytest.mark.anyio
@pytest.mark.parametrize("fn", [aopened, annotated_async, aopened_by_coroutine, acloses], ids=lambda fn: fn.__name__)
async def test_an_async_context_manager_that_gives_a_stream(file, fn):
    async def program(make):
        async with await areadable(make(fn)(2)) as stream:
            return [item async for item in stream]

    LOG.clear()
    await aboth(file, program)
    log = [] if fn is acloses else ["enter", "exit"]
    assert log == LOG
    assert end(file) == End("ok", [{"n": 0}, {"n": 1}], "async_context/async_iterator", "")


@pytest.mark.anyio
async def test_an_async_context_manager_that_gives_a_plain_iterator(file):
    @contextlib.asynccontextmanager
    async def lines():
        yield iter(["a", "b"])

    async def program(make):
        async with make(lines)() as stream:
            return list(stream)

    assert await aboth(file, program) == ["a", "b"]
    assert end(file).shape == "async_context/iterator"
