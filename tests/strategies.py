"""The one home of Hypothesis strategies: trees, values and calls as cassettes hold them.

Rule: ``same`` is the equality that recording promises, by type and value; ``==`` is not (``1 == 1.0 == True``, NaN).
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import pathlib
import struct
import zoneinfo
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from toolcassette.format import RecordedCall, Tree, encode_value

if TYPE_CHECKING:
    from collections.abc import Sequence

ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York")

clean_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
any_text = clean_text | st.text(st.sampled_from(["\\", "u", "d", "8", "0", "\ud800", "\udfff", "\U0001f378", "é", '"']))
integers = (
    st.integers()
    | st.sampled_from([2**53 + 1, 2**64, -(2**64), 10**1000 - 1, 10**1000, -(10**1000)])
    | st.integers(990, 4200).map(lambda digits: 10**digits - 7)  # Python itself prints no more than 4,300
)
finite = st.floats(allow_nan=False, allow_infinity=False)


@cache
def json_trees() -> st.SearchStrategy[Tree]:
    """What JSON can say, of exactly its types."""
    leaves = st.none() | st.booleans() | st.integers() | finite | clean_text
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(clean_text, inner, max_size=4),
        max_leaves=12,
    )


@cache
def _zones() -> st.SearchStrategy[dt.tzinfo | None]:
    offsets = st.timedeltas(min_value=dt.timedelta(hours=-23), max_value=dt.timedelta(hours=23))
    return (
        st.none()
        | st.builds(dt.timezone, offsets)
        | st.builds(dt.timezone, offsets, any_text.filter(lambda text: text.isascii() and bool(text)))
        | st.sampled_from(ZONES).map(zoneinfo.ZoneInfo)
    )


def _fold(moment: Any, zone: dt.tzinfo | None, fold: int) -> Any:
    return moment.replace(tzinfo=zone, fold=fold)


@cache
def _hashable_leaves() -> st.SearchStrategy[Any]:
    folds = st.integers(0, 1)
    return st.one_of(
        st.none(),
        st.booleans(),
        integers,
        st.floats(),
        any_text,
        st.binary(max_size=8),
        st.complex_numbers(),
        st.decimals(allow_nan=False) | st.sampled_from([decimal.Decimal(t) for t in ("NaN", "-NaN1", "1E+9", "-0.00")]),
        st.uuids(),
        st.dates(),
        st.builds(_fold, st.datetimes(), _zones(), folds),
        st.builds(_fold, st.times(), _zones(), folds),
        st.timedeltas(),
        any_text.map(lambda text: pathlib.PurePosixPath(text.replace("\0", ""))),
        clean_text.map(lambda text: pathlib.PureWindowsPath(text.replace("\0", ""))),
        clean_text.map(lambda text: pathlib.Path(text.replace("\0", ""))),
    )


@cache
def hashable_values() -> st.SearchStrategy[Any]:
    """Values of the builtin tagged types that may be keys and members of sets."""
    return st.recursive(
        _hashable_leaves(),
        lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
        max_leaves=5,
    )


@cache
def values() -> st.SearchStrategy[Any]:
    """Values of all builtin tagged types, nested in each other."""
    keys = clean_text | st.just("$tc") | hashable_values()
    return st.recursive(
        hashable_values() | st.binary(max_size=8).map(bytearray) | st.sets(hashable_values(), max_size=3),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(clean_text, inner, max_size=4)
            | st.dictionaries(keys, inner, max_size=3)
        ),
        max_leaves=8,
    )


def same(one: Any, other: Any) -> bool:
    """Equal in type and value, all the way down: NaN is NaN, ``-0.0`` is not ``0.0``, key order and zones count."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", other) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, dict):
        return _same_items(list(one.items()), list(other.items()))
    if isinstance(one, list | tuple):
        return _same_items(one, other)
    if isinstance(one, set | frozenset):
        return len(one) == len(other) and all(any(same(a, b) for b in other) for a in one)
    if isinstance(one, dt.datetime | dt.time):
        return one.replace(tzinfo=None) == other.replace(tzinfo=None) and _clock(one) == _clock(other)
    if isinstance(one, decimal.Decimal):
        return one.as_tuple() == other.as_tuple()
    return bool(one == other)


def _same_items(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))


def _clock(moment: Any) -> tuple[Any, ...]:
    zone = moment.tzinfo
    if isinstance(zone, dt.timezone):
        return moment.fold, zone.utcoffset(None), zone.tzname(None)
    return moment.fold, type(zone), getattr(zone, "key", None)


def _bulk(value: st.SearchStrategy[Any], *, sort: bool = False) -> st.SearchStrategy[bytes]:
    return value.map(lambda v: encode_value(v, sort=sort))


# Built once: building and checking a nested strategy takes longer than drawing from it.
_VALUES = _bulk(values())
_CHUNKS = st.lists(_VALUES, max_size=3).map(tuple)
_ARGS = _bulk(st.dictionaries(clean_text, values(), max_size=3), sort=True)
_CONTEXTS = _bulk(st.lists(values(), max_size=2))
_META = _bulk(st.dictionaries(clean_text, values(), max_size=2))
_NAMES = clean_text.filter(bool)


@cache
def _errors() -> st.SearchStrategy[bytes]:
    names = st.sampled_from(["builtins.ValueError", "app.Broken"])
    return _bulk(st.builds(lambda name, text: {"type": name, "message": text}, names, clean_text))


@cache
def _times() -> st.SearchStrategy[int]:
    return st.integers(0, 2**53 - 1)


@st.composite
def recorded_calls(draw: st.DrawFn) -> RecordedCall:
    """One call in any of the shapes that the format allows, with values of any type."""
    outcome = draw(st.sampled_from(["ok", "error", "cancelled", "left_early"]))
    chunks: tuple[bytes, ...] | None = None
    if outcome == "left_early" or draw(st.booleans()):
        chunks = draw(_CHUNKS)
    has_extras = (outcome in {"ok", "error"} or chunks is not None) and draw(st.booleans())
    return RecordedCall(
        tool=draw(_NAMES),
        args=draw(_ARGS),
        path=tuple(draw(st.lists(_NAMES, max_size=2))),
        boundary=draw(st.sampled_from(["tool", "model"])),
        outcome=outcome,
        value=draw(_VALUES) if outcome == "ok" and chunks is None else None,
        error=draw(_errors()) if outcome == "error" else None,
        chunks=chunks,
        contexts=draw(_CONTEXTS) if has_extras else None,
        meta=draw(_META) if has_extras else None,
        effect=draw(st.none() | _NAMES),
        omitted=tuple(draw(st.lists(_NAMES, max_size=2))),
        phase=draw(st.sampled_from([None, "before_body"])) if outcome == "cancelled" and chunks is None else None,
        started_at=draw(_times()),
        ended_at=draw(_times()),
    )
