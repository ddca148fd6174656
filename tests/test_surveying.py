"""Many jobs find what one finds, in bounded memory, and a cassette that is not held is read as it was verified."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

import toolcassette as tc
from toolcassette import surveying
from toolcassette.engine import publication
from toolcassette.format import RecordedOutcome, Writer, write_cassette
from toolcassette.stores import FileStore
from toolcassette.verify import verify_all

SRC = Path(__file__).resolve().parent.parent / "src"
WRITTEN = {"cassette": "0" * 32, "created": "2026-01-02T03:04:05.678901Z", "producer": "tests"}
SMALL = tc.RecordedCall("t", b'{"n":1}', value=b'"v"')
LARGE = tc.RecordedCall("t", b"{}", value=tc.canonical_json("x" * 400_000))
STREAM = tc.RecordedCall("s", b"{}", chunks=(b"1", b'"two"'))


@pytest.fixture
def eager(monkeypatch):
    """Workers for the smallest file."""
    monkeypatch.setattr(importlib.import_module("toolcassette.verify"), "SIDE_BY_SIDE_BYTES", 0)


@pytest.fixture
def lazy(monkeypatch):
    """Only an index of the smallest file is held."""
    monkeypatch.setattr(publication, "HELD_BYTES", 0)


def damages():
    calls = [SMALL, STREAM, LARGE] * 3 + [SMALL] * 1000
    whole = write_cassette(calls, **WRITTEN)
    lines = whole.splitlines(keepends=True)
    middle = len(lines) // 2
    flipped = lines[middle].replace(b'"v"', b'"w"').replace(b'"n":1', b'"n":2')
    long = next(n for n, line in enumerate(lines) if len(line) > 100_000)
    return {
        "whole": whole,
        "hash": b"".join([*lines[:middle], flipped, *lines[middle + 1 :]]),
        "large": b"".join([*lines[:long], lines[long].replace(b"xx", b"xy", 1), *lines[long + 1 :]]),
        "link": b"".join(lines[:middle] + lines[middle + 1 :]),
        "both": b"".join([*lines[: middle - 9], *lines[middle - 8 : middle], flipped, *lines[middle + 1 :]]),
        "torn": whole[:-700],
        "zeros": whole[:-5000] + bytes(5000),
        "more": whole + lines[-1],
        "none": b"",
    }


DAMAGES = damages()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", DAMAGES)
def test_jobs_make_no_difference(tmp_path, name):
    file = tmp_path / "a.cassette.jsonl"
    file.write_bytes(DAMAGES[name])
    for deep in (False, True):
        alone = tc.verify(file, deep=deep)
        assert alone.ok is (name == "whole")
        for jobs in (2, 3) if name in {"whole", "both"} else (2,):
            assert tc.verify(file, deep=deep, jobs=jobs) == alone


@pytest.mark.usefixtures("eager")
def test_many_files_keep_their_order(tmp_path):
    files = []
    for name, data in DAMAGES.items():
        (tmp_path / name).write_bytes(data)
        files.append((str(tmp_path / name), FileStore()))
    files.append((str(tmp_path / "absent"), FileStore()))
    assert verify_all(files, jobs=2) == [tc.verify(path) for path, _ in files]


@pytest.fixture
def answers(monkeypatch):
    """What workers answered, None where one did not."""
    kept = []
    survey = surveying._Worker.survey

    def ask(*args, **options):
        kept.append(survey(*args, **options))
        return kept[-1]

    monkeypatch.setattr(surveying._Worker, "survey", ask)
    return kept


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("deep", [False, True])
def test_workers_answer(tmp_path, answers, deep):
    """Where none did, the same would be found, and slowly."""
    file = tmp_path / "a.cassette.jsonl"
    file.write_bytes(DAMAGES["whole"])
    assert tc.verify(file, deep=deep, jobs=2).ok
    assert answers
    assert not any(answer is None for answer in answers)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("worker", ["import sys; sys.exit(3)", "print('no answer at all, but long enough')"])
def test_a_worker_that_dies_changes_nothing(tmp_path, monkeypatch, answers, worker):
    monkeypatch.setattr(surveying, "_WORKER", worker)
    file = tmp_path / "a.cassette.jsonl"
    for name in ("whole", "hash"):
        file.write_bytes(DAMAGES[name])
        assert tc.verify(file, jobs=2) == tc.verify(file)
    assert answers
    assert all(answer is None for answer in answers)


@pytest.mark.usefixtures("eager")
def test_workers_do_not_run_the_callers_program(tmp_path):
    """A script without a guard around its main part can verify with workers."""
    (tmp_path / "a.cassette.jsonl").write_bytes(DAMAGES["whole"])
    program = (
        "import importlib, toolcassette as tc\n"
        "importlib.import_module('toolcassette.verify').SIDE_BY_SIDE_BYTES = 0\n"
        "print('once', tc.verify('a.cassette.jsonl', jobs=2).ok)\n"
    )
    (tmp_path / "program.py").write_text(program, "utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "once True\n"
    assert done.stderr == ""


def test_negative_jobs_are_misuse(tmp_path):
    with pytest.raises(ValueError, match="jobs"):
        tc.verify(tmp_path / "a", jobs=-1)


def test_progress_is_told_in_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("toolcassette.verify"), "_PROGRESS_SECONDS", 0.0)
    file = tmp_path / "a.cassette.jsonl"
    file.write_bytes(DAMAGES["whole"])
    told = []
    assert tc.verify(file, progress=lambda done, size: told.append((done, size))).ok
    size = file.stat().st_size
    assert len(told) > 3
    assert told == sorted(told)
    assert told[-1] == (size, size)


def _write(file, calls, value):
    """Line by line: this test's own memory is nobody's business, but the machine's."""
    writer = Writer()
    args, answer = b'{"n":1}', RecordedOutcome("ok", value=tc.canonical_json("v" * value))
    with file.open("wb") as stream:
        stream.write(writer.header(**WRITTEN, include=["t"], order="strict", sync="none"))
        for number in range(calls):
            stream.write(writer.start(tool="t", args=args, at=0))
            stream.write(writer.result(number, answer))
        stream.write(writer.complete())


