"""Sessions: options in one place, the mode as a value or from the environment, names and stores."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

import toolcassette as tc


@tc.cassette_tool(name="double")
def double(n: int) -> int:
    return 2 * n


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": "loose"}, "order must be one of"),
        ({"order": ""}, "order must be one of"),
        ({"sync": "fsync"}, "sync must be one of frame, call, close, none"),
        ({"sync": None}, "sync must be one of"),
        ({"stale": "delete"}, "stale must be one of refuse, set-aside"),
        ({"cancelled": "ignore"}, "cancelled must be one of wait, raise"),
        ({"stall_after": -1}, "stall_after"),
        ({"stall_after": math.nan}, "stall_after"),
        ({"line_bytes_max": 1023}, "line_bytes_max"),
        ({"line_bytes_max": 64 * 1024 * 1024 + 1}, "line_bytes_max"),
        ({"calls_max": 0}, "calls_max"),
    ],
)
def test_bad_options_are_refused_at_once(options, words, tmp_path):
    for make in (
        lambda: tc.Options(**options),
        lambda: tc.record(tmp_path / "x", ["a"], **options),
        lambda: tc.replay(tmp_path / "x", **options),
        lambda: tc.session("live", **options),
    ):
        with pytest.raises(ValueError, match=words):
            make()
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_option_is_a_type_error(tmp_path):
    with pytest.raises(TypeError, match="speed"):
        tc.record(tmp_path / "x", ["a"], speed=2)


@pytest.mark.parametrize("options", [{}, {"sync": "none", "line_bytes_max": 1024}, {"stall_after": 0, "calls_max": 1}])
def test_options_are_frozen_values(options):
    made = tc.Options(**options)
    assert made == tc.Options(**options)
    assert made == dataclasses.replace(made)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.sync = "call"  # type: ignore[misc]  # that is the test
    assert "store" not in repr(made)


@pytest.mark.parametrize("file", ["", b"x", b""])
def test_a_file_is_a_path_as_text(file):
    for make in (lambda: tc.record(file, ["a"]), lambda: tc.replay(file)):
        with pytest.raises(ValueError, match="file must be"):
            make()


@pytest.mark.parametrize("include", [[], [""], ["a", "a"], "double"])
def test_a_bad_include_is_refused_at_once(include, tmp_path):
    for make in (lambda: tc.record(tmp_path / "x", include), lambda: tc.replay(tmp_path / "x", include)):
        with pytest.raises(ValueError, match="include"):
            make()


# -- the mode as a value ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "file", "include", "words"),
    [
        ("", "x", ["a"], "mode must be one of live, record, replay"),
        ("Record", "x", ["a"], "mode must be one of"),
        ("record", None, ["a"], "needs a file"),
        ("replay", None, None, "needs a file"),
        ("record", "x", None, "needs include"),
        ("record", "", ["a"], "file must be"),
    ],
)
def test_a_mode_that_cannot_be(mode, file, include, words):
    with pytest.raises(ValueError, match=words):
        tc.session(mode, file, include)


def run(session: tc.Session) -> tuple[str, int]:
    with session:
        found = double(4)
    assert session.verdict is not None
    return session.verdict.outcome, found


def test_one_program_three_modes(tmp_path):
    file = tmp_path / "x"
    assert run(tc.session("live")) == ("live", 8)
    assert run(tc.session(mode="record", file=file, include=["double"])) == ("published", 8)
    assert run(tc.session("replay", file)) == ("consumed", 8)
    assert run(tc.session("replay", file, ["double"], cancelled="raise")) == ("consumed", 8)


@pytest.mark.parametrize("how", [iter, tuple, lambda patterns: dict.fromkeys(patterns)])
def test_include_is_any_iterable_of_patterns(how, tmp_path):
    assert run(tc.record(tmp_path / "x", how(["double", "other"]))) == ("published", 8)
    assert tc.inspect(tmp_path / "x").include == ("double", "other")


# -- from the environment ---------------------------------------------------------------------------------------------


def test_with_nothing_set_the_mode_is_live():
    for environ in ({}, {"TOOLCASSETTE_MODE": ""}, {"TOOLCASSETTE_FILE": "x"}):
        assert tc.session_from_env(environ).mode == "live"


def test_a_session_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLCASSETTE_MODE", "record")
    monkeypatch.setenv("TOOLCASSETTE_FILE", str(tmp_path / "x"))
    monkeypatch.setenv("TOOLCASSETTE_INCLUDE", "other_*,double")
    assert run(tc.session_from_env()) == ("published", 8)
    assert tc.inspect(tmp_path / "x").include == ("other_*", "double")
    assert run(tc.session_from_env({"TOOLCASSETTE_MODE": "replay", "TOOLCASSETTE_FILE": str(tmp_path / "x")})) == (
        "consumed",
        8,
    )


@pytest.mark.parametrize(
    "environ",
    [
        {"TOOLCASSETTE_MODE": "rec"},
        {"TOOLCASSETTE_MODE": "record", "TOOLCASSETTE_INCLUDE": "a"},
        {"TOOLCASSETTE_MODE": "record", "TOOLCASSETTE_FILE": "x"},
        {"TOOLCASSETTE_MODE": "record", "TOOLCASSETTE_FILE": "x", "TOOLCASSETTE_INCLUDE": "a,,b"},
        {"TOOLCASSETTE_MODE": "replay", "TOOLCASSETTE_FILE": "", "TOOLCASSETTE_INCLUDE": "a"},
    ],
)
def test_an_environment_that_cannot_be(environ):
    with pytest.raises(ValueError):
        tc.session_from_env(environ)


def test_options_go_along_with_the_environment(tmp_path):
    environ = {
        "TOOLCASSETTE_MODE": "record",
        "TOOLCASSETTE_FILE": str(tmp_path / "x"),
        "TOOLCASSETTE_INCLUDE": "double",
    }
    with tc.session_from_env(environ, sync="close"):
        double(1)
    assert tc.inspect(tmp_path / "x").sync == "close"


# -- names and stores -------------------------------------------------------------------------------------------------


def test_a_relative_path_is_resolved_once_when_the_session_opens(tmp_path, monkeypatch):
    made, opened, left = (tmp_path / name for name in ("made", "opened", "left"))
    for folder in (made, opened, left):
        folder.mkdir()
    monkeypatch.chdir(made)
    session = tc.record("x.cassette.jsonl", ["double"])
    replaced = tc.record("x.cassette.jsonl", ["double"], replace=True)
    monkeypatch.chdir(opened)
    with session:
        double(1)
        monkeypatch.chdir(left)
        double(2)
    assert [path.parent.name for path in tmp_path.rglob("*.jsonl*")] == ["opened"]
    monkeypatch.chdir(opened)
    with replaced:
        double(1)
        monkeypatch.chdir(left)
        double(2)
    assert replaced.verdict is not None
    assert replaced.verdict.outcome == "unchanged"
    assert [path.parent.name for path in tmp_path.rglob("*.jsonl*")] == ["opened"]


def test_missing_folders_are_made(tmp_path):
    file = tmp_path / "a" / "b" / "x"
    assert run(tc.record(file, ["double"])) == ("published", 8)
    assert tc.verify(file).ok


def test_a_memory_store_there_and_back():
    store = tc.MemoryStore()
    assert run(tc.record("anything", ["double"], store=store)) == ("published", 8)
    assert run(tc.replay("anything", store=store)) == ("consumed", 8)
    assert tc.verify("anything", store=store).ok
    assert tc.inspect("anything", store=store).calls == 1
    assert not Path("anything").exists()


def test_the_session_is_what_the_block_gets(tmp_path):
    session = tc.record(tmp_path / "x", ["double"])
    with session as given:
        assert given is session
        assert given.is_open
        assert given.verdict is None
        double(1)
    assert not session.is_open


def test_a_decorated_program_is_recorded_with_its_limits(tmp_path):
    with pytest.raises(tc.FormatError) as caught, tc.record(tmp_path / "x", ["double"], calls_max=1):
        double(1)
        double(2)
    assert caught.value.reason == "too_many_calls"
