"""Agents of langchain, graphs of langgraph and chat models, with models that answer from a script."""

from __future__ import annotations

import contextlib
import json
import operator
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from pydantic import BaseModel, Field

import toolcassette as tc
from tests.adapters import conformance as suite
from tests.adapters.conformance import DONE, Driver, World, calls
from toolcassette.adapters.langchain import cassette_middleware, cassette_model, tool_wrappers

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"  # langgraph runs on no other loop


class Scripted(BaseChatModel):
    """Answers what the script of its world says, whole or in chunks, and makes up ids as providers do."""

    model: str = "fake"
    world: Any = Field(repr=False)

    @property
    def _llm_type(self):
        return "scripted"

    def _get_ls_params(self, stop=None, **kwargs):
        return super()._get_ls_params(stop=stop, **kwargs) | {"ls_provider": "scripted"}

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _chunks(self):
        turn = self.world.answer()
        if not turn.calls:
            return [AIMessageChunk(content=word, id=f"msg-{self.world.run_id}") for word in turn.words]
        calls: list[Any] = [
            {"name": name, "args": json.dumps(args), "id": self.world.new_id(), "index": at, "type": "tool_call_chunk"}
            for at, (name, args) in enumerate(turn.calls)
        ]
        return [AIMessageChunk(content="", tool_call_chunks=[call]) for call in calls]

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        whole, *rest = self._chunks()
        for chunk in rest:
            whole += chunk
        metadata = {"request": self.world.new_id(), "finish": "stop"}
        message = AIMessage(
            whole.content, tool_calls=whole.tool_calls, id=whole.id, response_metadata={"model_name": "fake"}
        )
        return ChatResult(generations=[ChatGeneration(message=message)], llm_output=metadata)

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        for chunk in self._chunks():
            yield ChatGenerationChunk(message=chunk)


def tool(fn):
    return StructuredTool.from_function(coroutine=fn)


def shown(messages):
    return [
        (m.type, m.content, m.name, getattr(m, "status", None), getattr(m, "tool_call_id", None), m.response_metadata)
        for m in messages
    ] + [call for m in messages for call in getattr(m, "tool_calls", ())]


class Guard(AgentMiddleware):
    """Refuses calls, and answers calls, before anybody else is asked."""

    def __init__(self, world):
        super().__init__()
        self.world = world

    async def awrap_tool_call(self, request, handler):
        city = request.tool_call["args"].get("city")
        told = {"tool_call_id": request.tool_call["id"], "name": request.tool_call["name"]}
        if city in self.world.rejects:
            return ToolMessage("not allowed", status="error", **told)
        if city in self.world.bypasses:
            return ToolMessage("sunny, as ever", **told)
        return await handler(request)


def agent(world, model=None) -> Any:
    middleware = [Guard(world), cassette_middleware(agents=world.composites)]
    tools = [tool(fn) for fn in world.tools.values()]
    return create_agent(model or Scripted(world=world), tools, middleware=middleware)


ASKED: Any = {"messages": [("user", "hi")]}


class Langchain(Driver):
    models = ("scripted:fake",)
    on_mismatch = "CassetteMismatch"

    async def run(self, world: World) -> Any:
        return shown((await agent(world).ainvoke(ASKED))["messages"])

    async def stream(self, world: World, reads: int | None = None) -> list[Any]:
        seen: list[Any] = []
        async with contextlib.aclosing(cassette_model(Scripted(world=world)).astream("hi")) as stream:
            async for chunk in stream:
                own = chunk.id if chunk.id.startswith("msg") else None  # else langchain's, of the run
                seen.append((chunk.content, own, chunk.response_metadata))
                if len(seen) == reads:
                    break
        return seen

    def schema(self, fn: Any, *, cassette: bool) -> Any:
        made = tool(fn)
        if not cassette:
            return convert_to_openai_tool(made)
        told: list[Any] = []

        class Listening(Scripted):
            def bind_tools(self, tools, **kwargs):
                told.extend(convert_to_openai_tool(each) for each in tools)
                return super().bind_tools(tools, **kwargs)

        world = World(suite.DONE)
        create_agent(Listening(world=world), [made], middleware=[cassette_middleware()]).invoke(ASKED)
        return told[0]


