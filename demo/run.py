"""The whole promise in three seconds, offline: record an agent's tool calls, stop the service, replay them without it.

    python demo/run.py

Rule: every line that starts with "ok" was checked. The exit status is 0 if all of them hold, else 1.
"""

from __future__ import annotations

import asyncio
import dataclasses
import http.server
import json
import shutil
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import toolcassette as tc

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST, MISSING = "Wuhan", "Atlantis"
SLOW, QUICK = "Reykjavik", "Nairobi"  # asked at once, in this order; the service answers the second one first
WEATHER = {
    FIRST: {"sky": "rain", "celsius": 19.5},
    SLOW: {"sky": "snow", "celsius": -2.0},
    QUICK: {"sky": "sun", "celsius": 24.0},
}


class Untrue(Exception):
    """A claim of this demo does not hold."""


def check(holds: object, claim: str) -> None:
    """Print the claim, or raise ``Untrue``. (No ``assert``: python -O would drop it.)"""
    if not holds:
        raise Untrue(claim)
    print(f"  ok  {claim}")


def raised(kind: type[Exception], run: Callable[[], object], claim: str) -> Any:
    """The exception of class ``kind`` that ``run`` must raise."""
    try:
        run()
    except kind as error:
        check(True, claim)
        return error
    raise Untrue(claim)


# --- the outside world: a weather service over HTTP -----------------------------------------------------------------


class WeatherService(http.server.ThreadingHTTPServer):
    """Answers ``/weather?city=...`` on the loopback interface, and counts its requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), WeatherHandler)
        self.requests = 0
        self.quick_answered = threading.Event()
        self._counting = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/weather"

    def count(self) -> None:
        with self._counting:
            self.requests += 1

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class WeatherHandler(http.server.BaseHTTPRequestHandler):
    server: WeatherService

    def do_GET(self) -> None:
        self.server.count()
        city = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["city"][0]
        if city == SLOW:
            self.server.quick_answered.wait(timeout=5)
            time.sleep(0.05)
        self._answer(city)
        if city == QUICK:
            self.server.quick_answered.set()

    def _answer(self, city: str) -> None:
        body = json.dumps(WEATHER.get(city, {"detail": "no such city"})).encode()
        self.send_response(200 if city in WEATHER else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Say nothing: the demo talks."""


# --- the program under test: a tool, and an agent that calls it -----------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Weather:
    city: str
    sky: str
    degrees: float
    unit: str


class UnknownCity(Exception):
    """What the tool makes of an HTTP 404."""


bodies = 0  # how often a real tool body ran
connections: list[object] = []  # every address that this process connected to


def watch(event: str, args: tuple[Any, ...]) -> None:
    """The interpreter itself tells of each connection, whatever library makes it."""
    if event == "socket.connect":
        connections.append(args[1])


@tc.cassette_tool(omit=["url"], errors=[UnknownCity])
async def weather_lookup(url: str, city: str, unit: str = "c") -> Weather:
    """The weather in a city. ``url`` changes from run to run, so it is left out of what identifies a call."""
    global bodies  # noqa: PLW0603 - a counter of this one script
    bodies += 1
    found = await asyncio.to_thread(fetch, url, city)
    degrees = found["celsius"] if unit == "c" else found["celsius"] * 9 / 5 + 32
    return Weather(city, found["sky"], degrees, unit)


