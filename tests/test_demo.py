"""The demo holds, from any directory, and it can fail: each kind of sabotage makes it say what is untrue."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
DEMO = REPOSITORY / "demo" / "run.py"

# program text that runs after `import run` and `import toolcassette as tc` -> the claim that must fall
SABOTAGE = {
    "run.WeatherService.stop = lambda service: None": "a real call fails",
    "run.without_service = lambda url: None\nrun.WeatherService.stop = lambda service: None\n"
    "tc.replay = lambda file: tc.session('live')": "0 tool bodies ran, 0 connections were opened",
    "real = tc.verify\ntc.verify = lambda file, **options: real(file.with_name('weather.cassette.jsonl'), **options)": (
        "verify: complete"
    ),
    "tc.Replayer._say = lambda session, error: False": "an agent that swallows the mismatch",
    "real = tc.replay\ntc.replay = lambda file: real(file, allow_unconsumed=True)": "the replay raises UnconsumedCalls",
    "run.WEATHER[run.MISSING] = run.WEATHER[run.FIRST]": "4 calls are kept, one of them an error",
}


def run_python(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter in ``folder``, which is its temporary directory too."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "TMPDIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_demo_holds(tmp_path: Path) -> None:
    began = time.monotonic()
    done = run_python(["-O", str(DEMO)], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - began < 10
    assert "0 tool bodies ran, 0 connections were opened" in done.stdout
    assert "all of it is true" in done.stdout
    assert list(tmp_path.iterdir()) == []  # it cleans up


@pytest.mark.parametrize(("sabotage", "claim"), SABOTAGE.items(), ids=range(len(SABOTAGE)))
def test_a_sabotaged_demo_says_what_is_untrue(sabotage: str, claim: str, tmp_path: Path) -> None:
    program = (
        f"import sys\nsys.path.insert(0, {str(DEMO.parent)!r})\n"
        f"import run\nimport toolcassette as tc\n{sabotage}\nsys.exit(run.main())"
    )
    done = run_python(["-B", "-c", program], tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"UNTRUE: {claim}" in done.stdout
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []
