"""The door to Python's own structured classes: dataclass, NamedTuple, TypedDict.

Rule: an instance is what its fields are. It is rebuilt by its own constructor where that takes the fields, so that
``__post_init__`` may refuse; where not, without one. Then every field holds exactly what was recorded.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from typing import TYPE_CHECKING, Any

from toolcassette.contracts.hints import class_of, field_hints
from toolcassette.contracts.names import readable
from toolcassette.contracts.objects import ABSENT, Field, ObjectNode, TypedDictNode

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcassette.contracts.compiler import Compiler
    from toolcassette.contracts.nodes import Node

__all__ = ["build", "parts"]


def build(annotation: object, compiler: Compiler) -> Node | None:
    """The node of a dataclass, NamedTuple or TypedDict, generic or not; None for anything else."""
    cls = class_of(annotation)
    if cls is None:
        return None
    if _is_dataclass(cls):
        return _dataclass(cls, annotation, compiler)
    if _is_named_tuple(cls):
        return _named_tuple(cls, annotation, compiler)
    if issubclass(cls, dict) and hasattr(cls, "__total__") and hasattr(cls, "__required_keys__"):
        return _typed_dict(cls, annotation, compiler)
    return None


def parts(value: object) -> dict[str, object] | None:
    """The fields that an instance has values for, in order; None for what is no dataclass or named tuple."""
    cls: Any = type(value)
    names = _field_names(cls)
    if names is None:
        return None
    found = {name: getattr(value, name, ABSENT) for name in names}
    return {name: part for name, part in found.items() if part is not ABSENT}


@functools.lru_cache(maxsize=512)  # asked for every instance in a value; bounded, since it keeps classes alive
def _field_names(cls: Any) -> tuple[str, ...] | None:
    if _is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return tuple(cls._fields) if _is_named_tuple(cls) else None


def _is_dataclass(cls: Any) -> bool:
    """True for dataclasses whose fields are all there is to them (one that is also a dict or a str is more)."""
    bases: tuple[type, ...] = cls.__mro__
    is_more = any(base.__module__ == "builtins" and base is not object for base in bases)
    return hasattr(cls, "__dataclass_fields__") and not is_more


def _is_named_tuple(cls: Any) -> bool:
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def _dataclass(cls: Any, annotation: object, compiler: Compiler) -> Node:
    node = ObjectNode(cls, readable(annotation), _maker(cls))
    compiler.remember(annotation, node)
    hints = field_hints(annotation)
    fields = dataclasses.fields(cls)
    nodes = compiler.fields(annotation, [hints.get(field.name, Any) for field in fields])
    for field, part in zip(fields, nodes, strict=True):
        required = field.init and not _has_default(field)
        node.fields[field.name] = Field(field.name, field.name, part, required)
    return node


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> object:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _takes_fields(cls: Any) -> bool:
    """True if the constructor can be called with the init fields as keywords, and nothing else."""
    names = [field.name for field in dataclasses.fields(cls) if field.init]
    try:
        inspect.signature(cls.__init__).bind(None, **dict.fromkeys(names))
    except (TypeError, ValueError):
        return False
    return True


def _maker(cls: Any) -> Callable[[dict[str, object]], object]:
    fields = dataclasses.fields(cls)
    init = {field.name for field in fields if field.init}

    def construct(values: dict[str, object]) -> object:
        made = cls(**{name: value for name, value in values.items() if name in init})
        for name, value in values.items():  # a field that is not for init, or that __post_init__ made something else of
            if getattr(made, name, ABSENT) is not value:
                object.__setattr__(made, name, value)
        return made

    def assemble(values: dict[str, object]) -> object:
        made = cls.__new__(cls)
        for field in fields:
            if field.name in values or _has_default(field):
                value = values[field.name] if field.name in values else _default(field)
                object.__setattr__(made, field.name, value)
        return made

    return construct if _takes_fields(cls) else assemble


def _named_tuple(cls: Any, annotation: object, compiler: Compiler) -> Node:
    def make(values: dict[str, object]) -> object:
        # Not by the constructor: a subclass may have changed it, and a tuple is what it holds.
        return tuple.__new__(
            cls, [values[name] if name in values else cls._field_defaults[name] for name in cls._fields]
        )

    node = ObjectNode(cls, readable(annotation), make)
    compiler.remember(annotation, node)
    hints = field_hints(annotation)
    nodes = compiler.fields(annotation, [hints.get(name, Any) for name in cls._fields])
    for name, part in zip(cls._fields, nodes, strict=True):
        node.fields[name] = Field(name, name, part, name not in cls._field_defaults)
    return node


# The markers say it themselves: under postponed annotations a class may not have seen them in its hints.
_REQUIRED = {typing.Required: True, typing.NotRequired: False}


def _typed_dict(cls: Any, annotation: object, compiler: Compiler) -> Node:
    node = TypedDictNode(readable(annotation))
    compiler.remember(annotation, node)
    hints = field_hints(annotation)
    nodes = compiler.fields(annotation, list(hints.values()))
    for (name, hint), part in zip(hints.items(), nodes, strict=True):
        required = _marked(hint)
        node.fields[name] = Field(name, name, part, name in cls.__required_keys__ if required is None else required)
    node.settle()
    return node


def _marked(hint: object) -> bool | None:
    while (origin := typing.get_origin(hint)) is not None:
        if origin in _REQUIRED:
            return _REQUIRED[origin]
        if origin is not typing.Annotated and origin is not getattr(typing, "ReadOnly", None):
            break
        hint = typing.get_args(hint)[0]
    return None
