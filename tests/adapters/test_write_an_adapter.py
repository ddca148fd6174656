"""The adapter that README.md shows, held to the suite: what is written there is all that it takes."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

import toolcassette as tc
from tests.adapters import conformance as suite
from tests.adapters.conformance import Driver, World

README = Path(__file__).resolve().parents[2] / "README.md"
LINES_MAX = 60
FILES = ("tinyagents.py", "tiny_adapter.py")


def block(name):
    """The file of this name that README.md shows."""
    _, _, after = README.read_text("utf-8").partition(f"```python\n# {name}\n")
    return after.partition("```\n")[0]


@pytest.fixture(scope="module", autouse=True)
def shown(tmp_path_factory):
    """The framework and the adapter, to be imported."""
    folder = tmp_path_factory.mktemp("shown")
    for name in FILES:
        (folder / name).write_text(block(name), "utf-8")
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    for name in FILES:
        sys.modules.pop(name.removesuffix(".py"), None)


def test_it_is_small():
    assert 0 < len(block("tiny_adapter.py").splitlines()) < LINES_MAX


class Tiny(Driver):
    models = ("tiny",)
    on_mismatch = "CassetteMismatch"

    async def run(self, world: World) -> Any:
        framework: Any = importlib.import_module("tinyagents")
        adapter: Any = importlib.import_module("tiny_adapter")

        async def model(messages: list[dict[str, Any]]) -> dict[str, Any]:
            turn = world.answer()
            calls = [
                {"type": "tool_call", "id": world.new_id(), "name": name, "args": args} for name, args in turn.calls
            ]
            return {"role": "assistant", "content": turn.text, "calls": calls}

        asked = tc.wrap_model(model, name="tiny")
        around = adapter.Cassette(agents=world.composites)
        return await framework.Agent(asked, world.tools.values(), around=around).run("hi")

    def schema(self, fn: Any, *, cassette: bool) -> Any:
        return fn.__doc__  # the framework tells a model nothing else


class TestTiny(suite.Tools, suite.Parallel, suite.Cancelling, suite.Models, suite.Nested, suite.Annotated):
    driver = Tiny()
