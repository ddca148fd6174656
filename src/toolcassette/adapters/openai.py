"""The raw ``openai`` client: its requests, recorded and replayed at its transport.

    client = cassette_client(openai.OpenAI())

Rule: the client is its own, and only what sends its bytes is another: its parser, its retries and its streams are the
real ones in a replay too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from toolcassette.adapters._transport import cassette_transport, module_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcassette.identity import Rule

__all__ = ["cassette_client"]

_C = TypeVar("_C")
_INSTALL: Final = "cassette_client needs openai: pip install 'toolcassette[openai]'"


def cassette_client(client: _C, *, name: str = "openai", rules: Sequence[Rule] = (), transport: Any = None) -> _C:
    """A copy of an ``OpenAI`` or ``AsyncOpenAI`` client; sessions select its requests by ``name``, as model calls.

    ``transport``: what sends the bytes, where that is not the client's default (a proxy, a fake server). ``rules`` as
    in ``wrap_model``; the body of a request is under ``json``. The copy has an HTTP client of its own: close it. Raises
    ``TypeError`` for what is no such client, ``ModuleNotFoundError`` without openai.
    """
    try:
        import openai
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(_INSTALL, name=error.name) from None
    if not isinstance(client, (openai.OpenAI, openai.AsyncOpenAI)):
        message = "cassette_client takes an OpenAI or AsyncOpenAI client"
        raise TypeError(message)
    is_async = isinstance(client, openai.AsyncOpenAI)
    http_client: Any = openai.DefaultAsyncHttpxClient if is_async else openai.DefaultHttpxClient
    module = module_of(http_client)
    stand_in = cassette_transport(transport, name=name, rules=rules, module=module, is_async=is_async)
    return cast("_C", client.with_options(http_client=http_client(transport=stand_in)))
