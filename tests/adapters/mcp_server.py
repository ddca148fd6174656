"""A real server on stdio, with the official SDK of either generation. Its bodies leave a trace in the file $RAN."""

import importlib
import importlib.metadata
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from pydantic import BaseModel

IS_2 = int(importlib.metadata.version("mcp").split(".")[0]) >= 2
kit: Any = importlib.import_module("mcp.server.mcpserver" if IS_2 else "mcp.server.fastmcp")
if TYPE_CHECKING:  # they stand in annotations, which the server reads
    Context: TypeAlias = Any
    Image: TypeAlias = Any
else:
    Context, Image = kit.Context, kit.Image


class Weather(BaseModel):
    city: str
    degrees: float


server = (kit.MCPServer if IS_2 else kit.FastMCP)("weather", log_level="CRITICAL")


def ran(what):
    with Path(os.environ["RAN"]).open("a", encoding="utf-8") as file:
        file.write(what + "\n")


@server.tool()
async def weather(city: str) -> Weather:
    if city == "slow":
        await anyio.sleep(0.2)
    ran(f"weather-{city}")
    return Weather(city=city, degrees=20.5)


@server.tool()
async def fails(n: int) -> str:
    ran("fails")
    raise ValueError("no row")


@server.tool()
async def picture() -> Image:
    ran("picture")
    return Image(data=b"\x89PNG" + bytes(range(256)), format="png")


@server.tool()
async def steps(ctx: Context) -> str:
    ran("steps")
    await ctx.report_progress(1, 2, "half")
    await ctx.report_progress(2, 2)
    return "done"


@server.tool()
async def hang() -> str:
    ran("hang")
    await anyio.sleep(60)
    return ""


if __name__ == "__main__":
    server.run("stdio")
