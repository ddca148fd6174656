"""What adapters of HTTP clients share: a request as a key, a response as what is kept, and the way back.

Theory. A response is kept as the client's own parser reads it, after decompression. One that streams (server-sent
events) is a stream: its first item is status and headers, then each chunk of bytes as it came. Any other is one value.
JSON bodies are kept as JSON and other text as text, so that a cassette can be read, compared and searched for secrets;
bytes that are neither are kept as bytes.

Rule: of headers only those are looked at that say what is asked for or what the client does next. No key or token is
among them, so none can reach a cassette.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from toolcassette.contracts import Extensions, contract_for, encode_args
from toolcassette.engine import Call, ToolContract, session_for
from toolcassette.identity import identify

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from toolcassette.engine import Member, Pending
    from toolcassette.identity import Rule

__all__ = [
    "Wire",
    "body_of",
    "chunk_bytes",
    "content_of",
    "is_stream",
    "kept",
    "kept_stream",
    "kept_stream_async",
    "public",
    "wire_errors",
]

_ASKED: Final = ("anthropic-beta", "anthropic-version", "openai-beta")
_ANSWERED: Final = ("content-type", "request-id", "retry-after", "retry-after-ms", "x-request-id", "x-should-retry")
_STREAMS: Final = ("application/vnd.amazon.eventstream", "application/x-ndjson", "text/event-stream")
_SECRETS: Final = frozenset({"access_token", "api-key", "api_key", "apikey", "key", "token"})


def _unlike(value: str) -> None:
    raise ValueError(value)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        message = "a key stands twice"
        raise ValueError(message)
    return found


def body_of(data: bytes) -> dict[str, Any]:
    """A body under ``json``, ``text`` or ``bytes``, whichever it can be without loss of meaning; empty for none."""
    if not data:
        return {}
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {"bytes": data}
    try:
        return {"json": json.loads(text, object_pairs_hook=_members, parse_constant=_unlike)}
    except (ValueError, RecursionError):
        return {"text": text}


def content_of(value: Mapping[str, Any]) -> bytes:
    """The bytes of a body that was kept."""
    if "json" in value:
        return json.dumps(value["json"], ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    if "text" in value:
        return str(value["text"]).encode("utf-8")
    return bytes(value.get("bytes", b""))


def _chunk(data: bytes) -> str | bytes:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:  # cut within a character
        return data


def chunk_bytes(item: object) -> bytes:
    """The bytes of a chunk that was kept."""
    return item.encode("utf-8") if isinstance(item, str) else bytes(cast("bytes", item))


def _head(response: Any) -> dict[str, Any]:
    headers = {name: response.headers[name] for name in _ANSWERED if name in response.headers}
    if "location" in response.headers:  # clients follow it
        headers["location"] = public(response.headers["location"])
    return {"status": response.status_code, "headers": headers}


def is_stream(response: Any) -> bool:
    """True for a response whose chunks are to be handed on as they come."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return bool(kind in _STREAMS)


def kept(response: Any) -> dict[str, Any]:
    """A response that was read, as the value to keep."""
    return {**_head(response), **body_of(response.content)}


def kept_stream(response: Any) -> Iterator[object]:
    """A response that streams, as the items to keep."""
    try:
        yield _head(response)
        for data in response.iter_bytes():
            yield _chunk(data)
    finally:
        response.close()


async def kept_stream_async(response: Any) -> AsyncIterator[object]:
    """As ``kept_stream``."""
    try:
        yield _head(response)
        async with contextlib.aclosing(response.aiter_bytes()) as blocks:
            async for data in blocks:
                yield _chunk(data)
    finally:
        await response.aclose()


def wire_errors(module: Any) -> dict[type[Exception], Callable[[str], Exception]]:
    """What may go wrong on the wire, by httpx2 or httpx: a client looks at it to decide whether it tries again."""

    def below(kind: type[Exception]) -> Iterator[type[Exception]]:
        yield kind
        for child in kind.__subclasses__():
            yield from below(child)

    return {kind: kind for kind in below(module.RequestError)}


class Wire:
    """One client's requests as calls of one name. ``errors``: exception classes, each with what makes one of a text."""

    def __init__(
        self, name: str, rules: Sequence[Rule], errors: Mapping[type[Exception], Callable[[str], Exception]]
    ) -> None:
        self.name = name
        self._rules = tuple(rules)
        extensions = Extensions()
        for kind, make in errors.items():
            extensions.register_error(kind, str, make)
        self._contracts = {
            shape: ToolContract(
                contract_for(extensions=extensions),
                chunks=contract_for(extensions=extensions),
                shape=shape,
                extensions=extensions,
            )
            for shape in ("iterator", "async_iterator")
        }

    def session(self) -> Member | None:
        """The session that answers or records a request made here; None where it is simply sent."""
        session = session_for(self.name)
        if session is not None:
            session.meet(self.name, ("http", self.name))
        return session

    def begin(
        self, session: Member, method: str, url: str, headers: Mapping[str, str], body: Mapping[str, Any], *, shape: str
    ) -> Pending:
        """One request, not yet begun. ``shape`` is how the client reads streams. Raises what a bad rule raises."""
        asked = {name: headers[name] for name in _ASKED if name in headers}
        request: dict[str, Any] = {"method": method, "url": public(url), **({"headers": asked} if asked else {})}
        args = identify(encode_args({**request, **body}), self._rules)
        call = Call(self.name, args, "model", session.place().path)
        return session.begin(call, self._contracts[shape])


def public(url: str) -> str:
    """A URL without user, password, fragment and parameters that hold keys."""
    parts = urlsplit(url)
    query = [(k, v) for k, v in parse_qsl(parts.query, keep_blank_values=True) if k.lower() not in _SECRETS]
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, place, parts.path, urlencode(sorted(query)), ""))
