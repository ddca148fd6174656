"""What a type system has to answer for its classes to be recorded, and who answers.

Rule: one door a type system. ``build`` makes the node of an annotation, ``parts`` takes a value apart into named parts;
both answer None for what is not theirs. ``hidden`` tells what an instance holds beside: it counts for sameness only.
Doors are asked in the order of the table; another type system is one more module and one more row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolcassette.contracts import attrs_classes, models, plain, registered, structs

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcassette.contracts.compiler import Compiler
    from toolcassette.contracts.nodes import Node

__all__ = ["DOORS", "Door", "hidden_of", "parts_of"]


def _none(_: object) -> None:
    return None


def _nothing(_: object) -> dict[str, object]:
    return {}


class Door(NamedTuple):
    """``build(annotation, compiler)``, ``parts(value)``, ``hidden(value)``; see the module."""

    build: Callable[[object, Compiler], Node | None]
    parts: Callable[[object], dict[str, object] | None] = _none
    hidden: Callable[[object], dict[str, object]] = _nothing


DOORS: tuple[Door, ...] = (
    Door(registered.build),
    Door(plain.build, plain.parts),
    Door(structs.build, structs.parts),
    Door(models.build, models.parts, models.hidden),
    Door(attrs_classes.build, attrs_classes.parts),
)


def parts_of(value: object) -> dict[str, object] | None:
    """The fields of an instance of a structured class that have a value, in order; None for any other value."""
    for door in DOORS:
        parts = door.parts(value)
        if parts is not None:
            return parts
    return None


def hidden_of(value: object) -> dict[str, object]:
    """What an instance of a structured class holds beside its parts."""
    return {name: part for door in DOORS for name, part in door.hidden(value).items()}
