"""What must not happen: a secret in a report, a late thread in another test's cassette, a heavy import."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.pytest_plugin.suite import SRC

if TYPE_CHECKING:
    from tests.pytest_plugin.suite import Suite

pytest_plugins = ("pytester",)

CANARY = "sk-CANARY-77"
SECRETS = """
def key():  # not in a local variable of the test: those are the test's own to show
    return "sk-" + "CANARY" + "-77" + os.environ.get("DRIFT", "")

def drifted():
    return "DRIFT" in os.environ

@tc.cassette_tool
def ask(key: str) -> dict[str, str]:
    return {"echo": key}

@tc.cassette_tool
def grown(key: str) -> os.environ.get("DRIFT") and int or str:
    return "sk-" + "CANARY-77"

@tc.cassette_tool
def unkept(key: str):
    return object()

@pytest.fixture
def asked():
    ask(key())

def swallowed():
    try:
        ask(key())
    except Exception:
        pass

pytestmark = pytest.mark.toolcassette
def test_loud(): ask(key())
def test_swallowed(): swallowed()
def test_fixture(asked): pass
def test_left_over():
    if "DRIFT" not in os.environ: ask(key())
def test_path():
    with tc.scope("agent", key="CANARY"[:0] + "k"):
        ask(key())
def test_contract(): grown("k")
def test_own():
    ask(key())
    assert not drifted()
def test_missing(): os.environ.get("DRIFT") and ask(key())
def test_unkept():
    if "DRIFT" in os.environ: unkept(key())
def test_closed(toolcassette):
    if "DRIFT" in os.environ:
        toolcassette.close()
        ask(key())
    else:
        ask(key())
"""


@pytest.mark.parametrize("mode", ["replay", "rewrite"])
def test_a_canary_is_nowhere_in_a_report(suite: Suite, mode: str) -> None:
    suite.write("test_a.py", SECRETS)
    suite.record()
    assert CANARY in "".join(map(bytes.decode, suite.cassettes().values()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFT", "-drifted")
        result = suite.run(
            "-vv", "--showlocals", "-rA", "--junitxml=report.xml", "--log-level=DEBUG", f"--toolcassette={mode}"
        )
    counts = result.parseoutcomes()
    assert counts.get("failed", 0) + counts.get("errors", 0) >= (8 if mode == "replay" else 2), counts
    everything = result.stdout.str() + result.stderr.str() + (suite.path / "report.xml").read_text("utf-8")
    assert "CANARY-77" not in everything
    assert str(suite.path) not in everything.replace(f"rootdir: {suite.path}", "").replace(
        f"xml file: {suite.path}", ""
    )


LATE = """
import threading
pytestmark = pytest.mark.toolcassette
GO, OUT = threading.Event(), []

def later():
    assert GO.wait(10)
    try:
        OUT.append(weather("late"))
    except BaseException as error:
        OUT.append(type(error).__name__)

def test_1():
    weather("1")
    global thread
    thread = threading.Thread(target=later)
    thread.start()

def test_2():
    GO.set()
    thread.join()
    weather("2")
    assert OUT == ["SessionClosed"]
    assert "late" not in RUN
"""


@pytest.mark.parametrize("mode", ["record", "replay", "rewrite"])
def test_a_late_call_from_an_earlier_test_lands_nowhere_and_is_never_live(suite: Suite, mode: str) -> None:
    suite.write("test_a.py", LATE)
    suite.record()
    result = suite.run(f"--toolcassette={mode}")
    result.assert_outcomes(passed=2)
    assert b"late" not in b"".join(suite.cassettes().values())


def test_a_late_call_between_a_marked_and_an_unmarked_test_is_not_live(suite: Suite) -> None:
    unmarked = LATE.replace("pytestmark = pytest.mark.toolcassette\n", "")
    suite.write("test_a.py", unmarked.replace("def test_1", "@pytest.mark.toolcassette\ndef test_1"))
    suite.record()
    suite.run().assert_outcomes(passed=2)


def test_threads_of_a_test_belong_to_it(suite: Suite) -> None:
    suite.write(
        "test_a.py",
        "from concurrent.futures import ThreadPoolExecutor\ndef test_a():\n"
        "    with ThreadPoolExecutor(2) as pool:\n"
        "        assert pool.submit(weather, 'ab').result() == {'degrees': 2}\n"
        "    assert len(RUN) == int(os.environ['N'])\n",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("N", "1")
        suite.record()
        patch.setenv("N", "0")
        assert suite.run().ret == 0


def loaded(program: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{program}\nprint(*sys.modules)"],
        env={"PYTHONPATH": str(SRC)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


def test_importing_the_plugin_loads_no_engine() -> None:
    seen = loaded("import toolcassette.pytest_plugin")
    ours = {name for name in seen if name.startswith("toolcassette.")}
    assert ours == {
        "toolcassette._version",
        *(f"toolcassette.pytest_plugin{part}" for part in ("", ".ledger", ".naming", ".settings")),
    }
    assert not seen & {"msgspec", "anyio", "click", "cryptography", "asyncio"}
    assert {"toolcassette.engine", "msgspec"} <= loaded("import toolcassette.pytest_plugin.running")


def test_a_run_without_a_marked_test_loads_no_engine(suite: Suite) -> None:
    suite.write(
        "conftest.py",
        "import sys\ndef pytest_sessionfinish():\n"
        "    assert 'toolcassette.pytest_plugin' in sys.modules\n"
        "    assert 'toolcassette.engine' not in sys.modules\n    print('LIGHT')\n",
    )
    suite.path.joinpath("test_a.py").write_text("def test_a(): pass\n")
    result = suite.run_apart("-s", "-pno:recording")
    result.stdout.fnmatch_lines(["*LIGHT*"])
    assert result.ret == 0


def test_public_names_that_are_modules_too_stay_functions() -> None:
    program = (
        "import toolcassette.verify, toolcassette.session as session\nfrom toolcassette.verify import Report\n"
        "import toolcassette as tc\nfrom toolcassette import verify\n"
        "assert tc.verify is verify and callable(verify) and callable(tc.session) and callable(session)\n"
        "assert tc.verify('/nowhere').state == 'absent' and set(tc.__all__) <= set(dir(tc))\n"
        "import toolcassette.recover\nassert callable(tc.recover)\n"
        "try:\n    tc.nothing\nexcept AttributeError as error:\n    assert 'nothing' in str(error)\nelse:\n"
        "    raise SystemExit(1)\n"
    )
    assert "toolcassette.engine" in loaded(program)


CHILD = """
import subprocess
import sys
pytestmark = pytest.mark.toolcassette

def test_a():
    weather("a")
    program = "from tools import weather; print(weather('child'))"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ("NoSession: tool weather has no session (forbidden)" in child.stderr) == bool(os.environ["REFUSED"])

def test_b():
    assert "TOOLCASSETTE_MODE" not in os.environ or os.environ["REFUSED"]
"""


def test_in_replay_a_child_process_runs_no_tool_for_real(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write("test_a.py", CHILD)
    monkeypatch.setenv("REFUSED", "")
    suite.record()
    monkeypatch.setenv("REFUSED", "1")
    assert suite.run().ret == 0
    suite.write("pytest.ini", "[pytest]\ntoolcassette_forbid_live = true\n")
    unmarked = CHILD.replace("pytestmark = pytest.mark.toolcassette", "# toolcassette")
    suite.write("test_a.py", unmarked.replace('weather("a")', ""))
    assert suite.run().ret == 0
    assert "TOOLCASSETTE_MODE" not in os.environ
