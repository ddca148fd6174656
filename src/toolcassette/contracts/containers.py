"""Nodes for dict and its kin (OrderedDict, defaultdict, Counter), and for deque.

Rule: where ``dict`` is promised, a subclass of Python's own will do, as an int does for a float: its tag says what it
is, and it comes back as that. A user's subclass will not.
"""

# ruff: noqa: D102 - what every node answers is told once, in Node

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any, Final

from toolcassette.contracts.nodes import (
    AnyNode,
    Leaf,
    Node,
    Reading,
    read_plain,
    segment_of,
    tagged_items,
    write_plain,
)
from toolcassette.contracts.unfit import Unfit
from toolcassette.errors import FormatError
from toolcassette.format import TAG, members_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolcassette.format import Tree

__all__ = ["MAPPINGS", "DequeNode", "DictNode", "is_plain_name", "pairs_of"]

MAPPINGS: Final[tuple[type, ...]] = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)


def is_plain_name(name: Tree) -> bool:
    """True if a tree can be the key of an object and be taken for nothing else."""
    return type(name) is str and name != TAG and (name.isascii() or type(write_plain(name)) is str)


class DictNode(Node):
    """``dict[K, V]``: an object where every key is written as a harmless string, else a map of pairs.

    ``kinds``: the exact types of its values; those beside dict are written as pairs under a tag of their own.
    """

    def __init__(self, key: Node, value: Node, wanted: str, kinds: Iterable[type] = MAPPINGS) -> None:
        self._key = key
        self._value = value
        self.wanted = wanted
        self.kinds = frozenset(kinds)
        any_str = type(key) is AnyNode or (type(key) is Leaf and str in key.types)
        if any_str and type(value) is AnyNode:
            self.as_is = self.kinds & {dict}
        self.transparent = dict in self.kinds and any_str and value.transparent

    def takes(self, value: object) -> bool:
        return type(value) in self.kinds

    def write(self, value: Mapping[object, object]) -> Tree:
        pairs: list[tuple[Tree, Tree]] = []
        for key, item in value.items():
            segment = segment_of(key)
            pairs.append((self._key.encode_under(key, segment), self._value.encode_under(item, segment)))
        if type(value) is not dict:
            return {**members_of(value), "v": [list(pair) for pair in pairs]}
        names = {name for name, _ in pairs if type(name) is str and is_plain_name(name)}
        if len(names) == len(pairs):
            return {name: tree for name, tree in pairs if type(name) is str}
        return {TAG: "map", "v": [list(pair) for pair in pairs]}

    def decode(self, tree: Tree, reading: Reading) -> object:
        if type(tree) is not dict:
            raise Unfit(self.wanted)
        if self.as_is and not reading.tagged:
            return tree
        found = _empty(tree) if TAG in tree and tree[TAG] != "map" else {}
        if type(found) not in self.kinds or not isinstance(found, dict):
            raise Unfit(self.wanted)
        pairs = pairs_of(tree) if type(found) is dict else _pairs(_items(tree))
        if pairs is None:
            raise Unfit(self.wanted)
        for name, item in pairs:
            segment = segment_of(name)
            key = self._key.decode_under(name, reading, segment)
            value = self._value.decode_under(item, reading, segment)
            try:
                found[key] = value
            except TypeError:  # unhashable today
                raise Unfit(self._key.wanted, [segment]) from None
        if len(found) != len(pairs):
            raise Unfit(self.wanted)
        return found


class DequeNode(Node):
    """``collections.deque[X]``, with its ``maxlen``."""

    def __init__(self, item: Node, wanted: str) -> None:
        self._item = item
        self.wanted = wanted

    def takes(self, value: object) -> bool:
        return type(value) is collections.deque

    def write(self, value: Iterable[object]) -> Tree:
        items = [self._item.encode_under(item, index) for index, item in enumerate(value)]
        return {**members_of(value), "v": items}

    def decode(self, tree: Tree, reading: Reading) -> object:
        found = _empty(tree) if type(tree) is dict and tree.get(TAG) == "deque" else None
        if type(found) is not collections.deque or type(tree) is not dict:
            raise Unfit(self.wanted)
        deque: collections.deque[object] = found
        items = _items(tree)
        deque.extend(self._item.decode_under(item, reading, index) for index, item in enumerate(items))
        if len(deque) != len(items):
            raise FormatError("bulk")
        return deque


def _empty(tree: dict[str, Tree]) -> Any:
    """The container of a tag object without its items; None for a tag that is no container of this module."""
    if tree[TAG] not in ("counter", "defaultdict", "deque", "ordered"):
        return None
    _items(tree)
    return read_plain({**tree, "v": []})


def _items(tree: dict[str, Tree]) -> list[Tree]:
    items = tree.get("v")
    if type(items) is not list:
        raise FormatError("bulk")
    return items


def pairs_of(tree: dict[str, Tree]) -> list[tuple[Tree, Tree]] | None:
    """Keys and values of an object or of a map of pairs, None if the tree is another tag."""
    if TAG not in tree:
        return list(tree.items())
    items = tagged_items(tree, "map")
    if items is None:
        return None
    found = _pairs(items)
    if len({name for name, _ in found if type(name) is str and is_plain_name(name)}) == len(found):
        raise FormatError("bulk")  # an object would have done
    return found


def _pairs(items: Iterable[Tree]) -> list[tuple[Tree, Tree]]:
    found: list[tuple[Tree, Tree]] = []
    for pair in items:
        if type(pair) is not list or len(pair) != 2:
            raise FormatError("bulk")
        found.append((pair[0], pair[1]))
    return found
