"""Annotations and values made up together: what fits comes back the same, what does not is refused or the same."""

from __future__ import annotations

import collections
import datetime as dt
import uuid
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contracts.shapes import (
    AttrsBox,
    Box,
    Color,
    Held,
    Loose,
    ModelBox,
    Num,
    Open,
    Pair,
    Perm,
    Place,
    Row,
    Shade,
    StructBox,
    Weather,
)
from toolcassette.contracts import contract_for, same
from toolcassette.errors import ContractMismatch, UnrecordableValue

TEXT = st.text(st.characters(), max_size=4) | st.sampled_from(["$tc", "\udcb2", "\u2028", ""])
HASHABLE: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers() | st.just(2**70)),
    (bool, st.booleans()),
    (float, st.floats() | st.integers()),
    (str, TEXT),
    (bytes, st.binary(max_size=4)),
    (type(None), st.none()),
    (Decimal, st.decimals(allow_nan=False) | st.just(Decimal("NaN"))),  # a signaling NaN has no hash
    (uuid.UUID, st.uuids()),
    (dt.datetime, st.datetimes(timezones=st.none() | st.just(dt.UTC) | st.timezones())),
    (dt.timedelta, st.timedeltas()),
    (dt.date, st.dates()),
    (PurePosixPath, st.just(PurePosixPath("/a"))),
    (Color, st.sampled_from(Color)),
    (Num, st.sampled_from(Num)),
    (Shade, st.sampled_from(Shade)),
    (Perm, st.integers(0, 3).map(Perm)),
]
Pairing = tuple[Any, st.SearchStrategy[Any]]
# Subscripted with annotations that are drawn: behind Any, since a type checker takes them for types of its own.
LIST: Any = list
DICT: Any = dict
TUPLE: Any = tuple
SET: Any = set
GENERIC: dict[str, Any] = {
    "Optional": Optional, "Box": Box, "Pair": Pair, "StructBox": StructBox, "Held": Held, "AttrsBox": AttrsBox,
    "OrderedDict": collections.OrderedDict, "deque": collections.deque, "defaultdict": collections.defaultdict,
    "Counter": collections.Counter,
}  # fmt: skip
ASCII = st.text("ab $", min_size=1, max_size=3)  # pydantic takes no lone surrogates, so no live model holds one
MODELS: list[Pairing] = [
    (Place, st.builds(Place, name=ASCII)),
    (Place, st.builds(Place, name=ASCII, unit=ASCII, near=st.lists(st.builds(Place, name=ASCII), max_size=2))),
    (Open, st.builds(Open, a=st.integers(), extra=st.lists(st.booleans() | st.binary(max_size=2), max_size=2))),
    (ModelBox[list[int]], st.lists(st.integers(), max_size=2).map(lambda items: ModelBox[list[int]](item=items))),
]
LABELS: list[Pairing] = [
    (GENERIC["Counter"][str], st.dictionaries(TEXT, st.integers(), max_size=3).map(collections.Counter)),
]


