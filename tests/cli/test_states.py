"""Every verb, on every state that a file can be in: what it says, and the exit status."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.helpers import NAME, cassette
from toolcassette.cli import main

VECTORS = Path(__file__).resolve().parents[2] / "schemas" / "v1" / "vectors"
GOOD = cassette()
LINES = GOOD.splitlines(keepends=True)
CONFLICT = b"".join([*LINES[:2], b"<<<<<<< ours\n", *LINES[2:4], b"=======\n", *LINES[2:4], b">>>>>>> theirs\n"])

# name: (bytes, state, reason, exit status)
FILES = {
    "good": (GOOD, "complete", None, 0),
    "empty": (b"", "torn", "empty", 1),
    "text": (b"hello\n", "damaged", "not_a_cassette", 1),
    "newer": ((VECTORS / "format_newer.cassette.jsonl").read_bytes(), "unreadable", "format_unknown", 2),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "damaged", "lfs_pointer", 1),
    "conflict": (CONFLICT, "damaged", "conflict_markers", 1),
    "crlf": (GOOD.replace(b"\n", b"\r\n"), "damaged", "crlf", 1),
    "bom": (b"\xef\xbb\xbf" + GOOD, "damaged", "bom", 1),
    "cut": (GOOD[:-40], "torn", "torn", 1),
    "no_tail": (b"".join(LINES[:-1]), "torn", "tail_missing", 1),
    "no_newline": (GOOD[:-1], "torn", "final_newline_missing", 1),
    "zeros": (GOOD[:700] + bytes(len(GOOD) - 700), "zero-filled", "zero_filled", 1),
    "flipped": (GOOD.replace(b"sunny", b"Sunny"), "damaged", "hash", 1),
    "swapped": (b"".join([*LINES[:3], LINES[4], LINES[3], *LINES[5:]]), "damaged", "link", 1),
    "twice": (GOOD + GOOD, "damaged", "after_complete", 1),
}
# The same for what is no file with content.
THINGS = {
    "absent": ("absent", "absent", 2),
    "folder": ("unreadable", "not_a_file", 2),
    "fifo": ("unreadable", "not_a_file", 2),
    "dangling": ("absent", "absent", 2),
    "partial": ("open", "not_published", 1),
}
EXPECTED = {**{name: row[1:] for name, row in FILES.items()}, **THINGS}


def make(folder, name):
    file = folder / NAME
    if name in FILES:
        file.write_bytes(FILES[name][0])
    elif name == "folder":
        file.mkdir()
    elif name == "fifo":
        os.mkfifo(file)
    elif name == "dangling":
        file.symlink_to(folder / "nowhere")
    elif name == "partial":
        file = folder / (NAME + ".partial")
        file.write_bytes(b"".join(LINES[:4]))
    return file


def judged(capsys, *args):
    """Exit status, stdout and stderr of a command line, which never shows a traceback."""
    status = main([str(arg) for arg in args])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert "internal error" not in err
    return status, out, err


@pytest.mark.parametrize("name", EXPECTED)
def test_verify(tmp_path, capsys, name):
    state, reason, expected = EXPECTED[name]
    file = make(tmp_path, name)
    status, out, err = judged(capsys, "verify", file)
    assert (status, err) == (expected, "")
    if name == "good":
        assert out == f"{file}: intact, unsigned (8 frames, 3 calls, head {json.loads(LINES[-1])['hash'][:8]})\n"
    else:
        assert out.startswith(f"{file}: {state}: ")
        assert f"({reason}); " in out
        assert not out.endswith(".\n")


@pytest.mark.parametrize("name", EXPECTED)
def test_verify_json(tmp_path, capsys, name):
    state, reason, expected = EXPECTED[name]
    file = make(tmp_path, name)
    status, out, _ = judged(capsys, "verify", "--deep", "--format", "json", file)
    (row,) = json.loads(out)
    assert status == expected
    assert (row["path"], row["state"], row["reason"], row["exit_status"]) == (str(file), state, reason, expected)
    assert row["ok"] is (expected == 0)
    assert {"frame", "offset", "frames", "calls", "head", "signed", "message"} <= row.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_inspect_shows_whole_cassettes_only(tmp_path, capsys, name):
    state, reason, expected = EXPECTED[name]
    file = make(tmp_path, name)
    status, out, err = judged(capsys, "inspect", file)
    assert status == expected
    if name == "good":
        assert err == ""
    elif name == "folder":
        assert (out, err) == ("", f"toolcassette: {file}: no cassette in this folder\n")
    else:
        assert out == ""
        assert err.startswith(f"toolcassette: {file}: {state}: ")
        assert f"({reason}); " in err


@pytest.mark.parametrize("name", EXPECTED)
def test_ls(tmp_path, capsys, name):
    state, _, expected = EXPECTED[name]
    file = make(tmp_path, name)
    status, out, err = judged(capsys, "ls", file)
    if name == "folder":  # a folder without cassettes is no finding here
        assert (status, out, err) == (0, "", f"toolcassette: {file}: no cassettes here\n")
        return
    (row,) = out.splitlines()[1:]
    assert (status, row.split()[0]) == (expected, state)
    assert str(file) in row


@pytest.mark.parametrize("name", [name for name in EXPECTED if name != "good"])
def test_replay_of_a_bad_cassette_does_not_run_the_command(tmp_path, capsys, name):
    _, reason, expected = EXPECTED[name]
    file = make(tmp_path, name)
    status, out, err = judged(capsys, "replay", file, "--", "touch", tmp_path / "ran")
    assert (status, out) == (expected, "")
    assert f"({reason}); " in err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", [name for name in EXPECTED if name not in {"absent", "partial"}])
def test_record_refuses_whatever_stands_there(tmp_path, capsys, name):
    file = make(tmp_path, name)
    before = file.read_bytes() if name in FILES else None
    status, out, err = judged(capsys, "record", file, "--include", "*", "--", "touch", tmp_path / "ran")
    assert (status, out) == (2, "")
    assert "the cassette exists already" in err
    assert "--replace" in err
    assert not (tmp_path / "ran").exists()
    assert before is None or file.read_bytes() == before


def test_record_refuses_a_partial_left_behind(tmp_path, capsys):
    partial = make(tmp_path, "partial")
    status, _, err = judged(capsys, "record", tmp_path / NAME, "--include", "*", "--", "touch", tmp_path / "ran")
    assert status == 2
    assert "--set-aside" in err
    assert not (tmp_path / "ran").exists()
    status, _, err = judged(capsys, "record", partial, "--include", "*", "--", "true")
    assert status == 2
    assert "ends in .partial" in err


@contextmanager
def as_nobody():
    """Lose the rights of root, which reads everything; who has none keeps what there is."""
    if os.geteuid() != 0:
        yield
        return
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def shared():
    """A folder that others may look into."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("verb", ["verify", "inspect", "ls", "replay"])
