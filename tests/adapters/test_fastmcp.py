"""The middleware of FastMCP: in a server with tools of its own, and in a proxy of another one."""

from __future__ import annotations

import logging

import anyio
import pytest
from fastmcp import Client, FastMCP
from fastmcp.server import create_proxy
from fastmcp.utilities.types import Image

import toolcassette as tc
from tests.adapters.conformance import Annotated, Driver, Parallel, Tools
from tests.cli.helpers import cassette
from toolcassette.adapters.fastmcp import cassette_middleware


def plain(model):
    return model.model_dump(mode="json", by_alias=True)


def server_of(tools, *middleware):
    server = FastMCP("world", middleware=middleware)
    for name, fn in tools.items():
        server.tool(fn, name=name)
    return server


class Fast(Driver):
    on_mismatch = "MCPError"  # the server answers "Internal server error"

    def tool_name(self, name):
        return f"mcp/{name}"

    def served(self, world):
        return server_of(world.tools, cassette_middleware())

    async def run(self, world):
        async with Client(self.served(world)) as client:
            said: list[object] = [list(map(plain, await client.list_tools()))]
            for turn in world.turns:
                answers: dict[int, object] = {}

                async def call(at, name, arguments, answers=answers):
                    answers[at] = plain(await client.call_tool_mcp(name, arguments))

                if len(turn.calls) == 1:
                    await call(0, *turn.calls[0])
                else:
                    async with anyio.create_task_group() as tasks:
                        for at, (name, arguments) in enumerate(turn.calls):
                            tasks.start_soon(call, at, name, arguments)
                said.append([answers[at] for at in sorted(answers)] or turn.text)
            return said

    def schema(self, fn, *, cassette):
        async def listed():
            async with Client(server_of({fn.__name__: fn}, *[cassette_middleware()] * cassette)) as client:
                return list(map(plain, await client.list_tools()))

        return anyio.run(listed)


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class TestServer(Tools, Parallel, Annotated):
    driver = Fast()


class Proxied(Fast):
    def served(self, world):
        proxy = create_proxy(server_of(world.tools), name="proxy")
        proxy.add_middleware(cassette_middleware())
        return proxy


class TestProxy(Tools, Parallel, Annotated):
    driver = Proxied()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # of its client
async def test_errors_and_pictures_reach_the_client_as_they_did(file):
    ran = []

    def picture() -> Image:
        ran.append("picture")
        return Image(data=b"\x89PNG" + bytes(range(256)), format="png")

    def fails(n: int) -> str:
        ran.append("fails")
        raise ValueError("no row")

    async def told():
        said = []
        async with Client(server_of({"picture": picture, "fails": fails}, cassette_middleware())) as client:
            for name, arguments in (("picture", {}), ("fails", {"n": 1}), ("fails", {"n": "x"}), ("unknown", {})):
                result = await client.call_tool(name, arguments, raise_on_error=False)
                said.append((result.is_error, list(map(plain, result.content)), result.data))
        return said

    async with tc.record(file, ["mcp/*"], order="causal"):
        said = await told()
    assert ran == ["picture", "fails"]
    assert [is_error for is_error, *_ in said] == [False, True, True, True]
    async with tc.replay(file):
        assert await told() == said
    assert ran == ["picture", "fails"]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_was_recorded_at_a_client_is_replayed_in_the_server(file):
    def roll(sides: int) -> int:
        raise AssertionError(sides)

    value = b'{"content":[{"type":"text","text":"4"}],"structuredContent":{"result":4}}'
    note = b'[{"method":"notifications/message","params":{"data":"so far"}}]'
    call = tc.RecordedCall(tool="mcp/roll", args=b'{"sides":6}', value=value, contexts=note)
    file.write_bytes(cassette([call], include=["mcp/*"]))
    async with tc.replay(file), Client(server_of({"roll": roll}, cassette_middleware())) as client:
        assert (await client.call_tool("roll", {"sides": 6})).data == 4
