"""``cassettes.lock``: what it finds, what it cannot be talked into, and how a merge that went wrong is mended."""

from __future__ import annotations

import json

import pytest

import toolcassette as tc
from tests.proof.helpers import Keys, cassette_bytes, put
from tests.review.helpers import Repo
from toolcassette.lock import LOCK_NAME, Entry, entry_of, lock_bytes, parse_lock, reason_of

A, B, C = "a.cassette.jsonl", "sub/b.cassette.jsonl", "sub/c.cassette.jsonl"
SUN, RAIN, SNOW = cassette_bytes("sun"), cassette_bytes("rain"), cassette_bytes("snow", cassette="cd" * 16)


@pytest.fixture
def repo(tmp_path):
    repo = Repo(tmp_path)
    (repo.folder / "sub").mkdir()
    return repo


def write(repo, **cassettes):
    names = {"a": A, "b": B, "c": C}
    for name, data in cassettes.items():
        (repo.folder / names[name]).write_bytes(data)


def lock(repo, *args):
    status, out, err = repo.tool("lock", *args)
    assert status == 0, err
    return out.splitlines()


def verdict(repo, *args):
    """Exit status, and the reason of each finding by path."""
    status, out, _ = repo.tool("verify", "--locked", "--format", "json", *args)
    return status, {r["path"].removeprefix("./"): r["reason"] for r in json.loads(out) if r["reason"]}


def test_lock_and_verify(repo):
    write(repo, a=SUN, b=RAIN)
    assert [line.split(" (")[0] for line in lock(repo)] == [f"added: {A}", f"added: {B}"]
    head = tc.verify(repo.folder / A).head
    lines = (repo.folder / LOCK_NAME).read_text("utf-8").splitlines()
    assert lines[0] == '{"format":"toolcassette-lock/1"}'
    assert json.loads(lines[1]) == {"path": A, "cassette": "ab" * 16, "head": head, "frames": 4}
    assert len(lines) == 3
    assert verdict(repo) == (0, {})
    assert verdict(repo, A) == (0, {})
    assert verdict(repo, str(repo.folder / B)) == (0, {})  # however it is spelled
    assert lock(repo) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"a": RAIN}, {A: "lock_differs"}),
        ({"a": RAIN, "b": SUN}, {A: "lock_differs", B: "lock_differs"}),  # swapped for one another
        ({"b": SNOW}, {B: "lock_differs"}),
        ({"c": SNOW}, {C: "not_locked"}),
        ({"c": SUN}, {C: "not_locked"}),  # a copy of one that is locked
    ],
)
def test_swaps_rollbacks_and_newcomers(repo, change, found):
    write(repo, a=SUN, b=RAIN)
    lock(repo)
    write(repo, **change)
    assert verdict(repo) == (1, found)


def test_a_rollback_of_a_signed_cassette_is_found(repo):
    keys = Keys(repo.home / "keys")
    old = put(repo.folder / A, SUN, keys.signer("ci")).read_bytes(), (repo.folder / f"{A}.sig").read_bytes()
    put(repo.folder / A, RAIN, keys.signer("ci"))
    lock(repo)
    trusted = ("--key", keys.vkey("ci"), "--require-signature")
    assert verdict(repo, *trusted) == (0, {})
    (repo.folder / A).write_bytes(old[0])
    (repo.folder / f"{A}.sig").write_bytes(old[1])
    assert repo.tool("verify", A, *trusted)[0] == 0
    assert verdict(repo, *trusted) == (1, {A: "lock_differs"})


def test_a_cassette_that_is_gone_is_missed_where_it_was_asked_for(repo):
    write(repo, a=SUN, b=RAIN)
    lock(repo)
    (repo.folder / B).unlink()
    assert verdict(repo) == (2, {B: "absent"})
    assert verdict(repo, "sub")[1][B] == "absent"
    assert verdict(repo, A) == (0, {})


