"""What an annotation is made of, compiled: small nodes that write one kind of value and read it back.

Rule: exact types, nothing coerced. ``write`` answers a tree or refuses, ``decode`` answers a fresh value or says what
it wanted; both name the place. The trees are those of ``toolcassette.format`` (FORMAT.md section 5): what JSON has no
word for is tagged also where an annotation would tell, so that a file explains itself. Classes are plain objects.
"""

# ruff: noqa: D102 - what every node answers is told once, in Node

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from toolcassette.contracts.advice import how_to_keep, is_foreign
from toolcassette.contracts.unfit import Unfit
from toolcassette.errors import FormatError
from toolcassette.format import TAG, Decoder, Encoder, Refused, encode_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolcassette.contracts.extensions import Extensions
    from toolcassette.format import Tree

__all__ = [
    "AnyNode",
    "Leaf",
    "LinkNode",
    "ListNode",
    "Node",
    "Reading",
    "SetNode",
    "TupleNode",
    "Unfit",
    "UnknownNode",
    "is_being_asked",
    "read_plain",
    "segment_of",
    "tagged_items",
    "write_plain",
]

_LEAVES = Encoder()  # for values that hold no other values: it keeps no count of levels for them
_DECODER = Decoder()
_JSON_TYPES: Final[frozenset[type]] = frozenset({str, int, float, bool, type(None)})


class Reading:
    """One decoding. ``tagged``: tag objects may stand in it; ``memo``: what unions found out about a tree already."""

    __slots__ = ("memo", "tagged")

    def __init__(self, *, tagged: bool) -> None:
        self.tagged = tagged
        self.memo: dict[tuple[int, int], object] = {}


class Node:
    """One part of an annotation.

    ``wanted``: its readable name. ``transparent``: a value of JSON's own types is its own tree here. ``as_is``: a tree
    of one of these types, without tags, is its own value, whatever it holds. ``rank``: unions ask nodes of lower rank
    first when they read, because those say more about a value.
    """

    wanted: str
    transparent: bool = False
    as_is: frozenset[type] = frozenset()
    rank: int = 1

    def takes(self, value: object) -> bool:
        """True if the value's own type (not what it holds) is one that this node writes."""
        raise NotImplementedError

    def write(self, value: Any) -> Tree:  # Any: takes() has narrowed it
        """The tree of a value that the node takes. Raises ``Refused``."""
        raise NotImplementedError

    def decode(self, tree: Tree, reading: Reading) -> object:
        """The value of a tree. Raises ``Unfit``; ``FormatError`` for a broken tag."""
        raise NotImplementedError

    def hopeless(self, seen: set[int]) -> bool:
        """True if no value at all can be written. ``seen`` holds ids of nodes that are being asked already."""
        return False

    def encode(self, value: object) -> Tree:
        """The tree of a value. Raises ``Refused`` with the place where value and annotation part."""
        if not self.takes(value):
            why = f"is not {self.wanted}, which the annotation asks for; correct the annotation, or pass returns=Any"
            if is_foreign(type(value)):
                why = how_to_keep(type(value))
            raise Refused(type(value).__qualname__, why)
        return self.write(value)

    def encode_under(self, value: object, segment: str | int) -> Tree:
        """``encode`` for a part of a value."""
        try:
            return self.encode(value)
        except Refused as refused:
            raise refused.under(segment) from None

    def decode_under(self, tree: Tree, reading: Reading, segment: str | int) -> object:
        """``decode`` for a part of a tree."""
        try:
            return self.decode(tree, reading)
        except Unfit as unfit:
            raise unfit.under(segment) from None


def write_plain(value: object) -> Tree:
    """The tree of a value of builtin types, nested as it may be. Raises ``Refused``."""
    return Encoder().tree(value)  # a fresh one: it counts levels, and a refusal inside a union would spoil the count


def read_plain(tree: Tree) -> object:
    """The value of a tree of builtin types. Raises ``FormatError`` ``bulk``."""
    return _DECODER.value(tree)


def _tag(tree: Tree) -> str | None:
    name = tree.get(TAG) if type(tree) is dict else None
    return name if type(name) is str else None


def tagged_items(tree: Tree, tag: str) -> list[Tree] | None:
    """The items of a tag object of this name, None if the tree is something else."""
    if type(tree) is not dict or _tag(tree) != tag:
        return None
    items = tree.get("v")
    if type(items) is not list or list(tree) != [TAG, "v"]:
        raise FormatError("bulk")
    return items


class AnyNode(Node):
    """``Any``, ``object``, or no annotation: builtin and registered types only."""

    wanted = "Any"
    transparent = True
    as_is = frozenset({*_JSON_TYPES, dict, list})
    rank = 2

    def __init__(self, extensions: Extensions) -> None:
        self._extensions = extensions

    def takes(self, value: object) -> bool:
        return True

    def write(self, value: object) -> Tree:
        return self._extensions.write(value)

    def decode(self, tree: Tree, reading: Reading) -> object:
        if not reading.tagged:
            return tree
        try:
            return self._extensions.read(tree)
        except Unfit as unfit:
            raise Unfit(unfit.wanted, _place_of(tree, unfit.spot) or ()) from None


def _place_of(tree: Tree, spot: object) -> list[str | int] | None:
    """The path of a part of a tree, innermost segment first; None if it is not in it."""
    if tree is spot:
        return []
    if type(tree) is dict and TAG not in tree:
        parts: Iterable[tuple[str | int, Tree]] = tree.items()
    elif type(tree) is dict:
        return _place_of(tree.get("v"), spot)  # the tag's own member is no level of the value's
    elif type(tree) is list:
        parts = enumerate(tree)
    else:
        return None
    for segment, part in parts:
        found = _place_of(part, spot)
        if found is not None:
            return [*found, segment]
    return None


