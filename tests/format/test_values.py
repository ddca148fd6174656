"""Values go in and come out the same, by type and value, or are refused with the place where they stand."""

from __future__ import annotations

import collections
import copy
import datetime as dt
import decimal
import enum
import pathlib
import subprocess
import sys
import uuid
import zoneinfo
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.strategies import json_trees, same, values
from toolcassette.errors import FormatError, UnrecordableValue
from toolcassette.format import DEPTH_MAX, Decoder, Encoder, Refused, decode_value, encode_tree, encode_value

NAN = float("nan")
INDIA = dt.timezone(dt.timedelta(hours=5, minutes=30))
EXAMPLES: dict[str, Any] = {
    '{"$tc":"bytearray","v":"AA=="}': bytearray(1),
    '{"$tc":"bytes","v":"AAEC/w=="}': b"\0\1\2\xff",
    '{"$tc":"bytes","v":""}': b"",
    '{"$tc":"complex","v":[1.0,{"$tc":"float","v":"nan"}]}': complex(1, NAN),
    '{"$tc":"counter","v":[["b",2],["a",1]]}': collections.Counter("bba"),
    '{"$tc":"date","v":"2026-02-28"}': dt.date(2026, 2, 28),
    '{"$tc":"datetime","v":"2026-02-28T01:02:03.000004"}': dt.datetime(2026, 2, 28, 1, 2, 3, 4),
    '{"$tc":"datetime","fold":1,"v":"2026-10-25T02:30:00","zone":"Europe/Berlin"}': dt.datetime(
        2026, 10, 25, 2, 30, fold=1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")
    ),
    '{"$tc":"datetime","v":"2026-02-28T01:02:03","zone":[0,0,0]}': dt.datetime(2026, 2, 28, 1, 2, 3, tzinfo=dt.UTC),
    '{"$tc":"datetime","v":"2026-02-28T00:00:00","zone":[-1,68400,0],"zone_name":"EST"}': dt.datetime(
        2026, 2, 28, tzinfo=dt.timezone(dt.timedelta(hours=-5), "EST")
    ),
    '{"$tc":"decimal","v":"1.10"}': decimal.Decimal("1.10"),
    '{"$tc":"decimal","v":"sNaN1"}': decimal.Decimal("sNaN1"),
    '{"$tc":"decimal","v":"1E+9"}': decimal.Decimal("1E+9"),
    '{"$tc":"defaultdict","factory":"list","v":[["a",[1]],[2,[]]]}': collections.defaultdict(list, {"a": [1], 2: []}),
    '{"$tc":"defaultdict","v":[]}': collections.defaultdict(None),
    '{"$tc":"deque","maxlen":3,"v":[1,{"$tc":"tuple","v":[]}]}': collections.deque([1, ()], 3),
    '{"$tc":"deque","v":[]}': collections.deque(),
    '{"$tc":"float","v":"-inf"}': float("-inf"),
    '{"$tc":"float","v":"inf"}': float("inf"),
    '{"$tc":"float","v":"nan"}': NAN,
    '{"$tc":"frozenset","v":[1,{"$tc":"tuple","v":[]}]}': frozenset({1, ()}),
    f'{{"$tc":"int","v":"-0x1{"0" * 900}"}}': -(16**900),
    '{"$tc":"map","v":[["$tc","bytes"],["v",""]]}': {"$tc": "bytes", "v": ""},
    '{"$tc":"map","v":[[1,"int"],["1","str"]]}': {1: "int", "1": "str"},
    '{"$tc":"map","v":[[{"$tc":"tuple","v":["x",1]},2]]}': {("x", 1): 2},
    '{"$tc":"ordered","v":[["b",1],["$tc",{"$tc":"ordered","v":[]}]]}': collections.OrderedDict(
        [("b", 1), ("$tc", collections.OrderedDict())]
    ),
    '{"$tc":"path","kind":"PurePosixPath","v":"/a"}': pathlib.PurePosixPath("/a"),
    '{"$tc":"path","kind":"PureWindowsPath","v":"C:\\\\a"}': pathlib.PureWindowsPath("C:\\a"),
    '{"$tc":"path","kind":"Path","v":"a"}': pathlib.Path("a"),
    '{"$tc":"set","v":["a",1,10,9]}': {"a", 1, 9, 10},
    '{"$tc":"set","v":[]}': set(),
    '{"$tc":"str","v":"a\\\\ud800\\\\\\\\é"}': "a\ud800\\é",
    '{"$tc":"time","v":"23:59:59.999999"}': dt.time(23, 59, 59, 999999),
    '{"$tc":"time","fold":1,"v":"12:00:00","zone":[0,19800,0]}': dt.time(12, fold=1, tzinfo=INDIA),
    '{"$tc":"timedelta","v":[-1,86399,999999]}': dt.timedelta(microseconds=-1),
    '{"$tc":"tuple","v":[1,[2],{"$tc":"tuple","v":[]}]}': (1, [2], ()),
    '{"$tc":"uuid","v":"12345678-1234-5678-1234-567812345678"}': uuid.UUID("12345678123456781234567812345678"),
}


