"""Annotations to nodes.

Rule: a table of forms, each with its builder; classes are asked of the doors. A class that is being built is known by
its node already, so types may speak of themselves. What nobody knows becomes an ``UnknownNode``.
"""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import inspect
import pathlib
import types
import typing
import uuid
from collections import abc
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    ForwardRef,
    Literal,
    NewType,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import msgspec

from toolcassette.contracts.choices import CheckedNode, EnumNode, FlagNode, LiteralNode, UnionNode, checkable
from toolcassette.contracts.containers import MAPPINGS, DequeNode, DictNode
from toolcassette.contracts.hints import substitute
from toolcassette.contracts.names import readable
from toolcassette.contracts.nodes import (
    AnyNode,
    Leaf,
    LinkNode,
    ListNode,
    Node,
    SetNode,
    TupleNode,
    UnknownNode,
)
from toolcassette.format import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolcassette.contracts.extensions import Extensions

__all__ = ["Compiler"]

_PATH = type(pathlib.Path())
_PURE = (pathlib.PurePosixPath, pathlib.PureWindowsPath)

# annotation: (the exact types of its values, the tags they may have). Python lets an int pass for a float (PEP 484).
_LEAVES: Final[dict[object, tuple[tuple[type, ...], tuple[str, ...]]]] = {
    str: ((str,), ("str",)),
    bool: ((bool,), ()),
    int: ((int,), ("int",)),
    float: ((float, int), ("float", "int")),
    complex: ((complex, float, int), ("complex", "float", "int")),
    type(None): ((type(None),), ()),
    None: ((type(None),), ()),
    bytes: ((bytes,), ("bytes",)),
    bytearray: ((bytearray,), ("bytearray",)),
    decimal.Decimal: ((decimal.Decimal,), ("decimal",)),
    uuid.UUID: ((uuid.UUID,), ("uuid",)),
    dt.date: ((dt.date,), ("date",)),
    dt.datetime: ((dt.datetime,), ("datetime",)),
    dt.time: ((dt.time,), ("time",)),
    dt.timedelta: ((dt.timedelta,), ("timedelta",)),
    pathlib.Path: ((_PATH,), ("path",)),
    _PATH: ((_PATH,), ("path",)),
    pathlib.PurePath: ((_PATH, *_PURE), ("path",)),
    pathlib.PurePosixPath: ((pathlib.PurePosixPath,), ("path",)),
    pathlib.PureWindowsPath: ((pathlib.PureWindowsPath,), ("path",)),
    typing.LiteralString: ((str,), ("str",)),
    typing.NoReturn: ((), ()),
    typing.Never: ((), ()),
    msgspec.UnsetType: ((), ()),  # a field that is not set is not written
}
_ANYTHING: Final[tuple[object, ...]] = (Any, object, inspect.Parameter.empty)


class Compiler:
    """Compiles one annotation. ``builders``: the doors' ``build`` functions, in the order in which they are asked."""

    def __init__(self, builders: Sequence[Callable[[object, Compiler], Node | None]], extensions: Extensions) -> None:
        self._builders = builders
        self.extensions = extensions
        self._memo: dict[object, Node] = {}
        self._owner: object = None  # the class whose fields are being compiled: what Self means

    def node(self, annotation: object) -> Node:
        """The node of an annotation."""
        if any(annotation is form for form in _ANYTHING):
            return AnyNode(self.extensions)
        if isinstance(annotation, str | ForwardRef):  # a name that nobody could resolve
            return AnyNode(self.extensions)
        if annotation is typing.Self and self._owner is not None:
            return self.node(self._owner)
        leaf = _LEAVES.get(annotation) if _is_hashable(annotation) else None
        if leaf is not None:
            return Leaf(readable(annotation), *leaf)
        form = _FORMS.get(get_origin(annotation) or annotation) if _is_hashable(annotation) else None
        if form is not None:
            return form(self, annotation)
        return self._by_kind(annotation)

    def _by_kind(self, annotation: Any) -> Node:
        if isinstance(annotation, NewType):
            return self.node(annotation.__supertype__)
        if isinstance(annotation, TypeVar):
            choice = annotation.__constraints__ or (annotation.__bound__,)
            return self.union([Any if one is None else one for one in choice], readable(annotation))
        alias = get_origin(annotation) or annotation
        if hasattr(alias, "__value__") and hasattr(alias, "__type_params__"):
            return self._alias(annotation, alias)
        if _is_hashable(annotation) and annotation in self._memo:
            return self._memo[annotation]
        is_registered = self.extensions.type_for(annotation) is not None
        if isinstance(annotation, type) and issubclass(annotation, enum.Enum) and not is_registered:
            if issubclass(annotation, enum.Flag):
                return FlagNode(annotation, readable(annotation))
            return EnumNode(annotation, readable(annotation))
        for build in self._builders:
            node = build(annotation, self)
            if node is not None:
                return node
        return UnknownNode(readable(annotation))

    def remember(self, annotation: object, node: Node) -> None:
        """Make the node of a class known before its fields are compiled."""
        if _is_hashable(annotation):
            self._memo[annotation] = node

    def fields(self, owner: object, hints: Sequence[object]) -> list[Node]:
        """The nodes of the fields of ``owner``, a class or a generic alias of one."""
        outer, self._owner = self._owner, owner
        try:
            return [self.node(hint) for hint in hints]
        finally:
            self._owner = outer

    def union(self, members: Sequence[object], wanted: str) -> Node:
        """The node of a choice; of a lone member, the member's own."""
        nodes = [self.node(member) for member in members]
        return nodes[0] if len(nodes) == 1 else UnionNode(nodes, wanted)

    def _alias(self, annotation: Any, alias: Any) -> Node:
        if annotation in self._memo:
            return self._memo[annotation]
        link = LinkNode(readable(annotation))
        self.remember(annotation, link)
        scope = dict(zip(alias.__type_params__, get_args(annotation), strict=False))
        link.target = self.node(substitute(alias.__value__, scope))
        return link


