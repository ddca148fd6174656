"""The reader under all that can happen to a file: cuts, flips, lost and moved frames, other blocks, other bytes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.format.vector_language import BASE, LINES, WHOLE, edited, one, seal
from toolcassette.errors import FORMAT_REASONS, FormatError
from toolcassette.format import Finding, Frame, Reader, parse_cassette, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STARTS = [sum(map(len, LINES[:n])) for n in range(len(LINES) + 1)]


def found(data: bytes, *, partial: bool = False, deep: bool = False) -> Finding | None:
    return Reader(deep=deep).feed_all([data]).finish(partial=partial)


def noting(seen: list[int]) -> Callable[[Frame, int, int], None]:
    """An index that keeps the numbers of the frames it is told of."""
    return lambda frame, _offset, _length: seen.append(frame.seq)


def said(data: bytes, *, partial: bool = False) -> tuple[str | None, int | None]:
    finding = found(data, partial=partial)
    return (finding.reason, finding.frame) if finding else (None, None)


def test_a_whole_cassette_is_complete() -> None:
    reader = Reader().feed_all([WHOLE])
    assert reader.finish() is None
    assert reader.head == WHOLE[-67:-3].decode()
    assert reader.header is not None
    assert reader.complete is not None
    assert reader.complete.frames == len(BASE)


def test_every_cut_is_torn() -> None:
    for length in range(len(WHOLE)):
        lines = WHOLE[:length].count(b"\n")
        reason, frame = said(WHOLE[:length])
        at_line_end = length in STARTS
        wanted = "empty" if length == 0 else "tail_missing" if at_line_end else "torn"
        wanted = "final_newline_missing" if length == len(WHOLE) - 1 else wanted
        assert (reason, frame, state_of(reason)) == (wanted, lines, "torn")


def test_every_cut_of_a_partial_is_open() -> None:
    for length in range(len(WHOLE) + 1):
        finding = found(WHOLE[:length], partial=True)
        assert finding is not None
        assert (finding.reason, finding.frame) == ("not_published", WHOLE[:length].count(b"\n"))
        assert state_of(finding.reason) == "open"


def test_every_flipped_bit_is_found_in_its_frame() -> None:
    for frame in range(len(LINES)):
        for place in range(STARTS[frame], STARTS[frame + 1]):
            for bit in range(8):
                bad = bytearray(WHOLE)
                bad[place] ^= 1 << bit
                finding = found(bytes(bad))
                assert finding is not None
                assert finding.frame == frame
                assert finding.offset == STARTS[frame]
                assert state_of(finding.reason) == ("damaged" if bad[place] else "zero-filled")


def test_every_nul_is_zero_filled() -> None:
    for place in range(len(WHOLE)):
        finding = found(WHOLE[:place] + b"\0" + WHOLE[place + 1 :])
        assert finding is not None
        assert finding.reason == "zero_filled"
        assert finding.frame == WHOLE[:place].count(b"\n")


@pytest.mark.parametrize("frame", range(len(LINES)))
def test_every_lost_frame_is_found(frame: int) -> None:
    last = frame == len(LINES) - 1
    assert said(b"".join(LINES[:frame] + LINES[frame + 1 :])) == ("tail_missing" if last else "link", frame)


@pytest.mark.parametrize("frame", range(len(LINES)))
def test_every_doubled_frame_is_found(frame: int) -> None:
    last = frame == len(LINES) - 1
    data = b"".join([*LINES[: frame + 1], LINES[frame], *LINES[frame + 1 :]])
    assert said(data) == ("after_complete" if last else "link", frame + 1)


@pytest.mark.parametrize("first", range(len(LINES)))
def test_every_two_frames_that_changed_places_are_found(first: int) -> None:
    for second in range(first + 1, len(LINES)):
        lines = list(LINES)
        lines[first], lines[second] = lines[second], lines[first]
        assert said(b"".join(lines)) == ("link", first)


@given(st.lists(st.sampled_from(LINES), max_size=12))
def test_no_other_arrangement_of_lines_is_complete(lines: list[bytes]) -> None:
    assert (found(b"".join(lines)) is None) is (lines == LINES)


# Which of several faults is named


def test_own_bytes_come_before_links_and_links_before_meaning() -> None:
    no_meaning = edited(1, '"tool":"weather"', '"tool":""').splitlines(keepends=True)
    assert said(b"".join(no_meaning)) == ("head", 1)
    gap = no_meaning[:4] + no_meaning[5:]
    assert said(b"".join(gap)) == ("link", 4)
    flipped = [*gap[:6], gap[6].replace(b'"rejected":0', b'"rejected":1')]
    assert said(b"".join(flipped)) == ("hash", 6)
    assert said(b"".join(flipped) + b"{") == ("hash", 6)


def test_a_fault_is_named_before_the_missing_tail() -> None:
    assert said(b"".join(LINES[:2] + LINES[3:6])) == ("link", 2)
    assert said(b"".join(LINES[:2] + LINES[3:6]) + LINES[6][:30]) == ("link", 2)


def test_a_partial_is_checked_as_far_as_it_goes() -> None:
    assert said(b"".join(LINES[:2] + LINES[3:5]), partial=True) == ("link", 2)
    assert said(WHOLE + b"{", partial=True) == ("after_complete", 8)
    assert said(WHOLE[:-200] + bytes(9), partial=True) == ("zero_filled", 7)


# Blocks


DAMAGED = {
    "whole": WHOLE,
    "flip": WHOLE.replace(b'"z":1', b'"z":2'),
    "crlf": WHOLE.replace(b"\n", b"\r\n"),
    "gap": b"".join(LINES[:3] + LINES[4:]),
    "zeros": WHOLE[:-100] + bytes(100),
    "torn": WHOLE[:-100],
    "more": WHOLE + b"x",
    "text": b"hello\nworld\n",
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED.keys())
def test_blocks_make_no_difference(data: bytes) -> None:
    finding = found(data)
    for place in range(len(data)):
        assert Reader().feed_all([data[:place], data[place:]]).finish() == finding
    assert Reader().feed_all(bytes([byte]) for byte in data).finish() == finding
    assert Reader().feed_all([b"", *(data[i : i + 3] for i in range(0, len(data), 3)), b""]).finish() == finding


@pytest.mark.parametrize(
    "tail", [b"x" * 300 + b"\n", b"x" * 300, b"x" * 200 + b"\0" * 100 + b"\n", b"x" * 300 + b"\r\n"]
)
@pytest.mark.parametrize("limit", [150, 199, 200, 201, 250, 299, 300, 301, 302])
def test_blocks_make_no_difference_at_the_limit_of_a_line(tail: bytes, limit: int) -> None:
    def finding(*blocks: bytes) -> Finding | None:
        return Reader(line_bytes_max=limit).feed_all(blocks).finish()

    whole = finding(tail)
    assert whole is not None
    for place in range(len(tail)):
        assert finding(tail[:place], tail[place:]) == whole
    assert finding(*(bytes([byte]) for byte in tail)) == whole


def test_a_line_of_the_limit_is_read_and_one_byte_more_is_not() -> None:
    data = one(f',"value":"{"x" * 1000}"')
    longest = max(map(len, data.splitlines(keepends=True)))
    assert Reader(line_bytes_max=longest).feed_all([data]).finish() is None
    finding = Reader(line_bytes_max=longest - 1).feed_all([data]).finish()
    assert finding is not None
    assert (finding.reason, finding.frame) == ("line_too_long", 2)


def test_an_endless_line_is_refused_before_it_is_held() -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            assert taken < 1000, "the reader never stops"
            yield b"x" * 1000

    reader = Reader(line_bytes_max=10_000)
    finding = reader.feed_all(endless()).finish()
    assert finding is not None
    assert finding.reason in {"line_too_long", "not_a_cassette"}
    assert taken <= 11
    assert len(reader._rest) <= 11_000


def test_lines_end_at_lf_only() -> None:
    text = "a\\rb\u2029\x85\x1c"  # str.splitlines would cut at each of these
    for data in (one(f',"value":"{text}"'), one(',"value":"\\r\\n\\u2028"')):
        finding = found(data)
        assert finding is None
        assert data.count(b"\n") == len(data.split(b"\n")) - 1 == 4


# What the reader tells on the way


def test_the_index_is_told_of_every_frame_in_place() -> None:
    seen: list[tuple[Frame, int, int]] = []
    Reader(index=lambda frame, offset, length: seen.append((frame, offset, length))).feed_all([WHOLE])
    assert [(offset, offset + length) for _, offset, length in seen] == list(itertools.pairwise(STARTS))
    assert [frame.seq for frame, _, _ in seen] == list(range(len(BASE)))


def test_the_index_is_told_of_no_frame_after_a_fault() -> None:
    for bad in (WHOLE.replace(b"and wet", b"and dry"), b"".join(LINES[:3] + LINES[4:])):
        seen: list[int] = []
        Reader(index=noting(seen)).feed_all([bad])
        assert seen == [0, 1, 2]


def test_states() -> None:
    states = {reason: state_of(reason) for reason in FORMAT_REASONS}
    named = {
        "absent": {"absent"},
        "unreadable": {"unreadable", "not_a_file", "format_unknown", "requires_unknown", "rules_unknown"},
        "torn": {"empty", "torn", "tail_missing", "final_newline_missing"},
        "zero-filled": {"zero_filled"},
        "open": {"not_published"},
    }
    for state, reasons in named.items():
        assert {reason for reason, of in states.items() if of == state} == reasons
    assert set(states.values()) == {*named, "damaged"}
    assert state_of(None) == "complete"


# Bytes that nobody wrote


@given(st.binary(max_size=300), st.booleans(), st.booleans())
def test_any_bytes_are_judged(data: bytes, partial: bool, deep: bool) -> None:
    finding = found(data, partial=partial, deep=deep)
    assert finding is not None
    assert finding.reason in FORMAT_REASONS


@given(st.data())
def test_mutated_cassettes_are_judged_and_never_used_by_half(data: st.DataObject) -> None:
    bodies: list[bytes] = [body.encode() for body in BASE]
    for _ in range(data.draw(st.integers(1, 3))):
        frame = data.draw(st.integers(0, len(bodies) - 1))
        body = bodies[frame]
        begin = data.draw(st.integers(0, len(body)))
        end = min(len(body), begin + data.draw(st.integers(0, 8)))
        bodies[frame] = body[:begin] + data.draw(st.binary(max_size=6)) + body[end:]
    sealed = seal(*bodies)
    finding, deep = found(sealed), found(sealed, deep=True)
    if finding is not None:
        assert deep is not None
    try:
        calls = list(parse_cassette(sealed))
    except FormatError:
        assert deep is not None
    else:
        assert deep is None
        assert len(calls) == 2


# Cases from bug reports


def test_c10_a_cut_leaves_the_frames_before_it() -> None:
    for length in range(STARTS[4], STARTS[5]):
        seen: list[int] = []
        reader = Reader(index=noting(seen)).feed_all([WHOLE[:length]])
        finding = reader.finish(partial=True)
        assert seen == [0, 1, 2, 3]
        assert finding is not None
        assert state_of(finding.reason) == "open"
        assert finding.as_error().exit_status == 1


def test_c11_damage_in_the_middle_is_no_crash_signature() -> None:
    cases = {
        "flip": (WHOLE.replace(b'"warm "', b'"Warm "'), "hash", 2),
        "delete": (b"".join(LINES[:2] + LINES[3:]), "link", 2),
        "double": (b"".join([*LINES[:3], LINES[2], *LINES[3:]]), "link", 3),
        "swap": (b"".join([*LINES[:2], LINES[3], LINES[2], *LINES[4:]]), "link", 2),
        "edit seq": (edited(2, '"seq":2', '"seq":3'), "seq", 2),
    }
    for data, reason, frame in cases.values():
        assert said(data) == (reason, frame)
        assert state_of(reason) == "damaged"
        with pytest.raises(FormatError) as caught:
            parse_cassette(data)
        assert (caught.value.reason, caught.value.frame) == (reason, frame)


def test_c12_a_windows_clone_has_its_own_names() -> None:
    assert said(WHOLE.replace(b"\n", b"\r\n")) == ("crlf", 0)
    assert said(b"\xef\xbb\xbf" + WHOLE) == ("bom", 0)
    assert said(WHOLE[:-1]) == ("final_newline_missing", 7)
    both = [one(',"value":"a\\r\\nb"'), one(',"value":"a\\nb"')]
    assert [found(data) for data in both] == [None, None]
    assert [parse_cassette(data).call(0).value for data in both] == [b'"a\\r\\nb"', b'"a\\nb"']
    assert "-text" in FormatError("crlf", frame=0).args[0]