def test_unreadable(shared, capsys, verb):
    file = make(shared, "good")
    tail = ("--", "true") if verb == "replay" else ()
    if verb != "replay":  # whatever is imported late is imported now
        assert judged(capsys, verb, file)[0] == 0
    file.chmod(0)
    with as_nobody():
        status, out, err = judged(capsys, verb, file, *tail)
    assert status == 2
    assert "unreadable" in out + err


def test_a_folder_that_cannot_be_looked_into_is_not_passed_over(shared, capsys):
    make(shared, "good")
    (shared / "closed").mkdir()
    make(shared / "closed", "flipped")
    (shared / "closed").chmod(0)
    with as_nobody():
        status, out, _ = judged(capsys, "verify", shared)
    assert status == 2
    assert f"{shared}/closed: unreadable: " in out


def test_all_inputs_are_judged_and_2_beats_1_beats_0(tmp_path, capsys):
    files = {}
    for name in ("good", "flipped", "newer"):
        (tmp_path / name).mkdir()
        files[name] = make(tmp_path / name, name)
    for names, expected in (
        (("good", "good"), 0),
        (("flipped", "good"), 1),
        (("newer", "flipped", "good"), 2),
        (("flipped", "newer"), 2),
    ):
        for verb in ("verify", "ls", "inspect"):
            status, out, err = judged(capsys, verb, *(files[name] for name in names))
            assert status == expected, (verb, names)
            assert all(str(files[name]) in out + err for name in names)


