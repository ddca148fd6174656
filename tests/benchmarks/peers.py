"""Ours against the packages that a user would pick instead: the same work, each in a fresh process, taking turns.

Rule: nothing of theirs is ever installed where ours is. What cannot be installed, breaks, or gives a wrong result is
listed with the reason; what is not done within the limit is DNF and not tried again. Ratios are of one round.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.benchmarks.peer_cell import DRIVERS
from tests.benchmarks.work import SHAPES

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

__all__ = [
    "FRAME",
    "NONE",
    "ROOT",
    "Comparison",
    "Interpreters",
    "Plan",
    "Time",
    "cell_environment",
    "chosen",
    "columns",
    "compare",
    "growth",
    "install",
    "plans",
    "report",
    "server",
]

NONE = "toolcassette none"
FRAME = "toolcassette frame"
MODES = ("record", "replay")
ROOT = Path(__file__).resolve().parents[2]
_INSTALL_LIMIT_S = 300
_SLOW_S = 10.0  # a cell that takes longer than this has fewer rounds
_SLOW_ROUNDS = 3


class Plan(NamedTuple):
    """What is compared: ``calls`` of a shape of result, in so many rounds, each cell within ``limit`` seconds."""

    shape: str
    calls: int
    rounds: int
    limit: float


class Time(NamedTuple):
    """One cell in one round, in seconds."""

    wall: float
    cpu: float


class Interpreters(NamedTuple):
    """Where the drivers run: by name, the Python to start; and by name why there is none, or which version it has."""

    python: dict[str, str]
    said: dict[str, str]


class Comparison:
    """What came out of a plan: times by round of each driver and mode, and why some have none."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.times: dict[tuple[str, str], dict[int, Time]] = {}
        self.failed: dict[tuple[str, str], str] = {}

    def done(self, name: str, mode: str, number: int) -> bool:
        """Whether a driver needs no more rounds."""
        times = self.times.get((name, mode), {})
        slow = any(time.wall > _SLOW_S for time in times.values())
        return (name, mode) in self.failed or (slow and number >= _SLOW_ROUNDS)

    def micros(self, name: str, mode: str, part: str = "wall") -> float | None:
        """The median time of a call."""
        times = self.times.get((name, mode))
        if not times:
            return None
        return statistics.median(getattr(time, part) for time in times.values()) / self.plan.calls * 1e6

    def ratio(self, name: str, mode: str, base: str) -> float | None:
        """The median of a driver's time over that of another in the same round."""
        ours, theirs = self.times.get((base, mode), {}), self.times.get((name, mode), {})
        both = ours.keys() & theirs.keys()
        return statistics.median(theirs[n].wall / ours[n].wall for n in both) if both else None


