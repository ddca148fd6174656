"""kill -9, for real: no frame that was acknowledged is lost, and what is left is recovered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import toolcassette as tc
from tests.durability import killed
from tests.durability.judging import faults_of, promises

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*args: object) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])}
    subprocess.run(
        [sys.executable, "-m", "tests.durability.killed", *map(str, args)], env=environment, check=True, timeout=120
    )


def judge(folder: Path) -> tuple[int, set[str]]:
    """The acknowledged frames of one dead program, and what recover found of it."""
    for partial in folder.glob("*.partial"):
        assert tc.verify(partial).reason == "not_published", "a kill tears no frame: one write is one frame"
    frames, found, wrong = faults_of(folder, (folder / "acks").read_text("ascii"))
    assert not wrong
    return frames, found


@pytest.mark.parametrize(("way", "trials"), [("calls", 8), ("tasks", 6), ("tiny", 6)])
def test_killed_at_a_random_moment(place, way, trials):
    run("random", way, place, trials, seed := trials * 7)
    folders = list(place.iterdir())
    assert len(folders) == trials, f"seed {seed}"
    assert sum(judge(folder)[0] for folder in folders) > trials


@pytest.mark.parametrize("way", ["calls", "tasks"])
def test_killed_before_every_operation(place, way):
    run("every", way, place)
    folders = sorted(place.iterdir(), key=lambda path: int(path.name))
    found = [judge(folder)[1] for folder in folders]
    assert len(folders) > 30
    states = {"unfinished", "finished", "linked", "cassette"}
    # Of calls that overlap, more or fewer share a sync each time: a step may be passed over.
    seen = set().union(*found)
    assert seen == states if way == "calls" else {"cassette"} <= seen <= states
    last = promises((folders[-1] / "acks").read_text("ascii"))
    assert last == {"r0": (2 * killed.FEW[way] + 1, True)}, "the last one was left alone"


def test_a_loss_would_be_seen(tmp_path):
    """The judge is able to say no."""
    (tmp_path / "r0.cassette.jsonl").write_bytes(b"{}\n")
    _, _, wrong = faults_of(tmp_path, "r0 5\nr1 2\nr1 published\nr2 cut sho")
    assert wrong[:2] == ["r0: the formal file is there and not whole", "r0: 5 frames acknowledged, 0 there"]
    assert wrong[-2:] == ["r1: published, and not there", "r1: 2 frames acknowledged, 0 there"]
