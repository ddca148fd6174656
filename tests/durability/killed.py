"""Programs that record for real, say what they were promised, and are killed: ``python -m tests.durability.killed``.

    random WAY FOLDER TRIALS SEED    fork a program TRIALS times and kill -9 it at a random moment
    every WAY FOLDER                 fork a program that kills itself before its operation 0, 1, 2, ... until one ends

WAY is ``calls`` (one long recording), ``tasks`` (the same, calls overlap) or ``tiny`` (one short recording after the
other, so that many a kill comes while publishing). Each program works in ``FOLDER/<trial>`` and leaves there, beside
its recordings, a file ``acks``: a line ``<recording> <frames>`` each time it knew that so many frames were kept, or
``<recording> published``.

One process forks them all, because to start Python takes longer than most of them live.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import os
import random
import signal
import sys
import time
from pathlib import Path

import toolcassette as tc
from toolcassette.stores import FileOps

LONG = 100_000  # calls: more than anybody lives to make
EVERY_MAX = 500


class Diary:
    """What the program was promised, in a file that outlives it: what was written is kept by the system."""

    def __init__(self, folder: Path) -> None:
        self._fd = os.open(folder / "acks", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, recording: str, what: object) -> None:
        os.write(self._fd, f"{recording} {what}\n".encode())


class Mortal(FileOps):
    """Kills its process before the operation of this number."""

    def __init__(self, last: int) -> None:
        self._last = last
        self._done = 0

    def __getattribute__(self, name):
        real = super().__getattribute__(name)
        if name.startswith("_") or not callable(real):
            return real
        if self._done == self._last:
            os.kill(os.getpid(), signal.SIGKILL)
        self._done += 1
        return real


def calls(folder: Path, diary: Diary, store: tc.FileStore, count: int = LONG, name: str = "r0") -> None:
    """One call after the other: frame 2n + 1 is the start of call n, the one after it its result."""

    def fetch(n: int) -> str:
        diary.note(name, 2 * n + 2)
        return "result " * 20

    tool = tc.Registry().wrap(fetch, name="fetch")
    with tc.record(folder / f"{name}.cassette.jsonl", ["fetch"], store=store):
        for n in range(count):
            tool(n)
            diary.note(name, 2 * n + 3)
    diary.note(name, "published")


def tiny(folder: Path, diary: Diary, store: tc.FileStore, count: int = LONG) -> None:
    for number in range(count):
        calls(folder, diary, store, 1, f"r{number}")


def tasks(folder: Path, diary: Diary, store: tc.FileStore, count: int = LONG) -> None:
    """Ten calls at a time: which frame is whose is not known here, but all ten end before the next ten begin."""

    async def fetch(n: int) -> str:
        return "result " * 20

    tool = tc.Registry().wrap(fetch, name="fetch")

    async def main() -> None:
        async with tc.record(folder / "r0.cassette.jsonl", ["fetch"], store=store):
            for done in range(0, count, 10):
                await asyncio.gather(*(tool(done + n) for n in range(10)))
                diary.note("r0", 2 * (done + 10) + 1)
        diary.note("r0", "published")

    asyncio.run(main())


WAYS = {"calls": calls, "tasks": tasks, "tiny": tiny}
FEW = {"calls": 2, "tasks": 10, "tiny": 2}  # of a program that is to end


def born(way: str, folder: Path, store: tc.FileStore, count: int) -> int:
    """Fork the program. Returns its process id."""
    folder.mkdir()
    diary = Diary(folder)
    pid = os.fork()
    if pid:
        return pid
    try:
        WAYS[way](folder, diary, store, count)
    finally:
        os._exit(0)


def at_random(way: str, folder: Path, trials: int, seed: int) -> None:
    chance = random.Random(seed)
    for trial in range(trials):
        pid = born(way, folder / str(trial), tc.FileStore(), LONG)
        acks = folder / str(trial) / "acks"
        while not acks.exists() or not acks.stat().st_size:  # a busy machine may take its time to begin
            time.sleep(0.001)
        time.sleep(0.13 * chance.random())
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def at_every_operation(way: str, folder: Path) -> None:
    for last in itertools.count():
        pid = born(way, folder / str(last), tc.FileStore(Mortal(last)), FEW[way])
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            return
        assert last < EVERY_MAX


if __name__ == "__main__":
    for module in ("toolcassette.engine.aio", "anyio._backends._asyncio"):
        importlib.import_module(module)  # once, and not in each child
    mode, chosen, where, *rest = sys.argv[1:]
    if mode == "random":
        at_random(chosen, Path(where), int(rest[0]), int(rest[1]))
    else:
        at_every_operation(chosen, Path(where))