@pytest.mark.parametrize(("text", "value"), EXAMPLES.items())
def test_examples(text: str, value: Any) -> None:
    assert encode_value(value) == text.encode()
    assert same(decode_value(text.encode()), value)


@given(values(), st.booleans())
@example({"$tc": "bytes", "v": "YQ=="}, False)
@example([{"a": {"$tc": 1}}, "$tc", {"x": '"$tc"'}], True)
@example({"\ud800": {"\udfff": "\\ud800"}}, False)
@example([True, 1, 1.0, "1", None, -0.0, NAN, 10**4200, 10**1000, 10**1000 - 1], False)
def test_values_round_trip(value: Any, sort: bool) -> None:
    data = encode_value(value, sort=sort)
    back = decode_value(data, sort=sort)
    assert encode_value(back, sort=sort) == data
    if not sort:  # in arguments the order of keys is no data
        assert same(back, value)


@given(values() | json_trees(), st.booleans())
@example([10**1000 - 1, "9" * 5000, 10**1000], False)
@example({"b": 1, "a": [1.0, True, "\u202e"]}, True)
def test_the_quick_way_and_the_long_way_write_the_same(value: Any, sort: bool) -> None:
    assert encode_value(value, sort=sort) == Encoder(sort=sort).bytes(value)


def shuffled(value: Any, order: Any) -> Any:
    """The same value with the keys of every dict in another order."""
    if isinstance(value, dict):
        items = list(value.items())
        order.shuffle(items)
        return {k: shuffled(v, order) for k, v in items}
    return [shuffled(v, order) for v in value] if isinstance(value, list) else value


@given(values(), st.randoms(use_true_random=False))
def test_key_order_is_no_part_of_arguments(value: Any, order: Any) -> None:
    assert encode_value(shuffled(value, order), sort=True) == encode_value(value, sort=True)


@given(st.dictionaries(st.text("abc", max_size=2), st.integers(), min_size=2))
def test_key_order_is_part_of_values(value: dict[str, Any]) -> None:
    turned = dict(reversed(value.items()))
    assert list(decode_value(encode_value(turned))) == list(turned)
    assert encode_value(turned) != encode_value(value)


def test_a_decoded_value_is_fresh_at_each_call() -> None:
    data = encode_value({"a": [1, {2, 3}]})
    first = decode_value(data)
    first["a"].append(4)
    assert decode_value(data) == {"a": [1, {2, 3}]}


def test_sets_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "from toolcassette.format import encode_value\n"
        "v = {frozenset({'b', 'a', 'cc'}), 'x', (1, 'y'), b'z', None}\n"
        "print(encode_value([v, {frozenset({'q', 'r'}): 1}], sort=True).decode())"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(texts) == 1


# What is refused


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Point(NamedTuple):
    x: int


class Text(str):
    __slots__ = ()


class Strange(dt.tzinfo):
    def utcoffset(self, when: Any) -> dt.timedelta:
        return dt.timedelta(0)

    def dst(self, when: Any) -> dt.timedelta:
        return dt.timedelta(0)

    def tzname(self, when: Any) -> str:
        return "strange"


def with_attribute(value: Any) -> Any:
    value.label = "canary"
    return value


