"""The durable protocol: how a recording becomes a file that is whole or not there, through any crash.

Rule: a name is taken create-only; a directory is synced before the next step leans on a name in it; the partial goes
only after the formal name is durable, and only if it is still ours; nothing that failed is tried again.

The system calls of one recording, as strace would show them (Linux, a file system with hard links):

    openat(CWD, "/dir", O_RDONLY|O_DIRECTORY|O_CLOEXEC)         = D    everything after is relative to D
    newfstatat(D, "x")                                          ENOENT the formal name is free
    openat(D, "x.partial", O_WRONLY|O_CREAT|O_EXCL|O_APPEND|O_NOFOLLOW|O_CLOEXEC, 0600) = F
    fchmod(F, 0600)                                                    a umask of 0777 had made it mode 0
    flock(F, LOCK_EX|LOCK_NB)                                          live, for whoever looks
    newfstatat(D, "x.partial") == fstat(F)                             still ours, now that it is locked
    write(F, header) fdatasync(F) fsync(D)                             before the first acknowledgement
    write(F, frames) fdatasync(F)                                      as often as needed
    fsync(F) fstat(F).st_size == bytes written                         whole, and nobody else wrote
    linkat(D, "/proc/self/fd/F", D, "x", AT_SYMLINK_FOLLOW)            create-only, the inode that we wrote
    fsync(D)                                                           published
    newfstatat(D, "x.partial") == fstat(F), unlinkat(D, "x.partial"), fsync(D)
    close(F) close(D)

A link comes before a rename because a file system may keep any subset of the name changes since the last fsync(D): of
a rename it could keep the removal alone, and lose every acknowledged byte. Where linkat by descriptor is refused, in
this order: linkat by name, renameat2(RENAME_NOREPLACE) (macOS: renameatx_np(RENAME_EXCL), Windows: its plain rename),
openat(O_CREAT|O_EXCL) of an empty placeholder and rename over it. The last is create-only too, but a crash between its
two calls leaves an empty formal file beside the whole partial.

A link that answers EEXIST may have been done (NFS repeats a request whose answer was lost): the inode decides.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING

from toolcassette.errors import CassetteExists, StoreError
from toolcassette.stores.base import ID_SEARCH_BYTES, aside_names, store_error
from toolcassette.stores.partial import RENAME, UNSUPPORTED, Draft, begin, close, hold, remove_if_ours, undo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from toolcassette.stores.ops import Directory, FileOps, Stat

__all__ = ["append", "drop", "publish", "rewritten", "set_aside", "swap", "sync_dir"]

DIR_SYNC_NOTE = "the file system cannot sync a directory: names may be lost in a power cut"
PLACEHOLDER_NOTE = "the file system has no create-only rename: a crash while publishing may leave an empty file"

WRITE_BYTES_MAX = 1 << 30  # one write; Linux takes no more than 2 GiB - 4096 in one call

# What a file system without this way of naming a file answers. ENOENT, ENOTDIR: there is no /proc.
_REFUSED = UNSUPPORTED | {errno.EPERM, errno.EACCES, errno.EMLINK, errno.EXDEV, errno.ENOENT, errno.ENOTDIR}


# -- writing ---------------------------------------------------------------------------------------------------------


def append(draft: Draft, data: bytes) -> None:
    """Write all of ``data``. A short write is the end: after it, nothing says what is in the file."""
    fd = draft.fd if draft.fd is not None else draft.open_fd()
    parts = (data,) if len(data) <= WRITE_BYTES_MAX else _cut(data)
    for part in parts:
        taken = draft.ops.write(fd, part)
        draft.size += taken
        if taken != len(part):
            raise StoreError("write to the partial", advice="only a part was taken: the disk may be full")


def _cut(data: bytes) -> Iterator[memoryview]:
    return (memoryview(data)[at : at + WRITE_BYTES_MAX] for at in range(0, len(data), WRITE_BYTES_MAX))


def sync_dir(ops: FileOps, directory: Directory, note: Callable[[str], None]) -> None:
    """Make the names in the directory durable; where there is no such thing, say so to ``note``."""
    try:
        ops.fsync_dir(directory)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        note(DIR_SYNC_NOTE)


def rewritten(draft: Draft, lines: Iterable[bytes]) -> Draft:
    """A partial with other content in the place of ``draft``, which is closed: written beside it, then renamed over it.

    Both are ours and locked, and a crash leaves the one or the other under the name, whole.
    """
    new = begin(draft.ops, draft.directory, f"{draft.name}.{draft.ops.random_hex()}")
    try:
        for line in lines:
            append(new, line)
        draft.ops.fsync(new.open_fd())
        _require_named(draft)
        _close_for_rename(draft)
        _close_for_rename(new)
        draft.ops.rename(draft.directory, new.name, draft.name)
    except BaseException:
        undo(new)
        raise
    new.name = draft.name
    new.notes.extend(note for note in draft.notes if note not in new.notes)
    sync_dir(new.ops, new.directory, new.note)
    _require_ours(new, new.name)
    close(draft)
    if new.fd is None:
        new.fd = new.ops.open_partial(new.directory, new.name)
    return new


# -- ending ----------------------------------------------------------------------------------------------------------


def publish(draft: Draft, final: str) -> None:
    """Give the recording its formal name, create-only and durable; then drop the partial and close.

    ``CassetteExists("cassette")`` if the name is taken by another file. ``OSError`` or ``StoreError``: not published,
    or published and not tidied; the partial is kept unless its name was already gone.
    """
    _seal(draft)
    try:
        linked = _name(draft, final)
    except FileExistsError:
        raise CassetteExists("cassette") from None
    _settle(draft, linked=linked)


def swap(draft: Draft, final: str, old: Stat | None) -> None:
    """Put the recording in the place of ``old``, what ``lstat`` gave for ``final`` at the start (None: nothing).

    ``CassetteExists("cassette")`` if what stands there now is not the same, unchanged file.
    """
    if old is None:
        publish(draft, final)
        return
    _seal(draft)
    # Size and time too: an inode number is given out again as soon as its file is gone.
    if draft.ops.lstat(draft.directory, final) != old:
        raise CassetteExists("cassette")
    _require_named(draft)
    _close_for_rename(draft)
    draft.ops.rename(draft.directory, draft.name, final)
    _require_ours(draft, final)
    _settle(draft, linked=False)


def drop(draft: Draft) -> None:
    """Delete the partial if it is still ours, durably, and close."""
    _close_for_rename(draft)
    remove_if_ours(draft)
    sync_dir(draft.ops, draft.directory, draft.note)
    close(draft)


def set_aside(draft: Draft) -> None:
    """Give a seized partial a name of its own, create-only and durable, and close it."""
    head = draft.ops.read(draft.open_fd(), ID_SEARCH_BYTES, 0)
    for name in aside_names(draft.name, head, draft.ops.random_hex()):
        try:
            linked = _name(draft, name)
        except FileExistsError:
            continue
        _settle(draft, linked=linked)
        return
    raise StoreError("set the stale partial aside", errno_name="EEXIST", advice="delete those set aside before")


def _seal(draft: Draft) -> None:
    fd = draft.open_fd()
    draft.ops.fsync(fd)
    if draft.ops.fstat(fd).size != draft.size:
        advice = "the partial is not as long as what was written: another program changed it"
        raise StoreError("publish the cassette", advice=advice)


def _settle(draft: Draft, *, linked: bool) -> None:
    """The new name is there: make it durable, take the old one away, make that durable."""
    sync_dir(draft.ops, draft.directory, draft.note)
    if linked:
        try:
            _close_for_rename(draft)
            if remove_if_ours(draft):
                sync_dir(draft.ops, draft.directory, draft.note)
        except OSError as error:
            advice = "its new name is safe: delete the partial by hand"
            raise store_error("remove the partial", error, advice) from None
    close(draft)


def _close_for_rename(draft: Draft) -> None:
    if not draft.ops.renames_open_files:
        close(draft)


def _require_named(draft: Draft) -> None:
    if not draft.stands_at(draft.name):
        raise StoreError(RENAME, advice="another program moved or deleted it")


def _require_ours(draft: Draft, name: str) -> None:
    if not draft.stands_at(name):
        raise StoreError(RENAME, advice="another program swapped it: look at what stands under the new name")


# -- four ways to give a name, create-only ---------------------------------------------------------------------------
# Each returns whether the old name may still stand, and raises FileExistsError if the new one is taken.


def _link_by_fd(draft: Draft, name: str) -> bool:
    if draft.fd is None:
        raise OSError(errno.ENOSYS, "closed for a rename")
    draft.ops.link_fd(draft.directory, draft.fd, name)
    return True


def _link_by_name(draft: Draft, name: str) -> bool:
    draft.ops.link(draft.directory, draft.name, name)
    return True


def _rename_noreplace(draft: Draft, name: str) -> bool:
    _close_for_rename(draft)
    draft.ops.rename_noreplace(draft.directory, draft.name, name)
    return False


def _rename_over_placeholder(draft: Draft, name: str) -> bool:
    ops, directory = draft.ops, draft.directory
    placeholder = hold(ops, directory, name, ops.create(directory, name))
    close(placeholder)
    try:
        if not placeholder.stands_at(name):
            raise FileExistsError(errno.EEXIST, "taken")
        _close_for_rename(draft)
        ops.rename(directory, draft.name, name)
    except BaseException:
        with suppress(OSError):  # the first error is the one to tell
            remove_if_ours(placeholder)
        raise
    draft.note(PLACEHOLDER_NOTE)
    return False


_WAYS: tuple[tuple[bool, Callable[[Draft, str], bool]], ...] = (
    # by name: what stands under the partial's name must be ours before, and under the new one after
    (False, _link_by_fd),
    (True, _link_by_name),
    (True, _rename_noreplace),
    (True, _rename_over_placeholder),
)


def _name(draft: Draft, name: str) -> bool:
    """Give the file that we hold the name ``name``, create-only, in the first way that works here."""
    refusal: OSError | None = None  # of the last way: those before it say no more than that they do not exist
    for by_name, way in _WAYS:
        try:
            if by_name:
                _require_named(draft)
            linked = way(draft, name)
            if by_name:
                _require_ours(draft, name)
            return linked
        except FileExistsError:
            if draft.stands_at(name):
                return True
            raise
        except OSError as error:
            if error.errno not in _REFUSED:
                raise
            refusal = error
    assert refusal is not None
    raise refusal
