"""Children of every kind, and several processes for one name: one owner, and nobody else ends, unlocks or deletes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import toolcassette as tc

if TYPE_CHECKING:
    from collections.abc import Sequence

SRC = Path(__file__).resolve().parents[2] / "src"

START = """
import multiprocessing, os, sys, threading, time
import toolcassette as tc

@tc.cassette_tool
def alpha(x: int) -> int:
    return x + 1

file = sys.argv[1]
"""


def started(folder: Path, program: str, *args: str) -> subprocess.Popen[str]:
    script, text = folder / "program.py", START + textwrap.dedent(program)
    if not script.exists():  # written once: a child that starts while it is being written anew would read nothing
        script.write_text(text, "utf-8")
    assert script.read_text("utf-8") == text
    return subprocess.Popen(
        [sys.executable, script.name, "x.cassette.jsonl", *args],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(SRC)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(child: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = child.communicate(timeout=60)
    return child.returncode, out.strip(), err


# -- forks ------------------------------------------------------------------------------------------------------------

MATRIX = """
    def use(how, file, found):
        session = globals().get("session")
        try:
            alpha(2)
        except tc.CassetteError as error:
            found.put(type(error).__name__)
        else:
            found.put("live")
        found.close()
        found.join_thread()
        if how == "_exit":
            os._exit(0)

    if __name__ == "__main__":
        method, mode = sys.argv[2:]
        if mode == "replay":
            with tc.record(file, ["alpha"]):
                alpha(1)
                alpha(3)
        context = multiprocessing.get_context(method)
        found = context.Queue()
        if method == "forkserver":
            context.Process(target=int).start()  # the server is there before the session
        session = tc.record(file, ["alpha"]) if mode == "record" else tc.replay(file)
        answers = []
        with session:
            alpha(1)
            before = os.stat(file + ".partial") if mode == "record" else None
            for how in ("_exit", "normal"):
                child = context.Process(target=use, args=(how, file, found))
                child.start()
                answers.append(found.get(timeout=30))
                child.join()
                answers.append(child.exitcode)
                if before is None:
                    continue
                after = os.stat(file + ".partial")
                assert (before.st_ino, before.st_size) == (after.st_ino, after.st_size)
                assert not os.path.exists(file)
                try:
                    tc.record(file, ["alpha"]).__enter__()
                except tc.CassetteExists as error:
                    assert error.what == "live_partial", error.what
                else:
                    raise AssertionError("the lock is gone")
            alpha(3)
        print(*answers, session.verdict.outcome)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(
    ("method", "mode"), [("fork", "record"), ("spawn", "record"), ("forkserver", "record"), ("fork", "replay")]
)
def test_a_child_never_ends_unlocks_or_deletes(tmp_path: Path, method: str, mode: str) -> None:
    """By ``_exit`` or the normal way. A forked child's use is refused; a fresh interpreter has no part in it."""
    code, out, err = finished(started(tmp_path, MATRIX, method, mode))
    answer = "SessionClosed" if method == "fork" else "live"
    published = "published" if mode == "record" else "consumed"
    assert (code, out) == (0, f"{answer} 0 {answer} 0 {published}"), err
    assert [call.args for call in tc.read_cassette(tmp_path / "x.cassette.jsonl")] == [b'{"x":1}', b'{"x":3}']
    assert not (tmp_path / "x.cassette.jsonl.partial").exists()


