"""pydantic models and attrs classes: as results, nested, as arguments, and when they have changed since."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pydantic
import pytest

from tests.contracts.shapes import (
    Aliased,
    Attrs,
    AttrsBox,
    AttrsOwnInit,
    Box,
    Checkbox,
    Color,
    Fussy,
    ModelBox,
    Numbers,
    Open,
    Place,
    Point,
    Private,
)
from toolcassette.contracts import contract_for, encode_args, same
from toolcassette.contracts.names import readable
from toolcassette.errors import ContractMismatch, UnrecordableValue

SRC = Path(__file__).resolve().parents[2] / "src"
NOON = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)


def odd(value: Any) -> Any:
    return value


OWN_INIT: Any = AttrsOwnInit  # mypy's plugin goes by the attributes


def more(**extra: Any) -> Open:
    return Open.model_validate({"a": 1, **extra})


def private(count: int) -> Private:
    made = Private(a=1)
    made._count = count
    return made


def warmed(text: str) -> Fussy:
    made = Fussy(text=text)
    assert made.loud
    return made


KEPT: list[Any] = [
    (Place, Place(name="a", unit="f", near=[]), '{"name":"a","unit":"f","near":[]}'),
    (Place, Place(name="a"), '{"$tc":"fields","unset":["near","unit"],"v":{"name":"a","unit":"c","near":[]}}'),
    (list[Place], [Place(name="a", near=[Place(name="b")])], None),
    (dict[str, Place | None], {"a": Place(name="b"), "c": None}, None),
    (Place | Open, Open(a=1), '{"a":1}'),
    (Box[Place], Box(Place(name="a")), None),
    (Aliased, Aliased.model_validate({"firstName": "a", "zip": 3}), '{"first_name":"a","code":3}'),
    (Open, more(b=[(2,)]), '{"a":1,"b":[{"$tc":"tuple","v":[2]}]}'),
    (Open, more(**{"$tc": "x"}), '{"$tc":"map","v":[["a",1],["$tc","x"]]}'),
    (Private, Private(a=1), '{"a":1}'),
    (Numbers, Numbers([1, 2]), "[1,2]"),
    (ModelBox[int], ModelBox[int](item=1), '{"item":1}'),
    (ModelBox[list[Point]], ModelBox[list[Point]](item=[Point(1, 2)]), '{"item":[{"x":1,"y":2}]}'),
    (Fussy, Fussy(text="a"), None),
    (Fussy, warmed("a"), None),
    (Fussy, Fussy(text="a", color=Color.BLUE, site=odd("http://a.b/c"), seen=NOON), None),
    (pydantic.HttpUrl, pydantic.HttpUrl("http://a.b/c"), '"http://a.b/c"'),
    (Checkbox, Checkbox(3, Place(name="a")), None),
    (Checkbox | None, Checkbox(1), '{"size":1,"place":null}'),
    (Attrs, Attrs(1), '{"_size":1,"name":"N","near":[],"made":7}'),
    (list[Attrs], [Attrs(1, "b", [Attrs(2)])], None),
    (AttrsBox[int], AttrsBox(1), '{"item":1}'),
    (AttrsBox[list[Place]], AttrsBox([Place(name="a")]), None),
    (AttrsOwnInit, OWN_INIT((1, [2])), '{"a":1,"b":[2]}'),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "value", "text"), KEPT, ids=range(len(KEPT)))
def test_comes_back_the_same(annotation, value, text):
    data, copy = contract_for(annotation).round_trip(value)
    assert same(value, copy) is None
    assert copy == value
    assert contract_for(annotation).encode(copy) == data
    if text is not None:
        assert data.decode() == text


def test_a_copy_knows_which_fields_were_given():
    for value in (Place(name="a"), Place(name="a", unit="c"), Place(name="a", near=[])):
        copy: Any = contract_for(Place).round_trip(value)[1]
        assert copy.model_dump(exclude_unset=True) == value.model_dump(exclude_unset=True)
    assert same(Place(name="a"), Place(name="a", unit="c")) is not None


REFUSED: list[Any] = [
    (Any, Place(name="a"), "$", "Place"),  # nothing says which class it was
    (Place, Open(a=1), "$", "Open"),
    (Private, private(3), "$._count", "int"),  # validation does not bring it back
    (Open, more(b=object()), "$.b", "object"),
    (ModelBox[int], ModelBox(item=1), "$", "ModelBox"),  # the unparametrised class is another
    (Fussy, Fussy(text="a", secret=odd("canary")), "$.secret", "SecretStr"),
    (Fussy, Fussy(text="ba").model_copy(update={"text": "bad canary"}), "$", "Fussy"),  # its own validator says no
    (Place, Place.model_construct(unit="c"), "$.name", "Place"),
    (Place, Place.model_construct(name=3), "$.name", "int"),
    (Attrs, AttrsBox(1), "$", "AttrsBox"),
    (AttrsBox[int], AttrsBox("a"), "$.item", "str"),
]


@pytest.mark.parametrize(("annotation", "value", "path", "type_name"), REFUSED, ids=range(len(REFUSED)))
def test_is_refused_with_path_and_type(annotation, value, path, type_name):
    with pytest.raises(UnrecordableValue) as caught:
        contract_for(annotation).round_trip(value)
    assert (caught.value.json_path, caught.value.type_name) == (path, type_name)
    assert "canary" not in str(caught.value)


def test_what_is_kept_beside_the_fields_is_not_lost_silently():
    value = OWN_INIT((1, []))
    value.label = "extra"
    with pytest.raises(UnrecordableValue) as caught:
        contract_for(AttrsOwnInit).round_trip(value)
    assert caught.value.json_path == "$.label"


DRIFTED: list[Any] = [
    (Place, '{"name":1}', "$.name", "str"),
    (Place, "{}", "$.name", "str"),
    (Place, '{"name":""}', "$.name", "str (string_too_short)"),  # what pydantic asks for beyond the type
    (Place, '{"name":"a","gone":1}', "$.gone", "a member of Place"),
    (list[Place], '[{"name":"a","near":[{"name":"a","unit":2}]}]', "$[0].near[0].unit", "str"),
    (Fussy, '{"text":"bad canary"}', "$", "Fussy (value_error)"),
    (Fussy, '{"text":"a","site":"no url: canary"}', "$.site", f"{readable(pydantic.HttpUrl)} | None"),
    (Fussy, '{"text":"a","color":"green"}', "$.color", "Color (enum)"),
    (Numbers, '[1,"canary"]', "$[1]", "int"),
    (Checkbox, '{"size":-1}', "$", "Checkbox"),
    (Attrs, '{"_size":-1}', "$", "Attrs"),
    (Attrs, '{"name":"a"}', "$._size", "int"),
    (Attrs, '{"_size":1,"gone":1}', "$.gone", "a member of Attrs"),
    (Any, '[{"$tc":"fields","unset":["n"],"v":{"n":1}}]', "$[0]", "of a builtin type"),
    (dict, '{"$tc":"fields","unset":["n"],"v":{"n":1}}', "$", "dict"),
]


@pytest.mark.parametrize(("annotation", "recorded", "path", "wanted"), DRIFTED, ids=range(len(DRIFTED)))
def test_a_recording_that_does_not_fit_today_names_the_place(annotation, recorded, path, wanted):
    with pytest.raises(ContractMismatch) as caught:
        contract_for(annotation).decode(recorded.encode())
    assert (caught.value.json_path, caught.value.wanted) == (path, wanted)
    assert "canary" not in str(caught.value)


def test_an_added_field_with_a_default_is_no_drift():
    assert contract_for(Place).decode(b'{"name":"a"}') == Place(name="a")
    made: Any = contract_for(Attrs).decode(b'{"_size":1}')
    assert made == Attrs(1)
    own: Any = contract_for(AttrsOwnInit).decode(b'{"a":1}')
    assert own == OWN_INIT((1, []))
    assert contract_for(Place).decode(b'{"$tc":"fields","unset":["unit"],"v":{"name":"a","unit":"f"}}') == Place(
        name="a", unit="f"
    )  # a default that has changed changes no recording


def test_a_default_is_no_drift_under_the_tag_either():
    for unset in ("", '"unset":[],', '"unset":["unit","near"],', '"unset":[1],', '"unset":"unit",'):
        broken = f'{{"$tc":"fields",{unset}"v":{{"name":"a"}}}}'
        with pytest.raises(Exception, match="bulk"):
            contract_for(Place).decode(broken.encode())


def test_models_as_arguments_are_compared_by_content_and_class():
    def key(value: object) -> bytes:
        return encode_args({"v": value})

    assert key(Place(name="a")) == key(Place(name="a", unit="c"))  # one content, given or not
    assert key(more(b=2)) == key(Open.model_validate({"b": 2, "a": 1})) != key(Open(a=1))
    different = [Place(name="a"), Place(name="b"), {"name": "a", "unit": "c", "near": []}, Attrs(1), Attrs(2),
                 Open(a=1),
                 ModelBox[int](item=1), AttrsBox(1), pydantic.HttpUrl("http://a.b"), "http://a.b/"]  # fmt: skip
    assert len({key(value) for value in different}) == len(different)
    assert b'"type":"tests.contracts.shapes.Place"' in key([Place(name="a")])
    assert b'"type":"tests.contracts.shapes.ModelBox[bytes]"' in key(ModelBox[bytes](item=b""))  # not of this module


class Number(pydantic.RootModel[int]):
    pass


class Word(pydantic.RootModel[str]):
    pass


@pytest.mark.parametrize("number", [1, 1000])
def test_equal_members_of_a_union_of_lookalikes_come_back_as_two(number):
    """Python holds a small integer once, however often it stands in a tree."""
    copy: Any = contract_for(list[Number | Word]).round_trip([Number(number), Number(number)])[1]
    copy[0].root = 5
    assert copy == [Number(5), Number(number)]


def test_neither_package_is_imported_before_a_class_of_it_is():
    program = (
        "import sys, dataclasses\nfrom toolcassette.contracts import contract_for, encode_args\n"
        "@dataclasses.dataclass\nclass P:\n    x: int\n"
        "contract_for(list[P]).round_trip([P(1)]); encode_args({'p': P(1)})\n"
        "print([name for name in ('pydantic', 'attr', 'attrs', 'jsonschema') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_a_class_that_speaks_of_one_that_does_not_exist_is_refused():
    class Waiting(pydantic.BaseModel):
        other: NotYet  # type: ignore[name-defined]  # noqa: F821 - the case

    with pytest.raises(UnrecordableValue, match="annotation"):
        contract_for(Waiting)


def test_the_older_spelling_of_attrs():
    @attrs.define
    class Plain:
        x = attrs.field(type=int)
        y = attrs.field(default=attrs.Factory(lambda self: [self.x], takes_self=True))

    assert same(contract_for(Plain).round_trip(Plain(1))[1], Plain(1)) is None
    assert contract_for(Plain).decode(b'{"x":3}') == Plain(3)
