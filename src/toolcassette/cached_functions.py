"""The wrappers of cached functions, one for each kind of function.

Rule: an item is handed on as it comes, and a stream is kept only when its consumer has read it to the end.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from toolcassette.engine import CONTEXTS, off_loop, shape_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterator

__all__ = ["WRAPPERS"]


class _Answer(Protocol):
    """What was kept of a call."""

    @property
    def shape(self) -> str | None: ...

    def value(self) -> object: ...

    def items(self) -> Iterator[object]: ...


class _Question(Protocol):
    """What a wrapper asks of the cache."""

    @property
    def contract(self) -> Any: ...

    def find(self) -> _Answer | None: ...

    def keep(self, value: object) -> object: ...

    def item(self, value: object) -> tuple[bytes, object]: ...

    def keep_stream(self, shape: str, items: list[bytes]) -> None: ...

    def unfit(self, value: object) -> Exception: ...


_Ask: TypeAlias = "Callable[[tuple[Any, ...], dict[str, Any]], Any]"  # gives a _Question, or None
_Live: TypeAlias = "Callable[..., Any]"


def _shape(question: _Question, value: object) -> str | None:
    """The shape of a stream, None of a value. Raises for a context manager."""
    contract = question.contract
    shape = shape_of(value, contexts=contract.contexts) if contract.may_stream else None
    if shape in CONTEXTS:
        raise question.unfit(value)
    return shape


def _read(question: _Question, source: Any, shape: str) -> Generator[Any]:
    """The items of a stream as they come; kept when the last one was read."""
    kept: list[bytes] = []
    try:
        for item in source:
            data, copy = question.item(item)
            kept.append(data)
            yield copy
    finally:
        _close(source)
    question.keep_stream(shape, kept)


def _close(source: Any) -> None:
    close = getattr(source, "close", None)
    if close is not None:
        close()


async def _aread(question: _Question, source: Any, shape: str) -> AsyncGenerator[Any]:
    """As ``_read``."""
    kept: list[bytes] = []
    try:
        async for item in source:
            data, copy = question.item(item)
            kept.append(data)
            yield copy
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()
    await off_loop(lambda: question.keep_stream(shape, kept))


async def _aplay(items: Iterator[object]) -> AsyncGenerator[Any]:
    for item in items:
        yield item


def _played(answer: _Answer) -> object:
    """What a function that is no generator hands out of an entry."""
    shape = answer.shape
    if shape is None:
        return answer.value()
    return answer.items() if shape == "iterator" else _aplay(answer.items())


def _kept(question: _Question, value: Any) -> object:
    """What the caller gets of a real answer of a plain function."""
    shape = _shape(question, value)
    if shape == "async_iterator":
        return _aread(question, value, shape)
    return question.keep(value) if shape is None else _read(question, value, shape)


def _sync(live: _Live, ask: _Ask) -> _Live:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        question = ask(args, kwargs)
        if question is None:
            return live(*args, **kwargs)
        answer = question.find()
        return _kept(question, live(*args, **kwargs)) if answer is None else _played(answer)

    return wrapper


def _async(live: Callable[..., Awaitable[Any]], ask: _Ask) -> _Live:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        question = ask(args, kwargs)
        if question is None:
            return await live(*args, **kwargs)
        answer = await off_loop(question.find)
        if answer is not None:
            return _played(answer)
        value = await live(*args, **kwargs)
        if _shape(question, value) is not None:
            return _kept(question, value)
        return await off_loop(lambda: question.keep(value))

    return wrapper


def _shell(live: _Live, ask: _Ask) -> _Live:
    call = _async(live, ask)

    def wrapper(*args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        coroutine: Coroutine[Any, Any, Any] = call(*args, **kwargs)
        return coroutine

    return wrapper


def _generator(live: _Live, ask: _Ask) -> _Live:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        question = ask(args, kwargs)
        if question is None:
            return (yield from live(*args, **kwargs))
        answer = question.find()
        if answer is None:
            yield from _read(question, live(*args, **kwargs), "iterator")
        else:
            yield from answer.items()
        return None

    return wrapper


def _async_generator(live: _Live, ask: _Ask) -> _Live:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        question = ask(args, kwargs)
        if question is None:
            stream = live(*args, **kwargs)
        else:
            answer = await off_loop(question.find)
            stream = (
                _aread(question, live(*args, **kwargs), "async_iterator") if answer is None else _aplay(answer.items())
            )
        async with contextlib.aclosing(stream):
            async for item in stream:
                yield item

    return wrapper


WRAPPERS: Final[dict[str, Callable[[_Live, _Ask], _Live]]] = {
    "sync": _sync,
    "async": _async,
    "shell": _shell,
    "generator": _generator,
    "async_generator": _async_generator,
}
