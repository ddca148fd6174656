"""`tc.diff`: which calls differ, and where; and that nothing which counts is missed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolcassette as tc
from tests.review.helpers import SECRET, call, cassette, cassette_bytes, city
from toolcassette.format import RecordedOutcome, Writer

W, P, R = city("Wuhan"), city("Paris", "rain"), city("Rome")


def found(old, new):
    """(kind, tool, old call, new call, reordered, [(JSON path, kind)]) of each change."""
    return [
        (
            change.kind,
            change.tool,
            None if change.old is None else change.old.call,
            None if change.new is None else change.new.call,
            change.reordered,
            [(difference.json_path, difference.kind) for difference in change.differs],
        )
        for change in tc.diff(cassette(*old), cassette(*new)).calls
    ]


def test_the_same_but_for_id_and_times():
    late = [one._replace(started_at=100 + n, ended_at=200 + n) for n, one in enumerate((W, P))]
    diff = tc.diff(cassette(W, P), cassette(*late, cassette="cd" * 16, created="2027-01-02T03:04:05.000000Z"))
    assert diff.same
    assert (diff.calls, diff.header, diff.interleaving, diff.unchanged) == ((), (), False, 2)


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ([W], [W, P], [("added", "weather", None, 1, False, [])]),
        ([W, P], [P], [("removed", "weather", 0, None, False, [])]),
        ([W, P, R], [W, R], [("removed", "weather", 1, None, False, [])]),
        ([W], [city("Wuhan", "rain")], [("changed", "weather", 0, 0, False, [("$.value.sky", "changed")])]),
        ([W], [P], [("changed", "weather", 0, 0, False, [("$.args.city", "changed"), ("$.value.sky", "changed")])]),
        ([W, P, R], [R, W, P], [("reordered", "weather", 2, 0, True, [])]),
        (
            [W, P],
            [P, city("Wuhan", "fog")],
            [("changed", "weather", 0, 1, True, [("$.value.sky", "changed")])],
        ),
        (
            [W, P],
            [W._replace(path=("a",)), P],
            [("changed", "weather", 0, 0, False, [("$.path[0]", "added")])],
        ),
        ([W], [call("clock")], [("added", "clock", None, 0, False, []), ("removed", "weather", 0, None, False, [])]),
        (
            [W._replace(boundary="model")],
            [W],
            [("added", "weather", None, 0, False, []), ("removed", "weather", 0, None, False, [])],
        ),
    ],
)
def test_changes_of_calls(old, new, changes):
    assert sorted(found(old, new), key=str) == sorted(changes, key=str)


def test_repeated_calls_are_paired_by_their_outcome():
    poll = [call("poll", value=b'"%s"' % state) for state in (b"wait", b"wait", b"done")]
    more = [poll[0], *poll]
    assert [(kind, new) for kind, _, _, new, _, _ in found(poll, more)] in ([("added", 0)], [("added", 1)])
    assert [(kind, old) for kind, _, old, *_ in found(more, poll)] in ([("removed", 0)], [("removed", 1)])


def test_the_nearest_arguments_are_paired():
    old = [call(args=b'{"a":%d,"b":%d,"c":0}' % (n, n)) for n in (1, 2, 3)]
    new = [call(args=b'{"a":%d,"b":%d,"c":1}' % (n, n)) for n in (2, 3)]
    where = [("$.args.c", "changed")]
    assert found(old, new) == [
        ("removed", "weather", 0, None, False, []),
        ("changed", "weather", 1, 0, False, where),
        ("changed", "weather", 2, 1, False, where),
    ]


def test_where_all_are_as_near_the_one_in_the_same_place_is_paired():
    changes = found([W, P, R], [city("Oslo"), city("Bern"), city("Kyiv")])
    assert [(old, new, moved) for _, _, old, new, moved, _ in changes] == [(0, 0, False), (1, 1, False), (2, 2, False)]


def test_a_removed_call_is_told_where_it_stood():
    assert [kind for kind, *_ in found([W, call("gone"), P], [city("Wuhan", "x"), city("Paris", "y")])] == [
        "changed",
        "removed",
        "changed",
    ]


def test_places_have_path_and_ordinal():
    (change,) = tc.diff(cassette(W, P._replace(path=("a",))), cassette(W, R, P._replace(path=("a",)))).calls
    assert (change.old, change.new) == (None, (1, (), 1))
    diff = tc.diff(cassette(W._replace(path=("r",))), cassette(P, W))
    assert [(change.old, change.new) for change in diff.calls if change.kind == "changed"] == [
        ((0, ("r",), 0), (1, (), 1))
    ]


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        (b"1", b"1.0", [("$.value", "changed")]),
        (b"0.0", b"-0.0", [("$.value", "changed")]),
        (b"1", b"true", [("$.value", "changed")]),
        (b"1", b'"1"', [("$.value", "changed")]),
        (b"null", b"{}", [("$.value", "changed")]),
        (b'{"a":1}', b'{"a":1,"b":null}', [("$.value.b", "added")]),
        (b'{"a":1,"b":2}', b'{"b":2,"a":1}', [("$.value", "reordered")]),
        (b'{"a":1,"b":2}', b'{"c":0,"a":1}', [("$.value.b", "removed"), ("$.value.c", "added")]),
        (b"[1,2,3]", b"[1,9,3]", [("$.value[1]", "changed")]),
        (b"[1,2,3]", b"[0,1,2,3]", [("$.value[0]", "added")]),
        (b"[1,2,3]", b"[1,3]", [("$.value[1]", "removed")]),
        (b"[1,2,3]", b"[1,2,3,4]", [("$.value[3]", "added")]),
        (b"[[1,2]]", b"[[1,2,3],4]", [("$.value[0][2]", "added"), ("$.value[1]", "added")]),
        (b"[]", b"[null]", [("$.value[0]", "added")]),
        (b'{"a b":1}', b'{"a b":2}', [('$.value["a b"]', "changed")]),
        (b'{"$tc":"bytes","v":"AA=="}', b'{"$tc":"bytes","v":"AQ=="}', [("$.value", "changed")]),
        (b'{"$tc":"tuple","v":[1,2]}', b"[1,2]", [("$.value", "changed")]),
    ],
)
def test_json_paths(old, new, where):
    assert found([call(value=old)], [call(value=new)]) == [("changed", "weather", 0, 0, False, where)]


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ({"chunks": (b"1", b"2"), "value": None}, {"chunks": (b"1", b"3"), "value": None}, ["$.chunks[1]"]),
        ({}, {"outcome": "cancelled", "value": None}, ["$.outcome", "$.value"]),
        (
            {"outcome": "cancelled", "value": None},
            {"outcome": "cancelled", "value": None, "phase": "before_body"},
            ["$.phase"],
        ),
        (
            {"outcome": "error", "value": None, "error": b'{"type":"E","message":"a"}'},
            {"outcome": "error", "value": None, "error": b'{"type":"E","message":"b"}'},
            ["$.error.message"],
        ),
        ({"omitted": ("conn",)}, {}, ["$.omitted"]),
        ({}, {"effect": "read"}, ["$.effect"]),
        ({"meta": b'{"a":1}'}, {"meta": b'{"a":2}'}, ["$.meta.a"]),
    ],
)
def test_every_member_of_a_call_counts(old, new, where):
    a, b = call()._replace(**old), call()._replace(**new)
    ((kind, *_, differs),) = found([a], [b])
    assert (kind, [path for path, _ in differs]) == ("changed", where)


def test_the_header_counts():
    diff = tc.diff(cassette(W), cassette(W, include=["weather"], order="any"))
    assert [d.json_path for d in diff.header] == ["$.header.include[0]", "$.header.order"]
    assert (diff.same, diff.calls) == (False, ())


def overlapping(*events):
    """A cassette whose calls start and end as told: `a` starts a call of tool a, `A` ends it."""
    writer = Writer()
    lines = [
        writer.header(
            cassette="ab" * 16,
            created="2026-01-02T03:04:05.000000Z",
            producer="test",
            include=["*"],
            order="strict",
            sync="none",
        )
    ]
    numbers: dict[str, int] = {}
    for event in events:
        if event.islower():
            numbers[event] = len(numbers)
            lines.append(writer.start(tool=event, args=b"{}", at=0, path=(event,)))
        else:
            outcome = RecordedOutcome("ok", 0, b"1")
            lines.append(writer.result(numbers[event.lower()], outcome))
    return tc.parse_cassette(b"".join([*lines, writer.complete()]))


def test_another_order_of_endings_is_a_difference():
    diff = tc.diff(overlapping(*"abAB"), overlapping(*"abBA"))
    assert (diff.interleaving, diff.calls, diff.same) == (True, (), False)
    assert tc.diff(overlapping(*"abAB"), overlapping(*"baAB")).interleaving
    assert tc.diff(overlapping(*"abAB"), overlapping(*"abAB")).same


def test_files_cassettes_and_nothing(tmp_path):
    file = tmp_path / "a.cassette.jsonl"
    file.write_bytes(cassette_bytes(W))
    assert tc.diff(file, str(file)).same
    assert tc.diff(cassette(W), file).same
    added = tc.diff(None, file)
    assert (added.only, added.same, [c.kind for c in added.calls]) == ("new", False, ["added"])
    empty = tc.diff(cassette(), None)
    assert (empty.only, empty.same, empty.calls) == ("old", False, ())
    assert tc.diff(None, None).same
    file.write_bytes(cassette_bytes(W)[:-5])
    with pytest.raises(tc.FormatError, match="torn"):
        tc.diff(file, cassette(W))
    with pytest.raises(tc.FormatError, match="absent"):
        tc.diff(cassette(W), tmp_path / "b.cassette.jsonl")


def test_values_are_in_the_data_and_not_in_the_repr():
    diff = tc.diff(cassette(W), cassette(city("Wuhan", SECRET)))
    (difference,) = diff.calls[0].differs
    assert (difference.old, difference.new) == (b'"sun"', b'"%s"' % SECRET.encode())
    assert SECRET not in repr(diff)
    assert SECRET not in repr(tc.diff(cassette(city("Wuhan", SECRET)), cassette(W)))
    assert "$.value.sky" in repr(diff)


def test_counts():
    diff = tc.diff(cassette(W, P, R, call("gone")), cassette(R, W, city("Paris", "x"), call("new"), call("new")))
    assert diff.counts == {"changed": 1, "added": 2, "removed": 1, "reordered": 1}
    assert (diff.old_calls, diff.new_calls, diff.unchanged) == (4, 5, 1)


SMALL = st.builds(
    call,
    st.sampled_from("ab"),
    st.sampled_from([b"{}", b'{"x":1}', b'{"x":2}', b'{"x":[1,2]}', b'{"x":[1,3,2]}']),
    st.sampled_from([b"1", b"1.0", b'{"a":1,"b":2}', b'{"b":2,"a":1}', b"[1,2]", b"[2]", b"null"]),
    path=st.sampled_from([(), ("s",), ("s", "t")]),
    boundary=st.sampled_from(["tool", "model"]),
    started_at=st.integers(0, 3),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(SMALL, max_size=5), st.lists(SMALL, max_size=5))
def test_same_means_that_the_content_is_equal(old, new):
    a, b = cassette(*old), cassette(*new)
    assert tc.diff(a, b).same == (a.content() == b.content())


@settings(max_examples=150, deadline=None)
@given(st.lists(SMALL, max_size=6), st.lists(SMALL, max_size=6))
def test_every_call_is_accounted_for_once(old, new):
    diff = tc.diff(cassette(*old), cassette(*new))
    counts = diff.counts
    assert diff.old_calls == len(old) == diff.unchanged + counts["changed"] + counts["reordered"] + counts["removed"]
    assert diff.new_calls == len(new) == diff.unchanged + counts["changed"] + counts["reordered"] + counts["added"]
    for side in ("old", "new"):
        numbers = [place.call for change in diff.calls if (place := getattr(change, side)) is not None]
        assert len(numbers) == len(set(numbers))


@settings(max_examples=100, deadline=None)
@given(st.lists(SMALL, max_size=6), st.lists(SMALL, max_size=6))
def test_the_other_way_round_is_the_mirror_image(old, new):
    there, back = tc.diff(cassette(*old), cassette(*new)), tc.diff(cassette(*new), cassette(*old))
    assert there.same == back.same
    assert there.interleaving == back.interleaving
    assert there.counts["added"] - there.counts["removed"] == back.counts["removed"] - back.counts["added"]


def test_thousands_of_calls_take_seconds_at_most():
    calls = [call(args=b'{"n":%d}' % n) for n in range(3000)]
    shuffled = calls[:]
    random.Random(7).shuffle(shuffled)
    diff = tc.diff(cassette(*calls), cassette(*shuffled, call("poll")))
    assert diff.counts["changed"] == diff.counts["removed"] == 0
    polls = [call("poll", value=b"%d" % n) for n in range(3000)]
    assert tc.diff(cassette(*polls), cassette(*polls[1:])).counts["removed"] == 1