REFUSED: dict[str, Any] = {
    "Color": Color.RED,
    "Level": Level.LOW,
    "Point": Point(1),
    "Text": Text("canary"),
    "defaultdict": collections.defaultdict(lambda: "canary"),
    "Counter": with_attribute(collections.Counter("aab")),
    "OrderedDict": with_attribute(collections.OrderedDict(a=1)),
    "Deque": type("Deque", (collections.deque,), {})([1]),
    "object": object(),
    "memoryview": memoryview(b"canary"),
    "range": range(3),
    "ellipsis": ...,
    "type": int,
    "generator": (n for n in "x"),
    "timezone": dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(0), "\ud800")),
    "Strange": dt.datetime(2026, 1, 1, tzinfo=Strange()),
    "int": 10**100_000,
    "code": compile("1", "canary", "eval"),
}


@pytest.mark.parametrize(("type_name", "value"), REFUSED.items(), ids=REFUSED.keys())
def test_c16_what_has_no_lossless_form_is_refused_with_its_place(type_name: str, value: Any) -> None:
    with pytest.raises(UnrecordableValue) as caught:
        encode_value({"rows": [0, {"odd key": [1, value]}]})  # no tuple: the quick way must refuse it too
    assert caught.value.type_name == type_name
    assert caught.value.json_path == '$.rows[1]["odd key"][1]'
    assert "canary" not in str(caught.value)


def test_c16_containers_keep_their_type_or_are_refused() -> None:
    kept: list[Any] = [{(1, 2), (3, 4)}, frozenset(), {1: "a", "1": "b"}, {("x", 1): 2}, pathlib.Path("p"), b"b", ()]
    for value in kept:
        assert same(decode_value(encode_value(value)), value)


def test_integers_end_at_100_000_digits() -> None:
    largest = 10**100_000 - 1
    assert decode_value(encode_value([largest, -largest])) == [largest, -largest]
    with pytest.raises(FormatError, match="bulk"):
        decode_value(f'{{"$tc":"int","v":"{10**100_000:#x}"}}'.encode())


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"a": v}, lambda v: (v,), lambda v: {1: v}])
def test_values_that_are_too_deep_are_refused(wrap: Any) -> None:
    value: Any = 1
    for _ in range(100_000):
        value = wrap(value)
    with pytest.raises(UnrecordableValue, match=f"deeper than {DEPTH_MAX}"):
        encode_value(value)
    while value != 1:  # taken apart by hand: freeing it in one go would recurse
        value = next(iter(value.values() if isinstance(value, dict) else value))


