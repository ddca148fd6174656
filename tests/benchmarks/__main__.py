"""``python -m tests.benchmarks``: a table of ratios against the plainest code that does the same.

Rule: run it on the machine whose figures you want; only ratios can be compared between machines, and none is asserted.
``README.md`` beside this file tells what is measured, and what the figures should be.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks import instructions, peers
from tests.benchmarks.adapters import adapting
from tests.benchmarks.calls import benchmarks, durable, redacting
from tests.benchmarks.files import importing, verifying
from tests.benchmarks.measure import measure, table
from tests.benchmarks.opening import opening, working
from tests.benchmarks.order import matching
from tests.benchmarks.sealing import sealing
from tests.benchmarks.signatures import signing
from tests.benchmarks.streams import streaming
from tests.benchmarks.syncs import group_commits, waiting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="ratios against plain code")
    parser.add_argument("--rounds", type=int, default=9, help="pairs of runs for each benchmark (default: 9)")
    parser.add_argument("--calls", type=int, default=2000, help="calls in one run (default: 2000)")
    parser.add_argument("--only", default="", metavar="NAME", help="those with NAME in their names")
    parser.add_argument("--peers", action="store_true", help="instead, compare with other packages, and install them")
    parser.add_argument("--instructions", action="store_true", help="instead, count instructions, if it can be done")
    parser.add_argument("--all", action="store_true", help="the table, the comparison and the count")
    parser.add_argument(
        "--limit", type=float, default=60, metavar="SECONDS", help="of one run of another package (default: 60)"
    )
    parser.add_argument(
        "--environment", type=Path, metavar="FOLDER", help="keep what --peers installs here (default: thrown away)"
    )
    return parser


def _table(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    found = itertools.chain(
        benchmarks(folder, options.calls),
        redacting(folder, options.calls),
        durable(folder, max(options.calls // 10, 1)),
        streaming(folder, max(options.calls // 2, 1)),
        waiting(folder, max(options.calls // 20, 1)),
        verifying(folder, options.calls),
        opening(folder, options.calls),
        working(folder, options.calls) if options.only in "verify-jobs" or "verify-jobs" in options.only else (),
        matching(options.calls),
        signing(folder, options.calls) if any(options.only in name for name in ("verify-signed", "sign")) else (),
        sealing(options.calls),
        adapting(folder, max(options.calls // 20, 1), options.only),
        importing(),
    )
    rows = [measure(b, options.rounds) for b in found if options.only in b.name]
    if rows:
        yield table(rows)
    groups = list(group_commits(folder, max(options.calls // 100, 1), options.only))
    if groups:
        header = ("group commit", "callers", "frames", "syncs", "frames a sync over callers")
        yield peers.columns([header, *((g.name, *map(str, g[1:]), f"{g.share:.2f}") for g in groups)])


def _comparison(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    found = peers.install(options.environment or folder / "environment", peers.chosen(options.only))
    done: list[peers.Comparison] = []
    for plan in peers.plans(options.calls, options.rounds, options.limit):
        done.append(peers.compare(plan, found))
        yield peers.report(done[-1], found)
    yield peers.growth(done[0], done[-1], found)


def _count(_folder: Path, options: argparse.Namespace) -> Iterator[str]:
    using = instructions.counter()
    if using is None:
        yield "no program here counts instructions: neither perf nor valgrind works"
        return
    header = ("instructions", "a call", "over the bare function")
    counts = instructions.count(using, options.calls)
    yield peers.columns([header, *((c.name, f"{c.each:.0f}", f"x{c.ratio:.1f}") for c in counts)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. Returns 0, or 2 where no benchmark has the name that was asked for."""
    options = _parser().parse_args(arguments)
    options.rounds = max(options.rounds, 1)
    asked = {_comparison: options.peers or options.all, _count: options.instructions or options.all}
    parts = [part for part, wanted in asked.items() if wanted]
    if options.all or not parts:
        parts.insert(0, _table)
    said = False
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        for text in itertools.chain.from_iterable(part(Path(name), options) for part in parts):
            print("\n" + text if said else text, flush=True)
            said = True
    if not said:
        print(f"no benchmark has {options.only!r} in its name", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
