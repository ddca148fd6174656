"""Cassettes as files: a name is a path, a recording is ``<path>.partial`` beside it.

Rule: writing never follows a link and never overwrites; reading follows links but reads regular files only. A relative
path is made absolute once, when the store is asked, and everything else goes through the opened directory.
"""

# A path is cut as it was given; pathlib would normalise it.
# ruff: noqa: PTH100, PTH109, PTH117, PTH118
from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from toolcassette.errors import CassetteExists, FormatError, StoreError
from toolcassette.stores import durable, partial
from toolcassette.stores.base import (
    PARTIAL_SUFFIX,
    Source,
    SourceBase,
    Spool,
    SpoolLife,
    checked_name,
    is_partial,
    store_error,
)
from toolcassette.stores.ops import FileOps

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from toolcassette.stores.ops import Directory, Stat
    from toolcassette.stores.partial import Draft

__all__ = ["FileStore"]

# What else may go wrong is "unreadable". ENXIO, ENODEV: a socket, or a device that is not there.
_READ_REASONS = {
    errno.ENOENT: "absent",
    errno.ENOTDIR: "absent",
    errno.ENAMETOOLONG: "absent",
    errno.EISDIR: "not_a_file",
    errno.ENXIO: "not_a_file",
    errno.ENODEV: "not_a_file",
}
_CREATE_TRIES = 8  # each try that fails met another recorder beginning or ending at this very moment


class FileStore:
    """Cassettes in the file system. A name is a path; missing parent directories are made by ``create``.

    ``ops``: the operating system, or a double of it.
    """

    def __init__(self, ops: FileOps | None = None) -> None:
        self._ops = ops or FileOps()

    def resolve(self, name: str) -> str:
        """``name`` as an absolute path."""
        return os.path.abspath(checked_name(name, recording=False))

    def create(self, name: str, *, cassette_id: str, replace: bool = False, set_aside: bool = False) -> Spool:
        """See ``Store.create``. Also ``StoreError`` in a directory that everybody may write to (without sticky bit)."""
        del cassette_id  # the file system makes a name exclusive by itself
        checked_name(name, recording=True)
        with _step("create the partial"):
            folder, final = _absolute(name)
            directory = _made_dir(self._ops, folder)
            try:
                _refuse_open_to_all(self._ops, directory)
                old, draft = self._begin(directory, final, replace=replace, set_aside=set_aside)
            except BaseException:
                self._ops.close_dir(directory)
                raise
        return _FileSpool(name, final, draft, old=old, replace=replace)

    def open(self, name: str) -> Source:
        """See ``Store.open``. Links are followed."""
        checked_name(name, recording=False)
        with _reading():
            fd = self._ops.open_read(os.path.join(*_absolute(name)))
            try:
                if not self._ops.fstat(fd).regular:
                    raise FormatError("not_a_file")
                unpublished = is_partial(name)
                # First the lock, then the length: a writer that ends in between leaves nothing out.
                live = unpublished and partial.is_live(self._ops, fd, unknown=False)
                return _FileSource(self._ops, fd, self._ops.fstat(fd).size, live=live, partial=unpublished)
            except BaseException:
                self._ops.close(fd)
                raise

    def adopt(self, name: str) -> Spool:
        """See ``Store.adopt``."""
        checked_name(name, recording=True)
        with _step("open the partial"):
            folder, final = _absolute(name)
            try:
                directory = self._ops.open_dir(folder)
            except (FileNotFoundError, NotADirectoryError):
                raise FormatError("absent") from None
            try:
                old = self._ops.lstat(directory, final)
                # Where there are no locks, the caller's word that the writer is gone has to do.
                draft = partial.seize(self._ops, directory, final + PARTIAL_SUFFIX, lock=True, unknown=False)
                if draft is None:
                    raise FormatError("absent")
            except BaseException:
                self._ops.close_dir(directory)
                raise
        return _FileSpool(name, final, draft, old=old, replace=True)

    def has_partial(self, name: str) -> bool:
        """See ``Store.has_partial``. False where it cannot be told."""
        checked_name(name, recording=False)
        with suppress(OSError):
            folder, final = _absolute(name)
            directory = self._ops.open_dir(folder)
            try:
                return self._ops.lstat(directory, final + PARTIAL_SUFFIX) is not None
            finally:
                self._ops.close_dir(directory)
        return False

    def _begin(self, directory: Directory, final: str, *, replace: bool, set_aside: bool) -> tuple[Stat | None, Draft]:
        """What stands under the formal name (None: nothing), and the new partial."""
        self._refuse_formal(directory, final, replace=replace)
        for _ in range(_CREATE_TRIES):
            draft: Draft | None = None
            with suppress(FileExistsError):  # left behind here: it names the file, and would go along as a context
                draft = partial.begin(self._ops, directory, final + PARTIAL_SUFFIX)
            if draft is None:
                self._clear_partial(directory, final + PARTIAL_SUFFIX, set_aside=set_aside)
                continue
            try:
                # Again: another recorder may have published between the first look and our partial.
                return self._refuse_formal(directory, final, replace=replace), draft
            except BaseException:
                partial.undo(draft)
                raise
        raise CassetteExists("live_partial")

    def _refuse_formal(self, directory: Directory, final: str, *, replace: bool) -> Stat | None:
        found = self._ops.lstat(directory, final)
        if found is not None and not replace:
            raise CassetteExists("cassette")
        if found is not None and not (found.regular or stat.S_ISLNK(found.mode)):
            raise StoreError("replace the cassette", advice="what stands under its name is not a file")
        return found

    def _clear_partial(self, directory: Directory, name: str, *, set_aside: bool) -> None:
        """Set a stale partial aside, or say why it stands in the way."""
        draft = partial.seize(self._ops, directory, name, lock=set_aside, unknown=True)
        if draft is None:
            return
        try:
            if not set_aside:
                raise CassetteExists("stale_partial")
            with _step("set the stale partial aside"):
                durable.set_aside(draft)
        finally:
            partial.close(draft)


