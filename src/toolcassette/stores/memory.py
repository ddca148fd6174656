"""Cassettes in memory: the same meaning as files, for tests and for programs without a disk.

Rule: what a file store promises holds here too, within the process: names are taken create-only, a partial stands
under ``<name>.partial``, it is live while its spool is open, and readers see a snapshot. "Durable" means: in the
store. Any thread may use the store; one lock guards every look and change.
"""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING

from toolcassette.errors import CassetteExists, FormatError
from toolcassette.stores.base import (
    ID_SEARCH_BYTES,
    PARTIAL_SUFFIX,
    Source,
    SourceBase,
    Spool,
    SpoolLife,
    aside_names,
    checked_name,
    is_partial,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["MemorySource", "MemoryStore"]


class _Blob:
    """What an inode is to a file: bytes that have an identity, whatever their names."""

    __slots__ = ("data", "live")

    def __init__(self, data: bytes = b"", *, live: bool = True) -> None:
        self.data = bytearray(data)
        self.live = live


class MemoryStore:
    """Cassettes in a dict that lives as long as the store. A name is any usable string.

    ``seed``: the bytes of cassettes by name, to begin with; a replay from them touches nothing outside the process.
    """

    def __init__(self, seed: Mapping[str, bytes] | None = None) -> None:
        self._lock = threading.Lock()
        self._blobs = {
            checked_name(name, recording=False): _Blob(data, live=False) for name, data in (seed or {}).items()
        }

    def resolve(self, name: str) -> str:
        """``name`` itself."""
        return checked_name(name, recording=False)

    def create(self, name: str, *, cassette_id: str, replace: bool = False, set_aside: bool = False) -> Spool:
        """See ``Store.create``."""
        del cassette_id  # the lock makes a name exclusive
        checked_name(name, recording=True)
        partial = name + PARTIAL_SUFFIX
        with self._lock:
            old = self._blobs.get(name)
            if old is not None and not replace:
                raise CassetteExists("cassette")
            stale = self._blobs.get(partial)
            if stale is not None:
                if stale.live or not set_aside:
                    raise CassetteExists("live_partial" if stale.live else "stale_partial")
                self._set_aside(partial)
            blob = self._blobs[partial] = _Blob()
        return _MemorySpool(self._lock, self._blobs, name, blob, old=old, replace=replace)

    def open(self, name: str) -> Source:
        """See ``Store.open``."""
        checked_name(name, recording=False)
        with self._lock:
            blob = self._blobs.get(name)
            if blob is None:
                raise FormatError("absent")
            partial = is_partial(name)
            return MemorySource(bytes(blob.data), live=partial and blob.live, partial=partial)

    def adopt(self, name: str) -> Spool:
        """See ``Store.adopt``."""
        checked_name(name, recording=True)
        with self._lock:
            blob = self._blobs.get(name + PARTIAL_SUFFIX)
            if blob is None:
                raise FormatError("absent")
            if blob.live:
                raise CassetteExists("live_partial")
            blob.live = True
            old = self._blobs.get(name)
        return _MemorySpool(self._lock, self._blobs, name, blob, old=old, replace=True)

    def has_partial(self, name: str) -> bool:
        """See ``Store.has_partial``."""
        checked_name(name, recording=False)
        with self._lock:
            return name + PARTIAL_SUFFIX in self._blobs

    def _set_aside(self, partial: str) -> None:
        blob = self._blobs[partial]
        names = aside_names(partial, bytes(blob.data[:ID_SEARCH_BYTES]), secrets.token_hex(4))
        free = next((name for name in names if name not in self._blobs), None)
        if free is None:
            raise CassetteExists("stale_partial")
        self._blobs[free] = self._blobs.pop(partial)


class _MemorySpool:
    """A blob under a partial's name. ``old``: what stood under the formal name at the start, with ``replace``."""

    def __init__(
        self,
        lock: threading.Lock,
        blobs: dict[str, _Blob],
        name: str,
        blob: _Blob,
        *,
        old: _Blob | None,
        replace: bool,
    ) -> None:
        self.name = name
        self.notes: Sequence[str] = ()
        self._lock = lock
        self._blobs = blobs
        self._blob = blob
        self._old = old
        self._replace = replace
        self._life = SpoolLife()

    def append(self, data: bytes) -> None:
        with self._life.step("write to the partial"), self._lock:
            self._blob.data += data

    def sync(self) -> None:
        with self._life.step("sync the partial"):
            pass  # what was appended is in the store already

    def rewrite(self, lines: Iterable[bytes]) -> None:
        with self._life.step("rewrite the partial"):
            data = bytearray(b"".join(lines))  # they may be read from this very store
            with self._lock:
                self._blob.data = data

    def publish(self) -> None:
        with self._life.step("publish the cassette"):
            self._take_name(None)
        self._life.end("published")

    def swap(self) -> None:
        self._life.require_open()
        if not self._replace:
            raise RuntimeError("this recording was not begun with replace=True")
        with self._life.step("replace the cassette"):
            self._take_name(self._old)
        self._life.end("published")

    def discard(self) -> None:
        with self._life.step("remove the partial"), self._lock:
            self._leave_partial()
        self._life.end("discarded")

    def keep(self) -> None:
        if not self._life.over:
            self._life.end("closed")
            with self._lock:
                self._blob.live = False

    def forget(self) -> None:
        # No lock: in a forked child, a thread that is not there may hold it for ever.
        if not self._life.over:
            self._life.end("left to the parent process")

    def _take_name(self, expected: _Blob | None) -> None:
        with self._lock:
            if self._blobs.get(self.name) is not expected:
                raise CassetteExists("cassette")
            self._blobs[self.name] = self._blob
            self._leave_partial()

    def _leave_partial(self) -> None:
        """Under the lock: the partial's name goes. It is ours: nobody gets past a live partial."""
        del self._blobs[self.name + PARTIAL_SUFFIX]
        self._blob.live = False


class MemorySource(SourceBase):
    """A copy of the bytes at open."""

    def __init__(self, data: bytes, *, live: bool, partial: bool) -> None:
        self.size = len(data)
        self.live = live
        self.partial = partial
        self._data: bytes | None = data

    def read_at(self, offset: int, length: int) -> bytes:
        """See ``Source.read_at``."""
        if offset < 0 or length < 0:
            raise ValueError("offset and length count bytes from the start")
        if self._data is None:
            raise RuntimeError("this cassette was closed already")
        return self._data[offset : offset + length]

    def close(self) -> None:
        """See ``Source.close``."""
        self._data = None
