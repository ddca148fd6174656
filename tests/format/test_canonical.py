"""One value, one spelling: the text of numbers and strings against the rules of FORMAT.md section 4, written anew."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import clean_text, finite, json_trees, same
from toolcassette.errors import FormatError
from toolcassette.format import DEPTH_MAX, INT_DIGITS_MAX, decode_tree, encode_tree
from toolcassette.format.canonical import depth_exceeds

SHORT = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 0x22: '\\"', 0x5C: "\\\\"}
PASS = (
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x61C, 0x61C),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0xE0000, 0xE007F),
)


def spelled(char: str) -> str:
    """A character inside a string, by FORMAT.md 4.3."""
    point = ord(char)
    if point in SHORT:
        return SHORT[point]
    if point < 0x20 or any(low <= point <= high for low, high in PASS):
        units = char.encode("utf-16-be")
        return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
    return char


def number_text(number: float) -> str:
    """A float, by FORMAT.md 4.2, from the shortest digits that Python knows."""
    sign, text = ("-", repr(number)[1:]) if repr(number).startswith("-") else ("", repr(number))
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0").rstrip("0")
    if not digits:
        return sign + "0.0"
    exponent = int(power or 0) + len(whole) - 1 - (len(whole + fraction) - len((whole + fraction).lstrip("0")))
    if not -5 <= exponent < 16:
        return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    digits = digits.ljust(exponent + 1, "0")
    return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :] or '0'}"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (0.1, "0.1"),
        (1e-5, "0.00001"),
        (1.234e-5, "0.00001234"),
        (9.999e-6, "9.999e-6"),
        (1e-6, "1e-6"),
        (-1.5e-7, "-1.5e-7"),
        (1e15, "1000000000000000.0"),
        (9999999999999998.0, "9999999999999998.0"),
        (1e16, "1e16"),
        (1.2345678901234568e16, "1.2345678901234568e16"),
        (1e21, "1e21"),
        (1e22, "1e22"),
        (5e-324, "5e-324"),
        (sys.float_info.min, "2.2250738585072014e-308"),
        (sys.float_info.max, "1.7976931348623157e308"),
        (2**53 + 1, "9007199254740993"),
        (1, "1"),
        (True, "true"),
    ],
)
def test_number_text_is_pinned(number: Any, text: str) -> None:
    assert encode_tree(number, sort=False) == text.encode()
    assert same(decode_tree(text.encode()), number)


@given(finite | st.builds(lambda m, e: m * 10.0**e, st.floats(1, 10), st.integers(-25, 25)))
def test_number_text_is_what_the_specification_says(number: float) -> None:
    assert encode_tree(number, sort=False).decode() == number_text(number)


def test_every_character_is_spelled_as_the_specification_says() -> None:
    points = [p for p in range(sys.maxunicode + 1) if not 0xD800 <= p <= 0xDFFF]
    text = "".join(map(chr, points))
    assert encode_tree(text, sort=False).decode() == '"' + "".join(map(spelled, text)) + '"'
    assert decode_tree(encode_tree(text, sort=False)) == text


@given(json_trees(), st.booleans())
def test_trees_round_trip(tree: Any, sort: bool) -> None:
    data = encode_tree(tree, sort=sort)
    back = decode_tree(data, sort=sort)
    assert back == tree if sort else same(back, tree)
    assert encode_tree(back, sort=sort) == data


@given(st.dictionaries(clean_text, st.integers()))
def test_keys_are_sorted_by_code_point(tree: dict[str, Any]) -> None:
    assert list(decode_tree(encode_tree(tree, sort=True), sort=True)) == sorted(tree)


ODD = {
    "duplicate key": b'{"a":1,"a":2}',
    "space": b'{"a": 1}',
    "leading space": b" 1",
    "trailing newline": b"1\n",
    "needless escape": b'"\\u0041"',
    "escape in capitals": b'"\\u001F"',
    "long escape": b'"\\u000a"',
    "solidus": b'"\\/"',
    "raw bidi": '"\u202e"'.encode(),
    "raw C1": '"\u009b"'.encode(),
    "raw DEL": b'"\x7f"',
    "raw tag character": '"\U000e0041"'.encode(),
    "escaped astral": b'"\\ud83d\\ude00"',
    "lone surrogate": b'"\\ud800"',
    "encoded surrogate": b'"\xed\xa0\x80"',
    "not UTF-8": b'"\xff"',
    "trailing zero": b"1.50",
    "exponent": b"1E16",
    "plus": b"1e+21",
    "padded exponent": b"1e021",
    "minus zero": b"-0",
    "leading zero": b"01",
    "positional below": b"0.000001",
    "positional above": b"10000000000000000.0",
    "underflow": b"1e-400",
    "overflow": b"1e400",
    "digits": b"9" * (INT_DIGITS_MAX + 1),
    "digits inside": b'{"a":[-' + b"9" * (INT_DIGITS_MAX + 1) + b"]}",
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
    "comma": b"[1,]",
    "comment": b"1//",
    "two values": b"1 2",
    "nothing": b"",
    "byte order mark": b"\xef\xbb\xbf1",
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD.keys())
def test_other_spellings_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError) as caught:
        decode_tree(data)
    assert caught.value.reason == "bulk"


def test_unsorted_keys_are_refused_where_order_is_no_data() -> None:
    data = b'{"b":{"d":1,"c":2},"a":3}'
    assert decode_tree(data) == {"b": {"d": 1, "c": 2}, "a": 3}
    with pytest.raises(FormatError, match="bulk"):
        decode_tree(data, sort=True)


def test_long_digits_inside_strings_are_text() -> None:
    text = "9" * (2 * INT_DIGITS_MAX)
    assert decode_tree(f'["\\\\{text}"]'.encode()) == ["\\" + text]


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"]":', "}]")])
def test_depth(opening: str, closing: str) -> None:
    levels = DEPTH_MAX // sum(opening.count(c) for c in "[{")
    data = (opening * levels + "1" + closing * levels).encode()
    assert encode_tree(decode_tree(data), sort=False) == data
    with pytest.raises(FormatError, match="too_deep"):
        decode_tree(b"[" + data + b"]")


def depth(tree: Any) -> int:
    if isinstance(tree, dict):
        return 1 + max(map(depth, tree.values()), default=0)
    return 1 + max(map(depth, tree), default=0) if isinstance(tree, list) else 0


@given(json_trees(), st.integers(0, 6))
def test_depth_is_counted_on_bytes(tree: Any, limit: int) -> None:
    assert depth_exceeds(encode_tree(tree, sort=False), limit) is (depth(tree) > limit)


@pytest.mark.parametrize("piece", [b'"', b'\\"', b'"\\"', b"[", b"]", b"{[", b'["', b'[\\"', b"\\"])
def test_depth_of_hostile_bytes_takes_one_pass(piece: bytes) -> None:
    # A pattern that starts anew at every quote would need hours for this.
    depth_exceeds(b"[" * (DEPTH_MAX + 1) + b'"' + piece * 300_000)


def test_recursion_is_refused_before_it_happens() -> None:
    for data in (b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000):
        with pytest.raises(FormatError, match="too_deep"):
            decode_tree(data)


@given(st.binary() | st.text(alphabet='[]{}",:\\u0e1-.tn').map(str.encode))
def test_any_bytes_are_a_tree_or_refused(data: bytes) -> None:
    try:
        again = encode_tree(decode_tree(data), sort=False)
    except FormatError:
        return
    assert again == data
