"""The door to attrs classes.

Rule: an instance is what its attributes are, by name. It is rebuilt by its own constructor where that takes them, so
that validators may refuse; what converters would change stays as recorded.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

from toolcassette.contracts.hints import class_of, field_hints
from toolcassette.contracts.names import readable
from toolcassette.contracts.objects import ABSENT, Field, ObjectNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolcassette.contracts.compiler import Compiler
    from toolcassette.contracts.nodes import Node

__all__ = ["build", "parts"]


def build(annotation: object, compiler: Compiler) -> Node | None:
    """The node of an attrs class, generic or not; None for anything else."""
    cls: Any = class_of(annotation)
    if cls is None or not _is_attrs(cls):
        return None
    import attrs

    node = ObjectNode(cls, readable(annotation), _maker(cls))
    compiler.remember(annotation, node)
    hints = field_hints(annotation)
    fields: tuple[Any, ...] = attrs.fields(cls)
    nodes = compiler.fields(annotation, [hints.get(field.name, field.type or Any) for field in fields])
    for field, part in zip(fields, nodes, strict=True):
        required = field.init and field.default is attrs.NOTHING
        node.fields[field.name] = Field(field.name, field.name, part, required)
    return node


def parts(value: object) -> dict[str, object] | None:
    """The attributes that an instance has values for, in order; None for what is no attrs class."""
    cls: Any = type(value)
    if not _is_attrs(cls):
        return None
    found = {field.name: getattr(value, field.name, ABSENT) for field in cls.__attrs_attrs__}
    return {name: part for name, part in found.items() if part is not ABSENT}


def _is_attrs(cls: type) -> bool:
    """True for attrs classes whose attributes are all there is to them: one that is a dict or a str too is more."""
    if "attr" not in sys.modules or not hasattr(cls, "__attrs_attrs__"):
        return False
    return not any(base.__module__ == "builtins" and base is not object for base in cls.__mro__)


def _takes_fields(cls: Any, names: Iterable[str]) -> bool:
    """True if the constructor can be called with these keywords, and is not the user's own."""
    if hasattr(cls, "__attrs_init__"):
        return False
    try:
        inspect.signature(cls.__init__).bind(None, **dict.fromkeys(names))
    except (TypeError, ValueError):
        return False
    return True


def _maker(cls: Any) -> Callable[[dict[str, object]], object]:
    fields: tuple[Any, ...] = cls.__attrs_attrs__
    aliases: dict[str, str] = {field.name: field.alias for field in fields if field.init}

    def construct(values: dict[str, object]) -> object:
        made = cls(**{aliases[name]: value for name, value in values.items() if name in aliases})
        return _hold(made, values)

    def assemble(values: dict[str, object]) -> object:
        made = cls.__new__(cls)
        for field in fields:
            if field.name not in values:
                _hold(made, {field.name: _default(field, made)})
        return _hold(made, values)

    return construct if _takes_fields(cls, aliases.values()) else assemble


def _default(field: Any, made: object) -> object:
    factory = getattr(field.default, "factory", None)
    if factory is None:
        return field.default
    return factory(made) if field.default.takes_self else factory()


def _hold(made: object, values: dict[str, object]) -> object:
    """Every attribute exactly as recorded, past converters and frozenness."""
    for name, value in values.items():
        if getattr(made, name, ABSENT) is not value:
            object.__setattr__(made, name, value)
    return made
