"""Cut the power after every operation of a recording, look at everything that may be left, and recover it.

And the proof of the proof: protocols with one thing left out, each of which must be caught.
"""

from __future__ import annotations

import errno
from typing import Any

import pytest

import toolcassette as tc
from tests.durability import programs
from tests.durability.checker import Rule, faults_of
from tests.durability.disk import Disk, Left, Op, cut_anywhere, cuts, states_after, tails
from tests.durability.programs import FILE, PARTIAL, record, record_stream, record_tasks, record_threads

STATES_MIN = 50  # an enumerator that finds fewer has gone blind


def rule_of(disk: Disk, **options: Any) -> Rule:
    return Rule(tuple(disk.lines()), **options)


def an_old_cassette() -> Left:
    disk = Disk()
    record(disk, 1)
    return disk.left()


# -- the protocol as it is ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", ["frame", "call", "close", "none"])
def test_a_recording_survives_a_cut_anywhere(sync):
    disk = Disk()
    assert record(disk, sync=sync).outcome == "published"
    count, wrong = faults_of(disk, rule_of(disk))
    assert not wrong
    assert count > STATES_MIN


@pytest.mark.parametrize("program", [record_tasks, record_threads])
def test_calls_that_overlap_survive_a_cut_anywhere(program):
    disk = Disk()
    assert program(disk).outcome == "published"
    count, wrong = faults_of(disk, rule_of(disk))
    assert not wrong
    assert count > STATES_MIN


def test_a_stream_survives_a_cut_anywhere():
    disk = Disk()
    assert record_stream(disk).outcome == "published"
    count, wrong = faults_of(disk, rule_of(disk))
    assert not wrong
    assert count > STATES_MIN


def test_a_re_recording_never_loses_the_old_cassette():
    start = an_old_cassette()
    disk = Disk(start)
    assert record(disk, 2, replace=True).outcome == "published"
    # One rename over another file is one step on every file system that has it: old or new, never neither.
    count, wrong = faults_of(disk, rule_of(disk, old=start.read(FILE), split_renames=False))
    assert not wrong
    assert count > STATES_MIN


def test_a_re_recording_that_says_the_same_leaves_the_old_one():
    start = an_old_cassette()
    disk = Disk(start)
    assert record(disk, 1, replace=True).outcome == "unchanged"
    _, wrong = faults_of(disk, rule_of(disk, old=start.read(FILE), split_renames=False, same=True))
    assert not wrong
    assert disk.left() == start


class WithoutLinks(Disk):
    """FAT and its like: a create-only rename, atomic as there is no other."""

    def link_fd(self, directory, fd, name):
        raise OSError(errno.EPERM, "no links here")

    def link(self, directory, source, name):
        raise OSError(errno.EPERM, "no links here")


class PlaceholdersOnly(WithoutLinks):
    def rename_noreplace(self, directory, source, name):
        raise OSError(errno.ENOSYS, "nor this")


@pytest.mark.parametrize(("ops", "placeholder"), [(WithoutLinks, False), (PlaceholdersOnly, True)])
def test_where_there_are_no_links(ops, placeholder):
    disk = ops()
    verdict = record(disk, 2)
    assert verdict.outcome == "published"
    assert any("placeholder" in note or "empty" in note for note in verdict.notes) is placeholder
    count, wrong = faults_of(disk, rule_of(disk, split_renames=False, placeholder=placeholder), ops=ops)
    assert not wrong
    assert count > STATES_MIN


def test_a_recording_that_is_kept_is_on_the_disk_when_its_session_ends():
    """``close`` means the end of the session, also where nothing is published; ``none`` promises nothing at all."""
    lost = {}
    for sync in ("frame", "call", "close", "none"):
        disk = Disk()
        with pytest.raises(KeyError):
            interrupted(disk, sync)
        whole = b"".join(disk.lines())
        left = states_after(Left({}, {}), disk.history, split_renames=True)
        lost[sync] = any(state.read(PARTIAL) != whole for state in left)
    assert lost == {"frame": False, "call": False, "close": False, "none": True}


def interrupted(disk, sync):
    tool = tc.Registry().wrap(lambda n: n, name="fetch")
    with programs.session(disk, sync):
        tool(1)
        raise KeyError("the agent failed")


# -- protocols with one thing left out ---------------------------------------------------------------------------


class NoDirSyncAfterCreate(Disk):
    """The name of the partial is not made durable before the first frame is acknowledged."""

    skipped = 0

    def fsync_dir(self, directory):
        if self.skipped < 1:
            self.skipped += 1
        else:
            super().fsync_dir(directory)


class AckBeforeSync(Disk):
    """A sync answers at once and happens later."""

    def fdatasync(self, fd):
        self.late = Op("sync", self._descriptors[fd])

    def write(self, fd, data):
        if late := self.__dict__.pop("late", None):
            self.history.append(late)
        return super().write(fd, data)


class NoFrameSync(Disk):
    """Frames are not synced one by one."""

    def fdatasync(self, fd):
        pass


class PublishBeforeSync(Disk):
    """The last frame is not synced before the formal name is given."""

    def fsync(self, fd):
        pass


