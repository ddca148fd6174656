"""Agents of openai-agents: the suite, and what only this framework has."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    ModelProvider,
    ModelSettings,
    ModelTracing,
    RunConfig,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    UserError,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from agents.mcp import MCPServer
from agents.testing import ScriptedModel, assistant_message, function_call
from mcp_types import CallToolResult, TextContent, Tool
from pydantic import BaseModel

import toolcassette as tc
from tests.adapters.conformance import (
    DONE,
    Annotated,
    Cancelling,
    Driver,
    Models,
    Nested,
    Parallel,
    Rejecting,
    Streams,
    Tools,
    World,
    calls,
    says,
)
from toolcassette.adapters.openai_agents import cassette_agent, cassette_provider

set_tracing_disabled(True)
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"  # the framework runs on no other loop


class Script(ScriptedModel):
    """A model that takes a world's turns."""

    def __init__(self, world):
        super().__init__()
        self.world = world

    async def _next_resolved_step(self, call):
        turn = self.world.answer()
        made = [function_call(name, args, call_id=self.world.new_id()) for name, args in turn.calls]
        self.enqueue(made or [assistant_message(turn.text)])
        return await super()._next_resolved_step(call)


class Provider(ModelProvider):
    def __init__(self, world):
        self.model = Script(world)

    def get_model(self, model_name):
        return self.model


def guard(world):
    async def look(data):
        city = json.loads(data.context.tool_arguments).get("city")
        if city in world.rejects:
            return ToolGuardrailFunctionOutput.reject_content("not that one")
        return ToolGuardrailFunctionOutput.allow()

    return ToolInputGuardrail(guardrail_function=look)


class OpenAiAgents(Driver):
    models = ("fake",)
    on_mismatch = "UserError"

    def agent(self, world):
        tools: list[Any] = [function_tool(fn, tool_input_guardrails=[guard(world)]) for fn in world.tools.values()]
        return cassette_agent(Agent("a", model="fake", tools=tools), agents=world.composites)

    def config(self, world):
        return RunConfig(model_provider=cassette_provider(Provider(world)))

    async def run(self, world):
        result = await Runner.run(self.agent(world), "hi", run_config=self.config(world))
        return result.final_output, [item.to_input_item() for item in result.new_items]

    async def stream(self, world, reads=None):
        model = self.config(world).model_provider.get_model("fake")
        seen: list[Any] = []
        events = model.stream_response(
            None, "hi", ModelSettings(), [], None, [], ModelTracing.DISABLED,
            previous_response_id=None, conversation_id=None, prompt=None,
        )  # fmt: skip
        async for event in events:
            seen.append(event.model_dump(mode="json", exclude_unset=True))
            if len(seen) == reads:
                break
        await events.aclose()
        return seen

    def schema(self, fn, *, cassette):
        agent = Agent("a", tools=[function_tool(fn)])
        (tool,) = (cassette_agent(agent) if cassette else agent).tools
        assert isinstance(tool, FunctionTool)
        return [tool.name, tool.description, tool.params_json_schema, tool.output_json_schema, tool.strict_json_schema]


class TestOpenAiAgents(Tools, Parallel, Cancelling, Models, Streams, Nested, Annotated, Rejecting):
    driver = OpenAiAgents()


class Amount(BaseModel):
    euros: int


class Team:
    """Agents that hand over to each other and use each other as tools; each asks the same scripted world."""

    def __init__(self, *turns):
        self.world = World(*turns)
        self.ran = self.world.ran

        @function_tool
        def look(place: str = "here") -> str:
            self.ran.append(f"look {place}")
            return f"seen {place}"

        @function_tool(failure_error_function=None)
        def stuck() -> str:
            raise LookupError("no way")

        asked = Agent("asked", model="fake", tools=[look])
        self.expert = Agent[Any]("expert/one", tools=[look, stuck])
        self.triage = Agent[Any](
            "triage",
            model="fake",
            tools=[look, cassette_agent(asked).as_tool("ask_it", "Ask it.")],
            handoffs=[self.expert],
        )
        self.expert.handoffs = [handoff(self.triage)]

    def start(self):
        return cassette_agent(self.triage)

    def config(self):
        return RunConfig(model_provider=cassette_provider(Provider(self.world), model_name="fake"))

    async def run(self):
        result = await Runner.run(self.start(), "hi", run_config=self.config())
        return result.final_output, result.last_agent.name, [item.to_input_item() for item in result.new_items]

    async def streamed(self):
        result = Runner.run_streamed(self.start(), "hi", run_config=self.config())
        raw = [e.data.model_dump(mode="json") async for e in result.stream_events() if e.type == "raw_response_event"]
        return result.final_output, raw, [item.to_input_item() for item in result.new_items]


async def both(file, *turns, run=Team.run):
    live, again = Team(*turns), Team(*turns)
    async with tc.record(file, ["look", "stuck", "fake"], order="causal"):
        told = await run(live)
    async with tc.replay(file):
        assert await run(again) == told
    assert (again.ran, again.world.asked) == ([], 0)
    return told, [("/".join(call.path), call.tool) for call in tc.read_cassette(file)]


async def test_an_agent_that_is_handed_over_to_lies_below_its_name(file):
    turns = (
        calls(("look", {})),
        calls(("transfer_to_expert_one", {})),
        calls(("look", {"place": "there"})),
        calls(("transfer_to_triage", {})),
        DONE,
    )
    (output, last, _), seen = await both(file, *turns)
    assert (output, last) == ("done!", "triage")
    expert = "expert%2Fone"
    assert seen == [
        ("", "fake"), ("", "look"), ("", "fake"),
        (expert, "fake"), (expert, "look"), (expert, "fake"),
        ("", "fake"),
    ]  # fmt: skip