@pytest.mark.parametrize("levels", range(DEPTH_MAX // 2 - 2, DEPTH_MAX // 2 + 3))
def test_depth_is_that_of_json(levels: int) -> None:
    value: Any = ()
    for _ in range(levels - 1):
        value = (value,)  # a tag is two levels
    try:
        data = encode_value(value)
    except UnrecordableValue:
        assert 2 * levels > DEPTH_MAX
    else:
        assert 2 * levels <= DEPTH_MAX
        assert same(decode_value(data), value)


def test_cycles_are_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(UnrecordableValue):
        encode_value(value)


# What is not read

ODD = [
    '{"$tc":"unknown","v":1}',
    '{"$tc":1,"v":1}',
    '{"$tc":null}',
    '{"$tc":"bytes"}',
    '{"$tc":"bytes","v":1}',
    '{"$tc":"bytes","v":"AA"}',
    '{"$tc":"bytes","v":"AB=="}',
    '{"$tc":"bytes","v":"AA==\\n"}',
    '{"$tc":"bytes","v":"AA==","x":1}',
    '{"v":"AA==","$tc":"bytes"}',
    '{"$tc":"complex","v":[1.0]}',
    '{"$tc":"complex","v":[1,2]}',
    '{"$tc":"counter","v":{"a":1}}',
    '{"$tc":"counter","v":[["a",1],["a",2]]}',
    '{"$tc":"counter","v":["ab"]}',
    '{"$tc":"counter","x":1,"v":[]}',
    '{"$tc":"date","v":"20260228"}',
    '{"$tc":"date","v":"2026-W09-6"}',
    '{"$tc":"date","v":"2026-02-30"}',
    '{"$tc":"datetime","v":"2026-02-28"}',
    '{"$tc":"datetime","v":"2026-02-28T01:02:03Z"}',
    '{"$tc":"datetime","v":"2026-02-28T01:02:03+01:00"}',
    '{"$tc":"datetime","fold":0,"v":"2026-02-28T01:02:03"}',
    '{"$tc":"datetime","fold":true,"v":"2026-02-28T01:02:03"}',
    '{"$tc":"datetime","fold":2,"v":"2026-02-28T01:02:03"}',
    '{"$tc":"datetime","v":"2026-02-28T01:02:03","zone":null}',
    '{"$tc":"datetime","v":"2026-02-28T01:02:03","zone":"../../etc/passwd"}',
    '{"$tc":"datetime","v":"2026-02-28T01:02:03","zone":"/etc/passwd"}',
    '{"$tc":"datetime","v":"2026-02-28T01:02:03","zone":"Europe"}',
    '{"$tc":"datetime","v":"2026-02-28T01:02:03","zone":""}',
    '{"$tc":"datetime","v":"2026-02-28T01:02:03","zone":[0,0]}',
    '{"$tc":"datetime","v":"2026-02-28T01:02:03","zone":[9,0,0]}',
    '{"$tc":"datetime","v":"2026-02-28T01:02:03","zone":[0,0,0],"zone_name":"UTC"}',
    '{"$tc":"decimal","v":" 1"}',
    '{"$tc":"decimal","v":"1_0"}',
    '{"$tc":"decimal","v":"x"}',
    '{"$tc":"decimal","v":1.5}',
    '{"$tc":"defaultdict","factory":"os.system","v":[]}',
    '{"$tc":"defaultdict","factory":"eval","v":[]}',
    '{"$tc":"defaultdict","factory":null,"v":[]}',
    '{"$tc":"defaultdict","v":[],"factory":"list"}',
    '{"$tc":"deque","maxlen":1,"v":[1,2]}',
    '{"$tc":"deque","maxlen":true,"v":[1]}',
    '{"$tc":"deque","maxlen":3.0,"v":[1]}',
    '{"$tc":"deque","maxlen":-1,"v":[]}',
    '{"$tc":"deque","maxlen":null,"v":[]}',
    '{"$tc":"deque","v":"ab"}',
    '{"$tc":"ordered","v":[["a"]]}',
    '{"$tc":"ordered","v":{"ab":1}}',
    '{"$tc":"ordered","v":["ab"]}',
    '{"$tc":"ordered","v":[[[],1]]}',
    '{"$tc":"float","v":"NaN"}',
    '{"$tc":"float","v":[]}',
    '{"$tc":"int","v":"0x1"}',
    '{"$tc":"int","v":"1"}',
    '{"$tc":"map","v":[["a",1]]}',
    '{"$tc":"map","v":[]}',
    '{"$tc":"map","v":{"ab":1}}',
    '{"$tc":"map","v":["ab"]}',
    '{"$tc":"map","v":[[1,2],[1,3]]}',
    '{"$tc":"map","v":[[1,2],[true,3]]}',
    '{"$tc":"map","v":[[[],2]]}',
    '{"$tc":"map","v":[[1]]}',
    '{"$tc":"path","kind":"os.system","v":"a"}',
    '{"$tc":"path","v":"a","kind":"Path"}',
    '{"$tc":"path","kind":"Path","v":1}',
    '{"$tc":"set","v":[2,1]}',
    '{"$tc":"set","v":[1,1]}',
    '{"$tc":"set","v":[1,true]}',
    '{"$tc":"set","v":[[]]}',
    '{"$tc":"set","v":"ab"}',
    '{"$tc":"str","v":"plain"}',
    '{"$tc":"str","v":"\\\\u0041"}',
    '{"$tc":"str","v":"\\\\uD800"}',
    '{"$tc":"str","v":"\\\\ud800\\\\x"}',
    '{"$tc":"time","v":"T12:00"}',
    '{"$tc":"time","v":"12:00:00.5"}',
    '{"$tc":"timedelta","v":[0,86400,0]}',
    '{"$tc":"timedelta","v":[0.5,0,0]}',
    '{"$tc":"timedelta","v":[1000000000,0,0]}',
    '{"$tc":"tuple","v":{"a":1}}',
    '{"$tc":"tuple","x":1,"v":[]}',
    '{"$tc":"uuid","v":"{12345678-1234-5678-1234-567812345678}"}',
    '{"$tc":"uuid","v":"12345678123456781234567812345678"}',
    '{"$tc":"tuple","v":[{"$tc":"set","v":[2,1]}]}',
]


@pytest.mark.parametrize("text", ODD)
def test_a_tag_has_one_spelling(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        decode_value(text.encode())
    assert caught.value.reason == "bulk"


def tag_objects() -> st.SearchStrategy[Any]:
    tags = st.sampled_from(sorted({text.split('"')[3] for text in EXAMPLES}))
    content = json_trees() | st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=3) | st.integers(0, 2)
    names = st.sampled_from(["v", "kind", "fold", "zone", "zone_name"])
    return st.builds(lambda tag, rest: {"$tc": tag, **rest}, tags, st.dictionaries(names, content))


@given(tag_objects())
def test_any_tag_object_is_a_value_or_refused(tree: Any) -> None:
    data = encode_tree(tree, sort=False)
    try:
        value = decode_value(data)
    except FormatError:
        return
    assert tree["$tc"] == "path" or encode_value(value) == data


@given(values(), st.data())
def test_one_changed_byte_is_another_value_or_refused(value: Any, data: st.DataObject) -> None:
    good = encode_value(value)
    place = data.draw(st.integers(0, len(good) - 1))
    byte = data.draw(st.integers(0, 255))
    bad = good[:place] + bytes([byte]) + good[place + 1 :]
    try:
        other = decode_value(bad)
    except FormatError:
        return
    assert (good == bad) is same(other, value) or b'"path"' in good


# Hooks: what contracts add


def test_hooks_are_asked_for_what_is_not_builtin() -> None:
    def hook(encoder: Encoder, value: Any) -> Any:
        if isinstance(value, Color):
            return {"$tc": "color", "v": encoder.tree(value.value)}
        raise Refused(type(value).__qualname__, "is no color")

    def unhook(decoder: Decoder, tree: dict[str, Any]) -> Any:
        if tree["$tc"] != "color":
            raise FormatError("bulk")
        return Color(decoder.value(tree["v"]))

    data = encode_value({"a": [Color.RED]}, hook=hook)
    assert data == b'{"a":[{"$tc":"color","v":1}]}'
    assert decode_value(data, unhook=unhook) == {"a": [Color.RED]}
    with pytest.raises(FormatError, match="bulk"):
        decode_value(data)
    with pytest.raises(UnrecordableValue, match=r"\$\.a\[0\].*is no color"):
        encode_value({"a": [object()]}, hook=hook)


# Cases from bug reports


def test_c17_numbers() -> None:
    numbers = [2512292042121000001, 10**5000, NAN, float("inf"), -0.0, 0.1 + 0.2, 1, 1.0, True]
    for number in numbers:
        assert same(decode_value(encode_value(number)), number)
    keys = [encode_value({"n": copy.deepcopy(n)}, sort=True) for n in (1, 1.0, True, "1", NAN, -0.0, 0.0, 0, None)]
    assert len(set(keys)) == len(keys)
    assert encode_value(float("nan"), sort=True) == encode_value(-NAN, sort=True)
    assert same(decode_value(b"[2512292042121000001]"), [2512292042121000001])


def test_c18_text_that_is_not_clean_unicode() -> None:
    texts = ["\udcb2", "\ud83c\udf78", "\U0001f378", "x\u2028y", "x\x85y", "\0", "\u00e9", "e\u0301"]
    encoded = [encode_value(text) for text in texts]
    assert len(set(encoded)) == len(texts)
    assert all(same(decode_value(data), text) for data, text in zip(encoded, texts, strict=True))
    assert all(data.decode().splitlines() == [data.decode()] for data in encoded)
    keyed = {text: text for text in texts}
    assert same(decode_value(encode_value(keyed)), keyed)
