"""Streams: what a tool hands out piece by piece, and how its consumer ends it.

Theory. A tool may return an iterator, an asynchronous one, or a context manager that gives one; a generator function is
a tool whose every call does. The handle that the consumer gets is ours, of the same shape, and asks a *feed* for each
item: while recording the feed steps the real source and writes a chunk frame, while replaying it decodes the next
recorded one. A stream ends in one of four ways: its source is exhausted (``ok``), raised (``error``), was cancelled
(``cancelled``), or the consumer stopped asking (``left_early``: closed it, threw into it, or dropped it).

A replay gives the same items and the same end. A consumer that reads past a recorded early stop, or stops where the
recorded one read on, has parted from the recording: that is a mismatch, never a clean end. (One that stops where the
recorded stream was cancelled has seen the same items: its own cancellation struck a moment earlier.)

The result frame notes in its meta how the stream was handed out, and where its end needs it, how that came about.

Rule: the consumer sees each item as it arrives, durable first; the source never runs ahead of it, and never in a
replay.
"""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "CONTEXTS",
    "END_NOTES",
    "SHAPES",
    "AsyncStream",
    "AsyncStreamContext",
    "ContextFeed",
    "Feed",
    "Stream",
    "StreamContext",
    "handle",
    "handle_context",
    "iterator_of",
    "shape_of",
]

# How a stream is handed out: the way in (if any), and how it is read. Written into the result frame of such a call.
CONTEXTS: Final = ("context", "async_context")  # in a result frame: entering failed, or never happened
SHAPES: Final = (
    *CONTEXTS,
    "iterator",
    "async_iterator",
    "context/iterator",
    "context/async_iterator",
    "async_context/iterator",
    "async_context/async_iterator",
)
# What the result frame notes besides, where outcome and number of items do not say it all.
END_NOTES: Final = (
    "thrown",  # the source failed in answer to an exception that the consumer threw into it
    "closed",  # the source failed when the consumer closed it
    "unseen",  # cancelled while the last item was being made durable: the consumer never got it
    "exit",  # the consumer had read to the clean end; then leaving the context manager failed
    "exit_early",  # the consumer had not; then leaving the context manager failed
)

_ENTERED: Final = {"context": ("__enter__", "__exit__"), "async_context": ("__aenter__", "__aexit__")}
_PLAIN: Final = frozenset({str, int, float, bool, type(None), dict, list, tuple, bytes})  # spares most tools the look


def shape_of(value: object, *, contexts: str = "") -> str | None:
    """The shape of a returned stream; one of ``CONTEXTS`` where entering must tell more; None for a value.

    An open file is no stream of ours: it is a thing in the world. ``contexts``: the kind of context manager that the
    annotation promises; without, only those count that contextlib makes, since any lock or connection is one too.
    """
    kind = type(value)
    if kind in _PLAIN or isinstance(value, io.IOBase):
        return None
    if hasattr(kind, "__aiter__"):
        return "async_iterator"
    if hasattr(kind, "__next__"):
        return "iterator"
    if not contexts and kind.__module__ != "contextlib":
        return None
    for shape, methods in _ENTERED.items():
        if contexts in ("", shape) and all(hasattr(kind, method) for method in methods):
            return shape
    return None


def iterator_of(stream: Any) -> Any:
    """What steps through a stream: itself, or for an asynchronous iterable its iterator."""
    return aiter(stream) if hasattr(type(stream), "__aiter__") else stream


class Feed(Protocol):
    """Where the items of one stream come from. Asynchronous readers use the methods with an ``a``."""

    def pull(self) -> object:
        """The next item. Raises ``StopIteration`` at a clean end, or how the stream ended."""
        ...

    def throw(self, error: BaseException) -> None:
        """The consumer throws into the stream: it ends. Raises what comes of it, ``error`` at the least."""
        ...

    def leave(self) -> None:
        """The consumer stops here. Idempotent, and nothing after the end."""
        ...

    def drop(self) -> None:
        """As ``leave``, from a finaliser: waits for nothing, and raises nothing."""
        ...

    def refuse_send(self) -> BaseException:
        """The error for a value sent into the stream, which no recording can answer."""
        ...

    async def apull(self) -> object:
        """As ``pull``, with ``StopAsyncIteration``."""
        ...

    async def athrow(self, error: BaseException) -> None:
        """As ``throw``."""
        ...

    async def aleave(self) -> None:
        """As ``leave``."""
        ...


