"""Every small source, read by every small consumer, replayed to every other one.

Oracle: two consumers are the same to a cassette if their recordings hold the same items and the same end. The replay of
one against the recording of the other must then pass and show it the same as live; in any other case it must fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import Any

import pytest

import toolcassette as tc
from tests.cases.programs import dead, live
from tests.engine.doubles import NAME
from toolcassette.stores import MemoryStore

SOURCES = list(itertools.product((0, 1, 2), ("ends", "raises", "raises when closed")))
READS = (0, 1, 2, 3)
STOPS = ("close", "drop", "throw", "read on")


def consumers(how):
    """A source that raises when it is closed is not dropped: that would be printed, and nobody could catch it."""
    return [(reads, stop) for reads in READS for stop in STOPS if (how, stop) != ("raises when closed", "drop")]


def source(count, how):
    def steps():
        try:
            yield from range(count)
            if how == "raises":
                raise KeyError("source")
        finally:
            if how == "raises when closed":
                raise KeyError("closing")

    return steps()


def asource(count, how):
    async def steps():
        try:
            for number in range(count):
                yield number
            if how == "raises":
                raise KeyError("source")
        finally:
            if how == "raises when closed":
                raise KeyError("closing")

    return steps()


def consume(stream: Any, reads: int, stop: str) -> list[object]:
    """What a consumer sees: items, and what ends its reading."""
    seen: list[object] = []
    try:
        for _ in range(reads):
            seen += [next(stream)]
        if stop == "close":
            stream.close()
        elif stop == "throw":
            stream.throw(LookupError("consumer"))
        elif stop == "read on":
            while True:
                seen += [next(stream)]
    except (KeyError, LookupError, StopIteration) as error:
        seen.append(repr(error))
    return seen


async def aconsume(stream: Any, reads: int, stop: str) -> list[object]:
    seen: list[object] = []
    try:
        for _ in range(reads):
            seen += [await anext(stream)]
        if stop == "close":
            await stream.aclose()
        elif stop == "throw":
            await stream.athrow(LookupError("consumer"))
        elif stop == "read on":
            while True:
                seen += [await anext(stream)]
    except (KeyError, LookupError, StopAsyncIteration) as error:
        seen.append(repr(error))
    return seen


def recorded(store: MemoryStore) -> tuple[object, ...]:
    with store.open(NAME) as file:
        (call,) = tc.parse_cassette(b"".join(file.blocks()))
    return call.outcome, call.chunks, call.meta


def judge(same: bool, seen: object, expected: object, error: BaseException | None) -> None:
    if same:
        assert error is None
        assert seen == expected
    else:
        assert isinstance(error, tc.CassetteMismatch)
        assert error.reason == "stream_differs"


@pytest.mark.parametrize("made", SOURCES, ids=str)
def test_sync(made):
    stores: dict[Any, tuple[MemoryStore, list[object]]] = {}
    for consumer in consumers(made[1]):
        stores[consumer] = (MemoryStore(), [])
        with tc.record(NAME, ["*"], store=stores[consumer][0], sync="none"):
            stores[consumer][1].extend(consume(live(source)(*made), *consumer))
    ends = {consumer: recorded(store) for consumer, (store, _) in stores.items()}
    assert {outcome for outcome, _, _ in ends.values()} == {"left_early", "ok" if made[1] == "ends" else "error"}
    for one, other in itertools.product(stores, stores):
        seen, error = [], None
        try:
            with tc.replay(NAME, store=stores[one][0], stall_after=0.05):
                with contextlib.suppress(tc.CassetteError):
                    seen = consume(dead(source)(*made), *other)
        except tc.CassetteMismatch as found:
            error = found
        judge(ends[one] == ends[other], seen, stores[other][1], error)


@pytest.mark.parametrize("made", SOURCES, ids=str)
def test_async(made):
    asyncio.run(every_way_async(made))


async def every_way_async(made):
    stores: dict[Any, tuple[MemoryStore, list[object]]] = {}
    for consumer in consumers(made[1]):
        stores[consumer] = (MemoryStore(), [])
        async with tc.record(NAME, ["*"], store=stores[consumer][0], sync="none"):
            stores[consumer][1].extend(await aconsume(live(asource)(*made), *consumer))
    ends = {consumer: recorded(store) for consumer, (store, _) in stores.items()}
    for one, other in itertools.product(stores, stores):
        seen, error = [], None
        try:
            with tc.replay(NAME, store=stores[one][0], stall_after=0.05):
                with contextlib.suppress(tc.CassetteError):
                    seen = await aconsume(dead(asource)(*made), *other)
        except tc.CassetteMismatch as found:
            error = found
        judge(ends[one] == ends[other], seen, stores[other][1], error)
