"""What a store is: cassettes by name, and recordings that are not published yet.

Rule: a store knows bytes and names, never frames. A name is taken create-only, an unpublished recording is never
mistaken for a cassette, and nothing that somebody else may have put there is overwritten or deleted.

The life of a spool:

    open --append, sync--> open
    open --publish | swap | discard | keep | forget--> ended
    open --any error--> failed (sticky)      failed --keep | forget--> ended

- *failed*: ``append``, ``sync``, ``publish``, ``swap`` and ``discard`` raise the first error again, as a new
  ``StoreError`` of the same fields; nothing more is written and nothing is deleted. An interrupt in the middle of an
  operation (``KeyboardInterrupt``) fails the spool too, because how far it got is unknown.
- *ended*: the same five raise ``RuntimeError`` (a second ``publish``, an ``append`` after ``keep``): that is misuse. A
  spool that failed before it ended goes on raising its ``StoreError``. ``keep`` and ``forget`` never raise.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol, Self

from toolcassette.errors import CassetteExists, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

__all__ = [
    "BLOCK_BYTES",
    "ID_SEARCH_BYTES",
    "PARTIAL_SUFFIX",
    "Source",
    "SourceBase",
    "Spool",
    "SpoolLife",
    "Store",
    "aside_names",
    "checked_name",
    "is_partial",
    "store_error",
]

PARTIAL_SUFFIX = ".partial"
BLOCK_BYTES = 1 << 20  # one read: large enough to hide the call, small enough for a cache
ID_SEARCH_BYTES = 4096  # a cassette's id stands near the start of its first line

_ASIDE_MAX = 1000  # more recordings of one id set aside than this is a loop, not a use
_ID_IN_FIRST_LINE = re.compile(rb'"cassette":"([0-9a-f]{32})"')
_PARTIAL_NAME = re.compile(r"\.partial(\.[0-9a-f]{8}(-[0-9]+)?)?\Z")


class Spool(Protocol):
    """An unpublished recording.

    It has one writer. ``sync`` may run in one thread while ``append`` runs in another; every other method is for the
    owner alone, when neither is running. The module's docstring says what happens after an error and after the end.
    """

    @property
    def name(self) -> str:
        """The name that it will be published under, as given to the store."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What the place could not promise (no directory sync, a weaker create-only step), in words; often empty."""
        ...

    def append(self, data: bytes) -> None:
        """Hand all of ``data`` to the place, or ``StoreError`` (a short write is one, even without an errno).

        Not durable until ``sync`` returns.
        """
        ...

    def sync(self) -> None:
        """On return, what was appended before the call is durable, and so is the name. ``StoreError`` if it cannot be.

        A failed sync is never retried: a retry can succeed after the data was lost.
        """
        ...

    def publish(self) -> None:
        """Make the formal name appear, create-only and durable, and drop the partial.

        ``CassetteExists("cassette")`` if something took the name meanwhile; ``StoreError`` for any other failure. The
        partial is kept then, until ``keep`` closes it.
        """
        ...

    def swap(self) -> None:
        """Replace the cassette that was there at ``create(replace=True)``, or at ``adopt``, by this recording, durably.

        Where none was there it is ``publish``. ``CassetteExists("cassette")`` if another file stands under the name
        now, or the old one was changed; ``RuntimeError`` if the spool was created without ``replace=True``.
        """
        ...

    def rewrite(self, lines: Iterable[bytes]) -> None:
        """Put ``lines`` in the place of all that was appended. After a crash the partial holds the one or the other.

        ``StoreError`` if that fails; then the partial is as it was, and nothing more can be done with this spool.
        """
        ...

    def discard(self) -> None:
        """Drop the partial, if it is still ours: a re-recording found no change. ``StoreError`` if that fails."""
        ...

    def keep(self) -> None:
        """Close; the partial stays. Idempotent, and nothing at all after ``publish``, ``swap`` or ``discard``."""
        ...

    def forget(self) -> None:
        """In a forked child: let go of the child's copies and touch nothing else: no unlock, no delete."""
        ...


