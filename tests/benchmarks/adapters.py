"""What a tool call costs through an adapter: recorded and replayed, against the framework alone.

Rule: a run is one turn with all calls, and a model that answers from a script; the session selects the tool alone and
counts whole, spread over the calls. The base has no adapter in place.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import toolcassette as tc
from tests.benchmarks.measure import Benchmark

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

__all__ = ["ADAPTERS", "adapting"]


async def look(number: int) -> dict[str, int]:
    """Some row."""
    return {"number": number}


def _pydantic_ai(count: int, *, seam: bool) -> Callable[[], Awaitable[object]]:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from toolcassette.adapters.pydantic_ai import cassette

    def answer(messages: list[Any], info: object) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("look", {"number": number}) for number in range(count)])

    agent = Agent(FunctionModel(answer), capabilities=[cassette()] if seam else [])
    agent.tool_plain(look)
    return lambda: agent.run("hi")


def _openai_agents(count: int, *, seam: bool) -> Callable[[], Awaitable[object]]:
    from agents import Agent, RunConfig, Runner, function_tool
    from agents.testing import ScriptedModel, assistant_message, function_call

    from toolcassette.adapters.openai_agents import cassette_agent

    def run() -> Awaitable[object]:
        made = [function_call("look", {"number": number}, call_id=f"c{number}") for number in range(count)]
        model = ScriptedModel([made, [assistant_message("done")]])
        agent = Agent[Any]("a", model=model, tools=[function_tool(look)])
        return Runner.run(cassette_agent(agent) if seam else agent, "hi", run_config=RunConfig(tracing_disabled=True))

    return run


def _langchain(count: int, *, seam: bool) -> Callable[[], Awaitable[object]]:
    from langchain.agents import create_agent
    from langchain_core.tools import StructuredTool

    from tests.adapters.conformance import DONE, World, calls
    from tests.adapters.test_langchain import ASKED, Scripted
    from toolcassette.adapters.langchain import cassette_middleware

    def run() -> Awaitable[object]:
        world = World(calls(*(("look", {"number": number}) for number in range(count))), DONE)
        middleware: list[Any] = [cassette_middleware()] if seam else []
        tools = [StructuredTool.from_function(coroutine=look)]
        agent: Any = create_agent(Scripted(world=world), tools, middleware=middleware)
        ran: Awaitable[object] = agent.ainvoke(ASKED)
        return ran

    return run


def _fastmcp(count: int, *, seam: bool) -> Callable[[], Awaitable[object]]:
    from fastmcp import Client, FastMCP

    from toolcassette.adapters.fastmcp import cassette_middleware

    async def run() -> None:
        server: Any = FastMCP("looking", middleware=[cassette_middleware()] if seam else [])
        server.tool(look)
        async with Client(server) as client:
            for number in range(count):
                await client.call_tool("look", {"number": number})

    return run


ADAPTERS = {
    "pydantic-ai": (_pydantic_ai, "look"),
    "openai-agents": (_openai_agents, "look"),
    "langchain": (_langchain, "look"),
    "fastmcp": (_fastmcp, "mcp/look"),
}


async def _seconds(run: Callable[[], Awaitable[object]], session: Any = None) -> float:
    began = time.perf_counter()
    if session is None:
        await run()
    else:
        async with session:
            await run()
    return time.perf_counter() - began


def adapting(folder: Path, calls: int, only: str = "") -> Iterator[Benchmark]:
    """One turn of ``calls`` calls for each framework: recorded (``sync="none"``) and replayed."""
    for name, (make, tool) in ADAPTERS.items():
        if not any(only in f"{mode}-{name}" for mode in ("record", "replay")):
            continue
        alone, seamed = make(calls, seam=False), make(calls, seam=True)
        file = folder / f"{name}.cassette.jsonl"

        def bare(run: Any = alone) -> float:
            return asyncio.run(_seconds(run))

        def record(run: Any = seamed, file: Path = file, tool: str = tool) -> float:
            file.unlink(missing_ok=True)
            return asyncio.run(_seconds(run, tc.record(file, [tool], order="causal", sync="none")))

        def replay(run: Any = seamed, file: Path = file, tool: str = tool) -> float:
            return asyncio.run(_seconds(run, tc.replay(file, [tool])))

        yield Benchmark(f"record-{name}", bare, record, calls, "a tool call of a turn; base: the framework alone")
        record()  # for a run of the replay alone
        yield Benchmark(f"replay-{name}", bare, replay, calls, "a tool call of a turn; base: the framework alone")
