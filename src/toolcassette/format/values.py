"""Python values as trees and back, with nothing lost on the way (FORMAT.md section 5).

Rule: exact types only. JSON's own types go as they are; what JSON has no word for becomes a tag object
``{"$tc": NAME, ..., "v": ...}`` whose other members stand in alphabetical order; a user's dict that has the key
``$tc`` is written as a map of pairs, so that no data can pass for a tag. Everything else is refused with the JSON path
at which it stands, unless the caller's ``hook`` knows it. Nothing is coerced, and a tag never names code.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import math
import pathlib
import re
import uuid
import zoneinfo
from typing import TYPE_CHECKING, Any, Final

from toolcassette.errors import FormatError
from toolcassette.format import containers, redacted
from toolcassette.format.canonical import (
    DEPTH_MAX,
    INT_DIGITS_MAX,
    TAG,
    decode_tree,
    depth_exceeds,
    encode_tree,
    may_hold_tags,
    plain_copy,
)
from toolcassette.format.refusal import Refused, cannot, too_deep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolcassette.format.canonical import Tree

    Hook = Callable[["Encoder", Any], Tree]
    Unhook = Callable[["Decoder", dict[str, Tree]], Any]

__all__ = [
    "TAG",
    "TAGS",
    "TYPES",
    "Decoder",
    "Encoder",
    "canonical_json",
    "decode_value",
    "encode_value",
]

INT_DIGITS_REFUSED: Final = 100_000  # decimal digits; beyond it a value is an attack or a mistake, not a number

_INT_BARE_MAX = 10**INT_DIGITS_MAX
_INT_MAX = 10**INT_DIGITS_REFUSED
_SURROGATE = re.compile("[\\\\\ud800-\udfff]")
_SURROGATE_TEXT = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


class Encoder:
    """Values to trees. ``hook(encoder, value)`` is asked for types that are not builtin, and may raise ``Refused``."""

    __slots__ = ("_hook", "_level", "_sort")

    def __init__(self, *, sort: bool = False, hook: Hook | None = None) -> None:
        self._sort = sort  # arguments: pairs of a map are ordered too, since they are a key
        self._hook = hook
        self._level = 0

    def tree(self, value: Any) -> Tree:
        """The tree of a value. Raises ``Refused``."""
        encode = _ENCODE.get(type(value))
        if encode is not None:
            return encode(self, value)
        if self._hook is not None:
            return self._hook(self, value)
        raise cannot(value)

    def bytes(self, value: Any) -> bytes:
        """Canonical bytes of a value. Raises ``Refused``."""
        try:
            data = encode_tree(self.tree(value), sort=self._sort)
        except RecursionError:
            raise too_deep(value) from None
        if depth_exceeds(data):  # a tag is two levels of JSON for one of Python
            raise too_deep(value)
        return data

    def items(self, values: Iterable[Any]) -> list[Tree]:
        """The trees of some values in their order."""
        self._enter(values)
        trees: list[Tree] = []
        for index, item in enumerate(values):
            try:
                trees.append(self.tree(item))
            except Refused as refused:
                raise refused.under(index) from None
        self._level -= 1
        return trees

    def members(self, pairs: Iterable[tuple[str, Any]]) -> dict[str, Tree]:
        """The trees of named members in their order; for objects whose names are known to be safe."""
        self._enter(pairs)
        trees: dict[str, Tree] = {}
        for name, item in pairs:
            try:
                trees[name] = self.tree(item)
            except Refused as refused:
                raise refused.under(name) from None
        self._level -= 1
        return trees

    def _enter(self, value: object) -> None:
        self._level += 1
        if self._level > DEPTH_MAX:
            raise too_deep(value)

    def string(self, value: str) -> Tree:
        """Text; with lone surrogates it is tagged."""
        if not _is_unicode(value):
            text = _SURROGATE.sub(lambda m: "\\\\" if m.group() == "\\" else f"\\u{ord(m.group()):04x}", value)
            return {TAG: "str", "v": text}
        return value

    def integer(self, value: int) -> Tree:
        """An integer; a long one is tagged, in hexadecimal, which converts in linear time."""
        if -_INT_BARE_MAX < value < _INT_BARE_MAX:
            return value
        if -_INT_MAX < value < _INT_MAX:
            return {TAG: "int", "v": hex(value)}
        raise cannot(value, f"has more than {INT_DIGITS_REFUSED} digits")

    def number(self, value: float) -> Tree:
        """A float; NaN and the infinities are tagged."""
        if math.isfinite(value):
            return value
        return {TAG: "float", "v": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}

    def mapping(self, value: dict[Any, Any]) -> Tree:
        """A dict: an object, or a map of pairs where JSON has no word for its keys."""
        if _is_object(value):
            return self.members(value.items())
        return {TAG: "map", "v": self.pairs(value.items())}

    def pairs(self, items: Iterable[tuple[Any, Any]], *, ordered: bool = False) -> list[Tree]:
        """Key-value pairs as an array of two-element arrays. ``ordered``: their order means something."""
        pairs: list[Tree] = [list(pair) for pair in ((self.tree(k), self._member(k, v)) for k, v in items)]
        if self._sort and not ordered:
            pairs.sort(key=lambda pair: encode_tree(pair, sort=True))
        return pairs

    def _member(self, key: Any, value: Any) -> Tree:
        try:
            return self.tree(value)
        except Refused as refused:
            raise refused.under(key if type(key) in (str, int) else type(key).__qualname__) from None

    def unordered(self, value: Iterable[Any], tag: str) -> Tree:
        """A set, its members in the order of their bytes: no hash seed shows."""
        trees = self.items(value)
        trees.sort(key=lambda tree: encode_tree(tree, sort=True))
        return {TAG: tag, "v": trees}

    def moment(self, value: dt.datetime | dt.time, tag: str) -> Tree:
        """A datetime or time with its fold and zone."""
        tree: dict[str, Tree] = {TAG: tag}
        if value.fold:
            tree["fold"] = value.fold
        zone = value.tzinfo
        if zone is None:
            tree["v"] = value.isoformat()
            return tree
        tree["v"] = value.replace(tzinfo=None).isoformat()
        if type(zone) is dt.timezone and _is_unicode(zone.tzname(None)):
            offset = zone.utcoffset(None)
            tree["zone"] = [offset.days, offset.seconds, offset.microseconds]
            if zone.tzname(None) != dt.timezone(offset).tzname(None):
                tree["zone_name"] = zone.tzname(None)
        elif type(zone) is zoneinfo.ZoneInfo and zone.key and _is_unicode(zone.key):
            tree["zone"] = zone.key
        else:
            raise cannot(zone, "is a time zone that cannot be named; use datetime.timezone or zoneinfo.ZoneInfo")
        return tree

    def path(self, value: pathlib.PurePath) -> Tree:
        """A path with its kind; ``Path`` is the system's own wherever it is read."""
        kind = "Path" if isinstance(value, pathlib.Path) else type(value).__name__
        return {TAG: "path", "kind": kind, "v": self.string(str(value))}


