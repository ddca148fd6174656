"""Every type: the same in type and value, or refused with path and type. Nothing changes on the way."""

from __future__ import annotations

import collections
import datetime as dt
import socket
import sys
import traceback
import typing
import uuid
import zoneinfo
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Annotated, Any, Literal, NewType, NoReturn, Optional, TypeVar, Union

import msgspec
import pytest

from tests.contracts import shapes
from tests.contracts.shapes import (
    Account,
    Arrayed,
    Box,
    Cat,
    Chain,
    Checked,
    Circle,
    Color,
    Counting,
    DictLike,
    Dog,
    Frozen,
    Growing,
    Held,
    Loose,
    Movie,
    Num,
    Opaque,
    OwnInit,
    Pair,
    Partial,
    Perm,
    Point,
    Renamed,
    Row,
    Shade,
    Shape,
    Spot,
    StructBox,
    Unresolved,
    Weather,
    WithInitVar,
)
from toolcassette.contracts import contract_for, same
from toolcassette.contracts.names import readable
from toolcassette.errors import FormatError, UnrecordableValue

UserId = NewType("UserId", int)
Bound = TypeVar("Bound", bound=Point)
Chosen = TypeVar("Chosen", int, str)
UTC = dt.UTC
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


def chain(length):
    link = None
    for value in range(length):
        link = Chain(value, link)
    return link


def counted():
    value = Counting("abc")
    assert value.loud == "ABC"  # now in __dict__, computed again when asked
    return value


def named(rows):
    """Ids that do not print values: some are too long, some have an address in them."""
    return [f"{number}-{readable(row[0])}-{type(row[1]).__name__}" for number, row in enumerate(rows)]