def plans(calls: int, rounds: int, limit: float) -> list[Plan]:
    """Both shapes, then ten times the calls, in a third of the rounds, to show how the cost of a call grows."""
    return [
        *(Plan(shape, calls, rounds, limit) for shape in SHAPES),
        Plan("rows", calls * 10, max(rounds // 3, 1), limit),
    ]


def chosen(only: str) -> list[str]:
    """The drivers with ``only`` in their names, and always the bare function and ours."""
    return [name for name in DRIVERS if only in name or name in ("bare function", NONE, FRAME)]


# -- installing ------------------------------------------------------------------------------------------------------


def install(folder: Path, names: Sequence[str]) -> Interpreters:
    """Put what the drivers need into a virtual environment in ``folder``, one package at a time."""
    found = Interpreters({}, {})
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    for name in names:
        package = DRIVERS[name].package
        if not package:
            found.python[name] = sys.executable
            continue
        if not python.exists():
            venv.create(folder, with_pip=True)
        why = _pip(python, package, *(["urllib3"] if DRIVERS[name].http else []))
        if why:
            found.said[name] = why
        else:
            found.python[name] = str(python)
            found.said[name] = _version(python, package)
    return found


def _pip_command(python: Path) -> list[str]:
    return [str(python), "-m", "pip"]


def _pip(python: Path, *packages: str) -> str:
    """Install; '' or why not."""
    command = [*_pip_command(python), "install", "--quiet", "--disable-pip-version-check", *packages]
    try:
        made = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"not installed within {_INSTALL_LIMIT_S} s"
    return f"does not install: {_last(made.stderr)}" if made.returncode else ""


def _version(python: Path, package: str) -> str:
    statement = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    made = subprocess.run([str(python), "-c", statement, package], capture_output=True, text=True, check=True)
    return made.stdout.strip()


def _last(said: str) -> str:
    lines = said.strip().splitlines()
    return lines[-1][:100] if lines else "it said nothing"


# -- running ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def server() -> Generator[int]:
    """The port of a server that ends with this block."""
    command = [sys.executable, "-m", "tests.benchmarks.peer_server"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=cell_environment()) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.communicate()  # closes its input


def cell_environment() -> dict[str, str]:
    """What a driver finds: this folder's modules and our package; what else it imports is its interpreter's."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}


def _cell(python: str, words: Sequence[str], limit: float) -> Time | str:
    """One cell in a process of its own: its time, or why it has none."""
    command = [python, "-m", "tests.benchmarks.peer_cell", *words]
    try:
        made = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, env=cell_environment(), cwd=ROOT, check=False
        )
    except subprocess.TimeoutExpired:
        return f"DNF within {limit:g} s"
    if made.returncode:
        return f"failed: {_last(made.stderr)}"
    found = json.loads(made.stdout.splitlines()[-1])
    return Time(found["seconds"], found["cpu"]) if found["right"] else "wrong results, or real bodies ran"


def compare(plan: Plan, interpreters: Interpreters) -> Comparison:
    """Run the plan: in each round every driver records and replays; every second round the other way round."""
    compared = Comparison(plan)
    names = list(interpreters.python)
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(server()) if any(DRIVERS[name].http for name in names) else 0
        for number in range(plan.rounds):
            for name in names[:: -1 if number % 2 else 1]:
                with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
                    _take_turn(compared, number, name, interpreters.python[name], [folder, str(port)])
    return compared


def _take_turn(compared: Comparison, number: int, name: str, python: str, where: list[str]) -> None:
    """One driver's round. Without a recording there is nothing to replay."""
    plan = compared.plan
    if all(compared.done(name, mode, number) for mode in MODES):
        return
    for mode in MODES:
        if compared.done(name, mode, number) and mode == "replay":
            return
        found = _cell(python, [name, mode, plan.shape, str(plan.calls), *where], plan.limit)
        if isinstance(found, str):
            compared.failed[name, mode] = found
            if mode == "record":
                compared.failed[name, "replay"] = "nothing to replay"
            return
        compared.times.setdefault((name, mode), {})[number] = found


# -- telling ---------------------------------------------------------------------------------------------------------

_HEADER = ("who", "version", *(f"{mode} {what}" for mode in MODES for what in ("us", "cpu us", "x none", "x frame")))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _line(compared: Comparison, interpreters: Interpreters, name: str) -> list[str]:
    cells = [name, interpreters.said.get(name, "")]
    for mode in MODES:
        cells += [_number(compared.micros(name, mode)), _number(compared.micros(name, mode, "cpu"))]
        cells += [_number(compared.ratio(name, mode, base)) for base in (NONE, FRAME)]
    return cells


def report(compared: Comparison, interpreters: Interpreters) -> str:
    """The table of a plan, and what has no figure there and why."""
    plan = compared.plan
    return "\n".join(
        [
            f"{plan.calls} calls, {plan.shape}, {plan.rounds} rounds",
            columns([_HEADER, *(_line(compared, interpreters, name) for name in interpreters.python)]),
            *(f"  {name}, {mode}: {why}" for (name, mode), why in compared.failed.items()),
        ]
    )


def growth(small: Comparison, large: Comparison, interpreters: Interpreters) -> str:
    """How a call's cost grew with the number of calls; and whom there is no interpreter for."""
    rows: list[Sequence[str]] = [("who", *(f"{mode} growth" for mode in MODES))]
    for name in interpreters.python:
        pairs = [(small.micros(name, mode), large.micros(name, mode)) for mode in MODES]
        rows.append([name, *("-" if not a or not b else f"x{b / a:.2f}" for a, b in pairs)])
    return "\n".join(
        [
            f"a call's cost at {large.plan.calls} calls over that at {small.plan.calls}",
            columns(rows),
            *(f"{name}: {why}" for name, why in interpreters.said.items() if name not in interpreters.python),
        ]
    )


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines of text, the first column to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
