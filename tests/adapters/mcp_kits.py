"""The official SDK in both of its generations, as the tests need it: a client of 1.27 and later, or of 2.x."""

from __future__ import annotations

import importlib
import importlib.metadata
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp
from mcp.client.stdio import StdioServerParameters, stdio_client

__all__ = ["IS_2", "MCPServer", "StdioServerParameters", "client_of", "memory", "server_kit", "stdio_client"]

IS_2 = int(importlib.metadata.version("mcp").split(".")[0]) >= 2
kit: Any = mcp
server_kit: Any = importlib.import_module("mcp.server.mcpserver" if IS_2 else "mcp.server.fastmcp")
MCPServer: Any = server_kit.MCPServer if IS_2 else server_kit.FastMCP


@asynccontextmanager
async def client_of(transport, **options):
    """A client that has shaken hands."""
    if IS_2:
        async with kit.Client(transport, **options) as client:
            yield client
    else:
        async with transport as (read, write), kit.ClientSession(read, write) as client:
            await client.initialize()
            yield client


def memory(server):
    """A transport to a server in this process."""
    return importlib.import_module("mcp.client._memory").InMemoryTransport(server) if IS_2 else _memory(server)


@asynccontextmanager
async def _memory(server):
    streams = importlib.import_module("mcp.shared.memory").create_client_server_memory_streams
    async with streams() as (ours, theirs), anyio.create_task_group() as tasks:
        inner = server._mcp_server
        tasks.start_soon(lambda: inner.run(*theirs, inner.create_initialization_options()))
        yield ours
        tasks.cancel_scope.cancel()
