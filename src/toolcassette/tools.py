"""Tools: what a decorator or a registry makes of a function, so that a session can stand between it and its caller.

Rule: a wrapped tool looks like the tool, to a person, to ``inspect``, to ``typing`` and to a framework's schema
builder. Any spelling of one call is one call (arguments are bound and defaults applied), and different calls are never
one call.
"""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from toolcassette.contracts import Extensions
from toolcassette.describe import ABSENT, Description, describe
from toolcassette.errors import printable
from toolcassette.wrapping import COMPOSITES, WRAPPERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


__all__ = ["Registry", "cassette_tool", "composite", "description_of", "register_error", "register_type"]

_F = TypeVar("_F")
_T = TypeVar("_T")
_E = TypeVar("_E", bound=Exception)
# Attribute of a wrapper: a weak reference to itself, and the description of what it wraps. The reference tells it from
# the decorators around it, to which functools.wraps copies the attribute.
_WRAPPED = "__toolcassette__"


class Registry:
    """Wraps tools that one does not own, and keeps their names apart.

    ``omit_types``: parameters annotated with one of these classes (run contexts, connections) stay out of the call.
    A second live tool of one name is refused.
    """

    def __init__(self, *, omit_types: Iterable[type] = ()) -> None:
        self._omit_types = tuple(omit_types)
        self.extensions = Extensions()
        self._live: dict[str, weakref.ref[Any]] = {}

    def __repr__(self) -> str:
        return f"<Registry tools={len(self.names())}>"

    def names(self) -> tuple[str, ...]:
        """The names of the tools that are alive, sorted."""
        return tuple(sorted(name for name, ref in self._live.items() if ref() is not None))

    def wrap(
        self,
        fn: _F,
        *,
        name: str | None = None,
        omit: Sequence[str] = (),
        errors: Sequence[type[Exception]] = (),
        returns: Any = ABSENT,
        output_schema: Mapping[str, object] | None = None,
        redact: Sequence[object] = (),
        effect: str | None = None,
    ) -> _F:
        """A tool that a session can record and replay, of the same kind and signature as ``fn``.

        ``name`` defaults to the function's own (a partial's function, a callable object's class); ``omit`` names
        parameters that stay out of the call; ``errors`` are classes that a replay raises as themselves; ``returns``
        overrides the return annotation (``Any`` for a wrong one); ``output_schema`` is a JSON Schema that every value,
        or every item of a stream, must fit as it is written; ``redact`` are rules for this tool besides the session's;
        ``effect`` is ``read``, ``write`` or ``pay``: what writes or pays never runs for real in a replay, selected or
        not. Raises ``ValueError`` for a name that is taken or unusable, an ``omit`` that is no parameter, a bad schema,
        rule or effect, ``TypeError`` for what cannot be a tool, ``ModuleNotFoundError`` where a schema needs jsonschema
        and there is none.
        """
        options: dict[str, Any] = {"name": name, "omit": omit, "errors": errors, "returns": returns}
        options |= {"redact": redact, "effect": effect}
        if isinstance(fn, (classmethod, staticmethod)):
            kind = type(fn)
            return cast("_F", kind(self.wrap(fn.__func__, output_schema=output_schema, **options)))
        tool = describe(
            cast("Callable[..., Any]", _unwrapped(fn)),
            omit_types=self._omit_types,
            extensions=self.extensions,
            output_schema=output_schema,
            **options,
        )
        self._admit(tool)
        wrapper = WRAPPERS[tool.kind](tool)
        tool.dress(wrapper)
        setattr(wrapper, _WRAPPED, (weakref.ref(wrapper), tool))
        self._live[tool.name] = weakref.ref(wrapper)
        return cast("_F", wrapper)

    def register_type(
        self, cls: type[_T], encode: Callable[[_T], object], decode: Callable[[Any], _T], tag: str
    ) -> None:
        """Let this registry's tools take and return instances of exactly ``cls``, anywhere in a value.

        ``encode(instance)`` gives a value of builtin (or registered) types, ``decode`` of that an instance again;
        cassettes hold ``{"$tc": "x-<tag>", "v": ...}``. Two instances are the same if they are written the same. Raises
        ``ValueError`` for a class or tag that is taken or has a form of its own, ``TypeError`` for what is no class or
        function.
        """
        self.extensions.register_type(cls, encode, decode, tag)

    def register_error(self, cls: type[_E], encode: Callable[[_E], object], decode: Callable[[Any], _E]) -> None:
        """Let replays raise exactly ``cls`` as ``decode(encode(error))``: for what ``errors=[...]`` cannot rebuild.

        Raises ``TypeError`` for what is no exception class or function.
        """
        self.extensions.register_error(cls, encode, decode)

    def wrap_all(self, tools: types.ModuleType | Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
        """Wrap the public functions that a module defines, or a mapping's callables under its keys; patch nothing."""
        if isinstance(tools, Mapping):
            return {name: self.wrap(fn, name=name) for name, fn in tools.items()}
        found = {
            name: fn
            for name, fn in vars(tools).items()
            if not name.startswith("_") and inspect.isroutine(fn) and fn.__module__ == tools.__name__
        }
        return {name: self.wrap(fn) for name, fn in found.items()}

    def _admit(self, tool: Description) -> None:
        taken = self._live.get(tool.name)
        if taken is not None and taken() is not None:
            message = f"this registry has a tool called {printable(tool.name)} already; give one of them another name="
            raise ValueError(message)


class _DefaultRegistry(Registry):
    """The registry of ``cassette_tool``: a redefinition replaces, and two functions of one name are for a session to
    judge.
    """

    def _admit(self, tool: Description) -> None:
        """Anything goes."""


def _unwrapped(fn: Any) -> Any:
    """What a wrapper of ours wraps: wrapping twice is wrapping once. Anything else as it is."""
    function = fn.__func__ if isinstance(fn, types.MethodType) else fn
    tool = description_of(function)
    if tool is None:
        return fn
    return types.MethodType(tool.fn, fn.__self__) if isinstance(fn, types.MethodType) else tool.fn


def description_of(function: Any) -> Description | None:
    """What a wrapper of ours knows of what it wraps; None for anything else."""
    if not isinstance(function, types.FunctionType) or _WRAPPED not in vars(function):
        return None
    wrapper, tool = vars(function)[_WRAPPED]
    return cast("Description", tool) if wrapper() is function else None


default_registry = _DefaultRegistry()
register_type = default_registry.register_type
register_error = default_registry.register_error


@overload
def cassette_tool(fn: _F, /) -> _F: ...
@overload
def cassette_tool(
    *,
    name: str | None = None,
    omit: Sequence[str] = (),
    errors: Sequence[type[Exception]] = (),
    returns: Any = ABSENT,
    output_schema: Mapping[str, object] | None = None,
    redact: Sequence[object] = (),
    effect: str | None = None,
) -> Callable[[_F], _F]: ...
def cassette_tool(
    fn: Any = None,
    /,
    *,
    name: str | None = None,
    omit: Sequence[str] = (),
    errors: Sequence[type[Exception]] = (),
    returns: Any = ABSENT,
    output_schema: Mapping[str, object] | None = None,
    redact: Sequence[object] = (),
    effect: str | None = None,
) -> Any:
    """Let sessions record and replay a tool. Use it bare or with options; ``Registry.wrap`` tells what they mean."""

    def wrap(function: Any) -> Any:
        return default_registry.wrap(
            function,
            name=name,
            omit=omit,
            errors=errors,
            returns=returns,
            output_schema=output_schema,
            redact=redact,
            effect=effect,
        )

    return wrap if fn is None else wrap(fn)


@overload
def composite(fn: _F, /) -> _F: ...
@overload
def composite(
    *, name: str | None = None, omit: Sequence[str] = (), errors: Sequence[type[Exception]] = (), returns: Any = ABSENT
) -> Callable[[_F], _F]: ...
def composite(fn: Any = None, /, **options: Any) -> Any:
    """A tool that calls other tools: the calls within lie below it in the call path, told apart by its arguments.

    Use it bare or with the options of ``cassette_tool``. Its own body runs live, recording and replaying; selected by
    ``include`` it is a leaf like any other tool. Raises ``TypeError`` for what cannot be a tool, generators among them;
    a call raises ``UnrecordableValue`` for an argument that has no lossless form: name it in ``omit``.
    """
    return functools.partial(_composite, options=options) if fn is None else _composite(fn, options)


def _composite(fn: Any, options: dict[str, Any]) -> Callable[..., Any]:
    tool = description_of(fn)
    if tool is None or options:
        unsaid: dict[str, Any] = {"name": None, "omit": (), "errors": (), "returns": ABSENT, "omit_types": ()}
        tool = describe(_unwrapped(fn), **(unsaid | options), extensions=default_registry.extensions)
    if tool.kind not in COMPOSITES:
        message = f"{printable(tool.name)} is a generator, and its body would run in its consumer's path"
        raise TypeError(message)
    wrapper = COMPOSITES[tool.kind](tool)
    tool.dress(wrapper)
    return wrapper