class Leaf(Node):
    """A value that holds no others. ``types``: the exact types; ``tags``: the tags that may stand for them."""

    def __init__(self, wanted: str, types: Iterable[type], tags: Iterable[str] = ()) -> None:
        self.wanted = wanted
        self.types = frozenset(types)
        self._tags = frozenset(tags)
        self.transparent = self.types <= _JSON_TYPES
        self.as_is = self.types & _JSON_TYPES

    def takes(self, value: object) -> bool:
        return type(value) in self.types

    def write(self, value: object) -> Tree:
        return _LEAVES.tree(value)

    def decode(self, tree: Tree, reading: Reading) -> object:
        value = _DECODER.value(tree) if _tag(tree) in self._tags else tree
        if type(value) not in self.types:
            raise Unfit(self.wanted)
        return value


class UnknownNode(Node):
    """A class or form that no door knows. It is no error by itself: an optional field may always be None."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted

    def takes(self, value: object) -> bool:
        return False

    def encode(self, value: object) -> Tree:
        raise Refused(
            type(value).__qualname__, f"stands where the annotation says {self.wanted}, which has no lossless form"
        )

    def decode(self, tree: Tree, reading: Reading) -> object:
        raise Unfit(self.wanted)

    def hopeless(self, seen: set[int]) -> bool:
        return True


class LinkNode(Node):
    """Stands for a node that is still being built: a type alias that speaks of itself."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.target: Node = UnknownNode(wanted)

    def takes(self, value: object) -> bool:
        return self.target.takes(value)

    def encode(self, value: object) -> Tree:
        return self.target.encode(value)

    def decode(self, tree: Tree, reading: Reading) -> object:
        return self.target.decode(tree, reading)

    def hopeless(self, seen: set[int]) -> bool:
        return not is_being_asked(self, seen) and self.target.hopeless(seen)


def is_being_asked(node: Node, seen: set[int]) -> bool:
    """Enter a node into ``seen``; True if it was there: the types go in a circle."""
    if id(node) in seen:
        return True
    seen.add(id(node))
    return False


class ListNode(Node):
    """``list[X]``."""

    def __init__(self, item: Node, wanted: str) -> None:
        self._item = item
        self.wanted = wanted
        self.transparent = item.transparent
        self.as_is = frozenset({list}) if type(item) is AnyNode else frozenset()

    def takes(self, value: object) -> bool:
        return type(value) is list

    def write(self, value: Sequence[object]) -> Tree:
        return [self._item.encode_under(item, index) for index, item in enumerate(value)]

    def decode(self, tree: Tree, reading: Reading) -> object:
        if type(tree) is not list:
            raise Unfit(self.wanted)
        if self.as_is and not reading.tagged:
            return tree
        return [self._item.decode_under(item, reading, index) for index, item in enumerate(tree)]


class TupleNode(Node):
    """``tuple[X, Y]`` (``rest`` None) or ``tuple[X, ...]`` (``rest`` is the node of every item)."""

    def __init__(self, items: Sequence[Node], rest: Node | None, wanted: str) -> None:
        self._items = tuple(items)
        self._rest = rest
        self.wanted = wanted

    def _nodes(self, size: int) -> Sequence[Node] | None:
        if self._rest is not None:
            return (self._rest,) * size
        return self._items if size == len(self._items) else None

    def takes(self, value: object) -> bool:
        return type(value) is tuple and self._nodes(len(value)) is not None

    def write(self, value: Sequence[object]) -> Tree:
        nodes = self._nodes(len(value)) or ()
        pairs = enumerate(zip(nodes, value, strict=True))
        return {TAG: "tuple", "v": [node.encode_under(item, index) for index, (node, item) in pairs]}

    def decode(self, tree: Tree, reading: Reading) -> object:
        items = tagged_items(tree, "tuple")
        nodes = None if items is None else self._nodes(len(items))
        if items is None or nodes is None:
            raise Unfit(self.wanted)
        pairs = enumerate(zip(nodes, items, strict=True))
        return tuple(node.decode_under(item, reading, index) for index, (node, item) in pairs)

    def hopeless(self, seen: set[int]) -> bool:
        return any(node.hopeless(seen) for node in self._items)


class SetNode(Node):
    """``set[X]`` or ``frozenset[X]``: ``kind``. Items are stored in the order of their bytes, never of their hashes."""

    def __init__(self, kind: type[set[object] | frozenset[object]], item: Node, wanted: str) -> None:
        self._kind = kind
        self._item = item
        self.wanted = wanted

    def takes(self, value: object) -> bool:
        return type(value) is self._kind

    def write(self, value: Iterable[object]) -> Tree:
        trees = [self._item.encode_under(item, index) for index, item in enumerate(value)]
        trees.sort(key=lambda tree: encode_tree(tree, sort=True))
        return {TAG: self._kind.__name__, "v": trees}

    def decode(self, tree: Tree, reading: Reading) -> object:
        items = tagged_items(tree, self._kind.__name__)
        if items is None:
            raise Unfit(self.wanted)
        order = [encode_tree(item, sort=True) for item in items]
        if order != sorted(order):
            raise FormatError("bulk")
        values = [self._item.decode_under(item, reading, index) for index, item in enumerate(items)]
        try:
            found = self._kind(values)
        except TypeError:  # unhashable today
            raise Unfit(self.wanted) from None
        if len(found) != len(values):  # two recorded items are one today
            raise Unfit(self.wanted)
        return found


def segment_of(key: object) -> str | int:
    """How a key is shown in a path; of keys that JSON does not have only the type."""
    return key if isinstance(key, str | int) and type(key) in (str, int) else type(key).__qualname__
