"""The durable protocol under faults: what the operating system may answer, and what is left in the directory then."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.stores.conftest import CASSETTE_ID, HEADER, FaultyOps
from toolcassette.errors import CassetteExists, StoreError
from toolcassette.stores import Directory, FileOps, FileStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcassette.stores import Spool

REFUSALS = ["EPERM", "EACCES", "ENOTSUP", "EOPNOTSUPP", "EMLINK", "EXDEV", "ENOSYS", "EINVAL"]
WAYS = ["link_fd", "link", "rename_noreplace"]


def create(ops: FileOps, folder: Path, **options: bool) -> Spool:
    return FileStore(ops).create(f"{folder}/x", cassette_id=CASSETTE_ID, **options)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def clean_failure(folder: Path) -> Iterator[pytest.ExceptionInfo[StoreError]]:
    with pytest.raises(StoreError) as caught:
        yield caught
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    for secret in (str(folder), folder.name, "secret", "injected"):
        assert secret not in str(caught.value)


# -- the order of things -----------------------------------------------------------------------------------------


def test_the_calls_of_one_recording_in_order(tmp_path):
    ops = FaultyOps()
    spool = create(ops, tmp_path)
    spool.append(b"header\n")
    spool.sync()
    spool.append(b"frame\n")
    spool.append(b"frame\n")
    spool.sync()
    spool.publish()
    spool.keep()
    assert ops.effects() == [
        *("open_dir", "create", "lock"),
        *("write", "fdatasync", "fsync_dir", "fsync"),  # fsync_dir is itself an fsync of the directory's descriptor
        *("write", "write", "fdatasync"),
        *("fsync", "link_fd", "fsync_dir", "fsync", "unlink", "fsync_dir", "fsync"),
    ]
    assert files(tmp_path) == {"x": b"header\nframe\nframe\n"}


def test_the_calls_of_a_swap_in_order(tmp_path):
    (tmp_path / "x").write_bytes(b"old\n")
    ops = FaultyOps()
    spool = create(ops, tmp_path, replace=True)
    spool.append(b"new\n")
    spool.swap()
    assert ops.effects() == ["open_dir", "create", "lock", "write", "fsync", "rename", "fsync_dir", "fsync"]
    assert files(tmp_path) == {"x": b"new\n"}


# -- every call may fail -----------------------------------------------------------------------------------------


def record(ops: FaultyOps, folder: Path, *, replace: bool) -> None:
    """One whole recording, as its owner would drive it."""
    spool = create(ops, folder, replace=replace)
    try:
        spool.append(b"header\n")
        spool.sync()
        spool.append(b"complete\n")
        spool.sync()
        if replace:
            spool.swap()
        else:
            spool.publish()
    except StoreError:
        calls = len(ops.log)
        for act in (lambda: spool.append(b"more\n"), spool.sync, spool.publish, spool.swap, spool.discard):
            with pytest.raises(StoreError):
                act()
        assert len(ops.log) == calls, "a failed spool went on"
        raise
    finally:
        spool.keep()


def failure_of(ops: FaultyOps, folder: Path, *, replace: bool) -> StoreError | None:
    try:
        record(ops, folder, replace=replace)
    except StoreError as error:
        return error
    return None


@pytest.mark.parametrize("fail_on", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("replace", [False, True], ids=["publish", "swap"])
def test_an_error_at_every_call(tmp_path, replace, fail_on):
    complete, before = b"header\ncomplete\n", descriptors()
    steps = set()
    for n in range(1000):
        folder = tmp_path / f"at-{n}"
        folder.mkdir()
        if replace:
            (folder / "x").write_bytes(b"old\n")
        ops = FaultyOps()
        ops.fail_at, ops.fail_on = n, fail_on
        failure = failure_of(ops, folder, replace=replace)
        if failure is None:
            assert files(folder) == {"x": complete}
        else:
            assert failure.errno_name == "EIO"
            assert str(folder) not in str(failure)
            assert "secret" not in str(failure)
            steps.add(failure.step)
        left = files(folder)
        assert left.get("x") in ({b"old\n", complete} if replace else {None, complete})
        if left.get("x") != complete and "fdatasync" in ops.log[:n]:
            assert left["x.partial"].startswith(b"header\n"), "acknowledged, and lost"
        assert descriptors() == before, f"a descriptor was lost at call {n}: {ops.log[n]}"
        if n >= len(ops.log):
            break
    else:
        pytest.fail("the sweep did not come to the end of a recording")
    assert {"create the partial", "write to the partial", "sync the partial"} < steps


def test_a_failed_sync_is_never_tried_again(tmp_path):
    ops = FaultyOps()
    spool = create(ops, tmp_path)
    spool.append(b"header\n")
    spool.sync()
    spool.append(b"frame\n")
    ops.faults["fdatasync"] = errno.EIO
    with clean_failure(tmp_path) as caught:
        spool.sync()
    assert (caught.value.step, caught.value.errno_name) == ("sync the partial", "EIO")
    ops.faults.clear()  # a second try would "succeed"
    done = ops.effects()
    for act in (spool.sync, spool.publish, lambda: spool.append(b"more\n")):
        with clean_failure(tmp_path) as caught:
            act()
        assert (caught.value.step, caught.value.errno_name) == ("sync the partial", "EIO")
    spool.keep()
    assert ops.effects() == done
    assert files(tmp_path) == {"x.partial": b"header\nframe\n"}


def test_an_interrupt_fails_the_spool(tmp_path):
    class Interrupted(FileOps):
        def fdatasync(self, fd: int) -> None:
            raise KeyboardInterrupt

    spool = create(Interrupted(), tmp_path)
    spool.append(b"header\n")
    with pytest.raises(KeyboardInterrupt):
        spool.sync()
    with clean_failure(tmp_path) as caught:
        spool.publish()
    assert caught.value.step == "sync the partial"
    spool.keep()
    assert files(tmp_path) == {"x.partial": b"header\n"}


def test_a_short_write_is_an_error(tmp_path):
    class Short(FileOps):
        def write(self, fd: int, data: bytes | memoryview) -> int:
            return super().write(fd, data[:4])

    spool = create(Short(), tmp_path)
    with clean_failure(tmp_path) as caught:
        spool.append(b"header\n")
    assert (caught.value.step, caught.value.errno_name) == ("write to the partial", None)
    with clean_failure(tmp_path):
        spool.append(b"er\n")
    with clean_failure(tmp_path):
        spool.publish()
    spool.keep()
    assert files(tmp_path) == {"x.partial": b"head"}


def test_large_data_is_written_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("toolcassette.stores.durable.WRITE_BYTES_MAX", 4)
    ops = FaultyOps()
    spool = create(ops, tmp_path)
    spool.append(b"0123456789")
    spool.append(b"abcd")
    assert ops.log.count("write") == 4
    spool.publish()
    assert files(tmp_path) == {"x": b"0123456789abcd"}


def test_a_partial_that_others_wrote_to_is_not_published(tmp_path):
    spool = create(FileOps(), tmp_path)
    spool.append(b"frame\n")
    with Path(tmp_path, "x.partial").open("ab") as other:
        other.write(b"foreign\n")
    with clean_failure(tmp_path) as caught:
        spool.publish()
    assert "another program" in str(caught.value)
    spool.keep()
    assert set(files(tmp_path)) == {"x.partial"}


# -- directories that cannot be synced ---------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_directory_that_cannot_be_synced_is_noted(tmp_path, number):
    spool = create(FaultyOps(fsync_dir=number), tmp_path)
    spool.append(b"a\n")
    spool.sync()
    spool.publish()
    assert files(tmp_path) == {"x": b"a\n"}
    assert len(spool.notes) == 1
    assert "directory" in spool.notes[0]


def test_a_directory_sync_that_fails_is_a_failure(tmp_path):
    ops = FaultyOps(fsync_dir=errno.EIO)
    spool = create(ops, tmp_path)
    spool.append(b"a\n")
    with clean_failure(tmp_path):
        spool.sync()
    with clean_failure(tmp_path):
        spool.publish()
    assert ops.log.count("fsync_dir") == 1
    spool.keep()
    assert files(tmp_path) == {"x.partial": b"a\n"}


def test_a_partial_stays_until_the_name_is_durable(tmp_path):
    ops = FaultyOps()
    spool = create(ops, tmp_path)
    spool.append(b"a\n")
    spool.sync()
    ops.faults["fsync_dir"] = errno.EIO
    with clean_failure(tmp_path):
        spool.publish()
    spool.keep()
    assert files(tmp_path) == {"x": b"a\n", "x.partial": b"a\n"}
    FileStore().adopt(f"{tmp_path}/x").publish()  # both names are one file: what is left to do is done
    assert files(tmp_path) == {"x": b"a\n"}


def test_a_partial_that_cannot_be_removed_is_told_apart(tmp_path):
    spool = create(FaultyOps(unlink=errno.EACCES), tmp_path)
    spool.append(b"a\n")
    with clean_failure(tmp_path) as caught:
        spool.publish()
    assert caught.value.step == "remove the partial"
    spool.keep()
    assert files(tmp_path) == {"x": b"a\n", "x.partial": b"a\n"}


# -- file systems without links, without create-only renames -----------------------------------------------------


@pytest.mark.parametrize("refused", [1, 2, 3])
@pytest.mark.parametrize("name", REFUSALS)
def test_fallbacks_publish(tmp_path, name, refused):
    ops = FaultyOps(**dict.fromkeys(WAYS[:refused], getattr(errno, name)))
    spool = create(ops, tmp_path)
    spool.append(b"a\n")
    spool.publish()
    assert files(tmp_path) == {"x": b"a\n"}
    assert [call for call in ops.log if call in {*WAYS, "rename"}] == [*WAYS, "rename"][: refused + 1]
    assert len(spool.notes) == (refused == 3)  # only then is a promise weaker
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600


@pytest.mark.parametrize("taken", ["file", "empty", "dangling", "link to the partial", "directory"])
@pytest.mark.parametrize("refused", [0, 1, 2, 3])
@pytest.mark.parametrize("name", REFUSALS)
def test_fallbacks_never_overwrite(tmp_path, name, refused, taken):
    ops = FaultyOps(**dict.fromkeys(WAYS[:refused], getattr(errno, name)))
    spool = create(ops, tmp_path)
    spool.append(b"a\n")
    formal = tmp_path / "x"
    match taken:
        case "file":
            formal.write_bytes(b"theirs\n")
        case "empty":
            formal.write_bytes(b"")
        case "dangling":
            formal.symlink_to("nowhere")
        case "link to the partial":
            formal.symlink_to("x.partial")
        case _:
            formal.mkdir()
    before = formal.lstat()
    with pytest.raises(CassetteExists) as caught:
        spool.publish()
    assert caught.value.what == "cassette"
    spool.keep()
    after = formal.lstat()
    assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (before.st_ino, before.st_mode, before.st_mtime_ns)
    assert (tmp_path / "x.partial").read_bytes() == b"a\n"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("refused", [0, 1, 2, 3])
def test_fallbacks_set_aside(tmp_path, refused):
    ops = FaultyOps(**dict.fromkeys(WAYS[:refused], errno.EPERM))
    for n in (1, 2, 3):
        spool = create(ops, tmp_path, set_aside=True)
        spool.append(HEADER + b"%d\n" % n)
        spool.keep()
    aside = f"x.partial.{CASSETTE_ID[:8]}"
    assert files(tmp_path) == {
        aside: HEADER + b"1\n",
        aside + "-2": HEADER + b"2\n",
        "x.partial": HEADER + b"3\n",
    }


@pytest.mark.parametrize("way", ["link_fd", "link", "rename_noreplace"])
def test_an_unknown_error_of_one_way_tries_no_other(tmp_path, way):
    faults = dict.fromkeys(WAYS[: WAYS.index(way)], errno.EPERM)
    ops = FaultyOps(**faults, **{way: errno.ENOSPC})
    spool = create(ops, tmp_path)
    spool.append(b"a\n")
    with clean_failure(tmp_path) as caught:
        spool.publish()
    assert caught.value.errno_name == "ENOSPC"
    assert [call for call in ops.log if call in WAYS][-1] == way
    spool.keep()
    assert files(tmp_path) == {"x.partial": b"a\n"}


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EXDEV])
def test_a_placeholder_is_taken_back_when_the_rename_fails(tmp_path, number):
    spool = create(FaultyOps(**dict.fromkeys(WAYS, errno.EPERM), rename=number), tmp_path)
    spool.append(b"a\n")
    with clean_failure(tmp_path) as caught:
        spool.publish()
    assert caught.value.errno_name == errno.errorcode[number]
    spool.keep()
    assert files(tmp_path) == {"x.partial": b"a\n"}


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EXDEV])
def test_a_swap_that_is_refused_leaves_both(tmp_path, number):
    (tmp_path / "x").write_bytes(b"old\n")
    spool = create(FaultyOps(rename=number), tmp_path, replace=True)
    spool.append(b"new\n")
    with clean_failure(tmp_path):
        spool.swap()
    spool.keep()
    assert files(tmp_path) == {"x": b"old\n", "x.partial": b"new\n"}


def test_a_link_that_was_done_but_answered_eexist(tmp_path):
    class Repeating(FileOps):
        def link_fd(self, directory: Directory, fd: int, name: str) -> None:
            super().link_fd(directory, fd, name)
            raise FileExistsError(errno.EEXIST, "the answer was lost, the request repeated")

    spool = create(Repeating(), tmp_path)
    spool.append(b"a\n")
    spool.publish()
    assert files(tmp_path) == {"x": b"a\n"}


# -- somebody else in the directory ------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["publish", "discard"])
def test_a_swapped_partial_is_neither_published_nor_deleted(tmp_path, end):
    spool = create(FileOps(), tmp_path)
    spool.append(b"ours\n")
    (tmp_path / "x.partial").rename(tmp_path / "moved")
    (tmp_path / "x.partial").write_bytes(b"theirs\n")
    getattr(spool, end)()
    left = {"x.partial": b"theirs\n", "moved": b"ours\n"}
    assert files(tmp_path) == (left | {"x": b"ours\n"} if end == "publish" else left)


@pytest.mark.parametrize("refused", [1, 2, 3])
def test_a_swapped_partial_is_not_published_by_name_either(tmp_path, refused):
    spool = create(FaultyOps(**dict.fromkeys(WAYS[:refused], errno.EPERM)), tmp_path)
    spool.append(b"ours\n")
    (tmp_path / "x.partial").rename(tmp_path / "moved")
    (tmp_path / "x.partial").write_bytes(b"theirs\n")
    with clean_failure(tmp_path):
        spool.publish()
    spool.keep()
    assert files(tmp_path) == {"x.partial": b"theirs\n", "moved": b"ours\n"}


@pytest.mark.parametrize("way", ["link", "rename_noreplace", "rename"])
def test_a_partial_that_is_swapped_at_the_last_moment_is_not_called_published(tmp_path, way):
    class Swapped(FaultyOps):
        def __getattribute__(self, name: str) -> object:
            if name == way:
                (tmp_path / "x.partial").rename(tmp_path / "moved")
                (tmp_path / "x.partial").write_bytes(b"theirs\n")
            return super().__getattribute__(name)

    ways = [*WAYS, "rename"]
    spool = create(Swapped(**dict.fromkeys(ways[: ways.index(way)], errno.EPERM)), tmp_path)
    spool.append(b"ours\n")
    with clean_failure(tmp_path) as caught:
        spool.publish()
    assert "swapped" in str(caught.value)
    spool.keep()
    assert (tmp_path / "moved").read_bytes() == b"ours\n"


def test_a_deleted_partial_cannot_be_published(tmp_path):
    spool = create(FileOps(), tmp_path)
    spool.append(b"ours\n")
    (tmp_path / "x.partial").unlink()
    with clean_failure(tmp_path) as caught:
        spool.publish()
    assert "moved or deleted" in str(caught.value)
    spool.keep()
    assert files(tmp_path) == {}


def test_a_swapped_partial_does_not_replace_the_old_cassette(tmp_path):
    (tmp_path / "x").write_bytes(b"old\n")
    spool = create(FileOps(), tmp_path, replace=True)
    spool.append(b"ours\n")
    (tmp_path / "x.partial").unlink()
    (tmp_path / "x.partial").write_bytes(b"theirs\n")
    with clean_failure(tmp_path):
        spool.swap()
    spool.keep()
    assert files(tmp_path) == {"x": b"old\n", "x.partial": b"theirs\n"}


def test_an_old_cassette_that_was_rewritten_is_not_replaced(tmp_path):
    formal = tmp_path / "x"
    formal.write_bytes(b"old\n")
    spool = create(FileOps(), tmp_path, replace=True)
    spool.append(b"new\n")
    formal.write_bytes(b"somebody edited it\n")  # the same inode
    with pytest.raises(CassetteExists):
        spool.swap()
    spool.keep()
    assert files(tmp_path) == {"x": b"somebody edited it\n", "x.partial": b"new\n"}


@pytest.mark.parametrize("end", ["publish", "swap", "discard"])
def test_a_recording_follows_its_directory(tmp_path, end):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "keep").write_bytes(b"")
    spool = create(FileOps(), folder, replace=True)
    spool.append(b"ours\n")
    folder.rename(tmp_path / "b")
    folder.mkdir()
    (folder / "x.partial").write_bytes(b"theirs\n")
    getattr(spool, end)()
    assert files(folder) == {"x.partial": b"theirs\n"}
    assert files(tmp_path / "b") == {"keep": b""} | ({} if end == "discard" else {"x": b"ours\n"})


# -- locks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP])
def test_without_locks_a_partial_counts_as_live_for_recorders_only(tmp_path, number):
    store = FileStore(FaultyOps(lock=number))
    spool = store.create(f"{tmp_path}/x", cassette_id=CASSETTE_ID)
    spool.append(b"a\n")
    assert "locks" in spool.notes[0]
    spool.keep()
    with pytest.raises(CassetteExists) as caught:
        store.create(f"{tmp_path}/x", cassette_id=CASSETTE_ID, set_aside=True)
    assert caught.value.what == "live_partial"
    with store.open(f"{tmp_path}/x.partial") as source:
        assert not source.live
    store.adopt(f"{tmp_path}/x").publish()
    assert files(tmp_path) == {"x": b"a\n"}


def test_a_recorder_waits_for_whoever_only_looks(tmp_path):
    class Looked(FileOps):
        looks = 3

        def lock(self, fd: int, *, shared: bool) -> bool:
            if not shared and self.looks:
                self.looks -= 1
                return False
            return super().lock(fd, shared=shared)

    spool = create(Looked(), tmp_path)
    with FileStore().open(f"{tmp_path}/x.partial") as source:
        assert source.live
    spool.keep()


def test_a_lock_that_never_comes_leaves_nothing(tmp_path):
    class Held(FileOps):
        def lock(self, fd: int, *, shared: bool) -> bool:
            return False

        def sleep(self, seconds: float) -> None:
            assert seconds <= 1

    with clean_failure(tmp_path) as caught:
        create(Held(), tmp_path)
    assert caught.value.step == "lock the partial"
    assert files(tmp_path) == {}


def test_a_new_partial_is_not_taken_for_one_left_behind(tmp_path):
    other = os.open(tmp_path / "x.partial", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    class Slow(FileOps):
        def sleep(self, seconds: float) -> None:  # in this moment the other recorder comes to lock its new partial
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    with pytest.raises(CassetteExists) as caught:
        create(Slow(), tmp_path, set_aside=True)
    assert caught.value.what == "live_partial"
    os.close(other)
    assert files(tmp_path) == {"x.partial": b""}


def test_a_new_partial_that_was_set_aside_before_it_was_locked(tmp_path):
    class Robbed(FileOps):
        def lock(self, fd: int, *, shared: bool) -> bool:
            (tmp_path / "x.partial").rename(tmp_path / "aside")
            (tmp_path / "x.partial").write_bytes(b"theirs\n")
            return super().lock(fd, shared=shared)

    with pytest.raises(CassetteExists) as caught:
        create(Robbed(), tmp_path)
    assert caught.value.what == "live_partial"
    assert files(tmp_path) == {"aside": b"", "x.partial": b"theirs\n"}


def test_a_stale_partial_that_another_recorder_set_aside_first(tmp_path):
    other: list[Spool] = []

    class Slow(FileOps):
        def lock(self, fd: int, *, shared: bool) -> bool:
            if not shared and not other:
                other.append(create(FileOps(), tmp_path, set_aside=True))
                other[0].append(b"theirs\n")
            return super().lock(fd, shared=shared)

    (tmp_path / "x.partial").write_bytes(HEADER)
    with pytest.raises(CassetteExists) as caught:
        create(Slow(), tmp_path, set_aside=True)
    assert caught.value.what == "live_partial"
    assert files(tmp_path) == {"x.partial": b"theirs\n", f"x.partial.{CASSETTE_ID[:8]}": HEADER}
    other[0].keep()


def test_a_recorder_that_begins_while_somebody_looks_is_live(tmp_path):
    other = os.open(tmp_path / "x.partial", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    class Slow(FileOps):
        def unlock(self, fd: int) -> None:  # the look found no lock; before it ends, the recorder locks and writes
            super().unlock(fd)
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(other, HEADER)

        def sleep(self, seconds: float) -> None:
            assert seconds <= 1

    with pytest.raises(CassetteExists) as caught:
        create(Slow(), tmp_path)
    os.close(other)
    assert caught.value.what == "live_partial"


def test_a_partial_is_never_opened_through_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"precious\n")
    (tmp_path / "x.partial").symlink_to("real")
    ops = FileOps()
    directory = ops.open_dir(str(tmp_path))
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        ops.open_partial(directory, "x.partial")
    ops.close_dir(directory)


def test_a_cassette_is_named_before_its_stale_partial_and_nothing_is_made(tmp_path):
    (tmp_path / "x").write_bytes(b"theirs\n")
    ops = FaultyOps()
    with pytest.raises(CassetteExists):
        create(ops, tmp_path)
    assert ops.effects() == ["open_dir"]
    (tmp_path / "x.partial").write_bytes(b"")
    with pytest.raises(CassetteExists) as caught:
        create(ops, tmp_path)
    assert caught.value.what == "cassette"


# -- other operating systems -------------------------------------------------------------------------------------


class WindowsLike(FileOps):
    """No directory descriptors, no renames or deletes of open files, a rename that refuses an existing target."""

    renames_open_files = False

    def open_dir(self, path: str) -> Directory:
        return Directory(path, None)

    def _closed(self, directory: Directory, name: str) -> None:
        held = {entry.readlink() for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()}
        if Path(directory.at(name)) in held:
            raise PermissionError(errno.EACCES, "the file is open")

    def rename_noreplace(self, directory: Directory, source: str, name: str) -> None:
        self._closed(directory, source)
        if os.path.lexists(directory.at(name)):
            raise FileExistsError(errno.EEXIST, "it exists")
        Path(directory.at(source)).rename(directory.at(name))

    def rename(self, directory: Directory, source: str, name: str) -> None:
        self._closed(directory, source)
        super().rename(directory, source, name)

    def unlink(self, directory: Directory, name: str) -> None:
        self._closed(directory, name)
        super().unlink(directory, name)


def test_windows_publish_swap_discard_set_aside(tmp_path):
    ops = WindowsLike()
    spool = create(ops, tmp_path)
    spool.append(b"one\n")
    spool.sync()
    spool.publish()
    assert files(tmp_path) == {"x": b"one\n"}
    assert len(spool.notes) == 1
    spool = create(ops, tmp_path, replace=True)
    spool.append(b"two\n")
    spool.swap()
    assert files(tmp_path) == {"x": b"two\n"}
    spool = create(ops, tmp_path, replace=True)
    spool.discard()
    assert files(tmp_path) == {"x": b"two\n"}
    for n in (1, 2, 3):
        spool = create(ops, tmp_path, replace=True, set_aside=True)
        spool.append(HEADER + b"%d\n" % n)
        spool.keep()
    aside = f"x.partial.{CASSETTE_ID[:8]}"
    assert set(files(tmp_path)) == {"x", "x.partial", aside, aside + "-2"}


def test_windows_never_overwrites(tmp_path):
    spool = create(WindowsLike(), tmp_path)
    spool.append(b"a\n")
    (tmp_path / "x").write_bytes(b"theirs\n")
    with pytest.raises(CassetteExists):
        spool.publish()
    spool.keep()
    assert files(tmp_path) == {"x": b"theirs\n", "x.partial": b"a\n"}


class BusyError(PermissionError):
    def __init__(self, code: int) -> None:
        super().__init__(errno.EACCES, "held by a virus scanner")
        self.winerror = code


@pytest.mark.parametrize(("code", "held", "tries"), [(5, 3, 4), (32, 6, 7), (33, 1, 2), (32, 99, 7), (17, 99, 1)])
def test_a_busy_file_is_waited_for_on_windows_alone(tmp_path, monkeypatch, code, held, tries):
    real, calls, waited = os.replace, [], []

    def replace(*args, **options):
        calls.append(args)
        if len(calls) <= held:
            raise BusyError(code)
        real(*args, **options)

    class Waiting(FileOps):
        def sleep(self, seconds: float) -> None:
            waited.append(seconds)

    (tmp_path / "x").write_bytes(b"old\n")
    spool = create(Waiting(), tmp_path, replace=True)
    spool.append(b"new\n")
    monkeypatch.setattr(os, "replace", replace)
    if held > tries:
        with clean_failure(tmp_path):
            spool.swap()
        assert (tmp_path / "x").read_bytes() == b"old\n"
    else:
        spool.swap()
        assert files(tmp_path) == {"x": b"new\n"}
    spool.keep()
    assert len(calls) == tries
    assert sum(waited) < 1


def test_eacces_elsewhere_is_not_waited_for(tmp_path, monkeypatch):
    calls = []

    def replace(*args, **options):
        calls.append(args)
        raise PermissionError(errno.EACCES, "no")

    (tmp_path / "x").write_bytes(b"old\n")
    spool = create(FileOps(), tmp_path, replace=True)
    monkeypatch.setattr(os, "replace", replace)
    with clean_failure(tmp_path):
        spool.swap()
    spool.keep()
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("answer", "plain"), [(None, False), (errno.ENOTSUP, True), (errno.EINVAL, True), (errno.EIO, None)]
)
def test_a_full_sync_falls_back_only_where_there_is_none(tmp_path, monkeypatch, answer, plain):
    commands: list[int] = []
    plain_calls: list[int] = []
    ops = FileOps()
    ops.full_sync_command = 51

    def control(fd, command):
        commands.append(command)
        if answer is not None:
            raise OSError(answer, "injected")

    monkeypatch.setattr(fcntl, "fcntl", control)
    monkeypatch.setattr(os, "fsync", plain_calls.append)
    if plain is None:
        with pytest.raises(OSError, match="injected"):
            ops.fsync(7)
    else:
        ops.fsync(7)
    assert commands == [51]
    assert plain_calls == ([7] if plain else [])


def test_rename_noreplace_is_real_here(tmp_path):
    ops = FileOps()
    directory = ops.open_dir(str(tmp_path))
    try:
        (tmp_path / "a").write_bytes(b"a")
        (tmp_path / "b").write_bytes(b"b")
        with pytest.raises(FileExistsError):
            ops.rename_noreplace(directory, "a", "b")
        with pytest.raises(FileNotFoundError):
            ops.rename_noreplace(directory, "none", "c")
        ops.rename_noreplace(directory, "a", "c")
    finally:
        ops.close_dir(directory)
    assert files(tmp_path) == {"b": b"b", "c": b"a"}