# annotation, value, JSON text (None: only the round trip counts)
KEPT = [
    (Any, {"b": 1, "a": [1.0, True, None, "x"]}, '{"b":1,"a":[1.0,true,null,"x"]}'),
    (object, [1], "[1]"),
    (str, "a ", '"a "'),
    (str, "a\u2028b\x85c", '"a\\u2028b\\u0085c"'),
    (str, "\udcb2", '{"$tc":"str","v":"\\\\udcb2"}'),
    (bool, True, "true"),
    (int, 2**70, "1180591620717411303424"),
    (int, 10**5000, None),
    (float, 1, "1"),  # an int is fine where a float is asked for, and stays an int
    (float, 1.0, "1.0"),
    (float, -0.0, "-0.0"),
    (float, float("nan"), '{"$tc":"float","v":"nan"}'),
    (float, float("-inf"), None),
    (complex, 1j, None),
    (complex, 2, "2"),
    (None, None, "null"),
    (type(None), None, "null"),
    (bytes, b"\x00\xff", '{"$tc":"bytes","v":"AP8="}'),
    (bytearray, bytearray(b"x"), None),
    (dt.date, dt.date(2026, 1, 2), '{"$tc":"date","v":"2026-01-02"}'),
    (dt.datetime, dt.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1), None),
    (dt.datetime, dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), None),
    (dt.time, dt.time(1, 2, tzinfo=dt.timezone(dt.timedelta(hours=1), "X")), None),
    (dt.timedelta, dt.timedelta(-1, 2, 3), None),
    (Decimal, Decimal("1.10"), '{"$tc":"decimal","v":"1.10"}'),
    (Decimal, Decimal("sNaN"), None),
    (uuid.UUID, uuid.UUID(int=5), None),
    (Path, Path("/a/b"), None),
    (PurePath, Path("a"), None),
    (PurePath, PureWindowsPath("C:\\A"), None),
    (PurePosixPath, PurePosixPath("/a"), None),
    (list, [1, "a"], '[1,"a"]'),
    (list[int], [], "[]"),
    (typing.List[int], [1], "[1]"),  # noqa: UP006
    (Sequence[int], [1], "[1]"),
    (Sequence[int], (1,), '{"$tc":"tuple","v":[1]}'),
    (Sequence, ["a"], '["a"]'),
    (Iterable[int], {1}, '{"$tc":"set","v":[1]}'),
    (Collection[Point], [Point(1, 2)], '[{"x":1,"y":2}]'),
    (dict, {1: "a", "1": "b"}, None),
    (dict[str, int], {"b": 1, "a": 2}, '{"b":1,"a":2}'),
    (dict[str, Any], {"$tc": "bytes", "v": "AA=="}, '{"$tc":"map","v":[["$tc","bytes"],["v","AA=="]]}'),
    (dict[str, Point], {"$tc": Point(1, 2)}, '{"$tc":"map","v":[["$tc",{"x":1,"y":2}]]}'),
    (dict[str, Point], {"\udcb2": Point(1, 2)}, None),
    (dict[int, str], {1: "a"}, '{"$tc":"map","v":[[1,"a"]]}'),
    (dict[tuple[str, int], int], {("x", 1): 2}, None),
    (dict[Color, int], {Color.RED: 1}, '{"red":1}'),
    (dict[float, str], {float("nan"): "x"}, None),
    (Mapping[str, Row], {"a": Row(1)}, '{"a":{"id":1,"name":"-"}}'),
    (tuple, (1, "a"), None),
    (tuple[()], (), '{"$tc":"tuple","v":[]}'),
    (tuple[int, str], (1, "a"), None),
    (tuple[int, ...], (1, 2), None),
    (tuple[int, ...], (), None),
    (typing.Tuple, (1,), None),  # noqa: UP006
    (set[int], {3, 1, 2}, '{"$tc":"set","v":[1,2,3]}'),
    (frozenset[str], frozenset({"b", "a"}), '{"$tc":"frozenset","v":["a","b"]}'),
    (set[Row], {Row(1), Row(2)}, None),
    (AbstractSet[float], {1.5, float("nan")}, None),
    (Optional[int], None, "null"),  # noqa: UP045
    (Union[int, str], "a", '"a"'),  # noqa: UP007
    (int | None, 1, "1"),
    (Point | None, Point(1, 2), '{"x":1,"y":2}'),
    (dict[str, Any] | Point, Point(1, 2), '{"x":1,"y":2}'),  # the class says more than the dict
    (dict[str, Any] | Point, {"x": 1, "z": 2}, '{"x":1,"z":2}'),
    (list[int] | list[str], ["a"], '["a"]'),
    (str | dt.date, dt.date(2026, 1, 2), None),
    (Cat | Dog, Dog("rex"), '{"type":"Dog","name":"rex"}'),
    (Account | Point | str, "x", '"x"'),
    (Box[int] | Box[str], Box("a"), '{"item":"a"}'),
    (Literal["a", 1, b"x"], b"x", None),
    (Literal[True, 1], 1, "1"),
    (Literal[Color.RED], Color.RED, '"red"'),
    (UserId, UserId(5), "5"),
    (Annotated[int, "a note"], 5, "5"),
    (Annotated[int, msgspec.Meta(ge=0)], 5, "5"),
    (Annotated[float, msgspec.Meta(ge=0)], 5, "5"),
    (Annotated[list[Point], msgspec.Meta(min_length=1)], [Point(1, 2)], None),
    (Bound, Point(1, 2), None),
    (Chosen, "a", '"a"'),
    (shapes.T, "a", '"a"'),
    (Color, Color.RED, '"red"'),
    (Num, Num.ONE, "1"),
    (Shade, Shade.ALSO_DARK, '{"$tc":"tuple","v":[0,1]}'),
    (Opaque, Opaque.B, '"B"'),
    (Perm, Perm.R | Perm.W, "3"),
    (Perm, Perm(0), "0"),
    (Any, collections.OrderedDict(b=1, a=(2,)), '{"$tc":"ordered","v":[["b",1],["a",{"$tc":"tuple","v":[2]}]]}'),
    (collections.OrderedDict[str, Point], collections.OrderedDict(b=Point(1, 2)), None),
    (typing.OrderedDict[int, int], collections.OrderedDict({2: 1, 1: 2}), '{"$tc":"ordered","v":[[2,1],[1,2]]}'),
    (dict[str, int], collections.OrderedDict(b=1), '{"$tc":"ordered","v":[["b",1]]}'),  # says what it is, as int does
    (Mapping[str, int], collections.Counter("aab"), None),
    (collections.Counter[str], collections.Counter("aab"), '{"$tc":"counter","v":[["a",2],["b",1]]}'),
    (collections.Counter, collections.Counter({"b": -1, ("a",): 0}), None),
    (Any, collections.defaultdict(list, a=[1]), '{"$tc":"defaultdict","factory":"list","v":[["a",[1]]]}'),
    (collections.defaultdict[str, list[Point]], collections.defaultdict(list, a=[Point(1, 2)]), None),
    (dict, collections.defaultdict(None, a=1), '{"$tc":"defaultdict","v":[["a",1]]}'),
    (Any, [collections.deque([1, (2,)], 3)], None),
    (collections.deque[Point], collections.deque([Point(1, 2)], 3), '{"$tc":"deque","maxlen":3,"v":[{"x":1,"y":2}]}'),
    (Sequence[int], collections.deque([1]), '{"$tc":"deque","v":[1]}'),
    (collections.deque[int] | list[int] | None, collections.deque(), '{"$tc":"deque","v":[]}'),
    (Point, Point(1, 2), '{"x":1,"y":2}'),
    (Frozen, Frozen("n", ("a",)), None),
    (Account, Account("o", 1, [Point(1, 2)], Point(3, 4)), None),
    (Checked, Checked(1), '{"age":1}'),
    (Counting, Counting("abc"), '{"raw":"abc","size":3,"calls":1}'),
    (Counting, counted(), None),
    (OwnInit, OwnInit((1, [2])), '{"a":1,"b":[2]}'),
    (WithInitVar, WithInitVar(1, 5), '{"a":1}'),
    (Chain, Chain(1, Chain(2, same=Chain(3))), None),
    (Chain, chain(60), None),
    (Box[int], Box(1), '{"item":1}'),
    (Box, Box([1]), '{"item":[1]}'),
    (Box[Box[Point]], Box(Box(Point(1, 2))), None),
    (Box[int], Box[int](1), '{"item":1}'),  # keeps __orig_class__ in its dict
    (Pair[int], Pair([1], 2), '{"item":[1],"other":2}'),  # one type variable, two meanings
    (Unresolved, Unresolved(1, {"any": [1]}), None),
    (Row, Row(1, "a"), '{"id":1,"name":"a"}'),
    (Loose, Loose(1, [2]), '{"a":1,"b":[2]}'),
    (list[Loose], [Loose(1, 2)], None),
    (Movie, {"year": 1, "title": "t"}, '{"year":1,"title":"t"}'),
    (Movie, {"title": "t"}, '{"title":"t"}'),
    (Partial, {"id": 1}, '{"id":1}'),
    (Held[int], {"item": 1}, '{"item":1}'),
    (Weather, Weather("w", 1), '{"city":"w","temp":1}'),
    (Weather, Weather("w", 1.5, "n"), '{"city":"w","temp":1.5,"note":"n"}'),
    (Renamed, Renamed("a"), '{"type":"renamed","firstName":"a","lastName":"-"}'),
    (Growing, Growing(1), '{"a":2}'),
    (Arrayed, Arrayed(1), '{"a":1,"b":2}'),
    (StructBox[Point], StructBox(Point(1, 2)), '{"item":{"x":1,"y":2}}'),
]


