"""What a survey of 24 neighbouring tools asked of them, asked of this one: is the file whole, and is the old one safe?

Rule: as in test_peers_probes.py, which has the table. Processes are real, and so is SIGKILL.
"""

from __future__ import annotations

import pickle
import signal

import pytest

import toolcassette as tc
from tests.cases.programs import dead, fails, frames, live, record, refused, replay, reseal, run_script, verdicts

PROLOGUE = """
import os, signal, sys
import toolcassette as tc

@tc.cassette_tool
def tool_a(q):
    if os.environ.get("DIE_AT") == q:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"q": q}

"""


def tool_a(q):
    return {"q": q}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "probe.cassette.jsonl"


@pytest.fixture
def old(file):
    """A good cassette of two calls, and its bytes."""
    tool = live(tool_a)
    record(file, lambda: [tool("old1"), tool("old2")])
    return file.read_bytes()


def partial_of(file):
    return file.with_name(file.name + ".partial")


def test_probe_swallow(file):
    """An agent that swallows everything and finishes its work: the process fails all the same."""
    record(file, lambda: [live(tool_a)("a"), live(tool_a)("b")])
    done = run_script(
        file.parent,
        PROLOGUE
        + f"""
with tc.replay({file.name!r}):
    for q in ("CHANGED", "a", "b"):
        try:
            tool_a(q)
        except Exception as error:
            print(type(error).__name__)
""",
    )
    assert done.returncode != 0
    assert done.stdout.split() == ["CassetteMismatch", "CassettePoisoned", "CassettePoisoned"]
    assert done.stderr.splitlines()[-1].startswith("toolcassette.errors")
    assert "arguments_differ" in done.stderr
    assert "CHANGED" not in done.stderr.split("CassetteMismatch")[-1]


test_fault_01_a_swallowed_mismatch_exits_0 = test_probe_swallow


@pytest.mark.parametrize(("questions", "status"), [("ab", 0), ("Xab", 1), ("a", 1), ("abb", 1), ("", 1)])
def test_fault_04_the_command_line_says_so(file, questions, status):
    """A call that differs, one that is left out, one too many, none at all: each is status 1, however it is hidden."""
    record(file, lambda: [live(tool_a)("a"), live(tool_a)("b")])
    program = f"""
for q in {questions!r}:
    try:
        tool_a(q)
    except Exception:
        pass
"""
    done = run_script(file.parent, PROLOGUE + program, under=("replay", file.name))
    assert done.returncode == status
    assert done.stderr or not status


def test_probe_exit(file):
    record(file, lambda: [live(tool_a)("a"), live(tool_a)("b")])
    done = run_script(file.parent, PROLOGUE + f"with tc.replay({file.name!r}): tool_a('a')\nprint('not reached')")
    assert done.returncode != 0
    assert done.stdout == ""
    assert "1 recorded call was never made: tool tool_a, path /, ordinal 1" in done.stderr


def test_probe_overwrite(file, old):
    ran = []
    with fails(tc.CassetteExists) as left:
        record(file, lambda: ran.append("block"))
    assert left["error"].what == "cassette"
    assert ran == []
    assert file.read_bytes() == old
    assert not partial_of(file).exists()
    partial_of(file).write_bytes(b"somebody's")
    with fails(tc.CassetteExists):
        record(file, lambda: ran.append("block"), replace=True)
    assert partial_of(file).read_bytes() == b"somebody's"
    assert file.read_bytes() == old


def test_probe_fail_rerecord(file, old):
    with pytest.raises(RuntimeError, match="agent crashed"), tc.record(file, ["*"], replace=True, sync="none"):
        live(tool_a)("new1")
        raise RuntimeError("agent crashed")
    assert file.read_bytes() == old
    assert replay(file, lambda: [dead(tool_a)("old1"), dead(tool_a)("old2")]) == [{"q": "old1"}, {"q": "old2"}]
    assert tc.verify(partial_of(file)).state == "open"