class Source(Protocol):
    """One opened cassette for reading: a snapshot of its length when it was opened. One reader at a time.

    ``FormatError("unreadable")`` where the place fails while reading; ``RuntimeError`` after ``close``.
    """

    @property
    def size(self) -> int:
        """Bytes at open."""
        ...

    @property
    def live(self) -> bool:
        """A live recorder held it when it was opened (only ever true of a partial)."""
        ...

    @property
    def partial(self) -> bool:
        """Its name is that of a partial, or of one that was set aside."""
        ...

    def blocks(self, size: int = BLOCK_BYTES) -> Iterator[bytes]:
        """Its bytes from the start, in blocks of at most ``size``; never beyond the snapshot.

        A file that shrank meanwhile ends early.
        """
        ...

    def read_at(self, offset: int, length: int) -> bytes:
        """Up to ``length`` bytes from byte ``offset``; fewer at the end of the snapshot. ``ValueError`` if negative."""
        ...

    def close(self) -> None:
        """Let go of it. Idempotent."""
        ...

    def __enter__(self) -> Self:
        """Itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        ...


class SourceBase(ABC):
    """What every source does in the same way."""

    def blocks(self, size: int = BLOCK_BYTES) -> Iterator[bytes]:
        """See ``Source.blocks``."""
        offset = 0
        while block := self.read_at(offset, size):
            offset += len(block)
            yield block

    @abstractmethod
    def read_at(self, offset: int, length: int) -> bytes:
        """See ``Source.read_at``."""

    @abstractmethod
    def close(self) -> None:
        """See ``Source.close``."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Store(Protocol):
    """A place where cassettes live under names.

    Every method raises ``ValueError`` for an unusable name: empty, with a NUL, not encodable, or ending in a separator,
    ``.`` or ``..``. A name to record under must not be that of a partial either.
    """

    def resolve(self, name: str) -> str:
        """The name that means the same after a change of directory; where there is none to change, ``name`` itself."""
        ...

    def create(self, name: str, *, cassette_id: str, replace: bool = False, set_aside: bool = False) -> Spool:
        """Begin a recording of ``name``; ``cassette_id`` (32 hex) is for stores that cannot make a name exclusive.

        ``CassetteExists``: ``"cassette"`` if the formal name is taken (unless ``replace``; a dangling link counts),
        ``"live_partial"`` if a recorder is at it, ``"stale_partial"`` if its recorder is gone, unless ``set_aside``:
        then it is renamed, create-only, to ``<name>.partial.<first 8 hex of its own cassette id>``. ``StoreError`` if
        the place refuses.
        """
        ...

    def open(self, name: str) -> Source:
        """Open a cassette or a partial for reading. ``FormatError``: ``absent``, ``unreadable``, ``not_a_file``."""
        ...

    def adopt(self, name: str) -> Spool:
        """Take over the partial of ``name`` whose writer is gone, to publish it or to swap it in.

        ``FormatError("absent")`` if there is none, ``CassetteExists("live_partial")`` if its writer is not gone,
        ``CassetteExists("stale_partial")`` if what stands there is no regular file.
        """
        ...

    def has_partial(self, name: str) -> bool:
        """A partial of this name exists: a hint for messages, stale as soon as it is given."""
        ...


class SpoolLife:
    """Where a spool stands: open, failed or ended. The table is in the module's docstring."""

    __slots__ = ("_ended", "_failed")

    def __init__(self) -> None:
        self._ended: str | None = None
        self._failed: StoreError | None = None

    @property
    def over(self) -> bool:
        """The spool has ended: its descriptors are gone."""
        return self._ended is not None

    def require_open(self) -> None:
        """Raise the first error again if there was one, ``RuntimeError`` if the spool has ended."""
        if self._failed is not None:
            raise _again(self._failed)
        if self._ended is not None:
            raise RuntimeError(f"this recording was {self._ended} already")

    def broken(self, words: str, error: BaseException) -> BaseException:
        """Fail the spool by what left an operation; the error to raise. ``OSError`` is translated."""
        if isinstance(error, OSError):
            self._failed = failure = store_error(words, error)
            return failure
        self._failed = error if isinstance(error, StoreError) else StoreError(words, advice="it was interrupted")
        return error

    def end(self, how: str) -> None:
        """Nothing more happens to this spool; ``how`` is a participle for the message (``published``)."""
        self._ended = how

    def step(self, words: str) -> _Step:
        """Around one operation on an open spool: whatever leaves it fails the spool. ``OSError`` is translated.

        ``words`` says what the operation does, as the end of "could not ...".
        """
        return _Step(self, words)


class _Step:
    # A class, not a generator: it stands around every sync, and costs a third.
    __slots__ = ("_life", "_words")

    def __init__(self, life: SpoolLife, words: str) -> None:
        self._life = life
        self._words = words

    def __enter__(self) -> None:
        self._life.require_open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        first = self._life.broken(self._words, error)
        if first is not error:
            raise first from None


def _again(first: StoreError) -> StoreError:
    if isinstance(first, CassetteExists):
        return CassetteExists(first.what)
    return StoreError(
        first.step, errno_name=first.errno_name, advice="this was the first failure; nothing is written after it"
    )


def store_error(words: str, error: OSError, advice: str = "") -> StoreError:
    """The ``StoreError`` of an ``OSError``, without the path that the latter names. Raise it ``from None``."""
    # An OSError that was raised with a text alone has no number, whatever its type says.
    number: int | None = error.errno
    return StoreError(words, errno_name=None if number is None else errno.errorcode.get(number), advice=advice)


def checked_name(name: str, *, recording: bool) -> str:
    """``name`` if it is usable; else ``ValueError``, without the name in its text.

    ``recording``: it is a formal name to record under, so it must not be that of a partial.
    """
    if not name:
        raise ValueError("the name of a cassette is empty")
    if "\0" in name:
        raise ValueError("the name of a cassette has a NUL in it")
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        raise ValueError("the name of a cassette cannot be encoded for the file system") from None
    tail = name.replace(os.altsep, os.sep) if os.altsep else name
    if tail.rpartition(os.sep)[2] in {"", ".", ".."}:
        raise ValueError("the name of a cassette is that of a directory")
    if recording and is_partial(name):
        raise ValueError(f"a cassette cannot be recorded under a name that ends in {PARTIAL_SUFFIX}")
    return name


def is_partial(name: str) -> bool:
    """The name is that of a partial, or of a partial that was set aside."""
    return _PARTIAL_NAME.search(name) is not None


def aside_names(partial: str, head: bytes, spare: str) -> Iterator[str]:
    """Names to set a stale partial aside under, in the order to try.

    ``head`` is the partial's first ``ID_SEARCH_BYTES``; ``spare`` are 8 hex digits for a partial that has no id (its
    recorder stopped before the first line).
    """
    found = _ID_IN_FIRST_LINE.search(head.partition(b"\n")[0])
    first = f"{partial}.{found[1][:8].decode() if found else spare}"
    return itertools.chain([first], (f"{first}-{n}" for n in range(2, _ASIDE_MAX)))
