"""Which names an include list selects: a table, an independent oracle, and the time it takes."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcassette.engine import Selection, glob_matches

TABLE = [
    ("a", "a", True),
    ("a", "ab", False),
    ("a", "A", False),
    ("a", "", False),
    ("*", "", True),
    ("*", "anything at all\nwith a newline", True),
    ("a*", "a", True),
    ("a*", "ba", False),
    ("*a", "ba", True),
    ("*a", "ab", False),
    ("a*b", "ab", True),
    ("a*b", "a", False),
    ("ab*ba", "aba", False),  # head and tail may not share a character
    ("ab*ba", "abba", True),
    ("a*b*c", "aXbYc", True),
    ("a*b*c", "acb", False),
    ("a**c", "abc", True),
    ("*ab*ab*", "abab", True),
    ("*ab*ab*", "aba", False),
    ("mcp_*_read", "mcp_files_read", True),
    ("mcp_*_read", "mcp_read", False),
    ("a?", "ab", False),  # only the star is special
    ("a?", "a?", True),
    ("[ab]", "a", False),
    ("a.c", "abc", False),
    ("\\*", "\\x", True),
    ("é*", "école", True),
]


@pytest.mark.parametrize(("pattern", "name", "expected"), TABLE)
def test_glob_table(pattern, name, expected):
    assert glob_matches(pattern, name) is expected


@given(st.text("ab*.", max_size=8), st.text("ab.\n", max_size=8))
def test_glob_agrees_with_a_regular_expression(pattern, name):
    oracle = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
    assert glob_matches(pattern, name) is (oracle.fullmatch(name) is not None)


def test_glob_takes_linear_time():
    pattern = "*a" * 50 + "*b"
    began = time.perf_counter()
    assert not glob_matches(pattern, "a" * 100_000)
    assert time.perf_counter() - began < 1.0  # a backtracking matcher would not end


@pytest.mark.parametrize(
    ("patterns", "words"),
    [
        ([], "at least one"),
        ([""], "empty pattern"),
        (["a", ""], "empty pattern"),
        (["a", "b", "a"], "twice"),
        ("weather", "not one string"),
        ([1], "empty pattern"),
    ],
)
def test_a_bad_include_is_refused_at_once(patterns, words):
    with pytest.raises(ValueError, match=words):
        Selection(patterns)


def test_an_iterator_is_read_once():
    assert Selection(p for p in ("a", "b")).patterns == ("a", "b")


def test_patterns_that_selected_nothing_are_known_at_the_end():
    selection = Selection(["a", "b*", "c*"])
    assert selection.unused() == ("a", "b*", "c*")
    assert selection.selects("bat")
    assert not selection.selects("zoo")
    assert selection.selects("bat")
    assert selection.unused() == ("a", "c*")


def test_every_pattern_that_fits_counts_as_used():
    selection = Selection(["cat", "c*"])
    assert selection.selects("cat")
    assert selection.unused() == ()
