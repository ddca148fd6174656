"""A cassette as text to read, to keep beside it and to review: ``view``.

Theory. The text is Markdown of headings and indented code blocks. Every line that shows something of the cassette
stands in such a block: there Markdown has no markup, and since no such line is empty, nothing can end the block. Within
it each scalar has a line of its own, as JSON with everything escaped that would deceive a terminal, so that a line of a
diff is one change.

Rule: the same calls give the same text, on every Python and system: no ids, times, hashes and numbers of calls or
frames. Two calls that differ in anything else never give the same text. Arguments and outcomes are shown: this is what
it is for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from toolcassette.content import call_tree
from toolcassette.format import encode_tree
from toolcassette.redaction import legible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcassette.format import Cassette, RecordedCall

__all__ = ["view"]

_TITLE: Final = "# Cassette\n\nMade by `toolcassette view`, not to be edited.\n"
_BLOCK: Final = "    "  # makes a line part of an indented code block
_INDENT: Final = "  "
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.:/-]+\Z")  # what stands in a code span of a heading as it is


def view(cassette: Cassette) -> str:
    """The calls of a cassette as a stable text: tool, path, arguments and outcome, one scalar a line, LF at each end.

    Safe for terminals and in Markdown. It holds the values. Raises ``FormatError`` ``bulk`` for a call whose stored
    bytes are not canonical.
    """
    return (
        "\n".join((_TITLE, *_block(_facts(cassette)), *(line for call in cassette for line in _section(call)))) + "\n"
    )


def _facts(cassette: Cassette) -> dict[str, Any]:
    """What decides how a replay goes, beside the calls."""
    header = cassette.header
    rejected = cassette.complete.rejected
    return {
        "include": header.include,
        "order": header.order,
        **({"rules": header.rules} if header.rules else {}),
        **({"requires": header.requires} if header.requires else {}),
        **({"rejected": rejected} if rejected else {}),
    }


def _section(call: RecordedCall) -> Iterator[str]:
    name = f"`{call.tool}`" if _PLAIN_NAME.match(call.tool) else "call"
    yield from ("", f"## {name}", "")
    yield from _block(call_tree(call))


def _block(tree: dict[str, Any]) -> Iterator[str]:
    return (_BLOCK + line for line in _lines(tree))


def _lines(tree: dict[str, Any] | list[Any]) -> Iterator[str]:
    """A tree that is not empty: ``key: scalar``, ``- scalar``, or the start of a line with the rest below it."""
    entries = (
        ((f"{_key(key)}:", item) for key, item in tree.items()) if isinstance(tree, dict) else (("-", i) for i in tree)
    )
    for start, item in entries:
        stand_in = legible(item)
        if stand_in is not None:
            yield f"{start} {stand_in}"
        elif isinstance(item, (dict, list)) and item:
            yield start
            yield from (_INDENT + line for line in _lines(item))
        else:
            yield f"{start} {_scalar(item)}"


def _key(key: str) -> str:
    return key if _PLAIN_KEY.match(key) else _scalar(key)


def _scalar(item: Any) -> str:
    """A scalar or an empty container as JSON on one line, escaped as it is in the cassette."""
    return encode_tree(item, sort=False).decode("utf-8")