async def test_an_agent_that_is_a_tool_is_a_composite(file):
    turns = calls(("ask_it", {"input": "x"})), calls(("look", {})), says("asked"), DONE
    _, seen = await both(file, *turns)
    assert [tool for _, tool in seen] == ["fake", "fake", "look", "fake", "fake"]
    assert all(path.startswith("ask_it:") for path, _ in seen[1:4])
    assert (seen[0][0], seen[4][0]) == ("", "")


async def test_a_streamed_run_is_equal_event_by_event(file):
    (_, raw, _), _ = await both(file, calls(("look", {})), DONE, run=Team.streamed)
    assert len(raw) > 10
    assert [call.chunks is not None for call in tc.read_cassette(file) if call.tool == "fake"] == [True, True]


async def test_an_error_that_the_framework_passes_on_is_its_own(file):
    async def run(team):
        with pytest.raises(UserError) as caught:
            await Runner.run(cassette_agent(team.expert), "hi", run_config=team.config())
        return repr(caught.value.__cause__)

    told, _ = await both(file, calls(("stuck", {})), run=run)
    assert told == "LookupError('no way')"


async def test_arguments_that_are_no_json_are_a_rejection(file):
    class Broken(Provider):
        def __init__(self, world):
            call: Any = function_call("look", {}, call_id="c")
            call.arguments = "{"
            self.model: Any = ScriptedModel([[call], [assistant_message("sorry")]])

    async def run():
        config = RunConfig(model_provider=cassette_provider(Broken(World())))
        return (await Runner.run(Team().start(), "hi", run_config=config)).final_output

    async with tc.record(file, ["look", "fake"]):
        told = await run()
    async with tc.replay(file):
        assert await run() == told == "sorry"
    assert tc.inspect(file).rejected == 1


async def test_a_model_of_the_agents_own_is_recorded(file):
    async def run(world):
        agent = cassette_agent(Agent("a", model=Script(world)))
        return (await Runner.run(agent, "hi")).final_output

    async with tc.record(file, ["Script"]):
        assert await run(World(DONE)) == "done!"
    again = World()
    async with tc.replay(file):
        assert await run(again) == "done!"
    assert again.asked == 0


@pytest.mark.parametrize("cassette", [True, False])
async def test_what_needs_approval_needs_it_still(cassette):
    asked: list[dict[str, Any]] = []

    async def policy(context, arguments, call_id):
        asked.append(arguments)
        return False

    @function_tool(needs_approval=policy)
    def pay(amount: Amount) -> str:
        return "paid"

    agent = Agent(
        "a", model=ScriptedModel([[function_call("pay", {"amount": {"euros": 1}}, call_id="c")]]), tools=[pay]
    )
    result = await Runner.run(cassette_agent(agent) if cassette else agent, "hi")
    assert len(result.interruptions) == 1
    assert asked == [], "the framework asks a person where it cannot look at the arguments without running code"


async def test_another_tool_or_handoff_is_another_request(file):
    async with tc.record(file, ["fake", "look"], order="causal"):
        await Team(DONE).run()
    for change in ("tools", "handoffs"):
        team = Team(DONE)
        setattr(team.triage, change, [])
        with pytest.raises(tc.CassetteMismatch):
            async with tc.replay(file):
                await team.run()
        assert team.world.asked == 0


class Server(MCPServer):
    name = "shop"

    def __init__(self, ran):
        super().__init__()
        self.ran = ran

    async def connect(self):
        """Nothing to do."""

    async def cleanup(self):
        """Nothing to do."""

    async def list_tools(self, run_context=None, agent=None):
        return [Tool(name="price", input_schema={"type": "object", "properties": {"of": {"type": "string"}}})]

    async def call_tool(self, tool_name, arguments, meta=None):
        self.ran.append(tool_name)
        return CallToolResult(content=[TextContent(type="text", text="7 euros")])

    list_prompts = get_prompt = None  # type: ignore[assignment] # nobody asks


async def test_tools_of_a_server_are_recorded(file):
    async def run(world):
        agent = cassette_agent(Agent("a", model="fake", mcp_servers=[Server(world.ran)]))
        result = await Runner.run(agent, "hi", run_config=RunConfig(model_provider=cassette_provider(Provider(world))))
        return [item.to_input_item() for item in result.new_items]

    live, again = (World(calls(("price", {"of": "tea"})), DONE) for _ in range(2))
    async with tc.record(file, ["price", "fake"]):
        told = await run(live)
    async with tc.replay(file):
        assert await run(again) == told
    assert (live.ran, again.ran, again.asked) == (["price"], [], 0)
    assert "7 euros" in str(told)


def test_what_is_no_agent_is_said():
    with pytest.raises(TypeError, match="cassette_agent takes an Agent"):
        cassette_agent(object())


async def test_copies_of_a_recorded_tool_are_recorded(file):
    import copy

    team = Team(calls(("look", {})), DONE)
    agent = team.start()
    agent.tools = [copy.copy(tool) for tool in agent.tools]
    async with tc.record(file, ["look"]):
        await Runner.run(agent, "hi", run_config=RunConfig(model_provider=Provider(team.world)))
    assert [call.tool for call in tc.read_cassette(file)] == ["look"]
