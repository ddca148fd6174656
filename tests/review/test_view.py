"""`view`: one scalar a line, the same text everywhere, no ids and times."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.review.helpers import call, cassette, city
from tests.review.test_compare import SMALL
from toolcassette import canonical_json
from toolcassette.view import view

STREAM = call("tokens", value=None, chunks=(b'"a\\nb"', b"2"), outcome="left_early")
FAILED = call("clock", path=("team", "r:1"), value=None, outcome="error", error=b'{"type":"E","message":"late"}')
NESTED = call(
    args=b'{"a b":[],"tags":["x",["y",{"z":null}]]}', value=b'{"d":1.0,"rows":[{"n":1},{}]}', omitted=("conn",)
)

TEXT = """\
# Cassette

Made by `toolcassette view`, not to be edited.

    include:
      - "*"
    order: "strict"

## `weather`

    tool: "weather"
    path: []
    omitted:
      - "conn"
    args:
      "a b": []
      tags:
        - "x"
        -
          - "y"
          -
            z: null
    outcome: "ok"
    value:
      d: 1.0
      rows:
        -
          n: 1
        - {}

## `tokens`

    tool: "tokens"
    path: []
    args: {}
    outcome: "left_early"
    chunks:
      - "a\\nb"
      - 2

## `clock`

    tool: "clock"
    path:
      - "team"
      - "r:1"
    args: {}
    outcome: "error"
    error:
      type: "E"
      message: "late"
"""


def test_the_text():
    assert view(cassette(NESTED, STREAM, FAILED)) == TEXT


def test_an_empty_cassette():
    assert view(cassette()).endswith('    order: "strict"\n')


def test_no_id_no_time_no_hash_no_number():
    text = view(cassette(city("Wuhan")))
    late = city("Wuhan", started_at=777, ended_at=888)
    assert view(cassette(late, cassette="cd" * 16, created="2027-01-02T03:04:05.000000Z", producer="other")) == text


def test_a_call_in_front_changes_no_line_of_the_others():
    before, after = view(cassette(city("Wuhan"))).split("\n"), view(cassette(city("Oslo"), city("Wuhan"))).split("\n")
    assert after[-len(before) + 8 :] == before[8:]


HOSTILE = (
    "\x1b[31mred\x07\x7f\x9b2J",
    "\u202eevil\u200b\ufeff\u2066",
    "a\nb\r\u2028c\u2029d\x0b\x0c\x1c\x85",
    "```\n</pre><script>alert(1)</script>\n# title\n| x |",
    "\n\n    - item\n",
    "`` ` ``",
    "@team #1 https://example.org ![x](y)",
    "\U000e0041tag",
)
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_of_a_file_is_markup_or_reaches_a_terminal_raw(text):
    spelled = canonical_json(text)
    hostile = call(
        text,
        args=canonical_json({text: text}),
        value=canonical_json([{text: [text]}]),
        path=(text,),
        omitted=(text,),
        meta=canonical_json({text: 1}),
    )
    shown = view(cassette(hostile, include=[text]))
    assert not UNSAFE.search(shown)
    ours = {"# Cassette", "Made by `toolcassette view`, not to be edited.", "## call", ""}
    assert {line for line in shown.split("\n") if not line.startswith("    ")} == ours
    assert all(line.strip() for line in shown.split("\n") if line)  # no line of a block looks empty: it would end it
    assert spelled.decode() in shown


@pytest.mark.parametrize("tool", ["a", "db.query", "mcp__read", "a/b:c-1"])
def test_plain_names_are_in_the_heading(tool):
    assert f"\n## `{tool}`\n" in view(cassette(call(tool)))


@settings(max_examples=150, deadline=None)
@given(st.lists(SMALL, max_size=4), st.lists(SMALL, max_size=4))
def test_two_texts_are_equal_exactly_if_the_calls_are(old, new):
    timeless = [[one._replace(started_at=0, ended_at=0) for one in calls] for calls in (old, new)]
    assert (view(cassette(*old)) == view(cassette(*new))) == (timeless[0] == timeless[1])


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(TREES, TREES)
def test_two_values_never_look_alike(one, other):
    a, b = canonical_json(one), canonical_json(other)
    shown = [view(cassette(call(value=value))) for value in (a, b)]
    assert (shown[0] == shown[1]) == (a == b)
    assert not UNSAFE.search(shown[0])
