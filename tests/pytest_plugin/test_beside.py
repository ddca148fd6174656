"""Side by side with the plugins that teams have: xdist, anyio, pytest-asyncio, rerunfailures, recording, syrupy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import toolcassette as tc

if TYPE_CHECKING:
    from tests.pytest_plugin.suite import Suite

pytest_plugins = ("pytester",)

INI = """
[pytest]
addopts = --strict-markers --strict-config
asyncio_default_fixture_loop_scope = function
filterwarnings = error
faulthandler_timeout = 20
"""
ASYNC = """
import asyncio
import unittest
import anyio

@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"

@pytest.fixture(scope="module")
async def loop_of_the_module(anyio_backend):  # a task, and a thread, that are older than any test's session
    return await asyncio.to_thread(len, "x")

async def all_of_it(name):
    await forecast(name)
    assert await asyncio.to_thread(weather, name) == {"degrees": len(name)}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(forecast, name + "!")
    assert len(RUN) == int(os.environ["N"]) * 3

@pytest.fixture(autouse=True)
def fresh():
    RUN.clear()

pytestmark = pytest.mark.toolcassette

@pytest.mark.anyio
async def test_1(loop_of_the_module): await all_of_it("1")

@pytest.mark.anyio
async def test_2(loop_of_the_module, toolcassette):
    await all_of_it("2")
    assert toolcassette.is_open

@pytest.mark.asyncio
async def test_3(): await all_of_it("3")

@pytest.mark.asyncio(loop_scope="module")
async def test_4(): await all_of_it("4")

@pytest.mark.asyncio(loop_scope="module")
async def test_5(): await all_of_it("5")

class TestMethods:
    @pytest.mark.anyio
    async def test_6(self, loop_of_the_module): await all_of_it("6")

    @pytest.mark.asyncio
    async def test_7(self): await all_of_it("7")

class TestCase(unittest.IsolatedAsyncioTestCase):
    async def test_8(self): await all_of_it("8")
"""
BACKENDS = """
pytestmark = pytest.mark.toolcassette

@pytest.mark.anyio
async def test_backend(anyio_backend_name):
    RUN.clear()
    await forecast("b")
    assert len(RUN) == int(os.environ["N"])
"""
OTHERS = """
import urllib.request

@pytest.fixture(scope="session")
def index(toolcassette_session):
    with toolcassette_session("index"):
        return weather("index")

@tc.cassette_tool
def fetch(path: str) -> str:
    with open("port.txt") as port:
        url = f"http://127.0.0.1:{port.read()}/{path}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()

@pytest.mark.vcr
def test_vcr_alone(): assert fetch("a") == "hello /a"

@pytest.mark.toolcassette
def test_ours_alone(index): assert fetch("b") == "hello /b"

@pytest.mark.vcr
@pytest.mark.toolcassette
def test_both(): assert fetch("c") == "hello /c"

@pytest.mark.toolcassette
def test_snapshot(index, snapshot): assert weather("s") == snapshot

RUNS = 0

@pytest.mark.toolcassette
@pytest.mark.flaky(reruns=2)
def test_flaky():
    global RUNS
    RUNS += 1
    weather("f")
    assert RUNS == 3
"""
SERVER = """
import http.server
import os
import threading
import pytest

class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"hello {self.path}".encode())

    def log_message(self, *words): pass

@pytest.fixture(scope="session", autouse=True)
def server():
    if not os.environ.get("SERVE"):
        yield
        return
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        with open("port.txt", "w") as port:
            port.write(str(server.server_port))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield
        server.shutdown()
        thread.join()
