"""Adapters of frameworks: imported without their packages, and the error of one that is missing names its extra."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"
# use -> the packages it needs, what is installed for it
USES = {
    "from toolcassette.adapters.langchain import cassette_middleware; cassette_middleware()": (
        ("langchain", "langchain_core", "langgraph"),
        "cassette_middleware needs langchain: pip install 'toolcassette[langchain]'",
    ),
    "from toolcassette.adapters.langchain import tool_wrappers; tool_wrappers()": (
        ("langchain_core", "langgraph"),
        "tool_wrappers needs langchain: pip install 'toolcassette[langchain]'",
    ),
    "from toolcassette.adapters.langchain import cassette_model; cassette_model(1)": (
        ("langchain_core", "langgraph"),
        "cassette_model needs langchain: pip install 'toolcassette[langchain]'",
    ),
    "from toolcassette.adapters.openai import cassette_functions; cassette_functions([])": (
        ("openai",),
        "cassette_functions needs openai: pip install 'toolcassette[openai]'",
    ),
    "from toolcassette.adapters.anthropic import cassette_tools; cassette_tools([])": (
        ("anthropic",),
        "cassette_tools needs anthropic: pip install 'toolcassette[anthropic]'",
    ),
}


def run(program):
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr.strip().splitlines()


@pytest.mark.parametrize(
    ("use", "missing"), [(use, package) for use, (packages, _) in USES.items() for package in packages]
)
def test_what_is_missing_is_named_with_what_to_install(use, missing):
    """``missing``: the one package that cannot be imported."""
    _, errors = run(f"import sys; sys.modules[{missing!r}] = None; {use}")
    assert errors[-1] == f"ModuleNotFoundError: {USES[use][1]}"


def test_importing_an_adapter_imports_no_package_of_its_framework():
    lines = [use.partition(";")[0] for use in USES]
    names = sorted({package for packages, _ in USES.values() for package in packages})
    out, errors = run("\n".join(["import sys", *lines, f"print([n for n in {names} if n in sys.modules])"]))
    assert (out, errors) == ("[]\n", [])
