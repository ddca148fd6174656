"""What encryption costs a frame, in time of the processor: the frames of a recording, sealed, against hashing them.

Rule: base and ours are given the same frames. The base hashes them as a plain recording does, and does nothing else.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Final

from tests.benchmarks.measure import Benchmark
from toolcassette.crypto import Identity, sealing_for
from toolcassette.format.chain import Chain
from toolcassette.format.sealing import sealed_body

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["sealing"]

_SIZES: Final = (("300B", 1), ("1KB", 1), ("64KB", 20), ("1MB", 200))  # and by how much fewer frames there are
_BYTES: Final = {"300B": 300, "1KB": 1024, "64KB": 64 * 1024, "1MB": 1024 * 1024}
_SECRET: Final = "0" * 32


def sealing(calls: int) -> Iterator[Benchmark]:
    """``hash`` and ``seal`` of result frames of several sizes."""
    for name, fewer in _SIZES:
        count = max(2 * calls // fewer, 1)
        filler = b"v" * (_BYTES[name] - 90)
        bodies = [
            b'{"seq":%d,"kind":"call/result","call":%d,"outcome":"ok","at":%d,"value":"%b"' % (n, n, n, filler)
            for n in range(1, count + 1)
        ]
        yield Benchmark(
            f"encrypt-{name}",
            functools.partial(_hashed, bodies),
            functools.partial(_sealed, bodies),
            count,
            f"a frame of {name}; base: hashing it; processor time",
        )


def _hashed(bodies: list[bytes]) -> float:
    link = Chain().link
    began = time.process_time()
    for body in bodies:
        link(body)
    return time.process_time() - began


def _sealed(bodies: list[bytes]) -> float:
    make = sealing_for([Identity.from_seed(bytes(range(32))).recipient])
    assert make is not None
    key, link = make(_SECRET), Chain().link
    began = time.process_time()
    for seq, body in enumerate(bodies, 1):
        link(sealed_body(body, seq, key))
    return time.process_time() - began
