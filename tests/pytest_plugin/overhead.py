"""What the plugin costs a suite of 1,000 tests that do not use it: ``python -m tests.pytest_plugin.overhead [PAIRS]``.

Rule: pairs of runs, with and without the plugin, in turn; processor time of the whole process (a busy machine stretches
the clock, but not that). Two figures: the median of the pairs' ratios, and the ratio of the least disturbed runs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.pytest_plugin.suite import SRC

TESTS = 1_000
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(SRC)}
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def seconds(folder: Path, *options: str) -> float:
    """Processor time of one run, user and system."""
    before = os.times()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | ALONE
    subprocess.run([*PYTEST, *options], cwd=folder, env=environment, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    """Print the figure."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        body = "".join(f"def test_{n}():\n    assert {n} + 1 == {n + 1}\n\n" for n in range(TESTS))
        (folder / "test_trivial.py").write_text(body, "utf-8")
        seconds(folder)
        seconds(folder, "-p", "toolcassette.pytest_plugin")  # both: compiled once
        ratios, bare, used = [], [], []
        for number in range(pairs):
            plugin = ("-p", "toolcassette.pytest_plugin")
            runs = [(), plugin] if number % 2 else [plugin, ()]
            times = {options: seconds(folder, *options) for options in runs}
            ratios.append(times[plugin] / times[()])
            bare.append(times[()])
            used.append(times[plugin])
    middle, least, most = (100 * (figure(ratios) - 1) for figure in (statistics.median, min, max))
    print(f"{TESTS} tests, {pairs} pairs: {statistics.median(bare):.2f} s without the plugin")
    print(f"with it, least disturbed: {100 * (min(used) / min(bare) - 1):+.1f} %")
    print(f"with it: {middle:+.1f} % (from {least:+.1f} % to {most:+.1f} %)")


if __name__ == "__main__":
    main()
