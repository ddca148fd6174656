"""Bug reports of record-and-replay tools, as tests: schemas, containers, numbers and text. Each says what is right.

Rule: a value comes back equal in type and in every part, or is refused while it is recorded, with its path and type.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import inspect
import json
import pathlib
import typing
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

import toolcassette as tc
from tests.cases.programs import dead, fails, frames, live, record, refused, replay
from tests.strategies import same


@pytest.fixture
def file(tmp_path):
    return tmp_path / "case.cassette.jsonl"


# C-13 and C-14: what a framework sees


def price(sku: str, qty: Decimal = Decimal(1)) -> dict[str, Decimal]:
    """Price of a sku."""
    return {sku: qty}


Sku = Annotated[str, pydantic.Field(min_length=2)]


async def price_later(sku: Sku, *, unit: str = "c") -> list[str]:
    """Price of a sku, later."""
    return [sku, unit]


class Shop:
    def offer(self, sku: str, qty: int = 1) -> dict[str, int]:
        """One offer."""
        return {sku: qty}

    @classmethod
    def make(cls, name: str) -> dict[str, str]:
        """A shop by its name."""
        return {"name": name}

    @staticmethod
    def tax(amount: Decimal) -> Decimal:
        """Tax on an amount."""
        return amount


class WrappedShop:
    offer = live(Shop.offer)
    make = classmethod(live(vars(Shop)["make"].__func__))
    tax = staticmethod(live(Shop.tax))


def schema_of(fn):
    return pydantic.TypeAdapter(fn).json_schema()


@pytest.mark.parametrize(
    ("bare", "wrapped"),
    [
        (price, live(price)),
        (price_later, live(price_later)),
        (Shop.offer, WrappedShop.offer),
        (Shop().offer, WrappedShop().offer),
        (Shop.make, WrappedShop.make),
        (Shop.tax, WrappedShop.tax),
        (Shop.tax, live(Shop.tax)),
    ],
    ids=[
        "function",
        "async function",
        "plain method",
        "bound method",
        "classmethod",
        "staticmethod",
        "static function",
    ],
)
def test_c13_the_schema_after_wrapping(bare, wrapped):
    """Hints, signature, docstring, name and module are those of the bare tool, and so is the schema made of them."""
    assert typing.get_type_hints(wrapped, include_extras=True) == typing.get_type_hints(bare, include_extras=True)
    assert inspect.signature(wrapped) == inspect.signature(bare)
    assert (wrapped.__doc__, wrapped.__name__, wrapped.__module__) == (bare.__doc__, bare.__name__, bare.__module__)
    assert inspect.iscoroutinefunction(wrapped) == inspect.iscoroutinefunction(bare)
    assert json.dumps(schema_of(wrapped)) == json.dumps(schema_of(bare))
    fields = [(n, h) for n, h in typing.get_type_hints(bare).items() if n != "return"]
    again = [(n, h) for n, h in typing.get_type_hints(wrapped).items() if n != "return"]
    assert msgspec.json.schema(msgspec.defstruct("Args", fields)) == msgspec.json.schema(
        msgspec.defstruct("Args", again)
    )


def test_c14_partials_and_callable_objects(file):
    """Three names, the right results, what a partial binds is part of its calls; a taken name is refused at once."""

    def get_weather(key, city):
        return f"weather {city}"

    def get_forecast(key, city):
        return f"forecast {city}"

    class Oracle:
        def __call__(self, question: str) -> str:
            return f"answer to {question}"

    def tools(key):
        registry = tc.Registry()
        made = [registry.wrap(functools.partial(fn, key)) for fn in (get_weather, get_forecast)]
        return [*made, registry.wrap(Oracle())], registry

    first, registry = tools("k")
    expected = ["weather X", "forecast X", "answer to X"]
    assert record(file, lambda: [tool("X") for tool in first]) == expected
    assert registry.names() == ("Oracle", "get_forecast", "get_weather")
    assert [row.tool for row in tc.inspect(file).tools] == ["Oracle", "get_forecast", "get_weather"]
    assert replay(file, lambda: [tool("X") for tool in tools("k")[0]]) == expected
    with fails(tc.CassetteMismatch) as left, tc.replay(file):
        refused(lambda: tools("another")[0][0]("X"))
    assert left["error"].differs == ("$.key",)
    with pytest.raises(ValueError, match="get_weather"):
        registry.wrap(functools.partial(get_weather, "again"))


# C-16: containers


@dataclasses.dataclass
class Point:
    x: int
    tags: tuple[str, ...]


class Pair(typing.NamedTuple):
    left: int
    right: str


class Color(enum.Enum):
    RED = "red"


class Model(pydantic.BaseModel):
    name: str


def counted() -> Any:
    return collections.Counter("aab")


CONTAINERS: dict[str, tuple[Any, Any]] = {  # name: (return annotation, value)
    "set of tuples": (Any, {(1, 2), (3, 4)}),
    "empty frozenset": (Any, frozenset()),
    "defaultdict": (Any, collections.defaultdict(list, a=[1])),
    "annotated defaultdict": (collections.defaultdict[str, list[int]], collections.defaultdict(list, a=[1])),
    "Counter": (Any, counted()),
    "deque": (Any, collections.deque([1], maxlen=3)),
    "named tuple": (Any, Pair(1, "a")),
    "annotated named tuple": (Pair, Pair(1, "a")),
    "keys 1 and '1'": (Any, {1: "a", "1": "b"}),
    "key is a tuple": (Any, {("x", 1): 2}),
    "dataclass": (Any, Point(1, ("t",))),
    "annotated dataclass": (Point, Point(1, ("t",))),
    "wrong annotation": (int, Point(1, ("t",))),
    "pydantic model": (Any, Model(name="n")),
    "annotated pydantic model": (Model, Model(name="n")),
    "Enum member": (Any, Color.RED),
    "annotated Enum member": (Color, Color.RED),
    "Path": (Any, pathlib.Path("a/b")),
    "bytes": (Any, b"\x00\xff"),
    "in a list": (Any, [{"deep": (1, {2})}]),
}
KEPT = {
    "set of tuples", "empty frozenset", "annotated named tuple", "keys 1 and '1'", "key is a tuple",
    "annotated dataclass", "annotated Enum member", "Path", "bytes", "in a list",
}  # fmt: skip


@pytest.mark.parametrize("name", CONTAINERS)
def test_c16_containers(file, name):
    """Equal in type and value on replay, or refused when recorded with path and type; never another thing."""
    annotation, value = CONTAINERS[name]

    def give(q):
        return value

    give.__annotations__["return"] = annotation
    try:
        recorded = record(file, lambda: live(give)("a"))
    except tc.UnrecordableValue as error:
        refusal = error
    else:
        for copy in (recorded, replay(file, lambda: dead(give)("a"))):
            assert same(value, copy)
            assert getattr(copy, "default_factory", None) is getattr(value, "default_factory", None)
            assert getattr(copy, "maxlen", None) == getattr(value, "maxlen", None)
            assert copy is not value or isinstance(value, enum.Enum | frozenset)
        return
    assert name not in KEPT
    assert refusal.json_path.startswith("$")
    assert refusal.type_name
    assert not file.exists()


# C-17: numbers

NUMBERS = [
    2512292042121000001, 10**5000, -(10**5000), float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 0.1 + 0.2, 1, 1.0,
    True, 1e16, 5e-324, 2**53 + 1,
]  # fmt: skip


def strict(line: bytes) -> Any:
    def no_constant(text):
        raise AssertionError(text)

    return json.loads(line, parse_constant=no_constant)


def test_c17_numbers(file):
    """Exact both ways, NaN matches NaN, ``1``, ``1.0`` and ``True`` are three calls, and the file is strict JSON."""

    def give(number):
        return {"number": number}

    tool = live(give)
    record(file, lambda: [tool(n) for n in NUMBERS])
    results = replay(file, lambda: [dead(give)(n) for n in NUMBERS])
    for number, result in zip(NUMBERS, results, strict=True):
        assert same(number, result["number"])
    assert [strict(line)["seq"] for line in frames(file)] == list(range(2 * len(NUMBERS) + 2))

    for index, (recorded, asked) in enumerate(
        [(1, 1.0), (1, True), (1.0, True), (0.0, -0.0), (10**5000, 10**5000 + 1)]
    ):
        one = file.with_name(f"{index}.cassette.jsonl")
        record(one, functools.partial(tool, recorded))
        with fails(tc.CassetteMismatch), tc.replay(one):
            refused(tool, asked)


# C-18: text

TEXTS = {
    "lone surrogate": "\udcb2",
    "two halves": "\ud83c\udf78",
    "the character of the halves": "\U0001f378",
    "line separator": "x\u2028y",
    "next line": "x\x85y",
    "NUL": "\x00",
    "composed": "\u00e9",
    "decomposed": "e\u0301",
    "backslash text": "\\udcb2",
}


def test_c18_text_that_is_not_clean(file):
    """As argument, result and key every text comes back exactly, no two are one, and only LF ends a line."""

    def echo(text):
        return {"text": text, text: 1}

    tool = live(echo)
    record(file, lambda: [tool(text) for text in TEXTS.values()])
    results = replay(file, lambda: [dead(echo)(text) for text in TEXTS.values()])
    assert results == [{"text": text, text: 1} for text in TEXTS.values()]
    assert [list(result) for result in results] == [["text", text] for text in TEXTS.values()]
    data = file.read_bytes()
    assert len(data.decode("utf-8").splitlines()) == len(frames(file)) == 2 * len(TEXTS) + 2
    keys = [call.args for call in tc.read_cassette(file)]
    assert len(set(keys)) == len(TEXTS)
    assert [strict(line)["seq"] for line in frames(file)] == list(range(2 * len(TEXTS) + 2))


def test_c18_names_that_are_not_clean(file):
    """A tool's name may be any clean Unicode, composed and decomposed are two; a lone surrogate is refused at once."""
    names = [text for text in TEXTS.values() if not any("\ud800" <= c <= "\udfff" for c in text)]
    tools = [live(lambda q, n=name: [n, q], name=name) for name in names]
    record(file, lambda: [tool("a") for tool in tools])
    assert replay(file, lambda: [tool("a") for tool in tools]) == [[name, "a"] for name in names]
    assert {row.tool for row in tc.inspect(file).tools} == set(names)
    for name in (TEXTS["lone surrogate"], TEXTS["two halves"]):
        with pytest.raises(ValueError, match="surrogate"):
            live(lambda q: q, name=name)
