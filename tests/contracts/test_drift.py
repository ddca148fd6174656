"""Today's annotation against yesterday's recording: what fits is served, what does not is named with place and wish."""

from __future__ import annotations

import datetime as dt
import enum
import traceback
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import pytest

from toolcassette.contracts import contract_for
from toolcassette.errors import ContractMismatch


@dataclass
class Row:
    id: int
    name: str


@dataclass
class RowWithoutName:
    id: int


@dataclass
class RowWithMore:
    id: int
    name: str
    size: int


@dataclass
class RowWithDefaults:
    id: int
    name: str
    size: int = 7
    tags: list[str] = field(default_factory=list)


@dataclass
class RowTurned:
    name: str
    id: int


@dataclass
class RowRetyped:
    id: str
    name: str


@dataclass
class RowChecked:
    id: int
    name: str

    def __post_init__(self):
        if len(self.name) > 2:
            raise ValueError(self.name)


@dataclass(init=False)
class RowOwnInit:
    id: int
    name: str
    tags: list[str] = field(default_factory=list)

    def __init__(self) -> None:
        raise AssertionError("not to be called")


class Old(NamedTuple):
    lat: float
    lon: float


class Turned(NamedTuple):
    lon: float
    lat: float
    height: float = 0.0


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Struct(msgspec.Struct):
    city: str
    temp: Annotated[float, msgspec.Meta(le=60)]


class StructDefault(msgspec.Struct):
    city: str
    temp: float
    wind: float = 0.0
    tags: list[str] = []


class StructRefuses(msgspec.Struct):
    city: str

    def __post_init__(self):
        if self.city == "w":
            raise ValueError(self.city)


class Level(enum.Enum):
    LOW = "low"


class Tagged(msgspec.Struct, tag="new"):
    a: int


# annotation of today, recorded JSON, path, wanted
MISFITS = [
    (int, '"a"', "$", "int"),
    (int, "true", "$", "int"),
    (int, "1.0", "$", "int"),
    (float, '{"$tc":"decimal","v":"1.0"}', "$", "float"),
    (str, "null", "$", "str"),
    (None, "0", "$", "None"),
    (list[int], '{"$tc":"tuple","v":[1]}', "$", "list[int]"),
    (list[int], '[1,2,"a"]', "$[2]", "int"),
    (tuple[int, ...], "[1]", "$", "tuple[int, ...]"),
    (tuple[int, int], '{"$tc":"tuple","v":[1]}', "$", "tuple[int, int]"),
    (set[int], '{"$tc":"frozenset","v":[1]}', "$", "set[int]"),
    (set[list[int]], '{"$tc":"set","v":[[1]]}', "$", "set[list[int]]"),
    (set[int], '{"$tc":"set","v":[1,1]}', "$", "set[int]"),
    (dict[str, int], "[]", "$", "dict[str, int]"),
    (dict[str, int], '{"a":{"b":1}}', "$.a", "int"),
    (dict[str, int], '{"$tc":"map","v":[[1,1]]}', "$[1]", "str"),
    (dict[str, int], '{"$tc":"set","v":[]}', "$", "dict[str, int]"),
    (dict[int, Any], '{"$tc":"map","v":[[1,1],[1,2]]}', "$", "dict[int, Any]"),
    (dt.date, '"2026-01-01"', "$", "date"),
    (dt.date, '{"$tc":"datetime","v":"2026-01-01T00:00:00"}', "$", "date"),
    (Literal["a", "b"], '"c"', "$", "Literal['a', 'b']"),
    (Level, '"high"', "$", "Level"),  # a member that is gone
    (int | None, '"a"', "$", "int | None"),
    (Row | None, '{"id":1,"name":2}', "$.name", "str"),
    (Row, "[]", "$", "Row"),
    (Row, '{"id":1}', "$.name", "str"),
    (RowWithoutName, '{"id":1,"name":"a"}', "$.name", "a member of RowWithoutName"),
    (list[RowWithMore], '[{"id":1,"name":"a"}]', "$[0].size", "int"),
    (RowRetyped, '{"id":1,"name":"a"}', "$.id", "str"),
    (RowChecked, '{"id":1,"name":"abc"}', "$", "RowChecked"),
    (dict[str, list[Row]], '{"rows":[{"id":1,"name":"a"},{"id":null,"name":"a"}]}', "$.rows[1].id", "int"),
    (Movie, '{"year":1}', "$.title", "str"),
    (Movie, '{"title":"t","stars":1}', "$.stars", "a member of Movie"),
    (Movie, '{"title":"t","year":"1"}', "$.year", "int"),
    (Old, '{"lat":1.0,"lon":2.0,"height":3.0}', "$.height", "a member of Old"),
    (Struct, '{"city":"w","temp":61}', "$.temp", "float"),
    (Struct, '{"city":"w"}', "$.temp", "float"),
    (StructRefuses, '{"city":"w"}', "$", "StructRefuses"),
    (Tagged, '{"type":"old","a":1}', "$", "Tagged"),
    (Tagged, '{"a":1}', "$", "Tagged"),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "text", "path", "wanted"), MISFITS)
