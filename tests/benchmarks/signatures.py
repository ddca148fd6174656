"""What a signature costs: making one, and judging one, against a plain ``verify`` of the same cassette.

Rule: base and ours read the same file; each signature is made anew.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import toolcassette as tc
from tests.benchmarks.measure import Benchmark
from toolcassette.crypto import Signer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["signing"]

_CALLS_FACTOR = 25  # 100,000 frames with the usual number of calls


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def signing(folder: Path, calls: int) -> Iterator[Benchmark]:
    """``verify`` with a trusted key, and ``sign``, which looks at every value."""
    file, key = folder / "signed.cassette.jsonl", folder / "key"
    sidecar = folder / "signed.cassette.jsonl.sig"
    signer = Signer.generate("benchmark")
    key.write_bytes(signer.to_bytes())
    call = tc.RecordedCall(tool="t", args=tc.canonical_json({"q": "a" * 60}), value=tc.canonical_json("v" * 80))
    count = calls * _CALLS_FACTOR
    file.write_bytes(
        tc.write_cassette(
            [call] * count, cassette="0" * 32, created="2026-01-01T00:00:00.000000Z", producer="benchmark"
        )
    )
    note: list[bytes] = []

    def plain() -> float:
        sidecar.unlink(missing_ok=True)
        return _seconds(lambda: _checked(tc.verify(file), signed=False))

    def signs() -> float:
        sidecar.unlink(missing_ok=True)
        seconds = _seconds(lambda: tc.sign(file, key))
        note[:] = [sidecar.read_bytes()]
        return seconds

    def judges() -> float:
        if not note:
            signs()
        sidecar.write_bytes(note[0])
        return _seconds(lambda: _checked(tc.verify(file, trusted_keys=[str(signer.verifier)]), signed=True))

    frames = 2 * count + 2
    yield Benchmark("verify-signed", plain, judges, frames, "a frame of 300 bytes; base: verify of it, unsigned")
    yield Benchmark("sign", plain, signs, frames, "a frame of 300 bytes; base: verify of it; ours looks at every value")


def _checked(report: tc.Report, *, signed: bool) -> None:
    if not report.ok or report.signed is not signed:
        raise RuntimeError(report.message)
