"""Cassettes in any place that keeps bytes under names: a database, a key-value service, a bucket with conditions.

Theory. A place needs three operations: get, put and delete, the latter two only where the bytes are still those that
were seen before. All that a store promises follows from them: a name is taken by a put that expects nothing, a partial
is ours as long as its bytes are those that we put last, and a swap expects the cassette that was there at the start.

Rule: what was appended is in the place when ``sync`` returns, and what another writer put there is never overwritten.
Whether a partial's writer lives is known within one process; to any other its partial looks left behind.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from toolcassette.errors import CassetteError, CassetteExists, FormatError
from toolcassette.stores.base import (
    ID_SEARCH_BYTES,
    PARTIAL_SUFFIX,
    Source,
    Spool,
    SpoolLife,
    aside_names,
    checked_name,
    is_partial,
)
from toolcassette.stores.memory import MemorySource

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

__all__ = ["BlobStore"]


class BlobStore(ABC):
    """A store to derive from: ``get``, ``put`` and ``delete`` make one. Names are those of cassettes and partials.

    The three are called by one thread at a time. What they raise becomes a ``StoreError`` (reading: ``unreadable``)
    that names its class alone. Each ``sync`` puts the whole recording anew: for long ones record with ``sync="close"``.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._live: dict[str, _BlobSpool] = {}  # by the name of the cassette

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """The bytes under a name, or None."""

    @abstractmethod
    def put(self, name: str, data: bytes, old: bytes | None) -> bool:
        """Keep ``data`` durably under a name if its bytes are ``old`` (None: if there are none), in one step.

        False, and nothing is changed, where they are not.
        """

    @abstractmethod
    def delete(self, name: str, old: bytes) -> bool:
        """Take a name away if its bytes are ``old``, in one step. False, and nothing is changed, where they are not."""

    def resolve(self, name: str) -> str:
        """``name`` itself."""
        return checked_name(name, recording=False)

    def create(self, name: str, *, cassette_id: str, replace: bool = False, set_aside: bool = False) -> Spool:
        """See ``Store.create``."""
        del cassette_id  # a put that expects nothing makes a name exclusive
        checked_name(name, recording=True)
        life = SpoolLife()
        with life.step("create the partial"), self.asking():
            old = self.get(name)
            if old is not None and not replace:
                raise CassetteExists("cassette")
            if name in self._live:
                raise CassetteExists("live_partial")
            if set_aside:
                self._set_aside(name + PARTIAL_SUFFIX)
            if not self.put(name + PARTIAL_SUFFIX, b"", None):
                raise CassetteExists("stale_partial")
            return self._begun(_BlobSpool(self, name, life, b"", old=old, replace=replace))

    def open(self, name: str) -> Source:
        """See ``Store.open``."""
        checked_name(name, recording=False)
        partial = is_partial(name)
        with self._lock:
            spool = self._live.get(name.removesuffix(PARTIAL_SUFFIX)) if name.endswith(PARTIAL_SUFFIX) else None
            if spool is not None:
                return MemorySource(bytes(spool.data), live=True, partial=True)
            try:
                data = self.get(name)
            except Exception:  # noqa: BLE001 - whatever the place raises, it cannot be read
                raise FormatError("unreadable") from None
        if data is None:
            raise FormatError("absent")
        return MemorySource(data, live=False, partial=partial)

    def adopt(self, name: str) -> Spool:
        """See ``Store.adopt``."""
        checked_name(name, recording=True)
        life = SpoolLife()
        with self._lock:
            if name in self._live:
                raise CassetteExists("live_partial")
            with life.step("open the partial"), self.asking():
                data, old = self.get(name + PARTIAL_SUFFIX), self.get(name)
            if data is None:
                raise FormatError("absent")
            return self._begun(_BlobSpool(self, name, life, data, old=old, replace=True))

    def has_partial(self, name: str) -> bool:
        """See ``Store.has_partial``. False where it cannot be told."""
        checked_name(name, recording=False)
        with contextlib.suppress(Exception), self._lock:
            return self.get(name + PARTIAL_SUFFIX) is not None
        return False

    @contextlib.contextmanager
    def asking(self) -> Generator[None]:
        """Around what is asked of the place: one at a time. What it raises on its own becomes an ``OSError``."""
        with self._lock:
            try:
                yield
            except (CassetteError, OSError):
                raise
            except Exception as error:  # noqa: BLE001 - a database's own errors are of any class
                raise OSError(type(error).__qualname__) from None

    def ended(self, name: str) -> None:
        """The spool of a name is no more."""
        self._live.pop(name, None)

    def _begun(self, spool: _BlobSpool) -> Spool:
        self._live[spool.name] = spool
        return spool

    def _set_aside(self, partial: str) -> None:
        stale = self.get(partial)
        if stale is None:
            return
        names = aside_names(partial, stale[:ID_SEARCH_BYTES], secrets.token_hex(4))
        if not any(self.put(name, stale, None) for name in names) or not self.delete(partial, stale):
            raise CassetteExists("stale_partial")


class _BlobSpool:
    """A recording in a blob store. ``data`` is what was appended; the place has what was there at the last ``sync``."""

    def __init__(
        self, store: BlobStore, name: str, life: SpoolLife, data: bytes, *, old: bytes | None, replace: bool
    ) -> None:
        self.name = name
        self.notes: Sequence[str] = ()
        self.data = bytearray(data)
        self._store = store
        self._life = life
        self._stored = data
        self._old = old
        self._replace = replace

    def append(self, data: bytes) -> None:
        with self._life.step("write to the partial"):
            self.data += data

    def sync(self) -> None:
        with self._life.step("sync the partial"), self._store.asking():
            self._flush()

    def rewrite(self, lines: Iterable[bytes]) -> None:
        with self._life.step("rewrite the partial"):
            data = b"".join(lines)  # they may be read from this very store
            with self._store.asking():
                self.data = bytearray(data)
                self._flush()

    def publish(self) -> None:
        with self._life.step("publish the cassette"), self._store.asking():
            self._take_name(None)
        self._end("published")

    def swap(self) -> None:
        self._life.require_open()
        if not self._replace:
            raise RuntimeError("this recording was not begun with replace=True")
        with self._life.step("replace the cassette"), self._store.asking():
            self._take_name(self._old)
        self._end("published")

    def discard(self) -> None:
        with self._life.step("remove the partial"), self._store.asking():
            self._leave_partial()
        self._end("discarded")

    def keep(self) -> None:
        if not self._life.over:
            with contextlib.suppress(Exception), self._store.asking():
                self._flush()
            self._end("closed")

    def forget(self) -> None:
        if not self._life.over:
            self._life.end("left to the parent process")

    def _end(self, how: str) -> None:
        self._life.end(how)
        self._store.ended(self.name)

    def _flush(self) -> None:
        data = bytes(self.data)
        if data == self._stored:
            return
        if not self._store.put(self.name + PARTIAL_SUFFIX, data, self._stored):
            raise OSError("the partial is not ours any more")
        self._stored = data

    def _take_name(self, expected: bytes | None) -> None:
        self._flush()
        if not self._store.put(self.name, self._stored, expected):
            raise CassetteExists("cassette")
        self._leave_partial()

    def _leave_partial(self) -> None:
        self._store.delete(self.name + PARTIAL_SUFFIX, self._stored)
