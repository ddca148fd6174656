"""Where the code has a quick way and a long one, they say the same, also of lines with any byte changed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolcassette as tc
from tests.strategies import recorded_calls
from toolcassette.format import codec

VECTORS = Path(__file__).resolve().parents[2] / "schemas" / "v1" / "vectors"
SAMPLE = [
    tc.RecordedCall(
        "search", tc.canonical_json({"q": "a", "args": {}}), value=b'{"value":1}', started_at=7, ended_at=10
    ),
    tc.RecordedCall("a.b-c d~", b"{}", boundary="model", value=b'"x"', ended_at=999_999_999_999_999),
    tc.RecordedCall("search", b'{"args":{}}', value=b"1"),
    tc.RecordedCall("tool\u00e9", b"{}", path=("p",), value=b"null", meta=b"{}"),
    tc.RecordedCall("x" * 200, b"{}", outcome="error", error=b'{"type":"builtins.ValueError","message":"m"}'),
]


def cassette_of(calls):
    return tc.write_cassette(calls, cassette="0" * 32, created="2026-01-01T00:00:00.000000Z", producer="test")


def answer(line):
    try:
        return codec.decode_head(line)
    except tc.FormatError as error:
        return error.reason


def both(line, monkeypatch):
    quick = answer(line)
    with monkeypatch.context() as patched:
        patched.setattr(codec, "_quick_head", lambda _: None)
        return quick, answer(line)


def lines_of(data):
    return [line + b"\n" for line in data.split(b"\n") if len(line) > 160]


def test_heads_of_every_vector(monkeypatch):
    taken = 0
    for file in sorted(VECTORS.glob("*.jsonl*")):
        for line in lines_of(file.read_bytes()):
            quick, long = both(line, monkeypatch)
            assert quick == long
            assert type(quick) is type(long)
            taken += codec._quick_head(line) is not None
    assert taken > 100  # it is not as if there were no quick way


def test_heads_with_a_byte_changed(monkeypatch):
    """Every byte of a head, by a bit and by characters that matter to JSON, and the whole line cut there."""
    chance = random.Random(1)
    for line in lines_of(cassette_of(SAMPLE)):
        for at in range(min(codec.bulk_span(line)[0] + 12, 140)):
            for other in (line[at] ^ 1, line[at] ^ 32, chance.choice(b'"\\0{[, \x7f')):
                changed = line[:at] + bytes([other]) + line[at + 1 :]
                quick, long = both(changed, monkeypatch)
                assert quick == long, changed


NUMBERS = [b"0", b"00", b"01", b"-1", b"1.0", b"1e3", b"999999999999999", b"1000000000000000", b"9007199254740992"]


@pytest.mark.parametrize("number", NUMBERS)
def test_heads_with_odd_numbers(monkeypatch, number):
    line = lines_of(cassette_of(SAMPLE))[1]
    for old in (b'"seq":1', b'"call":0', b'"at":7'):
        changed = line.replace(old, old[: old.index(b":") + 1] + number)
        assert changed != line or number == b"0"
        quick, long = both(changed, monkeypatch)
        assert quick == long


@settings(max_examples=30, deadline=None)
@given(st.lists(recorded_calls(), min_size=1, max_size=4))
def test_a_call_is_found_as_it_is_read(calls):
    cassette = tc.parse_cassette(cassette_of(calls))
    for number in range(len(cassette)):
        head, stored = cassette.place(number)
        assert cassette.tool(number) == head.tool
        assert cassette.is_call(number, head.tool, stored, head.boundary)
        for other in calls:
            same = (other.tool, other.args, other.boundary) == (head.tool, stored, head.boundary)
            assert cassette.is_call(number, other.tool, other.args, other.boundary) == same


def test_a_call_is_not_found_by_a_part_of_its_arguments():
    cassette = tc.parse_cassette(cassette_of(SAMPLE))
    for number in range(len(cassette)):
        head, stored = cassette.place(number)
        for start in range(1, len(stored) + 1):
            assert not cassette.is_call(number, head.tool, stored[start:], head.boundary)
        assert not cassette.is_call(number, head.tool, b"{" + stored, head.boundary)
        assert not cassette.is_call(number, head.tool, b"x" * 100_000, head.boundary)


def test_an_outcome_is_what_was_written():
    cassette = tc.parse_cassette(cassette_of(SAMPLE))
    for number, call in enumerate(SAMPLE):
        ended = cassette.outcome(number)
        assert (ended.outcome, ended.at, ended.value) == (call.outcome, call.ended_at, call.value)
        assert (ended.error, ended.meta, ended.chunks) == (call.error, call.meta, None)
