"""From a finished partial to a cassette: publish, swap, or find that nothing changed.

Rule: create-only, but for a re-recording, which swaps the new cassette in only when it is whole; and when it says
nothing new, the old file stays as it is, byte for byte.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Final

from toolcassette.crypto import opening_with
from toolcassette.errors import EncryptionError, FormatError, NotPublished
from toolcassette.format import CALLS_MAX, LINE_BYTES_CEILING, index_cassette, parse_cassette
from toolcassette.stores import PARTIAL_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcassette.format import Cassette, RunIndex
    from toolcassette.stores import Spool, Store

__all__ = ["HELD_BYTES", "publish", "publish_finished", "read", "refuse_foreign"]

HELD_BYTES: Final = 64 * 1024 * 1024  # what a program can spare; beyond it an index of 50 bytes a call has to do
_BLOCK_BYTES: Final = 256 * 1024  # one read: it stays in a core's own cache until it is hashed

# What a re-recording does not replace: what is no cassette at all, and what nobody here can read. A damaged cassette
# may be replaced, and so may what version control left in its place.
_FOREIGN: Final = frozenset({"not_a_cassette", "not_a_file", "unreadable", "format_unknown", "requires_unknown"})


def read(
    store: Store,
    name: str,
    *,
    calls_max: int = CALLS_MAX,
    finished_partial: bool = False,
    watch: RunIndex | None = None,
    identities: Sequence[str] = (),
) -> Cassette:
    """The verified cassette of a name. Raises ``FormatError`` on any defect.

    An encrypted one is opened by the identities in some files; without any, by those of the environment. Raises
    ``EncryptionError`` where that cannot be, once it was seen to be whole.

    A partial is no cassette, whole or not (``not_published``), unless ``finished_partial`` asks for one that is whole.
    Up to ``HELD_BYTES`` it is held in memory. Of a larger one only an index is, and its frames are read again when they
    are used: the file stays open as long as the cassette lives, or until its ``close``. ``watch`` is told of all
    frames.
    """
    opens = opening_with(identities)
    source = store.open(name)
    try:
        if source.partial and not finished_partial:
            raise FormatError("not_published")
        if source.size <= HELD_BYTES:
            with source:
                data = source.read_at(0, source.size)
                return parse_cassette(
                    data, line_bytes_max=LINE_BYTES_CEILING, calls_max=calls_max, watch=watch, opens=opens
                )
        lock = threading.Lock()  # a source has one reader at a time, a cassette any number

        def read_at(offset: int, length: int) -> bytes:
            with lock:
                return source.read_at(offset, length)

        cassette = index_cassette(
            source.blocks(_BLOCK_BYTES),
            read_at,
            source.size,
            line_bytes_max=LINE_BYTES_CEILING,
            calls_max=calls_max,
            watch=watch,
            opens=opens,
        )
    except BaseException:
        source.close()
        raise
    cassette.closing(weakref.finalize(cassette, source.close))
    return cassette


def refuse_foreign(store: Store, name: str) -> None:
    """Raise ``FormatError`` where a file stands that a re-recording must not replace; nothing was touched."""
    try:
        read(store, name)
    except EncryptionError:
        pass  # whole, and whose it is does not matter
    except FormatError as error:
        if error.reason in _FOREIGN or (error.reason, error.frame) == ("zero_filled", 0):
            raise


def publish(store: Store, spool: Spool, *, replace: bool) -> str:
    """Make a finished recording the cassette. Returns ``published`` or ``unchanged``. Raises ``StoreError``."""
    if not replace:
        spool.publish()
        return "published"
    spool.sync()
    if _says_the_same(store, spool.name):
        spool.discard()
        return "unchanged"
    spool.swap()
    return "published"


def publish_finished(store: Store, name: str, *, replace: bool) -> str:
    """Publish the partial of ``name`` that another process finished. Returns as ``publish``.

    Raises ``NotPublished`` ``unfinished`` where the partial is not whole, ``FormatError`` or ``StoreError``.
    """
    spool = store.adopt(name)
    try:
        try:
            read(store, name + PARTIAL_SUFFIX, finished_partial=True)
        except EncryptionError:
            pass  # whole, and the parent needs no key
        except FormatError:
            raise NotPublished("unfinished") from None
        return publish(store, spool, replace=replace)
    finally:
        spool.keep()


def _says_the_same(store: Store, name: str) -> bool:
    try:
        old, new = read(store, name), read(store, name + PARTIAL_SUFFIX, finished_partial=True)
    except (FormatError, EncryptionError):
        return False  # absent or damaged: nothing to keep
    # Two that are encrypted may be for other recipients, and nobody can tell.
    return not (old.encrypted or new.encrypted) and old.content() == new.content()
