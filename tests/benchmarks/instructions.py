"""Instructions instead of seconds, where the machine counts them: figures that no other load on it can bend.

Rule: what a call costs is the difference of two runs over the difference of their calls, so that starting the
interpreter, importing and opening cancel out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.benchmarks.peers import NONE, ROOT, cell_environment
from tests.benchmarks.work import SHAPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Count", "Counter", "count", "counter"]


def _environment() -> dict[str, str]:
    return cell_environment() | {"PYTHONHASHSEED": "0"}


class Counter(NamedTuple):
    """A program that runs another one and says how many instructions that took."""

    command: tuple[str, ...]
    says: re.Pattern[str]  # the number, in what it writes to standard error

    def run(self, command: Sequence[str]) -> int | None:
        """The instructions of a command; None where the counter cannot tell."""
        if shutil.which(self.command[0]) is None:
            return None
        made = subprocess.run(
            [*self.command, *command], capture_output=True, text=True, cwd=ROOT, env=_environment(), check=False
        )
        return None if made.returncode else self.read(made.stderr)

    def read(self, said: str) -> int | None:
        """The number in what the counter said."""
        found = self.says.search(said)
        return int(found.group(1).replace(",", "")) if found else None


PERF = Counter(
    ("perf", "stat", "-x", ",", "-e", "instructions:u"),
    re.compile(r"^(\d+),[^,]*,instructions:u", re.MULTILINE),
)
VALGRIND = Counter(
    ("valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={os.devnull}"),
    re.compile(r"I\s+refs:\s+([\d,]+)"),
)


class Count(NamedTuple):
    """Instructions of one call, and over those of the bare function."""

    name: str
    each: float
    ratio: float


def counter() -> Counter | None:
    """The first counter that works here."""
    return next((each for each in (PERF, VALGRIND) if each.run([sys.executable, "-c", "pass"]) is not None), None)


def count(using: Counter, calls: int) -> Iterator[Count]:
    """Recording (``sync="none"``) and replaying, nested rows and flat text."""
    few = max(calls // 20, 2)
    for shape in SHAPES:
        bare = _each(using, "bare function", "record", shape, few)
        for mode in ("record", "replay"):
            each = _each(using, NONE, mode, shape, few)
            yield Count(f"{mode}-sync-{shape}", each, each / bare)


def _each(using: Counter, name: str, mode: str, shape: str, few: int) -> float:
    least, most = (_total(using, name, mode, shape, calls) for calls in (few, few * 3))
    return (most - least) / (few * 2)


def _total(using: Counter, name: str, mode: str, shape: str, calls: int) -> int:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name_of_folder:
        folder = Path(name_of_folder)
        for part in ("record", "replay"):
            (folder / part).mkdir()
        cell = [sys.executable, "-m", "tests.benchmarks.peer_cell", name]
        # Once uncounted: a replay needs a recording, and no counted run may have modules to compile.
        made = [*cell, "record", shape, str(calls), str(folder / "replay"), "0"]
        subprocess.run(made, check=True, capture_output=True, cwd=ROOT, env=_environment())
        total = using.run([*cell, mode, shape, str(calls), str(folder / mode), "0"])
    if total is None:
        raise RuntimeError(f"no count of instructions for {mode} of {shape}")
    return total
