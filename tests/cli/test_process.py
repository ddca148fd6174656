"""The command line as a process: interrupted, ended from outside, and with nobody who reads what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.helpers import NAME, cassette, command, environment, program, record, run
from toolcassette import RecordedCall, __version__, verify

WAIT_S = 30
FULL = Path("/dev/full")
PARTIAL = NAME + ".partial"
# Says that it is there, and who it is, in the middle of a call.
SLOW = """
    @tc.cassette_tool
    def slow() -> int:
        with open("pid.new", "w") as file:
            file.write(str(os.getpid()))
        os.rename("pid.new", "pid")
        time.sleep(60)
        return 1

    weather("Wuhan")
"""


def started(folder, *args, **options):
    return subprocess.Popen(
        command(*args),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def awaited(path):
    """The content of a file, as soon as it is there."""
    until = time.monotonic() + WAIT_S
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    return path.read_text()


def ended(process):
    out, err = process.communicate(timeout=WAIT_S)
    return process.returncode, out, err


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_as_a_module():
    done = run(".", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"toolcassette {__version__}\n", "")


def test_ctrl_c_is_130(tmp_path):
    os.mkfifo(tmp_path / "list")
    process = started(tmp_path, "verify", "--files-from", "list")
    with (tmp_path / "list").open("w"):  # opens as soon as the other side is about to read
        os.kill(process.pid, signal.SIGINT)
        assert ended(process) == (130, "", "toolcassette: interrupted\n")


@pytest.mark.parametrize("verb", ["record", "replay"])
def test_ctrl_c_ends_the_command_and_publishes_nothing(tmp_path, verb):
    wuhan = RecordedCall(tool="weather", args=b'{"city":"Wuhan"}', value=b'{"city":"Wuhan"}')
    (tmp_path / NAME).write_bytes(cassette([wuhan]))
    program(tmp_path, SLOW + ("    slow()" if verb == "record" else "    slow.__wrapped__()"))
    options = ("--include", "*", "--replace") if verb == "record" else ()
    process = started(tmp_path, verb, NAME, *options, "--", "agent.py")
    child = int(awaited(tmp_path / "pid"))
    before = (tmp_path / NAME).read_bytes()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
    status, _, err = ended(process)
    assert status == 130
    assert "toolcassette: the command was ended by SIGINT; " in err
    assert is_gone(child)
    assert (tmp_path / NAME).read_bytes() == before
    assert verb == "replay" or verify(tmp_path / PARTIAL).state == "open"


def test_a_command_may_outlive_ctrl_c(tmp_path):
    """What counts is how the command ends: one that ends well in spite of an interrupt has its cassette."""
    slow = "try:\n    open('ready', 'w').close()\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    weather('Paris')"
    program(tmp_path, slow)
    process = started(tmp_path, "record", NAME, "--include", "weather", "--", "agent.py")
    awaited(tmp_path / "ready")
    os.killpg(process.pid, signal.SIGINT)
    assert ended(process)[::2] == (0, f"toolcassette: recorded {NAME} (1 call)\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_is_sent_to_us_alone_is_passed_on(tmp_path, number):
    program(tmp_path, SLOW + "    slow()")
    process = started(tmp_path, "record", NAME, "--include", "*", "--", "agent.py")
    child = int(awaited(tmp_path / "pid"))
    os.kill(process.pid, number)
    status, _, err = ended(process)
    assert (status, is_gone(child)) == (128 + number, True)
    assert f"ended by {number.name}; nothing was published, the partial is kept" in err
    assert not (tmp_path / NAME).exists()
    assert verify(tmp_path / PARTIAL).state == "open"


def test_two_recorders_of_one_file(tmp_path):
    program(tmp_path, SLOW + "    slow()")
    process = started(tmp_path, "record", NAME, "--include", "*", "--", "agent.py")
    awaited(tmp_path / "pid")
    try:
        done = record(tmp_path, "--set-aside")
        assert done.returncode == 2
        assert "another recorder is writing it" in done.stderr
        done = run(tmp_path, "ls")
        assert (done.returncode, done.stdout.splitlines()[1].split()[:3]) == (1, ["open", "-", "2"])
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        ended(process)


@pytest.mark.parametrize(
    "args", [("verify", NAME), ("inspect", NAME), ("ls",), ("schema",), ("--help",), ("--version",)]
)
def test_a_closed_pipe_is_141_and_silent(tmp_path, args):
    (tmp_path / NAME).write_bytes(cassette())
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        command(*args), cwd=tmp_path, env=environment(), stdout=write, stderr=subprocess.PIPE, text=True, timeout=WAIT_S
    )
    os.close(write)
    assert (process.returncode, process.stderr) == (141, "")


def test_a_reader_who_leaves_early(tmp_path):
    (tmp_path / NAME).write_bytes(cassette())
    process = started(tmp_path, "inspect", "--format", "json", *[NAME] * 100)
    assert process.stdout.read(1) == "["
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, err) == (141, "")


@pytest.mark.skipif(not FULL.exists(), reason="the system has no device that is always full")
@pytest.mark.parametrize("args", [("verify", NAME), ("--help",)])
def test_a_result_that_cannot_be_written_is_no_success(tmp_path, args):
    (tmp_path / NAME).write_bytes(cassette())
    with FULL.open("w") as full:
        process = subprocess.run(
            command(*args),
            cwd=tmp_path,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=WAIT_S,
        )
    assert process.returncode == 2
    assert process.stderr.startswith("toolcassette: could not ")
    assert process.stderr.count("\n") == 1
    assert "ENOSPC" in process.stderr


def test_closed_streams_are_no_error(tmp_path):
    (tmp_path / NAME).write_bytes(cassette())
    shell = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command("verify", NAME)]
    assert subprocess.run(shell, cwd=tmp_path, env=environment(), timeout=WAIT_S).returncode == 0
    shell[-1] = "absent"
    assert subprocess.run(shell, cwd=tmp_path, env=environment(), timeout=WAIT_S).returncode == 2


def test_no_colour_and_no_prompt_for_a_terminal(tmp_path):
    """On a terminal as in a pipe: plain text."""
    (tmp_path / NAME).write_bytes(cassette())
    ours, theirs = os.openpty()
    try:
        done = subprocess.run(
            command("inspect", NAME),
            cwd=tmp_path,
            env=environment(TERM="xterm-256color"),
            stdout=theirs,
            timeout=WAIT_S,
        )
        shown = os.read(ours, 65536)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 0
    assert b"intact, unsigned" in shown
    assert b"\x1b" not in shown
