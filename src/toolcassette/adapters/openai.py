"""The raw ``openai`` client and its tool runner: requests, recorded and replayed at the transport, and functions.

    client = cassette_client(openai.OpenAI())
    runner = ResponsesToolRunner(functions=cassette_functions([weather]))

Rule: the client is its own, and only what sends its bytes is another: its parser, its retries and its streams are the
real ones in a replay too.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from toolcassette.adapters._calls import Calls
from toolcassette.adapters._transport import cassette_transport, module_of
from toolcassette.contracts import contract_for
from toolcassette.engine import ToolContract

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolcassette.identity import Rule

__all__ = ["cassette_client", "cassette_functions"]

_C = TypeVar("_C")
_F = TypeVar("_F")
_INSTALL: Final = "{} needs openai: pip install 'toolcassette[openai]'"


def cassette_client(client: _C, *, name: str = "openai", rules: Sequence[Rule] = (), transport: Any = None) -> _C:
    """A copy of an ``OpenAI`` or ``AsyncOpenAI`` client; sessions select its requests by ``name``, as model calls.

    ``transport``: what sends the bytes, where that is not the client's default (a proxy, a fake server). ``rules`` as
    in ``wrap_model``; the body of a request is under ``json``. The copy has an HTTP client of its own: close it. Raises
    ``TypeError`` for what is no such client, ``ModuleNotFoundError`` without openai.
    """
    try:
        import openai
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(_INSTALL.format("cassette_client"), name=error.name) from None
    if not isinstance(client, (openai.OpenAI, openai.AsyncOpenAI)):
        message = "cassette_client takes an OpenAI or AsyncOpenAI client"
        raise TypeError(message)
    is_async = isinstance(client, openai.AsyncOpenAI)
    http_client: Any = openai.DefaultAsyncHttpxClient if is_async else openai.DefaultHttpxClient
    module = module_of(http_client)
    stand_in = cassette_transport(transport, name=name, rules=rules, module=module, is_async=is_async)
    return cast("_C", client.with_options(http_client=http_client(transport=stand_in)))


def cassette_functions(
    functions: Iterable[_F], *, agents: Iterable[str] = (), errors: Sequence[type[Exception]] = ()
) -> list[_F]:
    """Copies of ``RegisteredFunction`` or ``AsyncRegisteredFunction``, for a tool runner; selected by their names.

    ``agents``: functions whose body runs an agent; unless a session selects one itself, it runs in both modes and its
    calls lie below it in the call path. ``errors`` are classes of exceptions that a replay raises as themselves. Raises
    ``TypeError`` for what is no registered function, ``ModuleNotFoundError`` without openai.
    """
    try:
        from openai.lib.responses_tool_runner import AsyncRegisteredFunction, RegisteredFunction
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(_INSTALL.format("cassette_functions"), name=error.name) from None
    contract = ToolContract(contract_for(), errors)
    calls = Calls(contract, agents, arguments=_arguments, value=lambda result: result)
    found: list[_F] = []
    for function in functions:
        if not isinstance(function, (RegisteredFunction, AsyncRegisteredFunction)):
            message = "cassette_functions takes RegisteredFunction or AsyncRegisteredFunction"
            raise TypeError(message)
        execute = calls.wrap(function.tool["name"], function.execute)
        found.append(cast("_F", dataclasses.replace(cast("Any", function), execute=execute)))
    return found


def _arguments(given: Any) -> dict[str, Any]:
    """What a function is called with: a dict, or a model of pydantic that it was parsed into."""
    return given if isinstance(given, dict) else cast("dict[str, Any]", given.model_dump(mode="json"))