def test_a_misfit_names_place_and_wish(annotation, text, path, wanted):
    with pytest.raises(ContractMismatch) as caught:
        contract_for(annotation).decode(text.encode())
    assert (caught.value.json_path, caught.value.wanted) == (path, wanted)
    assert caught.value.reason == "contract_differs"


# annotation of today, recorded JSON, value
FITS = [
    (float, "1", 1),
    (int | str, '"a"', "a"),
    (Row | None, "null", None),
    (RowWithDefaults, '{"id":1,"name":"a"}', RowWithDefaults(1, "a", 7, [])),
    (RowTurned, '{"id":1,"name":"a"}', RowTurned("a", 1)),
    (RowTurned | RowRetyped, '{"id":1,"name":"a"}', RowTurned("a", 1)),
    (RowWithDefaults | Row, '{"id":1,"name":"a"}', Row(1, "a")),  # the one that would write just this
    (RowWithDefaults | RowWithMore, '{"id":1,"name":"a"}', RowWithDefaults(1, "a")),
    (RowChecked, '{"id":1,"name":"a"}', RowChecked(1, "a")),
    (Turned, '{"lat":1.0,"lon":2.0}', Turned(lon=2.0, lat=1.0)),  # by name: places that were swapped stay right
    (StructDefault, '{"city":"w","temp":1.0}', StructDefault("w", 1.0)),
    (Any, '{"id":1}', {"id": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "text", "value"), FITS)
def test_a_compatible_change_is_served(annotation, text, value):
    copy = contract_for(annotation).decode(text.encode())
    assert copy == value
    assert type(copy) is type(value)


def test_without_a_fitting_constructor_defaults_are_filled_in_all_the_same():
    contract = contract_for(RowOwnInit)
    one, other = (contract.decode(b'{"id":1,"name":"a"}') for _ in range(2))
    assert isinstance(one, RowOwnInit)
    assert isinstance(other, RowOwnInit)
    assert (one.id, one.name, one.tags) == (1, "a", [])
    assert one.tags is not other.tags


def test_compiling_and_refusing_run_no_default_factory():
    ran = []

    def make():
        ran.append(1)
        return []

    @dataclass
    class Eager:
        a: int
        b: list[int] = field(default_factory=make)

    contract = contract_for(Eager)
    with pytest.raises(ContractMismatch):
        contract.decode(b'{"a":"x"}')
    assert ran == []


def test_a_mismatch_shows_no_value():
    canary = "canary-77aa"
    for annotation in (int, list[int], Row, RowChecked, Level, Literal["a"], Row | None):
        for text in (
            f'"{canary}"',
            f'["{canary}"]',
            f'{{"id":1,"name":["{canary}"]}}',
            f'{{"id":1,"name":"{canary}"}}',
        ):
            if annotation in (Row, Row | None) and text.endswith('"}'):
                continue  # it fits
            with pytest.raises(ContractMismatch) as caught:
                contract_for(annotation).decode(text.encode())
            shown = "".join(traceback.format_exception(caught.value))
            assert canary not in f"{shown} {caught.value!r} {caught.value.wanted} {caught.value.json_path}"
