"""A watched store."""

from __future__ import annotations

import pytest

from tests.engine.doubles import WatchedStore


@pytest.fixture
def store() -> WatchedStore:
    return WatchedStore()
