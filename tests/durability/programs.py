"""Programs that record, and say to the disk what they were promised."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import toolcassette as tc
from tests.durability.disk import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.durability.disk import Disk

FILE = "x.cassette.jsonl"
PARTIAL = FILE + ".partial"
PATH = f"{FOLDER}/{FILE}"
SECRET = "zK4mQ9xW2pT7vB5nR8"

# sync -> what a program may lean on before its session ends
PROMISED = {"frame": {"start", "result"}, "call": {"result"}, "close": set(), "none": set()}


def session(disk: Disk, sync: str = "frame", **options: object) -> tc.Recorder:
    return tc.record(PATH, ["fetch"], store=tc.FileStore(disk), sync=sync, **options)


def record(disk: Disk, calls: int = 3, sync: str = "frame", **options: object) -> tc.Verdict:
    """Record ``calls`` calls, one after the other."""

    def fetch(n: int) -> str:
        if "start" in PROMISED[sync]:
            disk.acknowledge("start", n)
        return f"result {n}"

    tool = tc.Registry().wrap(fetch, name="fetch")
    with session(disk, sync, **options) as recorder:
        for n in range(calls):
            tool(n)
            if "result" in PROMISED[sync]:
                disk.acknowledge("result", n)
    return ended(disk, recorder)


def record_stream(disk: Disk, items: int = 3) -> tc.Verdict:
    """Record one call whose result comes piece by piece."""

    def fetch(n: int) -> Iterator[str]:
        disk.acknowledge("start", n)
        yield from (f"{item} of {n}" for item in range(items))

    tool = tc.Registry().wrap(fetch, name="fetch")
    with session(disk) as recorder:
        for _ in tool(items):
            disk.acknowledge_all(published=False)  # the consumer has it: so has the disk
    return ended(disk, recorder)


def record_tasks(disk: Disk, calls: int = 3) -> tc.Verdict:
    """Record ``calls`` calls that overlap, on an event loop."""

    async def fetch(n: int) -> str:
        disk.acknowledge("start", n)
        await asyncio.sleep(0)
        return f"result {n}"

    tool = tc.Registry().wrap(fetch, name="fetch")

    async def one(n: int) -> None:
        await tool(n)
        disk.acknowledge("result", n)

    async def main() -> tc.Recorder:
        async with session(disk) as recorder:
            await asyncio.gather(*map(one, range(calls)))
        return recorder

    return ended(disk, asyncio.run(main()))


def record_threads(disk: Disk, calls: int = 4) -> tc.Verdict:
    """Record ``calls`` calls that overlap, each on a thread of its own: whoever comes first syncs for all."""

    def fetch(n: int) -> str:
        disk.acknowledge("start", n)
        return f"result {n}"

    tool = tc.Registry().wrap(fetch, name="fetch")

    def one(n: int) -> None:
        tool(n)
        disk.acknowledge("result", n)

    with session(disk, order="causal") as recorder:
        threads = [threading.Thread(target=one, args=(n,)) for n in range(calls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return ended(disk, recorder)


def ended(disk: Disk, recorder: tc.Recorder) -> tc.Verdict:
    verdict = recorder.verdict
    assert verdict is not None
    disk.acknowledge_all(published=verdict.outcome == "published")
    return verdict


def record_late(disk: Disk, sync: str = "frame", **options: object) -> tc.Verdict:
    """Record a secret before the call that tells that it is one: at the end all is written anew.

    What was promised on the way is not in the new lines; ``disk.acks`` are those of the end.
    """

    def fetch(n: int, q: str, password: str | None = None) -> str:
        return f"result {n} of {q}"

    tool = tc.Registry().wrap(fetch, name="fetch")
    with session(disk, sync, **options) as recorder:
        for n, password in enumerate((None, SECRET)):
            tool(n, SECRET, password)
    return ended(disk, recorder)
