"""The door to ``msgspec.Struct``.

Rule: members are stored under their encoded names, the tag of a tagged class with them, all fields even where msgspec
would leave defaults out or write an array: a file must not change its meaning when a default or an order does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from toolcassette.contracts.hints import class_of, field_hints
from toolcassette.contracts.names import readable
from toolcassette.contracts.objects import ABSENT, Field, ObjectNode

if TYPE_CHECKING:
    from toolcassette.contracts.compiler import Compiler
    from toolcassette.contracts.nodes import Node

__all__ = ["build", "parts"]


def build(annotation: object, compiler: Compiler) -> Node | None:
    """The node of a Struct, generic or not; None for anything else."""
    cls: Any = class_of(annotation)
    if cls is None or not issubclass(cls, msgspec.Struct):
        return None

    def make(values: dict[str, object]) -> object:
        made = cls(**values)
        for name, value in values.items():
            if getattr(made, name, ABSENT) is not value:  # __post_init__ made something else of it
                msgspec.structs.force_setattr(made, name, value)
        return made

    node = ObjectNode(cls, readable(annotation), make)
    node.unset = msgspec.UNSET
    compiler.remember(annotation, node)
    hints = field_hints(annotation)
    names, keys = cls.__struct_fields__, cls.__struct_encode_fields__
    nodes = compiler.fields(annotation, [hints.get(name, Any) for name in names])
    defaults = (msgspec.NODEFAULT,) * (len(names) - len(cls.__struct_defaults__)) + cls.__struct_defaults__
    for name, key, part, default in zip(names, keys, nodes, defaults, strict=True):
        node.fields[key] = Field(name, key, part, default is msgspec.NODEFAULT)
    config = cls.__struct_config__
    label: str | None = config.tag_field
    if label is not None and config.tag is not None and label not in node.fields:
        node.label = (label, config.tag)
    return node


def parts(value: object) -> dict[str, object] | None:
    """The fields of a Struct that are set, in order; None for what is no Struct."""
    cls: Any = type(value)
    if not issubclass(cls, msgspec.Struct):
        return None
    found = {name: getattr(value, name, ABSENT) for name in cls.__struct_fields__}
    return {name: part for name, part in found.items() if part is not ABSENT and part is not msgspec.UNSET}