def test_what_is_wrong_otherwise_is_said_first(repo):
    write(repo, a=SUN)
    lock(repo)
    (repo.folder / A).write_bytes(SUN.replace(b'"sun"', b'"fog"'))
    assert verdict(repo) == (1, {A: "hash"})


def test_only_whole_cassettes_are_locked(repo):
    write(repo, a=SUN)
    lock(repo)
    before = (repo.folder / LOCK_NAME).read_bytes()
    write(repo, b=RAIN[:-10])
    status, out, err = repo.tool("lock")
    assert (status, out) == (1, "")
    assert "cassettes.lock was not written" in err
    assert (repo.folder / LOCK_NAME).read_bytes() == before
    assert repo.tool("lock", "gone")[0] == 2
    assert repo.tool("lock", "-")[0] == 2
    assert sorted(path.name for path in repo.folder.glob("*lock*")) == [LOCK_NAME]


def test_partials_and_signatures_are_not_locked(repo):
    keys = Keys(repo.home / "keys")
    put(repo.folder / A, SUN, keys.signer("ci"))
    (repo.folder / f"{A}.partial").write_bytes(SUN[:50])
    assert len(lock(repo)) == 1


def test_a_stale_signature_keeps_nobody_from_locking(repo):
    keys = Keys(repo.home / "keys")
    put(repo.folder / A, SUN, keys.signer("ci"))
    write(repo, a=RAIN)
    assert len(lock(repo)) == 1
    assert verdict(repo) == (1, {A: "signature_stale"})


def test_a_path_outside_is_refused(repo):
    write(repo, a=SUN)
    status, _, err = repo.tool("lock", f"../{A}", cwd=repo.folder / "sub")
    assert status == 2
    assert "not below this folder" in err
    assert not (repo.folder / "sub" / LOCK_NAME).exists()


def test_without_a_lock_there_is_no_verdict(repo):
    write(repo, a=SUN)
    status, _, err = repo.tool("verify", "--locked")
    assert (status, "(lock_missing)" in err) == (2, True)


def test_only_what_is_named_stays_locked(repo):
    write(repo, a=SUN, b=RAIN)
    lock(repo)
    assert [line.split(" (")[0] for line in lock(repo, A)] == [f"gone: {B}"]
    write(repo, a=SNOW)
    (line,) = lock(repo, A, f"./{A}")
    assert line.startswith(f"changed: {A} (head ")
    assert " -> " in line


# -- merges ------------------------------------------------------------------------------------------------------------


def commit(repo, message="x"):
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", message)


def test_branches_that_touch_different_cassettes_merge(repo):
    letters = {f"{letter}.cassette.jsonl": cassette_bytes("sun", cassette=letter * 32) for letter in "abcdef"}
    for name, data in letters.items():
        (repo.folder / name).write_bytes(data)
    lock(repo)
    commit(repo)
    for branch, name in (("theirs", "a.cassette.jsonl"), ("main", "f.cassette.jsonl")):
        repo.git("checkout", "-q", *(["-b"] if branch == "theirs" else []), branch)
        (repo.folder / name).write_bytes(cassette_bytes("fog"))
        lock(repo)
        commit(repo)
    assert repo.git("merge", "-q", "-m", "m", "theirs", check=False).returncode == 0
    assert verdict(repo) == (0, {})


def test_a_merge_conflict_is_named_and_mended(repo):
    assert repo.tool("git", "install")[0] == 0
    write(repo, a=SUN)
    lock(repo)
    commit(repo)
    repo.git("checkout", "-q", "-b", "theirs")
    write(repo, a=SNOW)
    lock(repo)
    commit(repo)
    repo.git("checkout", "-q", "main")
    write(repo, a=RAIN)
    lock(repo)
    commit(repo)
    assert repo.git("merge", "-q", "-m", "m", "theirs", check=False).returncode == 1
    status, _, err = repo.tool("verify", "--locked")
    assert (status, "(lock_conflict)" in err) == (2, True)
    repo.git("checkout", "-q", "--theirs", A)
    lock(repo)
    assert verdict(repo) == (0, {})
    commit(repo)
    assert repo.git("show", "--stat", "HEAD").returncode == 0