_PEAK = """
import resource, sys, toolcassette as tc
jobs = int(sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = tc.verify(sys.argv[1], jobs=jobs)
print(report.ok, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in KiB on Linux only")
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("calls", "value"), [(20, 3_000_000), (70_000, 300)], ids=["large", "small"])
def test_memory_is_bounded_by_frames_and_not_by_the_file(tmp_path, calls, value, jobs):
    """At most four of the largest frames and 32 MiB."""
    file = tmp_path / "a.cassette.jsonl"
    _write(file, calls, value)
    assert file.stat().st_size > 50_000_000
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(file), str(jobs)],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=True,
    )
    ok, peak = done.stdout.split()
    assert ok == "True"
    assert int(peak) <= 4 * (value + 400) + 32 * 2**20


# Cassettes that are not held


def program(tool):
    return [tool(n) for n in range(20)]


def recorded(file, order="strict"):
    tool = tc.Registry().wrap(lambda n: {"n": n}, name="t")
    with tc.record(file, ["t"], sync="none", order=order):
        program(tool)
    return tool


@pytest.mark.usefixtures("lazy")
def test_what_is_read_on_use_is_what_was_written(tmp_path):
    file = tmp_path / "a.cassette.jsonl"
    calls = [SMALL, STREAM, LARGE, SMALL._replace(path=("p",), outcome="cancelled", value=None)] * 3
    file.write_bytes(write_cassette(calls, **WRITTEN))
    held = tc.parse_cassette(file.read_bytes())
    read = tc.read_cassette(file)
    assert list(read) == list(held) == calls
    assert read.content() == held.content()
    assert read.paths == held.paths
    assert read.tools == held.tools == {"t", "s"}
    assert [read.place(n) for n in range(len(read))] == [held.place(n) for n in range(len(held))]
    read.close()
    with pytest.raises(RuntimeError):
        read.call(5)


def open_files():
    """How many descriptors are open; 0 where the system does not tell."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


@pytest.mark.usefixtures("lazy")
@pytest.mark.parametrize("order", ["strict", "causal", "any"])
def test_a_replay_reads_on_use_and_lets_go(tmp_path, order):
    file = tmp_path / "a.cassette.jsonl"
    tool = recorded(file, order)
    before = open_files()
    with tc.replay(file) as session:
        assert program(tool) == [{"n": n} for n in range(20)]
        assert open_files() == before + bool(before)
    assert session.verdict is not None
    assert session.verdict.outcome == "consumed"
    assert open_files() == before


@pytest.mark.usefixtures("lazy")
@pytest.mark.parametrize("what", ["arguments", "value", "cut", "other"])
def test_a_file_that_changes_under_a_replay_is_noticed(tmp_path, what):
    """Also where the change has right hashes of its own: the digest was kept since the verification."""
    file = tmp_path / "a.cassette.jsonl"
    tool = recorded(file)
    data = file.read_bytes()
    other = write_cassette([tc.RecordedCall("t", b'{"n":%d}' % n, value=b'{"n":0}') for n in range(20)], **WRITTEN)
    changed = {
        "arguments": data.replace(b'"args":{"n":7}', b'"args":{"n":8}'),
        "value": data.replace(b'"value":{"n":7}', b'"value":{"n":8}'),
        "cut": data[: data.index(b'"args":{"n":7}')],
        "other": other,
    }[what]
    with pytest.raises(tc.CassetteMismatch, match="changed while it was replayed"), tc.replay(file):
        file.write_bytes(changed)
        with pytest.raises(tc.FormatError) as caught:
            program(tool)
        assert caught.value.reason == "hash"
        with pytest.raises(tc.CassettePoisoned):
            tool(0)


@pytest.mark.usefixtures("lazy")
def test_a_chunk_and_a_content_that_changed_are_noticed(tmp_path):
    file = tmp_path / "a.cassette.jsonl"
    data = write_cassette([STREAM, SMALL], **WRITTEN)
    file.write_bytes(data)
    cassette = tc.read_cassette(file)
    file.write_bytes(data.replace(b'"two"', b'"owt"'))
    assert cassette.chunk(0, 0) == b"1"
    for use in (lambda: cassette.chunk(0, 1), cassette.content):
        with pytest.raises(tc.FormatError) as caught:
            use()
        assert caught.value.reason == "hash"


def test_a_small_cassette_is_held(tmp_path):
    file = tmp_path / "a.cassette.jsonl"
    tool = recorded(file)
    with tc.replay(file):
        file.write_bytes(b"")
        assert program(tool) == [{"n": n} for n in range(20)]


@pytest.mark.usefixtures("lazy")
def test_the_index_of_a_cassette_that_is_read_is_small(tmp_path):
    file = tmp_path / "a.cassette.jsonl"
    file.write_bytes(write_cassette([SMALL] * 5000, **WRITTEN))
    tc.read_cassette(file)
    tracemalloc.start()
    cassette = tc.read_cassette(file)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(cassette) == 5000
    assert kept <= 56 * 5000
