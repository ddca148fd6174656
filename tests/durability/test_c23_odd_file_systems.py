"""C-23: file systems without links, without a create-only rename, without directory sync, and full ones."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import toolcassette as tc
from toolcassette.stores import Directory, FileOps, FileStore

REFUSALS = ["EPERM", "EACCES", "ENOTSUP", "EOPNOTSUPP", "EMLINK", "EXDEV", "ENOSYS"]
REPOSITORY = Path(__file__).resolve().parents[2]


class NoCreateOnlyRename(FileOps):
    def rename_noreplace(self, directory: Directory, source: str, name: str) -> None:
        raise OSError(errno.EINVAL, "not here")


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def tool():
    return tc.Registry().wrap(lambda n: f"result {n}", name="fetch")


def record(folder: Path, ops: FileOps | None = None, **options: object) -> tc.Verdict:
    fetch = tool()
    with tc.record(folder / "x.cassette.jsonl", ["fetch"], store=FileStore(ops), **options) as recorder:
        fetch(0)
    assert recorder.verdict is not None
    return recorder.verdict


def refuse(monkeypatch: pytest.MonkeyPatch, name: str, error: str, when=lambda *args: True) -> None:
    real = getattr(os, name)

    def call(*args, **options):
        if when(*args):
            raise OSError(getattr(errno, error), "injected")
        return real(*args, **options)

    monkeypatch.setattr(os, name, call)


@pytest.mark.parametrize("ops", [FileOps, NoCreateOnlyRename])
@pytest.mark.parametrize("error", REFUSALS)
def test_c23_without_links_it_is_published_all_the_same(tmp_path, monkeypatch, error, ops):
    refuse(monkeypatch, "link", error)
    verdict = record(tmp_path, ops())
    assert verdict.outcome == "published"
    assert bool(verdict.notes) is (ops is NoCreateOnlyRename), "a weaker promise is said"
    assert files(tmp_path) == ["x.cassette.jsonl"]
    assert tc.verify(tmp_path / "x.cassette.jsonl", deep=True).ok


@pytest.mark.parametrize("ops", [FileOps, NoCreateOnlyRename])
@pytest.mark.parametrize("error", REFUSALS)
def test_c23_without_links_nothing_is_overwritten(tmp_path, monkeypatch, error, ops):
    refuse(monkeypatch, "link", error)
    fetch = tool()
    with pytest.raises(tc.CassetteExists) as caught:
        with tc.record(tmp_path / "x.cassette.jsonl", ["fetch"], store=FileStore(ops())):
            fetch(0)
            (tmp_path / "x.cassette.jsonl").write_bytes(b"somebody else's")
    assert caught.value.what == "cassette"
    assert (tmp_path / "x.cassette.jsonl").read_bytes() == b"somebody else's"
    assert tc.verify(tmp_path / "x.cassette.jsonl.partial").frames == 4


@pytest.mark.parametrize("error", ["EBUSY", "EXDEV", "EIO"])
def test_c23_a_rename_that_fails_leaves_the_partial_and_no_empty_file(tmp_path, monkeypatch, error):
    refuse(monkeypatch, "link", "EPERM")
    refuse(monkeypatch, "replace", error)
    refuse(monkeypatch, "rename", error)
    with pytest.raises(tc.StoreError) as caught:
        record(tmp_path, NoCreateOnlyRename())
    assert caught.value.errno_name == error
    assert files(tmp_path) == ["x.cassette.jsonl.partial"]
    monkeypatch.undo()
    assert tc.recover(tmp_path / "x.cassette.jsonl.partial").done == "published"


@pytest.mark.parametrize("error", ["EINVAL", "ENOTSUP"])
def test_c23_a_directory_that_cannot_be_synced(tmp_path, monkeypatch, error):
    refuse(monkeypatch, "fsync", error, when=lambda fd: Path(f"/proc/self/fd/{fd}").is_dir())
    verdict = record(tmp_path)
    assert verdict.outcome == "published"
    assert len(verdict.notes) == 1
    assert files(tmp_path) == ["x.cassette.jsonl"]


@pytest.mark.parametrize("at", range(4))
def test_c23_a_disk_that_is_full_at_the_nth_write(tmp_path, monkeypatch, at):
    writes = iter(range(100))
    refuse(monkeypatch, "write", "ENOSPC", when=lambda *args: next(writes) >= at)
    with pytest.raises(tc.StoreError) as caught:
        record(tmp_path)
    assert caught.value.errno_name == "ENOSPC"
    assert files(tmp_path) == ["x.cassette.jsonl.partial"]
    monkeypatch.undo()
    assert tc.verify(tmp_path / "x.cassette.jsonl.partial").frames == at


FILE_SIZE_LIMIT = """
import resource, sys
import toolcassette as tc

@tc.cassette_tool
def fetch(n):
    bodies.append(n)
    return "x" * 9000

bodies, told = [], []
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    with tc.record("x.cassette.jsonl", ["fetch"]):
        for n in range(6):
            try:
                fetch(n)
            except tc.StoreError as error:
                told.append(error.errno_name)
except tc.StoreError:
    print(bodies, told)
"""


def test_c23_a_file_that_may_not_grow_further(tmp_path):
    """For real, by the system's own limit: a short write comes first."""
    done = subprocess.run(
        [sys.executable, "-c", FILE_SIZE_LIMIT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[0, 1, 2] [None, None, None, None]\n", done.stderr
    assert files(tmp_path) == ["x.cassette.jsonl.partial"]
    saved = tc.recover(tmp_path / "x.cassette.jsonl.partial", salvage=tmp_path / "new.cassette.jsonl")
    assert (saved.calls, saved.lost) == (2, 1)
