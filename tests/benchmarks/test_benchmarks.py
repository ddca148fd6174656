"""The benchmarks run, and print what they promise; how fast anything was is nobody's business here."""

from __future__ import annotations

import pytest

from tests.benchmarks.__main__ import main
from tests.benchmarks.measure import HEADER, Benchmark, measure

MODES = ("record", "replay")
NAMES = [
    *(f"{mode}-{kind}-{shape}" for kind in ("sync", "async") for shape in ("rows", "text") for mode in MODES),
    *(f"redact-{mode}-{size}" for size in ("1KB", "1MB") for mode in MODES),
    "record-durable",
    *(f"{mode}-stream-{kind}" for kind in ("sync", "async") for mode in MODES),
    "record-async-2ms",
    "verify-1MB",
    "verify-300B",
    "open-index",
    "use-read",
    "causal-few",
    "causal-more",
    "causal-many",
    "verify-signed",
    "sign",
    *(f"encrypt-{size}" for size in ("300B", "1KB", "64KB", "1MB")),
    *(f"{mode}-{name}" for name in ("pydantic-ai", "openai-agents", "langchain", "fastmcp") for mode in MODES),
    "import",
]  # fmt: skip
GROUPS = [f"frames-per-sync-{kind}-{callers}" for kind in ("async", "threads") for callers in (10, 100)]


def test_all_of_them(capsys):
    assert main(["--rounds", "1", "--calls", "3"]) == 0
    ratios, groups = capsys.readouterr().out.split("\n\n")
    header, *rows = ratios.splitlines()
    assert header.split("  ")[0] == HEADER[0]
    assert [row.split()[0] for row in rows] == NAMES
    for row in rows:
        base, ours, _, ratio, lowest, highest = (float(cell) for cell in row.split()[1:7])
        assert base >= 0
        assert ours > 0
        assert lowest == ratio == highest  # of one round
    _, *rows = groups.splitlines()
    assert [row.split()[0] for row in rows] == GROUPS
    for row in rows:
        callers, frames, syncs = map(int, row.split()[1:4])
        assert frames == callers * 2 + 2  # one call each, header and complete
        assert 1 < syncs <= frames


def test_one_of_them(capsys):
    assert main(["--rounds", "1", "--calls", "3", "--only", "verify-300B"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_none_of_them(capsys):
    assert main(["--rounds", "1", "--calls", "3", "--only", "nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err


def test_a_row_is_the_median_of_pairs():
    """Base takes 1, 2, 4 seconds and ours 2, 6, 4: the ratios are 2, 3 and 1."""
    base, ours = iter([9.0, 1.0, 2.0, 4.0]), iter([9.0, 2.0, 6.0, 4.0])
    row = measure(Benchmark("b", lambda: next(base), lambda: next(ours), 2, "a unit"), 3)
    assert (row.ratio, row.lowest, row.highest) == (2.0, 1.0, 3.0)
    assert (row.base, row.ours, row.extra) == (1e6, 2e6, 0.5e6)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_base_and_ours_take_turns(rounds):
    order: list[str] = []

    def side(name):
        def run():
            order.append(name)
            return 1.0

        return run

    measure(Benchmark("b", side("base"), side("ours"), 1, "a unit"), rounds)
    assert order == (["base", "ours"] + ["base", "ours", "ours", "base"] * 2)[: 2 + 2 * rounds]
