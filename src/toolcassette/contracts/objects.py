"""Classes with named fields, compiled: one node for instances, one for typed dicts.

Rule: members are stored by name, so that a field that moved, came or went is seen. A missing member needs a default, an
unknown one is refused: it would be lost. Reading goes through the class's own constructor, which may say no.
"""

# ruff: noqa: D102 - what every node answers is told once, in Node

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from toolcassette.contracts.containers import is_plain_name, pairs_of
from toolcassette.contracts.nodes import (
    Node,
    Reading,
    Unfit,
    is_being_asked,
    read_plain,
    segment_of,
    write_plain,
)
from toolcassette.format import TAG, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcassette.format import Tree

__all__ = ["ABSENT", "Field", "FieldsNode", "ObjectNode", "TypedDictNode", "as_members", "as_object"]

ABSENT: Final = object()  # stands for the value of a field that an instance has none for
NO_NODES: Final[Mapping[str, Node]] = MappingProxyType({})


class Field(NamedTuple):
    """One member of a structured class. ``key``: its name in the file; ``required``: no default stands in for it."""

    name: str
    key: str
    node: Node
    required: bool


def as_object(members: dict[str, Tree]) -> Tree:
    """Named members as an object, or as a map of pairs where a name could be taken for a tag."""
    if all(is_plain_name(name) for name in members):
        return members
    return {TAG: "map", "v": [[write_plain(name), tree] for name, tree in members.items()]}


def as_members(tree: Tree, wanted: str) -> dict[str, Tree]:
    """The way back from ``as_object``. Raises ``Unfit``."""
    pairs = pairs_of(tree) if type(tree) is dict else None
    if pairs is None:
        raise Unfit(wanted)
    found: dict[str, Tree] = {}
    for name, item in pairs:
        text = read_plain(name)
        if type(text) is not str or text in found:
            raise Unfit(wanted)
        found[text] = item
    return found


class FieldsNode(Node):
    """What classes with named members share. Fields are filled in later: they may speak of the class itself."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.fields: dict[str, Field] = {}

    def read(
        self, members: dict[str, Tree], reading: Reading, instead: Mapping[str, Node] = NO_NODES
    ) -> dict[str, object]:
        """Values by field name, in the order of the file. ``instead``: nodes for some keys in place of the fields' own.

        Raises ``Unfit`` for a member too few, too many or wrong.
        """
        for field in self.fields.values():
            if field.required and field.key not in members:
                raise Unfit(field.node.wanted, [field.key])
        values: dict[str, object] = {}
        for key, tree in members.items():
            known = self.fields.get(key)
            if known is None:  # keeping it is not possible, losing it silently is not allowed
                raise Unfit(f"a member of {self.wanted}", [key])
            values[known.name] = instead.get(key, known.node).decode_under(tree, reading, key)
        return values

    def hopeless(self, seen: set[int]) -> bool:
        if is_being_asked(self, seen):
            return False
        return any(field.node.hopeless(seen) for field in self.fields.values() if field.required)


class ObjectNode(FieldsNode):
    """A class with named fields. ``make``: values by field name to an instance; ``label``: a constant member."""

    rank = 0

    def __init__(self, cls: type, wanted: str, make: Callable[[dict[str, object]], object]) -> None:
        super().__init__(wanted)
        self._cls = cls
        self._make = make
        self.label: tuple[str, Tree] | None = None
        self.unset: object = ABSENT  # the value of a field that stands for "not given", if the class has one

    def takes(self, value: object) -> bool:
        return type(value) is self._cls

    def write(self, value: object) -> Tree:
        members: dict[str, Tree] = {} if self.label is None else {self.label[0]: self.label[1]}
        for field in self.fields.values():
            part = getattr(value, field.name, ABSENT)
            if part is self.unset and part is not ABSENT and not field.required:
                continue
            if part is ABSENT:
                raise Refused(type(value).__qualname__, "has no value for this field").under(field.key)
            members[field.key] = field.node.encode_under(part, field.key)
        return as_object(members)

    def decode(self, tree: Tree, reading: Reading) -> object:
        members = as_members(tree, self.wanted)
        if self.label is not None:
            name, label = self.label
            if name not in members or type(members[name]) is not type(label) or members[name] != label:
                raise Unfit(self.wanted)
            members = {key: part for key, part in members.items() if key != name}
        values = self.read(members, reading)
        try:
            return self._make(values)
        except Unfit:
            raise
        except Exception:  # noqa: BLE001 - a constructor's own validation; its text may hold the value
            raise Unfit(self.wanted) from None


class TypedDictNode(FieldsNode):
    """A ``TypedDict``: a dict with known keys, in the order that the tool gave."""

    rank = 0

    def takes(self, value: object) -> bool:
        return type(value) is dict

    def write(self, value: Mapping[object, object]) -> Tree:
        members: dict[str, Tree] = {}
        for key, part in value.items():
            field = self.fields.get(key) if type(key) is str else None
            if field is None:
                why = f"stands under a key that {self.wanted} does not have; declare the key, or pass returns=Any"
                raise Refused(type(part).__qualname__, why).under(segment_of(key))
            members[field.key] = field.node.encode_under(part, field.key)
        for field in self.fields.values():
            if field.required and field.key not in members:
                raise Refused("dict", f"lacks this key of {self.wanted}").under(field.key)
        return as_object(members)

    def decode(self, tree: Tree, reading: Reading) -> object:
        return self.read(as_members(tree, self.wanted), reading)

    def settle(self) -> None:
        """Call when the fields are filled in."""
        self.transparent = all(field.node.transparent for field in self.fields.values())
