"""The walk that proves: what ``==`` calls equal and is not, and what ``==`` calls different and is the same."""

from __future__ import annotations

import datetime as dt
import uuid
import zoneinfo
from decimal import Decimal
from pathlib import PurePosixPath, PureWindowsPath

import pytest

from tests.contracts.shapes import Box, Color, Counting, Num, Opaque, Perm, Point, Row, Spot, Weather
from toolcassette.contracts import same

NAN = float("nan")
UTC = dt.UTC
MOMENT = dt.datetime(2026, 10, 25, 2, 30)

DIFFERENT = [
    (1, True, "$"),
    (1, 1.0, "$"),
    (0.0, -0.0, "$"),
    (0j, complex(0, -0.0), "$"),
    (1.5, NAN, "$"),
    ("e\u0301", "\u00e9", "$"),
    (b"x", bytearray(b"x"), "$"),
    ([b"x"], [bytearray(b"x")], "$[0]"),
    (Decimal("1.0"), Decimal("1.00"), "$"),
    (Color.RED, "red", "$"),
    (Num.ONE, 1, "$"),
    (Color.RED, Color.BLUE, "$"),
    (Opaque.A, Opaque.B, "$"),
    (Perm.R, Perm.R | Perm.W, "$"),
    (MOMENT, MOMENT.replace(fold=1), "$"),
    (MOMENT.replace(tzinfo=UTC), MOMENT.replace(hour=3, tzinfo=dt.timezone(dt.timedelta(hours=1))), "$"),
    (MOMENT.replace(tzinfo=UTC), MOMENT.replace(tzinfo=zoneinfo.ZoneInfo("UTC")), "$"),
    (MOMENT.replace(tzinfo=UTC), MOMENT, "$"),
    (dt.time(1), dt.time(1, fold=1), "$"),
    (MOMENT.replace(tzinfo=UTC), MOMENT.replace(tzinfo=dt.timezone(dt.timedelta(0), "Z")), "$"),
    (PureWindowsPath("C:\\A"), PureWindowsPath("c:\\a"), "$"),
    (PurePosixPath("a"), PureWindowsPath("a"), "$"),
    ((1, 2), [1, 2], "$"),
    ([1, 2], [1], "$"),
    ([1], [1, 2], "$"),
    ([1, [2, 3]], [1, [2, 4]], "$[1][1]"),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "$.a"),
    ({"a": 1}, {"a": 1, "b": 2}, "$"),
    ({1: "a"}, {True: "a"}, "$[1]"),
    ({"a": {"b": 1}}, {"a": {"b": 1.0}}, "$.a.b"),
    ({1, 2}, {1, 3}, "$"),
    ({1}, {1.0}, "$"),
    ({1}, {1, 2}, "$"),
    ({1, 2}, frozenset({1, 2}), "$"),
    ({(1, 2)}, {(1, 2.0)}, "$"),
    (Point(1, 2), Spot(1, 2), "$"),
    (Point(1, 2), Point(1, 2.0), "$.y"),  # type: ignore[arg-type]
    (Row(1, "a"), Row(True, "a"), "$.id"),
    (Row(1, "a"), (1, "a"), "$"),
    (Weather("w", 1), Weather("w", 1.0), "$.temp"),
    (Weather("w", 1.0), Weather("w", 1.0, "n"), "$"),
    (object(), object(), "$"),
    ([len], [print], "$[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "path"), DIFFERENT)
def test_different(a, b, path):
    assert same(a, b) == path
    assert same(b, a) is not None


SAME = [
    lambda: 10**5000,
    lambda: "\udcb2",
    lambda: float("nan"),
    lambda: [float("nan"), {"a": float("nan")}],
    lambda: complex(float("nan"), -0.0),
    lambda: {float("nan"), 1, (2, 3)},
    lambda: frozenset({"a", "b"}),
    lambda: Decimal("sNaN"),
    lambda: uuid.UUID(int=3),
    lambda: MOMENT.replace(tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
    lambda: MOMENT.replace(tzinfo=dt.timezone(dt.timedelta(hours=1))),
    lambda: dt.time(1, 2, tzinfo=UTC),
    lambda: PureWindowsPath("C:\\A"),
    lambda: {"a": [1, (2, {3})], 4: b"x"},
    lambda: [Point(1, 2), Row(1), Weather("w", 1.0), Box[int](1), Color.RED, Perm.R | Perm.W, Opaque.A],
]


@pytest.mark.parametrize("make", SAME)
def test_same(make):
    assert same(make(), make()) is None


def test_what_is_computed_again_when_asked_is_no_difference():
    a, b = Counting("x"), Counting("x")
    assert a.loud == "X"
    assert same(a, b) is None
    assert same(b, a) is None
    b.other = 1  # type: ignore[attr-defined]
    assert same(a, b) == "$"
    assert same(b, a) == "$.other"


def test_circles_do_not_end_in_a_crash():
    a: list = []
    a.append(a)
    b: list = []
    b.append(b)
    assert same(a, a) is None
    assert same(a, b) is not None