LOCKED = """
    import signal
    from toolcassette.engine import path

    mode = sys.argv[2]
    if mode == "replay":
        with tc.record(file, ["alpha"]):
            alpha(1)
    session = tc.record(file, ["alpha"]) if mode == "record" else tc.replay(file)
    with session:
        alpha(1)
        locks = [session._lock if mode == "record" else session._played._lock, path._lock, tc.engine.current._lock]
        inside, leave = threading.Event(), threading.Event()

        def hold():
            for lock in locks:
                lock.acquire()
            inside.set()
            leave.wait()
            for lock in reversed(locks):
                lock.release()

        thread = threading.Thread(target=hold)
        thread.start()
        inside.wait()
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)  # a deadlock ends here
            with tc.scope("s"):
                try:
                    alpha(2)
                except tc.SessionClosed:
                    with tc.record(file + ".child", ["alpha"]):
                        alpha(5)
                    if mode == "record":
                        session.poison(tc.SessionClosed("x"))
                    else:
                        session._played.closed()
                    os._exit(7)
            os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        leave.set()
        thread.join()
    print(status, session.verdict.outcome)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # newer Pythons warn of forks beside threads
@pytest.mark.parametrize("mode", ["record", "replay"])
def test_a_fork_while_another_thread_is_inside_the_locks(tmp_path: Path, mode: str) -> None:
    program = "import toolcassette.engine.current\n" + textwrap.dedent(LOCKED)
    code, out, err = finished(started(tmp_path, program, mode))
    assert (code, out) == (0, f"7 {'published' if mode == 'record' else 'consumed'}"), err
    child = tc.read_cassette(tmp_path / "x.cassette.jsonl.child")
    assert [call.args for call in child] == [b'{"x":5}']


# -- C-22: several processes for one name -----------------------------------------------------------------------------

WRITER = """
    big = "x" * 300_000

    @tc.cassette_tool
    def write(number: int) -> str:
        return f"{sys.argv[2]} {number} {big}"

    sys.stdin.readline()  # all begin at once
    try:
        with tc.record(file, ["write"], stale=sys.argv[3]):
            print("owner", flush=True)
            sys.stdin.readline()  # ... and the owner writes when the others were refused
            for number in range(5):
                write(number)
                print("wrote", number, flush=True)
                if len(sys.argv) > 4:
                    sys.stdin.readline()
    except tc.CassetteExists as error:
        print(error.code, error.what, flush=True)
"""


def six(folder: Path, *more: str) -> list[subprocess.Popen[str]]:
    children = [started(folder, WRITER, str(number), "refuse", *more) for number in range(6)]
    for child in children:
        tell(child)
    return children


def tell(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def first_lines(children: Sequence[subprocess.Popen[str]]) -> list[str]:
    return [child.stdout.readline().strip() if child.stdout else "" for child in children]


def test_c22_six_writers_have_one_owner(tmp_path: Path) -> None:
    began = time.monotonic()
    children = six(tmp_path)
    said = first_lines(children)
    assert time.monotonic() - began < 30
    assert sorted(said) == ["CASSETTE_EXISTS live_partial"] * 5 + ["owner"]
    owner = said.index("owner")
    tell(children[owner])
    assert [finished(child)[0] for child in children] == [0] * 6
    calls = list(tc.read_cassette(tmp_path / "x.cassette.jsonl"))
    assert len(calls) == 5
    assert all((call.value or b"").startswith(b'"%d %d xxx' % (owner, n)) for n, call in enumerate(calls))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py", "x.cassette.jsonl"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill")
def test_c22_the_owner_is_killed(tmp_path: Path) -> None:
    """Its partial stays, as far as it came; a new run is told that it is stale, and may set it aside."""
    children = six(tmp_path, "slowly")
    said = first_lines(children)
    owner = children[said.index("owner")]
    tell(owner)
    first_lines([owner])
    tell(owner)
    first_lines([owner])
    owner.kill()
    assert [finished(child)[0] for child in children if child is not owner] == [0] * 5
    assert finished(owner)[0] == -signal.SIGKILL
    report = tc.verify(tmp_path / "x.cassette.jsonl.partial")
    assert (report.state, report.calls) == ("open", 2)
    late = started(tmp_path, WRITER, "7", "refuse")
    assert finished_after(late) == (0, "CASSETTE_EXISTS stale_partial")
    again = started(tmp_path, WRITER, "8", "set-aside")
    assert finished_after(again)[0] == 0
    assert len(tc.read_cassette(tmp_path / "x.cassette.jsonl")) == 5
    aside = [path.name for path in tmp_path.iterdir() if path.name.startswith("x.cassette.jsonl.partial.")]
    assert len(aside) == 1


def finished_after(child: subprocess.Popen[str]) -> tuple[int, str]:
    code, out, err = child.returncode, "", ""
    out, err = child.communicate("\n\n", timeout=60)
    code = child.returncode
    assert not err
    return code, out.strip()
