"""The MCP adapters without their packages: imported when they are used, and the error says what to install."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"
SEAMS = {
    "mcp": ("mcp.shared.message", "cassette_transport", (None,)),
    "fastmcp": ("fastmcp.exceptions", "cassette_middleware", ()),
}


@pytest.mark.parametrize("seam", SEAMS)
def test_a_missing_package_is_named_with_what_to_install(seam, monkeypatch):
    missing, function, arguments = SEAMS[seam]
    module = importlib.import_module(f"toolcassette.adapters.{seam}")
    monkeypatch.setitem(sys.modules, missing, None)
    for cached in ("_package", "_kind"):
        if hasattr(module, cached):
            monkeypatch.setattr(module, cached, getattr(module, cached).__wrapped__)
    with pytest.raises(ModuleNotFoundError) as caught:
        getattr(module, function)(*arguments)
    assert f"pip install 'toolcassette[{seam}]'" in str(caught.value)
    assert caught.value.name == missing


def test_importing_the_adapters_and_the_proxy_imports_none_of_their_packages():
    program = """
        import sys, toolcassette.cli
        import toolcassette.adapters.fastmcp, toolcassette.adapters.mcp, toolcassette.adapters.mcp_stdio
        print([name for name in ("fastmcp", "jsonschema", "mcp", "mcp_types", "pydantic") if name in sys.modules])
    """
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(map(str.strip, program.splitlines()))],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
