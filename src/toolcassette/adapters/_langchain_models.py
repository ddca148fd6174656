"""Chat models of langchain: a stand-in of the same class, whose answers are recorded and replayed.

Theory. The stand-in is a copy of a model whose class is derived from the model's own: what binds tools, formats a
request or names the provider is the model's own code. Only the four methods that ask are ours, and they ask the model
itself. A class that cannot stream stays one.

Rule: tokens are kept as the chunks that the model gave, in a stream; a whole answer as one value.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, cast

from toolcassette.adapters._langchain import Package, begin, package, written
from toolcassette.contracts import contract_for, encode_args, qualified_name
from toolcassette.engine import ToolContract, session_for
from toolcassette.identity import identify

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from toolcassette.engine import Member, Pending
    from toolcassette.identity import Rule

__all__ = ["cassette_model"]

_STATE = "_toolcassette"  # in the dict of a stand-in, where pydantic does not look
_NATIVE = ("_stream_chat_model_events", "_astream_chat_model_events")  # what would stream past the four methods


def cassette_model(model: Any, name: str | None, rules: tuple[Rule, ...]) -> Any:
    """See ``toolcassette.adapters.langchain.cassette_model``."""
    found = package()
    if not isinstance(model, found.chat_model):
        message = "cassette_model takes a chat model of langchain"
        raise TypeError(message)
    if _STATE in model.__dict__:
        return model
    stand_in = model.model_copy(update={"cache": False})
    object.__setattr__(stand_in, "__class__", _class_like(cast("Any", type(model))))
    stand_in.__dict__[_STATE] = _Asked(found, model, name or _name_of(model), rules)
    return stand_in


def _name_of(model: Any) -> str:
    """Provider and model, as langchain tells them to what traces."""
    known = model._get_ls_params()  # noqa: SLF001 - documented for subclasses to say who they are
    return ":".join(filter(None, (known.get("ls_provider"), known.get("ls_model_name"))))


class _Asked:
    """The model behind a stand-in: its name, its requests as keys, its answers as values."""

    def __init__(self, found: Package, model: Any, name: str, rules: tuple[Rule, ...]) -> None:
        self.model = model
        self.name = name
        self._found = found
        self._rules = rules
        self._extensions = extensions = found.extensions()
        kept = contract_for(extensions=extensions)
        self._contracts = {
            shape: ToolContract(kept, chunks=kept, shape=shape, extensions=extensions)
            for shape in ("iterator", "async_iterator")
        }

    def session(self) -> Member | None:
        """The session that a request made here belongs to."""
        return session_for(self.name)

    def begin(self, session: Member, messages: Iterable[Any], stop: Any, kwargs: Any, *, shape: str = "") -> Pending:
        """One request, not yet begun. ``shape``: of the stream that it asks for."""

        def key() -> bytes:
            request = {
                "model": {"type": self.model._llm_type, **_plain(self._found, self.model._identifying_params)},  # noqa: SLF001
                "messages": [written(message) for message in messages],
                "stop": stop,
                "options": _plain(self._found, kwargs),
                "stream": bool(shape),
            }
            return identify(encode_args(request, extensions=self._extensions), self._rules)

        contract = self._contracts[shape or "iterator"]
        return begin(self._found, session, self.name, key, contract, "model")

    def value(self, result: Any) -> dict[str, Any]:
        """A whole answer as the value to keep."""
        answers = [{"message": each.message, "info": each.generation_info} for each in result.generations]
        return {"answers": answers, "output": result.llm_output}

    def result(self, value: Any) -> Any:
        """The answer of a value."""
        make = self._found.outputs.ChatGeneration
        answers = [make(message=each["message"], generation_info=each["info"]) for each in value["answers"]]
        return self._found.outputs.ChatResult(generations=answers, llm_output=value["output"])

    def chunk(self, item: Any) -> Any:
        """The chunk of a kept item."""
        return self._found.outputs.ChatGenerationChunk(message=item["message"], generation_info=item["info"])


def _item(chunk: Any) -> dict[str, Any]:
    return {"message": chunk.message, "info": chunk.generation_info}


def _items(stream: Any) -> Iterator[dict[str, Any]]:
    with contextlib.ExitStack() as stack:
        if hasattr(stream, "close"):
            stack.enter_context(contextlib.closing(stream))
        yield from map(_item, stream)


async def _async_items(stream: Any) -> AsyncIterator[dict[str, Any]]:
    async with contextlib.AsyncExitStack() as stack:
        if hasattr(stream, "aclose"):
            await stack.enter_async_context(contextlib.aclosing(stream))
        async for chunk in stream:
            yield _item(chunk)


def _generate(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
    asked: _Asked = self.__dict__[_STATE]
    session = asked.session()
    if session is None:
        return asked.model._generate(messages, stop, run_manager, **kwargs)  # noqa: SLF001
    pending = asked.begin(session, messages, stop, kwargs)
    with pending:
        if pending.runs_body:
            pending.keep(asked.value(asked.model._generate(messages, stop, run_manager, **kwargs)))  # noqa: SLF001
    return asked.result(pending.outcome())


async def _agenerate(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
    asked: _Asked = self.__dict__[_STATE]
    session = asked.session()
    if session is None:
        return await asked.model._agenerate(messages, stop, run_manager, **kwargs)  # noqa: SLF001
    pending = asked.begin(session, messages, stop, kwargs)
    async with pending:
        if pending.runs_body:
            result = await asked.model._agenerate(messages, stop, run_manager, **kwargs)  # noqa: SLF001
            pending.keep(asked.value(result))
    return asked.result(pending.outcome())


def _stream(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[Any]:
    asked: _Asked = self.__dict__[_STATE]
    session = asked.session()
    if session is None:
        yield from asked.model._stream(messages, stop, run_manager, **kwargs)  # noqa: SLF001
        return
    pending = asked.begin(session, messages, stop, kwargs, shape="iterator")
    with pending:
        if pending.runs_body:
            pending.keep(_items(asked.model._stream(messages, stop, run_manager, **kwargs)))  # noqa: SLF001
    items: Any = pending.outcome()
    with contextlib.closing(items):
        yield from map(asked.chunk, items)


async def _astream(
    self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
) -> AsyncIterator[Any]:
    asked: _Asked = self.__dict__[_STATE]
    session = asked.session()
    if session is None:
        async for chunk in asked.model._astream(messages, stop, run_manager, **kwargs):  # noqa: SLF001
            yield chunk
        return
    pending = asked.begin(session, messages, stop, kwargs, shape="async_iterator")
    async with pending:
        if pending.runs_body:
            pending.keep(_async_items(asked.model._astream(messages, stop, run_manager, **kwargs)))  # noqa: SLF001
    items: Any = pending.outcome()
    async with contextlib.aclosing(items):
        async for item in items:
            yield asked.chunk(item)


@functools.cache
def _class_like(cls: Any) -> Any:
    """A class derived from a model's, of the same name, that asks by way of a session."""
    base = package().chat_model
    ours: dict[str, Any] = {"_generate": _generate, "_agenerate": _agenerate}
    streams = cls._stream is not base._stream  # noqa: SLF001
    if streams:
        ours["_stream"] = _stream
    if streams or cls._astream is not base._astream:  # noqa: SLF001
        ours["_astream"] = _astream
    derived: Any = type(cls.__name__, (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__})
    derived.__qualname__ = cls.__qualname__
    for name, method in (*ours.items(), *((name, None) for name in _NATIVE if hasattr(cls, name))):
        setattr(derived, name, method)
    return derived


def _plain(found: Package, value: Any) -> Any:
    """What a model is asked with beside messages: tools as a model is told of them, classes and functions by name."""
    if isinstance(value, found.tools.BaseTool):
        return found.as_tool(value)
    if isinstance(value, type):
        return qualified_name(value)
    if isinstance(value, dict):
        return {str(name): _plain(found, member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(found, member) for member in value]
    return getattr(value, "__qualname__", value) if callable(value) else value
