"""The containers of Python's ``collections`` as trees and back (FORMAT.md section 5).

Rule: a tag says which container it is, since each behaves in its own way when it is used. Pairs keep their order. The
factory of a defaultdict comes from a fixed table: a name in a file never leads to code.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any, Final, Protocol

from toolcassette.format.canonical import TAG
from toolcassette.format.refusal import cannot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolcassette.format.canonical import Tree

__all__ = ["FACTORIES", "TAG", "decode", "encode", "is_exact", "members_of"]

FACTORIES: Final[dict[str, type]] = {
    cls.__name__: cls for cls in (bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple)
}


class _Writes(Protocol):
    def items(self, values: Iterable[Any]) -> list[Tree]: ...

    def pairs(self, items: Iterable[tuple[Any, Any]], *, ordered: bool = False) -> list[Tree]: ...


class _Reads(Protocol):
    def value(self, tree: Any) -> Any: ...

    def list(self, tree: dict[str, Any]) -> list[Any]: ...


def members_of(value: Any) -> dict[str, Tree]:
    """The head of a container's tag object: the tag, and what the container is beside its items. Raises ``Refused``."""
    head: dict[str, Tree] = {TAG: _NAMES[type(value)]}
    if getattr(value, "__dict__", None):
        raise cannot(value, "has attributes of its own, which have no lossless form")
    if type(value) is collections.deque and value.maxlen is not None:
        head["maxlen"] = value.maxlen
    if type(value) is collections.defaultdict and value.default_factory is not None:
        name = getattr(value.default_factory, "__name__", "")
        if FACTORIES.get(name) is not value.default_factory:
            raise cannot(value, "has a default_factory that is not one of the builtin types; return a dict")
        head["factory"] = name
    return head


def _encode(encoder: _Writes, value: Any) -> Tree:
    head = members_of(value)
    if type(value) is collections.deque:
        return {**head, "v": encoder.items(value)}
    return {**head, "v": encoder.pairs(value.items(), ordered=type(value) is collections.OrderedDict)}


def _pairs(decoder: _Reads, tree: dict[str, Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, value in tree["v"]:
        found[decoder.value(key)] = decoder.value(value)
    return found


_NAMES: Final[dict[type, str]] = {
    collections.Counter: "counter",
    collections.defaultdict: "defaultdict",
    collections.deque: "deque",
    collections.OrderedDict: "ordered",
}

encode: Final[dict[type, Callable[[Any, Any], Tree]]] = dict.fromkeys(_NAMES, _encode)


def _factory(tree: dict[str, Any]) -> type | None:
    return FACTORIES[tree["factory"]] if "factory" in tree else None


decode: Final[dict[str, Callable[[Any, dict[str, Any]], Any]]] = {
    "counter": lambda d, t: collections.Counter(_pairs(d, t)),
    "defaultdict": lambda d, t: collections.defaultdict(_factory(t), _pairs(d, t)),
    "deque": lambda d, t: collections.deque(d.list(t), t.get("maxlen")),
    "ordered": lambda d, t: collections.OrderedDict(_pairs(d, t)),
}


def _is_exact(tree: dict[str, Any], value: Any) -> bool:
    """Whether a tag object is what ``encode`` makes of its value, apart from the parts, which were judged."""
    head = members_of(value)
    own = {name: tree[name] for name in tree if name != "v"}
    is_list = type(tree["v"]) is list and (tree[TAG] == "deque" or all(type(pair) is list for pair in tree["v"]))
    same_types = all(type(own.get(name)) is type(part) for name, part in head.items())
    return is_list and list(tree) == [*head, "v"] and same_types and own == head and len(tree["v"]) == len(value)


is_exact: Final[dict[str, Callable[[dict[str, Any], Any], bool]]] = dict.fromkeys(decode, _is_exact)
