"""Streams while they are recorded: the consumer waits for nothing, what may be a secret waits for its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator  # noqa: TC003 - a tool's annotation, which is read
from typing import Any, Literal

import pytest

import toolcassette as tc
from tests.engine.doubles import NAME, WatchedStore
from tests.redaction.attacker import holds
from tests.redaction.test_pieces import text

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PIECES = ["so it is ", SECRET[:9], SECRET[9:20], SECRET[20:], " and on", " and on", "."]


@pytest.fixture
def store():
    return WatchedStore()


def sync_tool(pieces: list[str], error: Exception | None = None) -> Any:
    def stream() -> Any:
        yield from pieces
        if error is not None:
            raise error

    return tc.Registry().wrap(stream)


def async_tool(pieces: list[str], error: Exception | None = None) -> Any:
    async def stream() -> Any:
        for piece in pieces:
            await asyncio.sleep(0)
            yield piece
        if error is not None:
            raise error

    return tc.Registry().wrap(stream)


def read(make: Any, session: Any, pieces: list[str], take: int | None, error: Exception | None = None) -> list[str]:
    """What the consumer of a stream gets; after ``take`` items it stops."""
    seen: list[str] = []

    async def main() -> None:
        async with session:
            items = make(pieces, error)()
            try:
                async for item in items:
                    seen.append(item)
                    if len(seen) == take:
                        break
                await items.aclose()
            except ValueError:
                pass

    if make is async_tool:
        asyncio.run(main())
        return seen
    with session:
        items = make(pieces, error)()
        try:
            for item in items:
                seen.append(item)
                if len(seen) == take:
                    break
            items.close()
        except ValueError:
            pass
    return seen


def written(store: WatchedStore) -> tuple[str, list[dict[str, Any]]]:
    with store.open(NAME) as source:
        data = b"".join(source.blocks())
    assert not holds(data, SECRET.encode())
    lines = [json.loads(line) for line in data.splitlines()]
    chunks = [line["value"] for line in lines if line["kind"] == "call/chunk"]
    return "".join(map(text, chunks)), lines


@pytest.mark.parametrize("make", [sync_tool, async_tool])
def test_a_stream_to_its_end(store, make):
    assert read(make, tc.record(NAME, ["*"], store=store), PIECES, None) == PIECES
    joined, lines = written(store)
    assert joined == "so it is ⟦redacted:github-token:1⟧ and on and on."
    assert lines[-2]["chunks"] == len(PIECES)
    replayed = read(make, tc.replay(NAME, store=store), PIECES, None)
    assert len(replayed) == len(PIECES)
    assert "".join(replayed) == joined


@pytest.mark.parametrize("take", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("make", [sync_tool, async_tool])
def test_a_stream_that_is_left_early_gives_up_what_it_held(store, make, take):
    """A consumer that stops within a secret leaves its beginning, which is no secret, or its stand-in."""
    assert read(make, tc.record(NAME, ["*"], store=store), PIECES, take) == PIECES[:take]
    _, lines = written(store)
    assert (lines[-2]["outcome"], lines[-2]["chunks"]) == ("left_early", take)
    assert len(read(make, tc.replay(NAME, store=store), PIECES, take)) == take


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("make", [sync_tool, async_tool])
def test_a_stream_that_fails_gives_up_what_it_held(store, make, count):
    error = ValueError(f"it was {SECRET}")
    assert read(make, tc.record(NAME, ["*"], store=store), PIECES[:count], None, error) == PIECES[:count]
    _, lines = written(store)
    assert (lines[-2]["outcome"], lines[-2]["chunks"]) == ("error", count)
    assert lines[-2]["error"]["message"] == "it was ⟦redacted:github-token:1⟧"
    assert len(read(make, tc.replay(NAME, store=store), PIECES[:count], None, error)) == count


@pytest.mark.parametrize("make", [sync_tool, async_tool])
def test_the_consumer_gets_each_item_at_once(store, make):
    """While nothing of a secret is written, its consumer has its pieces; what is no secret is durable before."""
    log = store.log

    def note(item: str) -> None:
        log.append(f"seen {PIECES.index(item)}")

    async def main() -> None:
        async with tc.record(NAME, ["*"], store=store):
            async for item in make(PIECES[:5])():
                note(item)

    if make is async_tool:
        asyncio.run(main())
    else:
        with tc.record(NAME, ["*"], store=store):
            for item in make(PIECES[:5])():
                note(item)
    seen = [log.index(f"seen {number}") for number in range(5)]
    chunks = [at for at, what in enumerate(log) if what == "call/chunk"]
    assert chunks[0] < seen[0]  # durable first
    assert log[chunks[0] + 1] == "sync"
    assert seen[1] < seen[2] < seen[3] < chunks[1]  # the pieces of the secret: seen first
    assert len(chunks) == 5


def test_an_item_that_breaks_the_contract_is_refused(store):
    def stream() -> Iterator[dict[str, Literal["a", "b"]]]:
        yield {"pin": "a"}
        yield {"pin": "b"}

    tool = tc.Registry().wrap(stream)
    with pytest.raises(tc.CassetteError) as caught, tc.record(NAME, ["*"], store=store, redact=["pin"]):
        list(tool())
    assert getattr(caught.value, "reason", "") == "redaction_breaks_contract"
    assert getattr(caught.value, "rule", "") == "pin"
    with tc.record("y.cassette.jsonl", ["*"], store=store, redact=[tc.Redact("pin", stand_in="b")]):
        assert list(tool()) == [{"pin": "a"}, {"pin": "b"}]
    with tc.replay("y.cassette.jsonl", store=store, redact=[tc.Redact("pin", stand_in="b")]):
        assert list(tool()) == [{"pin": "b"}, {"pin": "b"}]