class UnlinkBeforeDirSync(Disk):
    """The partial's name is taken away before the formal one is durable."""

    def link_fd(self, directory, fd, name):
        super().link_fd(directory, fd, name)
        self.skip = True

    def fsync_dir(self, directory):
        if not self.__dict__.pop("skip", False):
            super().fsync_dir(directory)


class RenameOnly(WithoutLinks):
    """A rename where a link would do: its two halves may arrive without each other."""


class NoDirSyncAtTheEnd(Disk):
    """Published is said before the names are durable."""

    def fsync_dir(self, directory):
        if FILE not in self.names:
            super().fsync_dir(directory)


class PublishAtTheStart(Disk):
    """The formal name is there from the beginning."""

    def create(self, directory, name):
        fd = super().create(directory, name)
        super().link_fd(directory, fd, FILE)
        return fd

    def lstat(self, directory, name):
        linked = any(op.what == "sync_dir" for op in self.history)
        return None if name == FILE and not linked else super().lstat(directory, name)


class SwapByUnlink(Disk):
    """A re-recording takes the old cassette away, and then puts the new one in its place."""

    def rename(self, directory, source, name):
        if name in self.names:
            super().unlink(directory, name)
        super().rename(directory, source, name)


class SwapWithoutSync(Disk):
    """A re-recording is swapped in before it is on the disk."""

    def fdatasync(self, fd):
        if b'"complete"' not in self.inodes[self._descriptors[fd]].data:
            super().fdatasync(fd)

    def fsync(self, fd):
        pass


LOST = "an acknowledged frame is lost"
TORN = "the formal file is there and not whole"
GONE = "published, and not there"


@pytest.mark.parametrize(
    ("ops", "caught"),
    [
        (NoDirSyncAfterCreate, LOST),
        (AckBeforeSync, LOST),
        (NoFrameSync, LOST),
        (PublishBeforeSync, TORN),
        (UnlinkBeforeDirSync, LOST),
        (RenameOnly, LOST),
        (NoDirSyncAtTheEnd, GONE),
        (PublishAtTheStart, TORN),
    ],
)
def test_a_seeded_bug_is_caught(ops, caught):
    disk = ops()
    record(disk, 2)
    _, wrong = faults_of(disk, rule_of(disk), stop=True)
    assert caught in wrong


@pytest.mark.parametrize(("ops", "caught"), [(SwapByUnlink, "the old cassette is gone"), (SwapWithoutSync, TORN)])
def test_a_seeded_bug_in_a_re_recording_is_caught(ops, caught):
    start = an_old_cassette()
    disk = ops(start)
    record(disk, 2, replace=True)
    _, wrong = faults_of(disk, rule_of(disk, old=start.read(FILE), split_renames=False), stop=True)
    assert caught in wrong


@pytest.mark.parametrize(("ops", "caught"), [(UnlinkBeforeDirSync, LOST), (RenameOnly, LOST)])
def test_a_seeded_bug_in_recover_is_caught(ops, caught):
    disk = Disk()
    record(disk, 1)
    _, wrong = faults_of(disk, rule_of(disk), ops=ops, stop=True)
    assert f"cut while recovering: {caught}" in wrong


# -- the model itself --------------------------------------------------------------------------------------------


def test_what_is_not_synced_may_end_anywhere():
    assert cuts(b"ab\ncd\n") == [0, 1, 2, 3, 4, 5, 6]
    left = tails(b"SAFE", b"ab\n")
    assert {b"SAFE", b"SAFEa", b"SAFEab\n", b"SAFEa\0\0", b"SAFE\0\0\0"} <= left
    assert tails(b"SAFE", b"") == {b"SAFE"}
    assert any(data.startswith(b"\xa5" * 512) and data.endswith(b"y") for data in tails(b"", b"x" * 600 + b"y"))


def test_any_subset_of_the_names_may_arrive():
    history = [Op("create", 1, "a"), Op("link", 1, "b"), Op("unlink", 1, "a")]
    names = [frozenset(left.names) for left in states_after(Left({}, {}), history, split_renames=True)]
    assert set(names) == {frozenset(), frozenset("a"), frozenset("b"), frozenset("ab")}
    history.insert(1, Op("sync_dir"))
    names = [frozenset(left.names) for left in states_after(Left({}, {}), history, split_renames=True)]
    assert set(names) == {frozenset("a"), frozenset("b"), frozenset("ab"), frozenset()}


def test_a_rename_arrives_in_halves_or_at_once():
    history = [Op("rename", 1, "b", "a")]
    start = Left({"a": 1, "b": 2}, {1: b"new", 2: b"old"})

    def seen(*, split_renames):
        return {(left.read("a"), left.read("b")) for left in states_after(start, history, split_renames=split_renames)}

    assert seen(split_renames=False) == {(b"new", b"old"), (None, b"new")}
    assert seen(split_renames=True) == {(b"new", b"old"), (None, b"new"), (b"new", b"new"), (None, b"old")}


def test_a_promise_holds_from_its_moment_on():
    disk = Disk()
    record(disk, 1)
    promised = {frames for _, frames, _ in cut_anywhere(disk)}
    assert promised == {0, 2, 3, 4}
    assert {published for *_, published in cut_anywhere(disk)} == {False, True}
