"""A cassette's state as data: each state and defect, and one answer from verify, inspect, read_cassette and replay."""

from __future__ import annotations

import dataclasses
import errno
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import toolcassette as tc
from tests.engine.doubles import resealed
from tests.stores.conftest import FaultyOps

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "x"


@tc.cassette_tool(name="echo")
def echo(value: object) -> object:
    return value


def _recorded() -> bytes:
    store = tc.MemoryStore()
    with tc.record(NAME, ["echo"], store=store):
        echo([1, "two"])
        echo(None)
    with store.open(NAME) as source:
        return b"".join(source.blocks())


DATA = _recorded()
LINES = DATA.splitlines(keepends=True)
STARTS = [sum(map(len, LINES[:n])) for n in range(len(LINES))]  # offset of each line


def line_of(offset: int) -> int:
    return max(n for n, start in enumerate(STARTS) if start <= offset)


def store_of(data: bytes, name: str = NAME) -> tc.MemoryStore:
    store = tc.MemoryStore()
    spool = store.create(name, cassette_id="0" * 32)
    spool.append(data)
    spool.publish()
    return store


def refused(data: bytes, *, everybody: bool = True, deep: bool = False) -> tc.Report:
    """The report on damaged bytes, after checking that every reader says the same (unless there are too many)."""
    store = store_of(data)
    report = tc.verify(NAME, deep=deep, store=store)
    assert not report.ok
    assert report.reason is not None
    readers: list[Callable[[], object]] = [
        lambda: tc.read_cassette(NAME, store=store),
        lambda: tc.inspect(NAME, store=store),
        tc.replay(NAME, store=store).__enter__,
    ]
    for read in readers if everybody else []:
        with pytest.raises(tc.FormatError) as caught:
            read()
        assert (caught.value.reason, caught.value.frame) == (report.reason, report.frame)
        assert caught.value.exit_status == report.exit_status
    return report


# -- whole ------------------------------------------------------------------------------------------------------------


def test_a_whole_cassette(tmp_path):
    file = tmp_path / "x.cassette.jsonl"
    file.write_bytes(DATA)
    report = tc.verify(file)
    assert tc.verify(file, deep=True) == report
    same = dataclasses.replace(report, head=None, cassette=None)
    assert same == tc.Report(path=str(file), state="complete", frames=6, calls=2)
    assert report.ok
    assert (report.exit_status, report.message) == (0, "intact, unsigned")
    cassette = tc.read_cassette(file)
    assert cassette.head == report.head == DATA[-67:-3].decode()
    assert cassette.header.cassette == report.cassette
    assert [call.value for call in cassette] == [b'[1,"two"]', b"null"]
    assert file.read_bytes() == DATA


def test_inspect_tells_what_a_cassette_says_of_itself_without_values(tmp_path):
    file = tmp_path / "x.cassette.jsonl"
    file.write_bytes(DATA)
    seen = tc.inspect(file)
    assert (seen.format, seen.include, seen.order, seen.sync) == (tc.FORMAT, ("echo",), "strict", "frame")
    assert (seen.frames, seen.calls, seen.rejected, seen.signed) == (6, 2, 0, False)
    assert seen.outcomes == {"ok": 2, "error": 0, "cancelled": 0, "left_early": 0}
    (tool,) = seen.tools
    assert (tool.tool, tool.boundary, tool.calls, tool.outcomes, tool.omitted) == ("echo", "tool", 2, {"ok": 2}, ())
    assert "two" not in repr(seen)
    assert len(seen.cassette) == 32


# -- damaged ----------------------------------------------------------------------------------------------------------


def test_every_truncation_is_refused():
    for length in range(len(DATA)):
        report = refused(DATA[:length], everybody=length % 31 == 0)
        whole = sum(start + len(line) <= length for start, line in zip(STARTS, LINES, strict=True))
        at_border = length in STARTS
        if length == 0:
            expected = "empty"
        elif length == len(DATA) - 1:
            expected = "final_newline_missing"
        else:
            expected = "tail_missing" if at_border else "torn"
        assert report.state == "torn", length
        assert report.frame == whole, length
        if report.reason != expected:  # where only the LF of an inner frame is gone, that is what is said
            assert report.reason == "final_newline_missing", (length, report.reason)
            assert length + 1 in STARTS, length


