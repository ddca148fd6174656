"""The disk says no: at every operation of a whole session, once and from then on, in every way that disks say it.

Whatever fails, the program is told, no tool runs after it, what was acknowledged is kept, and a cassette is whole or
not there.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest

import toolcassette as tc
from tests.durability import programs
from tests.durability.checker import Rule, found_on, recovered
from tests.durability.disk import Disk, Left, cut_anywhere
from tests.durability.programs import FILE, PARTIAL, PATH, record

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = 3
SHORT = -1  # in the place of an errno: a write takes only a part


class FaultyDisk(Disk):
    """Fails at the operation number ``at``: once, or ``on`` from then. ``only``: just operations of this name count."""

    def __init__(self, at: int, how: int, *, on: bool = False, only: str = "", start: Left | None = None) -> None:
        self._at, self._how, self._on, self._only = at, how, on, only
        self._count_lock = threading.Lock()
        self.calls: list[str] = []
        self.failed = 0
        super().__init__(start)

    def __getattribute__(self, name):
        real = super().__getattribute__(name)
        if name.startswith("_") or name not in OPERATIONS:
            return real

        def call(*args, **options):
            with self._count_lock:
                self.calls.append(name)
                number = (self.calls.count(self._only) if self._only == name else len(self.calls)) - 1
                due = (not self._only or self._only == name) and (
                    number == self._at or (self._on and number > self._at)
                )
                self.failed += due
            if not due:
                return real(*args, **options)
            if self._how == SHORT:
                return real(args[0], args[1][: len(args[1]) // 2])
            if name.startswith("close"):  # the descriptor is gone all the same
                real(*args, **options)
            raise OSError(self._how, "injected", "/secret")

        return call


OPERATIONS = {name for name, thing in vars(tc.FileStore()._ops.__class__).items() if callable(thing) and name[0] != "_"}
OPERATIONS -= {"sleep", "random_hex"}


class Agent:
    """Calls its tool again and again, and swallows what it raises, as agents do."""

    def __init__(self, disk: FaultyDisk) -> None:
        self.disk = disk
        self.events: list[tuple[str, int]] = []
        self.errors: list[Exception] = []
        self.verdict: tc.Verdict | None = None

    def refused(self, n: int, error: Exception) -> None:
        self.events.append(("error", n))
        self.errors.append(error)

    def run(self, **options) -> None:
        def fetch(n: int) -> str:
            self.disk.acknowledge("start", n)
            self.events.append(("body", n))
            return f"result {n}"

        tool = tc.Registry().wrap(fetch, name="fetch")
        recorder = programs.session(self.disk, **options)
        try:
            with recorder:
                for n in range(CALLS):
                    try:
                        tool(n)
                        self.disk.acknowledge("result", n)
                    except tc.CassetteError as error:
                        self.refused(n, error)
        except tc.CassetteError as error:
            self.refused(CALLS, error)
        self.verdict = recorder.verdict

    def run_tasks(self, **options) -> None:
        async def fetch(n: int) -> str:
            self.disk.acknowledge("start", n)
            self.events.append(("body", n))
            await asyncio.sleep(0)
            return f"result {n}"

        tool = tc.Registry().wrap(fetch, name="fetch")
        recorder = programs.session(self.disk, **options)

        async def one(n: int) -> None:
            try:
                await tool(n)
                self.disk.acknowledge("result", n)
            except tc.CassetteError as error:
                self.refused(n, error)

        async def main() -> None:
            try:
                async with recorder:
                    await asyncio.gather(*map(one, range(CALLS)))
                    await one(CALLS)
            except tc.CassetteError as error:
                self.refused(CALLS + 1, error)

        asyncio.run(main())
        self.verdict = recorder.verdict


def check(agent: Agent, old: bytes | None = None) -> None:
    """What must hold of a session on a disk that failed."""
    disk, left = agent.disk, agent.disk.left()
    for error in agent.errors:
        assert isinstance(error, tc.StoreError) or (isinstance(error, tc.FormatError) and error.reason == "unreadable")
        assert "secret" not in str(error)
    kinds = [kind for kind, _ in agent.events]
    if "error" in kinds:
        assert "body" not in kinds[kinds.index("error") :], "a body ran after the failure"
        assert agent.verdict is None or not agent.verdict.ok
    began = any(op.what == "create" for op in disk.history)
    written = tuple(disk.lines()) if began else ()
    assert b'"outcome":"error"' not in b"".join(written), "an error of ours was recorded as the tool's"
    formal = left.read(FILE)
    if formal not in {None, old}:
        assert tc.verify(PATH, deep=True, store=tc.FileStore(Disk(left))).ok
    frames = max((ack.frames for ack in disk.acks), default=0)
    assert not found_on(left, Rule(written, old=old), frames, published=not agent.errors)
    assert left.read(PARTIAL) is None or agent.errors
    after = Disk(left)
    recovered(after)
    assert not found_on(after.left(), Rule(written, old=old), frames, published=not agent.errors)


def sweep(how: int, *, on: bool, tasks: bool, replace: bool = False) -> set[str]:
    """One session for each operation that can fail. Returns the steps that the errors named."""
    start = Left({}, {})
    if replace:
        record(disk := Disk(), 1)
        start = disk.left()
    steps: set[str] = set()
    for at in itertools.count():
        disk = FaultyDisk(at, how, on=on, only="write" if how == SHORT else "", start=start)
        agent = Agent(disk)
        (agent.run_tasks if tasks else agent.run)(replace=replace)
        if not disk.failed:
            assert agent.verdict is not None
            assert agent.verdict.outcome == "published"
            return steps
        check(agent, start.read(FILE))
        steps |= {error.step for error in agent.errors if isinstance(error, tc.StoreError)}
    raise AssertionError


HOW = {"ENOSPC": errno.ENOSPC, "EFBIG": errno.EFBIG, "EIO": errno.EIO, "EDQUOT": errno.EDQUOT, "short": SHORT}


@pytest.mark.parametrize("tasks", [False, True], ids=["plain", "asyncio"])
@pytest.mark.parametrize("on", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("how", HOW)
def test_a_fault_at_every_operation(how, on, tasks):
    steps = sweep(HOW[how], on=on, tasks=tasks)
    assert "write to the partial" in steps
    assert how == "short" or {"create the partial", "sync the partial", "publish the cassette"} <= steps


@pytest.mark.parametrize("on", [False, True], ids=["once", "from then on"])
def test_a_fault_at_every_operation_of_a_re_recording(on):
    assert {"replace the cassette", "write to the partial"} <= sweep(errno.EIO, on=on, tasks=False, replace=True)


def test_a_cut_after_a_fault():
    """The program was told of the fault; what it had been promised before still survives any cut."""
    for at in itertools.count():
        disk = FaultyDisk(at, errno.EIO)
        agent = Agent(disk)
        agent.run()
        if not disk.failed:
            break
        written = tuple(disk.lines()) if any(op.what == "create" for op in disk.history) else ()
        for left, frames, _ in cut_anywhere(disk):
            assert not found_on(left, Rule(written), frames, published=False)
    assert at > 20


@pytest.mark.parametrize("tasks", [False, True], ids=["plain", "asyncio"])
@pytest.mark.parametrize("sync", ["fdatasync", "fsync", "fsync_dir"])
def test_a_sync_that_failed_is_never_tried_again(sync, tasks):
    """A second try may say yes after the data was lost."""
    for at in itertools.count():
        disk = FaultyDisk(at, errno.EIO, only=sync)
        agent = Agent(disk)
        (agent.run_tasks if tasks else agent.run)()
        if not disk.failed:
            break
        assert agent.errors
        made = [name for name in disk.calls if name in {"fdatasync", "fsync", "fsync_dir"}]
        failed = [i for i, name in enumerate(made) if name == sync][at]
        assert made[failed + 1 :] == [], "something was synced after a sync had failed"
        check(agent)
    assert at >= {"fdatasync": 2, "fsync": 1, "fsync_dir": 3}[sync]  # each of them failed once


def test_a_directory_that_cannot_be_synced_is_said_and_no_failure():
    disk = FaultyDisk(0, errno.EINVAL, on=True, only="fsync_dir")
    agent = Agent(disk)
    agent.run()
    assert not agent.errors
    assert agent.verdict is not None
    assert agent.verdict.outcome == "published"
    assert any("director" in note for note in agent.verdict.notes)
    assert set(disk.left().names) == {FILE}


@pytest.mark.parametrize("tasks", [False, True], ids=["plain", "asyncio"])
def test_no_body_runs_after_a_failure_that_came_while_its_start_was_synced(tasks):
    """Its own frames are safe; but another call has failed meanwhile, and nothing after that can be published."""
    disk = MeanwhileDisk()
    bodies: list[int] = []
    agent = tc.Registry()

    def fetch(n: object) -> None:
        bodies.append(1)

    async def afetch(n: object) -> None:
        bodies.append(1)

    tool: Any = agent.wrap(afetch if tasks else fetch, name="fetch")
    bad = agent.wrap(lambda n: n, name="fetch_too")

    def fail() -> None:
        with pytest.raises(tc.UnrecordableValue):
            bad(object())

    async def main() -> None:
        async with tc.record(PATH, ["fetch*"], store=tc.FileStore(disk)):
            disk.meanwhile = fail
            await tool(1)

    with pytest.raises(tc.UnrecordableValue):
        if tasks:
            asyncio.run(main())
        else:
            with tc.record(PATH, ["fetch*"], store=tc.FileStore(disk)):
                disk.meanwhile = fail
                tool(1)
    assert bodies == []
    assert set(disk.left().names) == {PARTIAL}


class MeanwhileDisk(Disk):
    """Lets something happen on another thread while it syncs a frame."""

    meanwhile: Callable[[], object] = staticmethod(int)

    def fdatasync(self, fd: int) -> None:
        act, self.meanwhile = self.meanwhile, int
        thread = threading.Thread(target=act)
        thread.start()
        thread.join()
        super().fdatasync(fd)
