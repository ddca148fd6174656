"""Are two values the same in type and in every part? A walk, not ``==``.

Rule: ``1``, ``1.0`` and ``True`` differ, so do ``0.0`` and ``-0.0``, ``1.0`` and ``1.00`` as decimals, one moment in
two zones, and one dict in two orders, since a model sees the order. NaN is the same as NaN. What cannot be taken apart
is the same only as itself.
"""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import functools
import math
import pathlib
import uuid
import zoneinfo
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from toolcassette.contracts.doors import hidden_of, parts_of
from toolcassette.contracts.nodes import segment_of
from toolcassette.format import json_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Alike = Mapping[type, Callable[[Any, Any], bool]]

__all__ = ["Difference", "difference", "same"]


_NOTHING: Final[Alike] = MappingProxyType({})


class Difference:
    """Where two values part. ``type_name``: what the first of the two has there; ``path``: outermost segment first."""

    __slots__ = ("_segments", "type_name")

    def __init__(self, value: object) -> None:
        self.type_name = type(value).__qualname__
        self._segments: list[str | int] = []

    @property
    def path(self) -> tuple[str | int, ...]:
        """From the root to the difference."""
        return tuple(reversed(self._segments))

    def under(self, segment: str | int) -> Difference:
        """The same difference, seen from one level further out."""
        self._segments.append(segment)
        return self


def same(a: object, b: object) -> str | None:
    """The JSON path of the first difference of two values in type or value; None if they are the same."""
    found = difference(a, b)
    return None if found is None else json_path(found.path)


def difference(a: object, b: object, alike: Alike = _NOTHING) -> Difference | None:
    """The first difference of two values, None if they are the same.

    ``alike`` tells, by class, whether two instances of it are the same, for classes that cannot be taken apart.
    """
    if a is b:
        return None
    kind = type(a)
    if kind is not type(b):
        return Difference(a)
    atom = _ATOMS.get(kind) or alike.get(kind)
    if atom is not None:
        return None if atom(a, b) else Difference(a)
    try:
        return _WALKS.get(kind, _objects)(a, b, alike)
    except RecursionError:
        return Difference(a)


def _is_same_float(a: float, b: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b and math.copysign(1.0, a) == math.copysign(1.0, b)


def _is_same_zone(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if type(a) is dt.timezone:
        return (a.utcoffset(None), a.tzname(None)) == (b.utcoffset(None), b.tzname(None))
    if type(a) is zoneinfo.ZoneInfo:
        return bool(a.key) and bool(a.key == b.key)
    return a is b


def _is_same_moment(a: Any, b: Any) -> bool:
    bare = a.replace(tzinfo=None) == b.replace(tzinfo=None)
    return bool(bare) and a.fold == b.fold and _is_same_zone(a.tzinfo, b.tzinfo)


def _is_equal(a: object, b: object) -> bool:
    return bool(a == b)


def _is_same_text(a: object, b: object) -> bool:
    return str(a) == str(b)  # paths of Windows are equal in any case, decimals at any precision


_ATOMS: dict[type, Callable[[Any, Any], bool]] = {
    str: _is_equal,
    int: _is_equal,
    bool: _is_equal,
    bytes: _is_equal,
    bytearray: _is_equal,
    uuid.UUID: _is_equal,
    dt.date: _is_equal,
    dt.timedelta: _is_equal,
    float: _is_same_float,
    complex: lambda a, b: _is_same_float(a.real, b.real) and _is_same_float(a.imag, b.imag),
    decimal.Decimal: _is_same_text,
    dt.datetime: _is_same_moment,
    dt.time: _is_same_moment,
    type(pathlib.Path()): _is_same_text,
    pathlib.PurePosixPath: _is_same_text,
    pathlib.PureWindowsPath: _is_same_text,
}


def _sequences(a: Any, b: Any, alike: Alike) -> Difference | None:
    for index, (one, other) in enumerate(zip(a, b, strict=False)):
        found = difference(one, other, alike)
        if found is not None:
            return found.under(index)
    return None if len(a) == len(b) else Difference(a)


def _dicts(a: dict[Any, Any], b: dict[Any, Any], alike: Alike) -> Difference | None:
    for (key, one), (other_key, other) in zip(a.items(), b.items(), strict=False):
        found = difference(key, other_key, alike) or difference(one, other, alike)
        if found is not None:
            return found.under(segment_of(key))
    return None if len(a) == len(b) else Difference(a)


def _sets(a: Iterable[Any], b: Iterable[Any], alike: Alike) -> Difference | None:
    others = {item: item for item in b}
    lone: list[object] = []  # a NaN is found by nobody but itself
    for item in a:
        if item in others and difference(item, others[item], alike) is None:
            del others[item]
        else:
            lone.append(item)
    rest = list(others.values())
    for item in lone:
        partner = next((i for i, other in enumerate(rest) if difference(item, other, alike) is None), None)
        if partner is None:
            return Difference(a)
        del rest[partner]
    return Difference(a) if rest else None


def _containers(a: Any, b: Any, alike: Alike) -> Difference | None:
    beside = [
        (getattr(c, "default_factory", None), getattr(c, "maxlen", None), getattr(c, "__dict__", {})) for c in (a, b)
    ]
    (one_made, one_size, one_own), (other_made, other_size, other_own) = beside
    if one_made is not other_made or one_size != other_size or difference(one_own, other_own, alike):
        return Difference(a)
    return _sequences(a, b, alike) if isinstance(a, collections.deque) else _dicts(a, b, alike)


_WALKS: dict[type, Callable[[Any, Any, Alike], Difference | None]] = {
    list: _sequences,
    tuple: _sequences,
    dict: _dicts,
    set: _sets,
    frozenset: _sets,
    collections.Counter: _containers,
    collections.defaultdict: _containers,
    collections.deque: _containers,
    collections.OrderedDict: _containers,
}


def _objects(a: object, b: object, alike: Alike) -> Difference | None:
    if isinstance(a, enum.Enum):
        return None if isinstance(a, enum.Flag) and a == b else Difference(a)
    parts, others = parts_of(a), parts_of(b)
    if parts is None or others is None or parts.keys() != others.keys():
        return Difference(a)
    parts, others = parts | _extras(a, parts), others | _extras(b, others)
    for name, one in parts.items():
        found = difference(one, others[name], alike) if name in others else Difference(one)
        if found is not None:
            return found.under(name)
    if len(parts) != len(others):
        return Difference(a)
    return _dicts(hidden_of(a), hidden_of(b), alike)


def _extras(value: object, parts: dict[str, object]) -> dict[str, object]:
    """What an instance carries beside its fields; not what it computes again when asked."""
    own: dict[str, object] = getattr(value, "__dict__", {})
    return {name: own[name] for name in own.keys() - parts.keys() if not _is_computed(type(value), name)}


def _is_computed(cls: type, name: str) -> bool:
    return name == "__orig_class__" or isinstance(getattr(cls, name, None), functools.cached_property)
