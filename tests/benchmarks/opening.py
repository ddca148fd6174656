"""What a large cassette costs to open and to use where only its index is held, and to verify with two workers.

Rule: base and ours are the same package on files of the same kind: fewer calls against more, held against read, one
worker against two.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING
from unittest import mock

import toolcassette as tc
from tests.benchmarks.measure import Benchmark
from toolcassette.engine import publication
from toolcassette.format import RecordedOutcome, Writer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["opening", "working"]

_ARGS = tc.canonical_json({"q": "a" * 60})
_SMALL = 80  # bytes of a value that make a frame of about 300
_SPIN = "for _ in range(3_000_000): pass"


def _write(file: Path, calls: int, value: int) -> None:
    writer, ended = Writer(), RecordedOutcome("ok", value=tc.canonical_json("v" * value))
    head = {"cassette": "0" * 32, "created": "2026-01-01T00:00:00.000000Z", "producer": "benchmark"}
    with file.open("wb") as stream:
        stream.write(writer.header(**head, include=["t"], order="strict", sync="none"))
        for number in range(calls):
            stream.write(writer.start(tool="t", args=_ARGS, at=0))
            stream.write(writer.result(number, ended))
        stream.write(writer.complete())


def _read(file: Path, held: int) -> tc.Cassette:
    """The cassette, held in memory if it has at most that many bytes."""
    with mock.patch.object(publication, "HELD_BYTES", held):  # so that a small file stands for a large one
        return tc.read_cassette(file)


def _open_seconds(file: Path, times: int) -> float:
    began = time.perf_counter()
    for _ in range(times):
        _read(file, 0)
    return time.perf_counter() - began


def _use_seconds(cassette: tc.Cassette) -> float:
    began = time.perf_counter()
    for call in range(len(cassette)):
        if not cassette.is_call(call, "t", _ARGS):
            raise RuntimeError("not the call that was written")
        cassette.outcome(call)
    return time.perf_counter() - began


def opening(folder: Path, calls: int) -> Iterator[Benchmark]:
    """Opening a cassette that is not held, of 100 times the calls; and using one, against one that is held."""
    few, many = folder / "few.cassette.jsonl", folder / "many.cassette.jsonl"
    small = max(calls // 100, 1)
    _write(few, small, _SMALL)
    _write(many, calls, _SMALL)
    yield Benchmark(
        "open-index",
        partial(_open_seconds, few, max(calls // small, 1)),
        partial(_open_seconds, many, 1),
        calls,
        "a call opened without holding it; base: a hundredth of the calls",
    )
    held, read = _read(many, 2**62), _read(many, 0)
    yield Benchmark(
        "use-read",
        partial(_use_seconds, held),
        partial(_use_seconds, read),
        calls,
        "a call matched and handed out, read on use; base: held in memory",
    )
    read.close()


def _two_cores_are_idle() -> bool:
    """Whether two loops at once take about as long as one: else no figure of two workers says anything."""
    command = [sys.executable, "-c", _SPIN]
    began = time.perf_counter()
    subprocess.run(command, check=True)
    alone = time.perf_counter() - began
    began = time.perf_counter()
    for process in [subprocess.Popen(command), subprocess.Popen(command)]:
        process.wait()
    return time.perf_counter() - began < 1.25 * alone


def _verify_seconds(file: Path, jobs: int) -> float:
    began = time.perf_counter()
    report = tc.verify(file, jobs=jobs)
    seconds = time.perf_counter() - began
    if not report.ok:
        raise RuntimeError(report.message)
    return seconds


def working(folder: Path, calls: int) -> Iterator[Benchmark]:
    """``verify`` with one worker against two, on files of at least 36 MB; none for few calls, or on busy cores."""
    if calls < 1000:
        return
    if not _two_cores_are_idle():
        print("verify-jobs: not measured, because two cores are not idle", file=sys.stderr)
        return
    for name, frames, value in (("1MB", max(calls // 20, 100), 1_000_000), ("300B", max(calls * 30, 60_000), _SMALL)):
        file = folder / f"jobs-{name}.cassette.jsonl"
        _write(file, frames, value)
        yield Benchmark(
            f"verify-jobs-{name}",
            partial(_verify_seconds, file, 2),
            partial(_verify_seconds, file, 1),
            2 * frames + 2,
            "a frame with one worker; base: two",
        )
