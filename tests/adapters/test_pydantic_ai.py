"""Agents of pydantic-ai with the capability: the suite, and what only this framework has."""

from __future__ import annotations

import json
import re
from typing import Any

import anyio
import pytest
from pydantic_ai import Agent, FunctionToolset, ModelRetry, RunContext, models
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, SkipToolExecution, ToolFailed
from pydantic_ai.messages import BinaryContent, ModelResponse, TextPart, ToolCallPart, ToolReturn
from pydantic_ai.models.function import FunctionModel

import toolcassette as tc
from tests.adapters.conformance import (
    DONE,
    Annotated,
    Bypassing,
    Cancelling,
    Driver,
    Models,
    Nested,
    Parallel,
    Rejecting,
    Streams,
    Tools,
    Weather,
    World,
    calls,
)
from toolcassette.adapters.pydantic_ai import cassette


class Guard(AbstractCapability[Any]):
    """Refuses some cities, and answers others itself."""

    def __init__(self, world):
        self.world = world

    async def before_tool_execute(self, ctx, *, call, tool_def, args):
        if args.get("city") in self.world.rejects:
            raise ToolFailed("not that one")
        return args

    async def wrap_tool_execute(self, ctx, *, call, tool_def, args, handler):
        if args.get("city") in self.world.bypasses:
            return Weather(args["city"], 0.0)
        return await handler(args)


def made(turn, world):
    if not turn.calls:
        return ModelResponse(parts=[TextPart(turn.text)])
    parts = [ToolCallPart(name, args, tool_call_id=world.new_id()) for name, args in turn.calls]
    return ModelResponse(parts=parts, provider_response_id=world.new_id())


def shown(messages):
    kept = ("part_kind", "content", "tool_name", "args", "tool_call_id", "outcome")
    return [{name: getattr(part, name, None) for name in kept} for message in messages for part in message.parts]


class PydanticAi(Driver):
    models = ("fake",)
    on_mismatch = "CassetteMismatch"

    def agent(self, world):
        async def stream(messages, info):
            for word in world.answer().words:
                yield word

        model = FunctionModel(lambda messages, info: made(world.answer(), world), stream_function=stream)
        agent = Agent(model, capabilities=[Guard(world), cassette(model_name="fake", agents=world.composites)])
        for tool in world.tools.values():
            agent.tool_plain(tool)
        return agent

    async def run(self, world):
        result = await self.agent(world).run("hi")
        return result.output, shown(result.all_messages())

    async def stream(self, world, reads=None):
        seen: list[str] = []
        async with self.agent(world).run_stream("hi") as result:
            async for word in result.stream_text(delta=True, debounce_by=None):
                seen.append(word)
                if len(seen) == reads:
                    break
        return seen

    def schema(self, fn, *, cassette):
        seen: list[Any] = []

        def look(messages, info):
            seen.extend(info.function_tools)
            return ModelResponse(parts=[TextPart("ok")])

        agent = Agent(FunctionModel(look), capabilities=[_cassette()] if cassette else [])
        agent.tool_plain(fn)
        anyio.run(agent.run, "hi")
        return [[tool.name, tool.description, tool.parameters_json_schema, tool.return_schema] for tool in seen]


_cassette = cassette


class TestPydanticAi(Tools, Parallel, Cancelling, Models, Streams, Nested, Annotated, Rejecting, Bypassing):
    driver = PydanticAi()


pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"  # pydantic-ai runs on no other loop


class Broken(Exception):
    """Of the program's own."""