# -- the file ----------------------------------------------------------------------------------------------------------

ENTRY = Entry(A, "ab" * 16, "0" * 64, 4)
GOOD = lock_bytes([ENTRY])


def reason_of_parsing(data):
    with pytest.raises(tc.SignatureError) as caught:
        parse_lock(data)
    return caught.value.reason


def test_a_lock_comes_back_whatever_its_line_endings():
    entries = [ENTRY, ENTRY._replace(path="\u00fc/\u202e \n.cassette.jsonl", frames=1)]
    data = lock_bytes(entries)
    assert data.isascii()
    assert data.count(b"\n") == 3
    assert set(parse_lock(data).values()) == set(entries)
    assert parse_lock(data.replace(b"\n", b"\r\n")) == parse_lock(data)
    assert lock_bytes(reversed(entries)) == data
    assert parse_lock(lock_bytes([])) == {}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda line: b"", "lock_junk"),
        (lambda line: b"[]\n" + line, "lock_junk"),
        (lambda line: GOOD.replace(b"lock/1", b"lock/2"), "lock_junk"),
        (lambda line: GOOD + b"null\n", "lock_junk"),
        (lambda line: GOOD + b"{}\n", "lock_junk"),
        (lambda line: GOOD + b"[" * 100_000 + b"\n", "lock_junk"),
        (lambda line: GOOD + b"\xff\n", "lock_junk"),
        (lambda line: GOOD + b"\n", "lock_junk"),
        (lambda line: GOOD.replace(b'"frames":4', b'"frames":4,"more":1'), "lock_junk"),
        (lambda line: GOOD.replace(b'"frames":4', b'"frames":"4"'), "lock_junk"),
        (lambda line: GOOD.replace(b'"frames":4', b'"frames":true'), "lock_junk"),
        (lambda line: GOOD.replace(b"0" * 64, b"0" * 63), "lock_junk"),
        (lambda line: GOOD.replace(b"ab" * 16, b"AB" * 16), "lock_junk"),
        (lambda line: GOOD.replace(A.encode(), b"/etc/x"), "lock_junk"),
        (lambda line: GOOD.replace(A.encode(), b"../x"), "lock_junk"),
        (lambda line: GOOD.replace(A.encode(), b"a/../../x"), "lock_junk"),
        (lambda line: GOOD.replace(A.encode(), b"./x"), "lock_junk"),
        (lambda line: GOOD.replace(A.encode(), b""), "lock_junk"),
        (lambda line: GOOD.replace(b'"' + A.encode() + b'"', b"5"), "lock_junk"),
        (lambda line: GOOD.replace(A.encode(), b"a\\u0000"), "lock_junk"),
        (lambda line: GOOD + line, "lock_conflict"),
        (lambda line: GOOD + line.replace(b"000", b"111"), "lock_conflict"),
        (lambda line: b"<<<<<<< ours\n" + GOOD, "lock_conflict"),
        (lambda line: GOOD + b">>>>>>> theirs\n", "lock_conflict"),
    ],
)
def test_what_is_no_lock(change, reason):
    assert reason_of_parsing(change(GOOD.splitlines(keepends=True)[1])) == reason


def test_only_what_is_whole_has_an_entry(tmp_path):
    file = tmp_path / A
    file.write_bytes(SUN[:-1])
    with pytest.raises(ValueError, match="whole"):
        entry_of(A, tc.verify(file))
    file.write_bytes(SUN)
    report = tc.verify(file)
    assert reason_of(entry_of(A, report), report) is None
    assert reason_of(entry_of(A, report)._replace(frames=5), report) == "lock_differs"
    assert reason_of(None, report) == "not_locked"