def test_every_flipped_bit_is_refused_at_its_frame():
    for offset in range(len(DATA)):
        for bit in range(8):
            flipped = bytearray(DATA)
            flipped[offset] ^= 1 << bit
            report = refused(bytes(flipped), everybody=(offset * 8 + bit) % 41 == 0)
            assert report.frame == line_of(offset), (offset, bit, report)


@pytest.mark.parametrize("number", range(len(LINES)))
def test_a_dropped_frame_is_refused(number):
    report = refused(b"".join(LINES[:number] + LINES[number + 1 :]))
    last = number == len(LINES) - 1
    assert (report.state, report.frame) == ("torn" if last else "damaged", number)
    assert report.reason == ("tail_missing" if last else "link")


@pytest.mark.parametrize("number", range(len(LINES)))
def test_a_doubled_frame_is_refused(number):
    report = refused(b"".join(LINES[: number + 1] + LINES[number:]))
    assert (report.state, report.frame) == ("damaged", number + 1)
    assert report.reason == ("after_complete" if number == len(LINES) - 1 else "link")


@pytest.mark.parametrize("number", range(len(LINES) - 1))
def test_two_swapped_frames_are_refused(number):
    swapped = [*LINES[:number], LINES[number + 1], LINES[number], *LINES[number + 2 :]]
    report = refused(b"".join(swapped))
    assert (report.state, report.frame, report.reason) == ("damaged", number, "link")


DEFECTS = [
    ("empty", b"", "torn", "empty", 0),
    ("text", b"Dear Sir,\n", "damaged", "not_a_cassette", 0),
    ("json", b'{"a":1}\n', "damaged", "not_a_cassette", 0),
    ("bom", b"\xef\xbb\xbf" + DATA, "damaged", "bom", 0),
    ("crlf", DATA.replace(b"\n", b"\r\n"), "damaged", "crlf", 0),
    ("newline", DATA[:-1], "torn", "final_newline_missing", 5),
    ("lfs", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "damaged", "lfs_pointer", 0),
    ("conflict", LINES[0] + b"<<<<<<< HEAD\n" + b"".join(LINES[1:]), "damaged", "conflict_markers", 1),
    ("zeros", bytes(4096), "zero-filled", "zero_filled", 0),
    ("zeros_inside", DATA[: STARTS[2]] + bytes(len(DATA) - STARTS[2]), "zero-filled", "zero_filled", 2),
    ("newer", LINES[0][:35] + b'toolcassette/2","news":1}\n', "unreadable", "format_unknown", 0),
    ("newer_and_damaged", DATA.replace(b"toolcassette/1", b"toolcassette/2"), "damaged", "hash", 0),
    ("appended", DATA + DATA, "damaged", "after_complete", 6),
]


@pytest.mark.parametrize(("state", "reason", "frame", "data"), [(s, r, f, d) for _, d, s, r, f in DEFECTS])
def test_a_defect_is_named(state, reason, frame, data):
    report = refused(data)
    assert (report.state, report.frame) == (state, frame)
    assert report.reason == reason
    assert report.exit_status == (2 if state == "unreadable" else 1)
    assert report.message == str(tc.FormatError(reason, frame=frame))


def test_what_is_intact_from_the_start_is_counted_and_readable():
    report = refused(DATA[: STARTS[3] + 10])
    assert (report.state, report.reason, report.frames, report.calls) == ("torn", "torn", 3, 1)
    assert report.head == LINES[2][-67:-3].decode()


# -- places that are no cassette --------------------------------------------------------------------------------------


def everybody_refuses(path: Path, reason: str, state: str) -> None:
    before = sorted(path.parent.iterdir())
    report = tc.verify(path)
    assert (report.state, report.reason, report.exit_status, report.ok) == (state, reason, 2, False)
    for read in (tc.read_cassette, tc.inspect, lambda file: tc.replay(file).__enter__()):
        with pytest.raises(tc.FormatError) as caught:
            read(path)
        assert (caught.value.reason, caught.value.frame, caught.value.exit_status) == (reason, None, 2)
        assert str(path.parent) not in str(caught.value)
    assert sorted(path.parent.iterdir()) == before