def test_a_folder_stands_for_its_cassettes_and_partials(tmp_path, capsys):
    (tmp_path / "b").mkdir()
    make(tmp_path, "good")
    make(tmp_path / "b", "good")
    make(tmp_path, "partial")
    (tmp_path / "notes.jsonl").write_text("{}")
    (tmp_path / "b" / "loop").symlink_to(tmp_path)
    (tmp_path / (NAME + ".partial.0011aabb")).write_bytes(LINES[0])
    status, out, _ = judged(capsys, "verify", tmp_path)
    assert status == 1
    assert [line.partition(": ")[0] for line in out.splitlines()] == [
        f"{tmp_path}/{NAME}",
        f"{tmp_path}/{NAME}.partial",
        f"{tmp_path}/{NAME}.partial.0011aabb",
        f"{tmp_path}/b/{NAME}",
    ]
    status, out, _ = judged(capsys, "ls", tmp_path)
    assert (status, [line.split()[0] for line in out.splitlines()[1:]]) == (1, ["complete", "open", "open", "complete"])


def test_a_folder_without_cassettes_is_no_good_input(tmp_path, capsys):
    status, out, _ = judged(capsys, "verify", tmp_path)
    assert status == 2
    assert "(not_a_file)" in out


@pytest.mark.parametrize(
    ("verb", "expected", "words"),
    [
        ("verify", 2, "(not_a_file)"),
        ("inspect", 2, "no cassette in this folder"),
        ("ls", 0, "no cassettes here"),
        ("scan", 2, "(not_a_file)"),
    ],
)
@pytest.mark.parametrize("name", ["empty", "empty/", "."])
def test_a_folder_without_cassettes_is_told_the_same_however_it_is_named(
    tmp_path, monkeypatch, capsys, verb, expected, words, name
):
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty if name == "." else tmp_path)
    status, out, err = judged(capsys, verb, name)
    assert status == expected
    assert f"{name}: " in out + err
    assert words in out + err


@pytest.mark.parametrize(("name", "expected"), [("good", 0), ("flipped", 1), ("newer", 2), ("empty", 1)])
def test_stdin(monkeypatch, capsys, name, expected):
    read, write = os.pipe()
    with os.fdopen(write, "wb") as pipe:
        pipe.write(FILES[name][0])
    with os.fdopen(read, encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        status, out, _ = judged(capsys, "verify", "-", "-")  # read once, judged twice
    first, second = out.splitlines()
    assert status == expected
    assert first == second
    assert first.startswith("-: ")


def test_files_from(tmp_path, capsys):
    good = make(tmp_path, "good")
    bad = tmp_path / "bad one.jsonl"
    bad.write_bytes(FILES["flipped"][0])
    many = tmp_path / "list"
    many.write_text(f"{bad}\n\n{good}\r\n")
    status, out, _ = judged(capsys, "verify", "--files-from", many)
    assert status == 1
    assert [line.partition(": ")[0] for line in out.splitlines()] == [str(bad), str(good)]
    many.write_text("\n\n")
    assert judged(capsys, "verify", "--files-from", many)[0] == 2
    status, _, err = judged(capsys, "verify", "--files-from", tmp_path / "absent")
    assert status == 2
    assert "no such file or directory" in err


def test_github_annotations_point_at_the_line(tmp_path, capsys):
    good, bad = make(tmp_path, "good"), tmp_path / "50%,a:b.jsonl"
    bad.write_bytes(FILES["flipped"][0])
    status, out, _ = judged(capsys, "verify", "--format", "github", good, bad)
    frame = next(n for n, line in enumerate(LINES) if b"sunny" in line)
    assert status == 1
    assert out.startswith(f"::error file={tmp_path}/50%25%2Ca%3Ab.jsonl,line={frame + 1},title=cassette damaged::")
    assert out.count("\n") == 1