def fetch(url: str, city: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(f"{url}?city={city}", timeout=5) as response:
            found: dict[str, Any] = json.load(response)
            return found
    except urllib.error.HTTPError as error:
        error.close()
        raise UnknownCity(city) from None


async def agent(url: str, *, unit: str = "c", cities_at_once: tuple[str, ...] = (SLOW, QUICK)) -> list[object]:
    """A scripted stand-in for a model that calls tools: one city, one that fails, then two at once."""
    answers: list[object] = [await weather_lookup(url, FIRST, unit)]
    try:
        answers.append(await weather_lookup(url, MISSING))
    except UnknownCity as error:
        answers.append(f"{type(error).__name__}: {error}")
    answers += await asyncio.gather(*(weather_lookup(url, city) for city in cities_at_once))
    return answers


async def swallowing_agent(url: str) -> list[object]:
    """Like most agent frameworks: whatever a tool raises becomes text for the model, and the run goes on."""
    try:
        return [await weather_lookup(url, FIRST, "f")]
    except Exception as error:  # noqa: BLE001 - the very habit that is shown
        return [f"tool failed: {type(error).__name__}"]


# --- the demo -------------------------------------------------------------------------------------------------------


def record(file: Path) -> tuple[str, list[object]]:
    print("\n1. record: the agent runs once, with the real service")
    service = WeatherService()
    try:
        with tc.record(file, include=["weather_lookup"]):
            answers = asyncio.run(agent(service.url))
    finally:
        service.stop()
    for answer in answers:
        print(f"      {answer}")
    check(
        bodies == service.requests == len(connections) == 4,
        f"{bodies} tool bodies ran, {service.requests} HTTP requests were made",
    )
    calls = list(tc.read_cassette(file))
    check([call.outcome for call in calls] == ["ok", "error", "ok", "ok"], "4 calls are kept, one of them an error")
    slow, quick = calls[2], calls[3]
    check(
        slow.started_at <= quick.started_at <= quick.ended_at < slow.ended_at,
        "two calls overlapped, and the one that started later ended first",
    )
    report = tc.verify(file, deep=True)
    check(report.ok, f"verify: {report.message}, {report.frames} frames, head {str(report.head)[:8]}")
    return service.url, answers


def without_service(url: str) -> None:
    print("\n2. the service is stopped")
    raised(OSError, lambda: asyncio.run(weather_lookup(url, FIRST)), "a real call fails: nobody listens any more")


def replay(file: Path, url: str, recorded: list[object]) -> None:
    print("\n3. replay: the same agent, no service")
    before, bytes_before = (bodies, connections[:]), file.read_bytes()
    with tc.replay(file) as session:
        answers = asyncio.run(agent(url))
    check((bodies, connections) == before, "0 tool bodies ran, 0 connections were opened")
    check(answers == recorded, "the answers are equal, the error among them")
    verdict = session.verdict
    check(verdict and verdict.ok and verdict.calls == 4 and not verdict.unconsumed, "all 4 records were consumed")
    check(file.read_bytes() == bytes_before, "the cassette was not touched")


def flip_one_byte(file: Path, url: str) -> None:
    print("\n4. one byte of a copy is flipped")
    data = bytearray(file.read_bytes())
    place = data.index(b'"sky":"rain"') + len('"sky":"')
    data[place] ^= 1
    copy = file.with_name("flipped.cassette.jsonl")
    copy.write_bytes(data)
    frame = data[:place].count(b"\n")
    report = tc.verify(copy)
    check(
        (report.state, report.frame, report.reason) == ("damaged", frame, "hash"),
        f"verify: {report.state} at frame {report.frame}, reason {report.reason}",
    )
    before = bodies
    error = raised(tc.FormatError, lambda: _replay(copy, agent(url)), "replay refuses the copy before the first call")
    check(error.exit_status == 1 and bodies == before, f"{error.code}, exit status {error.exit_status}, 0 bodies")


def change_an_argument(file: Path, url: str) -> None:
    print("\n5. an argument changes")
    before = bodies
    error = raised(
        tc.CassetteMismatch, lambda: _replay(file, agent(url, unit="f")), "the replay raises CassetteMismatch"
    )
    print(f"      {error}")
    check(
        (error.reason, error.differs) == ("arguments_differ", ("$.unit",)), "it says which argument, and not its value"
    )
    swallowed: list[object] = []

    async def run() -> None:
        swallowed.extend(await swallowing_agent(url))

    raised(tc.CassetteMismatch, lambda: _replay(file, run()), "an agent that swallows the mismatch fails all the same")
    check(swallowed == ["tool failed: CassetteMismatch"], "... at the end of the block, after the agent went on")
    check(bodies == before, "0 bodies ran")


def skip_a_call(file: Path, url: str) -> None:
    print("\n6. a call is skipped")
    error = raised(
        tc.UnconsumedCalls,
        lambda: _replay(file, agent(url, cities_at_once=(SLOW,))),
        "the replay raises UnconsumedCalls",
    )
    print(f"      {error}")
    left = [(row.tool, row.path, row.ordinal) for row in error.calls]
    check(left == [("weather_lookup", (), 3)], "it lists the call that was never made")


def _replay(file: Path, run: Any) -> None:
    try:
        with tc.replay(file):
            asyncio.run(run)
    finally:
        run.close()  # where the replay did not even begin


def main() -> int:
    began = time.monotonic()
    sys.addaudithook(watch)
    print(f"toolcassette {tc.__version__}: record, stop the service, replay")
    folder = Path(tempfile.mkdtemp(prefix="toolcassette-demo-"))
    try:
        file = folder / "weather.cassette.jsonl"
        url, answers = record(file)
        without_service(url)
        replay(file, url, answers)
        flip_one_byte(file, url)
        change_an_argument(file, url)
        skip_a_call(file, url)
    except Untrue as claim:
        print(f"\nUNTRUE: {claim}")
        return 1
    finally:
        shutil.rmtree(folder)
    print(f"\nall of it is true ({time.monotonic() - began:.1f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
