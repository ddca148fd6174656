"""What the tests of concurrency share: how often to repeat, cassettes written frame by frame, and quick threads.

Rule: a repetition has a seed, and a failure shows it. ``TOOLCASSETTE_TEST_FULL=1`` repeats as often as is promised;
without it a run stays short.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import toolcassette as tc
from toolcassette.format import RecordedOutcome, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

FULL = os.environ.get("TOOLCASSETTE_TEST_FULL") == "1"


def times(default: int, full: int) -> range:
    """Seeds: how often something is repeated."""
    return range(full if FULL else default)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """A failure within tells the seed."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise


@contextlib.contextmanager
def hurried() -> Iterator[None]:
    """Threads take turns every few microseconds, as on a machine that is busy with something else."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def outcome(call: Callable[[], object]) -> object:
    """What a call gives, or the error of ours that it raises."""
    try:
        return call()
    except tc.CassetteError as error:
        return error


def in_threads(functions: Sequence[Callable[[], object]]) -> list[object]:
    """Run each on a bare thread of its own; what they give, or the error of ours that they raise, in that order."""
    found: list[object] = [None] * len(functions)

    def run(index: int) -> None:
        found[index] = outcome(functions[index])

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def frames_of(file: Path) -> list[dict[str, Any]]:
    """The frames of a cassette, as JSON."""
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def write(events: Iterable[tuple[str, int, Any]], *, order: str = "causal") -> bytes:
    """A cassette of events: ``("start", call, (path, tool, args))``, ``("chunk", call, n)``, ``("end", call, n)``.

    Calls are numbered in the order of their starts. An ``end`` has the number of chunks, or None for a plain value.
    """
    writer = Writer()
    lines = [
        writer.header(
            cassette="0" * 32,
            created="2026-01-01T00:00:00.000000Z",
            producer="test",
            include=["*"],
            order=order,
            sync="close",
        )
    ]
    for kind, call, rest in events:
        if kind == "start":
            path, tool, args = rest
            lines.append(writer.start(tool=tool, args=args, at=0, path=path))
        elif kind == "chunk":
            lines.append(writer.chunk(call, rest, value=b"%d" % rest, at=0))
        else:
            meta = None if rest is None else b'{"stream":"iterator"}'
            value = b"%d" % call if rest is None else None
            lines.append(writer.result(call, RecordedOutcome("ok", value=value, chunks=rest, meta=meta)))
    lines.append(writer.complete())
    return b"".join(lines)


def overlapping(count: int, *, scopes: int = 0) -> Iterator[tuple[str, int, Any]]:
    """Calls of which each overlaps the next two, all different; in one path, or in turn in some scopes."""
    for n in range(count):
        yield "start", n, ((f"s{n % scopes}",) if scopes else (), "t", b'{"n":%d}' % n)
        if n >= 2:
            yield "end", n - 2, None
    yield from (("end", n, None) for n in range(max(count - 2, 0), count))
