"""What a file costs to verify, and the package to import.

Rule: base and ours read the same bytes of the same file, or start the same interpreter.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import toolcassette as tc
from tests.benchmarks.measure import Benchmark

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["importing", "verifying"]

_SRC = Path(__file__).resolve().parents[2] / "src"
_SMALL_ARGS = 60  # bytes that make the start frame about 300 bytes long
_SMALL_VALUE = 80  # and the result frame


def _write(file: Path, calls: int, args: int, value: int) -> None:
    call = tc.RecordedCall(
        tool="t",
        args=tc.canonical_json({"q": "a" * args}),
        value=tc.canonical_json("v" * value),
    )
    made = tc.write_cassette(
        [call] * calls, cassette="0" * 32, created="2026-01-01T00:00:00.000000Z", producer="benchmark"
    )
    file.write_bytes(made)


def _verify_seconds(file: Path) -> float:
    began = time.perf_counter()
    report = tc.verify(file)
    seconds = time.perf_counter() - began
    if not report.ok:
        raise RuntimeError(report.message)
    return seconds


def _digest_seconds(file: Path) -> float:
    began = time.perf_counter()
    with file.open("rb") as stream:
        hashlib.file_digest(stream, "sha256")
    return time.perf_counter() - began


def _lines_seconds(file: Path) -> float:
    began = time.perf_counter()
    with file.open("rb") as stream:
        for line in stream:
            hashlib.sha256(line).hexdigest()
    return time.perf_counter() - began


def verifying(folder: Path, calls: int) -> Iterator[Benchmark]:
    """``verify`` of frames of 1 MB against one digest of the file, and of 300 bytes against a digest of each line."""
    large, small = folder / "large.cassette.jsonl", folder / "small.cassette.jsonl"
    megabytes = max(calls // 100, 1)
    _write(large, megabytes, 10, 1_000_000)
    _write(small, calls, _SMALL_ARGS, _SMALL_VALUE)
    yield Benchmark(
        "verify-1MB",
        lambda: _digest_seconds(large),
        lambda: _verify_seconds(large),
        megabytes,
        "a frame of 1 MB; base: hashlib.file_digest",
    )
    yield Benchmark(
        "verify-300B",
        lambda: _lines_seconds(small),
        lambda: _verify_seconds(small),
        2 * calls + 2,
        "a frame of 300 bytes; base: SHA-256 of each line",
    )


def _start_seconds(statement: str) -> float:
    environment = os.environ | {"PYTHONPATH": str(_SRC)}
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], env=environment, check=True)
    return time.perf_counter() - began


def importing() -> Iterator[Benchmark]:
    """A fresh interpreter that imports the package, against one that imports nothing."""
    yield Benchmark(
        "import",
        lambda: _start_seconds("pass"),
        lambda: _start_seconds("import toolcassette"),
        1,
        "a fresh interpreter; base: one that does nothing",
    )
