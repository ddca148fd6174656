"""A test suite of a user, in a temporary folder, run with the plugin.

Rule: inside this process where nothing of it is in doubt (``run``); in a process of its own for plugins, workers and
imports (``run_apart``).
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import toolcassette.pytest_plugin.running
import toolcassette.pytest_plugin.wide  # what is first loaded within a run inside this process is dropped after it

if TYPE_CHECKING:
    import pytest

SRC = Path(__file__).absolute().parents[2] / "src"
INSTALLED = any(entry.name == "toolcassette" for entry in importlib.metadata.entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "toolcassette.pytest_plugin")
# Plugins of others stay out of the runs inside this process: they have suites of their own, and their state.
OTHERS = ("xdist", "rerunfailures", "recording", "syrupy", "asyncio", "hypothesispytest")
ALONE = ("-pno:cacheprovider", *(f"-pno:{name}" for name in OTHERS))
HEAD = "import os, pytest\nimport toolcassette as tc\nfrom tools import RUN, agent, forecast, weather\n"

TOOLS = """
import toolcassette as tc

RUN = []

@tc.cassette_tool
def weather(city: str) -> dict[str, int]:
    RUN.append(city)
    return {"degrees": len(city)}

@tc.cassette_tool
async def forecast(city: str) -> dict[str, int]:
    RUN.append(city)
    return {"degrees": len(city)}

def agent(*cities):
    # As agent frameworks do: what a tool raises is told to the model, and swallowed.
    for city in cities:
        try:
            weather(city)
        except Exception:
            pass
"""


class Suite:
    """A folder with ``tools.py`` and the test modules that are written into it."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("CI", "TOOLCASSETTE_MODE", "TOOLCASSETTE_STATUS", "PYTEST_XDIST_WORKER"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SRC), str(pytester.path)]))
        # Modules are rewritten within a second, to the same length: what is compiled would be taken for the new text's.
        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        monkeypatch.syspath_prepend(pytester.path)
        self.pytester = pytester
        self.path = pytester.path
        self.write("tools.py", TOOLS)

    def write(self, name: str, text: str) -> None:
        """One file. A test module gets the tools, and the marker unless it speaks of it."""
        if name.endswith(".py") and Path(name).name.startswith("test_"):
            mark = "" if "toolcassette" in text else "pytestmark = pytest.mark.toolcassette\n"
            text = HEAD + mark + text
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def run(self, *arguments: str) -> pytest.RunResult:
        """In this process."""
        # Not with `-p`: the module is imported already, and pytest warns that it cannot rewrite its asserts.
        plugins = () if INSTALLED else (toolcassette.pytest_plugin,)
        return self.pytester.runpytest_inprocess(*ALONE, *arguments, plugins=plugins)

    def run_apart(self, *arguments: str) -> pytest.RunResult:
        """In a process of its own, with every plugin that is installed."""
        return self.pytester.runpytest_subprocess(*PLUGIN, *arguments, timeout=60)

    def record(self, *arguments: str, **outcomes: int) -> None:
        """Record what is missing; all tests pass, unless other outcomes are told."""
        result = self.run("--toolcassette=record", *arguments)
        if outcomes:
            result.assert_outcomes(**outcomes)
        assert outcomes or result.ret == 0, result.stdout.str()

    def cassettes(self) -> dict[str, bytes]:
        """Every published cassette, by its path from the top."""
        found = sorted(self.path.rglob("*.cassette.jsonl"))
        return {path.relative_to(self.path).as_posix(): path.read_bytes() for path in found}

    def partials(self) -> list[str]:
        """Every recording that was not published."""
        return sorted(path.name for path in self.path.rglob("*.partial*"))
