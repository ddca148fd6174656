"""What the command line shows of a cassette, and what it never shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.helpers import NAME, cassette
from toolcassette import RecordedCall, __version__, canonical_json, read_cassette
from toolcassette.cli import main

VERBS = ("verify", "inspect", "ls", "record", "replay", "schema")
SCHEMAS = Path(__file__).resolve().parents[2] / "schemas" / "v1"


@pytest.fixture
def shown(capsys):
    def ask(*args):
        status = main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return status, out, err

    return ask


@pytest.fixture
def good(tmp_path):
    file = tmp_path / NAME
    file.write_bytes(cassette(include=["weather", "clo*"]))
    return file


def test_inspect_text(good, shown):
    status, out, err = shown("inspect", good)
    assert (status, err) == (0, "")
    words = [line.split() for line in out.splitlines()]
    assert words[0] == [f"{good}:", "intact,", "unsigned"]
    for fact in (
        ["format", "toolcassette/1"],
        ["cassette", "ab" * 16],
        ["created", "2026-01-02T03:04:05.000000Z"],
        ["include", "weather,", "clo*"],
        ["order", "strict"],
        ["sync", "close"],
        ["frames", "8"],
        ["calls", "3", "(2", "ok,", "1", "error)"],
        ["signed", "no"],
        ["clock", "tool", "1", "1", "error", "-"],
        ["weather", "tool", "2", "2", "ok", "conn"],
        ["0", "weather", "/", "0", "ok", "1.500"],
        ["1", "weather", "/", "1", "ok", "0.001"],
        ["2", "clock", "/", "2", "error", "0.000"],
    ):
        assert fact in words
    assert "replay consumes all 3 calls, in this order; " in out


def test_inspect_of_calls_in_paths_and_streams(tmp_path, shown):
    file = tmp_path / NAME
    calls = [
        RecordedCall(tool="a", args=b"{}", path=("researcher", "x/y"), value=b"1"),
        RecordedCall(tool="a", args=b"{}", value=b"1"),
        RecordedCall(tool="a", args=b"{}", path=("researcher", "x/y"), chunks=(b"1", b"2")),
        RecordedCall(tool="a", args=b"{}", outcome="cancelled", phase="before_body"),
    ]
    file.write_bytes(cassette(calls))
    words = [line.split() for line in shown("inspect", file)[1].splitlines()]
    assert ["0", "a", "/researcher/x/y", "0", "ok", "0.000"] in words
    assert ["1", "a", "/", "0", "ok", "0.000"] in words
    assert ["2", "a", "/researcher/x/y", "1", "ok", "after", "2", "chunks", "0.000"] in words
    assert ["3", "a", "/", "1", "cancelled", "before_body", "0.000"] in words
    _, out, _ = shown("inspect", "--format", "json", "--show-values", file)
    (row,) = json.loads(out)
    assert [(r["path"], r["ordinal"], r["chunks"]) for r in row["records"]] == [
        (["researcher", "x/y"], 0, None),
        ([], 0, None),
        (["researcher", "x/y"], 1, 2),
        ([], 1, None),
    ]
    assert row["records"][2]["values"] == {"args": {}, "chunks": [1, 2]}


def test_inspect_json(good, shown):
    status, out, _ = shown("inspect", "--format", "json", good)
    (row,) = json.loads(out)
    assert status == 0
    assert row["state"] == "complete"
    assert row["calls"] == 3
    assert [tool["tool"] for tool in row["tools"]] == ["clock", "weather"]
    assert [(r["call"], r["tool"], r["outcome"]) for r in row["records"]] == [
        (0, "weather", "ok"),
        (1, "weather", "ok"),
        (2, "clock", "error"),
    ]
    assert all("values" not in record for record in row["records"])


def test_inspect_shows_nothing_of_a_partial_whole_or_not(good, shown):
    partial = good.rename(good.with_name(NAME + ".partial"))
    status, out, err = shown("inspect", partial)
    assert (status, out) == (1, "")
    assert "(not_published)" in err


def test_inspect_of_a_file_that_changes_meanwhile(good, shown, monkeypatch):
    """Another process spoils it after it was judged."""

    def late(*args, **options):
        good.write_bytes(good.read_bytes()[:-10])
        return read_cassette(*args, **options)

    monkeypatch.setattr("toolcassette.cli.inspecting.read_cassette", late)
    status, out, err = shown("inspect", good)
    assert (status, out) == (1, "")
    assert "torn" in err


def test_values_are_shown_only_when_asked_for(tmp_path, shown):
    canaries = ("CANARY-ARGUMENT", "CANARY-VALUE", "CANARY-ERROR")
    file = tmp_path / NAME
    long = b'"' + b"x" * 5000 + b'CANARY-END"'
    file.write_bytes(
        cassette(
            [
                RecordedCall(tool="t", args=b'{"a":"CANARY-ARGUMENT"}', value=b'"CANARY-VALUE"'),
                RecordedCall(tool="t", args=b'{"a":"CANARY-ARGUMENT"}', value=long),
                RecordedCall(tool="t", args=b"{}", outcome="error", error=b'{"type":"E","message":"CANARY-ERROR"}'),
            ]
        )
    )
    damaged = tmp_path / ("x" + NAME)
    damaged.write_bytes(file.read_bytes().replace(b"CANARY-VALUE", b"CANARY-value"))
    for args in (("verify", "--deep"), ("verify", "--format", "json"), ("verify", "--format", "github"), ("ls",)):
        assert "CANARY" not in "".join(shown(*args, file, damaged)[1:])
    for args in (("inspect",), ("inspect", "--format", "json")):
        assert "CANARY" not in "".join(shown(*args, file, damaged)[1:])
        _, out, err = shown(*args, "--show-values", file, damaged)
        assert all(canary in out for canary in canaries)
        assert ("CANARY-END" in out) is ("json" in args)  # text is cut
        assert "CANARY" not in err


HOSTILE = "we\x1b[31m\u202eather\x9b\u200b\u2028\x7f"


@pytest.mark.parametrize(
    "args",
    [
        ("verify",),
        ("verify", "--format", "json"),
        ("verify", "--format", "github"),
        ("inspect",),
        ("inspect", "--show-values"),
        ("inspect", "--format", "json", "--show-values"),
        ("ls",),
        ("ls", "--format", "json"),
        ("replay",),
        ("record", "--include", "x"),
    ],
)
def test_nothing_from_a_file_or_a_name_reaches_the_terminal_raw(tmp_path, shown, args):
    value = canonical_json({HOSTILE: HOSTILE})
    calls = [RecordedCall(tool=HOSTILE, args=value, path=(HOSTILE,), value=value, omitted=(HOSTILE,))]
    file = tmp_path / f"{HOSTILE}.cassette.jsonl"
    file.write_bytes(cassette(calls, producer=HOSTILE))
    bad = tmp_path / f"{HOSTILE}2.cassette.jsonl"
    bad.write_bytes(cassette(calls).replace(b'"calls":1', b'"calls":2'))
    inputs = (file, "--", HOSTILE) if args[0] in ("replay", "record") else (file, bad, tmp_path / HOSTILE)
    status, out, err = shown(*args, *inputs)
    assert status in (1, 2)
    assert "we" in out + err
    assert not set(out + err) & set("\x1b\u202e\x9b\u200b\u2028\x7f")
    for arg in ([HOSTILE], ["verify", f"--{HOSTILE}"], ["schema", HOSTILE], ["verify", "--files-from", HOSTILE]):
        status, out, err = shown(*arg)
        assert (status, out) == (2, "")
        assert not set(err) & set("\x1b\u202e\x9b\u200b\u2028\x7f")


def test_ls_lists_tools(good, shown):
    _, out, _ = shown("ls", good.parent)
    row = ["complete", "tools", "3", "2026-01-02T03:04:05", str(good), "clock,", "weather", "-"]
    assert out.splitlines()[1].split() == row
    status, out, _ = shown("ls", "--format", "json", good.parent)
    (row,) = json.loads(out)
    assert (status, row["state"], row["calls"], row["tools"]) == (0, "complete", 3, ["clock", "weather"])


def test_ls_looks_where_one_is(good, shown, monkeypatch):
    monkeypatch.chdir(good.parent)
    assert f"./{NAME}" in shown("ls")[1]


@pytest.mark.parametrize("args", [("schema",), ("schema", "frame"), ("schema", "error")])
def test_schema_prints_what_the_specification_ships(shown, args):
    status, out, err = shown(*args)
    what = args[1] if len(args) > 1 else "frame"
    assert (status, err) == (0, "")
    assert json.loads(out) == json.loads((SCHEMAS / f"{what}.schema.json").read_text("utf-8"))


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("verb", [None, *VERBS])
def test_help(shown, verb, flag):
    status, out, err = shown(*([verb] if verb else []), flag)
    assert (status, err) == (0, "")
    assert out.startswith(f"Usage: toolcassette {verb or ''}")
    assert verb is not None or all(f"\n  {name} " in out for name in VERBS)


def test_version(shown):
    assert shown("--version") == (0, f"toolcassette {__version__}\n", "")


def test_no_verb_shows_the_help_and_is_a_usage_error(shown):
    status, out, err = shown()
    assert (status, out) == (2, "")
    assert err.startswith("Usage: toolcassette ")


@pytest.mark.parametrize(
    "args",
    [
        ("what",),
        ("--what",),
        ("verify",),
        ("verify", "--what"),
        ("verify", "--format", "xml", "x"),
        ("verify", "x", "--files-from"),
        ("inspect",),
        ("schema", "header"),
        ("record",),
        ("record", NAME, "--", "true"),
        ("record", NAME, "--include", "x"),
        ("record", NAME, "--include", "", "--", "true"),
        ("record", NAME, "--include", "x", "--include", "x", "--", "true"),
        ("record", NAME, "--include", "x,x", "--", "true"),
        ("record", NAME, "--include", "x", "--sync", "sometimes", "--", "true"),
        ("record", "", "--include", "x", "--", "true"),
        ("record", "folder/", "--include", "x", "--", "true"),
        ("record", "a\0b", "--include", "x", "--", "true"),
        ("replay",),
        ("replay", NAME),
        ("replay", "", "--", "true"),
        ("replay", "a\0b", "--", "true"),
        ("replay", NAME, "python", "-c", "pass"),
    ],
)
def test_usage_errors_are_one_line_that_says_where_to_read_on(tmp_path, shown, monkeypatch, args):
    monkeypatch.chdir(tmp_path)
    status, out, err = shown(*args)
    assert (status, out) == (2, "")
    assert err.startswith("toolcassette: ")
    assert err.count("\n") == 1
    said = err.removeprefix("toolcassette: ").rstrip("\n")
    assert said[0].islower()
    assert not said.endswith(".")
    assert said.endswith(" --help")
    assert list(tmp_path.iterdir()) == []


def test_a_replay_whose_include_misses_a_recorded_tool_is_refused_at_once(good, shown):
    status, _, err = shown("replay", good, "--include", "weather", "--", "touch", good.parent / "ran")
    assert status == 2
    assert "include does not select clock" in err
    assert not (good.parent / "ran").exists()


@pytest.mark.parametrize("verb", ["record", "replay"])
def test_a_command_that_cannot_be_run(good, shown, verb):
    (good.parent / "locked").write_text("#!/bin/sh\n")
    (good.parent / "garbage").write_bytes(b"\x7fELF")
    (good.parent / "garbage").chmod(0o755)
    file = good if verb == "replay" else good.with_name("new.cassette.jsonl")
    include = ("--include", "x") if verb == "record" else ()
    for name, why in (("absent", "no such file"), ("locked", "permission denied"), ("garbage", "format error")):
        status, out, err = shown(verb, file, *include, "--", good.parent / name)
        assert (status, out) == (2, "")
        assert f"could not run {good.parent / name}: " in err
        assert why in err


def test_an_internal_error_is_2_and_shows_its_class_alone(good, shown, monkeypatch):
    def broken(*args, **options):
        raise ZeroDivisionError("CANARY")

    monkeypatch.setattr("toolcassette.cli.looking.verify_all", broken)
    status, out, err = shown("verify", good)
    assert (status, out) == (2, "")
    assert err == "toolcassette: internal error: ZeroDivisionError; please report it, with the command\n"


def test_a_terminal_of_a_small_alphabet_gets_escapes(tmp_path, capfdbinary, monkeypatch):
    import io
    import sys

    file = tmp_path / NAME
    file.write_bytes(cassette([RecordedCall(tool="wetter_für", args=b"{}", value=b"1")]))
    stream = io.TextIOWrapper(io.FileIO(1, "wb", closefd=False), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(["ls", str(file)]) == 0
    assert rb"wetter_f\xfcr" in capfdbinary.readouterr().out
