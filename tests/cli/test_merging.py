"""Folders of cassettes: what `merge` copies, keeps and refuses, and what `ls` says of each file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import toolcassette as tc
from tests.cli.helpers import CALLS, cassette, run
from tests.proof.helpers import Keys, judged
from toolcassette.cli import main

ID = "cd" * 16


def put(folder, name, data):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def files(folder):
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def two(tmp_path):
    """A source with a new, an identical, an equal and another cassette; and the destination."""
    source, destination = tmp_path / "src", tmp_path / "dest"
    for name in ("a/new", "identical", "equal", "other"):
        put(source, f"{name}.cassette.jsonl", cassette())
    put(source, "note.txt", b"no cassette")
    put(destination, "identical.cassette.jsonl", cassette())
    put(destination, "equal.cassette.jsonl", cassette(cassette=ID, created="2025-01-01T00:00:00.000000Z"))
    put(destination, "other.cassette.jsonl", cassette(CALLS[:1]))
    put(destination, "mine.cassette.jsonl", cassette(CALLS[:2]))
    return source, destination


SAME = ("equal.cassette.jsonl", "identical.cassette.jsonl")


def test_a_conflict_lets_nothing_be_written(two):
    source, destination = two
    before = files(destination)
    done = tc.merge_cassettes(source, destination)
    assert done == tc.Merged(unchanged=SAME, conflicts=("other.cassette.jsonl",))
    assert (done.ok, done.exit_status) == (False, 1)
    assert files(destination) == before


def test_force_replaces_what_stands_in_the_way_and_nothing_else(two):
    source, destination = two
    before = files(destination)
    done = tc.merge_cassettes(source, destination, force=True)
    assert done == tc.Merged(copied=("a/new.cassette.jsonl",), unchanged=SAME, replaced=("other.cassette.jsonl",))
    assert (done.ok, done.exit_status) == (True, 0)
    assert files(destination) == before | dict.fromkeys(("a/new.cassette.jsonl", "other.cassette.jsonl"), cassette())
    again = tc.merge_cassettes(source, destination)
    assert again.unchanged == ("a/new.cassette.jsonl", *SAME, "other.cassette.jsonl")
    assert again.ok


def test_a_destination_that_is_not_there_is_made(two, tmp_path):
    source, _ = two
    assert tc.merge_cassettes(source, tmp_path / "x" / "y").ok
    assert files(tmp_path / "x" / "y").keys() == files(source).keys() - {"note.txt"}


@pytest.mark.parametrize("side", ["src", "dest"])
@pytest.mark.parametrize("force", [False, True])
def test_a_cassette_that_is_not_whole_lets_nothing_be_written(two, side, force):
    source, destination = two
    bad = put(two[side == "dest"], "identical.cassette.jsonl", cassette()[:-5])
    before = files(destination)
    done = tc.merge_cassettes(source, destination, force=force)
    assert [(report.path, report.state) for report in done.findings] == [(str(bad), "torn")]
    assert (done.ok, done.exit_status) == (False, 1)
    assert files(destination) == before


def test_a_value_that_is_not_canonical_is_a_finding(two):
    """A quick look does not see it: every value is looked at."""

    source, destination = two
    vector = Path(__file__).parents[2] / "schemas/v1/vectors/bulk_comma.cassette.jsonl"
    put(source, "bulk.cassette.jsonl", vector.read_bytes())
    assert [report.reason for report in tc.merge_cassettes(source, destination).findings] == ["bulk"]


def test_partials_are_findings_and_folders_that_are_none_are_refused(two, tmp_path):
    source, destination = two
    put(source, "open.cassette.jsonl.partial", cassette())
    done = tc.merge_cassettes(source, destination, force=True)
    assert [report.state for report in done.findings] == ["open"]
    for wrong in (tmp_path / "absent", source / "note.txt"):
        with pytest.raises(ValueError, match="must be a folder"):
            tc.merge_cassettes(wrong, destination)


def test_a_recording_that_is_under_way_in_the_destination_is_not_disturbed(two):
    source, destination = two
    with tc.record(destination / "a" / "new.cassette.jsonl", ["x"], allow_empty=True):
        with pytest.raises(tc.CassetteExists) as caught:
            tc.merge_cassettes(source, destination, force=True)
        assert caught.value.what == "live_partial"


def test_merge_on_the_command_line(two, tmp_path):
    source, _ = two
    done = run(tmp_path, "merge", "src", "dest")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [*(f"unchanged: {name}" for name in SAME), "conflict: other.cassette.jsonl"]
    done = run(tmp_path, "merge", "--force", "--format", "json", "src", "dest")
    found = json.loads(done.stdout)
    assert (done.returncode, found["copied"], found["ok"]) == (0, ["a/new.cassette.jsonl"], True)
    put(source, "torn.cassette.jsonl", cassette()[:-5])
    done = run(tmp_path, "merge", "src", "dest")
    assert done.returncode == 1
    assert done.stdout.startswith("src/torn.cassette.jsonl: torn: ")
    for wrong, words in (("absent", "SRC is no folder"), ("empty", "no cassettes here")):
        (tmp_path / "empty").mkdir(exist_ok=True)
        done = run(tmp_path, "merge", wrong, "dest")
        assert (done.returncode, done.stdout) == (2, "")
        assert words.lower() in done.stderr.lower()


def model(name="gpt"):
    return tc.RecordedCall(tool=name, args=b"{}", value=b"1", boundary="model")


@pytest.mark.parametrize(
    ("calls", "kind", "tools", "models"),
    [
        (CALLS, "tools", ("clock", "weather"), ()),
        ([model()], "models", (), ("gpt",)),
        ([*CALLS, model(), model("claude")], "both", ("clock", "weather"), ("claude", "gpt")),
        ([], "empty", (), ()),
    ],
)
def test_what_is_in_a_cassette(tmp_path, calls, kind, tools, models):
    put(tmp_path, "x.cassette.jsonl", cassette(calls, include=["*"]))
    (row,) = tc.list_cassettes(tmp_path)
    assert (row.report.ok, row.report.calls) == (True, len(calls))
    assert (row.kind, row.tools, row.models, row.created) == (kind, tools, models, "2026-01-02T03:04:05.000000Z")


def test_what_is_not_whole_is_listed_and_nothing_is_said_of_its_calls(tmp_path):
    put(tmp_path, "b.cassette.jsonl", cassette()[:-5])
    put(tmp_path, "a.cassette.jsonl.partial", cassette())
    rows = tc.list_cassettes(tmp_path)
    assert [row.report.state for row in rows] == ["open", "torn"]
    assert {(row.kind, row.tools, row.models, row.created) for row in rows} == {(None, None, None, None)}
    assert [row.report.state for row in tc.list_cassettes(tmp_path / "none")] == ["absent"]


def test_ls_shows_kind_time_and_models(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(tmp_path, "x.cassette.jsonl", cassette([*CALLS, model()]))
    assert main(["ls"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert re.split(r"\s+", head) == ["state", "kind", "calls", "created", "cassette", "tools", "models"]
    assert re.split(r"\s\s+", row) == [
        "complete", "both", "4", "2026-01-02T03:04:05", "./x.cassette.jsonl", "clock, weather", "gpt",
    ]  # fmt: skip


def test_a_signature_goes_with_its_cassette(two, tmp_path):
    source, destination = two
    keys = Keys(tmp_path / "keys")
    for name in ("a/new", "other"):
        tc.sign(source / f"{name}.cassette.jsonl", key=keys.private("ci"))
    tc.merge_cassettes(source, destination, force=True)
    for name in ("a/new", "other"):
        assert judged(destination / f"{name}.cassette.jsonl", keys.vkey("ci")) == "signed"
