"""What the engine's tests watch with: a store that logs, is slow or fails, and short looks into a cassette.

Rule: the bytes are kept by the real memory store; the double only stands around it.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from typing import TYPE_CHECKING, Any

from toolcassette.errors import StoreError
from toolcassette.stores import PARTIAL_SUFFIX, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolcassette.stores import Source, Spool

NAME = "x.cassette.jsonl"
_KIND = re.compile(rb'"kind":"([a-z/]+)"')


class WatchedStore:
    """A memory store with a log of what its spools were asked for, in order: the kinds of frames, and ``sync``."""

    def __init__(self) -> None:
        self.inner = MemoryStore()
        self.log: list[str] = []
        self.sync_seconds = 0.0
        self.fail_sync = False
        self.fail_append_of: str | None = None  # a kind of frame
        self.during_append: Callable[[], object] = int  # as a finaliser may run anywhere
        self.during_sync: Callable[[], object] = int

    def resolve(self, name: str) -> str:
        return self.inner.resolve(name)

    def create(self, name: str, *, cassette_id: str, replace: bool = False, set_aside: bool = False) -> Spool:
        spool = self.inner.create(name, cassette_id=cassette_id, replace=replace, set_aside=set_aside)
        return _WatchedSpool(self, spool)

    def adopt(self, name: str) -> Spool:
        return self.inner.adopt(name)

    def open(self, name: str) -> Source:
        return self.inner.open(name)

    def has_partial(self, name: str) -> bool:
        return self.inner.has_partial(name)

    @property
    def syncs(self) -> int:
        return self.log.count("sync")

    def lines(self, *, partial: bool = False) -> list[dict[str, Any]]:
        with self.open(NAME + PARTIAL_SUFFIX if partial else NAME) as source:
            return [json.loads(line) for line in b"".join(source.blocks()).splitlines()]

    def kinds(self, *, partial: bool = False) -> list[str]:
        return [line["kind"] for line in self.lines(partial=partial)]


class _WatchedSpool:
    def __init__(self, store: WatchedStore, inner: Spool) -> None:
        self._store = store
        self._inner = inner
        self.name = inner.name
        self.publish: Callable[[], None] = inner.publish
        self.swap: Callable[[], None] = inner.swap
        self.discard: Callable[[], None] = inner.discard
        self.keep: Callable[[], None] = inner.keep
        self.forget: Callable[[], None] = inner.forget

    @property
    def notes(self) -> Sequence[str]:
        return self._inner.notes

    def append(self, data: bytes) -> None:
        found = _KIND.search(data)
        kind = found[1].decode() if found else "?"
        if kind == self._store.fail_append_of:
            raise StoreError("write to the partial", errno_name="ENOSPC")
        self._inner.append(data)
        self._store.during_append()
        self._store.log.append(kind)

    def sync(self) -> None:
        if self._store.fail_sync:
            raise StoreError("sync the partial", errno_name="EIO")
        time.sleep(self._store.sync_seconds)
        self._store.during_sync()
        self._inner.sync()
        self._store.log.append("sync")

    def rewrite(self, lines: Iterable[bytes]) -> None:
        self._inner.rewrite(lines)
        self._store.log.append("rewrite")


def resealed(data: bytes, old: bytes, new: bytes) -> bytes:
    """The file with a change, and with hashes that fit it: what anybody can do who can write the file."""
    assert old in data
    sealed, prev = [], "0" * 64
    for line in data.replace(old, new).splitlines():
        body = line[: -len(f'"{prev}","hash":"{prev}"' + "}")] + b'"' + prev.encode() + b'"'
        prev = hashlib.sha256(b"\0" + body).hexdigest()
        sealed.append(body + b',"hash":"' + prev.encode() + b'"}\n')
    return b"".join(sealed)
