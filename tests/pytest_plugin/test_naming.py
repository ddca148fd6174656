"""Names of cassettes: safe, unique, stable, and inside their folder, whatever a test is called."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolcassette.pytest_plugin.naming import SUFFIX, safe_name

NAMES = st.text(max_size=200) | st.text("abAB.-_/\\:0", max_size=90)
HARD = [
    "foo/bar", "/foo", "../../bar", "..", ".", "C:\\x", "a:b*c?",
    "CON", "con", "con.x", "Nul.test", "com1", "A", "a", "",
    "x" * 400, "x" * 300 + "a", "x" * 300 + "b", "\u00e9", "e\u0301", "-rf", ".hidden", "end.", "end ", "\ud800", "\0",
    "test_x[a]", "test_x[A]", "test_x-a", "TestA.test_x", "Testa.test_x", "test_a-0123456789ab",
]  # fmt: skip


def is_safe(name: str) -> bool:
    device = re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)", name.partition(".")[0].lower())
    return bool(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name)) and not name.endswith(".") and not device


@given(NAMES)
@example("")
def test_a_name_is_safe_everywhere_short_and_stable(name: str) -> None:
    made = safe_name(name)
    assert is_safe(made)
    assert len((made + SUFFIX + ".partial.0123abcd").encode()) <= 120
    assert safe_name(name) == made


@given(NAMES, NAMES)
@example("test_a-0123456789ab", "test_a")
def test_two_names_never_meet_not_even_lower_cased(one: str, other: str) -> None:
    assert one == other or safe_name(one).lower() != safe_name(other).lower()


def test_hard_names_are_all_apart() -> None:
    made = [safe_name(name) for name in HARD]
    assert all(map(is_safe, made)), made
    assert len({name.lower() for name in made}) == len(HARD)


@pytest.mark.parametrize("name", ["test_weather", "test_a.b", "_x", "x" * 80])
def test_plain_names_are_kept(name: str) -> None:
    assert safe_name(name) == name


def test_a_made_name_is_never_kept_as_it_is() -> None:
    made = safe_name("test_x[a]")
    assert re.fullmatch(r"test_x-a-[0-9a-f]{12}", made)
    assert safe_name(made) != made


def test_names_are_what_they_were() -> None:
    # A changed rule would orphan every cassette of every user.
    assert safe_name("TestWeather.test_ok") == "TestWeather.test_ok-fc0d6497a13a"
    assert safe_name("test_x[a/b]") == "test_x-a-b-804c36691a63"
    assert safe_name("CON") == "_CON-a3dbc4b644a9"