class Shop:
    """An agent with tools that end in every way this framework has."""

    def __init__(self, *turns, output_type: Any = str, **options):
        self.world = World(*turns)
        self.ran = self.world.ran
        toolset = FunctionToolset[Any]()

        @toolset.tool_plain
        def picture(name: str) -> ToolReturn[Weather]:
            self.ran.append("picture")
            image = BinaryContent(b"\x89PNG", media_type="image/png")
            return ToolReturn(Weather(name, 1.5), content=["look:", image], metadata={"rows": [1, 2]})

        @toolset.tool_plain
        def note() -> ToolReturn:
            self.ran.append("note")
            return ToolReturn({"ok": True}, content="as you wish")

        @toolset.tool_plain(retries=3)
        def again(n: int) -> str:
            self.ran.append("again")
            if n < 2:
                raise ModelRetry("more")
            return "enough"

        @toolset.tool_plain
        def failed() -> str:
            self.ran.append("failed")
            raise ToolFailed("no such row")

        @toolset.tool_plain
        def broken() -> str:
            raise Broken("gone", 7)

        @toolset.tool
        async def counted(ctx: RunContext[Any], by: int = 1) -> set[int]:
            self.ran.append("counted")
            return {by, len(ctx.messages)}

        @toolset.tool_plain
        def asking() -> str:
            raise ApprovalRequired({"who": "boss"})

        model = FunctionModel(lambda messages, info: made(self.world.answer(), self.world))
        capabilities = [cassette(model_name="fake", **options)]
        toolsets = [toolset.prefixed("shop")]
        self.agent: Any = Agent(model, toolsets=toolsets, output_type=output_type, capabilities=capabilities)

    async def run(self):
        return (result := await self.agent.run("hi")).output, shown(result.all_messages())


async def both(file, make, run=Shop.run):
    live, again = make(), make()
    async with tc.record(file, ["shop_*", "fake"], order="causal"):
        told = await run(live)
    async with tc.replay(file):
        assert await run(again) == told
    assert (again.ran, again.world.asked) == ([], 0)
    return told


async def test_what_comes_beside_a_result(file):
    _, parts = await both(file, lambda: Shop(calls(("shop_picture", {"name": "a"}), ("shop_note", {})), DONE))
    contents = [part["content"] for part in parts]
    assert Weather("a", 1.5) in contents
    ((look, image),) = (content for content in contents if isinstance(content, list))
    assert (look, image.data, image.media_type) == ("look:", b"\x89PNG", "image/png")
    assert {"ok": True} in contents
    assert "as you wish" in contents


async def test_a_tool_that_asks_to_be_called_again(file):
    turns = [calls(("shop_again", {"n": n})) for n in range(3)]
    _, parts = await both(file, lambda: Shop(*turns, DONE))
    outcomes = [part["outcome"] for part in parts if part["part_kind"] == "tool-return"]
    assert len(outcomes) == 3
    assert outcomes[-1] == "success"
    assert [call.outcome for call in tc.read_cassette(file) if call.boundary == "tool"] == ["error", "error", "ok"]


async def test_a_tool_that_failed(file):
    _, parts = await both(file, lambda: Shop(calls(("shop_failed", {})), DONE))
    assert ("failed", "no such row") in [(part["outcome"], part["content"]) for part in parts]


async def test_an_error_of_the_program_is_its_own_where_it_is_declared(file):
    async def run(shop):
        with pytest.raises(Broken) as caught:
            await shop.run()
        return caught.value.args

    assert await both(file, lambda: Shop(calls(("shop_broken", {})), errors=[Broken]), run) == ("gone", 7)


async def test_values_come_back_in_the_type_that_the_function_promises(file):
    _, parts = await both(file, lambda: Shop(calls(("shop_counted", {})), DONE))
    assert {1, 2} in [part["content"] for part in parts if part["part_kind"] == "tool-return"]
    (call,) = (call for call in tc.read_cassette(file) if call.boundary == "tool")
    assert call.args == b'{"by":1}', "defaults are in the key, the context of the run is not"


async def test_an_output_tool_is_part_of_the_model(file):
    turn = calls(("final_result", {"city": "a", "degrees": 2.0}))
    output, _ = await both(file, lambda: Shop(turn, output_type=Weather))
    assert output == Weather("a", 2.0)
    assert [call.tool for call in tc.read_cassette(file)] == ["fake"]


