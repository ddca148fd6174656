"""A forked child: its calls are refused, it leaves without a trace, and the parent goes on and publishes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import toolcassette as tc

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

SRC = Path(__file__).resolve().parents[2] / "src"
START = """
    import os, sys
    import toolcassette as tc

    @tc.cassette_tool
    def alpha(x: int) -> int:
        return x + 1

    file = sys.argv[1]

    def status_of(pid):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def run(program: str, file: object) -> subprocess.CompletedProcess[str]:
    text = textwrap.dedent(START) + textwrap.dedent(program)
    return subprocess.run(
        [sys.executable, "-c", text, str(file)],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_the_childs_use_is_refused_and_the_parent_publishes(file):
    done = run(
        """
        with tc.record(file, ["alpha"]) as session:
            alpha(1)
            pid = os.fork()
            if pid == 0:
                try:
                    alpha(2)
                except tc.SessionClosed:
                    os._exit(7 if not session.is_open else 1)
                os._exit(1)
            assert status_of(pid) == 7
            alpha(3)
        print(session.verdict.outcome)
        """,
        file,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "published"), done.stderr
    assert [call.args for call in tc.read_cassette(file)] == [b'{"x":1}', b'{"x":3}']


def test_a_child_that_leaves_the_block_and_exits_touches_nothing(file):
    done = run(
        """
        import fcntl
        with tc.record(file, ["alpha"]) as session:
            alpha(1)
            before = os.stat(file + ".partial")
            pid = os.fork()
            if pid:
                assert status_of(pid) == 0
                after = os.stat(file + ".partial")
                assert (before.st_ino, before.st_size) == (after.st_ino, after.st_size)
                assert not os.path.exists(file)
                try:  # still locked: a second recorder is told that this one is alive
                    tc.record(file, ["alpha"]).__enter__()
                except tc.CassetteExists as error:
                    assert error.what == "live_partial", error.what
                else:
                    raise AssertionError
        if pid == 0:
            assert session.verdict is None
        else:
            print(session.verdict.outcome)
        """,
        file,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "published"), done.stderr
    assert tc.verify(file).ok
    assert list(file.parent.iterdir()) == [file]


def test_a_child_of_an_open_call_does_not_end_it(file):
    done = run(
        """
        @tc.cassette_tool
        def forks() -> int:
            pid = os.fork()
            return 0 if pid == 0 else status_of(pid)

        with tc.record(file, ["forks"]) as session:
            try:
                result = forks()
            except tc.SessionClosed:
                os._exit(5)
        print(result, session.verdict.outcome)
        """,
        file,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "5 published"), done.stderr
    assert tc.verify(file).frames == 4


def test_a_child_of_a_replay_runs_no_body(file):
    with tc.record(file, ["alpha"]):
        _alpha(1)
    done = run(
        """
        with tc.replay(file):
            pid = os.fork()
            if pid == 0:
                try:
                    alpha(1)
                except tc.SessionClosed:
                    os._exit(7)
                os._exit(1)
            assert status_of(pid) == 7
            assert alpha(1) == 2
        print("consumed")
        """,
        file,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "consumed"), done.stderr


def test_a_child_may_open_a_session_of_its_own(file):
    done = run(
        """
        with tc.record(file, ["alpha"]):
            alpha(1)
            pid = os.fork()
            if pid == 0:
                with tc.record(file + ".child", ["alpha"]):
                    alpha(2)
                os._exit(0)
            assert status_of(pid) == 0
        """,
        file,
    )
    assert done.returncode == 0, done.stderr
    assert [call.args for call in tc.read_cassette(f"{file}.child")] == [b'{"x":2}']


@tc.cassette_tool(name="alpha")
def _alpha(x: int) -> int:
    return x + 1
