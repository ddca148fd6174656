"""What is no secret and differs from run to run: directories in every spelling, ids, moments."""

from __future__ import annotations

import json
import tempfile
import uuid
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest

import toolcassette as tc
from tests.cases.programs import dead, live, record, replay


@pytest.fixture
def file(tmp_path):
    return tmp_path / "cassettes" / "normal.cassette.jsonl"


@pytest.fixture(autouse=True)
def folder(file):
    file.parent.mkdir()


def echo(x: Any) -> Any:
    return {"got": x}


def said(file: Any) -> Any:
    return json.loads(file.read_bytes().splitlines()[1])["args"]["x"]


SPELLED: dict[str, Any] = {
    "native": str,
    "in a text": lambda p: f"in {p}, line 3",
    "escaped": lambda p: json.dumps({"cwd": str(p)}),
    "escaped in a text": lambda p: f'said "{str(p).translate({92: chr(92) * 2})}" twice',
    "slashed": lambda p: p.as_posix(),
    "a uri": lambda p: p.as_uri(),
    "a uri in json": lambda p: json.dumps({"uri": p.as_uri()}),
    "a list": lambda p: [str(p), f"--file={p}"],
    "a key": lambda p: {str(p): 1},
}
MAC = PurePosixPath("/private/var/folders/x1/proj")
LINUX = PurePosixPath("/home/me/work space/proj")
WINDOWS = PureWindowsPath(r"C:\Users\me\work space\proj")


@pytest.mark.parametrize("form", SPELLED)
@pytest.mark.parametrize(("here", "there"), [(MAC, LINUX), (LINUX, WINDOWS), (WINDOWS, MAC)])
def test_recorded_on_one_machine_replayed_on_another(file, here, there, form):
    def value(root: Any) -> Any:
        return SPELLED[form](root / "src" / "main.py"), SPELLED[form](root)

    record(file, lambda: live(echo)(value(here)), normalize=[tc.Redact(here, id="proj")])
    assert str(here) not in json.dumps(said(file), ensure_ascii=False)
    assert "src" in json.dumps(said(file))
    replay(file, lambda: dead(echo)(value(there)), normalize=[tc.Redact(there, id="proj")])
    with pytest.raises(tc.CassetteMismatch):
        replay(file, lambda: dead(echo)(value(there / "more")), normalize=[tc.Redact(there, id="proj")])


def test_a_directory_is_no_part_of_a_longer_name(file):
    value = ["/srv/app", "/srv/apple", "/srv/app.py", "/srv/app-2", "x/srv/app"]
    record(file, lambda: live(echo)(value), normalize=[tc.Redact(PurePosixPath("/srv/app"), id="proj")])
    assert said(file)[1:4] == value[1:4]
    assert "srv" not in str(said(file)[0])


@pytest.mark.parametrize("word", ["cwd", "home", "tmp"])
def test_the_directories_of_a_machine(file, tmp_path, monkeypatch, word):
    def at(folder: Path) -> str:
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        return f"wrote {folder}/out/a.txt"

    first = at(tmp_path / "one")
    record(file, lambda: live(echo)(first), normalize=[word])
    assert str(tmp_path) not in str(said(file))
    second = at(tmp_path / "two")
    replay(file, lambda: dead(echo)(second), normalize=[word])


def test_ids_and_moments(file):
    def value(n: int) -> Any:
        return {
            "id": str(uuid.UUID(int=n)),
            "at": f"2026-0{n}-03T04:05:06.{n}Z",
            "text": f"{uuid.UUID(int=n)} at 2026-01-0{n}",
        }

    record(file, lambda: live(echo)(value(1)), normalize=["uuid", "timestamp"])
    assert "0000-0000" not in str(said(file))
    with pytest.raises(tc.CassetteMismatch):  # a date alone is no moment, and stays
        replay(file, lambda: dead(echo)(value(2)), normalize=["uuid", "timestamp"])
    replay(
        file,
        lambda: dead(echo)(value(2) | {"text": f"{uuid.UUID(int=2)} at 2026-01-01"}),
        normalize=["uuid", "timestamp"],
    )


def test_a_json_path_of_one_tool(file):
    tools = tc.Registry()
    ping = tools.wrap(lambda x: x, name="ping", redact=[tc.Redact("$.x.took", id="took")])
    record(file, lambda: ping({"took": 0.12, "n": 1}))
    replay(file, lambda: ping({"took": 9.99, "n": 1}))
    with pytest.raises(tc.CassetteMismatch):
        replay(file, lambda: ping({"took": 9.99, "n": 2}))


def test_what_is_normalised_is_no_secret(file):
    value = {"id": str(uuid.UUID(int=7)), "again": f"x{uuid.UUID(int=7)}"}
    record(file, lambda: live(echo)(value), normalize=["$.x.id"])
    assert said(file)["again"] == value["again"]
    replay(file, lambda: None, normalize=["$.x.id"], allow_unconsumed=True)  # and so none that is found in a cassette


def test_a_normaliser_that_matched_nothing_is_in_the_verdict(file):
    with tc.record(file, ["*"], normalize=["uuid", "timestamp"]) as session:
        live(echo)(str(uuid.UUID(int=7)))
    assert session.verdict is not None
    assert "rules of redaction that matched nothing: timestamp" in session.verdict.notes


def test_none_is_a_default(file):
    value = [str(Path.cwd()), str(Path.home()), str(uuid.UUID(int=7)), "2026-01-02T03:04:05Z"]
    record(file, lambda: live(echo)(value))
    assert said(file) == value


@pytest.mark.parametrize("bad", ["nonsense", ["nonsense"], [3], ["uuid", "uuid"], None])
def test_a_bad_normaliser_is_a_value_error(file, bad):
    with pytest.raises(ValueError, match=r"normalize|rule"):
        tc.record(file, ["*"], normalize=bad)
