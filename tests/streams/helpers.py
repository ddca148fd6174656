"""What the tests of streams have in common: a program is run twice, live and dead, and must see the same.

Rule: a program gets ``make``, which turns a function into a tool; the dead one's body raises if it ever runs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import pytest

import toolcassette as tc
from tests.cases.programs import dead, live, record, replay

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    Make = Callable[..., Any]


class End(NamedTuple):
    """How a recorded stream ended."""

    outcome: str
    items: list[Any]
    shape: str
    note: str


def ends(file: Path) -> list[End]:
    """The recorded streams, in start order."""
    found = []
    for call in tc.read_cassette(file):
        meta = json.loads(call.meta or b"{}")
        items = [json.loads(item) for item in call.chunks or ()]
        found.append(End(call.outcome, items, meta.get("stream", ""), meta.get("end", "")))
    return found


def end(file: Path) -> End:
    """The only recorded stream."""
    (only,) = ends(file)
    return only


def both(file: Path, program: Callable[[Make], Any], **options: Any) -> Any:
    """What the program saw while recording; the replay, with no body, sees the same."""
    recorded = record(file, lambda: program(live))
    replayed = replay(file, lambda: program(dead), **options)
    assert replayed == recorded
    return recorded


async def aboth(file: Path, program: Callable[[Make], Awaitable[Any]], *, sync: str = "none", **options: Any) -> Any:
    """As ``both``, on the loop of the test."""
    async with tc.record(file, ["*"], sync=sync):
        recorded = await program(live)
    async with tc.replay(file, **options):
        replayed = await program(dead)
    assert replayed == recorded
    return recorded


def reason(error: BaseException | None) -> str:
    """The stable reason of an error of ours."""
    return str(getattr(error, "reason", ""))


def differs(file: Path, program: Callable[[Make], Any]) -> tc.CassetteMismatch:
    """The replay parts from the recording at a stream; what leaving raises."""
    with pytest.raises(tc.CassetteMismatch) as caught:
        replay(file, lambda: program(dead))
    assert caught.value.reason == "stream_differs"
    return caught.value


async def adiffers(file: Path, program: Callable[[Make], Awaitable[Any]], **options: Any) -> tc.CassetteMismatch:
    """As ``differs``, on the loop of the test."""
    with pytest.raises(tc.CassetteMismatch) as caught:
        async with tc.replay(file, **options):
            await program(dead)
    assert caught.value.reason == "stream_differs"
    return caught.value


def refusal(file: Path, program: Callable[[], Any]) -> tc.UnrecordableValue:
    """Recording refuses something; what leaving raises. Nothing is published."""
    with pytest.raises(tc.UnrecordableValue) as caught, tc.record(file, ["*"], sync="none"):
        program()
    assert not file.exists()
    return caught.value


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens in a thread or another task, without an event."""
    with anyio.fail_after(5):
        while not condition():  # noqa: ASYNC110 - see above
            await anyio.sleep(0.001)
