"""Any client that is built on httpx2, or httpx: transports that record and replay its requests.

    client = httpx2.Client(transport=cassette_transport(name="gemini"))

Rule: one record for each request that is sent, retries among them. The real transport is not asked in a replay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcassette.adapters import _transport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcassette.identity import Rule

__all__ = ["async_cassette_transport", "cassette_transport"]


def cassette_transport(inner: Any = None, *, name: str, rules: Sequence[Rule] = ()) -> Any:
    """A transport for ``httpx2.Client``; sessions select its requests by ``name``, at the boundary ``model``.

    ``inner``: the transport that sends; an ``HTTPTransport`` if not given. It says which of the two modules is meant.
    ``rules`` as in ``wrap_model``, of a request with method, url, headers and a body under ``json``, ``text`` or
    ``bytes``. Raises ``ModuleNotFoundError`` where neither module is installed.
    """
    return _transport.cassette_transport(inner, name=name, rules=rules)


def async_cassette_transport(inner: Any = None, *, name: str, rules: Sequence[Rule] = ()) -> Any:
    """As ``cassette_transport``, for ``httpx2.AsyncClient``."""
    return _transport.cassette_transport(inner, name=name, rules=rules, is_async=True)
