"""A disk that remembers what was done to it, in which order, and so knows what a power cut may leave of it.

It stands behind ``FileOps``, below the real ``FileStore`` and the real recorder. One directory, ``/disk``. The model is
the weakest that a file system is allowed to be:

- of a file, what was there at its last sync is safe; of what was appended since, any beginning may have arrived, with
  nothing behind it, or zeros, or one sector of garbage or zeros and then more of the data;
- of a directory, what was there at its last sync is safe; of the changes since, any subset may have arrived;
- syncing a file says nothing about its name.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import stat
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from toolcassette.stores import Directory, FileOps, Stat

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = "/disk"
SECTOR = 512


class Op(NamedTuple):
    """One change, or one sync. ``what``: create, write, sync, link, unlink, rename, sync_dir."""

    what: str
    ino: int = 0
    name: str = ""
    other: str = ""  # of a rename: the name it had
    data: bytes = b""


class Left(NamedTuple):
    """What stands on the disk after a cut: names, and the bytes of each inode that has one."""

    names: dict[str, int]
    contents: dict[int, bytes]

    def read(self, name: str) -> bytes | None:
        return self.contents[self.names[name]] if name in self.names else None

    def key(self) -> tuple[object, ...]:
        return tuple((name, ino, self.contents[ino]) for name, ino in sorted(self.names.items()))


class Ack(NamedTuple):
    """After ``at`` operations the program knew that ``frames`` are kept, and perhaps that all is published."""

    at: int
    frames: int
    published: bool


@dataclass
class Inode:
    data: bytearray = field(default_factory=bytearray)
    changes: int = 0


class Disk(FileOps):
    """``history`` is what was done, ``acks`` what was promised to the program by then."""

    renames_open_files = True

    def __init__(self, start: Left | None = None) -> None:
        self.start = start or Left({}, {})
        self.names = dict(self.start.names)
        self.inodes = {ino: Inode(bytearray(data)) for ino, data in self.start.contents.items()}
        self.history: list[Op] = []
        self.acks: list[Ack] = []
        self._descriptors: dict[int, int] = {}
        self._locked: dict[int, set[int]] = {}  # inode -> descriptors that lock it
        self._numbers = itertools.count(max(self.inodes, default=0) + 1)
        self._fds = itertools.count(1000)
        self._mutex = threading.RLock()

    # -- what a test asks ----------------------------------------------------------------------------------------

    def left(self) -> Left:
        """What stands there now, without any cut."""
        return Left(dict(self.names), {ino: bytes(self.inodes[ino].data) for ino in self.names.values()})

    def lines(self) -> list[bytes]:
        """All the frames of the partial that was created last, whatever became of it."""
        created = [op.ino for op in self.history if op.what == "create" and op.name.endswith(".partial")][-1]
        return b"".join(op.data for op in self.history if op.ino == created).splitlines(keepends=True)

    def acknowledge(self, kind: str, n: int) -> None:
        """The program saw the start (its body runs) or the result of the call with the argument ``n``."""
        with self._mutex:
            lines = self.lines()
            starts = [i for i, line in enumerate(lines) if b'"args":{"n":%d}' % n in line]
            number = re.search(rb'"call":(\d+)', lines[starts[0]])
            assert number
            ends = [i for i, line in enumerate(lines) if b'"call/result","call":%b,' % number[1] in line]
            self.acks.append(Ack(len(self.history), (starts if kind == "start" else ends)[0] + 1, published=False))

    def acknowledge_all(self, *, published: bool) -> None:
        """The session ended."""
        self.acks.append(Ack(len(self.history), len(self.lines()), published=published))

    # -- directories ---------------------------------------------------------------------------------------------

    def open_dir(self, path: str) -> Directory:
        if path != FOLDER:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return Directory(path, next(self._fds))

    def close_dir(self, directory: Directory) -> None:
        pass

    def stat_dir(self, directory: Directory) -> Stat:
        return Stat(1, 1, stat.S_IFDIR | 0o700, 0, 0)

    def mkdir(self, directory: Directory, name: str) -> None:
        raise AssertionError("there is one directory")

    def fsync_dir(self, directory: Directory) -> None:
        self.history.append(Op("sync_dir"))

    # -- names ---------------------------------------------------------------------------------------------------

    def lstat(self, directory: Directory, name: str) -> Stat | None:
        return self._stat(self.names[name]) if name in self.names else None

    def create(self, directory: Directory, name: str) -> int:
        self._require_free(name)
        ino = next(self._numbers)
        self.inodes[ino] = Inode()
        self.names[name] = ino
        self.history.append(Op("create", ino, name))
        return self._open(ino)

    def open_partial(self, directory: Directory, name: str) -> int:
        return self._open(self._known(name))

    def open_read(self, path: str) -> int:
        return self._open(self._known(path.removeprefix(FOLDER + "/")))

    def link_fd(self, directory: Directory, fd: int, name: str) -> None:
        self._link(self._descriptors[fd], name)

    def link(self, directory: Directory, source: str, name: str) -> None:
        self._link(self._known(source), name)

    def rename_noreplace(self, directory: Directory, source: str, name: str) -> None:
        self._require_free(name)
        self.rename(directory, source, name)

    def rename(self, directory: Directory, source: str, name: str) -> None:
        ino = self.names[name] = self.names.pop(source)
        self.history.append(Op("rename", ino, name, source))

    def unlink(self, directory: Directory, name: str) -> None:
        self.history.append(Op("unlink", self.names.pop(name), name))

    # -- bytes ---------------------------------------------------------------------------------------------------

    def write(self, fd: int, data: bytes | memoryview) -> int:
        with self._mutex:
            inode = self.inodes[self._descriptors[fd]]
            inode.data += data
            inode.changes += 1
            self.history.append(Op("write", self._descriptors[fd], data=bytes(data)))
        return len(data)

    def read(self, fd: int, length: int, offset: int) -> bytes:
        return bytes(self.inodes[self._descriptors[fd]].data[offset : offset + length])

    def fdatasync(self, fd: int) -> None:
        self.history.append(Op("sync", self._descriptors[fd]))

    def fsync(self, fd: int) -> None:
        self.history.append(Op("sync", self._descriptors[fd]))

    def fstat(self, fd: int) -> Stat:
        return self._stat(self._descriptors[fd])

    def lock(self, fd: int, *, shared: bool) -> bool:
        holders = self._locked.setdefault(self._descriptors[fd], set())
        if holders - {fd}:
            return False
        holders.add(fd)
        return True

    def unlock(self, fd: int) -> None:
        self._locked[self._descriptors[fd]].discard(fd)

    def close(self, fd: int) -> None:
        ino = self._descriptors.pop(fd)
        self._locked.get(ino, set()).discard(fd)

    def sleep(self, seconds: float) -> None:
        pass

    def random_hex(self) -> str:
        return "0123abcd"

    def _open(self, ino: int) -> int:
        fd = next(self._fds)
        self._descriptors[fd] = ino
        return fd

    def _link(self, ino: int, name: str) -> None:
        self._require_free(name)
        self.names[name] = ino
        self.history.append(Op("link", ino, name))

    def _known(self, name: str) -> int:
        if name not in self.names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self.names[name]

    def _require_free(self, name: str) -> None:
        if name in self.names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))

    def _stat(self, ino: int) -> Stat:
        inode = self.inodes[ino]
        return Stat(1, ino, stat.S_IFREG | 0o600, len(inode.data), inode.changes)


# -- what a cut may leave --------------------------------------------------------------------------------------------


def cuts(data: bytes) -> list[int]:
    """Where data that was not synced may end: nothing, a byte, half, all but a byte, all, and around each LF."""
    ends = {0, 1, len(data) // 2, len(data) - 1, len(data)}
    for match in re.finditer(rb"\n", data):
        ends |= {match.start(), match.end(), match.end() + 1}
    return sorted(end for end in ends if 0 <= end <= len(data))


def tails(safe: bytes, data: bytes) -> set[bytes]:
    """What a file may hold of which ``safe`` was synced and ``data`` was not."""
    garbage = b"\xa5" * SECTOR
    found: set[bytes] = set()
    for cut in cuts(data):
        kept, lost = safe + data[:cut], data[cut:]
        found |= {kept, kept + bytes(len(lost))}
        found |= {kept + hole[: len(lost)] + lost[SECTOR:] for hole in (garbage, bytes(SECTOR))}
    return found


def changes_of(op: Op, *, split_renames: bool) -> list[Op]:
    """What one operation changes in a directory, as changes that may arrive without each other."""
    if op.what == "rename" and split_renames:
        return [Op("link", op.ino, op.name), Op("unlink", op.ino, op.other)]
    return [op] if op.what in {"create", "link", "unlink", "rename"} else []


def applied(names: dict[str, int], changes: tuple[Op, ...] | list[Op]) -> dict[str, int]:
    result = dict(names)
    for change in changes:
        if change.what == "unlink":
            result.pop(change.name, None)
        else:
            result[change.name] = change.ino
            result.pop(change.other, None)
    return result


def states_after(start: Left, history: list[Op], *, split_renames: bool) -> Iterator[Left]:
    """Everything that a cut after ``history`` may leave."""
    names, pending = dict(start.names), list[Op]()
    safe = dict(start.contents)
    data = dict.fromkeys(safe, b"")  # not synced
    for op in history:
        if op.what == "sync_dir":
            names, pending = applied(names, pending), []
        elif op.what == "sync":
            safe[op.ino] += data[op.ino]
            data[op.ino] = b""
        elif op.what == "write":
            data[op.ino] += op.data
        if op.what == "create":
            safe[op.ino] = data[op.ino] = b""
        pending += changes_of(op, split_renames=split_renames)
    for size in range(len(pending) + 1):
        for subset in itertools.combinations(pending, size):
            reached = applied(names, subset)
            inodes = sorted(set(reached.values()))
            for contents in itertools.product(*(sorted(tails(safe[ino], data[ino])) for ino in inodes)):
                yield Left(reached, dict(zip(inodes, contents, strict=True)))


def cut_anywhere(disk: Disk, *, split_renames: bool = True) -> Iterator[tuple[Left, int, bool]]:
    """Every different state that a cut after any operation may leave, with what the program had been promised."""
    seen: set[object] = set()
    for end in range(len(disk.history) + 1):
        promised = [ack for ack in disk.acks if ack.at <= end]
        frames = max((ack.frames for ack in promised), default=0)
        published = any(ack.published for ack in promised)
        for left in states_after(disk.start, disk.history[:end], split_renames=split_renames):
            key = left.key(), frames, published
            if key not in seen:
                seen.add(key)
                yield left, frames, published
