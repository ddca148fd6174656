"""Nodes that choose: unions, literals, enums, and values with constraints.

Rule: a value is written by the member that takes it and comes back only as what it was. Reading asks the members that
say most first and prefers the one that would write the same tree again. Where two look-alikes cannot be told apart, the
caller's proof (``round_trip``) sees it while recording.
"""

# ruff: noqa: D102 - what every node answers is told once, in Node

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from toolcassette.contracts.containers import DictNode
from toolcassette.contracts.nodes import Leaf, ListNode, Node, Reading, Unfit, UnknownNode, write_plain
from toolcassette.format import Refused, encode_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcassette.format import Tree

__all__ = ["CheckedNode", "EnumNode", "FlagNode", "LiteralNode", "UnionNode", "checkable"]


def _key(tree: Tree) -> bytes:
    """Trees compare by their bytes: ``1``, ``1.0`` and ``true`` are three."""
    return encode_tree(tree, sort=True)


class UnionNode(Node):
    """``X | Y``."""

    def __init__(self, members: Sequence[Node], wanted: str) -> None:
        self._members = tuple(members)
        self._ranked = sorted(members, key=lambda node: node.rank)
        # With one member that holds other values, no tree fits two members in two ways: the first that fits is right.
        self._simple = sum(not isinstance(node, Leaf | LiteralNode | EnumNode) for node in members) <= 1
        self.wanted = wanted
        self.transparent = all(node.transparent for node in members)
        self.rank = max(node.rank for node in members)

    def takes(self, value: object) -> bool:
        return any(node.takes(value) for node in self._members)

    def encode(self, value: object) -> Tree:
        if self.takes(value):
            return self.write(value)
        for node in self._members:
            if isinstance(node, UnknownNode):
                node.encode(value)  # raises: that nothing knows this member tells more than that no other takes it
        return super().encode(value)

    def write(self, value: Any) -> Tree:
        refusals: list[Refused] = []
        for node in self._members:
            if node.takes(value):
                try:
                    return node.encode(value)
                except Refused as refused:
                    refusals.append(refused)
        raise max(refusals, key=lambda refused: len(refused.segments))  # the one that got furthest tells most

    def decode(self, tree: Tree, reading: Reading) -> object:
        if self._simple or type(tree) not in (dict, list):  # one scalar object may stand in two places of a tree
            return self._decide(tree, reading)
        key = (id(self), id(tree))  # look-alikes that nest would else be read again at every level above
        if key not in reading.memo:
            try:
                reading.memo[key] = self._decide(tree, reading)
            except Unfit as unfit:
                reading.memo[key] = (_NO, unfit.wanted, tuple(unfit.segments))
        found = reading.memo[key]
        if isinstance(found, tuple) and found and found[0] is _NO:
            raise Unfit(found[1], found[2])
        return found

    def _decide(self, tree: Tree, reading: Reading) -> object:
        nearest = Unfit(self.wanted)
        readings: list[object] = []
        for node in self._ranked:
            try:
                value = node.decode(tree, reading)
            except Unfit as unfit:
                if len(unfit.segments) > len(nearest.segments):
                    nearest = unfit
                continue
            if self._simple or _writes_again(node, value, tree):
                return value
            readings.append(value)
        if not readings:
            raise nearest
        return readings[0]

    def hopeless(self, seen: set[int]) -> bool:
        return all(node.hopeless(seen) for node in self._members)


_NO = object()  # marks a refusal in the memo


def _writes_again(node: Node, value: object, tree: Tree) -> bool:
    try:
        return _key(node.encode(value)) == _key(tree)
    except Refused:
        return False