"""


def test_async_tests_of_every_kind_find_their_session(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write("pytest.ini", INI)
    suite.write("test_a.py", ASYNC)
    suite.write("test_b.py", BACKENDS)
    monkeypatch.setenv("N", "1")
    suite.run_apart("--toolcassette=record").assert_outcomes(passed=10)
    monkeypatch.setenv("N", "0")
    suite.run_apart("--toolcassette-unused=fail").assert_outcomes(passed=10)
    assert len(suite.cassettes()) == 10
    assert all(tc.verify(suite.path / name, deep=True).ok for name in suite.cassettes())


def test_recording_syrupy_and_reruns_in_one_suite(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write("pytest.ini", INI)
    suite.write("conftest.py", SERVER)
    suite.write("test_a.py", OTHERS)
    monkeypatch.setenv("SERVE", "1")
    recorded = suite.run_apart("--toolcassette=record", "--record-mode=once", "--snapshot-update")
    assert recorded.parseoutcomes() == {"passed": 5, "rerun": 2}, recorded.stdout.str()
    ours = set(suite.cassettes())
    assert len(ours) == 5
    assert sorted(path.name for path in suite.path.rglob("*.yaml")) == ["test_both.yaml", "test_vcr_alone.yaml"]
    monkeypatch.delenv("SERVE")
    replayed = suite.run_apart("--toolcassette-unused=fail", "--block-network")
    assert replayed.ret == 0, replayed.stdout.str()
    assert (replayed.parseoutcomes()["passed"], replayed.parseoutcomes()["rerun"]) == (5, 2)
    assert set(suite.cassettes()) == ours


FEW = tuple(f"-pno:{name}" for name in ("recording", "syrupy", "asyncio", "hypothesispytest"))  # quicker workers
SPREAD = """
@pytest.fixture(scope="session")
def index(toolcassette_session):
    with toolcassette_session("index"):
        return weather("index")

@pytest.mark.parametrize("n", range(6))
@pytest.mark.toolcassette
def test_a(n, index):
    assert index == {"degrees": 5}
    weather(str(n))

@pytest.mark.toolcassette
class TestA:
    def test_x(self): weather("x")
    def test_y(self): agent("y", "z")
"""


@pytest.mark.parametrize("dist", ["load", "each"])
def test_two_workers_record_replay_rewrite_and_judge_once(suite: Suite, dist: str) -> None:
    suite.write("test_a.py", SPREAD)
    workers = (*FEW, "-n2", f"--dist={dist}")
    passed = 16 if dist == "each" else 8
    suite.run_apart("--toolcassette=record", *workers).assert_outcomes(passed=passed)
    made = suite.cassettes()
    assert len(made) == 9
    assert all(tc.verify(suite.path / name, deep=True).ok for name in made)
    assert suite.partials() == []
    if dist == "each":
        suite.run_apart("--toolcassette=rewrite", *workers).assert_outcomes(passed=passed)
        assert suite.cassettes() == made
        return
    suite.write("test_a.py", SPREAD.replace("test_y", "test_new").replace("agent('y', 'z')", "agent('y')"))
    result = suite.run_apart("--toolcassette-unused=fail", *workers)
    result.assert_outcomes(passed=7, failed=1)
    assert [line for line in result.outlines if line.startswith("unused")] == [
        next(f"unused cassette: {name}" for name in made if "test_y" in name)
    ]
    assert "git mv" in result.stdout.str()


def test_with_workers_a_wrong_marker_fails_its_test(suite: Suite) -> None:
    suite.write(
        "test_a.py",
        "@pytest.mark.toolcassette(ordr=1)\ndef test_a(): pass\n@pytest.mark.toolcassette\ndef test_b(): pass\n",
    )
    result = suite.run_apart(*FEW, "-n2")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["toolcassette marker of test_a.py::test_a: unknown option ordr;*"])


def test_a_worker_that_crashed_leaves_nothing_judged(suite: Suite) -> None:
    suite.write("test_a.py", SPREAD)
    suite.record()
    suite.write("test_a.py", SPREAD.replace("def test_y(self): agent(", "def test_new(self): os._exit(3) or agent("))
    result = suite.run_apart(*FEW, "-n2", "--max-worker-restart=0", "--toolcassette-unused=fail")
    assert result.ret == 1
    assert "unused cassette" not in result.stdout.str()
