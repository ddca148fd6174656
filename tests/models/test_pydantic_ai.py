"""Agents of pydantic-ai with a recorded model: answers, streams, tools, failures; on the package's own test models."""

from __future__ import annotations

import pytest
from pydantic_ai import Agent, ModelSettings, models
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

import toolcassette as tc
from toolcassette.adapters.pydantic_ai import cassette_model

pytestmark = pytest.mark.anyio
models.ALLOW_MODEL_REQUESTS = False  # and a replay passes all the same


@pytest.fixture
def anyio_backend():
    return "asyncio"  # pydantic-ai runs on no other loop


class World:
    """A model and a tool, and how often each was really asked; each run has ids of its own, as providers have."""

    def __init__(self):
        self.asked = 0
        self.ran = 0
        self.fails = False

    def answer(self, messages, info):
        self.asked += 1
        if self.fails:
            raise ModelHTTPError(status_code=503, model_name="fake", body={"error": "busy"})
        if len(messages) == 1:
            return ModelResponse(
                parts=[ToolCallPart("weather", {"city": c}, tool_call_id=f"call-{id(self)}-{c}") for c in "ab"],
                provider_response_id=f"resp-{id(self)}",
            )
        return ModelResponse(parts=[TextPart("done")])

    async def stream(self, messages, info):
        self.asked += 1
        if len(messages) == 1:
            yield {0: DeltaToolCall(name="weather", json_args='{"city":', tool_call_id=f"call-{id(self)}")}
            yield {0: DeltaToolCall(json_args='"a"}')}
            return
        for word in ("do", "ne", "!"):
            if self.fails and word == "!":
                raise ModelHTTPError(status_code=503, model_name="fake", body=None)
            yield word

    def agent(self, **options):
        model = FunctionModel(self.answer, stream_function=self.stream, model_name="fake")
        agent = Agent(cassette_model(model, name="fake", **options))

        @agent.tool_plain
        @tc.cassette_tool(name="weather")
        async def weather(city: str) -> str:
            self.ran += 1
            return f"sunny in {city}"

        return agent


async def both(file, run):
    """A run, and the same in a world that is asked nothing."""
    live, again = World(), World()
    async with tc.record(file, ["*"], order="causal"):
        told = await run(live)
    async with tc.replay(file):
        assert await run(again) == told
    assert (again.asked, again.ran) == (0, 0)
    return live, told


def shown(messages):
    return [(part.part_kind, getattr(part, "content", None), getattr(part, "tool_call_id", None))
            for message in messages for part in message.parts]  # fmt: skip


async def test_a_run_with_tools(file):
    async def run(world):
        result = await world.agent().run("hi")
        return result.output, shown(result.all_messages())

    live, (output, messages) = await both(file, run)
    assert (live.asked, live.ran, output) == (2, 2, "done")
    assert messages[1][2] == f"call-{id(live)}-a", "ids are replayed as they were"
    calls = list(tc.read_cassette(file))
    assert [(call.tool, call.boundary) for call in calls] == [
        ("fake", "model"), ("weather", "tool"), ("weather", "tool"), ("fake", "model"),
    ]  # fmt: skip
    assert b"timestamp" not in calls[3].args
    assert str(id(live)).encode() not in calls[3].args


async def test_a_streaming_run_is_equal_event_by_event(file):
    async def run(world):
        kinds = ("part_start", "part_delta", "part_end", "final_result")
        async with world.agent().run_stream_events("hi") as events:
            return [repr(event) async for event in events if event.event_kind in kinds]

    live, seen = await both(file, run)
    assert (live.asked, live.ran) == (2, 1)
    assert sum("TextPartDelta" in event for event in seen) == 2
    assert [call.chunks is not None for call in tc.read_cassette(file) if call.boundary == "model"] == [True, True]


async def test_text_as_it_comes(file):
    async def run(world):
        async with world.agent().run_stream("hi") as result:
            text = [word async for word in result.stream_text(delta=True, debounce_by=None)]
            return text, shown(result.all_messages()), result.usage.output_tokens

    _, (text, *_) = await both(file, run)
    assert text == ["do", "ne", "!"]


async def test_a_stream_that_is_left_early(file):
    def request(world):
        agent = world.agent()
        model = agent.model
        return models.ModelRequestParameters(), model

    async def run(world, reads=2):
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        parameters, model = request(world)
        history = [ModelRequest(parts=[UserPromptPart("hi")]), ModelResponse(parts=[TextPart("x")])]
        seen = []
        async with model.request_stream(history, None, parameters) as stream:
            async for event in stream:
                seen.append(repr(event))
                if len(seen) == reads:
                    break
            response = stream.get()
        return seen, response.state, [part.content for part in response.parts]

    _, (seen, state, parts) = await both(file, run)
    assert (len(seen), state, parts) == (2, "incomplete", ["do"])
    assert next(iter(tc.read_cassette(file))).outcome == "left_early"
    with pytest.raises(tc.CassetteMismatch):
        async with tc.replay(file):
            await run(World(), reads=4)


async def test_failures_of_a_model_are_its_own_again(file):
    async def run(world):
        world.fails = True
        with pytest.raises(ModelHTTPError) as caught:
            await world.agent().run("hi")
        error = caught.value
        return type(error), error.status_code, error.model_name, error.body, str(error)

    live, told = await both(file, run)
    assert told[1:4] == (503, "fake", {"error": "busy"})
    assert live.asked == 1


async def test_a_stream_that_fails_midway(file):
    async def run(world):
        world.fails = True
        seen = []
        with pytest.raises(ModelHTTPError) as caught:
            async with world.agent().run_stream("hi") as result:
                words = result.stream_text(delta=True, debounce_by=None)
                seen += [await anext(words), await anext(words)]
                await anext(words)
        return seen, caught.value.status_code

    _, told = await both(file, run)
    assert told == (["do", "ne"], 503)


async def test_what_is_asked_otherwise_is_a_mismatch(file):
    async with tc.record(file, ["*"], order="causal"):
        await World().agent().run("hi")
    for change in (
        {"prompt": "ho"},
        {"model_settings": ModelSettings(temperature=0.5)},
        {"instructions": "be brief"},
        {"output_type": int},
    ):
        world = World()
        with pytest.raises(tc.CassetteMismatch):
            async with tc.replay(file):
                await world.agent().run(**{"user_prompt": change.pop("prompt", "hi"), **change})
        assert (world.asked, world.ran) == (0, 0)


async def test_without_a_session_the_model_is_asked():
    world = World()
    assert (await world.agent().run("hi")).output == "done"
    async with world.agent().run_stream("hi") as result:
        assert await result.get_output() == "done!"
    assert world.asked == 4


async def test_the_name_is_the_models_id_unless_another_is_given(file):
    async with tc.record(file, ["function:*"]):
        await Agent(cassette_model(FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart("x")])))).run("a")
    (call,) = tc.read_cassette(file)
    assert call.tool.startswith("function:function")
