"""The raw ``anthropic`` client and its tool runner: requests, recorded and replayed by its middleware, and tools.

    client = cassette_client(anthropic.Anthropic())
    runner = client.beta.messages.tool_runner(tools=cassette_tools([weather]), ...)

The middleware runs inside the client's retry loop: one record for each attempt. It sees no authentication headers.

Rule: what a replay hands out goes through the client's own parser, also when it streams.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from toolcassette.adapters._calls import Calls
from toolcassette.adapters._http import (
    Wire,
    content_of,
    is_stream,
    kept,
    kept_stream,
    kept_stream_async,
    wire_errors,
)
from toolcassette.adapters._transport import kinds_of, module_of
from toolcassette.contracts import Extensions, contract_for
from toolcassette.engine import ToolContract
from toolcassette.errors import UnrecordableValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcassette.engine import Member, Pending
    from toolcassette.identity import Rule

__all__ = ["cassette_client", "cassette_tools"]

_C = TypeVar("_C")
_T = TypeVar("_T")
_INSTALL: Final = "{} needs anthropic: pip install 'toolcassette[anthropic]'"


def cassette_client(client: _C, *, name: str = "anthropic", rules: Sequence[Rule] = ()) -> _C:
    """A copy of an ``Anthropic`` or ``AsyncAnthropic`` client; sessions select its requests by ``name``.

    They are calls at the boundary ``model``. ``rules`` as in ``wrap_model``; the body of a request is under ``json``.
    Raises ``TypeError`` for what is no such client, ``ModuleNotFoundError`` without anthropic.
    """
    package = _package("cassette_client")
    if not isinstance(client, (package.Anthropic, package.AsyncAnthropic)):
        message = "cassette_client takes an Anthropic or AsyncAnthropic client"
        raise TypeError(message)
    middleware = _middleware()(name, rules)
    given: Any = client
    middleware.client = given.with_middleware(middleware)
    return cast("_C", middleware.client)


def cassette_tools(
    tools: Iterable[_T], *, agents: Iterable[str] = (), errors: Sequence[type[Exception]] = ()
) -> list[_T]:
    """Copies of runnable tools (``beta_tool``, ``beta_async_tool``), for a tool runner; selected by their names.

    What cannot be run here, tools of the provider, stays as it is. ``agents``: tools whose body runs an agent; unless a
    session selects one itself, it runs in both modes and its calls lie below it in the call path. ``errors`` are
    classes of exceptions that a replay raises as themselves; ``ToolError`` is one. Raises ``ModuleNotFoundError``
    without anthropic.
    """
    _package("cassette_tools")
    from anthropic.lib.tools import ToolError

    extensions = Extensions()
    extensions.register_error(ToolError, lambda error: _result(error.content), ToolError)
    contract = ToolContract(contract_for(), errors, extensions=extensions)
    calls = Calls(contract, agents, arguments=dict, value=_result)
    found: list[_T] = []
    for tool in tools:
        stand_in: Any = copy.copy(tool)
        if callable(getattr(tool, "call", None)):
            stand_in.call = calls.wrap(stand_in.name, stand_in.call)
        found.append(stand_in)
    return found


def _result(content: Any) -> Any:
    """What a tool hands a model: text, or blocks."""
    return content if isinstance(content, str) else list(content)


def _package(use: str = "cassette_client") -> Any:
    try:
        import anthropic
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(_INSTALL.format(use), name=error.name) from None
    return anthropic


class _Handling:
    """What the middleware does. ``client`` is the one that it stands in, whose parser reads what is handed out."""

    def __init__(self, name: str, rules: Sequence[Rule]) -> None:
        self.client: Any = None
        self._package = _package()
        self._module = module_of(self._package.DefaultHttpxClient)
        url = "https://anthropic.invalid"  # where a failed request went is nobody's question any more
        request = self._module.Request("POST", url)
        self._wire = Wire(
            name,
            rules,
            {
                **wire_errors(self._module),
                self._package.APIConnectionError: lambda text: self._package.APIConnectionError(
                    message=text, request=request
                ),
                self._package.APITimeoutError: lambda _: self._package.APITimeoutError(request=request),
            },
        )

    def handle(self, request: Any, call_next: Any) -> Any:
        session = self._wire.session()
        if session is None:
            return call_next(request)
        pending = self._begin(session, request, "iterator")
        with pending:
            if pending.runs_body:
                response = call_next(request).http_response
                if is_stream(response):
                    pending.keep(kept_stream(response))
                else:
                    response.read()
                    pending.keep(kept(response))
        value: Any = pending.outcome()
        head, body = (value, None) if isinstance(value, dict) else (next(value), value)
        return self._answer(self._package.APIResponse, request, head, body, kinds_of(self._module).body)

    async def handle_async(self, request: Any, call_next: Any) -> Any:
        session = self._wire.session()
        if session is None:
            return await call_next(request)
        pending = self._begin(session, request, "async_iterator")
        async with pending:
            if pending.runs_body:
                response = (await call_next(request)).http_response
                if is_stream(response):
                    pending.keep(kept_stream_async(response))
                else:
                    await response.aread()
                    pending.keep(kept(response))
        value: Any = pending.outcome()
        head, body = (value, None) if isinstance(value, dict) else (await anext(value), value)
        return self._answer(self._package.AsyncAPIResponse, request, head, body, kinds_of(self._module).async_body)

    def _begin(self, session: Member, request: Any, shape: str) -> Pending:
        options = request.options
        if options.files or getattr(options, "content", None) is not None:
            why = "is sent as it is, and has no place in the key of a request; leave it to another client"
            refused = UnrecordableValue(json_path="$.files", type_name="upload", why=why, tool=self._wire.name)
            raise session.refuse(refused, self._wire.name)
        body = {**(request.json or {}), **(options.extra_json or {})}
        asked = {"json": _plain(body), "stream": request.stream}
        headers = {str(k).lower(): str(v) for k, v in request.headers.items() if isinstance(v, str)}
        query = {key: _plain(value) for key, value in (request.query_params or {}).items()}
        if query:
            asked["query"] = query
        return self._wire.begin(session, request.method, self._url(request), headers, asked, shape=shape)

    def _url(self, request: Any) -> str:
        return f"{str(self.client.base_url).rstrip('/')}/{str(request.url).lstrip('/')}"

    def _answer(self, wrapper: Any, request: Any, head: Any, body: Any, stream: Any) -> Any:
        """The client's own response, made of what was kept."""
        content = {"content": content_of(head)} if body is None else {"stream": stream(body)}
        raw = self._module.Response(
            head["status"],
            headers=head["headers"],
            request=self._module.Request(request.method, self._url(request)),
            **content,
        )
        return wrapper(
            raw=raw,
            cast_to=request.cast_to,
            client=self.client,
            stream=request.stream,
            stream_cls=request.stream_cls,
            options=request.options,
            retries_taken=request.retries_taken,
        )


@functools.cache
def _middleware() -> Any:
    return type("CassetteMiddleware", (_Handling, _package().Middleware), {})


def _plain(value: Any) -> Any:
    """A body as the client will send it: models and iterables as JSON."""
    if isinstance(value, Mapping):
        return {key: _plain(member) for key, member in value.items()}
    if hasattr(type(value), "model_dump"):
        return value.model_dump(mode="json", exclude_unset=True, by_alias=True)
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, bytearray)):
        return [_plain(item) for item in value]
    return value