async def test_arguments_that_the_framework_refuses_are_a_rejection(file):
    turns = calls(("shop_picture", {"nom": "a"})), calls(("shop_picture", {"name": "a"})), DONE
    await both(file, lambda: Shop(*turns))
    assert tc.inspect(file).rejected == 1


async def test_a_tool_that_defers_its_call_does_so_again(file):
    from pydantic_ai import DeferredToolRequests

    def make():
        return Shop(calls(("shop_asking", {})), output_type=[str, DeferredToolRequests])

    output, _ = await both(file, make)
    assert [call.tool_name for call in output.approvals] == ["shop_asking"]
    assert list(output.metadata.values()) == [{"who": "boss"}]


async def test_a_hook_that_skips_a_tool_is_a_bypass(file):
    class Skips(AbstractCapability[Any]):
        async def before_tool_execute(self, ctx, *, call, tool_def, args):
            raise SkipToolExecution("no need")

    world = World(calls(("roll", {})), DONE)
    model = FunctionModel(lambda messages, info: made(world.answer(), world))
    agent = Agent(model, capabilities=[cassette(), Skips()])
    agent.tool_plain(world.tools["roll"])
    with pytest.raises(tc.NotPublished) as caught:
        async with tc.record(file, ["roll"]):
            await agent.run("hi")
    assert (caught.value.reason, world.ran) == ("bypassed", [])


async def test_a_tool_that_is_not_selected_does_not_run_beside_a_replay(file):
    driver, turns = PydanticAi(), (calls(("roll", {})), calls(("tag", {"words": []})), DONE)
    async with tc.record(file, ["roll", "fake"], order="causal"):
        await driver.run(World(*turns))
    world = World(*turns)
    with pytest.raises(tc.NotSelected):
        async with tc.replay(file):
            await driver.run(world)
    assert world.ran == []


async def test_a_real_model_is_replayed_where_no_request_is_allowed(file, monkeypatch):
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from tests.models.fake_server import provider

    async def run():
        client = OpenAIProvider(base_url=f"{server.url}/v1", api_key="k")
        agent = Agent(OpenAIChatModel("gpt-5", provider=client), capabilities=[cassette()])
        async with client.client:
            return (await agent.run("hi")).output

    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    with provider() as server:
        async with tc.record(file, ["openai:*"]):
            told = await run()
        server.stop()
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", False)
    async with tc.replay(file):
        assert await run() == told
    assert len(server.requests) == 1


async def test_a_streamed_run_with_tools_is_equal_event_by_event(file):
    from pydantic_ai.models.function import DeltaToolCall

    async def run(world):
        async def stream(messages, info):
            turn = world.answer()
            for index, (name, args) in enumerate(turn.calls):
                yield {index: DeltaToolCall(name=name, json_args=json.dumps(args), tool_call_id=world.new_id())}
            for word in turn.words:
                yield word

        agent = Agent(FunctionModel(stream_function=stream), capabilities=[cassette(model_name="fake")])
        agent.tool_plain(world.tools["weather"])
        kinds = ("part_start", "part_delta", "part_end", "final_result", "function_tool_call", "function_tool_result")
        async with agent.run_stream_events("hi") as events:
            seen = [_untimed(event) async for event in events if event.event_kind in kinds]
        # Of tools that are done in one step of the loop, the framework tells in the order of the calls.
        results = [event for event in seen if event.startswith("FunctionToolResultEvent")]
        return [event for event in seen if event not in results], sorted(results)

    live, again = (World(calls(("weather", {"city": "slow"}), ("weather", {"city": "fast"})), DONE) for _ in range(2))
    async with tc.record(file, ["weather", "fake"], order="causal"):
        told = await run(live)
    async with tc.replay(file):
        assert await run(again) == told
    assert (again.ran, again.asked) == ([], 0)
    assert (len(told[0]) > 5, len(told[1])) == (True, 2)


def _untimed(event):
    """An event as text, without the time at which a tool returned."""
    return re.sub(r"timestamp=datetime\.datetime\(.*?\)", "", repr(event))