def bigger(inner: st.SearchStrategy[Pairing]) -> st.SearchStrategy[Pairing]:
    """Annotations that hold others, each with a strategy for values that fit it."""
    one = inner.flatmap(
        lambda pair: st.sampled_from([
            (LIST[pair[0]], st.lists(pair[1], max_size=3)),
            (DICT[str, pair[0]], st.dictionaries(TEXT, pair[1], max_size=3)),
            (TUPLE[pair[0], ...], st.lists(pair[1], max_size=3).map(tuple)),
            (GENERIC["Optional"][pair[0]], st.none() | pair[1]),
            (GENERIC["Box"][pair[0]], st.builds(Box, pair[1])),
            (GENERIC["Pair"][pair[0]], st.builds(Pair, st.lists(pair[1], max_size=2), pair[1])),
            (GENERIC["StructBox"][pair[0]], st.builds(StructBox, pair[1])),
            (GENERIC["Held"][pair[0]], st.fixed_dictionaries({"item": pair[1]})),
            (GENERIC["AttrsBox"][pair[0]], st.builds(AttrsBox, pair[1])),
            (GENERIC["deque"][pair[0]], st.lists(pair[1], max_size=3).map(lambda items: collections.deque(items, 3))),
            (
                GENERIC["OrderedDict"][str, pair[0]],
                st.dictionaries(TEXT, pair[1], max_size=3).map(collections.OrderedDict),
            ),
            (
                GENERIC["defaultdict"][str, pair[0]],
                st.dictionaries(TEXT, pair[1], max_size=3).map(lambda found: collections.defaultdict(list, found)),
            ),
        ])
    )  # fmt: skip
    key = st.sampled_from(HASHABLE)
    mapped = st.tuples(key, inner).map(
        lambda pairs: (DICT[pairs[0][0], pairs[1][0]], st.dictionaries(pairs[0][1], pairs[1][1], max_size=3))
    )
    two = st.tuples(inner, inner).map(
        lambda pairs: (TUPLE[pairs[0][0], pairs[1][0]], st.tuples(pairs[0][1], pairs[1][1]))
    )
    sets = key.map(lambda pair: (SET[pair[0]], st.sets(pair[1], max_size=3)))
    return one | mapped | two | sets


PAIRINGS = st.recursive(st.sampled_from([*HASHABLE, *MODELS, *LABELS]), bigger, max_leaves=4)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_what_fits_comes_back_the_same(data):
    annotation, values = data.draw(PAIRINGS, label="annotation")
    value = data.draw(values, label="value")
    contract = contract_for(annotation)
    encoded, copy = contract.round_trip(value)
    assert same(value, copy) is None
    assert contract.encode(value) == encoded
    assert same(contract.decode(encoded), value) is None


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_a_value_of_another_annotation_is_the_same_or_refused(data):
    annotation, _ = data.draw(PAIRINGS, label="annotation")
    _, values = data.draw(PAIRINGS, label="other")
    value = data.draw(values, label="value")
    try:
        _, copy = contract_for(annotation).round_trip(value)
    except UnrecordableValue:
        return
    assert same(value, copy) is None


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_a_recording_of_another_annotation_is_served_whole_or_refused(data):
    """What is served writes the recorded tree again: nothing was lost, nothing coerced."""
    annotation, _ = data.draw(PAIRINGS, label="annotation")
    other, values = data.draw(PAIRINGS, label="recorded under")
    recorded = contract_for(other).encode(data.draw(values, label="value"))
    contract = contract_for(annotation)
    try:
        value = contract.decode(recorded)
    except ContractMismatch:
        return
    assert contract.encode(value) == recorded


UNTYPED = st.recursive(
    st.one_of(*(values for annotation, values in HASHABLE if annotation not in (Color, Num, Shade, Perm))),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(TEXT | st.integers() | st.tuples(TEXT), inner, max_size=3)
        | st.frozensets(TEXT | st.integers() | st.floats(), max_size=3)
        | st.lists(inner, max_size=3).map(collections.deque)
        | st.dictionaries(TEXT | st.integers(), inner, max_size=3).map(collections.OrderedDict)
        | st.dictionaries(TEXT, inner, max_size=3).map(lambda found: collections.defaultdict(dict, found))
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(UNTYPED)
def test_without_an_annotation_builtin_types_come_back_the_same(value):
    data, copy = contract_for().round_trip(value)
    assert same(value, copy) is None
    assert contract_for(Any | None).encode(value) == data


@settings(deadline=None)
@given(UNTYPED, st.sampled_from([Color.RED, Row(1), Loose(1, 2), Weather("w", 1.0), object()]))
def test_one_unknown_value_anywhere_is_found(value, odd):
    for whole, path in (([value, odd], "$[1]"), ({"a": value, "b": {"c": odd}}, "$.b.c")):
        with pytest.raises(UnrecordableValue) as caught:
            contract_for().encode(whole)
        assert (caught.value.json_path, caught.value.type_name) == (path, type(odd).__qualname__)
