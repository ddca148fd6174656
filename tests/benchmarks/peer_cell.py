"""One cell of the comparison, in a process of its own: one package records the work, or replays it.

Rule: each package is driven through its public names, in the strictest mode that it documents, and pays for its whole
session: opening, calls, closing. Its import is not counted. The first and the last result must be right, and a replay
must run no body, or the cell has no figure.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.benchmarks.peer_server import url
from tests.benchmarks.work import SHAPES, arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from contextlib import AbstractContextManager

    Tool = Callable[..., Any]
    # (record or not, folder of the cassette, the tool's function) -> around the calls; gives the tool to call
    Session = Callable[[bool, Path, Tool], AbstractContextManager[Tool]]

__all__ = ["DRIVERS", "Driver"]


class Driver(NamedTuple):
    """How a package is driven. ``load`` imports it; ``package`` is what pip calls it, '' for what needs none."""

    package: str
    load: Callable[[], Session]
    http: bool = False  # its boundary is HTTP: the tool is a request to the local server


def _bare() -> Session:
    return lambda _record, _folder, fn: contextlib.nullcontext(fn)


def _toolcassette(sync: str) -> Session:
    tc = importlib.import_module("toolcassette")
    registry, recording, replaying = tc.Registry, tc.record, tc.replay  # asked for, they load the rest of the package

    redact = sync != "none"  # which is there to compare like with like: no other package has rules by default
    policy = "refuse" if redact else "ignore"

    @contextlib.contextmanager
    def session(record: bool, folder: Path, fn: Tool) -> Generator[Tool]:
        tool = registry().wrap(fn, name="search")
        file = folder / "c.cassette.jsonl"
        with recording(file, ["search"], sync=sync, redact=redact) if record else replaying(file, on_secret=policy):
            yield tool

    return session


def _agenttape() -> Session:
    agenttape = importlib.import_module("agenttape")

    @contextlib.contextmanager
    def session(record: bool, folder: Path, fn: Tool) -> Generator[Tool]:
        tool = agenttape.tool(fn)
        with agenttape.use_cassette(str(folder / "c.yaml"), mode="record" if record else "none"):
            yield tool

    return session


def _cassette_fn() -> Session:
    cassette_fn = importlib.import_module("cassette_fn")

    @contextlib.contextmanager
    def session(record: bool, folder: Path, fn: Tool) -> Generator[Tool]:
        tape = cassette_fn.tape(dir=str(folder), name="c", mode="record" if record else "replay")
        yield tape.wrap(fn)
        if record:
            tape.save()

    return session


def _agentcassette() -> Session:
    agentcassette = importlib.import_module("agentcassette")

    @contextlib.contextmanager
    def session(record: bool, folder: Path, fn: Tool) -> Generator[Tool]:
        tool = agentcassette.intercept(fn, kind="tool")
        file = str(folder / "c.json")
        with agentcassette.record(file) if record else agentcassette.replay(file, strict=True):
            yield tool

    return session


def _llm_cassette() -> Session:
    llm_cassette = importlib.import_module("llm_cassette")

    @contextlib.contextmanager
    def session(record: bool, folder: Path, fn: Tool) -> Generator[Tool]:
        tool = llm_cassette.tool(fn)
        strictly = {} if record else {"strict": True}
        with llm_cassette.cassette(str(folder / "c.jsonl"), mode="record" if record else "replay", **strictly):
            yield tool

    return session


def _http_only() -> Session:
    importlib.import_module("urllib3")
    return _bare()


def _vcrpy() -> Session:
    vcr = importlib.import_module("vcr")
    importlib.import_module("urllib3")

    @contextlib.contextmanager
    def session(record: bool, folder: Path, fn: Tool) -> Generator[Tool]:
        mode = "once" if record else "none"
        with vcr.use_cassette(str(folder / "c.yaml"), record_mode=mode, match_on=["method", "uri"]):
            yield fn

    return session


def _cassetter() -> Session:
    cassetter = importlib.import_module("cassetter")
    importlib.import_module("urllib3")

    @contextlib.contextmanager
    def session(record: bool, folder: Path, fn: Tool) -> Generator[Tool]:
        mode = cassetter.RecordMode.ONCE if record else cassetter.RecordMode.NONE
        with cassetter.use_cassette(folder / "c.yaml", record_mode=mode, match_on=["method", "uri"]):
            yield fn

    return session


DRIVERS: dict[str, Driver] = {
    "bare function": Driver("", _bare),
    "toolcassette none": Driver("", lambda: _toolcassette("none")),
    "toolcassette frame": Driver("", lambda: _toolcassette("frame")),
    "agenttape": Driver("agenttape", _agenttape),
    "cassette-fn": Driver("cassette-fn", _cassette_fn),
    "agentcassette": Driver("agentcassette", _agentcassette),
    "llm-cassette": Driver("llm-cassette", _llm_cassette),
    "bare urllib3": Driver("urllib3", _http_only, http=True),
    "vcrpy": Driver("vcrpy", _vcrpy, http=True),
    "cassetter": Driver("cassetter", _cassetter, http=True),
}


def _requesting(port: int, shape: str) -> Tool:
    pool = importlib.import_module("urllib3").PoolManager()

    def search(query: str, limit: int, filters: dict[str, Any]) -> Any:
        reply = pool.request("GET", url(port, shape, {"query": query, "limit": limit, "filters": filters}))
        return json.loads(reply.data)

    return search


def run(name: str, mode: str, shape: str, calls: int, folder: Path, port: int) -> dict[str, Any]:
    """The seconds of the whole session, those of the processor alone, and whether it did what it should."""
    driver = DRIVERS[name]
    bodies = 0

    def search(query: str, limit: int, filters: dict[str, Any]) -> Any:
        nonlocal bodies
        bodies += 1
        return SHAPES[shape](query, limit, filters)

    session = driver.load()
    fn = _requesting(port, shape) if driver.http else search
    every = [arguments(number) for number in range(calls)]
    first = last = None
    gc.collect()
    worked, began = time.process_time(), time.perf_counter()
    with session(mode == "record", folder, fn) as tool:
        first = tool(**every[0])
        for each in every[1:-1]:
            tool(**each)
        last = tool(**every[-1])
    seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    right = [first, last] == [SHAPES[shape](**each) for each in (every[0], every[-1])]
    expected = 0 if driver.http or (mode == "replay" and not name.startswith("bare")) else calls
    return {"seconds": seconds, "cpu": cpu, "right": right and bodies == expected}


def main(words: Sequence[str]) -> None:
    """``NAME record|replay SHAPE CALLS FOLDER PORT``; prints one line of JSON."""
    name, mode, shape, calls, folder, port = words
    print(json.dumps(run(name, mode, shape, int(calls), Path(folder), int(port))))


if __name__ == "__main__":
    main(sys.argv[1:])
