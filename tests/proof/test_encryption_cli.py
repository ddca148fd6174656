"""Encryption on the command line: keys, recording, replaying, looking, and each exit status."""

from __future__ import annotations

import json
import stat

import pytest

import toolcassette as tc
from tests.cli.helpers import NAME, bodies, program, record, replay, run
from tests.proof.helpers import rehashed
from toolcassette.crypto import Identity, Recipient

ANN = {"TOOLCASSETTE_IDENTITY": "ann"}


@pytest.fixture
def keys(tmp_path):
    """Two pairs, made by the command line: ann and ben."""
    for name in ("ann", "ben"):
        assert run(tmp_path, "keygen", name, "--encryption").returncode == 0
    return tmp_path


@pytest.fixture
def encrypted(keys):
    """A cassette for ann."""
    program(keys)
    done = record(keys, "--recipient", "ann.pub")
    assert done.returncode == 0, done.stderr
    bodies(keys)
    return keys / NAME


def test_keygen(tmp_path):
    done = run(tmp_path, "keygen", "me", "--encryption")
    assert done.returncode == 0
    assert done.stderr.replace("toolcassette: ", "") == "made me and me.pub\n"
    [identity] = Identity.parse_all((tmp_path / "me").read_bytes())
    assert Recipient.parse(done.stdout.strip()) == identity.recipient
    assert (tmp_path / "me.pub").read_text("utf-8") == done.stdout
    assert stat.S_IMODE((tmp_path / "me").stat().st_mode) == 0o600


def test_record_and_replay(encrypted, keys):
    assert b"Wuhan" not in encrypted.read_bytes()
    done = replay(keys, "--identity", "ann")
    assert done.returncode == 0, done.stderr
    assert "no trusted key signed it" in done.stderr
    assert bodies(keys) == []
    for options, reason in (((), "identity_missing"), (("--identity", "ben"), "identity_wrong")):
        done = replay(keys, *options)
        assert (done.returncode, bodies(keys)) == (2, [])
        assert f"({reason})" in done.stderr
    assert replay(keys, **ANN).returncode == 0


def test_a_junk_recipient_is_told_before_the_command_runs(keys):
    program(keys)
    done = record(keys, "--recipient", "x25519+nonsense")
    assert done.returncode == 2
    assert "(recipient_junk)" in done.stderr
    assert bodies(keys) == []


def test_verify_and_ls_need_no_key(encrypted, keys):
    done = run(keys, "verify", "--deep", NAME)
    assert (done.returncode, done.stdout.split(" (")[0]) == (0, f"{NAME}: intact, encrypted, unsigned")
    [row] = json.loads(run(keys, "verify", "--format", "json", NAME).stdout)
    assert row["encrypted"] is True
    done = run(keys, "ls", NAME)
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].split()[:2] == ["complete", "encrypted"]


def test_inspect_shows_what_is_clear_and_says_what_is_missing(encrypted, keys):
    done = run(keys, "inspect", NAME)
    assert done.returncode == 2
    assert "(identity_missing)" in done.stderr
    assert "sealed: no key is here" in done.stdout
    assert "2 ok" in done.stdout
    assert "weather" not in done.stdout.replace(NAME, "")
    [row] = json.loads(run(keys, "inspect", "--format", "json", NAME).stdout)
    assert (row["locked"], row["records"], row["calls"]) == ("identity_missing", [], 2)
    done = run(keys, "inspect", "--show-values", NAME, **ANN)
    assert (done.returncode, done.stderr) == (0, "")
    assert "CANARY-VALUE" in done.stdout


@pytest.mark.parametrize("verb", [["view", NAME], ["diff", NAME, NAME], ["scan", NAME]])
def test_without_a_key_nothing_can_be_said(encrypted, keys, verb):
    done = run(keys, *verb)
    assert (done.returncode, done.stdout) == (2, "")
    assert "(identity_missing)" in done.stderr
    assert NAME in done.stderr
    assert run(keys, *verb, **ANN).returncode == 0


def test_git_shows_that_it_is_encrypted(encrypted, keys):
    done = run(keys, "view", "--textconv", NAME)
    assert done.returncode == 0
    assert done.stdout.startswith("not shown: encrypted: ")


def test_a_forged_one_is_a_finding(encrypted, keys):
    lines = encrypted.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"enc":"', b'"enc":"AAAA')
    encrypted.write_bytes(rehashed(lines))
    assert run(keys, "verify", NAME).returncode == 0
    for verb in (["inspect", NAME], ["view", NAME], ["replay", NAME, "--", "agent.py"]):
        done = run(keys, *verb, **ANN)
        assert (done.returncode, done.stdout) == (1, "")
        assert "(forged)" in done.stderr


def test_rewrap(encrypted, keys):
    done = run(keys, "rewrap", NAME, "new.cassette.jsonl", "--recipient", "ben.pub", "--identity", "ann")
    assert (done.returncode, done.stdout) == (0, "")
    assert len(tc.read_cassette(keys / "new.cassette.jsonl", identities=[str(keys / "ben")])) == 2
    for arguments, status, said in (
        ((NAME, "new.cassette.jsonl", "--recipient", "ben.pub", "--identity", "ann"), 2, "exists already"),
        ((NAME, "other.cassette.jsonl", "--recipient", "ben.pub"), 2, "(identity_missing)"),
        ((NAME, "other.cassette.jsonl"), 2, "--recipient"),
        (("absent.cassette.jsonl", "other.cassette.jsonl", "--recipient", "ben.pub"), 2, "(absent)"),
    ):
        done = run(keys, "rewrap", *arguments)
        assert done.returncode == status
        assert said in done.stderr
    assert not (keys / "other.cassette.jsonl").exists()


def test_merge_needs_no_key(encrypted, keys):
    (keys / "there").mkdir()
    assert run(keys, "merge", ".", "there").returncode == 0
    assert (keys / "there" / NAME).read_bytes() == encrypted.read_bytes()
    assert run(keys, "merge", ".", "there").returncode == 0