def _is_hashable(annotation: object) -> bool:
    try:
        hash(annotation)
    except TypeError:
        return False
    return True


def _args(annotation: object, count: int) -> tuple[object, ...]:
    """Type arguments, ``Any`` for those that were not given."""
    args = get_args(annotation)
    return args if len(args) == count else (Any,) * count


def _list(compiler: Compiler, annotation: object) -> Node:
    (item,) = _args(annotation, 1)
    return ListNode(compiler.node(item), readable(annotation))


def _set(compiler: Compiler, annotation: object) -> Node:
    (item,) = _args(annotation, 1)
    is_frozen = annotation is frozenset or get_origin(annotation) is frozenset
    node, wanted = compiler.node(item), readable(annotation)
    return SetNode(frozenset, node, wanted) if is_frozen else SetNode(set, node, wanted)


def _mapping(*kinds: type) -> Callable[[Compiler, object], Node]:
    """Dict and its kin: ``kinds`` are the exact types of the values."""

    def build(compiler: Compiler, annotation: object) -> Node:
        key, value = _args(annotation, 2)
        return DictNode(compiler.node(key), compiler.node(value), readable(annotation), kinds)

    return build


def _counter(compiler: Compiler, annotation: object) -> Node:
    (key,) = _args(annotation, 1)
    return DictNode(compiler.node(key), compiler.node(int), readable(annotation), [collections.Counter])


def _deque(compiler: Compiler, annotation: object) -> Node:
    (item,) = _args(annotation, 1)
    return DequeNode(compiler.node(item), readable(annotation))


def _tuple(compiler: Compiler, annotation: object) -> Node:
    args = get_args(annotation)
    wanted = readable(annotation)
    if annotation is tuple or annotation is typing.Tuple:  # noqa: UP006 - what users write
        return TupleNode((), compiler.node(Any), wanted)
    if len(args) == 2 and args[1] is Ellipsis:
        return TupleNode((), compiler.node(args[0]), wanted)
    return TupleNode([compiler.node(arg) for arg in args], None, wanted)


def _one_of(*kinds: Any) -> Callable[[Compiler, object], Node]:
    """An abstract collection: any of the builtin ones that it stands for."""

    def build(compiler: Compiler, annotation: object) -> Node:
        (item,) = _args(annotation, 1)
        members = [tuple[item, ...] if kind is tuple else kind[item] for kind in kinds]  # type: ignore[valid-type]
        return compiler.union(members, readable(annotation))

    return build


def _union(compiler: Compiler, annotation: object) -> Node:
    return compiler.union(get_args(annotation), readable(annotation))


def _literal(_: Compiler, annotation: object) -> Node:
    try:
        return LiteralNode(get_args(annotation), readable(annotation))
    except Refused:  # an Enum member whose value is no builtin
        return UnknownNode(readable(annotation))


def _annotated(compiler: Compiler, annotation: object) -> Node:
    base, *notes = get_args(annotation)
    node = compiler.node(base)
    meta = [note for note in notes if isinstance(note, msgspec.Meta)]
    against = checkable(node, meta) if meta else None
    return node if against is None else CheckedNode(node, against, node.wanted)


def _first(compiler: Compiler, annotation: object) -> Node:
    args = get_args(annotation)
    return compiler.node(args[0] if args else Any)


_FORMS: Final[dict[object, Callable[[Compiler, object], Node]]] = {
    list: _list,
    dict: _mapping(*MAPPINGS),
    tuple: _tuple,
    set: _set,
    frozenset: _set,
    abc.Mapping: _mapping(*MAPPINGS),
    abc.MutableMapping: _mapping(*MAPPINGS),
    collections.OrderedDict: _mapping(collections.OrderedDict),
    collections.defaultdict: _mapping(collections.defaultdict),
    collections.Counter: _counter,
    collections.deque: _deque,
    abc.MutableSequence: _one_of(list, collections.deque),
    abc.Sequence: _one_of(list, tuple, collections.deque),
    abc.Set: _one_of(set, frozenset),
    abc.MutableSet: _one_of(set),
    abc.Collection: _one_of(list, tuple, set, frozenset, collections.deque),
    abc.Iterable: _one_of(list, tuple, set, frozenset, collections.deque),
    Union: _union,
    types.UnionType: _union,
    Literal: _literal,
    Annotated: _annotated,
    Final: _first,
    typing.ClassVar: _first,
    typing.Required: _first,
    typing.NotRequired: _first,
}