class ContextFeed(Feed, Protocol):
    """A feed whose items come once the context manager that gives them was entered."""

    def enter(self) -> str:
        """Enter the context manager that gives the stream. Returns how the stream is read."""
        ...

    def exit(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leave it."""
        ...

    async def aenter(self) -> str:
        """As ``enter``."""
        ...

    async def aexit(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As ``exit``."""
        ...


def _instance(error: BaseException | type[BaseException], value: object, trace: TracebackType | None) -> BaseException:
    """The exception that a generator would raise for the arguments of its ``throw``."""
    if isinstance(error, BaseException):
        thrown = error
    elif isinstance(value, BaseException):
        thrown = value
    else:
        thrown = error() if value is None else error(value)
    return thrown if trace is None else thrown.with_traceback(trace)


class Stream(Iterator[Any]):
    """A stream read with ``for``; closes with ``close``, as a context manager, or when it is dropped."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self._feed.pull()

    def send(self, value: object) -> Any:
        """The next item, for None; any other value is refused, since nothing recorded could answer it."""
        if value is not None:
            raise self._feed.refuse_send()
        return self._feed.pull()

    def throw(
        self, error: BaseException | type[BaseException], value: object = None, trace: TracebackType | None = None
    ) -> Any:
        """Throw into the stream, which ends it. With class, value and traceback too, as older callers do."""
        thrown = _instance(error, value, trace)
        self._feed.throw(thrown)
        raise thrown

    def close(self) -> None:
        """Stop reading."""
        self._feed.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.leave()

    def __del__(self) -> None:
        self._feed.drop()


class AsyncStream(AsyncIterator[Any]):
    """A stream read with ``async for``; closes with ``aclose``, as a context manager, or when it is dropped."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return await self._feed.apull()

    async def asend(self, value: object) -> Any:
        """The next item, for None; any other value is refused, since nothing recorded could answer it."""
        if value is not None:
            raise self._feed.refuse_send()
        return await self._feed.apull()

    async def athrow(
        self, error: BaseException | type[BaseException], value: object = None, trace: TracebackType | None = None
    ) -> Any:
        """Throw into the stream, which ends it. With class, value and traceback too, as older callers do."""
        thrown = _instance(error, value, trace)
        await self._feed.athrow(thrown)
        raise thrown

    async def aclose(self) -> None:
        """Stop reading."""
        await self._feed.aleave()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._feed.aleave()

    def __del__(self) -> None:
        self._feed.drop()


class StreamContext:
    """A context manager that gives a stream."""

    def __init__(self, feed: ContextFeed) -> None:
        self._feed = feed

    def __enter__(self) -> Stream | AsyncStream:
        self._given = _READERS[self._feed.enter()](self._feed)  # held, so that it is not dropped before this is left
        return self._given

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.exit(kind, error, trace)

    def __del__(self) -> None:
        self._feed.drop()


class AsyncStreamContext:
    """An asynchronous context manager that gives a stream."""

    def __init__(self, feed: ContextFeed) -> None:
        self._feed = feed

    async def __aenter__(self) -> Stream | AsyncStream:
        self._given = _READERS[await self._feed.aenter()](self._feed)  # held, as above
        return self._given

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._feed.aexit(kind, error, trace)

    def __del__(self) -> None:
        self._feed.drop()


_READERS: Final[dict[str, type[Stream | AsyncStream]]] = {"iterator": Stream, "async_iterator": AsyncStream}
_WAYS_IN: Final[dict[str, type[StreamContext | AsyncStreamContext]]] = {
    "context": StreamContext,
    "async_context": AsyncStreamContext,
}


def handle(shape: str, feed: Feed) -> Stream | AsyncStream:
    """What the consumer gets for a stream of some shape that it reads at once."""
    return _READERS[shape](feed)


def handle_context(shape: str, feed: ContextFeed) -> StreamContext | AsyncStreamContext:
    """What the consumer gets for a context manager that gives a stream."""
    return _WAYS_IN[shape.partition("/")[0]](feed)
