"""Vectors that every reader accepts, shallow and deep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.format.vector_language import WHOLE, Vector, chunk, complete, header, one, result, seal, start

if TYPE_CHECKING:
    from collections.abc import Iterator


def accepted() -> Iterator[Vector]:
    yield Vector("ok_every_kind", WHOLE, "all five kinds of frame; keys of a value keep the order that the tool gave")
    yield Vector("ok_no_calls", seal(header(), complete(1)), "a cassette of no calls is whole")
    yield Vector("ok_tiny", one(), "the example of section 3")
    yield Vector("ok_stream_zero_chunks", one("", how=',"chunks":0'), "a stream of no items is no plain null")
    yield Vector("ok_stream_contexts", one(',"contexts":[],"meta":{}', how=',"chunks":0'), "a stream with both extras")
    yield Vector(
        "ok_left_early",
        seal(
            header(),
            start(1),
            chunk(2, 0, "1"),
            result(3, ',"meta":{"stream":"iterator"}', outcome="left_early", how=',"chunks":1'),
            complete(4, left_early=1),
        ),
        "a stream whose consumer stopped after one item",
    )
    yield Vector("ok_cancelled", one("", outcome="cancelled"), "a call that was cancelled in its body")
    yield Vector(
        "ok_cancelled_before_body",
        one("", outcome="cancelled", how=',"phase":"before_body"'),
        "a call that was cancelled between its start frame and its body",
    )
    yield Vector(
        "ok_cancelled_stream",
        seal(
            header(),
            start(1),
            chunk(2, 0, "1"),
            result(3, ',"contexts":[],"meta":{}', outcome="cancelled", how=',"chunks":1'),
            complete(4, cancelled=1),
        ),
        "a stream that was cancelled after one item",
    )
    yield Vector(
        "ok_error_stream",
        seal(
            header(),
            start(1),
            chunk(2, 0, "1"),
            result(3, ',"error":{"type":"builtins.OSError","message":""}', outcome="error", how=',"chunks":1'),
            complete(4, error=1),
        ),
        "a stream that failed after one item",
    )
    inner = '{"type":"builtins.KeyError","message":"\'k\'","args":["k"]}'
    body = (
        '{"type":"app.Broken","message":"no","args":["no",{"$tc":"tuple","v":[1]}],"attributes":{"tries":3},'
        '"state":{"filename":"f"},"error_code":null,"data":[1],"notes":["seen twice"],"cause":%s,"parts":[%s]}'
    )
    yield Vector(
        "ok_error",
        one(f',"error":{body % (inner, inner)},"contexts":[{{"a":1}}],"meta":{{"k":"v"}}', outcome="error"),
        "every member of an error, and contexts and meta after it",
    )
    yield Vector(
        "ok_reverse_completion",
        seal(
            header(order='"causal"'),
            start(1, 0),
            start(2, 1),
            start(3, 2),
            result(4, call=2),
            result(5, call=1),
            result(6, call=0),
            complete(7, ok=3),
        ),
        "three calls that overlap and end in reverse",
    )
    yield Vector(
        "ok_interleaved_streams",
        seal(
            header(order='"any"', sync='"none"'),
            start(1, 0),
            start(2, 1),
            chunk(3, 0, '"a"', 0),
            chunk(4, 0, '"x"', 1),
            chunk(5, 1, '"b"', 0),
            result(6, "", call=1, how=',"chunks":1'),
            result(7, "", call=0, how=',"chunks":2'),
            complete(8, ok=2),
        ),
        "the chunks of two streams in turn",
    )
    yield Vector(
        "ok_header_and_start_members",
        seal(
            header(
                cassette='"ffffffffffffffffffffffffffffffff"',
                producer='""',
                include='["db.*","t"]',
                sync='"call"',
                rules='["default/1"]',
                **{"from": f'{{"cassette":"000102030405060708090a0b0c0d0e0f","head":"{"a" * 64}","how":"salvage"}}'},
            ),
            start(1, tool="t", path='["research:1","plan#2"]', more=',"effect":"write","omitted":["conn","ctx"]'),
            result(2),
            start(3, 1, boundary="model"),
            result(4, call=1),
            complete(5, ok=2, rejected=3),
        ),
        "every optional member of header and start, both boundaries, a count of rejected calls",
    )


def accepted_values() -> Iterator[Vector]:
    tags = [
        '{"$tc":"bytearray","v":"AA=="}',
        '{"$tc":"bytes","v":"AAEC/w=="}',
        '{"$tc":"complex","v":[1.0,{"$tc":"float","v":"nan"}]}',
        '{"$tc":"counter","v":[["b",2],["a",1]]}',
        '{"$tc":"date","v":"2026-02-28"}',
        '{"$tc":"datetime","v":"2026-02-28T01:02:03.000004"}',
        '{"$tc":"datetime","fold":1,"v":"2026-10-25T02:30:00","zone":"Europe/Berlin"}',
        '{"$tc":"datetime","v":"2026-02-28T01:02:03","zone":[0,0,0]}',
        '{"$tc":"datetime","v":"2026-02-28T01:02:03","zone":[-1,68400,0],"zone_name":"EST"}',
        '{"$tc":"decimal","v":"1.10"}',
        '{"$tc":"decimal","v":"NaN"}',
        '{"$tc":"defaultdict","v":[]}',
        '{"$tc":"defaultdict","factory":"list","v":[["a",[1]],[2,[]]]}',
        '{"$tc":"deque","v":[]}',
        '{"$tc":"deque","maxlen":3,"v":[1,{"$tc":"tuple","v":[]}]}',
        '{"$tc":"float","v":"-inf"}',
        '{"$tc":"float","v":"inf"}',
        '{"$tc":"float","v":"nan"}',
        '{"$tc":"frozenset","v":[1,{"$tc":"tuple","v":[]}]}',
        '{"$tc":"int","v":"0x1%s"}' % ("0" * 900),
        '{"$tc":"map","v":[["$tc","bytes"],["v",""]]}',
        '{"$tc":"map","v":[[1,"int"],["1","str"]]}',
        '{"$tc":"ordered","v":[["b",1],["$tc",2]]}',
        '{"$tc":"path","kind":"Path","v":"a/b"}',
        '{"$tc":"path","kind":"PurePosixPath","v":"/a"}',
        '{"$tc":"path","kind":"PureWindowsPath","v":"C:\\\\a"}',
        '{"$tc":"set","v":["a",1,10,9]}',
        '{"$tc":"str","v":"a\\\\ud800\\\\\\\\é"}',
        '{"$tc":"time","v":"23:59:59.999999"}',
        '{"$tc":"time","v":"12:00:00","zone":[0,19800,0]}',
        '{"$tc":"timedelta","v":[-1,86399,999999]}',
        '{"$tc":"tuple","v":[1,[2],{"$tc":"tuple","v":[]}]}',
        '{"$tc":"uuid","v":"12345678-1234-5678-1234-567812345678"}',
    ]
    yield Vector("ok_all_tags", one(f',"value":[{",".join(tags)}]'), "every tag of section 5")
    standins = [
        '{"$tc":"redacted","n":1,"rule":"api-key"}',
        '{"$tc":"redacted","n":2,"of":"bytes","rule":"token"}',
        '{"$tc":"redacted","n":3,"rule":"pin","v":"0000"}',
        '"Bearer ⟦redacted:token:2⟧"',
        '"⟦\\\\redacted:token:2⟧"',
    ]
    yield Vector("ok_stand_ins", one(f',"value":[{",".join(standins)}]'), "what redaction took out, section 5.1")
    numbers = (
        "0,-1,9007199254740993,18446744073709551616,0.0,-0.0,1.0,100.0,0.1,-2.5,0.00001,0.00001234,9.999e-6,1e-6,1.5e-7,"
        "1000000000000000.0,9999999999999998.0,1e16,1.2345678901234568e16,1e21,1e22,-1e100,5e-324,2.2250738585072014e-308,"
        "1.7976931348623157e308,0.30000000000000004,123456789.125"
    )
    yield Vector("ok_number_text", one(f',"value":[{numbers}]'), "the text of numbers, at every threshold")
    digits = "9" * 1000
    yield Vector("ok_integer_1000_digits", one(f',"value":[{digits},-{digits}]'), "the longest integers that go bare")
    controls = "".join({8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}.get(n, f"\\u{n:04x}") for n in range(32))
    escaped = (
        "\\u007f\\u0080\\u009b\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200f\\u2028\\u2029\\u202a\\u202e\\u2060\\u206f"
    )
    rest = "\\ufeff\\ufff9\\ufffb\\udb40\\udc00\\udb40\\udc41\\udb40\\udc7f"
    plain = (
        " !#/<>&'~\u00a0é\u061b\u180d\u200a\u2010\u2027\u202f\u205f\u2070漢\ufefe\ufff8\ufffc\ufffd\uffff😀\U000e0080"
    )
    yield Vector(
        "ok_escape_text",
        one(f',"value":["{controls}","\\"\\\\","{escaped}{rest}","{plain}"]'),
        "what is escaped, how, and what stands next to it and is not",
    )
    yield Vector(
        "ok_keys_sorted",
        one(args='{"":0,"B":1,"a":{"x":[{"b":1,"c":2}],"é":3},"aa":4,"\ue000":5,"😀":6}'),
        "keys of arguments are sorted by code point, at every level: U+E000 before U+1F600",
    )
    yield Vector(
        "ok_line_ends_in_values",
        one(',"value":"a\\r\\nb\\u2028c\\u0085d\\u000be"'),
        "a line ends at LF and nowhere else",
    )
    yield Vector("ok_depth_128", one(f',"value":{"[" * 128}{"]" * 128}'), "the deepest value")
    yield Vector(
        "ok_bulk_names_in_strings",
        one(',"value":"x,\\"args\\":{},\\"prev\\":\\"\\""', args='{",":"value","error":{}}'),
        "names of bulk members inside strings and inside values end no head",
    )


def groups() -> tuple[Iterator[Vector], ...]:
    """All of them, in the order of ``vectors.json``."""
    return accepted(), accepted_values()
