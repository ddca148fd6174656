"""What stands between a tool and its caller: one wrapper for each kind of function.

Rule: a wrapper asks for the session, enters the call, runs the body if it must, and hands out what the session says. It
sees no mode.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any, Final, cast

from toolcassette.engine import Call, composite_label, pushed, selecting, session_for
from toolcassette.errors import UnrecordableValue

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
    from contextlib import AbstractContextManager

    from toolcassette.describe import Description
    from toolcassette.engine import Member, Pending

__all__ = ["COMPOSITES", "WRAPPERS"]


def _below(tool: Description, args: Any, kwargs: Any, *, matters: bool) -> AbstractContextManager[None]:
    """Around the body of a composite call: what it calls lies below it, where a session could ever see that."""
    if not matters:
        return contextlib.nullcontext()
    try:
        return pushed(composite_label(tool.name, tool.arguments(args, kwargs)[0]), numbered=True)
    except UnrecordableValue as error:
        raise error.of(tool.name) from None


def _sync_composite(tool: Description) -> Callable[..., Any]:
    leaf = _sync(tool)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        session, matters = selecting(tool.name)
        if session is not None:
            return leaf(*args, **kwargs)
        with _below(tool, args, kwargs, matters=matters):
            return tool.fn(*args, **kwargs)

    return wrapper


def _async_composite(tool: Description) -> Callable[..., Any]:
    leaf = _async(tool)

    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        session, matters = selecting(tool.name)
        if session is not None:
            return await leaf(*args, **kwargs)
        with _below(tool, args, kwargs, matters=matters):
            return await tool.fn(*args, **kwargs)

    return wrapper


def _begin(
    tool: Description, session: Member, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Pending, Callable[[], None] | None]:
    """A call, not yet begun, and what tells afterwards whether its body changed the arguments.

    Raises what the session makes of a call that cannot be described.
    """
    session.meet(tool.name, tool.identity)
    try:
        arguments, omitted = tool.arguments(args, kwargs)
        contract = tool.contract()
    except UnrecordableValue as error:
        raise session.refuse(error.of(tool.name), tool.name) from None
    # By place: by name costs half more.
    call = Call(tool.name, arguments, tool.boundary, session.place().path, tool.effect, omitted, tool.rules)
    pending = session.begin(call, contract)
    return pending, tool.watch(session, arguments, args, kwargs) if pending.runs_body else None


_NO_AWAITABLES: Final = frozenset(
    {dict, list, tuple, str, bytes, int, float, bool, type(None)}
)  # what most tools return


def _sync(tool: Description) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        session = session_for(tool.name, tool.effect)
        if session is None:
            return tool.fn(*args, **kwargs)
        pending, tell_changes = _begin(tool, session, args, kwargs)
        with pending:
            if pending.runs_body:
                value = tool.fn(*args, **kwargs)
                if type(value) not in _NO_AWAITABLES and inspect.isawaitable(value):
                    raise session.refuse(_unawaited(value, tool), tool.name)
                pending.keep(value)
        if tell_changes is not None:
            tell_changes()
        return pending.outcome()

    return wrapper


def _unawaited(value: Any, tool: Description) -> UnrecordableValue:
    if inspect.iscoroutine(value):
        value.close()  # else it warns that it was never awaited, when it is we who do not
    why = "must be awaited first, and nothing says so; make the tool async def, or annotate it -> Awaitable[...]"
    return UnrecordableValue(json_path="$", type_name=type(value).__qualname__, why=why, tool=tool.name)


def _async(tool: Description) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        session = session_for(tool.name, tool.effect)
        if session is None:
            return await tool.fn(*args, **kwargs)
        pending, tell_changes = _begin(tool, session, args, kwargs)
        async with pending:
            if pending.runs_body:
                pending.keep(await tool.fn(*args, **kwargs))
        if tell_changes is not None:
            tell_changes()
        return pending.outcome()

    return wrapper


def _shell(tool: Description) -> Callable[..., Any]:
    """A plain function around a coroutine function stays one: awaiting what it returns makes the call."""
    call = _async(tool)

    def wrapper(*args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        return cast("Coroutine[Any, Any, Any]", call(*args, **kwargs))

    return wrapper


def _generator(tool: Description) -> Callable[..., Any]:
    """A generator function: its call begins when the first item is asked for."""

    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        session = session_for(tool.name, tool.effect)
        if session is None:
            return (yield from tool.fn(*args, **kwargs))
        pending, tell_changes = _begin(tool, session, args, kwargs)
        with pending:
            if pending.runs_body:
                pending.keep(tool.fn(*args, **kwargs))
        returned = yield from cast("Any", pending.outcome())
        if tell_changes is not None:
            tell_changes()
        return returned

    return wrapper


def _async_generator(tool: Description) -> Callable[..., Any]:
    """An asynchronous generator function: its call begins when the first item is asked for."""

    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        session = session_for(tool.name, tool.effect)
        tell_changes: Callable[[], None] | None = None
        if session is None:
            stream = tool.fn(*args, **kwargs)
        else:
            pending, tell_changes = _begin(tool, session, args, kwargs)
            async with pending:
                if pending.runs_body:
                    pending.keep(tool.fn(*args, **kwargs))
            stream = cast("Any", pending.outcome())
        step = stream.asend(None)
        while True:  # `yield from`, which asynchronous generators do not have
            try:
                item = await step
            except StopAsyncIteration:
                break
            try:
                sent = yield item
            except GeneratorExit:
                await stream.aclose()
                raise
            except BaseException as error:  # noqa: BLE001 - whatever the consumer throws is the stream's
                step = stream.athrow(error)
            else:
                step = stream.asend(sent)
        if tell_changes is not None:
            tell_changes()

    return wrapper


COMPOSITES: dict[str, Callable[[Description], Callable[..., Any]]] = {
    "sync": _sync_composite,
    "async": _async_composite,
    "shell": _async_composite,
}

WRAPPERS: dict[str, Callable[[Description], Callable[..., Any]]] = {
    "sync": _sync,
    "async": _async,
    "shell": _shell,
    "generator": _generator,
    "async_generator": _async_generator,
}
