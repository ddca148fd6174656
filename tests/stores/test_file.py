"""The file store among other processes, links, rights and odd files."""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.stores.conftest import CASSETTE_ID, HEADER, FaultyOps
from toolcassette.errors import CassetteExists, FormatError, StoreError
from toolcassette.stores import FileOps, FileStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcassette.stores import Spool

SOURCE = Path(__file__).resolve().parents[2] / "src"
PROGRAM = f"""
import os, sys
sys.path.insert(0, {str(SOURCE)!r})
from toolcassette.errors import CassetteExists, FormatError, StoreError
from toolcassette.stores import FileStore
ID = {CASSETTE_ID!r}
store = FileStore()
folder = sys.argv[1]
def create(name="x", **options):
    return store.create(folder + "/" + name, cassette_id=ID, **options)
def nobody():
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
"""


def program(body: str, folder: Path, *, wait: bool = True) -> subprocess.Popen[str]:
    """A Python process that runs ``body``; waited for, it must end well."""
    command = [sys.executable, "-c", PROGRAM + textwrap.dedent(body), str(folder)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    if wait:
        finish(process)
    return process


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    return out


@contextmanager
def running(body: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has said "ready" and goes on until it is killed."""
    process = program(body + "\nprint('ready', flush=True)\nsys.stdin.read()", folder, wait=False)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that a process without rights can reach, too."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def create(folder: Path, name: str = "x", *, replace: bool = False, set_aside: bool = False) -> Spool:
    path = f"{folder}/{name}"
    return FileStore().create(path, cassette_id=CASSETTE_ID, replace=replace, set_aside=set_aside)


def record(folder: Path, data: bytes = b"a\n", name: str = "x") -> None:
    spool = create(folder, name)
    spool.append(data)
    spool.publish()


def reason(path: object) -> str:
    with pytest.raises(FormatError) as caught:
        FileStore().open(str(path))
    assert caught.value.__cause__ is None
    assert str(path) not in str(caught.value)
    return caught.value.reason


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def refused(folder: Path, *, set_aside: bool = False) -> str:
    with pytest.raises(CassetteExists) as caught:
        create(folder, set_aside=set_aside)
    return caught.value.what


# -- other processes ---------------------------------------------------------------------------------------------


def test_live_in_another_process_then_killed_then_adopted(tmp_path):
    body = "spool = create()\nspool.append(b'whole\\n')\nspool.sync()\nspool.append(b'not synced\\n')"
    with running(body, tmp_path) as process:
        assert refused(tmp_path) == "live_partial"
        assert refused(tmp_path, set_aside=True) == "live_partial"
        with pytest.raises(CassetteExists):
            FileStore().adopt(f"{tmp_path}/x")
        with FileStore().open(f"{tmp_path}/x.partial") as source:
            assert source.live
        process.send_signal(signal.SIGKILL)
        process.wait()
        with FileStore().open(f"{tmp_path}/x.partial") as source:
            assert not source.live
        assert refused(tmp_path) == "stale_partial"
    FileStore().adopt(f"{tmp_path}/x").publish()
    assert names(tmp_path) == {"x"}
    assert (tmp_path / "x").read_bytes() == b"whole\nnot synced\n"


def test_exactly_one_of_eight_processes_wins(tmp_path):
    body = """
    print("ready", flush=True)
    sys.stdin.readline()
    for name in ("r0", "r1", "r2", "r3"):
        try:
            spool = create(name)
        except CassetteExists as error:
            print(name, error.what)
            continue
        spool.append(b"%d\\n" % os.getpid())
        spool.sync()
        spool.publish()
        print(name, "won", os.getpid())
    """
    racers = [program(body, tmp_path, wait=False) for _ in range(8)]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    lines = [line.split() for racer in racers for line in finish(racer).splitlines()]
    for name in ("r0", "r1", "r2", "r3"):
        said = [words[1:] for words in lines if words[0] == name]
        winners = [words[1] for words in said if words[0] == "won"]
        assert len(said) == 8
        assert len(winners) == 1
        assert {words[0] for words in said} <= {"won", "cassette", "live_partial"}
        assert (tmp_path / name).read_text().split() == winners
    assert names(tmp_path) == {"r0", "r1", "r2", "r3"}


def test_one_stale_partial_is_set_aside_once_by_many(tmp_path):
    spool = create(tmp_path)
    spool.append(HEADER)
    spool.keep()
    body = """
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        spool = create(set_aside=True)
    except CassetteExists as error:
        print(error.what, flush=True)
    else:
        spool.append(b"mine\\n")
        print("won", flush=True)
    sys.stdin.read()
    """
    racers = [program(body, tmp_path, wait=False) for _ in range(4)]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    said = sorted(racer.stdout.readline().strip() for racer in racers if racer.stdout)
    for racer in racers:
        finish(racer)
    assert said == ["live_partial"] * 3 + ["won"]
    aside = f"x.partial.{CASSETTE_ID[:8]}"
    assert names(tmp_path) == {"x.partial", aside}
    assert (tmp_path / aside).read_bytes() == HEADER
    assert (tmp_path / "x.partial").read_bytes() == b"mine\n"


def test_a_forked_child_forgets(tmp_path):
    program(
        """
        spool = create()
        spool.append(b"before\\n")
        go, gone = os.pipe(), os.pipe()
        if os.fork() == 0:
            spool.forget()
            spool.forget()
            spool.keep()
            for act in (lambda: spool.append(b"child\\n"), spool.sync, spool.publish, spool.swap, spool.discard):
                try:
                    act()
                except RuntimeError:
                    continue
                os._exit(1)
            os.write(gone[1], b"1")
            os.read(go[0], 1)  # goes on living: it must hold no lock
            os._exit(0)
        assert os.read(gone[0], 1) == b"1"
        with store.open(folder + "/x.partial") as source:
            assert source.live
        spool.append(b"after\\n")
        spool.keep()
        with store.open(folder + "/x.partial") as source:
            assert not source.live
        store.adopt(folder + "/x").publish()
        os.write(go[1], b"1")
        assert os.wait()[1] == 0
        """,
        tmp_path,
    )
    assert names(tmp_path) == {"x"}
    assert (tmp_path / "x").read_bytes() == b"before\nafter\n"


def test_a_started_program_holds_nothing(tmp_path):
    spool = create(tmp_path)
    with running("", tmp_path):
        spool.keep()
        FileStore().adopt(f"{tmp_path}/x").keep()


def test_a_full_disk_by_rlimit(tmp_path):
    out = finish(
        program(
            """
            import resource
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
            spool = create()
            spool.append(b"a" * 3000)
            spool.sync()
            for act in (lambda: spool.append(b"b" * 3000), lambda: spool.append(b"c"), spool.sync, spool.publish):
                try:
                    act()
                    print("went through")
                except StoreError as error:
                    print(error.step, error.errno_name)
            spool.keep()
            spool = create("y")
            spool.append(b"a" * 5000)
            try:
                spool.append(b"b")
            except StoreError as error:
                print(error.step, error.errno_name)
            """,
            tmp_path,
            wait=False,
        )
    )
    assert out.splitlines() == ["write to the partial None"] * 4 + ["write to the partial EFBIG"]
    assert (tmp_path / "x.partial").read_bytes() == b"a" * 3000 + b"b" * 2000
    assert names(tmp_path) == {"x.partial", "y.partial"}


def test_a_umask_that_takes_everything(tmp_path):
    program(
        """
        os.umask(0o777)
        spool = create()
        nobody()
        spool.append(b"a\\n")
        """,
        tmp_path,
    )
    assert stat.S_IMODE((tmp_path / "x.partial").stat().st_mode) == 0o600


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_a_cassette_is_for_its_owner_alone(tmp_path, umask):
    before = os.umask(umask)
    try:
        record(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600


# -- rights ------------------------------------------------------------------------------------------------------


def test_reading_needs_no_right_to_write(shared):
    record(shared)
    (shared / "x").chmod(0o444)
    shared.chmod(0o555)
    out = finish(
        program(
            """
            nobody()
            with store.open(folder + "/x") as source:
                print(list(source.blocks()), source.live)
            try:
                create("y")
            except StoreError as error:
                print(error.step, error.errno_name)
            try:
                create("deeper/y")
            except StoreError as error:
                print(error.step, error.errno_name)
            """,
            shared,
            wait=False,
        )
    )
    assert out.splitlines() == ["[b'a\\n'] False", "create the partial EACCES", "create the partial EACCES"]
    assert names(shared) == {"x"}


def test_without_the_right_to_read(shared):
    record(shared)
    (shared / "x").chmod(0o000)
    closed = shared / "closed"
    closed.mkdir()
    record(closed)
    closed.chmod(0o700 if os.geteuid() == 0 else 0o000)
    out = finish(
        program(
            """
            nobody()
            for name in ("/x", "/closed/x"):
                try:
                    store.open(folder + name)
                except FormatError as error:
                    print(error.reason)
                print(store.has_partial(folder + name))
            """,
            shared,
            wait=False,
        )
    )
    closed.chmod(0o700)
    assert out.splitlines() == ["unreadable", "False"] * 2


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's file takes a change of user")
def test_the_partial_of_another_user_is_left_alone(shared):
    spool = create(shared)
    spool.append(HEADER)
    spool.keep()
    shared.chmod(0o1777)
    out = finish(
        program(
            """
            nobody()
            for options in ({}, {"set_aside": True}):
                try:
                    create(**options)
                except CassetteExists as error:
                    print(error.what)
            """,
            shared,
            wait=False,
        )
    )
    assert out.splitlines() == ["live_partial"] * 2
    assert names(shared) == {"x.partial"}


def test_a_directory_open_to_all_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(StoreError) as caught:
        create(tmp_path)
    assert "chmod o-w" in str(caught.value)
    assert names(tmp_path) == set()
    tmp_path.chmod(0o1777)  # with the sticky bit, everybody may add but not take
    record(tmp_path)
    assert names(tmp_path) == {"x"}


# -- links and odd files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["nowhere", "x.real"])
@pytest.mark.parametrize("name", ["x", "x.partial"])
def test_recording_never_follows_a_link(tmp_path, name, target):
    (tmp_path / "x.real").write_bytes(b"precious\n")
    (tmp_path / name).symlink_to(target)
    for set_aside in (False, True):
        assert refused(tmp_path, set_aside=set_aside) == ("cassette" if name == "x" else "stale_partial")
    assert names(tmp_path) == {"x.real", name}
    assert (tmp_path / "x.real").read_bytes() == b"precious\n"
    assert (tmp_path / name).is_symlink()


@pytest.mark.parametrize("set_aside", [False, True])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_never_taken_for_a_partial(tmp_path, make, set_aside):
    make(tmp_path / "x.partial")
    assert refused(tmp_path, set_aside=set_aside) == "stale_partial"
    with pytest.raises(CassetteExists):
        FileStore().adopt(f"{tmp_path}/x")
    assert names(tmp_path) == {"x.partial"}


def test_swap_replaces_a_link_not_what_it_points_to(tmp_path):
    (tmp_path / "real").write_bytes(b"precious\n")
    (tmp_path / "x").symlink_to("real")
    spool = create(tmp_path, replace=True)
    spool.append(b"new\n")
    spool.swap()
    assert (tmp_path / "real").read_bytes() == b"precious\n"
    assert not (tmp_path / "x").is_symlink()
    assert (tmp_path / "x").read_bytes() == b"new\n"


def test_replace_of_what_is_no_file_is_refused_at_once(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(StoreError) as caught:
        create(tmp_path, replace=True)
    assert not isinstance(caught.value, CassetteExists)
    assert names(tmp_path) == {"x"}


def test_reading_follows_links(tmp_path):
    record(tmp_path)
    (tmp_path / "link").symlink_to("x")
    with FileStore().open(f"{tmp_path}/link") as source:
        assert source.read_at(0, 9) == b"a\n"


def test_reading_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "file").write_bytes(b"")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(tmp_path)  # a socket's path has a short limit
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
    assert {path.name: reason(path) for path in tmp_path.iterdir() if path.name != "file"} == {
        "pipe": "not_a_file",
        "folder": "not_a_file",
        "socket": "not_a_file",
        "loop": "unreadable",
        "dangling": "absent",
    }
    assert reason("/dev/null") == "not_a_file"
    assert reason(tmp_path / "file" / "x") == "absent"
    assert reason(tmp_path / ("n" * 300)) == "absent"


def test_a_disk_error_while_reading_is_unreadable(tmp_path):
    record(tmp_path)
    ops = FaultyOps()
    with FileStore(ops).open(f"{tmp_path}/x") as source:
        ops.faults["read"] = errno.EIO
        with pytest.raises(FormatError) as caught:
            list(source.blocks())
    assert caught.value.reason == "unreadable"
    assert "secret" not in str(caught.value)


def test_a_file_that_shrinks_ends_early(tmp_path):
    record(tmp_path, b"0123456789")
    with FileStore().open(f"{tmp_path}/x") as source:
        blocks = source.blocks(4)
        assert next(blocks) == b"0123"
        os.truncate(tmp_path / "x", 6)
        assert list(blocks) == [b"45"]
        assert source.size == 10
        assert source.read_at(8, 2) == b""


def test_reading_in_pieces(tmp_path):
    class Piecemeal(FileOps):
        def read(self, fd: int, length: int, offset: int) -> bytes:
            return super().read(fd, min(length, 3), offset)

    record(tmp_path, b"0123456789")
    with FileStore(Piecemeal()).open(f"{tmp_path}/x") as source:
        assert list(source.blocks(8)) == [b"01234567", b"89"]


# -- names and paths ---------------------------------------------------------------------------------------------


def test_a_relative_path_is_resolved_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spool = FileStore().create("x", cassette_id=CASSETTE_ID)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    spool.append(b"a\n")
    spool.publish()
    assert names(tmp_path) == {"x", "elsewhere"}
    assert names(tmp_path / "elsewhere") == set()
    with FileStore().open("../x") as source:
        monkeypatch.chdir(tmp_path)
        assert source.read_at(0, 2) == b"a\n"
    assert FileStore().has_partial("x") is False


def test_dots_go_where_the_system_says(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    record(tmp_path / "link" / "..")
    assert names(tmp_path / "a") == {"b", "x"}


def test_missing_directories_are_made_durably_and_not_open_to_all(tmp_path):
    ops = FaultyOps()
    before = os.umask(0)
    try:
        spool = FileStore(ops).create(f"{tmp_path}/a/b//c/x", cassette_id=CASSETTE_ID)
    finally:
        os.umask(before)
    spool.publish()
    assert names(tmp_path / "a" / "b" / "c") == {"x"}
    assert not (tmp_path / "a" / "b" / "c").stat().st_mode & stat.S_IWOTH
    made = [call for call in ops.log[: ops.log.index("create")] if call in {"mkdir", "fsync_dir"}]
    assert made == ["mkdir", "fsync_dir"] * 3


def test_a_file_in_the_place_of_a_directory(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(StoreError) as caught:
        create(tmp_path / "a")
    assert caught.value.errno_name == "ENOTDIR"
    with pytest.raises(FormatError) as absent:
        FileStore().adopt(f"{tmp_path}/a/x")
    assert absent.value.reason == "absent"
    assert not FileStore().has_partial(f"{tmp_path}/a/x")


def test_a_name_that_is_too_long(tmp_path):
    with pytest.raises(StoreError) as caught:
        create(tmp_path, "n" * 250)  # with its suffix too long for one component
    assert caught.value.errno_name == "ENAMETOOLONG"
    assert "nnn" not in str(caught.value)
    assert names(tmp_path) == set()


# -- setting aside -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no id\n",
        b'{"cassette":"0123"}\n',
        b'{"cassette":"' + CASSETTE_ID.upper().encode() + b'"}\n',
        b"first line\n" + HEADER,  # an id counts in the first line alone
        b" " * 5000 + HEADER,
    ],
)
def test_a_partial_without_an_id_gets_a_random_name(tmp_path, content):
    (tmp_path / "x.partial").write_bytes(content)
    record_aside = create(tmp_path, set_aside=True)
    record_aside.publish()
    (aside,) = names(tmp_path) - {"x"}
    assert aside != f"x.partial.{CASSETTE_ID[:8]}"
    assert len(aside) == len("x.partial.01234567")
    assert (tmp_path / aside).read_bytes() == content


def test_a_dangling_link_in_the_way_of_setting_aside(tmp_path):
    aside = f"x.partial.{CASSETTE_ID[:8]}"
    (tmp_path / "x.partial").write_bytes(HEADER)
    (tmp_path / aside).symlink_to("nowhere")
    create(tmp_path, set_aside=True).publish()
    assert names(tmp_path) == {"x", aside, aside + "-2"}
    assert (tmp_path / aside).is_symlink()


def test_too_many_set_aside(tmp_path):
    aside = f"x.partial.{CASSETTE_ID[:8]}"
    for name in [aside, *(f"{aside}-{n}" for n in range(2, 1000))]:
        (tmp_path / name).touch()
    (tmp_path / "x.partial").write_bytes(HEADER)
    with pytest.raises(StoreError) as caught:
        create(tmp_path, set_aside=True)
    assert caught.value.step == "set the stale partial aside"
    assert (tmp_path / "x.partial").read_bytes() == HEADER
