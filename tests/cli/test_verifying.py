"""``verify`` on large inputs: workers change no word, and only a terminal is told how far it is."""

from __future__ import annotations

import importlib
import io
import sys

import pytest
from click.testing import CliRunner

import toolcassette as tc
from toolcassette.cli import outlet
from toolcassette.cli.looking import verify_verb
from toolcassette.format import write_cassette

CALL = tc.RecordedCall("t", b"{}", value=b"1")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A whole cassette, a torn one and a damaged one; large enough for workers, for this test."""
    monkeypatch.setattr(importlib.import_module("toolcassette.verify"), "SIDE_BY_SIDE_BYTES", 0)
    data = write_cassette([CALL] * 50, cassette="0" * 32, created="2026-01-02T03:04:05.678901Z", producer="tests")
    (tmp_path / "a.cassette.jsonl").write_bytes(data)
    (tmp_path / "b.cassette.jsonl").write_bytes(data[:-9])
    (tmp_path / "c.cassette.jsonl").write_bytes(data.replace(b'"call":7,"outcome":"ok"', b'"call":8,"outcome":"ok"'))
    return tmp_path


def said(*arguments):
    return CliRunner().invoke(verify_verb, [str(a) for a in arguments], standalone_mode=False)


def test_jobs_say_the_same(folder):
    alone = said("-j", "1", folder)
    assert [line.split(": ")[1] for line in alone.stdout.splitlines()] == [
        "intact, unsigned (102 frames, 50 calls, head " + alone.stdout.split("head ")[1][:8] + ")",
        "torn",
        "damaged",
    ]
    for jobs in ("0", "2", "3"):
        again = said("-j", jobs, "--deep", folder)
        assert (again.output, again.return_value) == (alone.output, alone.return_value)


def test_negative_jobs_are_wrong_usage(folder):
    assert "-1 is not in the range" in str(said("-j", "-1", folder).exception)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("after", [0.0, 60.0])
def test_progress_is_one_line_that_goes_away(monkeypatch, after):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(outlet, "_PROGRESS_AFTER_SECONDS", after)
    with outlet.progressing("verifying") as tell:
        assert tell is not None
        for done in (0, 5 * 2**20, 10 * 2**20):
            tell(done, 10 * 2**20)
    lines = terminal.getvalue().split("\r")
    if after:
        assert lines == [""]
    else:
        assert [line.strip() for line in lines if line.strip()] == [f"verifying: {n}% of 10 MiB" for n in (0, 50, 100)]
        assert lines[-1] == ""
        assert lines[-2].strip() == ""
    assert "\n" not in terminal.getvalue()


def test_no_progress_where_nobody_watches(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with outlet.progressing("verifying") as tell:
        assert tell is None
    assert log.getvalue() == ""
