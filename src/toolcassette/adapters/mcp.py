"""The official MCP SDK, 1.27 and later and 2.x: a client's transport, recorded and replayed.

    async with Client(cassette_transport(stdio_client(server))) as client: ...                        # SDK 2.x
    async with cassette_transport(stdio_client(server)) as (read, write), ClientSession(read, write) as session: ...

Rule: a replay that selects the handshake starts no server. Everything above the transport runs as it runs live: the
client's own types, and its check of output schemas.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, Final, Self

import anyio

from toolcassette.adapters._requests import Requests
from toolcassette.adapters._rpc import Relay

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

__all__ = ["cassette_transport"]

_INSTALL: Final = "cassette_transport needs mcp: pip install 'toolcassette[mcp]'"
_WAITING: Final = 256  # messages that may wait for a client that reads slowly; then the server waits


def cassette_transport(inner: Any, *, name: str = "mcp") -> AbstractAsyncContextManager[Any]:
    """A transport around ``inner``: what ``stdio_client(...)`` and its like give, or any transport of SDK 2.x.

    Sessions select tools as ``mcp/weather`` and other methods as ``mcp:tools/list``, so ``include=["mcp*"]`` is all;
    ``name`` is that ``mcp``. A replay that selects the handshake never enters ``inner``. Raises ``ModuleNotFoundError``
    without mcp.
    """
    return _Transport(inner, Requests(name), _package())


class _Package:
    """What is used of the SDK: messages are models, from 1.x wrapped in one of their own, from 2.x plain."""

    def __init__(self) -> None:
        try:
            from mcp.shared.message import SessionMessage
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(_INSTALL, name=error.name) from None
        self._message: Any = SessionMessage
        try:
            from mcp_types import jsonrpc_message_adapter

            self._of: Any = jsonrpc_message_adapter.validate_python
        except ModuleNotFoundError:
            import mcp.types

            types: Any = mcp.types
            self._of = types.JSONRPCMessage.model_validate

    def wrap(self, message: Mapping[str, Any]) -> Any:
        """A message to hand to a client."""
        return self._message(self._of({"jsonrpc": "2.0", **message}))

    def unwrap(self, item: Any) -> dict[str, Any]:
        """The members of a message that there are; its data as it is, with nulls."""
        model = getattr(item.message, "root", item.message)
        found = {key: getattr(model, key, None) for key in ("id", "method", "params", "result")}
        error = getattr(model, "error", None)
        if error is not None:
            found["error"] = error.model_dump(mode="json", exclude_none=True)
        return {key: part for key, part in found.items() if part is not None}


_package = functools.cache(_Package)


class _Transport:
    """An asynchronous context manager that gives a client its two streams."""

    def __init__(self, inner: Any, requests: Requests, package: _Package) -> None:
        self._inner = inner
        self._requests = requests
        self._package = package
        self._entered: Any = None

    async def __aenter__(self) -> Any:
        self._entered = self._open()
        return await self._entered.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        return await self._entered.__aexit__(kind, error, trace)

    def _replays(self) -> bool:
        session = self._requests.session("initialize", {})
        return session is not None and session.mode == "replay"

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncGenerator[Any]:
        out, into = anyio.create_memory_object_stream[Any](_WAITING)

        async def to_client(message: Mapping[str, Any]) -> None:
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it has hung up
                await out.send(self._package.wrap(message))

        async with contextlib.AsyncExitStack() as stack:
            read = write = None
            if not self._replays():
                read, write, *_ = await stack.enter_async_context(self._inner)  # 1.x over HTTP gives a third
            stack.enter_context(out)
            stack.enter_context(into)
            async with anyio.create_task_group() as group:
                relay = Relay(self._requests, group, to_client, write and write.send)
                if read is not None:
                    group.start_soon(self._listen, read, out, relay)
                try:
                    yield into, _Write(relay, write, self._package)
                finally:
                    group.cancel_scope.cancel()

    async def _listen(self, read: Any, out: Any, relay: Relay) -> None:
        """Hand on what the server sends, but for the answers that are on their way through a session."""
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for item in read:
                if isinstance(item, Exception) or await relay.hear(self._package.unwrap(item)):
                    await out.send(item)
        relay.hang_up()


class _Write:
    """The stream that a client writes to."""

    def __init__(self, relay: Relay, write: Any, package: _Package) -> None:
        self._relay = relay
        self._write = write
        self._package = package

    async def send(self, item: Any) -> None:
        """Raises ``CassetteError`` into the call that is made: this runs in its task, and so on its path."""
        await self._relay.ask(self._package.unwrap(item), item)

    async def aclose(self) -> None:
        if self._write is not None:
            await self._write.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
