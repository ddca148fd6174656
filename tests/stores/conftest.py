"""A place to keep cassettes, once in files and once in memory, with the few looks that the tests need."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from tests.stores.sqlite_store import SqliteStore
from toolcassette.errors import FormatError
from toolcassette.stores import FileOps, FileStore, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolcassette.stores import Spool, Store

CASSETTE_ID = "0123456789abcdef" * 2
HEADER = b'{"seq":0,"kind":"header","cassette":"' + CASSETTE_ID.encode() + b'"}\n'


class FaultyOps(FileOps):
    """The real system, with a log of its calls and with faults: by name (an errno), or at the n-th call."""

    OBSERVING = frozenset({"lstat", "fstat", "stat_dir", "close", "close_dir", "sleep", "random_hex", "unlock"})

    def __init__(self, **faults: int) -> None:
        self.faults = faults
        self.log: list[str] = []
        self.fail_at = -1
        self.fail_on = False  # from then on, not once

    def __getattribute__(self, name: str) -> object:
        real = super().__getattribute__(name)
        if name.startswith("_") or not hasattr(FileOps, name) or not callable(real):
            return real

        def call(*args: object, **options: object) -> object:
            n = len(self.log)
            self.log.append(name)
            number = self.faults.get(name)
            if number is None and (n == self.fail_at or (self.fail_on and n > self.fail_at >= 0)):
                number = errno.EIO
            if number is None:
                return real(*args, **options)
            if name.startswith("close"):  # the descriptor is gone all the same
                real(*args, **options)
            raise OSError(number, "injected", "/secret/path")

        return call

    def effects(self) -> list[str]:
        """The calls in the log that change something or make it durable."""
        return [name for name in self.log if name not in self.OBSERVING]


class Place:
    def __init__(self, store: Store, folder: str) -> None:
        self.store = store
        self.folder = folder

    def at(self, name: str) -> str:
        return self.folder + name

    def create(self, name: str = "x", **options: bool) -> Spool:
        return self.store.create(self.at(name), cassette_id=CASSETTE_ID, **options)

    def read(self, name: str = "x") -> bytes:
        with self.store.open(self.at(name)) as source:
            return b"".join(source.blocks())

    def has(self, name: str = "x") -> bool:
        try:
            self.store.open(self.at(name)).close()
        except FormatError as error:
            if error.reason != "absent":
                raise
            return False
        return True

    def live(self, name: str) -> bool:
        with self.store.open(self.at(name)) as source:
            return source.live

    def recorded(self, data: bytes, name: str = "x", **options: bool) -> None:
        spool = self.create(name, **options)
        spool.append(data)
        spool.sync()
        if options.get("replace"):
            spool.swap()
        else:
            spool.publish()

    def abandoned(self, data: bytes, name: str = "x", **options: bool) -> None:
        spool = self.create(name, **options)
        spool.append(data)
        spool.keep()


@pytest.fixture(params=["file", "memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        store = SqliteStore(tmp_path / "cassettes.db")
        yield Place(store, "")
        store._db.close()
    elif request.param == "file":
        yield Place(FileStore(), f"{tmp_path}/")
    else:
        yield Place(MemoryStore(), "")