@pytest.mark.parametrize(("annotation", "value", "text"), KEPT, ids=named(KEPT))
def test_comes_back_the_same(annotation, value, text):
    contract = contract_for(annotation)
    data, copy = contract.round_trip(value)
    assert same(value, copy) is None
    assert contract.encode(value) == data
    assert same(contract.decode(data), value) is None
    if text is not None:
        assert data.decode() == text


def odd(value: Any) -> Any:
    """A value of another type than the field is annotated with."""
    return value


# annotation, value, path, type name
REFUSED: list[Any] = [
    (Any, Point(1, 2), "$", "Point"),
    (Any, [{"a": Color.RED}], "$[0].a", "Color"),
    (Any, collections.defaultdict(lambda: 1), "$", "defaultdict"),
    (Any, type("Own", (collections.OrderedDict,), {})(a=1), "$", "Own"),
    (dict, type("Own", (dict,), {})(a=1), "$", "Own"),
    (list, collections.deque([1]), "$", "deque"),
    (collections.OrderedDict, {"a": 1}, "$", "dict"),
    (collections.OrderedDict[str, int], collections.OrderedDict(a="b"), "$.a", "str"),
    (collections.Counter[str], collections.Counter({1: 2}), "$[1]", "int"),
    (collections.deque[int], collections.deque([1, "a"]), "$[1]", "str"),
    (collections.defaultdict, collections.defaultdict(odd(Point)), "$", "defaultdict"),
    (Any, Loose(1, 2), "$", "Loose"),
    (Any, {"a": object()}, "$.a", "object"),
    (Any, memoryview(b"x"), "$", "memoryview"),
    (Any, [type("Text", (str,), {})("x")], "$[0]", "Text"),
    (int, True, "$", "bool"),
    (bool, 1, "$", "int"),
    (float, True, "$", "bool"),
    (str, None, "$", "NoneType"),
    (bytes, bytearray(b"x"), "$", "bytearray"),
    (dt.date, dt.datetime(2026, 1, 1), "$", "datetime"),
    (None, 0, "$", "int"),
    (list[int], [1, "a"], "$[1]", "str"),
    (list[int], (1,), "$", "tuple"),
    (dict[str, int], {"a": 1, "b c": "x"}, '$["b c"]', "str"),
    (dict[str, int], {1: 1}, "$[1]", "int"),
    (tuple[int, str], (1,), "$", "tuple"),
    (tuple[int, str], (1, 2), "$[1]", "int"),
    (set[int], {"a"}, "$[0]", "str"),
    (int | None, "a", "$", "str"),
    (Point | None, Point(1, odd("z")), "$.y", "str"),
    (list[int] | list[str], [1, "a"], "$[1]", "str"),
    (Literal[1], True, "$", "bool"),
    (Literal["a"], "b", "$", "str"),
    (Annotated[int, msgspec.Meta(ge=0)], -5, "$", "int"),
    (Annotated[list[str], msgspec.Meta(max_length=1)], ["a", "b"], "$", "list"),
    (NoReturn, 1, "$", "int"),
    (Color, "red", "$", "str"),
    (str, Color.RED, "$", "Color"),
    (int, Num.ONE, "$", "Num"),
    (Point, {"x": 1, "y": 2}, "$", "dict"),
    (Point, Spot(1, 2), "$", "Spot"),
    (Point, Point(1, odd(2.0)), "$.y", "float"),
    (Shape, Circle("c", 1), "$", "Circle"),  # a Shape would come back
    (list[Shape], [Shape("a"), Circle("c", 1)], "$[1]", "Circle"),
    (Box[int], Box("a"), "$.item", "str"),
    (Pair[int], Pair([1], odd("b")), "$.other", "str"),
    (Movie, {"title": "t", "stars": 5}, "$.stars", "int"),
    (Movie, {"year": 1}, "$.title", "dict"),
    (Partial, {}, "$.id", "dict"),
    (Held[int], {"item": "a"}, "$.item", "str"),
    (Row, (1, "a"), "$", "tuple"),
    (Row, Row(odd("a")), "$.id", "str"),
    (Weather, Weather(odd(1), 2), "$.city", "int"),
    (Renamed, Renamed(odd(1)), "$.firstName", "int"),
    (Point | Spot, Spot(1, 2), "$", "Spot"),  # would come back as Point
    (Color | str, "red", "$", "str"),  # would come back as Color.RED
    (int | Callable[[], int], len, "$", "builtin_function_or_method"),
]


