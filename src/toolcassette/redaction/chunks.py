"""Secrets that arrive in pieces: what a stream gives is joined before it is looked at.

Theory. The texts that stand at one JSON path of one item after the other are one text: a model's words, the bytes of a
response. A secret may begin in one item and end in a later one, and what tells it may stand in an item before both. So
an item is written only once nothing at its end may still become a secret: a run of characters such as keys are made
of, a value whose name stands before it, the beginning of a known secret, a private key without its end, JSON that is
not whole. At most ``HELD_MAX`` characters are held back; the consumer has them already. Where a secret lies across
items, its stand-in goes into the first, and the others lose their part of it.

Rule: joined again, the items that were written are the redacted form of the joined items; and what an item holds when
it is looked at by itself is replaced in it as well, since items need not be pieces of one text.
"""

from __future__ import annotations

import base64
import functools
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from toolcassette.format import TAG, decode_tree, json_path
from toolcassette.redaction.views import Edit, bytes_of, text_of, unescaped_with_places

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolcassette.redaction.redactor import Redactor
    from toolcassette.redaction.rules import Rule

__all__ = ["HELD_MAX", "ChunkRedactor", "texts_of"]

HELD_MAX: Final = 4096  # characters at one path

_BEFORE: Final = 256  # characters of what was written that may tell what comes
_RUN: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-.%~:@\\"
# What has begun and not ended; each ends where the text does, and holds one of its needles. A name begins where no
# character of a name stands before it, or the search would take the square of the length.
_BEGUN: Final = tuple(
    (tuple(needles.split()), re.compile(pattern))
    for needles, pattern in (
        ("://", r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/?#@\"'<>⟦]*\Z"),
        ("=", r"(?<![A-Za-z0-9_.\-])[A-Za-z][A-Za-z0-9_.\-]{1,63}=(?:\"[^\"\r\n⟦]*|'[^'\r\n⟦]*|[^&\s;,\"'#⟦]*)\Z"),
        ('"', r'"(?:[A-Za-z][A-Za-z0-9_.-]{0,63}(?:"\s*(?::\s*(?:"(?:[^"\\]|\\.)*\\?)?)?)?)?\Z'),
        (":", r"(?i:authorization|cookie|(?<![a-z0-9-])x-[a-z0-9-]{0,60}?(?:key|token|secret))[ \t]*:[^\r\n]*\Z"),
        ("earer EARER", r"(?i:bearer)[ \t]+[A-Za-z0-9._~+/=-]*\Z"),
        ("-----BEGIN", r"-----BEGIN (?:(?!-----END [A-Z0-9 ]*-----)[\s\S])*\Z"),
        ("{ [", r"(?:^|(?<=\n))(?:data:)?[ \t]*[{\[][^\n]*\Z"),
    )
)
_JSON: Final = re.compile(r'\s*(?:\{\s*(?:["}]|\Z)|\[\s*(?:["{\[\]0-9-]|\Z))')

Place: TypeAlias = tuple[tuple[str | int, ...], type[str] | type[bytes]]  # a path, and what stands there


class ChunkRedactor:
    """One stream on its way through the rules. ``whole``: nothing is given before the end; then no limit holds."""

    def __init__(self, redactor: Redactor, own: Sequence[Rule] = (), *, whole: bool = False) -> None:
        self._redactor = redactor
        self._own = own
        self._whole = whole
        self._held: list[tuple[bytes, dict[Place, Any]]] = []  # items, and the texts in each
        self._before: dict[Place, Any] = {}  # the end of what was written
        self.overflowed = False  # True once something was written only because of the limit

    def add(self, data: bytes) -> list[bytes]:
        """Take the next item, as canonical bytes; those that may be written now, in order."""
        self._held.append((data, dict(_texts(decode_tree(data), ()))))
        if self._whole:
            return []
        joined = self._joined()
        safe = {place: self._safe(text, first=place not in self._before) for place, text in joined.items()}
        ends = {place: len(self._before.get(place, "")) for place in joined}
        ready = 0
        for index, (_, texts) in enumerate(self._held):
            for place, text in texts.items():
                ends[place] += len(text)
            if any(ends[place] > safe[place] for place in texts):
                break
            ready = index + 1
        return self._release(ready, joined)

    def end(self) -> list[bytes]:
        """The items that are left: the stream has ended."""
        return self._release(len(self._held), self._joined())

    def _joined(self) -> dict[Place, Any]:
        parts: dict[Place, list[Any]] = {}
        for _, texts in self._held:
            for place, text in texts.items():
                parts.setdefault(place, [self._before.get(place, place[1]())]).append(text)
        return {place: place[1]().join(found) for place, found in parts.items()}

    def _release(self, count: int, joined: dict[Place, Any]) -> list[bytes]:
        """The first items as they are written. What the last of them teaches may stand in the first one."""
        ready = self._held[:count]
        known = -1
        written: list[bytes] = []
        while known != self._redactor.known:
            known = self._redactor.known
            written = self._written(ready, joined)
        for place in {place for _, texts in ready for place in texts}:
            at = len(self._before.get(place, "")) + sum(len(texts.get(place, "")) for _, texts in ready)
            self._before[place] = joined[place][max(0, at - _BEFORE) : at]
        self._held = self._held[count:]
        return written

    def _written(self, ready: list[tuple[bytes, dict[Place, Any]]], joined: dict[Place, Any]) -> list[bytes]:
        found: list[dict[tuple[str | int, ...], list[Edit]]] = [{} for _ in ready]
        for place in {place: None for _, texts in ready for place in texts}:
            edits = self._edits(joined[place])
            at = len(self._before.get(place, ""))
            for index, (_, texts) in enumerate(ready):
                text = texts.get(place, place[1]())
                if text:
                    found[index][place[0]] = _within(edits, text, at)
                at += len(text)
        return [
            self._redactor.redacted_item(data, functools.partial(_at, edits), own=self._own)
            for (data, _), edits in zip(ready, found, strict=True)
        ]

    def _edits(self, text: str | bytes) -> list[Edit]:
        """What is to be replaced in the joined pieces; of bytes, by byte."""
        if isinstance(text, str):
            return self._redactor.text_edits(text, self._own)
        plain = text_of(text)
        edits = self._redactor.text_edits(plain, self._own)
        return [Edit(len(bytes_of(plain[:start])), len(bytes_of(plain[:end])), new) for start, end, new in edits]

    def _safe(self, text: str | bytes, *, first: bool) -> int:
        """Where the end of a text begins that may still become a secret. ``first``: nothing of it was written."""
        if isinstance(text, bytes):
            plain = text_of(text)
            cut = plain.rstrip("".join(map(chr, range(0xDC80, 0xDD00)))) if plain[-1:] > "\ud800" else plain
            kept = cut if len(plain) - len(cut) < 4 else plain  # a character may be cut in two
            return len(bytes_of(kept[: self._safe(kept, first=first)]))
        around = max(0, len(text) - HELD_MAX)
        safe = 0 if first and _JSON.match(text) and not _is_whole(text) else self._begun(text, around)
        self.overflowed = self.overflowed or safe < around
        return max(safe, around)

    def _begun(self, text: str, around: int) -> int:
        if self._redactor.has_text_rules(self._own):  # of the user's: what they will match cannot be told
            return 0
        start = max(0, around - _BEFORE)
        safe = self._begun_in(text, start)
        unescaped = unescaped_with_places(text[start:]) if "\\" in text[start:] else None
        if unescaped is not None:
            plain, place = unescaped
            safe = min(safe, start + place(self._begun_in(plain, 0)))
        return safe

    def _begun_in(self, text: str, start: int) -> int:
        safe = min(len(text.rstrip(_RUN)), self._redactor.secrets.begins_in(text, HELD_MAX))
        for needles, pattern in _BEGUN:
            match = pattern.search(text, start) if any(text.find(sign, start) >= 0 for sign in needles) else None
            if match is not None:
                safe = min(safe, match.start())
        return safe


def _within(edits: list[Edit], text: Any, at: int) -> list[Edit]:
    """The part of the edits of a joined text that lies in one piece, which begins at ``at``."""
    end = at + len(text)
    found = [
        Edit(max(edit.start, at) - at, min(edit.end, end) - at, edit.new if edit.start >= at else "")
        for edit in edits
        if edit.end > at and edit.start < end
    ]
    if isinstance(text, bytes):
        return [Edit(len(text_of(text[:start])), len(text_of(text[:stop])), new) for start, stop, new in found]
    return found


def _at(found: dict[tuple[str | int, ...], list[Edit]], path: tuple[str | int, ...]) -> list[Edit]:
    return found.get(path, [])


def _is_whole(text: str) -> bool:
    """Whether JSON that has begun may be whole: a quick look that counts no brackets in strings."""
    return (
        text.rstrip()[-1:] in ("}", "]") and text.count("{") <= text.count("}") and text.count("[") <= text.count("]")
    )


def texts_of(tree: Any) -> Iterator[tuple[str, str | bytes]]:
    """The texts of an item and where they stand: what is one text with those at the same place of other items."""
    return ((json_path(place[0]), text) for place, text in _texts(tree, ()))


def _texts(node: Any, path: tuple[str | int, ...]) -> Iterator[tuple[Place, Any]]:
    if type(node) is str:
        yield (path, str), node
    elif type(node) is list:
        for index, item in enumerate(node):
            yield from _texts(item, (*path, index))
    elif type(node) is dict and TAG in node:
        if node[TAG] in ("bytes", "bytearray"):
            yield (path, bytes), base64.b64decode(node["v"])
        elif node[TAG] == "tuple":
            yield from _texts(node["v"], path)
    elif type(node) is dict:
        for key, value in node.items():
            yield from _texts(value, (*path, key))
