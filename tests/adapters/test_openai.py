"""The tool runner of openai on a cassette, with a provider that answers from a script."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from typing import Any

import httpx2
import openai
import pydantic
import pytest
from openai.lib._tools import pydantic_responses_function_tool
from openai.lib.responses_tool_runner import (
    AsyncRegisteredFunction,
    AsyncResponsesToolRunner,
    RegisteredFunction,
    ResponsesToolRunner,
)

import toolcassette as tc
from tests.adapters import conformance as suite
from tests.adapters.conformance import DONE, Driver, World, calls
from toolcassette.adapters.openai import cassette_client, cassette_functions


class Events(httpx2.AsyncByteStream):
    def __init__(self, events):
        self.events = events

    async def __aiter__(self):
        for number, event in enumerate(self.events):
            yield f"data: {json.dumps(event | {'sequence_number': number})}\n\n".encode()


def response(world, turn):
    items: list[dict[str, Any]] = [
        {"type": "function_call", "id": world.new_id(), "call_id": world.new_id(), "name": name,
         "arguments": json.dumps(given), "status": "completed"}
        for name, given in turn.calls
    ]  # fmt: skip
    if turn.words:
        part = {"type": "output_text", "text": turn.text, "annotations": []}
        items.append(
            {"type": "message", "id": world.new_id(), "role": "assistant", "status": "completed", "content": [part]}
        )
    return {
        "id": world.new_id(), "object": "response", "created_at": 1, "model": "g", "status": "completed",
        "output": items, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None,
        "incomplete_details": None, "instructions": None, "metadata": {},
    }  # fmt: skip


def events(whole, turn):
    yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    for at, item in enumerate(whole["output"]):
        place = {"item_id": item["id"], "output_index": at}
        empty: dict[str, Any] = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
        begun = {"type": "response.output_item.added", "output_index": at}
        yield {**begun, "item": {**item, **empty, "status": "in_progress"}}
        if item["type"] == "function_call":
            yield {"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"],
                   "name": item["name"]}  # fmt: skip
        else:
            place["content_index"] = 0
            part = {"type": "output_text", "text": "", "annotations": []}
            yield {"type": "response.content_part.added", **place, "part": part}
            for word in turn.words:
                yield {"type": "response.output_text.delta", **place, "delta": word, "logprobs": []}
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    yield {"type": "response.completed", "response": whole}


def provider(world):
    """What stands for the network."""

    def answer(request):
        turn = world.answer()
        whole = response(world, turn)
        if not json.loads(request.content).get("stream"):
            return httpx2.Response(200, json=whole)
        return httpx2.Response(
            200, headers={"content-type": "text/event-stream"}, stream=Events(list(events(whole, turn)))
        )

    return httpx2.MockTransport(answer)


def client(world):
    return cassette_client(openai.AsyncOpenAI(api_key="sk-1", max_retries=0), transport=provider(world))


PARAMETERS: dict[str, Any] = {"type": "object", "additionalProperties": True, "properties": {}}


def function(fn, **options):
    """A function of a world as openai's runner takes it, which hands text to a model."""

    async def execute(given):
        value = await fn(**given)
        return json.dumps(vars(value) if dataclasses.is_dataclass(value) else value)

    told: Any = {"type": "function", "name": fn.__name__, "strict": False, "parameters": PARAMETERS}
    return AsyncRegisteredFunction(told, execute, **options)


ASKED: Any = {"model": "g", "input": "hi"}


class OpenAi(Driver):
    models = ("openai",)
    on_mismatch = "ToolRunnerError"
    independent = False

    def runner(self, world):
        functions = [function(fn, independent=self.independent) for fn in world.tools.values()]
        return AsyncResponsesToolRunner(functions=cassette_functions(functions, agents=world.composites))

    async def run(self, world: World) -> Any:
        async with client(world) as asked:
            turns = self.runner(world).iterate(asked, ASKED)
            return [turn.response.to_dict() async for turn in turns]

    async def stream(self, world: World, reads: int | None = None) -> list[Any]:
        seen: list[Any] = []
        async with client(world) as asked, await asked.responses.create(**ASKED, stream=True) as stream:
            async with contextlib.aclosing(aiter(stream)) as told:
                async for event in told:
                    seen.append(event.to_dict())
                    if len(seen) == reads:
                        break
        return seen

    def schema(self, fn: Any, *, cassette: bool) -> Any:
        made = function(fn)
        return (cassette_functions([made])[0] if cassette else made).tool


class TestOpenAi(suite.Tools, suite.Models, suite.Nested):
    driver = OpenAi()

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request):
        return request.param


class TestStreamsOfOpenAi(suite.Streams):
    """On asyncio only: the client drops the generators of a stream that is left early, and trio warns of each."""

    driver = OpenAi()


class Eager(OpenAi):
    """The runner that begins calls while the answer still comes, several at once."""

    independent = True

    async def run(self, world: World) -> Any:
        async with client(world) as asked:
            turns = self.runner(world).iterate(asked, ASKED, stream=True, eager=True)
            return [turn.response.to_dict() async for turn in turns]


class TestEagerOpenAi(suite.Tools, suite.Parallel, suite.Models, suite.Nested):
    driver = Eager()


class Asked(pydantic.BaseModel):
    what: str


class Sold(Exception):
    pass


def test_sync_functions_of_models_and_declared_errors(file):
    def run(world):
        seen: list[Any] = []

        def look(asked: Asked, *, cancelled: Any = None) -> Any:
            seen.append(cancelled)
            world.ran.append(asked.what)
            if asked.what == "sold":
                raise Sold(asked.what)
            return [{"type": "input_text", "text": asked.what}]

        made = RegisteredFunction.from_tool(pydantic_responses_function_tool(Asked, name="look"), execute=look)
        (stand_in,) = cassette_functions([made], errors=[Sold])
        world.turns = (calls(("look", {"what": "tea"})), DONE)
        options: Any = {"api_key": "sk-1", "max_retries": 0}
        with cassette_client(openai.OpenAI(**options), transport=provider(world)) as asked:
            turns = [t.response.to_dict() for t in ResponsesToolRunner(functions=[stand_in]).iterate(asked, ASKED)]
        with pytest.raises(Sold, match="sold"):
            stand_in.execute(Asked(what="sold"))  # type: ignore[arg-type] # as the runner calls it
        return turns

    live, again = World(), World()
    with tc.record(file, ["*"], order="causal"):
        told = run(live)
    with tc.replay(file):
        assert run(again) == told
    assert (live.ran, again.ran, again.asked) == (["tea", "sold"], [], 0)
    with pytest.raises(TypeError, match="RegisteredFunction"):
        cassette_functions([object()])