class LiteralNode(Node):
    """``Literal[...]``: these values and no others."""

    rank = 0

    def __init__(self, options: Sequence[object], wanted: str) -> None:
        self.wanted = wanted
        self._options = tuple(options)
        self._by_tree: dict[bytes, object] = {}
        for option in options:
            self._by_tree.setdefault(_key(self.write(option)), option)
        self.transparent = all(type(option) in (str, int, bool, type(None)) for option in options)

    def takes(self, value: object) -> bool:
        return any(type(value) is type(option) and value == option for option in self._options)

    def write(self, value: Any) -> Tree:
        return write_plain(value.value if isinstance(value, enum.Enum) else value)

    def decode(self, tree: Tree, reading: Reading) -> object:
        key = _key(tree)
        if key not in self._by_tree:
            raise Unfit(self.wanted)
        return self._by_tree[key]


class EnumNode(Node):
    """Members of an Enum, stored by value; by name where a member's value is not of builtin types."""

    rank = 0

    def __init__(self, cls: type[enum.Enum], wanted: str) -> None:
        self.wanted = wanted
        self._cls = cls
        try:
            trees = {member.name: write_plain(member.value) for member in cls}
        except Refused:
            trees = {member.name: member.name for member in cls}
        self._trees = trees
        self._members = {_key(trees[member.name]): member for member in cls}

    def takes(self, value: object) -> bool:
        return type(value) is self._cls and value.name in self._trees

    def write(self, value: Any) -> Tree:
        return self._trees[value.name]

    def decode(self, tree: Tree, reading: Reading) -> object:
        member = self._members.get(_key(tree))
        if member is None:
            raise Unfit(self.wanted)
        return member


class FlagNode(Node):
    """Members of a Flag and their combinations, stored as the number they are."""

    rank = 0

    def __init__(self, cls: type[enum.Flag], wanted: str) -> None:
        self.wanted = wanted
        self._cls = cls

    def takes(self, value: object) -> bool:
        return type(value) is self._cls

    def write(self, value: Any) -> Tree:
        return write_plain(value.value)

    def decode(self, tree: Tree, reading: Reading) -> object:
        if type(tree) is not int:
            raise Unfit(self.wanted)
        try:
            flag = self._cls(tree)
        except ValueError:
            raise Unfit(self.wanted) from None
        if type(flag) is not self._cls or flag.value != tree:  # bits that are gone today
            raise Unfit(self.wanted)
        return flag


def checkable(node: Node, meta: Sequence[msgspec.Meta]) -> Any:
    """What ``msgspec.convert`` is to hold a value of this node against, None where it could not without changing it."""
    base: Any
    if isinstance(node, Leaf) and len(node.types) == 1:
        (base,) = node.types
    elif isinstance(node, Leaf) and node.types == frozenset({int, float}):
        base = float
    elif isinstance(node, ListNode):
        base = list[Any]
    elif isinstance(node, DictNode) and dict in node.kinds:
        base = dict[Any, Any]
    else:
        return None
    for rule in meta:
        base = Annotated[base, rule]
    return base


class CheckedNode(Node):
    """A value under ``msgspec.Meta`` constraints. The check only looks: what it converts is thrown away."""

    def __init__(self, inner: Node, against: object, wanted: str) -> None:
        self._inner = inner
        self._against: Any = against
        self.wanted = wanted
        self.transparent = inner.transparent
        self.rank = inner.rank

    def _is_met(self, value: object) -> bool:
        try:
            msgspec.convert(value, self._against)
        except msgspec.ValidationError:
            return False
        except TypeError:  # msgspec does not know the type: it would not hold the value to this rule live either
            return True
        return True

    def takes(self, value: object) -> bool:
        return self._inner.takes(value)

    def write(self, value: Any) -> Tree:
        tree = self._inner.write(value)
        if not self._is_met(value):
            raise Refused(type(value).__qualname__, f"breaks a constraint of {self.wanted} in the return annotation")
        return tree

    def decode(self, tree: Tree, reading: Reading) -> object:
        value = self._inner.decode(tree, reading)
        if not self._is_met(value):
            raise Unfit(self.wanted)
        return value

    def hopeless(self, seen: set[int]) -> bool:
        return self._inner.hopeless(seen)