RECORDER = (
    PROLOGUE
    + """
with tc.record(sys.argv[1], ["*"], sync="frame", replace=sys.argv[2] == "replace", stale="refuse"):
    for i in range(50):
        tool_a(f"q{i}")
    os.kill(os.getpid(), signal.SIGKILL)
"""
)


def test_probe_kill(file):
    """SIGKILL after 50 calls: all frames are there, it is said to be open, the next recording keeps out of its way."""
    assert run_script(file.parent, RECORDER, file.name, "").returncode == -signal.SIGKILL
    assert not file.exists()
    report = tc.verify(partial_of(file))
    assert (report.state, report.reason, report.frames, report.calls) == ("open", "not_published", 101, 50)
    lines = frames(partial_of(file))
    assert len(lines) == 101
    assert b"".join(lines) == partial_of(file).read_bytes()

    with fails(tc.CassetteExists) as left:
        record(file, lambda: live(tool_a)("a"))
    assert left["error"].what == "stale_partial"
    assert frames(partial_of(file)) == lines

    record(file, lambda: live(tool_a)("a"), stale="set-aside")
    assert tc.verify(file).ok
    assert not partial_of(file).exists()
    (aside,) = file.parent.glob("*.partial.*")
    assert frames(aside) == lines


def test_probe_kill_inside_a_tool(file):
    """The start of the call that never ended is in the file, durable before its body ran."""
    script = (
        PROLOGUE + f"with tc.record({file.name!r}, ['*']):\n  os.environ['DIE_AT'] = 'b'\n  tool_a('a'); tool_a('b')"
    )
    assert run_script(file.parent, script).returncode == -signal.SIGKILL
    report = tc.verify(partial_of(file))
    assert (report.state, report.frames, report.calls) == ("open", 4, 2)
    assert b'"kind":"call/start"' in frames(partial_of(file))[-1]
    assert not file.exists()


def test_probe_kill_rerecord(file, old):
    assert run_script(file.parent, RECORDER, file.name, "replace").returncode == -signal.SIGKILL
    assert file.read_bytes() == old
    tool = dead(tool_a)
    assert replay(file, lambda: [tool("old1"), tool("old2")]) == [{"q": "old1"}, {"q": "old2"}]


def test_probe_nonser(file):
    """The second of three results cannot be kept: refused at once, no later body runs, the first call is safe."""
    ran = []

    def give(q):
        ran.append(q)
        return object() if q == "bad" else {"q": q}

    tool = live(give)
    with fails(tc.UnrecordableValue) as left, tc.record(file, ["*"]):
        assert tool("a") == {"q": "a"}
        errors = [refused(tool, q) for q in ("bad", "c")]
    assert [type(error) for error in errors] == [tc.UnrecordableValue, tc.UnrecordableValue]
    assert (left["error"].tool, left["error"].type_name) == ("give", "object")
    assert ran == ["a", "bad"]
    assert not file.exists()
    assert tc.verify(partial_of(file)).frames == 4


def test_probe_nonser_over(file, old):
    with fails(tc.UnrecordableValue), tc.record(file, ["*"], replace=True, sync="none"):
        live(tool_a)("n1")
        refused(lambda: live(lambda q: object(), name="bad")("bad"))
    assert file.read_bytes() == old


test_fault_16_one_bad_result_destroys_the_cassette = test_probe_nonser_over


