"""Vectors that a reader refuses, one failure each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.format.vector_language import (
    BASE,
    LINES,
    STREAM,
    WHOLE,
    Vector,
    chunk,
    complete,
    edited,
    header,
    lines_of,
    one,
    result,
    seal,
    start,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def files() -> Iterator[Vector]:
    yield Vector("empty", b"", "no byte at all", "empty", 0)
    yield Vector("not_a_cassette_text", b"hello\n", "some other file", "not_a_cassette", 0)
    yield Vector(
        "not_a_cassette_format", seal(header(format='"other/1"'), complete(1)), "another format", "not_a_cassette", 0
    )
    yield Vector("not_a_cassette_json", b'{"a":1}\n', "another file of JSON lines", "not_a_cassette", 0)
    newer = header(format='"toolcassette/2"', news="1")
    yield Vector("format_newer", seal(newer, complete(1)), "a later format of this trailer", "format_unknown", 0)
    yield Vector("format_newer_trailer", (newer + "}\n").encode(), "... and of another one", "format_unknown", 0)
    yield Vector(
        "requires_unknown",
        seal(header(requires='["time-travel"]', travel="1"), complete(1)),
        "a feature that this reader does not know, with a member of its own",
        "requires_unknown",
        0,
    )
    yield Vector("bom", b"\xef\xbb\xbf" + WHOLE, "a byte order mark", "bom", 0)
    yield Vector("crlf", WHOLE.replace(b"\n", b"\r\n"), "line endings changed by a checkout", "crlf", 0)
    yield Vector("crlf_one", b"".join([*LINES[:3], LINES[3][:-1] + b"\r\n", *LINES[4:]]), "... of one line", "crlf", 3)
    yield Vector(
        "lfs_pointer",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1\n",
        "a Git LFS pointer",
        "lfs_pointer",
        0,
    )
    merged = b"".join([*LINES[:2], b"<<<<<<< HEAD\n", *LINES[2:4], b"=======\n", LINES[2], b">>>>>>> x\n", *LINES[4:]])
    yield Vector("conflict_markers", merged, "a merge that was not ended", "conflict_markers", 2)
    yield Vector(
        "zero_filled_middle",
        b"".join([*LINES[:3], bytes(64) + b"\n", *LINES[4:]]),
        "a line of NULs",
        "zero_filled",
        3,
    )
    yield Vector("zero_filled_tail", WHOLE[:-200] + bytes(200), "the last block was never written", "zero_filled", 7)
    yield Vector("zero_filled_after", WHOLE + bytes(16), "NULs after a whole cassette", "zero_filled", 8)
    yield Vector(
        "line_too_long",
        one(f',"value":"{"x" * 2000}"'),
        "a line above the limit of the reader",
        "line_too_long",
        2,
        limits={"line_bytes_max": 1000},
    )
    yield Vector(
        "too_many_calls", WHOLE, "more calls than the reader's limit", "too_many_calls", 5, limits={"calls_max": 1}
    )
    yield Vector("final_newline_missing", WHOLE[:-1], "an editor took the last LF", "final_newline_missing", 7)
    yield Vector("tail_missing", without(7, 8), "no complete frame", "tail_missing", 7)
    yield Vector("torn", WHOLE[:-20], "cut inside the last frame", "torn", 7)
    yield Vector("torn_header", WHOLE[:20], "cut inside the first frame", "torn", 0)
    yield Vector("torn_before_newline", b"".join(LINES[:4])[:-1], "cut just before an LF", "torn", 3)
    yield Vector("partial_open", without(5, 8), "a recording that goes on", "not_published", 5, partial=True)
    yield Vector("partial_torn", WHOLE[:-200], "... and stopped inside a frame", "not_published", 7, partial=True)
    yield Vector("partial_damaged", LINES[0] + b"x" + LINES[1][1:], "a partial is checked too", "hash", 1, partial=True)
    yield Vector("after_complete_text", WHOLE + b"\n", "an empty line after the last frame", "after_complete", 8)
    yield Vector("after_complete_fragment", WHOLE + b"{", "... or the beginning of one", "after_complete", 8)
    yield Vector("after_complete_joined", WHOLE + WHOLE, "two cassettes in one file", "after_complete", 8)


def chained() -> Iterator[Vector]:
    last = LINES[6]
    for name, line, comment in (
        ("trailer_upper_case", last[:-67] + last[-67:-3].upper() + last[-3:], "the hash in capitals"),
        ("trailer_space", last.replace(b',"hash"', b', "hash"'), "a space in the trailer"),
        ("trailer_order", last[:-150] + last[-76:-2] + last[-150:-76] + b"}\n", "hash before prev"),
        ("trailer_more", last[:-2] + b',"x":1}\n', "a member after hash"),
        ("trailer_tail_space", last[:-1] + b" \n", "a space before the LF"),
    ):
        yield Vector(name, b"".join([*LINES[:6], line, LINES[7]]), comment, "trailer", 6)
    yield Vector(
        "trailer_empty_line", b"".join([*LINES[:3], b"\n", *LINES[3:]]), "an empty line between two", "trailer", 3
    )
    yield Vector("hash_value", WHOLE.replace(b'"z":1', b'"z":2'), "a value was edited", "hash", 6)
    yield Vector("hash_first", WHOLE.replace(b'"strict"', b'"causal"'), "the header was edited", "hash", 0)
    yield Vector("hash_last", WHOLE.replace(b'"rejected":0', b'"rejected":1'), "a count was edited", "hash", 7)
    yield Vector("hash_prev", WHOLE.replace(b'"prev":"' + b"0" * 64, b'"prev":"' + b"1" * 64), "prev edited", "hash", 0)
    yield Vector("hash_own", WHOLE[:-67] + b"0" * 64 + WHOLE[-3:], "the hash itself was edited", "hash", 7)
    yield Vector("hash_no_zero_byte", seal(*BASE, lead=b""), "hashed without the leading 0x00", "hash", 0)
    yield Vector("hash_merged_lines", b"".join(LINES[:3])[:-1] + b"K" + b"".join(LINES[3:]), "an LF lost", "hash", 2)
    yield Vector("hash_last_newline", WHOLE[:-1] + b"K", "the last LF became another byte", "hash", 7)
    yield Vector(
        "hash_before_link", without(2, 3).replace(b'"z":1', b'"z":2'), "a bad hash is named before a gap", "hash", 5
    )
    yield Vector("link_dropped", without(3, 4), "a frame is missing", "link", 3)
    yield Vector("link_dropped_header", without(0, 1), "the header is missing", "link", 0)
    yield Vector("link_doubled", b"".join([*LINES[:3], LINES[2], *LINES[3:]]), "a frame stands twice", "link", 3)
    yield Vector(
        "link_swapped", b"".join([*LINES[:2], LINES[3], LINES[2], *LINES[4:]]), "two frames changed places", "link", 2
    )
    yield Vector("link_genesis", seal(*BASE, genesis="1" * 64), "the header follows something", "link", 0)
    other = lines_of(seal(header(cassette='"ffffffffffffffffffffffffffffffff"'), *BASE[1:]))
    yield Vector("link_spliced", b"".join([*LINES[:4], *other[4:]]), "the tail of another cassette", "link", 4)
    yield Vector(
        "link_before_meaning",
        b"".join(lines_of(edited(2, '"chunk":0', '"chunk":1'))[:5] + LINES[6:]),
        "a gap is named before an earlier frame that means nothing",
        "link",
        5,
    )
    yield Vector("seq_wrong", edited(3, '"seq":3', '"seq":4'), "a frame with another number", "seq", 3)
    yield Vector("seq_header", edited(0, '"seq":0', '"seq":1'), "the header is frame 0", "seq", 0)


def heads() -> Iterator[Vector]:
    bidi = "\u202e"
    for name, frame, old, new, comment in (
        ("head_unknown_member", 6, '"at"', '"x":1,"at"', "a member that the format does not have"),
        ("head_missing_member", 6, ',"at":60', "", "a member is missing"),
        ("head_order", 6, '"call":1,"outcome":"ok"', '"outcome":"ok","call":1', "members in another order"),
        ("head_null", 5, ',"at"', ',"effect":null,"at"', "an unused member is absent, not null"),
        ("head_white_space", 6, '"call":1', '"call": 1', "white space"),
        ("head_number_text", 6, '"at":60', '"at":6e1', "a count in another spelling"),
        ("head_float", 6, '"at":60', '"at":60.0', "a count with a point"),
        ("head_negative", 6, '"at":60', '"at":-1', "a negative count"),
        ("head_count_large", 6, '"at":60', '"at":9007199254740992', "a count above 2^53 - 1"),
        ("head_true", 6, '"call":1', '"call":true', "true is no count"),
        ("head_duplicate", 6, '"call":1', '"call":0,"call":1', "a member twice"),
        ("head_escape", 5, '"tool":"sum"', '"tool":"\\u0073um"', "a needless escape"),
        ("head_raw_bidi", 5, '"tool":"sum"', f'"tool":"{bidi}sum"', "a raw bidi control"),
        ("head_second_prev", 6, ',"value"', f',"prev":"{"0" * 64}","value"', "a second prev before the bulk members"),
        ("head_kind", 6, "call/result", "call/end", "a kind that the format does not have"),
        ("head_outcome", 6, '"ok"', '"fine"', "an outcome that the format does not have"),
        ("head_boundary", 5, '"boundary":"tool"', '"boundary":"http"', "a boundary that the format does not have"),
        ("head_tool_empty", 5, '"tool":"sum"', '"tool":""', "an empty name"),
        ("head_path_number", 5, '"path":[]', '"path":[1]', "a segment that is no string"),
        ("head_cassette_upper", 0, "0a0b0c0d0e0f", "0A0B0C0D0E0F", "an id in capitals"),
        ("head_cassette_long", 0, '0e0f"', '0e0f\\n"', "an id with a LF after it"),
        ("head_created", 0, ".678901Z", "Z", "a moment without microseconds"),
        ("head_created_zone", 0, "901Z", "901+00:00", "a moment not in Z"),
        ("head_order_unknown", 0, '"strict"', '"loose"', "an order that the format does not have"),
        ("head_from_null", 0, '"rules":[]', '"rules":[],"from":null', "an unused member is absent, not null"),
        ("head_phase", 6, '"at"', '"phase":"later","at"', "a phase that the format does not have"),
    ):
        yield Vector(name, edited(frame, old, new), comment, "head", frame)
    yield Vector("head_depth", edited(5, '"path":[]', '"path":[[["a"]]]'), "a head of arrays", "too_deep", 5)
    for name, frame, old, new, comment in (
        ("members_ok_without_value", 6, ',"value":{"z":1,"a":2}', "", "a plain result has a value"),
        ("members_ok_with_error", 6, '"value":{"z":1,"a":2}', '"error":{"type":"a","message":""}', "ok is no error"),
        ("members_stream_with_value", 4, '"at":40', '"at":40,"value":1', "a stream's result has no value"),
        ("members_start_without_args", 5, ',"args":{"a":1,"b":[2.5,null]}', "", "a start has arguments"),
        ("members_chunk_without_value", 3, ',"value":"and wet"', "", "a chunk has a value"),
        ("members_phase_ok", 6, '"ok"', '"ok","phase":"before_body"', "only a cancellation has a phase"),
        ("members_left_early_plain", 6, '"ok"', '"left_early"', "only a stream is left early"),
        ("members_cancelled_value", 6, '"ok"', '"cancelled"', "a cancelled call has no value"),
        ("members_error_value", 6, '"ok"', '"error"', "a failed call has an error and no value"),
        ("members_header_bulk", 0, '"rules":[]', '"rules":[],"enc":1', "a header without features has no enc"),
        ("members_stream_error", 4, '"at":40', '"at":40,"error":{"type":"a","message":""}', "ok is no error"),
        ("members_contexts_first", 6, '"value":{"z":1,"a":2}', '"contexts":[]', "contexts alone is no result"),
        ("members_error_number", 6, '"ok","at":60,"value":{"z":1,"a":2}', '"cancelled","at":60,"error":1',
         "an error that is no object"),
    ):  # fmt: skip
        yield Vector(name, edited(frame, old, new), comment, "members", frame)
    for name, frame, old, new, comment in (
        ("members_value_and_error", 6, '"a":2}', '"a":2},"error":{"type":"a","message":""}', "a value and an error"),
        ("members_enc", 6, '"a":2}', '"a":2},"enc":1', "enc needs a feature that requires names"),
        ("members_args_array", 5, '{"a":1,"b":[2.5,null]}', "[]", "arguments are an object"),
        ("members_contexts_object", 6, '"a":2}', '"a":2},"contexts":{}', "contexts is an array"),
        ("members_meta_array", 6, '"a":2}', '"a":2},"meta":[]', "meta is an object"),
    ):
        yield Vector(name, edited(frame, old, new), comment, deep=("members", frame))
    for name, body, comment in (
        ("members_error_unknown", '{"type":"a","message":"","x":1}', "an error with a member that is unknown"),
        ("members_error_order", '{"message":"","type":"a"}', "an error with its members in another order"),
        ("members_error_type", '{"type":1,"message":""}', "an error whose type is no string"),
    ):
        yield Vector(name, one(f',"error":{body}', outcome="error"), comment, deep=("members", 2))


def bulks() -> Iterator[Vector]:
    for name, value, comment in (
        ("bulk_duplicate_key", '{"a":1,"a":2}', "a key twice"),
        ("bulk_white_space", '{"a": 1}', "white space"),
        ("bulk_needless_escape", '"\\u0041"', "an escape that is not needed"),
        ("bulk_solidus", '"\\/"', "... and another"),
        ("bulk_escape_case", '"\\u001F"', "an escape in capitals"),
        ("bulk_long_escape", '"\\u000a"', "an escape that has a short form"),
        ("bulk_raw_bidi", '"\u202e"', "a raw bidi control"),
        ("bulk_raw_c1", '"\u009b"', "a raw C1 control: it starts a terminal sequence"),
        ("bulk_raw_tag", '"\U000e0041"', "a raw tag character"),
        ("bulk_astral_escape", '"\\ud83d\\ude00"', "a character escaped that stands raw"),
        ("bulk_lone_surrogate", '"\\ud800"', "half a surrogate pair"),
        ("bulk_number_zero", "1.50", "a zero that says nothing"),
        ("bulk_number_exponent", "1E16", "an exponent in capitals"),
        ("bulk_number_plus", "1e+21", "an exponent with plus"),
        ("bulk_number_plain", "0.000001", "a float that has exponent form"),
        ("bulk_number_minus_zero", "-0", "there is one integer zero"),
        ("bulk_number_range", "1e400", "a float that no double holds"),
        ("bulk_number_digits", "9" * 1001, "a bare integer that is too long"),
        ("bulk_nan", "NaN", "not JSON"),
        ("bulk_comma", "[1,]", "not JSON either"),
        ("bulk_call_again", '{},"call":99', "a head member again, behind the bulk: readers differ in which they take"),
        ("bulk_prev_again", f'{{}},"prev":"{"0" * 64}"', "a second prev behind the bulk"),
        ("bulk_value_again", '1,"value":2', "a bulk member twice"),
        ("bulk_order", '1,"meta":{},"contexts":[]', "bulk members in another order"),
    ):
        yield Vector(name, one(f',"value":{value}'), comment, deep=("bulk", 2))
    yield Vector(
        "bulk_utf8", seal(header(), start(1), result(2, ',"value":"').encode() + b'\xff"', complete(3, ok=1)),
        "bytes that are no UTF-8", deep=("bulk", 2),
    )  # fmt: skip
    yield Vector("bulk_args_unsorted", one(args='{"b":1,"a":2}'), "arguments out of order", deep=("bulk", 1))
    yield Vector("bulk_args_unsorted_deep", one(args='{"a":{"b":1,"a":2}}'), "... one level down", deep=("bulk", 1))
    yield Vector(
        "bulk_args_utf16_order",
        one(args='{"😀":6,"\ue000":5}'),
        "keys in the order of UTF-16 units, not of code points",
        deep=("bulk", 1),
    )
    yield Vector("bulk_depth", one(f',"value":{"[" * 129}{"]" * 129}'), "one level too deep", deep=("too_deep", 2))
    mixed = '{"a":[' * 64 + "[]" + "]}" * 64
    yield Vector(
        "bulk_depth_mixed", one(f',"value":{mixed}'), "... of arrays and objects in turn", deep=("too_deep", 2)
    )


def sentences() -> Iterator[Vector]:
    head, end, last = header(), result(2), complete(4, ok=1)
    first = chunk(2, 0, "1")
    below = '["a","out:0123456789abcdef#0","b"]'
    nested = start(1, tool="out", path='["a"]'), start(2, 1, path=below), last
    later = start(1, path=below), end, start(3, 1, tool="out", path='["a"]'), last
    escaped = start(1, tool="a/b", path="[]"), start(2, 1, path='["a%2Fb:0123456789abcdef#1"]'), last
    yield Vector("header_missing", seal(start(0), result(1), complete(2, ok=1)), "no header", "header_missing", 0)
    yield Vector(
        "header_repeated",
        seal(head, header(seq="1"), complete(2)),
        "a second header",
        "header_repeated",
        1,
    )
    for name, reason, frame, bodies, comment in (
        ("call_number_first", "call_number", 1, (start(1, 1), complete(2)), "the first call is 0"),
        ("call_number_again", "call_number", 3, (start(1), end, start(3, 0), last), "a number used twice"),
        ("call_number_running", "call_number", 2, (start(1), start(2, 0), complete(3, ok=1)), "a call starts twice"),
        ("nested", "nested", 2, nested, "a call below a recorded one that is running"),
        ("nested_later", "nested", 3, later, "... or comes later"),
        ("nested_escaped", "nested", 2, escaped, "... whose name is escaped in the path"),
        ("call_number_gap", "call_number", 3, (start(1), end, start(3, 2), last), "a number left out"),
        ("call_unknown_chunk", "call_unknown", 1, (chunk(1, 0, "1"), complete(2)), "a chunk of no call"),
        ("call_unknown_result", "call_unknown", 1, (result(1), complete(2)), "a result of no call"),
        ("call_ended_chunk", "call_ended", 3, (start(1), end, chunk(3, 0, "1"), last), "a chunk too late"),
        ("call_ended_result", "call_ended", 3, (start(1), end, result(3), last), "a second result"),
        ("chunk_number_first", "chunk_number", 2, (start(1), chunk(2, 1, "1"), complete(3)), "chunks count from 0"),
        ("chunk_number_again", "chunk_number", 3, (start(1), first, chunk(3, 0, "1"), complete(4)), "twice"),
        ("chunk_count_more", "chunk_count", 2, (start(1), result(2, "", how=STREAM), complete(3, ok=1)), "chunks lost"),
        ("chunk_count_less", "chunk_count", 3, (start(1), first, result(3, "", how=',"chunks":0'), last), "too many"),
        ("chunk_count_plain", "chunk_count", 3, (start(1), first, result(3), last), "a plain result of a stream"),
        ("call_open", "call_open", 2, (start(1), complete(2, ok=1)), "a call without an end"),
        ("counts_calls", "counts", 1, (complete(1, ok=1),), "a call that is not there"),
        ("counts_frames", "counts", 1, (complete(1).replace('"frames":2', '"frames":1'),), "the last frame counts too"),
        ("counts_outcome", "counts", 3, (start(1), end, complete(3, error=1)), "another outcome"),
        ("after_complete_frame", "after_complete", 2, (complete(1), start(2)), "a frame that follows the last one"),
        ("after_complete_complete", "after_complete", 2, (complete(1), complete(2)), "a second last frame"),
    ):  # fmt: skip
        yield Vector(name, seal(head, *bodies), comment, reason, frame)


def groups() -> tuple[Iterator[Vector], ...]:
    """All of them, in the order of ``vectors.json``."""
    return files(), chained(), heads(), bulks(), sentences()
