"""Transports of httpx2 and httpx that stand before a real one: what several adapters are made of.

Rule: one record for each request that is sent, retries among them. The real transport is not asked in a replay.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolcassette.adapters._http import (
    Wire,
    body_of,
    chunk_bytes,
    content_of,
    is_stream,
    kept,
    kept_stream,
    kept_stream_async,
    wire_errors,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from toolcassette.identity import Rule

__all__ = ["cassette_transport", "kinds_of", "module_of"]

_MODULES: Final = ("httpx2", "httpx")
_INSTALL: Final = "cassette_transport needs httpx2 (or httpx): pip install 'toolcassette[httpx]'"


def cassette_transport(
    inner: Any = None, *, name: str, rules: Sequence[Rule] = (), module: Any = None, is_async: bool = False
) -> Any:
    """A transport for clients of ``module`` (httpx2 or httpx: if not given, that of ``inner``, or the one installed).

    Raises ``ModuleNotFoundError`` where neither is installed, ``TypeError`` for an ``inner`` of neither.
    """
    home = module or _module(inner)
    kinds = kinds_of(home)
    wire = Wire(name, rules, wire_errors(home))
    if is_async:
        return kinds.async_transport(home.AsyncHTTPTransport() if inner is None else inner, wire, kinds)
    return kinds.transport(home.HTTPTransport() if inner is None else inner, wire, kinds)


def module_of(client: type) -> Any:
    """httpx2 or httpx: the one that a class of clients is derived from."""
    roots = [kind.__module__.partition(".")[0] for kind in client.__mro__]
    return importlib.import_module(next(root for root in roots if root in _MODULES))


def _module(inner: Any) -> Any:
    for name in _MODULES:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        if inner is None or isinstance(inner, (module.BaseTransport, module.AsyncBaseTransport)):
            return module
    if inner is not None:
        message = "inner must be a transport of httpx2 or httpx"
        raise TypeError(message)
    raise ModuleNotFoundError(_INSTALL, name=_MODULES[0])


class _Body:
    """The chunks of a stream that a session hands out, as a client reads them."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        return map(chunk_bytes, self._stream)

    def close(self) -> None:
        self._stream.close()


class _AsyncBody:
    """As ``_Body``."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for item in self._stream:
            yield chunk_bytes(item)

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Transport:
    """Stands before a real transport. ``kinds`` has the classes of its module."""

    def __init__(self, inner: Any, wire: Wire, kinds: _Kinds) -> None:
        self._inner = inner
        self._wire = wire
        self._kinds = kinds

    def handle_request(self, request: Any) -> Any:
        session = self._wire.session()
        if session is None:
            return self._inner.handle_request(request)
        body = body_of(request.read())
        pending = self._wire.begin(session, request.method, str(request.url), request.headers, body, shape="iterator")
        with pending:
            if pending.runs_body:
                response = self._inner.handle_request(request)
                if is_stream(response):
                    pending.keep(kept_stream(response))
                else:
                    response.read()
                    pending.keep(kept(response))
        value: Any = pending.outcome()
        if isinstance(value, dict):
            return self._kinds.response(value["status"], headers=value["headers"], content=content_of(value))
        head = next(value)
        return self._kinds.response(head["status"], headers=head["headers"], stream=self._kinds.body(value))

    def close(self) -> None:
        self._inner.close()


class _AsyncTransport:
    """As ``_Transport``."""

    def __init__(self, inner: Any, wire: Wire, kinds: _Kinds) -> None:
        self._inner = inner
        self._wire = wire
        self._kinds = kinds

    async def handle_async_request(self, request: Any) -> Any:
        session = self._wire.session()
        if session is None:
            return await self._inner.handle_async_request(request)
        body = body_of(await request.aread())
        shape = "async_iterator"
        pending = self._wire.begin(session, request.method, str(request.url), request.headers, body, shape=shape)
        async with pending:
            if pending.runs_body:
                response = await self._inner.handle_async_request(request)
                if is_stream(response):
                    pending.keep(kept_stream_async(response))
                else:
                    await response.aread()
                    pending.keep(kept(response))
        value: Any = pending.outcome()
        if isinstance(value, dict):
            return self._kinds.response(value["status"], headers=value["headers"], content=content_of(value))
        head = await anext(value)
        return self._kinds.response(head["status"], headers=head["headers"], stream=self._kinds.async_body(value))

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Kinds(NamedTuple):
    """The classes above as classes of one of the two modules."""

    response: Any
    body: Any
    async_body: Any
    transport: Any
    async_transport: Any


@functools.cache
def kinds_of(module: Any) -> _Kinds:
    """The classes above, for httpx2 or httpx."""
    return _Kinds(
        response=module.Response,
        body=type("CassetteBody", (_Body, module.SyncByteStream), {}),
        async_body=type("AsyncCassetteBody", (_AsyncBody, module.AsyncByteStream), {}),
        transport=type("CassetteTransport", (_Transport, module.BaseTransport), {}),
        async_transport=type("AsyncCassetteTransport", (_AsyncTransport, module.AsyncBaseTransport), {}),
    )
