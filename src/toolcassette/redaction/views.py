r"""Where a text hides in a text: JSON, percent-encoding and base64, in any nesting up to a depth.

Theory. Nothing is decoded and written anew as a whole, since the other bytes of a value must stay as they are. What is
to be replaced is a list of *edits* of the outermost text: an edit found in a decoded part is carried back to the place
it came from, and its text is encoded as that part was. So ``?u=https%3A%2F%2Fa%3As3cret%40b`` changes in the password
alone, a JSON string in one literal, and a run of base64 as a whole.

Rule: finding is somebody else's (``Looker``); this module knows encodings and no secret. Whoever reads as an attacker
would and whoever redacts look through the same views, so the one finds nothing that the other has not replaced.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["DEPTH", "Edit", "Looker", "applied", "edits", "has_run"]

DEPTH: Final = 4  # encodings inside encodings; a fifth would be no accident

_RUN_CHARS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_RUN_MIN: Final = 16  # characters of base64 for the shortest secret that is worth looking for, 12 bytes
_RUN: Final = re.compile(rf"[A-Za-z0-9+/_-]{{{_RUN_MIN},}}={{0,2}}")
_HEX: Final = re.compile(r"[0-9a-fA-F-]+")  # hashes and UUIDs
_ONE_KIND: Final = bytes(0x61 if byte in _RUN_CHARS else 0x20 for byte in range(256))
_APART: Final = bytes(byte if byte in _RUN_CHARS else 0x20 for byte in range(256))
_LONG: Final = b"a" * _RUN_MIN
_HEX_CHARS: Final = b"0123456789abcdefABCDEF-"
_DIFFERENT_MIN: Final = 5  # characters in a run; what is base64 of fewer is no secret

_PERCENT: Final = re.compile(r"[^\s\"'<>\\^`{|}]*%[0-9A-Fa-f]{2}[^\s\"'<>\\^`{|}]*")
_PIECE: Final = re.compile(r"((?:%[0-9A-Fa-f]{2})+)|[^%]+|%")
_LITERAL: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_JSON_LINE: Final = re.compile(r"^(?:data:)?[ \t]*([{\[].*[}\]])[ \t]*\r?$", re.MULTILINE)


class Edit(NamedTuple):
    """Replace ``text[start:end]`` by ``new``."""

    start: int
    end: int
    new: str


class Looker(Protocol):
    """What looks for something in plain text. ``encodes``: whether what replaces a part is encoded as that was."""

    encodes: bool

    def direct(self, text: str, /, *, binary: bool = False) -> Sequence[Edit]:
        """What is to be replaced in the text as it stands. ``binary``: it is no text, but one character a byte."""
        ...

    def named(self, name: str, text: str, /) -> Sequence[Edit] | None:
        """What is to be replaced in a text because of the name that it stands under; None to look at it as any."""
        ...


def has_run(data: bytes) -> bool:
    """True if bytes hold a run of characters that could be a key, or base64 of one: no hash, no UUID, no ruler."""
    if _LONG not in data.translate(_ONE_KIND):
        return False
    long = [run for run in data.translate(_APART).split() if len(run) >= _RUN_MIN]
    return any(run.translate(None, _HEX_CHARS) and len(set(run)) >= _DIFFERENT_MIN for run in long)


def applied(text: str, found: Iterable[Edit]) -> str:
    """The text with edits done, which must not overlap and must stand in order."""
    parts: list[str] = []
    at = 0
    for start, end, new in found:
        parts += text[at:start], new
        at = end
    return "".join((*parts, text[at:]))


def edits(text: str, look: Looker, depth: int = DEPTH) -> list[Edit]:
    """What ``look`` finds in a text and in what is encoded in it: in order, and apart from each other."""
    if depth and ("{" in text or "[" in text):
        whole = _json_edits(text, look, depth)
        if whole is not None:
            return whole
    found = list(look.direct(text))
    if depth:
        if "\n" in text or text.startswith("data:"):
            found += _lines(text, look, depth)
        if "%" in text:
            found += _percent(text, look, depth)
        if len(text) >= _RUN_MIN:
            found += _base64(text, look, depth)
    return _apart(found) if len(found) > 1 else found


def _apart(found: list[Edit]) -> list[Edit]:
    """In order of their place; of two that overlap the one that begins first, and of these the longer one."""
    kept: list[Edit] = []
    for edit in sorted(found, key=lambda edit: (edit.start, -edit.end)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept


# -- JSON in a string -------------------------------------------------------------------------------------------------


class _Pairs(list[tuple[str, Any]]):
    """The members of an object in the order of its text; a name may stand there twice."""


def _json_edits(text: str, look: Looker, depth: int) -> list[Edit] | None:
    """The edits of a text that is JSON as a whole; None for any other."""
    inner = text.strip()
    if inner[:1] not in ("{", "[") or inner[-1:] not in ("}", "]"):
        return None
    try:
        tree = json.loads(text, object_pairs_hook=_Pairs)
        literals = _LITERAL.finditer(text)
        return [edit for edit in _literals(tree, "", literals, look, depth) if edit is not None]
    except (ValueError, RecursionError):
        return None


def _literals(
    node: Any, name: str, literals: Iterator[re.Match[str]], look: Looker, depth: int
) -> Iterator[Edit | None]:
    """An edit or None for each string of a JSON text, names among them, in the order of the text."""
    if type(node) is _Pairs:
        for key, value in node:
            yield _literal(key, "", next(literals), look, depth)
            yield from _literals(value, "" if type(value) is _Pairs else key, literals, look, depth)
    elif type(node) is list:
        for item in node:
            yield from _literals(item, name, literals, look, depth)
    elif type(node) is str:
        yield _literal(node, name, next(literals), look, depth)


def _literal(value: str, name: str, match: re.Match[str], look: Looker, depth: int) -> Edit | None:
    found = look.named(name, value) if name else None
    if found is None:
        found = edits(value, look, depth - 1)
    if not found:
        return None
    return Edit(match.start(), match.end(), json.dumps(applied(value, found), ensure_ascii=False))


def _lines(text: str, look: Looker, depth: int) -> Iterator[Edit]:
    """Lines that are JSON, as in NDJSON and in server-sent events."""
    for match in _JSON_LINE.finditer(text):
        at = match.start(1)
        for start, end, new in _json_edits(match.group(1), look, depth) or ():
            yield Edit(at + start, at + end, new)


# -- percent-encoding -------------------------------------------------------------------------------------------------


def _percent(text: str, look: Looker, depth: int) -> Iterator[Edit]:
    for match in _PERCENT.finditer(text):
        token = match.group()
        decoded, places = _unquoted(token)
        small = any(c.islower() for c in "".join(re.findall(r"%(..)", token)))
        for start, end, new in edits(decoded, look, depth - 1):
            if look.encodes:
                new = quote(new, safe="")  # noqa: PLW2901 - the same text, encoded
                new = re.sub(r"%..", lambda m: m.group().lower(), new) if small else new  # noqa: PLW2901
            yield Edit(match.start() + places[start], match.start() + places[end], new)


def _unquoted(token: str) -> tuple[str, list[int]]:
    """A token decoded, and for each character of it (and its end) where that begins in the token."""
    decoded: list[str] = []
    places: list[int] = []
    for piece in _PIECE.finditer(token):
        at, run = piece.start(), piece.group(1)
        try:
            plain = bytes.fromhex(run.replace("%", "")).decode("utf-8") if run else ""
        except UnicodeDecodeError:
            plain = ""
        if plain:
            for char in plain:
                places.append(at)
                at += 3 * len(char.encode("utf-8"))
            decoded.append(plain)
        else:
            places.extend(range(at, piece.end()))
            decoded.append(piece.group())
    return "".join(decoded), [*places, len(token)]


# -- base64 -----------------------------------------------------------------------------------------------------------


def _base64(text: str, look: Looker, depth: int) -> Iterator[Edit]:
    for match in _RUN.finditer(text):
        run, at = match.group(), match.start()
        found = _recoded(run, look, depth)
        if found is not None:
            yield Edit(at, match.end(), found)
            continue
        if "/" in run:  # the last step of a path, perhaps
            for part in re.finditer(r"[^/]+", run):
                found = _recoded(part.group(), look, depth) if len(part.group()) >= _RUN_MIN else None
                if found is not None:
                    yield Edit(at + part.start(), at + part.end(), found)


def _recoded(run: str, look: Looker, depth: int) -> str | None:
    """A run of base64 with what is found in it replaced; None where there is nothing."""
    data = _unbase64(run)
    if data is None:
        return None
    try:
        plain, binary = data.decode("utf-8"), False
    except UnicodeDecodeError:
        plain, binary = data.decode("latin-1"), True
    found = look.direct(plain, binary=True) if binary else edits(plain, look, depth - 1)
    if not found:
        return None
    if not look.encodes:
        return f"⟦base64:{applied(plain, found)}⟧"
    parts: list[bytes] = []
    at = 0
    for start, end, new in found:
        parts += plain[at:start].encode("latin-1" if binary else "utf-8"), new.encode("utf-8")
        at = end
    parts.append(plain[at:].encode("latin-1" if binary else "utf-8"))
    encode = base64.urlsafe_b64encode if "-" in run or "_" in run else base64.b64encode
    again = encode(b"".join(parts)).decode("ascii")
    return again if run.endswith("=") or len(run) % 4 == 0 else again.rstrip("=")


def _unbase64(run: str) -> bytes | None:
    bare = run.rstrip("=")
    if len(bare) % 4 == 1 or _HEX.fullmatch(bare):
        return None
    try:
        return base64.b64decode(bare.replace("-", "+").replace("_", "/") + "=" * (-len(bare) % 4), validate=True)
    except binascii.Error:
        return None
