"""Secrets that arrive in pieces: what a stream gives is joined before it is looked at.

Theory. The texts that stand at one JSON path of one item after the other are one text: a model's words, the bytes of a
response. A secret may begin in one item and end in a later one. So an item is written only once nothing at its end may
still become a secret: a run of characters such as keys are made of, a value whose name stands before it, the beginning
of a known secret, a private key without its end. At most ``HELD_MAX`` characters are held back; the consumer has them
already. Where a secret lies across items, its stand-in goes into the first, and the others lose their part of it.

Rule: joined again, the items that were written are the redacted form of the joined items.
"""

from __future__ import annotations

import base64
import re
import secrets
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from toolcassette.format import TAG, decode_tree, encode_tree, json_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolcassette.redaction.redactor import Redactor
    from toolcassette.redaction.rules import Rule

__all__ = ["HELD_MAX", "ChunkRedactor", "texts_of"]

HELD_MAX: Final = 4096  # characters at one path

_RUN: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-.%~:@\\"
_QUOTED: Final = re.compile(r'"[A-Za-z][A-Za-z0-9_.-]{0,63}"\s*:\s*(?:"(?:[^"\\]|\\.)*)?\Z')
_HEADER: Final = re.compile(r"(?i:authorization|cookie|x-[a-z0-9-]*(?:key|token|secret))[ \t]*:[^\r\n]*\Z")
_SCHEME: Final = re.compile(r"(?i:bearer)[ \t]+\Z")
_KEY_END: Final = re.compile(r"-----END [A-Z0-9 ]*-----")
_BEFORE: Final = 200  # characters in which a name and what follows it stand
_NONCE: Final = secrets.token_hex(8)
_MARKER: Final = re.compile(rf"⟦{_NONCE}(:[A-Za-z0-9._-]+:[0-9]+⟧)")

Path: TypeAlias = tuple[str | int, ...]


class ChunkRedactor:
    """One stream on its way through the rules."""

    def __init__(self, redactor: Redactor, own: Sequence[Rule] = ()) -> None:
        self._redactor = redactor
        self._own = own
        self._held: list[tuple[Any, dict[Path, str]]] = []  # items, and the texts in each by path

    def add(self, data: bytes) -> list[bytes]:
        """Take the next item, as canonical bytes; those that may be written now, in order."""
        tree = decode_tree(data)
        self._held.append((tree, dict(_texts(tree, ()))))
        joined = self._joined()
        safe = {path: _safe(text, self._redactor) for path, text in joined.items()}
        ends = dict.fromkeys(joined, 0)
        ready = 0
        for index, (_, texts) in enumerate(self._held):
            for path, text in texts.items():
                ends[path] += len(text)
            if any(ends[path] > safe[path] for path in texts):
                break
            ready = index + 1
        return self._release(ready, joined) if ready else []

    def end(self) -> list[bytes]:
        """The items that are left: the stream has ended."""
        return self._release(len(self._held), self._joined()) if self._held else []

    def _joined(self) -> dict[Path, str]:
        joined: dict[Path, list[str]] = {}
        for _, texts in self._held:
            for path, text in texts.items():
                joined.setdefault(path, []).append(text)
        return {path: "".join(parts) for path, parts in joined.items()}

    def _release(self, count: int, joined: dict[Path, str]) -> list[bytes]:
        if len(self._held) > 1:
            for path, text in joined.items():
                self._cut(path, text, sum(len(texts.get(path, "")) for _, texts in self._held[:count]))
        ready, self._held = self._held[:count], self._held[count:]
        return [self._written(tree, texts) for tree, texts in ready]

    def _cut(self, path: Path, text: str, released: int) -> None:
        """Take out of the items what begins in those that are released and lies across two of them."""
        edits = [edit for edit in self._redactor.text_edits(text) if edit.start < released]
        if not edits:
            return
        at = 0
        for _, texts in self._held:
            if path not in texts:
                continue
            start, end = at, at + len(texts[path])
            at = end
            parts, done = [], start
            for edit in edits:
                if edit.end <= start or edit.start >= end or (edit.start >= start and edit.end <= end):
                    continue  # elsewhere, or within this item alone
                parts.append(text[done : max(edit.start, start)])
                if edit.start >= start:
                    parts.append(edit.new.replace("⟦redacted", f"⟦{_NONCE}"))
                done = min(edit.end, end)
            texts[path] = "".join((*parts, text[done:end]))

    def _written(self, tree: Any, texts: dict[Path, str]) -> bytes:
        data = encode_tree(_with(tree, texts, ()), sort=False)
        redacted = self._redactor.redacted(data, own=self._own)
        if _NONCE.encode() not in redacted:
            return redacted
        return _MARKER.sub(r"⟦redacted\1", redacted.decode("utf-8")).encode("utf-8")


def texts_of(tree: Any) -> Iterator[tuple[str, str]]:
    """The texts of an item and where they stand: what is one text with those at the same place of other items."""
    return ((json_path(path), text) for path, text in _texts(tree, ()))


def _texts(node: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """The texts of an item and their paths; bytes count as text of one character a byte."""
    if type(node) is str:
        yield path, node
    elif type(node) is list:
        for index, item in enumerate(node):
            yield from _texts(item, (*path, index))
    elif type(node) is dict and node.get(TAG) in ("bytes", "bytearray"):
        yield path, base64.b64decode(node["v"]).decode("latin-1")
    elif type(node) is dict and TAG not in node:
        for key, value in node.items():
            yield from _texts(value, (*path, key))


def _with(node: Any, texts: dict[Path, str], path: Path) -> Any:
    """The item with its texts as they are now."""
    if type(node) is str:
        return texts[path]
    if type(node) is list:
        return [_with(item, texts, (*path, index)) for index, item in enumerate(node)]
    if type(node) is dict and node.get(TAG) in ("bytes", "bytearray"):
        data = b"".join(
            part.encode("utf-8") if index % 2 else part.encode("latin-1")
            for index, part in enumerate(re.split(rf"(⟦{_NONCE}:[A-Za-z0-9._-]+:[0-9]+⟧)", texts[path]))
        )
        return node | {"v": base64.b64encode(data).decode("ascii")}
    if type(node) is dict and TAG not in node:
        return {key: _with(value, texts, (*path, key)) for key, value in node.items()}
    return node


def _safe(text: str, redactor: Redactor) -> int:
    """Where the end of a text begins that may still become a secret."""
    run = len(text.rstrip(_RUN))
    safe = min(run, redactor.secrets.begins_in(text, HELD_MAX))
    around = max(0, len(text) - HELD_MAX)
    named = _QUOTED.search(text, around)
    header = _HEADER.search(text, max(text.rfind("\n") + 1, around))
    scheme = _SCHEME.search(text, max(0, run - _BEFORE), run)
    for match in (named, header, scheme):
        if match is not None:
            safe = min(safe, match.start())
    begun = text.rfind("-----BEGIN")
    if begun >= 0 and not _KEY_END.search(text, begun):
        safe = min(safe, begun)
    return max(safe, around)
