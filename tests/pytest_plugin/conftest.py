"""The suite of a user, as a fixture."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.suite import Suite


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    return Suite(pytester, monkeypatch)
