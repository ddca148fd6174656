"""A cassette is what was written, call by call, or an error; and its frames prove themselves again at every use."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.format.vector_language import BASE, LINES, WHOLE, edited, one, seal
from tests.format.vectors_accepted import accepted
from tests.strategies import recorded_calls
from toolcassette.errors import FormatError
from toolcassette.format import (
    FORMAT,
    CallResult,
    CallStart,
    Header,
    RecordedCall,
    Writer,
    decode_frame,
    decode_value,
    encode_value,
    parse_cassette,
    write_cassette,
)

WRITTEN = {"cassette": "0" * 32, "created": "2026-01-02T03:04:05.678901Z", "producer": "tests"}
SMALL = RecordedCall("t", b"{}", value=b"1")


def vector(name: str) -> bytes:
    return next(v.data for v in accepted() if v.name == name)


@given(st.lists(recorded_calls(), max_size=4))
def test_calls_come_back_as_they_went(calls: list[RecordedCall]) -> None:
    data = write_cassette(calls, **WRITTEN, order="causal")
    cassette = parse_cassette(data)
    assert list(cassette) == calls
    assert len(cassette) == len(calls) == cassette.complete.calls
    assert cassette.header.include == sorted({call.tool for call in calls})
    assert cassette.header.order == "causal"
    assert cassette.head == data[-67:-3].decode()
    assert write_cassette(cassette, **WRITTEN, order="causal") == data


def test_what_a_call_holds() -> None:
    stream, plain = parse_cassette(WHOLE)
    assert stream == RecordedCall(
        "weather", b'{"city":"Wuhan"}', chunks=(b'"warm "', b'"and wet"'), started_at=10, ended_at=40
    )
    assert plain == RecordedCall("sum", b'{"a":1,"b":[2.5,null]}', value=b'{"z":1,"a":2}', started_at=50, ended_at=60)


def test_calls_that_overlap_find_their_own_results() -> None:
    streams = parse_cassette(vector("ok_interleaved_streams"))
    assert [call.chunks for call in streams] == [(b'"a"', b'"b"'), (b'"x"',)]
    reverse = parse_cassette(vector("ok_reverse_completion"))
    assert [call.ended_at for call in reverse] == [60, 50, 40]
    assert [reverse.outcome(n).at for n in range(3)] == [60, 50, 40]


def test_spans_tell_the_order_of_events() -> None:
    cassette = parse_cassette(WHOLE)
    assert [cassette.adjacent(call) for call in range(2)] == [False, True]
    starts = [sum(map(len, LINES[:frame])) for frame in range(len(LINES))]
    assert [cassette.span(call) for call in range(2)] == [(starts[1], starts[4]), (starts[5], starts[6])]


def test_paths_hold_their_calls_in_start_order() -> None:
    calls = [SMALL._replace(path=path) for path in ((), ("a",), (), ("a", "b"), ("a",))]
    cassette = parse_cassette(write_cassette(calls, **WRITTEN))
    assert {path: list(numbers) for path, numbers in cassette.paths.items()} == {
        (): [0, 2],
        ("a",): [1, 4],
        ("a", "b"): [3],
    }


def test_place_gives_the_head_and_the_stored_arguments() -> None:
    head, args = parse_cassette(WHOLE).place(1)
    assert (head.tool, head.call, head.at) == ("sum", 1, 50)
    assert args == b'{"a":1,"b":[2.5,null]}'


def test_arguments_in_another_spelling_match_nothing_and_are_refused_on_use() -> None:
    cassette = parse_cassette(one(args='{"b":1,"a":2}'))
    _, stored = cassette.place(0)
    assert stored != encode_value({"a": 2, "b": 1}, sort=True)
    with pytest.raises(FormatError, match="bulk"):
        cassette.call(0)


@pytest.mark.parametrize(
    "value", ['{"a":1,"a":2}', '{"a": 1}', '"\\u0041"', '"\u202e"', '"\u009b"', "1.50", '{},"call":99']
)
def test_a_value_in_another_spelling_is_refused_on_use(value: str) -> None:
    cassette = parse_cassette(one(f',"value":{value}'))
    with pytest.raises(FormatError) as caught:
        cassette.call(0)
    assert caught.value.reason == "bulk"
    with pytest.raises(FormatError) as caught:
        decode_value(cassette.outcome(0).value or b"")
    assert caught.value.reason == "bulk"


@pytest.mark.parametrize(
    "bulk", [',"value":1,"meta":{"a": 1}', ',"value":1,"value":2', ',"value":1,"error":{"type":"a"}']
)
def test_what_stands_behind_a_value_is_looked_at(bulk: str) -> None:
    with pytest.raises(FormatError, match=r"bulk|members"):
        parse_cassette(one(bulk)).outcome(0)


@given(recorded_calls())
def test_an_outcome_is_that_of_the_call(call: RecordedCall) -> None:
    outcome = parse_cassette(write_cassette([call], **WRITTEN)).outcome(0)
    chunks = None if call.chunks is None else len(call.chunks)
    assert outcome == (
        call.outcome,
        call.ended_at,
        call.value,
        call.error,
        call.contexts,
        call.meta,
        call.phase,
        chunks,
    )


def test_content_is_the_same_for_two_recordings_that_say_the_same() -> None:
    other = {"cassette": "1" * 32, "created": "2027-01-02T03:04:05.678901Z", "producer": "others"}
    one_content = parse_cassette(write_cassette([SMALL], **WRITTEN)).content()
    assert parse_cassette(write_cassette([SMALL._replace(started_at=5, ended_at=9)], **other)).content() == one_content
    for changed in (SMALL._replace(value=b"1.0"), SMALL._replace(tool="u"), SMALL._replace(path=("a",))):
        assert parse_cassette(write_cassette([changed], **WRITTEN)).content() != one_content


def test_a_chunk_in_another_spelling_is_refused_on_use() -> None:
    cassette = parse_cassette(edited(3, '"and wet"', '"and\\u0020wet"'))
    assert next(cassette.chunks(0)) == b'"warm "'
    with pytest.raises(FormatError, match="bulk"):
        list(cassette.chunks(0))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (SMALL._replace(boundary="http"), "head"),
        (SMALL._replace(tool=""), "head"),
        (SMALL._replace(tool="\udcb2"), "head"),
        (SMALL._replace(path=("",)), "head"),
        (SMALL._replace(outcome="fine"), "head"),
        (SMALL._replace(phase="later"), "head"),
        (SMALL._replace(started_at=-1), "head"),
        (SMALL._replace(ended_at=2**53), "head"),
        (SMALL._replace(value=None), "members"),
        (SMALL._replace(chunks=()), "members"),
        (SMALL._replace(outcome="error"), "members"),
        (SMALL._replace(outcome="left_early"), "members"),
        (SMALL._replace(error=b"{}"), "members"),
        (SMALL._replace(phase="before_body"), "members"),
        (SMALL._replace(args=b"[]"), "members"),
        (SMALL._replace(args=b'{"b":1,"a":1}'), "bulk"),
        (SMALL._replace(args=b""), "bulk"),
        (SMALL._replace(value=b"{ }"), "bulk"),
        (SMALL._replace(value=b"NaN"), "bulk"),
        (SMALL._replace(value=b'1,"value":2'), "bulk"),
        (SMALL._replace(value=b"[\n]"), "trailer"),
        (SMALL._replace(value=b"[" * 129 + b"]" * 129), "too_deep"),
    ],
)
def test_nothing_is_written_that_would_not_be_read(call: RecordedCall, reason: str) -> None:
    with pytest.raises(FormatError) as caught:
        write_cassette([SMALL, call], **WRITTEN)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "changed",
    [{"cassette": "0" * 31}, {"cassette": "A" * 32}, {"created": "2026-01-02"}, {"include": [""]}, {"order": "x"}],
)
def test_no_header_is_written_that_would_not_be_read(changed: dict[str, Any]) -> None:
    with pytest.raises(FormatError) as caught:
        write_cassette([SMALL], **(WRITTEN | changed))
    assert (caught.value.reason, caught.value.frame) == ("head", 0)


def test_limits_are_the_callers() -> None:
    parse_cassette(WHOLE, calls_max=2)
    with pytest.raises(FormatError, match="too_many_calls"):
        parse_cassette(WHOLE, calls_max=1)
    with pytest.raises(FormatError, match="line_too_long"):
        parse_cassette(WHOLE, line_bytes_max=300)


def frames() -> tuple[Header, CallStart, CallResult]:
    lines = seal(BASE[0], BASE[5].replace('"call":1', '"call":0').replace('"seq":5', '"seq":1')).splitlines(
        keepends=True
    )
    result = CallResult(seq=2, call=0, outcome="cancelled", at=0)
    return decode_frame(lines[0], Header), decode_frame(lines[1], CallStart), result


def test_a_frame_that_the_writer_refuses_changes_nothing() -> None:
    header, start, result = frames()
    writer, other = Writer(line_bytes_max=500), Writer(line_bytes_max=500)
    assert header.format == FORMAT
    for frame in (header, start, result):
        for bad, reason in (
            (CallResult(seq=other.seq + 1, call=0, outcome="ok", at=0), "seq"),
            (CallResult(seq=other.seq, call=7, outcome="ok", at=0), "header_missing|call_unknown"),
            (CallStart(seq=other.seq, call=0, boundary="tool", path=[], tool="t" * 500, at=0), "line_too_long"),
        ):
            with pytest.raises(FormatError, match=rf"\(({reason})\)") as caught:
                writer.line(bad)
            assert caught.value.frame == other.seq
        assert writer.line(frame) == other.line(frame)
        assert writer.head == other.head
    assert writer.complete(rejected=2) == other.complete(rejected=2)


def test_the_writer_completes_no_open_call() -> None:
    header, start, _ = frames()
    writer = Writer()
    writer.line(header)
    writer.line(start)
    with pytest.raises(FormatError, match="call_open"):
        writer.complete()
    assert writer.seq == 2


def test_repr_shows_no_value() -> None:
    cassette = parse_cassette(WHOLE)
    assert repr(cassette) == "<Cassette 000102030405060708090a0b0c0d0e0f calls=2>"


def test_the_index_is_small() -> None:
    data = write_cassette([SMALL] * 3000, **WRITTEN)
    parse_cassette(data)
    tracemalloc.start()
    cassette = parse_cassette(data)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(cassette) == 3000
    assert kept < 64 * 3000
