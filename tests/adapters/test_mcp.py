"""The client transport of the official SDK: in memory for the suite, and with a real server on stdio."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest

import toolcassette as tc
from tests.adapters.conformance import Annotated, Cancelling, Driver, Parallel, Tools
from tests.adapters.mcp_kits import IS_2, MCPServer, StdioServerParameters, client_of, memory, stdio_client
from toolcassette.adapters.mcp import cassette_transport

SERVER = Path(__file__).with_name("mcp_server.py")


def plain(model):
    return model.model_dump(mode="json", by_alias=True)


def server_of(tools):
    server = MCPServer("world", log_level="CRITICAL")
    for name, fn in tools.items():
        server.add_tool(fn, name=name)
    return server


class Mcp(Driver):
    also: ClassVar[tuple[str, ...]] = ("mcp:*",)
    on_mismatch = "ExceptionGroup"  # of the task groups of client and transport; within, it is CassetteMismatch

    def tool_name(self, name):
        return f"mcp/{name}"

    async def run(self, world):
        async with client_of(cassette_transport(memory(server_of(world.tools)))) as client:
            said = [plain(await client.list_tools())]
            for turn in world.turns:
                answers: dict[int, object] = {}

                async def call(at, name, arguments, answers=answers):
                    answers[at] = plain(await client.call_tool(name, arguments))

                async with anyio.create_task_group() as tasks:
                    for at, (name, arguments) in enumerate(turn.calls):
                        tasks.start_soon(call, at, name, arguments)
                said.append([answers[at] for at in sorted(answers)] or turn.text)
            return said

    def schema(self, fn, *, cassette):
        async def listed():
            inner = memory(server_of({fn.__name__: fn}))
            async with client_of(cassette_transport(inner) if cassette else inner) as client:
                return plain(await client.list_tools())

        return anyio.run(listed)


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class TestOnAsyncio(Tools, Parallel, Cancelling):
    driver = Mcp()


class TestOnTrio(Tools, Cancelling):
    driver = Mcp()

    @pytest.fixture
    def anyio_backend(self):
        return "trio"


class ToolsOnly(Mcp):
    also: ClassVar[tuple[str, ...]] = ()


class TestToolsOnly(Annotated):
    """A replay that selects tools alone shakes hands with the server of today, and asks it for its tools."""

    driver = ToolsOnly()


# -- with a server in a process of its own ---------------------------------------------------------------------------


@pytest.fixture
def trace(tmp_path, monkeypatch):
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    return tmp_path / "ran"


def bodies(trace):
    found = trace.read_text("utf-8").split() if trace.exists() else []
    trace.unlink(missing_ok=True)
    return found


def stdio():
    return stdio_client(StdioServerParameters(command=sys.executable, args=[str(SERVER)], env=dict(os.environ)))


async def everything(client):
    """What a client sees of all that a server can do."""
    said, progress = {"tools": plain(await client.list_tools())}, []

    async def call(name, arguments, key, **options):
        said[key] = plain(await client.call_tool(name, arguments, **options))

    async def step(done, total, message):
        progress.append((done, total, message))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, "weather", {"city": "slow"}, "slow")
        tasks.start_soon(call, "weather", {"city": "fast"}, "fast")
    await call("fails", {"n": 1}, "fails")
    await call("picture", {}, "picture")
    await call("steps", {}, "steps", progress_callback=step)
    assert len(progress) == 2
    return {**said, "progress": progress}


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
@pytest.mark.parametrize("options", [{"mode": "auto"}, {"mode": "legacy"}] if IS_2 else [{}])
async def test_a_server_on_stdio_and_then_none(file, trace, options):
    async with tc.record(file, ["mcp*"], order="causal"), client_of(cassette_transport(stdio()), **options) as client:
        said = await everything(client)
    assert bodies(trace) == ["weather-fast", "weather-slow", "fails", "picture", "steps"]
    assert said["fails"]["isError"]
    assert said["slow"]["structuredContent"] == {"city": "slow", "degrees": 20.5}
    assert said["picture"]["content"][0]["type"] == "image"

    nowhere = stdio_client(StdioServerParameters(command="no-such-server"))
    async with tc.replay(file), client_of(cassette_transport(nowhere), **options) as client:
        assert await everything(client) == said
    assert bodies(trace) == []


@pytest.mark.anyio
async def test_a_call_takes_the_path_of_the_task_that_makes_it(file, trace):
    async def look(client):
        await client.list_tools()
        for name in ("one", "two"):
            with tc.scope(name):
                await client.call_tool("weather", {"city": "Wuhan"})

    async with tc.record(file, ["mcp*"]), client_of(cassette_transport(stdio())) as client:
        await look(client)
    assert [call.path for call in tc.read_cassette(file) if call.tool == "mcp/weather"] == [("one",), ("two",)]
    bodies(trace)
    async with tc.replay(file), client_of(cassette_transport(stdio())) as client:
        await look(client)
    assert bodies(trace) == []


@pytest.mark.anyio
async def test_a_mismatch_is_raised_by_the_call_itself(file, trace):
    async with tc.record(file, ["mcp*"]), client_of(cassette_transport(stdio())) as client:
        await client.call_tool("weather", {"city": "Wuhan"})
    bodies(trace)
    with pytest.raises(tc.CassetteMismatch):
        async with tc.replay(file), client_of(cassette_transport(stdio())) as client:
            with pytest.raises(tc.CassetteMismatch):
                await client.call_tool("weather", {"city": "Oslo"})
            with pytest.raises(tc.CassettePoisoned):
                await client.call_tool("weather", {"city": "Wuhan"})
    assert bodies(trace) == []


@pytest.mark.anyio
async def test_a_replay_without_the_handshake_names_what_to_select(file, trace):
    async with tc.record(file, ["mcp/weather"]), client_of(cassette_transport(stdio())) as client:
        await client.call_tool("weather", {"city": "Wuhan"})
    with pytest.raises(tc.NotSelected):
        async with tc.replay(file), client_of(cassette_transport(stdio())):
            raise AssertionError


async def silent_server(read, write):
    """Takes all, answers nothing, and goes."""
    async with read, write:
        async for _ in read:
            return


@pytest.mark.anyio
async def test_a_server_that_goes_away_is_an_error_of_the_protocol_again(file):
    @asynccontextmanager
    async def inner():
        into_client, read = anyio.create_memory_object_stream[Any](10)
        write, from_client = anyio.create_memory_object_stream[Any](10)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(silent_server, from_client, into_client)
            async with read, write:
                yield read, write

    async def told():
        with pytest.raises(Exception) as caught:  # McpError of the one, MCPError of the other
            async with client_of(cassette_transport(inner()), **({"mode": "legacy"} if IS_2 else {})):
                raise AssertionError
        found = caught.value
        while isinstance(found, ExceptionGroup):
            found = found.exceptions[0]
        return type(found).__name__, str(found)

    async with tc.record(file, ["mcp*"], order="causal"):
        said = await told()
    async with tc.replay(file):
        assert await told() == said
    assert said[1] == "Connection closed"
