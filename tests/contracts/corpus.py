"""One call for each kind of value: the program behind ``tests/data/types.cassette.jsonl``.

``python -m tests.contracts.corpus`` records it again. The committed cassette is replayed on every Python that is
tested, whichever of them recorded it.
"""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import pathlib
import sys
import uuid
import zoneinfo
from typing import Any

import toolcassette as tc
from tests.contracts import shapes
from tests.contracts.shapes import (
    Account,
    Aliased,
    Attrs,
    AttrsBox,
    Box,
    Chain,
    Checkbox,
    Color,
    Counting,
    Fussy,
    Loose,
    ModelBox,
    Movie,
    Num,
    Numbers,
    Open,
    Perm,
    Place,
    Point,
    Renamed,
    Row,
    Shade,
    StructBox,
    Weather,
)

FILE = pathlib.Path(__file__).resolve().parent.parent / "data" / "types.cassette.jsonl"
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")

# (return annotation, value): each is passed to a tool as its argument, and returned by it.
VALUES: list[tuple[Any, Any]] = [
    (Any, [None, True, 0, -1, 2**70, 10**1500, 0.0, -0.0, 1e16, float("nan"), float("-inf"), 1 + 2j]),
    (Any, {"z": "é", "a": "\u2028\x85\0", "\udcb2": "\U0001f378", "$tc": "bytes", "e\u0301": ""}),
    (Any, {1: "a", "1": "b", (1, "x"): {2.5: None}}),
    (Any, [(1, [2, ()]), {3, 1, "b"}, frozenset({(1, 2), b"x"}), b"\0\xff", bytearray(b"ab")]),
    (
        Any,
        [dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN), dt.date(2026, 1, 2), dt.time(3), dt.timedelta(-1, 5)],
    ),
    (Any, [decimal.Decimal("1.10"), uuid.UUID(int=7), pathlib.PurePosixPath("/a"), pathlib.PureWindowsPath("c:\\d")]),
    (Any, [collections.OrderedDict(b=1, a=[2]), collections.Counter("aab"), collections.deque([1, (2,)], 3)]),
    (Any, [collections.defaultdict(list, {"a": [1]}), collections.defaultdict(None)]),
    (collections.OrderedDict[str, Point], collections.OrderedDict(b=Point(1, 2))),
    (Color, Color.RED),
    (list[Num | Shade | Perm], [Num.TWO, Shade.LIGHT, Perm.R | Perm.W]),
    (dict[str, Point | None], {"a": Point(1, 2), "b": None}),
    (Account, Account("o", 1.5, [Point(1, 2)], Point(3, 4))),
    (Chain, Chain(1, Chain(2))),
    (Counting, Counting("abc")),
    (Box[list[Point]], Box([Point(1, 2)])),
    (tuple[Row, Loose], (Row(1, "a"), Loose(1, [2]))),
    (Movie, {"year": 1, "title": "t"}),
    (Weather, Weather("w", 1.5)),
    (list[Renamed], [Renamed("a", "b")]),
    (StructBox[Point], StructBox(Point(1, 2))),
    (list[Place], [Place(name="a", near=[Place(name="b", unit="f")])]),
    (Aliased, Aliased.model_validate({"firstName": "a", "zip": 3})),
    (Open, Open.model_validate({"a": 1, "b": [2]})),
    (Numbers, Numbers([1, 2])),
    (ModelBox[int], ModelBox[int](item=1)),
    (Fussy, Fussy(text="a", color=Color.BLUE)),
    (Checkbox, Checkbox(3, Place(name="a"))),
    (Attrs, Attrs(1, "b", [Attrs(2)])),
    (AttrsBox[Place], AttrsBox(Place(name="a"))),
]


def failures() -> list[Exception]:
    """Exceptions of every kind that comes back as itself."""
    stated = tc.ToolFailure("no", code="c", data={"a": (1,)})
    stated.__cause__ = OSError(2, "none", "f")
    noted = KeyError("k", 2)
    noted.add_note("seen")
    return [stated, noted, ExceptionGroup("many", [ValueError(1), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")])]


def shown(error: BaseException | None) -> Any:
    """All that is said about an exception, and what is under it."""
    if error is None:
        return None
    parts = [shown(part) for part in getattr(error, "exceptions", ())]
    args = [] if parts else list(error.args)
    return [type(error), str(error), args, vars(error), shown(error.__cause__), parts]


def program(*, run: bool) -> list[Any]:
    """What every tool returned or raised, with ``run`` False with no body that could have made it."""
    registry = tc.Registry()
    found: list[Any] = []

    def give(value: Any) -> Any:
        assert run, "a body ran"
        return value

    def fail(number: int) -> Any:
        assert run, "a body ran"
        raise failures()[number]

    for number, (annotation, value) in enumerate(VALUES):
        found.append(registry.wrap(give, name=f"give{number}", returns=annotation)(value))
    tool = registry.wrap(fail)
    for number in range(len(failures())):
        try:
            tool(number)
        except Exception as error:
            found.append(shown(error))
    return found


def main() -> int:
    """Record the cassette anew."""
    FILE.unlink(missing_ok=True)
    FILE.parent.mkdir(exist_ok=True)
    with tc.record(FILE, ["*"], sync="none"):
        program(run=True)
    return 0


if __name__ == "__main__":
    assert shapes.__name__ == "tests.contracts.shapes"
    sys.exit(main())
