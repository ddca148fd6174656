"""Small cassettes to judge, small programs to run, and the command line as a user has it: another process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from toolcassette import RecordedCall, write_cassette

SRC = Path(__file__).resolve().parents[2] / "src"
NAME = "weather.cassette.jsonl"
CALLS = [
    RecordedCall(tool="weather", args=b'{"city":"Wuhan"}', value=b'"sunny"', started_at=10, ended_at=1510),
    RecordedCall(
        tool="weather", args=b'{"city":"Paris"}', value=b'"rain"', omitted=("conn",), started_at=2000, ended_at=2001
    ),
    RecordedCall(tool="clock", args=b"{}", outcome="error", error=b'{"type":"ValueError","message":"late"}'),
]


def cassette(calls=CALLS, **header):
    fixed = {"cassette": "ab" * 16, "created": "2026-01-02T03:04:05.000000Z", "producer": "test"}
    return write_cassette(calls, **{**fixed, **header})


# A program with one tool, whose bodies leave a trace in the file `bodies`. What it does is added to it.
PROGRAM = """
    import os, signal, subprocess, sys, time
    import toolcassette as tc

    @tc.cassette_tool
    def weather(city: str) -> dict[str, str]:
        with open("bodies", "a") as file:
            file.write(city + "\\n")
        return {"city": city, "sky": "CANARY-VALUE"}

    def ask(city):
        "As agent frameworks do: no exception of a tool gets out."
        try:
            return weather(city)
        except Exception as error:
            print("swallowed", type(error).__name__, flush=True)
"""
TWO_CALLS = "print(weather('Wuhan')['sky']); weather('Paris')"


def program(folder, body=TWO_CALLS, name="agent.py"):
    (folder / name).write_text(textwrap.dedent(PROGRAM) + textwrap.dedent(body) + "\n", "utf-8")
    return name


def bodies(folder):
    """The bodies that ran since the last look."""
    trace = folder / "bodies"
    found = trace.read_text("utf-8").split() if trace.exists() else []
    trace.unlink(missing_ok=True)
    return found


def environment(**extra):
    """That of a user: nothing of ours in it."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TOOLCASSETTE_", "PYTHON"))}
    return {**clean, "PYTHONPATH": str(SRC), **extra}


def command(*args):
    return [sys.executable, "-m", "toolcassette", *map(str, args)]


def run(folder, *args, stdin=None, **extra):
    done = subprocess.run(
        command(*args), cwd=folder, env=environment(**extra), input=stdin, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 1 or done.stdout or done.stderr  # nothing fails silently
    return done


def record(folder, *options, script="agent.py", **extra):
    return run(folder, "record", NAME, "--include", "weather", *options, "--", script, **extra)


def replay(folder, *options, script="agent.py", **extra):
    return run(folder, "replay", NAME, *options, "--", script, **extra)
