"""Several recorders at once: one owner, everybody else is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import toolcassette as tc

REPOSITORY = Path(__file__).resolve().parents[2]

RACER = """
import sys
import toolcassette as tc

@tc.cassette_tool
def fetch(n):
    if n == 0:
        print("began", flush=True)
        sys.stdin.readline()      # everybody has tried by now
    return "x" * 300_000

sys.stdin.readline()              # all are ready
try:
    with tc.record("race.cassette.jsonl", ["fetch"]):
        for n in range(5):
            fetch(n)
    print("won", flush=True)
except tc.CassetteExists as error:
    print(error.what, flush=True)
"""


def test_c22_several_processes_race_for_one_name(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    first = []
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("\n")
        racer.stdin.flush()
    for racer in racers:
        assert racer.stdout
        first.append(racer.stdout.readline().strip())
    assert sorted(first) == ["began", "live_partial", "live_partial", "live_partial"]
    said = [racer.communicate("\n", timeout=60)[0].strip() for racer in racers]
    assert sorted(said) == ["", "", "", "won"]
    report = tc.verify(tmp_path / "race.cassette.jsonl", deep=True)
    assert (report.state, report.calls) == ("complete", 5)
    assert [path.name for path in tmp_path.iterdir()] == ["race.cassette.jsonl"]
