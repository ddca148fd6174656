"""Bug reports of record-and-replay tools, as tests: what a call gets, and what a file may be. Each says what is right.

Rule: the number is that of the case in the collection of reports from which these were taken. C-02, C-07, C-08, C-19 to
C-24 ask for order policies, redaction, streams, a pytest plugin and other parts that have tests of their own.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import toolcassette as tc
from tests.cases.programs import (
    dead,
    fails,
    frames,
    live,
    no_permission,
    record,
    refused,
    replay,
    reseal,
    verdicts,
)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "case.cassette.jsonl"


def search(q):
    return {"found": q}


def test_c01_same_call_three_answers(file):
    """Three equal calls get their three answers; a 4th raises: exhausted, recorded 3 times."""
    queue = ["A", "B", "C"]

    def pop_next_ticket(queue_name):
        return queue.pop(0)

    tool = live(pop_next_ticket)
    assert record(file, lambda: [tool("q1") for _ in range(3)]) == ["A", "B", "C"]
    tool = dead(pop_next_ticket)
    assert replay(file, lambda: [tool("q1") for _ in range(3)]) == ["A", "B", "C"]

    with fails(tc.CassetteMismatch) as left, tc.replay(file):
        assert [tool("q1") for _ in range(3)] == ["A", "B", "C"]
        error = refused(lambda: tool("q1"))
    assert isinstance(error, tc.CassetteMismatch)
    assert error.reason == "exhausted"
    assert "recorded 3 times" in str(error)
    assert left["error"] is error


def test_c03_another_order(file):
    """The hotels call does not get the flights result; no record is served whose arguments differ."""
    tool = live(search)
    record(file, lambda: [tool("flights"), tool("hotels")])

    with fails(tc.CassetteMismatch) as left, tc.replay(file):
        refused(lambda: dead(search)("hotels"))
    assert left["error"].reason == "order_differs"
    assert left["error"].ordinal == 0

    with fails(tc.CassetteMismatch) as left, tc.replay(file):
        refused(lambda: dead(search)("trains"))
    assert left["error"].reason == "arguments_differ"
    assert left["error"].differs == ("$.q",)


def test_c04_missing_file(file, tmp_path):
    """Four reasons for four faults; nothing is created, and nobody is told of overwriting what is not there."""
    empty, folder, secret = (tmp_path / name for name in ("empty.jsonl", "folder.jsonl", "secret.jsonl"))
    empty.touch()
    folder.mkdir()
    record(secret, lambda: live(search)("a"))
    before = sorted(tmp_path.iterdir())

    assert verdicts(file) == {("absent", None)}
    assert verdicts(empty) == {("empty", 0)} or verdicts(empty) == {("empty", None)}
    assert verdicts(folder) == {("not_a_file", None)}
    with no_permission(secret):
        assert verdicts(secret) == {("unreadable", None)}
    message = str(refused(lambda: replay(file, lambda: None)))
    assert "no cassette of this name" in message
    assert "record it" in message
    for name in (file, empty, folder):
        assert "overwrite" not in str(refused(replay, name, lambda: None))
    assert sorted(tmp_path.iterdir()) == before


def test_c05_a_miss_must_not_reach_the_world(file):
    """The body ran once, for the recording; after the first miss every call fails, and the file stays as it is."""
    paid = []

    def pay(amount):
        paid.append(amount)
        return len(paid)

    tool = live(pay)
    record(file, lambda: tool(1))
    before, stat = file.read_bytes(), file.stat()

    with fails(tc.CassetteMismatch), tc.replay(file):
        errors = [refused(tool, x) for x in (2, 1, 1)]
    assert [type(error) for error in errors] == [tc.CassetteMismatch, tc.CassettePoisoned, tc.CassettePoisoned]
    assert paid == [1]
    assert file.read_bytes() == before
    assert file.stat().st_mtime_ns == stat.st_mtime_ns


def test_c06_a_rotated_key_still_matches(file):
    """A parameter that is left out is no part of the call, nor of the file; all the others are."""

    def fetch(url, api_key):
        return f"page of {url}"

    tool = live(fetch, omit=["api_key"])
    record(file, lambda: tool(url="u", api_key="sk-AAAA"))
    tool = dead(fetch, omit=["api_key"])
    assert replay(file, lambda: tool(url="u", api_key="sk-BBBB")) == "page of u"
    assert b"sk-AAAA" not in file.read_bytes()
    assert tc.verify(file).ok
    assert tc.inspect(file).tools[0].omitted == ("api_key",)

    with fails(tc.CassetteMismatch), tc.replay(file):
        refused(lambda: tool(url="v", api_key="sk-AAAA"))
    with fails(tc.CassetteMismatch) as left, tc.replay(file):
        refused(lambda: dead(fetch)(url="u", api_key="sk-CANARY"))
    assert left["error"].differs == ("$.api_key",)
    assert "was not there when this was recorded" in str(left["error"])
    assert "sk-CANARY" not in str(left["error"])


def test_c09_a_step_was_skipped(file):
    """Leaving names the call that was not made; an exception of the program's own arrives as it is, with a note."""
    tool = live(search)
    record(file, lambda: [tool(q) for q in "abc"])

    with fails(tc.UnconsumedCalls) as left:
        replay(file, lambda: [tool(q) for q in "ab"])
    assert left["error"].calls == (tc.LeftOver(tool="search", path=(), ordinal=2, wrapped=True),)

    with pytest.raises(ValueError, match=r"^mine\n") as raised, tc.replay(file):
        tool("a")
        raise ValueError("mine")
    assert raised.value.args == ("mine",)
    assert any("never made" in note for note in raised.value.__notes__)

    other = file.with_name("short.cassette.jsonl")
    record(other, lambda: tool("a"))  # a recording of fewer calls than another one is as good
    assert tc.verify(other).calls == 1


@pytest.fixture
def three(file):
    """A cassette of three calls: header, three times start and result, complete."""
    tool = live(search)
    record(file, lambda: [tool(q) for q in "abc"])
    return file


def test_c10_a_torn_line(three):
    """Cut anywhere in frame 4: torn, four frames are intact and readable, and it is never ok nor damaged."""
    lines = frames(three)
    whole, fourth = b"".join(lines[:4]), lines[4]
    cut_file = three.with_name("cut.cassette.jsonl")
    for cut in range(1, len(fourth)):
        cut_file.write_bytes(whole + fourth[:cut])
        report = tc.verify(cut_file)
        assert (report.state, report.exit_status, report.frame, report.frames) == ("torn", 1, 4, 4), cut
        assert report.head == lines[3][-67:-3].decode()
        assert frames(cut_file) == lines[:4]
    cut_file.write_bytes(whole)
    report = tc.verify(cut_file)
    assert (report.state, report.reason, report.frames) == ("torn", "tail_missing", 4)

    partial = three.with_name("cut.cassette.jsonl.partial")
    partial.write_bytes(whole + fourth[:30])
    report = tc.verify(partial)
    assert (report.state, report.frames, report.head) == ("open", 4, lines[3][-67:-3].decode())


DAMAGE = {
    "one byte flipped": (lambda f: [*f[:2], f[2].replace(b'"found"', b'"fount"'), *f[3:]], ("hash", 2)),
    "deleted": (lambda f: [*f[:2], *f[3:]], ("link", 2)),
    "doubled": (lambda f: [*f[:3], f[2], *f[3:]], ("link", 3)),
    "swapped": (lambda f: [*f[:2], f[3], f[2], *f[4:]], ("link", 2)),
    "seq edited": (lambda f: [*f[:2], f[2].replace(b'"seq":2', b'"seq":9'), *f[3:]], ("hash", 2)),
    "seq edited, resealed": (
        lambda f: [reseal([*f[:2], f[2].replace(b'"seq":2', b'"seq":9'), *f[3:]])],
        ("seq", 2),
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_c11_damage_in_the_middle(three, name):
    """Each damage has its own reason and frame, the same for every reader; no call is served from such a file."""
    damage, expected = DAMAGE[name]
    three.write_bytes(b"".join(damage(frames(three))))
    assert verdicts(three) == {expected}
    assert tc.verify(three).state == "damaged"
    with fails(tc.FormatError):
        replay(three, lambda: pytest.fail("a block ran on a damaged cassette"))


def test_c12_windows_clone(three):
    """Line endings, a byte order mark and a missing last newline are named; text with CR LF in it is text."""
    data = three.read_bytes()
    for broken, reason in (
        (data.replace(b"\n", b"\r\n"), "crlf"),
        (b"\xef\xbb\xbf" + data, "bom"),
        (data[:-1], "final_newline_missing"),
    ):
        three.write_bytes(broken)
        assert {found[0] for found in verdicts(three)} == {reason}
    three.write_bytes(data.replace(b"\n", b"\r\n"))
    assert ".gitattributes" in tc.verify(three).message

    tool = live(lambda text: {"text": text}, name="echo")
    texts = three.with_name("texts.cassette.jsonl")
    record(texts, lambda: tool("a\r\nb"))
    assert replay(texts, lambda: tool("a\r\nb")) == {"text": "a\r\nb"}
    with fails(tc.CassetteMismatch), tc.replay(texts):
        refused(lambda: tool("a\nb"))


def test_c15_a_sync_shell_around_an_async_tool(file, recwarn):
    """Awaiting the tool gives its value in both modes; no coroutine is ever written, or left behind."""
    import asyncio

    def deco(fn):
        import functools

        @functools.wraps(fn)
        def shell(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        return shell

    @deco
    async def lookup(name):
        return f"found {name}"

    tool = live(lookup)

    async def program():
        return await tool("x")

    assert not inspect.iscoroutinefunction(tool)
    assert record(file, lambda: asyncio.run(program())) == "found x"
    assert replay(file, lambda: asyncio.run(program())) == "found x"
    assert b"coroutine" not in file.read_bytes()
    assert not recwarn.list