@pytest.mark.parametrize(("annotation", "value", "path", "type_name"), REFUSED, ids=named(REFUSED))
def test_is_refused_with_path_and_type(annotation, value, path, type_name):
    with pytest.raises(UnrecordableValue) as caught:
        contract_for(annotation).round_trip(value)
    assert (caught.value.json_path, caught.value.type_name) == (path, type_name)


@pytest.mark.parametrize(("annotation", "value", "path", "type_name"), REFUSED, ids=named(REFUSED))
def test_is_refused_without_a_proof_too_unless_only_reading_tells(annotation, value, path, type_name):
    contract = contract_for(annotation)
    if annotation in (Point | Spot, Color | str):
        assert same(contract.decode(contract.encode(value)), value) == "$"
        return
    with pytest.raises(UnrecordableValue) as caught:
        contract.encode(value)
    assert (caught.value.json_path, caught.value.type_name) == (path, type_name)


def test_a_member_of_a_union_that_nobody_knows_is_named():
    with pytest.raises(UnrecordableValue, match="socket, which has no lossless form"), socket.socket() as value:
        contract_for(socket.socket | None).encode(value)


@pytest.mark.parametrize("annotation", [
    Iterator[int], AsyncIterator[int], Generator[int, None, None], Callable, Callable[[int], str], type, type[int],
    socket.socket, memoryview, DictLike, tuple[int, socket.socket],
    socket.socket | Callable[[], int], Annotated[socket.socket, "x"], StructBox[socket.socket],
], ids=ascii)  # fmt: skip
def test_an_annotation_that_nothing_fits_is_refused_before_any_value(annotation):
    with pytest.raises(UnrecordableValue, match="annotation") as caught:
        contract_for(annotation)
    assert caught.value.json_path == "$"