def _is_unicode(text: str) -> bool:
    """False for text with lone surrogates, which no UTF-8 can hold."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _is_object(value: dict[Any, Any]) -> bool:
    """Whether a dict goes as a JSON object: else it is a map of pairs."""
    return TAG not in value and all(type(key) is str and _is_unicode(key) for key in value)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


_ENCODE: dict[type, Callable[[Encoder, Any], Tree]] = {
    str: Encoder.string,
    bool: lambda _, v: v,
    type(None): lambda _, v: v,
    int: Encoder.integer,
    float: Encoder.number,
    dict: Encoder.mapping,
    list: lambda e, v: e.items(v),
    tuple: lambda e, v: {TAG: "tuple", "v": e.items(v)},
    set: lambda e, v: e.unordered(v, "set"),
    frozenset: lambda e, v: e.unordered(v, "frozenset"),
    bytes: lambda _, v: {TAG: "bytes", "v": _base64(v)},
    bytearray: lambda _, v: {TAG: "bytearray", "v": _base64(v)},
    complex: lambda e, v: {TAG: "complex", "v": [e.number(v.real), e.number(v.imag)]},
    decimal.Decimal: lambda _, v: {TAG: "decimal", "v": str(v)},
    uuid.UUID: lambda _, v: {TAG: "uuid", "v": str(v)},
    dt.date: lambda _, v: {TAG: "date", "v": v.isoformat()},
    dt.datetime: lambda e, v: e.moment(v, "datetime"),
    dt.time: lambda e, v: e.moment(v, "time"),
    dt.timedelta: lambda _, v: {TAG: "timedelta", "v": [v.days, v.seconds, v.microseconds]},
    pathlib.PurePosixPath: Encoder.path,
    pathlib.PureWindowsPath: Encoder.path,
    type(pathlib.Path()): Encoder.path,
    **containers.encode,
}


class Decoder:
    """Trees to values: the way back from ``Encoder``. ``unhook(decoder, tag object)`` is asked for unknown tags."""

    __slots__ = ("_unhook",)

    def __init__(self, *, unhook: Unhook | None = None) -> None:
        self._unhook = unhook

    def value(self, tree: Any) -> Any:
        """The value of a tree. Raises ``FormatError`` ``bulk`` for a tag that is unknown or holds what it may not."""
        if type(tree) is list:
            return [self.value(item) for item in tree]
        if type(tree) is not dict:
            return tree
        if TAG not in tree:
            return {key: self.value(item) for key, item in tree.items()}
        decode = _DECODE.get(tree[TAG]) if type(tree[TAG]) is str else None
        if decode is None:
            if self._unhook is None:
                raise FormatError("bulk")
            return self._unhook(self, tree)
        try:
            value = decode(self, tree)
            exact = _EXACT.get(tree[TAG], _is_spelling)(tree, value)
        except (Refused, ValueError, TypeError, KeyError, ArithmeticError, AttributeError, OSError):
            raise FormatError("bulk") from None  # OSError: the name of a time zone that is a folder
        if not exact:
            raise FormatError("bulk")
        return value

    def list(self, tree: dict[str, Any]) -> list[Any]:
        """The values in a tag object that holds an array."""
        return [self.value(item) for item in _of(tree["v"], list)]

    def moment(self, tree: dict[str, Any], kind: type[dt.datetime | dt.time]) -> Any:
        """A datetime or time."""
        moment = kind.fromisoformat(tree["v"]).replace(fold=tree.get("fold", 0))
        zone = tree.get("zone")
        if zone is None:
            return moment
        if type(zone) is str:
            return moment.replace(tzinfo=zoneinfo.ZoneInfo(zone))
        days, seconds, microseconds = zone
        offset = dt.timedelta(days, seconds, microseconds)
        name = tree.get("zone_name")
        if name is not None:
            return moment.replace(tzinfo=dt.timezone(offset, name))
        return moment.replace(tzinfo=dt.timezone(offset))


def _of(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError
    return value


def _surrogates(text: str) -> str:
    return _SURROGATE_TEXT.sub(lambda m: chr(int(m.group(1), 16)) if m.group(1) else "\\", text)


def _bytes(tree: dict[str, Any]) -> bytes:
    return base64.b64decode(_of(tree["v"], str), validate=True)


_PATHS: dict[str, type[pathlib.PurePath]] = {
    "Path": pathlib.Path,
    "PurePosixPath": pathlib.PurePosixPath,
    "PureWindowsPath": pathlib.PureWindowsPath,
}
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

_DECODE: dict[str, Callable[[Decoder, dict[str, Any]], Any]] = {
    "str": lambda _, t: _surrogates(_of(t["v"], str)),
    "int": lambda _, t: int(_of(t["v"], str), 16),
    "float": lambda _, t: _FLOATS[t["v"]],
    "map": lambda d, t: {d.value(k): d.value(v) for k, v in (_of(pair, list) for pair in _of(t["v"], list))},
    "tuple": lambda d, t: tuple(d.list(t)),
    "set": lambda d, t: set(d.list(t)),
    "frozenset": lambda d, t: frozenset(d.list(t)),
    "bytes": lambda _, t: _bytes(t),
    "bytearray": lambda _, t: bytearray(_bytes(t)),
    "complex": lambda d, t: complex(*(_of(d.value(part), float) for part in t["v"])),
    "decimal": lambda _, t: decimal.Decimal(_of(t["v"], str)),
    "uuid": lambda _, t: uuid.UUID(_of(t["v"], str)),
    "date": lambda _, t: dt.date.fromisoformat(t["v"]),
    "datetime": lambda d, t: d.moment(t, dt.datetime),
    "time": lambda d, t: d.moment(t, dt.time),
    "timedelta": lambda _, t: dt.timedelta(*t["v"]),
    "path": lambda d, t: _PATHS[t["kind"]](_of(d.value(t["v"]), str)),
    **containers.decode,
    **redacted.decode,
}
TAGS: Final = frozenset(_DECODE)
TYPES: Final = frozenset(_ENCODE)  # the exact types that need nobody's help


def _is_spelling(tree: dict[str, Any], value: Any) -> bool:
    """Whether a tag object is what ``Encoder`` makes of its value: one value, one spelling, on every Python."""
    return encode_tree(Encoder().tree(value), sort=False) == encode_tree(tree, sort=False)


def _is_set(tree: dict[str, Any], value: Any) -> bool:
    items = [encode_tree(item, sort=True) for item in tree["v"]]
    return list(tree) == [TAG, "v"] and len(items) == len(value) and items == sorted(items)


def _is_map(tree: dict[str, Any], value: dict[Any, Any]) -> bool:
    return list(tree) == [TAG, "v"] and len(tree["v"]) == len(value) and not _is_object(value)


# Tags that cannot be judged by writing the value again: containers, whose parts were judged, and paths, which every
# system writes in its own way.
_EXACT: dict[str, Callable[[dict[str, Any], Any], bool]] = {
    "map": _is_map,
    "tuple": lambda tree, _: list(tree) == [TAG, "v"],
    "set": _is_set,
    "frozenset": _is_set,
    "path": lambda tree, _: list(tree) == [TAG, "kind", "v"],
    **containers.is_exact,
    **redacted.is_exact,
}


def encode_value(value: Any, *, sort: bool = False, hook: Hook | None = None) -> bytes:
    """Canonical bytes of a value of builtin types. Raises ``UnrecordableValue`` with the JSON path.

    What fails the quick way goes the long way, which can tell where and why.
    """
    plain = plain_copy(value, sort=sort)
    if plain is not None:
        return plain[0]
    try:
        return Encoder(sort=sort, hook=hook).bytes(value)
    except Refused as refused:
        raise refused.as_error() from None


def canonical_json(value: Any) -> bytes:
    """Canonical bytes of a value with the keys of every object sorted: how arguments are written and compared.

    Raises ``UnrecordableValue`` with the JSON path of what cannot be written.
    """
    return encode_value(value, sort=True)


def decode_value(data: bytes, *, sort: bool = False, unhook: Unhook | None = None) -> Any:
    """The value of canonical bytes, a fresh copy at each call. Raises ``FormatError`` ``bulk`` or ``too_deep``."""
    tree = decode_tree(data, sort=sort)
    return Decoder(unhook=unhook).value(tree) if may_hold_tags(data) else tree
