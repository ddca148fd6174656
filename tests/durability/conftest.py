"""A folder for tests that do not depend on the disk."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def place(tmp_path):
    """On a RAM disk, where there is one: these tests make hundreds of cassettes, and no power is cut."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Path(folder)