def test_an_annotation_that_something_fits_is_not():
    assert contract_for(socket.socket | None).round_trip(None) == (b"null", None)
    assert contract_for(list[socket.socket]).round_trip([]) == (b"[]", [])
    assert contract_for(NoReturn).wanted == "NoReturn"


def test_no_annotation_takes_builtin_types_and_says_what_to_do_with_others():
    assert contract_for().round_trip({"a": (1,)})[1] == {"a": (1,)}
    with pytest.raises(UnrecordableValue, match="annotate the tool"):
        contract_for().round_trip(Point(1, 2))


PEERS = {
    "datetime": dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "decimal": Decimal("1.10"), "bytes": b"\x00\xff",
    "tuple": (1, 2), "set": {1, 2}, "dataclass": Point(1, 2), "strenum": Color.RED, "intenum": Num.ONE,
    "intkeys": {1: "a"}, "nan": float("nan"), "bigint": 2**70, "none": None, "namedtuple": Loose(1, 2),
    "uuid": uuid.UUID(int=5), "path": PurePosixPath("/a"), "ordereddict": collections.OrderedDict(b=1, a=2),
    "bytearray": bytearray(b"x"), "dictorder": {"b": 1, "a": 2}, "trail_space": "a ", "floatint": 1.0,
    "surrogate": "\ud800", "u2028": "a\u2028b\x85c", "object": object(),
}  # fmt: skip
UNTYPED_REFUSES = {"dataclass", "strenum", "intenum", "namedtuple", "object"}
TYPED_REFUSES = {"object"}


@pytest.mark.parametrize("name", PEERS)
def test_return_types_that_others_change(name):
    value = PEERS[name]
    for annotation, refuses in ((Any, UNTYPED_REFUSES), (type(value), TYPED_REFUSES)):
        if name in refuses:
            with pytest.raises(UnrecordableValue):
                contract_for(annotation).round_trip(value)
        else:
            copy = contract_for(annotation).round_trip(value)[1]
            assert type(copy) is type(value)
            assert same(copy, value) is None


def test_a_copy_shares_nothing_with_the_value_and_each_copy_is_fresh():
    contract = contract_for(dict[str, list[Point]])
    value = {"a": [Point(1, 2)]}
    copy: Any
    data, copy = contract.round_trip(value)
    copy["a"][0].x = 99
    copy["a"].append(Point(0, 0))
    assert value == {"a": [Point(1, 2)]}
    assert contract.decode(data) == value
    original: list[Any] = [{"k": []}]
    rows: Any = contract_for(list).round_trip(original)[1]
    rows[0]["k"].append(1)
    assert original == [{"k": []}]


def test_what_is_kept_beside_the_fields_is_not_lost_silently():
    value = Point(1, 2)
    value.label = "extra"  # type: ignore[attr-defined]
    with pytest.raises(UnrecordableValue) as caught:
        contract_for(Point).round_trip(value)
    assert caught.value.json_path == "$.label"
    del value.label  # type: ignore[attr-defined]
    del value.y
    with pytest.raises(UnrecordableValue) as caught:
        contract_for(Point).round_trip(value)
    assert caught.value.json_path == "$.y"


def test_circles_and_depth_are_refused():
    loop: list = []
    loop.append(loop)
    link = Chain(1)
    link.next = link
    deep: list = []
    for _ in range(200):
        deep = [deep]
    for annotation, value in ((Any, loop), (list, loop), (Chain, link), (Any, deep), (Chain, chain(200))):
        for method in ("round_trip", "encode"):
            with pytest.raises(UnrecordableValue, match="deep"):
                getattr(contract_for(annotation), method)(value)


def test_depth_counts_what_is_written_not_what_python_nests():
    many = [[i] for i in range(1000)]  # many brackets, none deep
    assert contract_for(list).round_trip(many)[1] == many
    assert contract_for(list[list[int]]).encode(many) == contract_for().encode(many)
    tuples: tuple = ()
    for _ in range(70):
        tuples = (tuples,)  # a tag is two levels each
    with pytest.raises(UnrecordableValue, match="deep"):
        contract_for(tuple).encode(tuples)


@dataclass
class Shouting:
    text: str

    def __post_init__(self):
        raise ValueError(self.text)

    @classmethod
    def quiet(cls, text):
        made = cls.__new__(cls)
        made.text = text
        return made


def test_look_alikes_that_nest_are_read_in_one_go():
    """Without the memo every level would be read twice by the level above: 2**40 readings."""

    @dataclass
    class A:
        child: A | B | None
        kind: list[int]

    @dataclass
    class B:
        child: A | B | None
        kind: list[str]

    namespace = {"A": A, "B": B}
    for cls in (A, B):
        cls.__annotations__ = {"child": A | B | None, "kind": eval(cls.__annotations__["kind"], namespace)}
    tree = None
    for _ in range(40):
        tree = B(tree, ["x"])
    contract = contract_for(A | B)
    assert contract.round_trip(tree)[1] == tree


class Alias:
    """What ``type X = ...`` makes, for Pythons that cannot spell it."""

    def __init__(self, value):
        self.__value__ = value
        self.__type_params__ = ()


def test_a_type_alias_may_speak_of_itself():
    json_alias: Any = Alias(None)
    json_alias.__value__ = Union[dict[str, json_alias], list[json_alias], str, int, None]  # noqa: UP007 - no | for it
    value = {"a": [1, {"b": None}], "c": "x"}
    assert contract_for(json_alias).round_trip(value)[1] == value
    with pytest.raises(UnrecordableValue) as caught:
        contract_for(json_alias).round_trip({"a": [1, {"b": 1.5}]})
    assert caught.value.json_path == "$.a[1].b"
    if sys.version_info >= (3, 12):
        names: dict[str, Any] = {}
        exec("type Json = dict[str, Json] | list[Json] | int", names)
        assert contract_for(names["Json"]).round_trip({"a": [1]})[1] == {"a": [1]}


def test_local_classes_under_postponed_annotations_know_themselves():
    @dataclass
    class Local:
        value: int
        next: Local | None = None

    assert contract_for(Local).round_trip(Local(1, Local(2)))[1] == Local(1, Local(2))


def test_bytes_that_are_not_canonical_are_no_value():
    for data in (b'{"a": 1}', b'{"a":1,"a":1}', b"01", b"[1", b'{"$tc":"nonsense","v":1}', b'{"$tc":"tuple","v":1}'):
        with pytest.raises(FormatError) as caught:
            contract_for().decode(data)
        assert caught.value.reason == "bulk"
    with pytest.raises(FormatError, match="too_deep"):
        contract_for().decode(b"[" * 200 + b"]" * 200)


@pytest.mark.parametrize(("annotation", "data"), [
    (tuple[int, ...], b'{"$tc":"tuple","v":1}'),
    (tuple[int, ...], b'{"$tc":"tuple","v":[1],"x":2}'),
    (tuple[int, ...], b'{"v":[1],"$tc":"tuple"}'),
    (set[int], b'{"$tc":"set","v":[2,1]}'),
    (frozenset[str], b'{"$tc":"frozenset","v":["b","a"]}'),
    (dict[int, int], b'{"$tc":"map","v":[[1]]}'),
    (dict[str, int], b'{"$tc":"map","v":[["a",1]]}'),
    (dict[str, int], b'{"$tc":"map","v":[]}'),
    (Point, b'{"$tc":"map","v":[["x",1],["y",2]]}'),
    (int, b'{"$tc":"int","v":"0x1"}'),
    (bytes, b'{"$tc":"bytes","v":"AB=="}'),
    (Decimal, b'{"$tc":"decimal","v":"1_0"}'),
])  # fmt: skip
def test_a_tag_in_another_spelling_than_ours_is_no_value_under_an_annotation_either(annotation, data):
    with pytest.raises(FormatError) as caught:
        contract_for(annotation).decode(data)
    assert caught.value.reason == "bulk"


CANARY: Any = "canary-5f2e"


def test_no_error_shows_a_value():
    cases = [
        (int, CANARY), (list[int], [CANARY]), (Point, Point(1, CANARY)), (Any, [type(CANARY)(CANARY), object()]),
        (Literal["a"], CANARY), (Color, CANARY), (Annotated[str, msgspec.Meta(max_length=1)], CANARY),
        (Point | Spot, Spot(CANARY, 1)), (Shouting, Shouting.quiet(CANARY)),
    ]  # fmt: skip
    for annotation, value in cases:
        contract = contract_for(annotation)
        with pytest.raises(UnrecordableValue) as caught:
            contract.round_trip(value)
        shown = "".join(traceback.format_exception(caught.value))
        assert CANARY not in f"{shown} {caught.value.json_path} {caught.value!r} {contract!r}"
