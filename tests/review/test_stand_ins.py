"""What ``inspect``, ``view`` and ``diff`` show of rules, effects and stand-ins."""

from __future__ import annotations

import json

import pytest

import toolcassette as tc
from tests.review.helpers import NAME, Repo, call, cassette_bytes
from toolcassette.view import view

KEY = "sk-proj-Zx81kQm0pLw93vTtB2"


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path)


@pytest.fixture
def recorded(repo):
    """A recording with a secret as text, as bytes and inside a text, by tools that write and that say nothing."""

    def order(api_key: str, token: bytes, note: str) -> list[str]:
        return [api_key, f"with {api_key}"]

    def look(pin: str) -> str:
        return pin

    tools = tc.Registry()
    order, look = tools.wrap(order, effect="pay"), tools.wrap(look)
    with tc.record(repo.folder / NAME, ["*"], redact=["pin"], secrets=["plumtree"]):
        order(KEY, b"0123456789abc", "for plumtree")
        look("9381")
    return repo


def test_inspect_shows_rules_and_effects(recorded):
    status, out, _ = recorded.tool("inspect", NAME)
    words = [line.split() for line in out.splitlines()]
    (rules,) = [row for row in words if row[:1] == ["rules"]]
    assert rules[1] == "default/1,"
    assert rules[2].startswith("pin#")
    assert rules[3] == "declared"
    assert ["look", "tool", "1", "1", "ok", "-", "-"] in words
    assert ["order", "tool", "1", "1", "ok", "-", "pay"] in words
    assert [row[-1] for row in words if row[:1] in (["0"], ["1"])] == ["pay", "-"]
    _, out, _ = recorded.tool("inspect", NAME, "--format", "json")
    (row,) = json.loads(out)
    assert row["rules"] == list(tc.inspect(recorded.folder / NAME).rules)
    assert [tool["effect"] for tool in row["tools"]] == [None, "pay"]
    assert [record["effect"] for record in row["records"]] == ["pay", None]
    assert status == 0


def test_inspect_of_a_recording_without_rules_and_effects(repo):
    repo.write(cassette_bytes(call()))
    words = [line.split() for line in repo.tool("inspect", NAME)[1].splitlines()]
    assert ["rules", "none:", "nothing", "was", "redacted"] in words
    assert ["tool", "boundary", "calls", "outcomes", "left", "out"] in words


def test_inspect_of_a_folder_without_a_cassette(repo):
    (repo.folder / "empty").mkdir()
    assert repo.tool("inspect", "empty") == (2, "", "toolcassette: empty: no cassette in this folder\n")
    assert "no cassette of this name" in repo.tool("inspect", "gone")[2]


def test_stand_ins_are_shown_in_words(recorded):
    _, out, _ = recorded.tool("inspect", NAME, "--show-values")
    assert '"api_key":"⟦redacted:api-key:' in out
    assert '⟧ (bytes)"' in out
    assert "$tc" not in out
    _, out, _ = recorded.tool("view", NAME)
    lines = [line.strip() for line in out.splitlines()]
    assert any(line.startswith("api_key: ⟦redacted:api-key:") for line in lines)
    assert any(line.startswith("token: ⟦redacted:token:") and line.endswith("⟧ (bytes)") for line in lines)
    assert any(line.startswith('- "with ⟦redacted:') for line in lines)
    assert 'effect: "pay"' in lines
    assert "$tc" not in out
    assert [line for line in lines if line.startswith('- "pin#')]


def test_a_stand_in_is_told_from_a_text_that_looks_like_one():
    def shown(value):
        return view(tc.parse_cassette(cassette_bytes(call(value=value))))

    tag = '{"$tc":"redacted","n":1,"rule":"x"}'
    texts = {
        shown(data.encode())
        for data in (tag, '"⟦redacted:x:1⟧"', '"⟦\\\\redacted:x:1⟧"', tag.replace('"n":1,', '"n":1,"of":"bytes",'))
    }
    assert len(texts) == 4
    assert sum("value: ⟦redacted:x:1⟧" in text for text in texts) == 2
    handed = shown(tag.replace("}", ',"v":5}').encode())  # what is handed out in its place is to be seen
    assert "v: 5" in handed


def test_diff_shows_rules_and_stand_ins(recorded):
    with tc.record(recorded.folder / "b.cassette.jsonl", ["*"]):
        tc.Registry().wrap(lambda pin: pin, name="look")("9381")
    status, out, _ = recorded.tool("diff", NAME, "b.cassette.jsonl", "--show-values")
    assert status == 1
    assert "    $.header.rules[1] removed" in out
    assert '    $.args.pin changed: "⟦redacted:pin:' in out
    assert KEY not in out