class _FileSpool:
    """A partial that we hold. ``old``: what stood under the formal name at the start, with ``replace``."""

    def __init__(self, name: str, final: str, draft: Draft, *, old: Stat | None, replace: bool) -> None:
        self.name = name
        self._final = final
        self._draft = draft
        self._old = old
        self._replace = replace
        self._named_durably = False
        self._life = SpoolLife()
        self._syncing = self._life.step("sync the partial")  # made once: it stands around every sync

    @property
    def notes(self) -> Sequence[str]:
        return tuple(self._draft.notes)

    def append(self, data: bytes) -> None:
        self._life.require_open()
        try:  # a step written out: it stands around every frame
            durable.append(self._draft, data)
        except BaseException as error:
            first = self._life.broken("write to the partial", error)
            if first is error:
                raise
            raise first from None

    def sync(self) -> None:
        draft = self._draft
        with self._syncing:
            draft.ops.fdatasync(draft.open_fd())
            if not self._named_durably:
                durable.sync_dir(draft.ops, draft.directory, draft.note)
                self._named_durably = True

    def rewrite(self, lines: Iterable[bytes]) -> None:
        with self._life.step("rewrite the partial"):
            self._draft = durable.rewritten(self._draft, lines)
            self._named_durably = True

    def publish(self) -> None:
        with self._life.step("publish the cassette"):
            durable.publish(self._draft, self._final)
        self._end("published")

    def swap(self) -> None:
        self._life.require_open()
        if not self._replace:
            raise RuntimeError("this recording was not begun with replace=True")
        with self._life.step("replace the cassette"):
            durable.swap(self._draft, self._final, self._old)
        self._end("published")

    def discard(self) -> None:
        with self._life.step("remove the partial"):
            durable.drop(self._draft)
        self._end("discarded")

    def keep(self) -> None:
        self._end("closed")

    def forget(self) -> None:
        # Closing a copy of the descriptor leaves the parent's lock alone; an explicit unlock would not.
        self._end("left to the parent process")

    def _end(self, how: str) -> None:
        if not self._life.over:
            self._life.end(how)
            partial.close(self._draft)
            with suppress(OSError):
                self._draft.ops.close_dir(self._draft.directory)


class _FileSource(SourceBase):
    """An opened file, up to the length that it had."""

    def __init__(self, ops: FileOps, fd: int, size: int, *, live: bool, partial: bool) -> None:
        self.size = size
        self.live = live
        self.partial = partial
        self._ops = ops
        self._fd: int | None = fd

    def read_at(self, offset: int, length: int) -> bytes:
        if offset < 0 or length < 0:
            raise ValueError("offset and length count bytes from the start")
        parts: list[bytes] = []
        wanted = min(length, max(self.size - offset, 0))
        with _reading():
            while wanted and (part := self._ops.read(self._open_fd(), wanted, offset)):
                parts.append(part)
                offset += len(part)
                wanted -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(OSError):
                self._ops.close(fd)

    def _open_fd(self) -> int:
        if self._fd is None:
            raise RuntimeError("this cassette was closed already")
        return self._fd


@contextmanager
def _step(words: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise store_error(words, error) from None


@contextmanager
def _reading() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise FormatError(_READ_REASONS.get(error.errno or 0, "unreadable")) from None


def _absolute(name: str) -> tuple[str, str]:
    """The absolute directory of a path, and its last component. ``..`` stays: with links, only the system knows it."""
    folder, final = os.path.split(name)
    return os.path.join(os.getcwd(), folder) if not os.path.isabs(folder) else folder, final


def _made_dir(ops: FileOps, path: str) -> Directory:
    """Open the directory ``path``; where it is missing make it, and its parents, durably."""
    try:
        return ops.open_dir(path)
    except FileNotFoundError:
        folder, name = os.path.split(path.rstrip(os.sep))
        if not name or folder == path:
            raise
    parent = _made_dir(ops, folder)
    try:
        with suppress(FileExistsError):  # somebody else was faster
            ops.mkdir(parent, name)
        durable.sync_dir(ops, parent, lambda _: None)
    finally:
        ops.close_dir(parent)
    return ops.open_dir(path)


def _refuse_open_to_all(ops: FileOps, directory: Directory) -> None:
    """Where everybody may rename everybody's files, a cassette could be swapped for another at any time."""
    if directory.fd is None:  # no such mode bits on Windows
        return
    mode = ops.stat_dir(directory).mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise StoreError(
            "record in this directory",
            advice="everybody may replace files in it: take the right away (chmod o-w), or record elsewhere",
        )
