"""The JSON Schemas fit the frames: every frame of every accepted vector is valid, and what is no frame is not."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from tests.format.test_vectors import ACCEPTED, OPENED, content
from tests.make_vectors import SCHEMAS
from toolcassette.format import json_schemas


def on_disk(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / name).read_text("utf-8"))
    return schema


FRAME = jsonschema.Draft202012Validator(on_disk("frame.schema.json"))
ERROR = jsonschema.Draft202012Validator(on_disk("error.schema.json"))


def frames(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content(name).split(b"\n")[:-1]]


@pytest.mark.parametrize("name", ["frame.schema.json", "error.schema.json"])
def test_schemas_are_those_of_the_structs(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(on_disk(name))
    assert on_disk(name) == json_schemas()[name]


@pytest.mark.parametrize("name", [*ACCEPTED, *OPENED])
def test_every_accepted_frame_is_valid(name: str) -> None:
    for frame in frames(name):
        FRAME.validate(frame)
        if isinstance(frame.get("error"), dict):
            ERROR.validate(frame["error"])


@pytest.mark.parametrize("seq", range(8))
def test_members_are_required_and_no_other_is_allowed(seq: int) -> None:
    frame = frames("ok_every_kind")[seq]
    bulk = {"args", "value"}
    chunks = {"chunks"} if "chunks" in frame else set()
    for name in frame.keys() - bulk - chunks:
        assert not FRAME.is_valid({key: value for key, value in frame.items() if key != name}), name
    assert not FRAME.is_valid(frame | {"extra": 1})
    for name in frame.keys() - bulk:
        assert not FRAME.is_valid(frame | {name: None}), name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cassette", "0" * 31),
        ("cassette", "0" * 32 + "\n"),
        ("cassette", "A" * 32),
        ("created", "2026-01-02T03:04:05Z"),
        ("created", "2026-01-02T03:04:05.678901Z\n"),
        ("created", "\u0662026-01-02T03:04:05.678901Z"),
        ("seq", -1),
        ("seq", 2**53),
        ("seq", 0.5),
        ("order", "loose"),
        ("requires", [""]),
        ("include", "t"),
        ("from", {"cassette": "0" * 32, "head": "0" * 64}),
    ],
)
def test_values_that_are_no_members_are_invalid(name: str, value: Any) -> None:
    header = frames("ok_every_kind")[0]
    assert FRAME.is_valid(header)
    assert not FRAME.is_valid(header | {name: value})


@pytest.mark.parametrize(
    "body",
    [
        {"type": "a"},
        {"type": "", "message": ""},
        {"type": "a", "message": "", "x": 1},
        {"type": "a", "message": "", "cause": {"type": "a"}},
        {"type": "a", "message": "", "args": {}},
    ],
)
def test_what_is_no_error_is_invalid(body: dict[str, Any]) -> None:
    assert not ERROR.is_valid(body)
