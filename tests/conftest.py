"""What most rooms of the suite need: a file name in a fresh folder, a watched store, and both event loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine.doubles import WatchedStore

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "x.cassette.jsonl"


@pytest.fixture
def store() -> WatchedStore:
    return WatchedStore()


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend
