"""In place is not everywhere: a plain password goes, and every other byte of the cassette stays as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolcassette as tc
from tests.cases.programs import dead, live, record, replay

PLAIN = [
    "a",
    "1",
    "true",
    "postgres",
    "admin",
    "string",
    "password",
    "hunter2",
    "123456789012",
    "correct horse",
    "x" * 40,
]
SCHEMA = {
    "type": "object",
    "properties": {
        "password": {"type": "string", "description": "the password", "minLength": 1},
        "token": {"type": "string", "title": "token", "const": None},
        "postgres": {"type": "boolean", "default": True, "enum": [True, 1, 1.0, "true", "1", "a"]},
    },
    "required": ["password", "token", "api_key"],
    "additionalProperties": False,
}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "place.cassette.jsonl"


def connect(user: str, password: Any, note: Any) -> Any:
    return {
        "user": user,
        "note": note,
        "password": password,
        "schema": SCHEMA,
        "password_ok": True,
        "n": [1, "1", True],
    }


def bodies(file: Any) -> list[dict[str, Any]]:
    """The frames without what differs from recording to recording, members in their order."""
    frames = [json.loads(line) for line in file.read_bytes().splitlines()]
    return [{k: v for k, v in frame.items() if k not in _OWN} for frame in frames]


_OWN = {"cassette", "created", "rules", "at", "prev", "hash"}


def texts(file: Any) -> list[str]:
    return [json.dumps(body) for body in bodies(file)]


@pytest.mark.parametrize("password", PLAIN)
def test_only_the_value_itself_goes(file, tmp_path, password):
    note = {
        "said": f"{password} and a1true postgres, admin string",
        "more": [password, password * 2],
        password: password,
    }
    other = tmp_path / "other.cassette.jsonl"
    for target, options in ((file, {}), (other, {"redact": False})):
        record(target, lambda: live(connect)(password, password, note), **options)
    tag = '{"$tc": "redacted", "n": 1, "rule": "password"}'
    value = json.dumps(password)
    expected = [line.replace(f'"password": {value}', f'"password": {tag}') for line in texts(other)]
    if password == "password":
        assert sum(a != b for a, b in zip(texts(file), expected, strict=True)) <= 2
    else:
        assert texts(file) == expected
    replay(file, lambda: dead(connect)(password, password, note))


@pytest.mark.parametrize("value", ["", b"", None, 0, 1, 1.5, True, False, [], {}])
def test_what_is_no_text_or_empty_stays(file, value):
    record(file, lambda: live(connect)("me", value, None))
    assert b"redacted" not in file.read_bytes()
    replay(file, lambda: dead(connect)("me", value, None))


def test_a_schema_stays_as_it_is(file, tmp_path):
    other = tmp_path / "other.cassette.jsonl"

    def tool(schema: Any) -> Any:
        return [schema, json.dumps(schema), {"tools": [{"function": {"parameters": schema}}]}]

    for target, options in ((file, {}), (other, {"redact": False})):
        record(target, lambda: live(tool)(SCHEMA), **options)
    assert texts(file) == texts(other)


def test_a_name_of_the_cassettes_own_is_no_secret_elsewhere(file):
    """A tool or a parameter by the name of a password, however random it looks."""
    odd = "getUserByEmail42AndX"

    def tool(password: str, names: Any) -> Any:
        return {"properties": {"findOrder77ByKeyZ": names}, "secret": "findOrder77ByKeyZ"}

    record(file, lambda: live(tool, name=odd)(odd, {"called": odd, odd: 1}))
    data = file.read_bytes()
    assert b'"password":{"$tc":"redacted"' in data
    assert data.count(odd.encode()) == 5
    assert data.count(b"findOrder77ByKeyZ") == 1
    replay(file, lambda: dead(tool, name=odd)("another", {"called": odd, odd: 1}))


def test_a_long_random_password_goes_everywhere(file):
    password = "zK4mQ9xW2pT7vB5nR8"
    record(file, lambda: live(connect)("me", password, {"said": f"it is {password}", password: [password]}))
    assert password.encode() not in file.read_bytes()


def test_bytes_in_place(file):
    record(file, lambda: live(connect)("me", b"admin", b"admin"))
    values = json.loads(file.read_bytes().splitlines()[1])["args"]
    assert values["password"] == {"$tc": "redacted", "n": 1, "of": "bytes", "rule": "password"}
    assert values["note"] == {"$tc": "bytes", "v": "YWRtaW4="}
    got = replay(file, lambda: dead(connect)("me", b"other", b"admin"))
    assert got["password"] == "⟦redacted:password:1⟧".encode()


@pytest.mark.parametrize(
    "said",
    [
        "⟦redacted:password:1⟧",
        "so ⟦redacted:password:1⟧ is",
        "⟦\\redacted:x:1⟧ ⟦\\\\redacted:⟧ ⟦redacted:",
        {"⟦redacted:x:1⟧": "⟦⟧"},
        {"$tc": "redacted", "n": 1, "rule": "password"},
        b"\xe2\x9f\xa6redacted:password:1\xe2\x9f\xa7",
    ],
)
def test_what_looks_like_a_stand_in_comes_back_as_it_was(file, said):
    def echo(x: Any) -> Any:
        return x

    assert record(file, lambda: live(echo)(said)) == said
    assert replay(file, lambda: dead(echo)(said)) == said
    assert tc.verify(file, deep=True).ok


def test_numbers_are_the_same_for_the_same_secret(file):
    def tool(password: str, token: str) -> Any:
        return {"password": password, "secret": token}

    record(file, lambda: (live(tool)("a", "b"), live(tool)("b", "a"), live(tool)("c", "c")))
    frames = [json.loads(line) for line in file.read_bytes().splitlines()]
    args = [(f["args"]["password"]["n"], f["args"]["token"]["n"]) for f in frames if f["kind"] == "call/start"]
    assert args == [(1, 2), (2, 1), (3, 3)]
