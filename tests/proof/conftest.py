"""A folder, keys, and no environment of ours."""

from __future__ import annotations

import os

import pytest

from tests.proof.helpers import NAME, Keys


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith("TOOLCASSETTE_"):
            monkeypatch.delenv(name)


@pytest.fixture
def keys(tmp_path):
    return Keys(tmp_path / "keys")


@pytest.fixture
def file(tmp_path):
    return tmp_path / NAME
