"""Bug reports of record-and-replay tools that are about secrets: C-06 with rules, C-07 and C-08.

Rule: the number is that of the case in the collection of reports from which these were taken.
"""

from __future__ import annotations

import json
import logging
import pickle
import subprocess
import sys
import traceback
import uuid

import pytest

import toolcassette as tc
from tests.cases.programs import SRC, dead, fails, live, record, refused, replay
from tests.redaction.attacker import holds

CANARY = "sk-CANARY-77"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "case.cassette.jsonl"


def fetch(url, api_key):
    return f"page of {url}"


def test_c06_a_rotated_key_matches_under_the_same_rule(file):
    """Another key is a hit, another url is none; without the rule the mismatch names it; verify needs no key."""

    def get(url, badge):
        return f"page of {url}"

    rule = {"redact": ["badge"]}
    record(file, lambda: live(get)(url="u", badge="sk-AAAA"), **rule)
    assert replay(file, lambda: dead(get)(url="u", badge="sk-BBBB"), **rule) == "page of u"
    assert not holds(file.read_bytes(), b"sk-AAAA")
    assert tc.verify(file, deep=True).ok
    with fails(tc.CassetteMismatch) as left, tc.replay(file, **rule):
        refused(lambda: dead(get)(url="v", badge="sk-BBBB"))
    assert left["error"].differs == ("$.url",)
    with fails(tc.CassetteMismatch) as left, tc.replay(file):
        refused(lambda: dead(get)(url="u", badge="sk-BBBB"))
    assert "badge" in str(left["error"])
    assert "sk-BBBB" not in str(left["error"])


def test_c06_the_default_rules_know_the_name(file):
    record(file, lambda: live(fetch)(url="u", api_key="sk-AAAA"), redact=["api_key"])
    assert replay(file, lambda: dead(fetch)(url="u", api_key="sk-BBBB"), redact=["api_key"]) == "page of u"
    file.unlink()
    record(file, lambda: live(fetch)(url="u", api_key="sk-AAAA"))
    assert replay(file, lambda: dead(fetch)(url="u", api_key="sk-BBBB")) == "page of u"
    assert b"sk-AAAA" not in file.read_bytes()


def test_c07_a_secret_in_a_field_that_nobody_listed(file):
    """A shape finds the one, a name the other; hashes and ids in the same result stay byte for byte."""
    shaped, named = "AIza" + "x" * 35, "0123abcd"
    kept = {"commit": "31d4d96e407aad42fbd2a0b1e4dc1c43d57f45a2", "id": str(uuid.UUID(int=2**100 + 7))}

    def call():
        return {"JrWMbf": shaped, "hdr": {"Api-Key": named}, **kept}

    assert record(file, live(call)) == call()  # the program has the live values
    data = file.read_bytes()
    for secret in (shaped, named):
        assert not holds(data, secret.encode())
    value = json.loads(data.splitlines()[2])["value"]
    assert value == {
        "JrWMbf": {"$tc": "redacted", "n": 1, "rule": "google-api-key"},
        "hdr": {"Api-Key": {"$tc": "redacted", "n": 2, "rule": "api-key"}},
        **kept,
    }
    stands_in = {"JrWMbf": "⟦redacted:google-api-key:1⟧", "hdr": {"Api-Key": "⟦redacted:api-key:2⟧"}}
    assert replay(file, dead(call)) == stands_in | kept


def chain(error):
    """An exception and all that hangs on it, as texts."""
    seen, todo, texts = set(), [error], []
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        todo += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
        texts += [str(one), repr(one), repr(vars(one)), repr(one.args), *getattr(one, "__notes__", ())]
    return texts


def locals_of_ours(error):
    """The reprs of what stands in our frames of a traceback, objects of ours with what they show of themselves."""
    texts = []
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if str(SRC) in frame.f_code.co_filename:
            ours = (value for value in frame.f_locals.values() if type(value).__module__.startswith("toolcassette"))
            texts += [f"{type(value).__name__} {value!r}" for value in ours]
    return texts


def test_c08_the_error_does_not_leak(file, caplog, recwarn):
    """Text, repr, causes, notes, pickles, log records, warnings, and what our frames show of objects of ours."""
    caplog.set_level(logging.DEBUG)
    record(file, lambda: live(fetch)(url="u", api_key="sk-AAAA"))
    with fails(tc.CassetteMismatch) as left, tc.replay(file) as session:
        error = refused(lambda: dead(fetch)(url="v", api_key=CANARY))
        again = refused(lambda: dead(fetch)(url="u", api_key=CANARY))
    said = [text for one in (error, again, left["error"]) for text in (*chain(one), *locals_of_ours(one))]
    said += [pickle.dumps(one).decode("latin-1") for one in (error, again, left["error"])]
    said += [repr(session), repr(session.verdict), repr(session.cassette), str(session.verdict)]
    said += [record.getMessage() for record in caplog.records] + [str(warning.message) for warning in recwarn]
    assert len(said) > 10
    assert not [text for text in said if "CANARY" in text]
    assert file.read_bytes().count(b"CANARY") == 0


TEST = """
import logging
import toolcassette as tc

def fetch(url, api_key):
    return "page"

def test_it():
    logging.getLogger().setLevel(logging.DEBUG)
    tool = tc.Registry().wrap(fetch)
    with tc.replay({file!r}):
        tool("v", "".join(["sk-", "CANARY", "-77"]))
"""


def test_c08_the_report_of_pytest_does_not_leak(file, tmp_path):
    """``-vv --showlocals``: the user's own frames show what they like, no object of ours shows the secret."""
    record(file, lambda: live(fetch)(url="u", api_key="sk-AAAA"))
    (tmp_path / "test_it.py").write_text(TEST.format(file=str(file)), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-vv", "--showlocals", "-p", "no:cacheprovider", "--tb=long", "test_it.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(SRC), "PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "arguments_differ" in done.stdout
    shown = [line for line in (done.stdout + done.stderr).splitlines() if "CANARY" in line]
    # The line of the test's own source; what a wrapper was called with are objects of the caller's. There is no other.
    assert {line.split("=")[0].strip() for line in shown if '"".join(' not in line} <= {"args"}