class TestLangchain(
    suite.Tools,
    suite.Parallel,
    suite.Cancelling,
    suite.Models,
    suite.Streams,
    suite.Nested,
    suite.Rejecting,
    suite.Bypassing,
):
    driver = Langchain()


# --- what is langchain's own -------------------------------------------------------------------------------------


async def recorded(file, run):
    """A run and its replay. ``run`` takes a world, which counts what was really done."""
    live, again = World(), World()
    async with tc.record(file, ["*"], order="causal"):
        told = await run(live)
    async with tc.replay(file):
        assert await run(again) == told
    assert (again.ran, again.asked) == ([], 0)
    return live, told


def scripted(world, *turns):
    world.turns = turns
    return Scripted(world=world)


async def test_tokens_of_an_agent_are_equal_and_one_that_is_closed_early_is_cancelled(file):
    async def run(world, reads=99):
        model = scripted(world, calls(("roll", {})), DONE)
        seen = []
        stream = agent(world, model).astream(ASKED, stream_mode=["messages", "updates"])
        async for mode, said in stream:
            seen.append(said[0].content if mode == "messages" else sorted(said))
            if len(seen) == reads:
                await stream.aclose()
                break
        return seen

    live, seen = await recorded(file, run)
    assert live.asked == 2
    assert [each for each in seen if each in DONE.words] == list(DONE.words)


def test_a_sync_agent_runs_its_tools_in_threads(file):
    def run(world):
        def weather(city: str) -> dict:
            """w"""
            world.ran.append(city)
            return {"city": city, "degrees": 20.5}

        made = StructuredTool.from_function(weather)
        model = scripted(world, calls(("weather", {"city": "a"}), ("weather", {"city": "b"})), DONE)
        built: Any = create_agent(model, [made], middleware=[cassette_middleware()])
        tokens = [m.content for m, _ in built.stream(ASKED, stream_mode="messages") if m.type == "AIMessageChunk"]
        world._at = 0
        return tokens, shown(built.invoke(ASKED)["messages"])

    live, again = World(), World()
    with tc.record(file, ["*"], order="causal"):
        told = run(live)
    with tc.replay(file):
        assert run(again) == told
    assert sorted(live.ran) == ["a", "a", "b", "b"]
    assert (again.ran, again.asked) == ([], 0)
    assert told[0][-4:-1] == list(DONE.words)


class Notes(MessagesState):
    notes: Annotated[list, operator.add]


def graph(world, fn, *, handle_tool_errors=False, **options):
    """A graph of one's own: a model, and a node of tools."""
    made = [fn if isinstance(fn, BaseTool) else StructuredTool.from_function(coroutine=fn)]
    model = cassette_model(scripted(world, *world.turns)).bind_tools(made)

    async def ask(state):
        return {"messages": [await model.ainvoke(state["messages"])]}

    built = StateGraph(Notes)
    built.add_node("ask", ask)
    built.add_node("tools", ToolNode(made, handle_tool_errors=handle_tool_errors, **tool_wrappers(**options)))
    built.add_edge(START, "ask")
    built.add_conditional_edges("ask", tools_condition)
    built.add_edge("tools", "ask")
    return built