def test_probe_tamper(file):
    """Edited, cut, without its end, swapped: refused before a call is served. Resealed: intact, never called signed."""
    tool = live(lambda q: {"amount": "AAAA1111"}, name="amount")
    record(file, lambda: [tool("a"), tool("b")])
    lines = frames(file)
    edited = [line.replace(b"AAAA1111", b"BBBB2222") for line in lines]
    for damage, reason, state in (
        (edited, "hash", "damaged"),
        (lines[:-1], "tail_missing", "torn"),
        (lines[:3], "tail_missing", "torn"),
        ([*lines[:-1], lines[-1][:40]], "torn", "torn"),
        ([*lines[:2], lines[3], lines[2], *lines[4:]], "link", "damaged"),
    ):
        file.write_bytes(b"".join(damage))
        assert {found[0] for found in verdicts(file)} == {reason}
        assert tc.verify(file).state == state
    file.write_bytes(reseal(edited))
    report = tc.verify(file)
    assert (report.ok, report.signed, report.message) == (True, False, "intact, unsigned")
    assert report.head != lines[-1][-67:-3].decode()


def test_fault_20_a_killed_recording_is_plain_text(file):
    assert run_script(file.parent, RECORDER, file.name, "").returncode == -signal.SIGKILL
    text = partial_of(file).read_text("utf-8")
    assert text.count('"q":"q49"') == 2  # as argument and as result


def test_fault_21_replay_verifies_and_a_cut_is_seen(file, old):
    """Nothing beside the cassette is needed to know that it was cut: its last frame says that it is whole."""
    lines = frames(file)
    for kept in range(len(lines)):
        file.write_bytes(b"".join(lines[:kept]))
        assert {found[0] for found in verdicts(file)} == ({"tail_missing"} if kept else {"empty"})


def test_fault_26_a_foreign_file_is_left_alone(file):
    """Also by a re-recording: what is no cassette is not ours to replace."""
    for content in (b"customer,amount\n1,2\n", b"SQLite format 3\x00rows", b'{"seq":0}\n'):
        file.write_bytes(content)
        with fails(tc.CassetteExists):
            record(file, lambda: live(tool_a)("a"))
        with fails(tc.FormatError):
            record(file, lambda: live(tool_a)("a"), replace=True)
        assert file.read_bytes() == content
        assert list(file.parent.iterdir()) == [file]


def test_fault_26_a_damaged_cassette_may_be_recorded_anew(file, old):
    file.write_bytes(old[:-20])
    record(file, lambda: live(tool_a)("a"), replace=True)
    assert tc.verify(file).calls == 1


def test_fault_34_a_damaged_cassette_is_not_an_empty_one(file, old):
    file.write_bytes(old[: len(old) // 2])
    broken = file.read_bytes()
    ran = []
    with fails(tc.FormatError):
        replay(file, lambda: ran.append("block"))
    with fails(tc.CassetteExists):
        record(file, lambda: ran.append("block"))
    assert ran == []
    assert file.read_bytes() == broken


def test_fault_35_an_interrupted_rerecording_is_not_published(file, old):
    for kind in (KeyboardInterrupt, SystemExit, ValueError):
        with pytest.raises(kind), tc.record(file, ["*"], replace=True, sync="none", stale="set-aside"):
            live(tool_a)("new")
            raise kind
        assert file.read_bytes() == old


def test_fault_36_starting_to_record_touches_nothing(file, old):
    stat = file.stat()
    with tc.record(file, ["*"], replace=True, sync="none", allow_empty=True):
        live(tool_a)("new")
        assert file.read_bytes() == old
        assert file.stat().st_mtime_ns == stat.st_mtime_ns
    assert tc.verify(file).calls == 1


def test_fault_39_the_same_again_is_unchanged(file, old):
    tool = live(tool_a)
    with tc.record(file, ["*"], replace=True, sync="none") as session:
        tool("old1"), tool("old2")
    assert session.verdict is not None
    assert session.verdict.outcome == "unchanged"
    assert file.read_bytes() == old
    assert list(file.parent.iterdir()) == [file]


def test_fault_12_no_pickle(file):
    class Bomb:
        def __reduce__(self):
            return exec, ("import pathlib; pathlib.Path('exploded').touch()",)

    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        file.write_bytes(pickle.dumps(Bomb(), protocol))
        assert {found[0] for found in verdicts(file)} <= {"not_a_cassette", "zero_filled"}
    assert list(file.parent.iterdir()) == [file]
