"""The operating system as a store sees it: one small method for each effect, and nothing decided here.

Rule: every call that reaches the file system goes through ``FileOps``, so that a double can record the calls, cut them
off at any point, or make any of them fail. Methods raise plain ``OSError``; what an error means is said in ``durable``.
Names are relative to an opened directory, so that a parent swapped under us changes nothing.
"""

# pathlib has no calls relative to a directory descriptor.
# ruff: noqa: PTH104, PTH112, PTH116, PTH118
from __future__ import annotations

import errno
import functools
import os
import secrets
import stat
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if sys.platform == "win32":
    import msvcrt

    _FULL_SYNC = None
else:
    import fcntl

    _FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Directory", "FileOps", "Stat"]

# Flags that an operating system lacks count as zero there.
_CLOEXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0) | getattr(os, "O_BINARY", 0)
_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
_DIRECTORY: int = getattr(os, "O_DIRECTORY", 0)

_FILE_MODE = 0o600
_DIR_MODE = 0o775  # less the umask; never world-writable, where recording is refused
_NO_MODES = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_NO_FULL_SYNC = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY})

# platform: (function of the C library, its flag for "fail if the target exists"); both take the same five arguments.
_RENAME_NOREPLACE = {"linux": ("renameat2", 1), "darwin": ("renameatx_np", 4)}

# A virus scanner or an indexer holds a fresh file for some milliseconds: access denied, sharing and lock violation.
_WINDOWS_BUSY = frozenset({5, 32, 33})
_WINDOWS_PAUSES_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
_WINDOWS_LOCK_AT = 1 << 62  # locks are mandatory there: lock a byte that no data will ever reach


class Stat(NamedTuple):
    """What is asked of a file: its identity, its ``st_mode``, bytes, nanoseconds."""

    dev: int
    ino: int
    mode: int
    size: int
    mtime_ns: int

    @property
    def ident(self) -> tuple[int, int]:
        """Which file it is, whatever its name."""
        return self.dev, self.ino

    @property
    def regular(self) -> bool:
        """A regular file: no link, directory, pipe or device."""
        return stat.S_ISREG(self.mode)


class Directory(NamedTuple):
    """An opened directory. ``fd`` is None where there are no directory descriptors (Windows): full paths are used."""

    path: str
    fd: int | None

    def at(self, name: str) -> str:
        """What to hand to a call that also gets ``dir_fd=self.fd``."""
        return name if self.fd is not None else os.path.join(self.path, name)


