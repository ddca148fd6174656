"""Ratios that a noisy machine cannot bend: base and ours take turns, round by round, and each round is a pair.

Rule: what is reported is the median of the rounds' own ratios, with the smallest and the largest; nothing is asserted.
"""

from __future__ import annotations

import gc
import statistics
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Side = Callable[[], float]

__all__ = ["HEADER", "Benchmark", "Row", "measure", "table"]


class Benchmark(NamedTuple):
    """Two ways to do something: each, called, does it ``units`` times and returns the seconds that this took."""

    name: str
    base: Side
    ours: Side
    units: int
    unit: str  # what one of them is, for the reader


class Row(NamedTuple):
    """Medians of the rounds; times in microseconds a unit, ``extra`` of the rounds' own differences."""

    name: str
    base: float
    ours: float
    extra: float
    ratio: float
    lowest: float
    highest: float
    unit: str


HEADER = ("benchmark", "base us", "ours us", "extra us", "ratio", "lowest", "highest", "a unit is")


def _quiet(side: Side) -> float:
    """One run without a garbage collection of what others left behind."""
    gc.collect()
    gc.disable()
    try:
        return side()
    finally:
        gc.enable()


def measure(benchmark: Benchmark, rounds: int) -> Row:
    """Run ``rounds`` pairs, after one that is not counted; every second pair the other way round."""
    benchmark.base(), benchmark.ours()
    pairs: list[tuple[float, float]] = []
    for number in range(rounds):
        if number % 2:
            ours = _quiet(benchmark.ours)
            base = _quiet(benchmark.base)
        else:
            base = _quiet(benchmark.base)
            ours = _quiet(benchmark.ours)
        pairs.append((base, ours))
    scale = 1e6 / benchmark.units
    ratios = [ours / base for base, ours in pairs]
    return Row(
        benchmark.name,
        statistics.median(base for base, _ in pairs) * scale,
        statistics.median(ours for _, ours in pairs) * scale,
        statistics.median(ours - base for base, ours in pairs) * scale,
        statistics.median(ratios),
        min(ratios),
        max(ratios),
        benchmark.unit,
    )


def _cells(row: Row) -> tuple[str, ...]:
    numbers = (f"{row.base:.2f}", f"{row.ours:.2f}", f"{row.extra:.2f}")
    return (row.name, *numbers, *(f"{r:.2f}" for r in (row.ratio, row.lowest, row.highest)), row.unit)


def table(rows: Sequence[Row]) -> str:
    """The rows as lines of text, names to the left and numbers to the right."""
    lines = [HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    last = len(HEADER) - 1
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in (0, last) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
