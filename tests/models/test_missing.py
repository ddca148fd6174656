"""Optional packages: imported when they are used, and when one is missing, the error says what to install."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"
SEAMS = {
    "openai": (("openai",), lambda seam: seam.cassette_client(object())),
    "anthropic": (("anthropic",), lambda seam: seam.cassette_client(object())),
    "httpx": (("httpx2", "httpx"), lambda seam: seam.cassette_transport(name="x")),
    "openai_agents": (("agents",), lambda seam: seam.cassette_provider()),
    "pydantic_ai": (("pydantic_ai", "pydantic_ai.capabilities"), lambda seam: seam.cassette_model("test")),
}


@pytest.mark.parametrize("seam", SEAMS)
def test_a_missing_package_is_named_with_what_to_install(seam, monkeypatch):
    packages, use = SEAMS[seam]
    module = importlib.import_module(f"toolcassette.adapters.{seam}")
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)
    if seam == "openai_agents":
        monkeypatch.setattr(module, "package", module.package.__wrapped__)
    if seam == "pydantic_ai":
        models = importlib.import_module("toolcassette.adapters._pydantic_ai")
        monkeypatch.setattr(models, "_kinds", models._kinds.__wrapped__)
        monkeypatch.setattr(models, "package", models.package.__wrapped__)
    with pytest.raises(ModuleNotFoundError) as caught:
        use(module)
    assert f"pip install 'toolcassette[{seam.replace('_', '-')}]'" in str(caught.value)
    assert caught.value.name in packages


def test_importing_the_seams_imports_none_of_their_packages():
    names = [name for packages, _ in SEAMS.values() for name in packages]
    lines = [f"import toolcassette.adapters.{seam}" for seam in SEAMS]
    program = "\n".join(["import sys", *lines, f"print([n for n in {names} if n in sys.modules])"])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