class FileOps:
    """The real operating system. Subclass it to record calls or to inject faults; it has no state of its own."""

    renames_open_files: bool = sys.platform != "win32"
    full_sync_command: int | None = _FULL_SYNC

    # -- directories ---------------------------------------------------------------------------------------------

    def open_dir(self, path: str) -> Directory:
        """Open the directory ``path`` (absolute) for the calls that follow."""
        if sys.platform == "win32":
            if not os.path.isdir(path):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            fd = None
        else:
            fd = os.open(path, os.O_RDONLY | _DIRECTORY | _CLOEXEC)
        return Directory(path, fd)

    def close_dir(self, directory: Directory) -> None:
        """Close it."""
        if directory.fd is not None:
            os.close(directory.fd)

    def stat_dir(self, directory: Directory) -> Stat:
        """Of the directory itself."""
        return _stat(os.stat(directory.path if directory.fd is None else directory.fd))

    def mkdir(self, directory: Directory, name: str) -> None:
        """Make a directory."""
        os.mkdir(directory.at(name), _DIR_MODE, dir_fd=directory.fd)

    def fsync_dir(self, directory: Directory) -> None:
        """Make the names in it durable. ``ENOTSUP`` where an operating system has no such thing."""
        if directory.fd is None:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
        self.fsync(directory.fd)

    # -- names ---------------------------------------------------------------------------------------------------

    def lstat(self, directory: Directory, name: str) -> Stat | None:
        """Of the name itself (a link is not followed); None if it is free."""
        try:
            return _stat(os.stat(directory.at(name), dir_fd=directory.fd, follow_symlinks=False))
        except FileNotFoundError:
            return None

    def create(self, directory: Directory, name: str) -> int:
        """Create a file that did not exist, for appending, readable by its owner alone whatever the umask."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | _NOFOLLOW | _CLOEXEC
        fd = os.open(directory.at(name), flags, _FILE_MODE, dir_fd=directory.fd)
        if sys.platform != "win32":
            try:
                os.fchmod(fd, _FILE_MODE)
            except OSError as error:
                # We own the file we just made: a refusal means a file system without modes, not a lack of rights.
                if error.errno not in _NO_MODES:
                    os.close(fd)
                    raise
        return fd

    def open_partial(self, directory: Directory, name: str) -> int:
        """Open an existing file for taking it over; a link is refused."""
        flags = os.O_RDWR | os.O_APPEND | _NOFOLLOW | _NONBLOCK | _CLOEXEC
        return os.open(directory.at(name), flags, dir_fd=directory.fd)

    def open_read(self, path: str) -> int:
        """Open for reading; follows links, never waits for the other end of a pipe."""
        return os.open(path, os.O_RDONLY | _NONBLOCK | _CLOEXEC)

    def link_fd(self, directory: Directory, fd: int, name: str) -> None:
        """Give the inode behind ``fd`` a second name, create-only. ``ENOENT`` where there is no /proc."""
        if directory.fd is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        # The directories select linkat(2), which follows the /proc link; plain link(2) would answer EXDEV.
        os.link(f"/proc/self/fd/{fd}", name, src_dir_fd=directory.fd, dst_dir_fd=directory.fd, follow_symlinks=True)

    def link(self, directory: Directory, source: str, name: str) -> None:
        """Give the file called ``source`` a second name, create-only."""
        if directory.fd is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        os.link(source, name, src_dir_fd=directory.fd, dst_dir_fd=directory.fd, follow_symlinks=False)

    def rename_noreplace(self, directory: Directory, source: str, name: str) -> None:
        """Rename, create-only. ``ENOSYS`` where the operating system has no such call."""
        if sys.platform == "win32":  # its rename refuses an existing target by itself
            self._patiently(lambda: os.rename(directory.at(source), directory.at(name)))
        else:
            function = _rename_noreplace_function(sys.platform)
            if function is None or directory.fd is None:
                raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
            number = function(directory.fd, os.fsencode(source), os.fsencode(name))
            if number:
                raise OSError(number, os.strerror(number))

    def rename(self, directory: Directory, source: str, name: str) -> None:
        """Rename over whatever has the name."""
        self._patiently(
            lambda: os.replace(
                directory.at(source), directory.at(name), src_dir_fd=directory.fd, dst_dir_fd=directory.fd
            )
        )

    def unlink(self, directory: Directory, name: str) -> None:
        """Take the name away."""
        self._patiently(lambda: os.unlink(directory.at(name), dir_fd=directory.fd))

    # -- bytes ---------------------------------------------------------------------------------------------------

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """How many bytes were taken."""
        return os.write(fd, data)

    def read(self, fd: int, length: int, offset: int) -> bytes:
        """Up to ``length`` bytes from ``offset``; empty at the end."""
        if sys.platform == "win32":
            os.lseek(fd, offset, os.SEEK_SET)
            data = os.read(fd, length)
        else:
            data = os.pread(fd, length, offset)
        return data

    def fdatasync(self, fd: int) -> None:
        """Make the bytes, and the length, durable."""
        if sys.platform == "linux":
            os.fdatasync(fd)
        else:
            self.fsync(fd)

    def fsync(self, fd: int) -> None:
        """Make all of it durable, through the drive's own cache where the system has a word for that (macOS)."""
        if sys.platform != "win32" and self.full_sync_command is not None:
            try:
                fcntl.fcntl(fd, self.full_sync_command)
            except OSError as error:
                # Not supported is not failed: the plain call below is then the first one, no retry.
                if error.errno not in _NO_FULL_SYNC:
                    raise
            else:
                return
        os.fsync(fd)

    def fstat(self, fd: int) -> Stat:
        """Of an opened file."""
        return _stat(os.fstat(fd))

    def lock(self, fd: int, *, shared: bool) -> bool:
        """Take the advisory lock without waiting; False if another holder is in the way."""
        try:
            if sys.platform == "win32":
                os.lseek(fd, _WINDOWS_LOCK_AT, os.SEEK_SET)
                msvcrt.locking(fd, msvcrt.LK_NBRLCK if shared else msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def unlock(self, fd: int) -> None:
        """Give back a lock that was taken through this very descriptor."""
        if sys.platform == "win32":
            os.lseek(fd, _WINDOWS_LOCK_AT, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
        else:
            fcntl.flock(fd, fcntl.LOCK_UN)

    def close(self, fd: int) -> None:
        """Close a file's descriptor; a lock goes with its last copy."""
        os.close(fd)

    # -- what is not a file --------------------------------------------------------------------------------------

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def random_hex(self) -> str:
        """8 hex digits for a name that has no better one."""
        return secrets.token_hex(4)

    def _patiently(self, act: Callable[[], None]) -> None:
        """Do ``act``; where Windows says that somebody else holds the file, again, for less than a second in all."""
        for pause in _WINDOWS_PAUSES_S:
            try:
                act()
            except OSError as error:
                if getattr(error, "winerror", None) not in _WINDOWS_BUSY:
                    raise
            else:
                return
            self.sleep(pause)
        act()


def _stat(found: os.stat_result) -> Stat:
    return Stat(found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns)


@functools.cache
def _rename_noreplace_function(platform: str) -> Callable[[int, bytes, bytes], int] | None:
    """The C library's create-only rename as ``(directory fd, source, name) -> errno or 0``; None if it has none."""
    # Loaded on first use: only file systems without hard links ever come here.
    import ctypes

    symbol, flag = _RENAME_NOREPLACE.get(platform, ("", 0))
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), symbol)
    except (AttributeError, OSError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int

    def rename(fd: int, source: bytes, name: bytes) -> int:
        return ctypes.get_errno() if function(fd, source, fd, name, flag) else 0

    return rename
