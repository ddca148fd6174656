"""``output_schema``: held against the schema while recording, and again on every replay."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import sys
from collections.abc import Iterator  # noqa: TC003 - a hint of a tool, resolved in these tests
from typing import Any

import pytest

import toolcassette as tc
from toolcassette.contracts import JsonSchema, contract_for

WEATHER = {
    "type": "object",
    "properties": {
        "degrees": {"type": "number", "minimum": -90},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["degrees"],
    "additionalProperties": False,
}


@dataclasses.dataclass
class Weather:
    degrees: float
    tags: tuple[str, ...] = ()


def fitted(annotation: Any, schema: Any) -> Any:
    return contract_for(annotation, schema=JsonSchema(schema))


@pytest.mark.parametrize(("annotation", "schema", "value"), [
    (Any, WEATHER, {"degrees": 1.5, "tags": ["a"]}),
    (Weather, WEATHER, Weather(1, ("a",))),  # tuples and sets are arrays
    (dict, WEATHER, collections.OrderedDict(degrees=1)),
    (Any, True, object.__doc__),
    (Any, {"type": "string"}, dt.datetime(2026, 1, 2, tzinfo=dt.UTC)),
    (Any, {"type": "string"}, b"x"),
    (Any, {"type": "integer"}, 10**2000),
    (Any, {"type": "array", "maxItems": 2}, {(1, 2), (3, 4)}),
    (Any, {"type": "object"}, {"$tc": 1}),
    (Any, {"type": "array"}, {1: 2}),  # JSON has no word for such keys: pairs
    (Any, {"$ref": "#/$defs/n", "$defs": {"n": {"type": "null"}}}, None),
    (Any, {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}, 2),
], ids=range(12))  # fmt: skip
def test_what_fits_comes_back(annotation, schema, value):
    contract = fitted(annotation, schema)
    data, copy = contract.round_trip(value)
    assert copy == value
    assert contract.decode(data) == contract_for(annotation).decode(data) == value
    assert data == contract_for(annotation).encode(value)  # the schema changes nothing that is written


@pytest.mark.parametrize(("schema", "value", "path", "keyword"), [
    (WEATHER, {"degrees": "canary"}, "$.degrees", "/properties/degrees/type"),
    (WEATHER, {"degrees": -100}, "$.degrees", "/properties/degrees/minimum"),
    (WEATHER, {"tags": []}, "$", "/required"),
    (WEATHER, {"degrees": 1, "canary": 2}, "$", "/additionalProperties"),
    (WEATHER, {"degrees": 1, "tags": ["a", 5]}, "$.tags[1]", "/properties/tags/items/type"),
    (WEATHER, {"degrees": True}, "$.degrees", "/properties/degrees/type"),
    (WEATHER, {"degrees": float("nan")}, "$.degrees", "/properties/degrees/type"),
    (False, 1, "$", "/"),
    ({"properties": {"a/b~c": {"const": 1}}}, {"a/b~c": 2}, '$["a/b~c"]', "/properties/a~1b~0c/const"),
    ({"$ref": "https://example.org/other"}, 1, "$", "a reference"),  # never fetched
    ({"$ref": "#/$defs/none"}, 1, "$", "a reference"),
])  # fmt: skip
def test_what_breaks_it_is_refused_and_a_recording_of_it_is_a_mismatch(schema, value, path, keyword):
    contract = fitted(Any, schema)
    with pytest.raises(tc.UnrecordableValue) as caught:
        contract.round_trip(value)
    assert caught.value.json_path == path
    assert keyword in str(caught.value)
    with pytest.raises(tc.UnrecordableValue):
        contract.encode(value)
    with pytest.raises(tc.ContractMismatch) as mismatch:
        contract.decode(contract_for().encode(value))
    assert mismatch.value.json_path == path
    assert keyword in mismatch.value.wanted
    assert "canary" not in f"{caught.value}{mismatch.value}"


@pytest.mark.parametrize(("schema", "error"), [
    ({"type": 3}, ValueError), ({"properties": {"a": {"minimum": "canary"}}}, ValueError),
    ([], TypeError), ("x", TypeError),
])  # fmt: skip
def test_a_bad_schema_is_told_when_the_tool_is_wrapped(schema, error):
    with pytest.raises(error, match="output_schema") as caught:
        tc.Registry().wrap(lambda: 1, name="t", output_schema=schema)
    assert "canary" not in str(caught.value)


def test_without_jsonschema_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(ModuleNotFoundError) as caught:
        tc.cassette_tool(name="t", output_schema=WEATHER)(lambda: 1)
    assert str(caught.value) == "output_schema needs jsonschema: pip install 'toolcassette[jsonschema]'"


def test_from_call_to_replay():
    store = tc.MemoryStore()

    def weather(city: str) -> dict[str, Any]:
        return {"degrees": 5.5 if city == "Wuhan" else "canary"}

    tool = tc.Registry().wrap(weather, output_schema=WEATHER)
    with tc.record("w", ["*"], store=store):
        assert tool("Wuhan") == {"degrees": 5.5}
    with tc.replay("w", store=store):
        assert tool("Wuhan") == {"degrees": 5.5}
    with pytest.raises(tc.UnrecordableValue, match="weather"), tc.record("x", ["*"], store=store):
        tool("Oslo")
    stricter = tc.Registry().wrap(weather, output_schema={**WEATHER, "required": ["degrees", "tags"]})
    with pytest.raises(tc.ContractMismatch) as caught, tc.replay("w", store=store):
        stricter("Wuhan")
    assert (caught.value.tool, caught.value.json_path) == ("weather", "$")
    assert "/required" in caught.value.wanted


def test_every_item_of_a_stream_is_held_against_it():
    def tokens(text: str) -> Iterator[Any]:
        yield from text

    tool = tc.Registry().wrap(tokens, output_schema={"enum": ["a", "b"]})
    store = tc.MemoryStore()
    with tc.record("s", ["*"], store=store):
        assert list(tool("ab")) == ["a", "b"]
    with tc.replay("s", store=store):
        assert list(tool("ab")) == ["a", "b"]
    with pytest.raises(tc.UnrecordableValue, match="/enum"), tc.record("t", ["*"], store=store):
        list(tool("ac"))