async def test_commands_and_artifacts_come_back(file):
    async def run(world):
        async def note(text: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
            """n"""
            world.ran.append(text)
            told = ToolMessage("noted", tool_call_id=tool_call_id, artifact={"at": (1, 2), "raw": b"x"})
            return Command(update={"messages": [told], "notes": [text, {"n": 1}]}, goto="ask")

        world.turns = (calls(("note", {"text": "a"})), DONE)
        state = await graph(world, note).compile().ainvoke(ASKED)
        artifacts = [m.artifact for m in state["messages"] if m.type == "tool"]
        return shown(state["messages"]), state["notes"], artifacts

    live, (_, notes, artifacts) = await recorded(file, run)
    assert notes == ["a", {"n": 1}]
    assert artifacts == [{"at": (1, 2), "raw": b"x"}]
    assert live.ran == ["a"]


async def test_an_answer_is_that_of_todays_call_although_the_model_is_not_recorded(file):
    async def run(world):
        world.turns = (calls(("roll", {})), DONE)
        state = await graph(world, world.tools["roll"]).compile().ainvoke(ASKED)
        ids = [m.tool_call_id for m in state["messages"] if m.type == "tool"]
        assert ids == [f"id-{world.run_id}-1"]
        return [m.content for m in state["messages"]]

    async with tc.record(file, ["roll"], order="causal"):
        told = await run(World())
    again = World()
    async with tc.replay(file, ["roll"]):
        assert await run(again) == told
    assert (again.ran, again.asked) == ([], 2)
    assert b"tool_call_id" not in next(iter(tc.read_cassette(file))).args


async def test_a_command_that_resumes_is_refused_by_name(file):
    async def resume(text: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """r"""
        return Command(resume=text, update={"messages": [ToolMessage("ok", tool_call_id=tool_call_id)]})

    world = World()
    world.turns = (calls(("resume", {"text": "a"})), DONE)
    with pytest.raises(tc.UnrecordableValue) as caught:
        async with tc.record(file, ["resume"], order="causal"):
            await graph(world, resume).compile().ainvoke(ASKED)
    assert (caught.value.tool, caught.value.json_path, caught.value.type_name) == ("resume", "$.resume", "Command")


async def test_a_value_of_no_known_class_is_refused_by_name(file):
    async def odd(text: str):
        """o"""

    made = StructuredTool.from_function(coroutine=odd, response_format="content_and_artifact")
    made.coroutine = _odd
    world = World()
    world.turns = (calls(("odd", {"text": "a"})), DONE)
    with pytest.raises(tc.UnrecordableValue) as caught:
        async with tc.record(file, ["odd"], order="causal"):
            await graph(world, made).compile().ainvoke(ASKED)
    assert (caught.value.tool, caught.value.type_name) == ("odd", "object")
    assert "artifact" in caught.value.json_path


async def _odd(text: str) -> Any:
    return "text", object()


async def test_an_interrupt_asks_again_and_goes_on(file):
    async def run(world):
        async def buy(what: str) -> str:
            """b"""
            answer = interrupt({"buy": what})
            world.ran.append(what)
            return f"{what}: {answer}"

        world.turns = (calls(("buy", {"what": "tea"})), DONE)
        built = graph(world, buy).compile(checkpointer=InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        asked = (await built.ainvoke(ASKED, thread))["__interrupt__"]
        state = await built.ainvoke(Command(resume="yes"), thread)
        return [each.value for each in asked], shown(state["messages"])

    live, (asked, messages) = await recorded(file, run)
    assert asked == [{"buy": "tea"}]
    assert messages[2][1] == "tea: yes"
    assert live.ran == ["tea"]
    assert [call.outcome for call in tc.read_cassette(file) if call.tool == "buy"] == ["error", "ok"]


class Sold(Exception):
    pass


async def test_errors_that_a_node_handles_are_answers_and_others_are_raised(file):
    async def run(world):
        async def buy(what: str) -> str:
            """b"""
            world.ran.append(what)
            raise Sold(what)

        world.turns = (calls(("buy", {"what": "tea"})), DONE)
        handled = await graph(world, buy, handle_tool_errors=True).compile().ainvoke(ASKED)
        world._at = 0
        with pytest.raises(Sold) as caught:
            await graph(world, buy, errors=[Sold]).compile().ainvoke(ASKED)
        return shown(handled["messages"]), caught.value.args

    live, (messages, args) = await recorded(file, run)
    assert messages[2][3] == "error"
    assert args == ("tea",)
    assert live.ran == ["tea", "tea"]


async def test_a_node_that_handles_every_error_swallows_a_mismatch_and_the_end_tells(file):
    async def run(world, city):
        world.turns = (calls(("weather", {"city": city})), DONE)
        return await graph(world, world.tools["weather"], handle_tool_errors=True).compile().ainvoke(ASKED)

    async with tc.record(file, ["weather"], order="causal"):
        await run(World(), "Wuhan")
    world = World()
    with pytest.raises(tc.CassetteMismatch):
        async with tc.replay(file, ["weather"]):
            state = await run(world, "Oslo")
            assert state["messages"][-1].content == DONE.text
    assert world.ran == []


async def test_an_answer_that_does_not_fit_its_output_schema_is_refused_in_both_modes(file):
    async def run(world, schema):
        world.turns = (calls(("tag", {"words": ["a"]})), DONE)
        await graph(world, world.tools["tag"], output_schemas={"tag": schema}).compile().ainvoke(ASKED)

    fits = {"type": "object", "properties": {"ratio": {"type": "number"}}}
    drifted = {"type": "object", "properties": {"ratio": {"type": "string"}}}
    async with tc.record(file, ["tag"], order="causal"):
        await run(World(), fits)
    async with tc.replay(file, ["tag"]):
        await run(World(), fits)
    world = World()
    with pytest.raises(tc.ContractMismatch):
        async with tc.replay(file, ["tag"]):
            await run(world, drifted)
    assert world.ran == []
    with pytest.raises(tc.UnrecordableValue):
        async with tc.record(file.with_name("y.cassette.jsonl"), ["tag"], order="causal"):
            await run(World(), drifted)


async def test_graphs_within_graphs_have_paths(file):
    async def run(world):
        world.turns = (calls(("roll", {})), DONE)
        inner = graph(world, world.tools["roll"]).compile()
        built = StateGraph(Notes)
        built.add_node("re/searcher", inner)
        built.add_edge(START, "re/searcher")
        return shown((await built.compile().ainvoke(ASKED))["messages"])

    await recorded(file, run)
    assert {call.path for call in tc.read_cassette(file)} == {("re%2Fsearcher",)}


async def test_a_session_may_select_a_tool_that_runs_an_agent_as_one_call(file):
    async def run(world):
        world.turns = (calls(("delegate", {"topic": "a"})), DONE)
        world._inner = (calls(("roll", {})), DONE)
        return await Langchain().run(world.delegating(Langchain()))

    live, again = World(), World()
    async with tc.record(file, ["delegate"], order="causal"):
        told = await run(live)
    async with tc.replay(file, ["delegate"]):
        assert [each[:2] for each in (await run(again))[:-1]] == [each[:2] for each in told[:-1]]
    assert (live.ran, live.asked, again.ran, again.asked) == (["roll"], 4, [], 2)
    assert [call.tool for call in tc.read_cassette(file)] == ["delegate"]


async def test_a_model_looks_like_the_model():
    world = World(DONE, DONE, DONE)
    model = Scripted(world=world, model="m", tags=["t"])
    stand_in = cassette_model(model)
    assert isinstance(stand_in, Scripted)
    assert (stand_in.model, stand_in.tags, stand_in._llm_type) == ("m", ["t"], "scripted")
    assert type(stand_in).__qualname__ == "Scripted"
    assert repr(stand_in) == repr(model.model_copy(update={"cache": False}))
    assert cassette_model(stand_in) is stand_in
    assert stand_in.invoke("hi").content == (await stand_in.ainvoke("hi")).content == DONE.text
    assert "".join(chunk.content for chunk in stand_in.stream("hi")) == DONE.text
    assert world.asked == 3
    with pytest.raises(TypeError, match="chat model"):
        cassette_model(object())


class Whole(Scripted):
    _stream = BaseChatModel._stream


async def test_a_model_that_cannot_stream_still_cannot(file):
    async def run(world):
        world.turns = (DONE, DONE)
        model = cassette_model(Whole(world=world))
        return [c.content async for c in model.astream("hi")], [c.content for c in model.stream("hi")]

    _, told = await recorded(file, run)
    assert told == ([DONE.text], [DONE.text])
    assert [call.chunks for call in tc.read_cassette(file)] == [None, None]


async def test_a_chain_with_structured_output_and_settings(file):
    async def run(world, **settings):
        world.turns = (calls(("Answer", {"value": 7})),)
        chain = cassette_model(Scripted(world=world)).with_structured_output(Answer)
        return await chain.ainvoke("how many?", **settings)

    _, told = await recorded(file, run)
    assert told == Answer(value=7)
    with pytest.raises(tc.CassetteMismatch):
        async with tc.replay(file):
            await run(World(), stop=["x"])


class Answer(BaseModel):
    """What is answered."""

    value: int


async def test_the_cache_of_langchain_hides_no_call(file):
    from langchain_core.caches import InMemoryCache

    world = World(DONE, DONE)
    model = cassette_model(Scripted(world=world, cache=InMemoryCache()))
    async with tc.record(file, ["*"]):
        await model.ainvoke("hi")
        await model.ainvoke("hi")
    assert len(list(tc.read_cassette(file))) == 2


async def test_a_limit_of_calls_that_langchain_sets_is_a_rejection(file):
    from langchain.agents.middleware import ToolCallLimitMiddleware

    async def run(world):
        model = scripted(world, calls(("roll", {}), ("roll", {})), DONE)
        limit = ToolCallLimitMiddleware(run_limit=1)
        built: Any = create_agent(model, [tool(world.tools["roll"])], middleware=[limit, cassette_middleware()])
        return shown((await built.ainvoke(ASKED))["messages"])

    await recorded(file, run)
    assert tc.inspect(file).rejected == 1


async def test_what_a_limit_ends_is_told_by_the_last_hook(file):
    from langchain.agents.middleware import ToolCallLimitMiddleware

    async def run(world):
        model = scripted(world, calls(("roll", {})), calls(("roll", {})))
        limit = ToolCallLimitMiddleware(run_limit=1, exit_behavior="end")
        built: Any = create_agent(model, [tool(world.tools["roll"])], middleware=[limit, cassette_middleware()])
        return shown((await built.ainvoke(ASKED))["messages"])

    live, _ = await recorded(file, run)
    assert live.asked == 2
    assert tc.inspect(file).rejected == 1


async def test_an_answer_in_a_given_form_is_no_bypassed_call(file):
    async def run(world):
        model = scripted(world, calls(("roll", {})), calls(("Answer", {"value": 7})))
        built: Any = create_agent(
            model, [tool(world.tools["roll"])], response_format=ToolStrategy(Answer), middleware=[cassette_middleware()]
        )
        return (await built.ainvoke(ASKED))["structured_response"]

    _, told = await recorded(file, run)
    assert told == Answer(value=7)


async def test_a_tool_that_a_model_made_up_is_nobodys_call(file):
    async def run(world):
        model = scripted(world, calls(("rool", {}), ("roll", {})), DONE)
        built: Any = create_agent(model, [tool(world.tools["roll"])], middleware=[cassette_middleware()])
        return shown((await built.ainvoke(ASKED))["messages"])

    live, again = World(), World()
    async with tc.record(file, ["roll", "scripted:fake"], order="causal"):
        told = await run(live)
    async with tc.replay(file):
        assert await run(again) == told
    assert (live.ran, again.ran, again.asked) == (["roll"], [], 0)
    assert "not a valid tool" in told[2][1]
    assert [call.tool for call in tc.read_cassette(file)] == ["scripted:fake", "roll", "scripted:fake"]
