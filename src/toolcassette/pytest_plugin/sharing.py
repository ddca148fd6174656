"""One cassette that several processes record at once: the workers of pytest-xdist, and a fixture wider than a test.

Theory. Each process records in memory, so none stands in the other's way. When it has ended well it looks at the
cassette: nobody published since it began, so it does (create-only, or as a swap of what stood there at the beginning);
somebody did, so it compares and drops its own. The first to publish wins, whoever that is.

Rule: what another process published is never replaced; where it differs, that is said.
"""

from __future__ import annotations

import dataclasses
import os
import time
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from toolcassette.errors import CassetteError, CassetteExists, FormatError
from toolcassette.stores import FileStore, MemoryStore
from toolcassette.verify import read_cassette, verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolcassette.engine import Verdict
    from toolcassette.stores import Store

__all__ = ["Draft", "patiently"]

_T = TypeVar("_T")

_PATIENCE_S: Final = 30.0  # another process is publishing: that takes as long as a few syncs
_PAUSE_S: Final = 0.02
_OTHER_NOTE: Final = "another worker recorded other calls; the first cassette was kept"


class Draft:
    """A recording in memory, to be published by the first process that is done. Make it before recording begins."""

    def __init__(self, path: Path) -> None:
        self.store = MemoryStore()
        self._path = path
        self._before = _found(path)

    def published(self, verdict: Verdict) -> Verdict:
        """Publish what was recorded, or drop it for what another process published; the verdict of that."""
        with self.store.open(os.fspath(self._path)) as source:
            data = b"".join(source.blocks())
        try:
            ours = _found(self._path, self.store)
            assert ours is not None  # it was published into our own store a moment ago
            outcome, notes = self._settle(data, ours)
        except CassetteError as error:
            return dataclasses.replace(verdict, outcome="kept", error=error)
        return dataclasses.replace(verdict, outcome=outcome, notes=(*verdict.notes, *notes))

    def _settle(self, data: bytes, ours: _Found) -> tuple[str, tuple[str, ...]]:
        def step() -> tuple[str, tuple[str, ...]]:
            now = _found(self._path)
            if now is not None and now.content is not None and now.content == ours.content:
                return "unchanged", ()
            if now is not None and (self._before is None or now.head != self._before.head):
                return "unchanged", () if now.content is None else (_OTHER_NOTE,)
            self._write(data, ours)
            return "published", ()

        return patiently(step)

    def _write(self, data: bytes, ours: _Found) -> None:
        spool = FileStore().create(
            os.fspath(self._path), cassette_id=ours.cassette, replace=self._before is not None, set_aside=True
        )
        now = _found(self._path)
        if (now and now.head) != (self._before and self._before.head):  # published between our look and our claim
            spool.discard()
            raise CassetteExists("cassette")
        try:
            spool.append(data)
            if self._before is None:
                spool.publish()
            else:
                spool.swap()
        finally:
            spool.keep()


def patiently(step: Callable[[], _T]) -> _T:
    """Do what another process may be doing at this moment. Raises ``CassetteExists`` where it takes too long."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return step()
        except CassetteExists:
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE_S)


class _Found(NamedTuple):
    """A whole cassette: its head and id, and what it says; None where it is encrypted: nobody here needs a key."""

    head: str
    cassette: str
    content: list[bytes] | None


def _found(path: Path, store: Store | None = None) -> _Found | None:
    report = verify(path, store=store)
    if report.encrypted and report.ok:
        return _Found(report.head or "", report.cassette or "", None)
    try:
        found = read_cassette(path, store=store)
    except FormatError:
        return None
    return _Found(found.head, found.header.cassette, found.content())
