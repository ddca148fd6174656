"""Classes of users for the tests of this folder, with postponed annotations as most code has them."""

from __future__ import annotations

import dataclasses
import enum
from collections import namedtuple
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Final, Generic, NamedTuple, NotRequired, Required, Self, TypedDict, TypeVar

import attrs
import msgspec
import pydantic

T = TypeVar("T")


class Color(str, enum.Enum):  # noqa: UP042 - the older and more common spelling
    RED = "red"
    BLUE = "blue"


class Num(enum.IntEnum):
    ONE = 1
    TWO = 2


class Shade(enum.Enum):
    DARK = (0, 1)
    LIGHT = (1, 1)
    ALSO_DARK = DARK


class Opaque(enum.Enum):
    A = object()
    B = object()  # noqa: PIE796 - two objects are two values


class Perm(enum.Flag):
    R = 1
    W = 2


@dataclass
class Point:
    x: int
    y: int


@dataclass
class Spot:  # looks like Point
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Frozen:
    name: str
    tags: tuple[str, ...] = ()


@dataclass
class Account:
    owner: str
    balance: float
    history: list[Point] = field(default_factory=list)
    best: Point | None = None
    KIND: ClassVar[str] = "account"
    limit: Final[int] = 3


@dataclass
class Checked:
    age: int

    def __post_init__(self):
        if self.age < 0:
            raise ValueError(f"no such age: {self.age}")


@dataclass
class Counting:
    raw: str
    size: int = field(init=False)
    calls: int = 0

    def __post_init__(self):
        self.size = len(self.raw)
        self.calls += 1  # not the same when done twice

    @cached_property
    def loud(self):
        return self.raw.upper()


@dataclass(init=False)
class OwnInit:
    a: int
    b: list[int] = field(default_factory=list)

    def __init__(self, both: tuple[int, list[int]]) -> None:
        self.a, self.b = both


@dataclass
class WithInitVar:
    a: int
    seed: dataclasses.InitVar[int]

    def __post_init__(self, seed):
        assert seed > 0


@dataclass
class Shape:
    name: str


@dataclass
class Circle(Shape):
    radius: float


@dataclass
class Chain:
    value: int
    next: Chain | None = None
    same: Self | None = None


@dataclass
class Box(Generic[T]):
    item: T


@dataclass
class Pair(Box[list[T]], Generic[T]):
    other: T


@dataclass
class Unresolved:
    known: int
    unknown: Nowhere  # type: ignore[name-defined]  # noqa: F821 - the case


@dataclass
class DictLike(dict):  # a dataclass that is more than its fields
    a: int = 0


class Row(NamedTuple):
    id: int
    name: str = "-"


Loose = namedtuple("Loose", "a b")  # noqa: PYI024


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Partial(TypedDict, total=False):
    id: Required[int]
    note: str


class Held(TypedDict, Generic[T]):
    item: T


class Weather(msgspec.Struct):
    city: str
    temp: float
    note: str | msgspec.UnsetType = msgspec.UNSET


class Renamed(msgspec.Struct, rename="camel", tag="renamed", frozen=True):
    first_name: str
    last_name: str = "-"


class Growing(msgspec.Struct):
    a: int

    def __post_init__(self):
        self.a += 1  # not the same when done twice


class Cat(msgspec.Struct, tag=True):
    name: str


class Dog(msgspec.Struct, tag=True):
    name: str


class Arrayed(msgspec.Struct, array_like=True, omit_defaults=True):
    a: int
    b: int = 2


class StructBox(msgspec.Struct, Generic[T]):
    item: T


class Place(pydantic.BaseModel):
    name: str = pydantic.Field(min_length=1)
    unit: str = "c"
    near: list[Place] = []


class Aliased(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)
    first_name: str = pydantic.Field(alias="firstName")
    code: int = pydantic.Field(validation_alias=pydantic.AliasChoices("zip", "code"), default=0)


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    a: int


class Private(pydantic.BaseModel):
    a: int
    _count: int = pydantic.PrivateAttr(default=0)


class Numbers(pydantic.RootModel[list[int]]):
    pass


class ModelBox(pydantic.BaseModel, Generic[T]):
    item: T


class Fussy(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(validate_assignment=True, use_enum_values=True)
    text: str
    color: Color = Color.RED
    site: pydantic.HttpUrl | None = None
    seen: pydantic.AwareDatetime | None = None
    secret: pydantic.SecretStr | None = None

    @pydantic.field_validator("text")
    @classmethod
    def shout(cls, text):
        return text + "!"  # not the same when done twice

    @pydantic.model_validator(mode="after")
    def check(self):
        if self.text.startswith("bad"):
            raise ValueError(f"no such text: {self.text}")
        return self

    @pydantic.computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated properties
    @cached_property
    def loud(self) -> str:
        return self.text.upper()


@pydantic.dataclasses.dataclass
class Checkbox:
    size: int = pydantic.Field(gt=0)
    place: Place | None = None


@attrs.define
class Attrs:
    _size: int = attrs.field(validator=attrs.validators.gt(0))
    name: str = attrs.field(default="n", converter=lambda text: text.upper())
    near: list[Attrs] = attrs.field(factory=list)
    made: int = attrs.field(init=False, default=7)


@attrs.frozen
class AttrsBox(Generic[T]):
    item: T


@attrs.define(slots=False)
class AttrsOwnInit:
    a: int
    b: list[int] = attrs.field(factory=list)

    def __init__(self, both: tuple[int, list[int]]) -> None:
        self.__attrs_init__(*both)  # type: ignore[attr-defined]
