"""The tool runner of anthropic on a cassette, with a provider that answers from a script."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import beta_async_tool, beta_tool
from anthropic.lib.tools import ToolError

import toolcassette as tc
from tests.adapters import conformance as suite
from tests.adapters.conformance import DONE, Driver, World, calls
from toolcassette.adapters.anthropic import cassette_client, cassette_tools

ASKED: Any = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


class Events(httpx2.AsyncByteStream):
    def __init__(self, events):
        self.events = events

    async def __aiter__(self):
        for event in self.events:
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def provider(world):
    """What stands for the network."""

    def message(turn):
        blocks = [{"type": "text", "text": turn.text}] if turn.words else []
        blocks += [{"type": "tool_use", "id": world.new_id(), "name": n, "input": given} for n, given in turn.calls]
        reason = "tool_use" if turn.calls else "end_turn"
        return {
            "id": world.new_id(), "type": "message", "role": "assistant", "model": "claude", "content": blocks,
            "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip

    def answer(request):
        turn = world.answer()
        if not json.loads(request.content).get("stream"):
            return httpx2.Response(200, json=message(turn))
        deltas = [{"type": "text_delta", "text": word} for word in turn.words]
        events = [
            {"type": "message_start", "message": {**message(turn), "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
            {"type": "message_stop"},
        ]
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Events(events))

    return httpx2.MockTransport(answer)


def client(world):
    http = httpx2.AsyncClient(transport=provider(world))
    return cassette_client(anthropic.AsyncAnthropic(api_key="sk-1", http_client=http, max_retries=0))


def tool(fn):
    """A function of a world as a tool of anthropic, which hands text to a model."""
    made: Any = beta_async_tool(fn)
    inner = made.call

    async def call(given):
        value = await inner(given)
        return json.dumps(vars(value) if dataclasses.is_dataclass(value) else value)

    made.call = call
    return made


class Anthropic(Driver):
    models = ("anthropic",)
    on_mismatch = "swallowed"

    async def run(self, world: World) -> Any:
        async with client(world) as asked:
            tools = cassette_tools([tool(fn) for fn in world.tools.values()], agents=world.composites)
            runner = asked.beta.messages.tool_runner(tools=tools, thread=False, **ASKED)
            seen = []
            async with contextlib.aclosing(aiter(runner)) as messages:
                async for message in messages:
                    seen.append(message.to_dict())
                    seen.append(await runner.generate_tool_call_response())
            return seen

    async def stream(self, world: World, reads: int | None = None) -> list[Any]:
        seen: list[Any] = []
        async with client(world) as asked, asked.messages.stream(**ASKED) as stream:
            async with contextlib.aclosing(aiter(stream)) as events:
                async for event in events:
                    seen.append(event.to_dict())
                    if len(seen) == reads:
                        break
        return seen

    def schema(self, fn: Any, *, cassette: bool) -> Any:
        made = tool(fn)
        return cassette_tools([made])[0].to_dict() if cassette else made.to_dict()


class TestAnthropic(suite.Tools, suite.Models, suite.Nested):
    driver = Anthropic()

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request):
        return request.param


class TestAnthropicOnAsyncio(suite.Cancelling, suite.Streams):
    """On asyncio only: client and runner drop the generators of what is left early, and trio warns of each."""

    driver = Anthropic()


def test_sync_tools_structured_failures_and_tools_that_run_elsewhere(file):
    def run(world):
        @beta_tool
        def look(what: str) -> Any:
            """l"""
            world.ran.append(what)
            if what == "nothing":
                raise ToolError([{"type": "text", "text": "none"}])
            return iter([{"type": "text", "text": what}])

        world.turns = (calls(("look", {"what": "tea"}), ("look", {"what": "nothing"})), DONE)
        http = httpx2.Client(transport=provider(world))
        asked = cassette_client(anthropic.Anthropic(api_key="sk-1", http_client=http, max_retries=0))
        elsewhere: Any = {"type": "web_search_20250305", "name": "web_search"}
        tools = cassette_tools([look, elsewhere])
        assert tools[1] == elsewhere
        with asked:
            runner = asked.beta.messages.tool_runner(tools=tools, **ASKED)
            return [runner.generate_tool_call_response() for _ in runner]

    live, again = World(), World()
    with tc.record(file, ["*"], order="causal"):
        told = run(live)
    with tc.replay(file):
        assert run(again) == told
    assert (live.ran, again.ran, again.asked) == (["tea", "nothing"], [], 0)
    results = told[0]["content"]
    assert [result.get("is_error") for result in results] == [None, True]
    assert [result["content"] for result in results] == [[{"type": "text", "text": t}] for t in ("tea", "none")]
    assert [call.outcome for call in tc.read_cassette(file) if call.tool == "look"] == ["ok", "error"]


async def run_in_a_thread_of_messages(world):
    async with client(world) as asked:
        runner = asked.beta.messages.tool_runner(tools=cassette_tools([tool(world.tools["roll"])]), **ASKED)
        return (await runner.until_done()).to_dict()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_message_that_is_continued_by_its_id_is_replayed_with_it(file):
    turns = (calls(("roll", {})), calls(("roll", {})), DONE)
    live, again = World(*turns), World(*turns)
    async with tc.record(file, ["*"], order="causal"):
        told = await run_in_a_thread_of_messages(live)
    async with tc.replay(file):
        assert await run_in_a_thread_of_messages(again) == told
    assert (live.ran, again.ran, again.asked) == (["roll", "roll"], [], 0)
