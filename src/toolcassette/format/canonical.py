"""Canonical JSON: one value, one spelling, as bytes (FORMAT.md section 4).

Rule: what is written here decodes to the same tree, and what decodes here is refused unless it encodes to the same
bytes again. So duplicate keys, odd number spellings, white space and needless escapes are never accepted.

A *tree* is what JSON can say: dict with str keys, list, str, int, finite float, bool, None, of exactly these types.
Number text is that of msgspec, pinned by vectors: shortest digits that round-trip, ``.0`` kept, exponents without plus
sign or padding. The escape pass spells characters that would deceive a terminal, a diff or a reviewer as ``\\uXXXX``.
"""

from __future__ import annotations

import marshal
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from toolcassette.errors import FormatError

if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = [
    "DEPTH_MAX",
    "INT_DIGITS_MAX",
    "LONG_INT",
    "TAG",
    "Tree",
    "decode_tree",
    "depth_exceeds",
    "encode_tree",
    "escape",
    "may_hold_tags",
    "plain_copy",
]

Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | int | float | bool | None"

TAG: Final = "$tc"  # the key that makes an object stand for what JSON has no word for
DEPTH_MAX = 128  # levels of arrays and objects in one value; far under every parser's own limit
INT_DIGITS_MAX = 1000  # decimal digits of a bare integer; CPython and msgspec both refuse text beyond 4,300

_UNSAFE = re.compile(
    rb"\x7f"  # DEL
    rb"|\xc2[\x80-\x9f\xad]"  # C1 controls (U+009B starts a terminal sequence), soft hyphen
    rb"|\xd8\x9c"  # Arabic letter mark
    rb"|\xe1\xa0\x8e"  # Mongolian vowel separator
    rb"|\xe2\x80[\x8b-\x8f\xa8-\xae]"  # zero width, marks, line and paragraph separators, bidi embeddings
    rb"|\xe2\x81[\xa0-\xaf]"  # word joiner, invisible operators, bidi isolates
    rb"|\xef\xbb\xbf"  # byte order mark
    rb"|\xef\xbf[\xb9-\xbb]"  # interlinear annotation
    rb"|\xf3\xa0[\x80\x81][\x80-\xbf]"  # tag characters
)
LONG_INT = re.compile(rb"[0-9]{%d}" % (INT_DIGITS_MAX + 1))
_MARK: Final = f'{TAG}"'.encode()  # without its first quote, since a quote is no rare thing to look for
_DOLLAR: Final = _MARK[0]
_QUOTE: Final = ord('"')
_NOT_BRACKETS = bytes(b for b in range(256) if b not in b"[]{}")
_ONE_KIND = bytes.maketrans(b"{}", b"[]")  # two kinds would let one round remove two levels
# One pass whatever the bytes are: a string that is never closed runs to the end.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


def _spelled(match: re.Match[bytes]) -> bytes:
    units = match.group().decode("utf-8").encode("utf-16-be")
    return b"".join(b"\\u%02x%02x" % (units[i], units[i + 1]) for i in range(0, len(units), 2))


def escape(data: bytes) -> bytes:
    """JSON text with every deceiving character as ``\\uXXXX`` (they can only stand inside strings)."""
    if data.isascii() and 0x7F not in data:  # the cheapest test there is, and true of most
        return data
    return _UNSAFE.sub(_spelled, data)


def may_hold_tags(data: bytes) -> bool:
    """False if no tag object can stand in JSON text. One byte is looked for first, which is ten times as fast."""
    return _DOLLAR in data and _MARK in data


def depth_exceeds(data: bytes, limit: int = DEPTH_MAX) -> bool:
    """True if JSON text nests deeper than ``limit``; counted on bytes, before any decoder recurses into it."""
    if len(data) <= limit or data[0] == _QUOTE or data.count(b"[") + data.count(b"{") <= limit:
        return False  # text alone nests nothing, and a decoder stops behind it
    brackets = _STRING.sub(b"", data).translate(_ONE_KIND, _NOT_BRACKETS)
    for _ in range(limit):  # each round removes the innermost level, so the rounds needed are the depth
        fewer = brackets.replace(b"[]", b"")
        if len(fewer) == len(brackets):
            return len(brackets) > limit  # not JSON; the decoder says so, unless it would have to recurse for it
        brackets = fewer
    return bool(brackets)


def encode_tree(tree: Tree, *, sort: bool) -> bytes:
    """Canonical bytes of a tree; ``sort`` orders the keys of every object by code point (arguments), else they stay.

    The caller vouches for the types (see ``values``); nothing is checked here.
    """
    return escape(_encode_sorted(tree) if sort else _encode(tree))


def plain_copy(value: Any, *, sort: bool = False) -> tuple[bytes, Any] | None:
    """Canonical bytes of a value that is nothing but JSON, and what they read back as; None of any other value.

    It is a proof at C speed that the copy is the same in type and value. marshal takes no subclass of a builtin type;
    JSON text tells int, float and bool apart and keeps order and sign; so a copy that was read back from the text and
    is equal (which NaN, bytes, tuples and keys other than str are not) is the same.
    """
    try:
        marshal.dumps(value)
        data = _encode_sorted(value) if sort else _encode(value)
        copy = _decode(data)
        if copy != value:
            return None
    except (ValueError, TypeError, RecursionError, BytesWarning, msgspec.MsgspecError):
        return None
    return None if may_hold_tags(data) or depth_exceeds(data) or LONG_INT.search(data) else (escape(data), copy)


def decode_tree(data: bytes, *, sort: bool = False) -> Any:
    """The tree of canonical bytes.

    Raises ``FormatError`` ``too_deep`` or ``bulk`` (not JSON, or not the canonical spelling of what it says).
    """
    if depth_exceeds(data):
        raise FormatError("too_deep")
    try:
        tree = _decode(data)
        again = escape(_encode_sorted(tree) if sort else _encode(tree))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise FormatError("bulk") from None  # a decoder's message echoes file data
    if again != data or (len(data) > INT_DIGITS_MAX and _has_long_int(data)):
        raise FormatError("bulk")
    return tree


def _has_long_int(data: bytes) -> bool:
    """True if an integer of more than INT_DIGITS_MAX digits stands outside the strings of JSON text."""
    return LONG_INT.search(data) is not None and LONG_INT.search(_STRING.sub(b'""', data)) is not None
