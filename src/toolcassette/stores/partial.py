"""A partial that we hold open: how it is begun, how a live one is told from one left behind, how it is let go.

Rule: a recorder locks its partial for as long as it holds it, so live is what is locked; and nothing is touched under a
name that is not, at that moment, a name of the very file that we hold.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcassette.errors import CassetteExists, StoreError

if TYPE_CHECKING:
    from toolcassette.stores.ops import Directory, FileOps

__all__ = [
    "LOCK_NOTE",
    "RENAME",
    "UNSUPPORTED",
    "Draft",
    "begin",
    "close",
    "hold",
    "is_live",
    "remove_if_ours",
    "seize",
    "undo",
]

LOCK_NOTE = "the file system has no locks: other recorders cannot see that this one is live"
RENAME = "rename the partial"  # the step that an error names

UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
_NO_LOCKS = UNSUPPORTED | {errno.ENOLCK}

_LOCK_PAUSE_S = 0.02
_LOCK_TRIES = 50  # one second: somebody who looks whether we are live holds a shared lock for microseconds
_EMPTY_PAUSE_S = 0.05
_EMPTY_TRIES = 5  # a new partial is empty and unlocked for a moment: do not take it for one left behind


@dataclass(slots=True)
class Draft:
    """A file that we hold open and locked under a name that is not its last: a partial.

    ``fd`` is None once it is closed (Windows cannot rename an open file). ``size``: bytes that should be in it.
    """

    ops: FileOps
    directory: Directory
    name: str
    fd: int | None
    ident: tuple[int, int]
    size: int = 0
    notes: list[str] = field(default_factory=list)

    def stands_at(self, name: str) -> bool:
        """``name`` is a name of the very file that we hold."""
        found = self.ops.lstat(self.directory, name)
        return found is not None and found.ident == self.ident

    def open_fd(self) -> int:
        """The descriptor; ``StoreError`` where it had to be closed for a rename that then failed."""
        if self.fd is None:
            raise StoreError(RENAME, advice="it is closed, and kept")
        return self.fd

    def note(self, words: str) -> None:
        """Remember what could not be promised, once."""
        if words not in self.notes:
            self.notes.append(words)


def begin(ops: FileOps, directory: Directory, name: str) -> Draft:
    """Create the partial ``name`` and lock it. ``FileExistsError`` if the name is taken."""
    draft = hold(ops, directory, name, ops.create(directory, name))
    try:
        if not _lock(draft):
            raise StoreError("lock the partial", advice="another program holds it; try again")
        if not draft.stands_at(name):  # taken for one left behind, in the moment before it was locked
            raise CassetteExists("live_partial")
    except BaseException:
        undo(draft)
        raise
    return draft


def seize(ops: FileOps, directory: Directory, name: str, *, lock: bool, unknown: bool) -> Draft | None:
    """Open and lock a partial whose writer is gone; None if the name is free (by now).

    ``lock=False`` only looks: a lock taken for a moment would make us a live writer to whoever else looks. ``unknown``:
    take it for live where the file system has no locks.

    ``CassetteExists``: ``"live_partial"``, or ``"stale_partial"`` for what is no regular file and so not a recorder's.
    """
    found = ops.lstat(directory, name)
    if found is None:
        return None
    if not found.regular:
        raise CassetteExists("stale_partial")
    try:
        fd = ops.open_partial(directory, name)
    except FileNotFoundError:
        return None
    except PermissionError:  # another user's: whether its recorder is gone cannot be known
        raise CassetteExists("live_partial") from None
    draft = hold(ops, directory, name, fd)
    try:
        if is_live(ops, fd, unknown=unknown, patient=True) or (lock and not _lock(draft)):
            raise CassetteExists("live_partial")
        draft.size = ops.fstat(fd).size
        still_there = draft.stands_at(name)
    except BaseException:
        close(draft)
        raise
    if not still_there:
        close(draft)
        return None
    return draft


def is_live(ops: FileOps, fd: int, *, unknown: bool, patient: bool = False) -> bool:
    """A recorder holds the lock of the file. ``unknown``: what to answer where there are no locks.

    ``patient``: give an empty file a moment, its recorder may be about to lock it.
    """
    try:
        for _ in range(_EMPTY_TRIES):
            # The length before the lock: a recorder writes only while it holds the lock, so what was not empty then and
            # is not locked now has lost its recorder.
            empty = ops.fstat(fd).size == 0
            if not ops.lock(fd, shared=True):
                return True
            ops.unlock(fd)
            if not (empty and patient):
                break
            ops.sleep(_EMPTY_PAUSE_S)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return unknown
    return False


def undo(draft: Draft) -> None:
    """Take back a partial that was just begun, as far as that works: the error that led here is the one to tell."""
    with suppress(OSError):
        remove_if_ours(draft)
    close(draft)


def hold(ops: FileOps, directory: Directory, name: str, fd: int) -> Draft:
    """The draft of an open file; closes ``fd`` where that fails."""
    try:
        return Draft(ops, directory, name, fd, ops.fstat(fd).ident)
    except BaseException:
        ops.close(fd)
        raise


def _lock(draft: Draft) -> bool:
    fd = draft.open_fd()
    try:
        for _ in range(_LOCK_TRIES):
            if draft.ops.lock(fd, shared=False):
                return True
            draft.ops.sleep(_LOCK_PAUSE_S)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        draft.note(LOCK_NOTE)
        return True
    return False


def remove_if_ours(draft: Draft) -> bool:
    """Take the draft's name away if it is still that of the file that we hold; whether it was."""
    if not draft.stands_at(draft.name):
        return False
    draft.ops.unlink(draft.directory, draft.name)
    return True


def close(draft: Draft) -> None:
    """Let go of the file; the lock goes with it (with the last copy of the descriptor). The directory stays open."""
    fd, draft.fd = draft.fd, None
    if fd is not None:
        # What was promised was synced before: an error here takes nothing back.
        with suppress(OSError):
            draft.ops.close(fd)
