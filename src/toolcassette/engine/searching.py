"""A search for secrets in what a file holds, line by line: read as somebody would who means to find them.

Theory. A line that is a frame is looked at part by part, each at its JSON path: bulk members, the items of a stream one
by one and joined, and what the head names (tool, call path, patterns). A line that is none (torn, damaged, edited, of
another file) is a text, and so is each string literal in it, since a reader needs no whole JSON to see a key.

Rule: the rules of today and every view that redaction itself looks through; nothing is said of a value but where it
stands and which rule found it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from toolcassette.errors import FormatError
from toolcassette.format import (
    TRAILER_BYTES,
    CallStart,
    Header,
    bulk_members,
    decode_head,
    decode_tree,
    encode_tree,
    has_trailer,
)
from toolcassette.redaction import NEWEST, Redactor, Rules, text_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Search"]

_LITERAL: Final = re.compile(r'"((?:[^"\\]|\\.)*+)("|\Z)', re.DOTALL)
_KEY_BEGINS: Final = "-----BEGIN"
_KEY_ENDS: Final = re.compile(r"-----END [A-Z0-9 ]*-----")
_KEY_LINES_MAX: Final = 200  # lines of one private key; the longest have about 100
Row = tuple[int, str, str]  # frame, JSON path, rule


class Search:
    """One file on its way through the rules; ``line`` for each line, then ``end``.

    ``rules``: the user's own besides the newest default set. ``secrets`` and ``environment`` are looked for wherever
    they stand. What one look learned the next one knows: ``known`` grows.
    """

    def __init__(self, rules: Rules, secrets: Sequence[str] = (), environment: Iterable[str] = ()) -> None:
        own = tuple(rule for rule in rules.own if rule.secret)
        self._redactor = Redactor(Rules(NEWEST, own), declared=secrets, environment=environment)
        self._redactor.review()
        self._streams: dict[int, _Joined] = {}
        self._key: list[tuple[int, str]] = []  # lines of a private key whose end was not seen yet

    @property
    def known(self) -> int:
        """How many secrets are looked for everywhere."""
        return self._redactor.known

    def line(self, number: int, line: bytes) -> list[Row]:
        """What stands in the line of this number, with its LF if it has one. Raises ``RedactionError``."""
        framed = has_trailer(line)
        alone = framed and b'"kind":"call/chunk"' not in line[:48] and not self._streams
        if alone and self._redactor.is_clean(line[:-TRAILER_BYTES]):
            return self._key_rows(number, "")
        try:
            if not framed:
                raise FormatError("trailer")
            call, members = bulk_members(line)
            head = decode_head(line)
        except FormatError:
            return self._text_rows(number, line)
        rows = self._key_rows(number, "")
        for path, text in _named(head):
            rows += [(number, path, rule) for rule in self._rules_in(text)]
        inside = [row for member, data in members for row in self._member_rows(number, member, data)]
        if members and members[0][0] == "chunk":
            self._streams.setdefault(call, _Joined()).add(number, members[0][1], found_here=bool(inside))
        elif call in self._streams:
            inside += self._streams.pop(call).rows(self._redactor)
        return rows + inside

    def end(self) -> list[Row]:
        """What only the lines together hold: streams and keys without an end. The next look may begin."""
        joined = [row for stream in self._streams.values() for row in stream.rows(self._redactor)]
        self._streams.clear()
        self._key.clear()
        return joined

    def _rules_in(self, text: str) -> list[str]:
        return list(dict.fromkeys(self._redactor.text_rules(text)))

    def _member_rows(self, number: int, member: str, data: bytes) -> Iterator[Row]:
        name = "value" if member == "chunk" else member
        for rule, at in self._redactor.findings(data, sort=member == "args"):
            yield number, f"$.{name}{self._redactor.without_secrets(at).removeprefix('$')}", rule

    # -- what is no frame ------------------------------------------------------------------------------------------

    def _text_rows(self, number: int, line: bytes) -> list[Row]:
        text = _decoded(line).rstrip("\r\n")
        rules = dict.fromkeys(self._redactor.text_rules(text))
        for literal, ended in _literals(text):
            if not ended:  # cut short inside of it: what a name stands before is a value all the same
                rules |= dict.fromkeys(self._redactor.text_rules(text + '"'))
            rules |= dict.fromkeys(self._redactor.text_rules(literal))
        rules |= dict.fromkeys(rule for rule, _ in self._redactor.findings(_as_tree(text)))
        return [*self._key_rows(number, text), *((number, "$", rule) for rule in rules)]

    def _key_rows(self, number: int, text: str) -> list[Row]:
        """A private key over some lines, at the first of them."""
        if not text or (not self._key and _KEY_BEGINS not in text):
            self._key.clear()
            return []
        if _KEY_BEGINS in text and not _KEY_ENDS.search(text):
            self._key = [(number, text)]
            return []
        self._key.append((number, text))
        if not _KEY_ENDS.search(text):
            if len(self._key) > _KEY_LINES_MAX:
                self._key.clear()
            return []
        begun = self._key[0][0]
        whole = "\n".join(line for _, line in self._key)
        several = len(self._key) > 1
        self._key.clear()
        return [(begun, "$", rule) for rule in self._rules_in(whole)] if several else []


class _Joined:
    """The texts of a stream so far, by JSON path."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, type], list[Any]] = {}
        self._frame = 0
        self._found = False

    def add(self, frame: int, data: bytes, *, found_here: bool) -> None:
        self._frame = frame
        self._found = self._found or found_here
        for path, text in texts_of(decode_tree(data)):
            self._texts.setdefault((path, type(text)), []).append(text)

    def rows(self, redactor: Redactor) -> list[Row]:
        """What only the joined items hold, at the frame of the last one."""
        if self._found:
            return []
        return [
            (self._frame, f"$.value{redactor.without_secrets(path).removeprefix('$')}", rule)
            for (path, kind), parts in self._texts.items()
            if len(parts) > 1
            for rule in dict.fromkeys(redactor.text_rules("".join(parts) if kind is str else text_of(b"".join(parts))))
        ]


def _named(head: object) -> Iterator[tuple[str, str]]:
    """The texts of a frame's head that come from the program, and where they stand."""
    if isinstance(head, Header):
        yield "$.producer", head.producer
        yield from ((f"$.include[{index}]", text) for index, text in enumerate(head.include))
    elif isinstance(head, CallStart):
        yield "$.tool", head.tool
        yield from ((f"$.path[{index}]", text) for index, text in enumerate(head.path))
        if isinstance(head.omitted, list):
            yield from ((f"$.omitted[{index}]", text) for index, text in enumerate(head.omitted))


def _decoded(line: bytes) -> str:
    """A line as text; one character a byte where it is none."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _literals(text: str) -> Iterator[tuple[str, bool]]:
    """The string literals in a text that say more than they spell, and whether they end."""
    for match in _LITERAL.finditer(text):
        inner, ended = match.group(1), bool(match.group(2))
        if "\\" in inner:
            try:
                yield json.loads(f'"{inner}"', strict=False), ended
                continue
            except ValueError:
                pass
        if not ended:
            yield inner, ended


def _as_tree(text: str) -> bytes:
    """A line that is JSON in another spelling, in the canonical one; an empty object for any other."""
    try:
        tree = json.loads(text)
        data = encode_tree(tree, sort=False)
        decode_tree(data)
    except (ValueError, RecursionError, FormatError, TypeError, OverflowError):
        return b"{}"
    return data
