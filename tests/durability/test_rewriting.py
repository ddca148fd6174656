"""A recording that is written anew at its end: after any cut and any fault the old lines are there, or the new ones."""

from __future__ import annotations

import errno
import itertools

import pytest

import toolcassette as tc
from tests.durability.disk import Ack, Disk, cut_anywhere, states_after
from tests.durability.programs import FILE, PARTIAL, PATH, SECRET, record_late
from tests.durability.test_faults import SHORT, FaultyDisk
from toolcassette.errors import StoreError

ID = "0123456789abcdef" * 2
OLD = [b"header\n", b"one\n", b"two\n"]
NEW = [b"header\n", b"ONE\n", b"TWO, and longer\n"]
STATES_MIN = 20


def rewrite(disk: Disk) -> None:
    """A spool whose old lines are all durable is written anew, and kept."""
    spool = tc.FileStore(disk).create(PATH, cassette_id=ID)
    try:
        for line in OLD:
            spool.append(line)
        spool.sync()
        disk.acks.append(disk_now(disk))
        spool.rewrite(NEW)
    finally:
        spool.keep()


def disk_now(disk: Disk) -> Ack:
    return Ack(len(disk.history), len(OLD), published=False)


def wrong_states(disk: Disk) -> tuple[int, list[bytes | None]]:
    """Of the states that a cut may leave once the old lines are durable: how many, and which hold neither."""
    states = [left for left, frames, _ in cut_anywhere(disk) if frames]
    whole = {b"".join(OLD), b"".join(NEW)}
    return len(states), [left.read(PARTIAL) for left in states if left.read(PARTIAL) not in whole]


def test_a_cut_leaves_the_old_lines_or_the_new_ones():
    disk = Disk()
    rewrite(disk)
    count, wrong = wrong_states(disk)
    assert not wrong
    assert count > STATES_MIN
    assert disk.left().read(PARTIAL) == b"".join(NEW)
    assert list(disk.left().names) == [PARTIAL]


class RenameBeforeSync(Disk):
    def fsync(self, fd):
        pass


class WrittenInPlace(Disk):
    def create(self, directory, name):
        if name == PARTIAL:
            return super().create(directory, name)
        self.inodes[self.names[PARTIAL]].data.clear()
        return super().create(directory, name)

    def rename(self, directory, source, name):
        super().unlink(directory, name)
        super().rename(directory, source, name)


@pytest.mark.parametrize("ops", [RenameBeforeSync, WrittenInPlace])
def test_a_seeded_bug_is_caught(ops):
    disk = ops()
    rewrite(disk)
    assert wrong_states(disk)[1]


@pytest.mark.parametrize("on", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("how", [errno.ENOSPC, errno.EIO, SHORT])
def test_a_fault_at_every_operation(how, on):
    """What was there stays, unless the new lines took its place already; nothing goes on afterwards."""
    steps: set[str] = set()
    for at in itertools.count():
        disk = FaultyDisk(at, how, on=on, only="write" if how == SHORT else "")
        try:
            rewrite(disk)
        except StoreError as error:
            steps.add(error.step)
        else:
            if not disk.failed:
                break
            continue
        left = disk.left()
        if disk.acks:
            assert left.read(PARTIAL) in {b"".join(OLD), b"".join(NEW)}
    assert "rewrite the partial" in steps or how == SHORT


@pytest.mark.parametrize("sync", ["frame", "call", "close", "none"])
def test_a_recorder_that_learned_late_survives_a_cut_anywhere(sync):
    disk = Disk()
    assert record_late(disk, sync).outcome == "published"
    published = disk.left().read(FILE)
    assert published is not None
    assert SECRET.encode() not in published
    formal = [(left.read(FILE), done) for left, _, done in cut_anywhere(disk)]
    assert {data for data, _ in formal} == {None, published}
    assert {data for data, done in formal if done} == {published}
    assert len(formal) > STATES_MIN


def test_the_partial_of_such_a_recorder_is_old_or_new():
    disk = Disk()
    record_late(disk)
    published = lines(disk.left().read(FILE))
    first, second = (op.ino for op in disk.history if op.what == "create")
    old = lines(b"".join(op.data for op in disk.history if op.ino == first))
    assert SECRET.encode() in b"".join(old)
    renamed = next(at for at, op in enumerate(disk.history) if op.what == "rename" and op.ino == second)
    seen = set()
    for end in range(renamed, len(disk.history) + 1):
        for left in states_after(disk.start, disk.history[:end], split_renames=True):
            if left.read(FILE) is None:
                found = lines(left.read(PARTIAL))[: len(old)]
                assert found in (old, published[: len(old)])
                seen.add(found == old)
    assert seen == {True, False}


def lines(data: bytes | None) -> list[bytes]:
    return (data or b"").splitlines(keepends=True)


def test_a_fault_anywhere_never_publishes_the_secret():
    told: list[str] = []
    for at in itertools.count():
        disk = FaultyDisk(at, errno.ENOSPC)
        try:
            record_late(disk)
        except tc.CassetteError as error:
            told.append(str(error))
        formal = disk.left().read(FILE)
        assert formal is None or SECRET.encode() not in formal
        if not disk.failed:
            assert formal
            break
    assert told
    assert SECRET not in "".join(told)
