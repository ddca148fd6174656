"""FastMCP: a middleware that records and replays what a server's tools answer, also those of a proxy's remote server.

    server = FastMCP("weather", middleware=[cassette_middleware()])

Put it first: what stands after it, guards and caches among it, is part of what is recorded, and does not run in a
replay. Cassettes are as those of the other MCP adapters: ``mcp/weather`` with the tool's arguments.

Rule: a result is held against the output schema that the server has for the tool today.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from toolcassette.adapters._requests import Requests
from toolcassette.contracts import ToolReturn
from toolcassette.errors import UnrecordableValue

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["cassette_middleware"]

_INSTALL: Final = "cassette_middleware needs fastmcp: pip install 'toolcassette[fastmcp]'"
_ASKS: Final = "asks the client for more before it answers, which no cassette holds; record that at the client"
_RAW: Final = "rawStructuredContent"  # of a proxied result, whose structured content need be no object


def cassette_middleware(*, name: str = "mcp") -> Any:
    """A middleware for ``FastMCP(middleware=[...])``; sessions select tools as ``mcp/weather``, of ``name``.

    Raises ``ModuleNotFoundError`` without fastmcp.
    """
    return _kind()(name)


class _Package:
    """What is used of FastMCP, looked up once."""

    def __init__(self) -> None:
        try:
            import fastmcp.exceptions
            import fastmcp.server.middleware
            import fastmcp.tools.base
            import mcp_types
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(_INSTALL, name=error.name) from None
        base: Any = fastmcp.tools.base
        self.middleware: Any = fastmcp.server.middleware.Middleware
        # Each takes a text, or whatever it is given: its `args` make it anew.
        named = vars(fastmcp.exceptions).values()
        self.errors = [
            kind for kind in named if isinstance(kind, type) and kind.__module__ == fastmcp.exceptions.__name__
        ]
        self._answer: Any = mcp_types.CallToolResult
        self.result: Any = base.ToolResult
        self.raw: Any = base.RawStructuredToolResult
        self.asking: Any = base.InputRequiredToolResult

    def write(self, result: Any) -> dict[str, Any]:
        """A result as the answer to a call of MCP."""
        found: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        named = {"structured_content": "structuredContent", "is_error": "isError", "meta": "_meta"}
        kept = {named.get(key, key): part for key, part in found.items()}
        return {**kept, _RAW: True} if isinstance(result, self.raw) else kept

    def read(self, value: Mapping[str, Any]) -> Any:
        """A result, of such an answer."""
        kind = self.raw if value.get(_RAW) else self.result
        return kind(
            content=self._answer.model_validate({"content": value["content"]}).content,
            structured_content=value.get("structuredContent"),
            meta=value.get("_meta"),
            is_error=value.get("isError", False),
        )


_package = functools.cache(_Package)


class _Handling:
    """What the middleware does."""

    def __init__(self, name: str) -> None:
        mixed_in: Any = super()
        mixed_in.__init__()
        self._requests = Requests(name, errors=_package().errors)

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        params = context.message.model_dump(mode="json", by_alias=True, exclude_none=True)
        params["arguments"] = context.message.arguments
        session = self._requests.session("tools/call", params)
        if session is None:
            return await call_next(context)
        tool = await context.fastmcp_context.fastmcp.get_tool(params["name"])
        self._requests.promise(params["name"], None if tool is None else tool.output_schema)
        pending = self._requests.begin(session, "tools/call", params)
        async with pending:
            if pending.runs_body:
                result = await call_next(context)
                if isinstance(result, _package().asking):
                    refused = UnrecordableValue(json_path="$", type_name=type(result).__name__, why=_ASKS)
                    raise session.refuse(refused, params["name"])
                pending.keep(_package().write(result))
        value: Any = pending.outcome()
        # A recording at the client holds notifications too, which are the server's own affair here.
        return _package().read(value.value if isinstance(value, ToolReturn) else value)


@functools.cache
def _kind() -> Any:
    return type("CassetteMiddleware", (_Handling, _package().middleware), {})
