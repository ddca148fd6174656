"""Frames as lines and back: heads by themselves, whole frames with their bulk, and the traps between the two."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from tests.format.vector_language import BASE, LINES, chunk, complete, header, one, result, seal, start
from tests.strategies import values
from toolcassette.errors import FormatError
from toolcassette.format import (
    CallChunk,
    CallResult,
    CallStart,
    Complete,
    Frame,
    Header,
    Writer,
    decode_frame,
    decode_head,
    encode_value,
)
from toolcassette.format.codec import bulk_span, encode_body
from toolcassette.format.frames import BULK_MEMBERS, KINDS, SEALED

ORDER = {  # FORMAT.md section 2
    "header": "seq kind format cassette created producer requires include order sync rules enc from prev hash",
    "call/start": "seq kind call boundary path tool effect omitted at args enc prev hash",
    "call/chunk": "seq kind call chunk at value enc prev hash",
    "call/result": "seq kind call outcome phase chunks at value error contexts meta enc prev hash",
    "complete": "seq kind calls frames ok error cancelled left_early rejected prev hash",
}


SEALED_ORDER = {  # FORMAT.md section 14
    "call/start": "seq kind call enc prev hash",
    "call/chunk": "seq kind call chunk enc prev hash",
    "call/result": "seq kind call outcome chunks enc prev hash",
}


def lined(body: str) -> bytes:
    return seal(body)


@pytest.mark.parametrize("kind", KINDS)
def test_members_stand_in_the_order_of_the_specification(kind: str) -> None:
    assert [f.encode_name for f in msgspec.structs.fields(KINDS[kind])] == ORDER[kind].split()


@pytest.mark.parametrize("sealed", SEALED, ids=lambda kind: kind.__name__)
def test_members_of_sealed_frames_stand_in_the_order_of_the_specification(sealed: type[Frame]) -> None:
    assert [f.encode_name for f in msgspec.structs.fields(sealed)] == SEALED_ORDER[sealed.kind_name].split()


@pytest.mark.parametrize("seq", range(len(BASE)))
def test_frames_are_read_and_written_again(seq: int) -> None:
    line = LINES[seq]
    plain = json.loads(line)
    frame = decode_frame(line, KINDS[plain["kind"]])
    assert encode_body(frame).decode() == BASE[seq]
    head = decode_head(line)
    for name in plain.keys() - {"prev", "hash"}:
        got, whole = getattr(head, name), getattr(frame, name)
        if name in BULK_MEMBERS and plain["kind"] != "complete":
            assert got is UNSET
            assert json.loads(bytes(whole)) == plain[name]
        else:
            assert got == whole == plain[name]


def test_the_head_ends_at_the_first_bulk_member() -> None:
    start_line, result_line, complete_line = LINES[5], LINES[6], LINES[7]
    assert start_line[slice(*bulk_span(start_line))] == b',"args":{"a":1,"b":[2.5,null]}'
    assert result_line[slice(*bulk_span(result_line))] == b',"value":{"z":1,"a":2}'
    assert complete_line[slice(*bulk_span(complete_line))] == b""  # a count called error ends no head
    assert isinstance(decode_head(complete_line), Complete)


def test_text_that_looks_like_a_bulk_member_ends_no_head() -> None:
    tool = 'x,\\"args\\":{},\\"value\\":1'
    line = lined(start(0, tool=tool, path='[",","value","args"]'))
    head = decode_head(line)
    assert isinstance(head, CallStart)
    assert head.tool == 'x,"args":{},"value":1'
    assert line[slice(*bulk_span(line))] == b',"args":{}'


def test_a_frame_of_another_kind_than_asked_for_is_refused() -> None:
    with pytest.raises(FormatError, match="bulk"):
        decode_frame(LINES[5], CallResult)


@pytest.mark.parametrize("name", ["call", "seq", "prev", "hash", "kind", "at"])
def test_a_head_member_behind_the_bulk_passes_the_head_and_no_use(name: str) -> None:
    again = '"' + "0" * 64 + '"' if name in {"prev", "hash"} else '"call/result"' if name == "kind" else "99"
    line = lined(result(0, f',"value":{{}},"{name}":{again}'))
    head = decode_head(line)
    assert isinstance(head, CallResult)
    assert (head.seq, head.call) == (0, 0)
    with pytest.raises(FormatError) as caught:
        decode_frame(line, CallResult)
    assert caught.value.reason == "bulk"


@pytest.mark.parametrize("members", ['"prev":"%s"', '"hash":"%s"', '"prev":"%s","hash":"%s"'])
@pytest.mark.parametrize("digits", ["0" * 64, "0" * 43, ""])
def test_a_second_trailer_in_the_head_is_refused(members: str, digits: str) -> None:
    line = lined(complete(0) + "," + members.replace("%s", digits))
    with pytest.raises(FormatError, match="head"):
        decode_head(line)
    with pytest.raises(FormatError, match="head"):
        decode_frame(line, Complete)


RESULT_SHAPES = [
    # outcome, phase?, chunks?: what must stand first, what may stand besides; None: no such frame
    ("ok", False, False, {"value"}, {"contexts", "meta"}),
    ("ok", False, True, set(), {"contexts", "meta"}),
    ("error", False, False, {"error"}, {"contexts", "meta"}),
    ("error", False, True, {"error"}, {"contexts", "meta"}),
    ("cancelled", False, False, set(), set()),
    ("cancelled", False, True, set(), {"contexts", "meta"}),
    ("cancelled", True, False, set(), set()),
    ("cancelled", True, True, None, None),
    ("left_early", False, True, set(), {"contexts", "meta"}),
    ("left_early", False, False, None, None),
    ("left_early", True, True, None, None),
    ("ok", True, False, None, None),
    ("ok", True, True, None, None),
    ("error", True, False, None, None),
]
BULK = {"value": "1", "error": '{"type":"a","message":""}', "contexts": "[]", "meta": "{}", "enc": "1"}


@pytest.mark.parametrize(("outcome", "phase", "chunks", "must", "may"), RESULT_SHAPES)
def test_every_combination_of_bulk_members(
    outcome: str, phase: bool, chunks: bool, must: set[str] | None, may: set[str] | None
) -> None:
    how = (',"phase":"before_body"' if phase else "") + (',"chunks":0' if chunks else "")
    for mask in range(1 << len(BULK)):
        names = [name for bit, name in enumerate(BULK) if mask >> bit & 1]
        line = lined(result(0, "".join(f',"{n}":{BULK[n]}' for n in names), outcome=outcome, how=how))
        allowed = must is not None and may is not None and must <= set(names) <= must | may
        if allowed:
            decode_head(line)
            decode_frame(line, CallResult)
        else:
            with pytest.raises(FormatError) as caught:
                decode_frame(line, CallResult)
            assert caught.value.reason == "members"


@pytest.mark.parametrize("body", [start(0), chunk(0, 0, "1"), header(), complete(0)])
def test_other_frames_have_their_bulk_member_and_no_other(body: str) -> None:
    kind = KINDS[json.loads(body + "}")["kind"]]
    decode_frame(lined(body), kind)
    with pytest.raises(FormatError, match=r"members|bulk|head"):
        decode_frame(lined(body + ',"enc":1'), kind)
    for name in ("args", "value"):
        if f',"{name}":' in body:
            with pytest.raises(FormatError, match="members"):
                decode_frame(lined(body[: body.index(f',"{name}":')]), kind)


@pytest.mark.parametrize(("bulk", "outcome"), [(',"error":1', o) for o in ("cancelled", "ok", "error", "left_early")])
def test_an_error_that_is_no_object_is_seen_in_the_head(bulk: str, outcome: str) -> None:
    for how in ("", ',"chunks":0'):
        with pytest.raises(FormatError) as caught:
            decode_head(lined(result(0, bulk, outcome=outcome, how=how)))
        assert caught.value.reason == "members"


@given(values(), values())
def test_any_value_stands_in_any_bulk_member(value: Any, other: Any) -> None:
    args = encode_value({"a": value, "b": other}, sort=True)
    plain, extra = encode_value(value), encode_value([other])
    writer = Writer()
    frames: list[Frame] = [
        decode_frame(LINES[0], Header),
        CallStart(seq=1, call=0, boundary="tool", path=[], tool="t", at=0, args=Raw(args)),
        CallChunk(seq=2, call=0, chunk=0, at=0, value=Raw(plain)),
        CallResult(seq=3, call=0, outcome="ok", chunks=1, at=0, contexts=Raw(extra)),
    ]
    for frame in frames:
        line = writer.line(frame)
        back = decode_frame(line, type(frame))
        assert encode_body(back) == encode_body(frame)
        assert encode_body(decode_head(line)) == line[: bulk_span(line)[0]]


def test_a_name_that_is_not_clean_unicode_is_refused_by_the_writer() -> None:
    frame = CallStart(seq=0, call=0, boundary="tool", path=[], tool="\udcb2", at=0, args=Raw(b"{}"))
    with pytest.raises(FormatError, match="head"):
        encode_body(frame)


@given(st.binary(max_size=200), st.integers(0, 7))
def test_any_bytes_in_a_hashed_line_are_a_frame_or_refused(noise: bytes, seq: int) -> None:
    body = BASE[seq].encode()
    cut = len(noise) * 7 % len(body)
    for text in (noise, body[:cut] + noise, body[:cut] + noise + body[cut:]):
        line = seal(text.replace(b"\n", b" "))
        for kind in KINDS.values():
            try:
                frame: Frame = decode_frame(line, kind)
            except FormatError:
                continue
            assert encode_body(frame) == line[:-150]


@given(st.sampled_from(LINES), st.data())
def test_any_changed_byte_in_a_hashed_line_is_another_frame_or_refused(line: bytes, data: st.DataObject) -> None:
    body = bytearray(line[:-150])
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.sampled_from(b'"\\,:{}[]0129eE+-. a\x7f\x80\xc2\xff'))
    changed = seal(bytes(body))
    try:
        head = decode_head(changed)
    except FormatError:
        return
    assert encode_body(head) == changed[: bulk_span(changed)[0]]


def test_a_result_without_what_it_should_have_is_no_frame() -> None:
    assert decode_head(one().splitlines(keepends=True)[2]) is not None
    with pytest.raises(FormatError, match="members"):
        decode_head(lined(result(0, "")))