def test_absent(tmp_path):
    everybody_refuses(tmp_path / "x", "absent", "absent")
    assert tc.verify(tmp_path / "no" / "x").reason == "absent"


def test_a_folder(tmp_path):
    (tmp_path / "x").mkdir()
    everybody_refuses(tmp_path / "x", "not_a_file", "unreadable")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_fifo_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "x")
    worker = threading.Thread(target=everybody_refuses, args=(tmp_path / "x", "not_a_file", "unreadable"), daemon=True)
    worker.start()
    worker.join(10)
    assert not worker.is_alive()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no device files")
def test_a_device_does_not_hang():
    assert tc.verify("/dev/null").reason == "not_a_file"
    assert tc.verify("/dev/zero").reason == "not_a_file"


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").write_bytes(DATA)
    (tmp_path / "x").symlink_to(tmp_path / "real")
    assert tc.verify(tmp_path / "x").ok
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert tc.verify(tmp_path / "dangling").reason == "absent"


@pytest.mark.parametrize("name", ["", "a\0b", "a\ud800", "."])
def test_a_name_that_cannot_be_is_absent(name):
    report = tc.verify(name)
    assert not report.ok
    assert report.state in ("absent", "unreadable")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ELOOP])
def test_an_unreadable_file(number, tmp_path):
    (tmp_path / "x").write_bytes(DATA)
    # A privileged user may read everything, so the system's answer is injected.
    report = tc.verify(tmp_path / "x", store=tc.FileStore(FaultyOps(open_read=number)))
    assert (report.state, report.reason, report.exit_status) == ("unreadable", "unreadable", 2)
    assert "unreadable" in report.message


# -- partials ---------------------------------------------------------------------------------------------------------


def test_a_partial_that_is_being_written_is_open_never_damaged(tmp_path):
    file, partial = tmp_path / "x", tmp_path / "x.partial"
    frames = []
    with tc.record(file, ["echo"]):
        for n in range(3):
            report = tc.verify(partial)
            assert (report.state, report.reason, report.ok, report.exit_status) == ("open", "not_published", False, 1)
            frames.append((report.frames, report.calls))
            with pytest.raises(tc.FormatError) as caught:
                tc.read_cassette(partial)
            assert caught.value.reason in ("not_published", "tail_missing")
            echo(n)
    assert frames == [(1, 0), (3, 1), (5, 2)]
    assert tc.verify(file).ok
    assert tc.verify(partial).state == "absent"


def test_a_partial_seen_at_any_moment_is_open(tmp_path):
    """Every prefix of a recording, also one that ends inside a frame, is what a reader may meet."""
    partial = tmp_path / "x.partial"
    for length in range(1, len(DATA), 11):
        partial.write_bytes(DATA[:length])
        report = tc.verify(partial)
        assert report.state == "open", length
        assert not report.ok


def test_a_damaged_partial_is_damaged(tmp_path):
    partial = tmp_path / "x.partial"
    partial.write_bytes(DATA[:100] + b"?" + DATA[101 : STARTS[3]])
    assert tc.verify(partial).state == "damaged"


def test_a_partial_that_was_set_aside_is_open(tmp_path):
    aside = tmp_path / "x.partial.0123abcd"
    aside.write_bytes(DATA[: STARTS[3]])
    assert tc.verify(aside).state == "open"


# -- deep -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [b'[1, "two"]', b'[1,"tw\\u006f"]', b"[1.,2]"])
def test_only_deep_looks_into_values(odd):
    store = store_of(resealed(DATA, b'[1,"two"],"prev"', odd + b',"prev"'))
    assert tc.verify(NAME, store=store).ok
    report = tc.verify(NAME, deep=True, store=store)
    assert (report.state, report.reason, report.frame, report.ok) == ("damaged", "bulk", 2, False)
