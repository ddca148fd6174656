r"""Where a text hides in a text: JSON, escapes, percent-encoding and base64, in any nesting up to a depth.

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
import bisect
import functools
import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "DEPTH",
    "RUN_MIN",
    "Edit",
    "Looker",
    "applied",
    "bytes_of",
    "edits",
    "has_run",
    "merged",
    "name_of_item",
    "parted",
    "spelled_name",
    "text_of",
    "unescaped_with_places",
]

DEPTH: Final = 4  # encodings inside encodings; a fifth would be no accident

_RUN_CHARS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
RUN_MIN: Final = 16  # characters of base64 for the shortest secret that is looked for unasked, 12 bytes
_HEX: Final = re.compile(r"[0-9a-fA-F-]+")  # hashes and UUIDs
_ONE_KIND: Final = bytes(0x61 if byte in _RUN_CHARS else 0x20 for byte in range(256))
_APART: Final = bytes(byte if byte in _RUN_CHARS else 0x20 for byte in range(256))
_HEX_CHARS: Final = b"0123456789abcdefABCDEF-"
_DIFFERENT_MIN: Final = 5  # characters in a run; what is base64 of fewer is no secret
_PARTED_MAX: Final = 4096  # characters of a run that may be a path or a name with base64 in it
_PARTS: Final = (("/", re.compile(r"[^/]+")), ("-_", re.compile(r"[^/_-]+")))

_IN_URL: Final = r"[^\s\"'<>\\^`{|}"  # a class that is still open: what URLs are made of
_PERCENT: Final = re.compile(rf"(?<!{_IN_URL}])(?:{_IN_URL}%]|%(?![0-9A-Fa-f]{{2}}))*+%[0-9A-Fa-f]{{2}}{_IN_URL}]*")
_PIECE: Final = re.compile(r"((?:%[0-9A-Fa-f]{2})+)|[^%]+|%")
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[\"'\\/bfnrt])"
)
_LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_LITERAL: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_JSON_LINE: Final = re.compile(r"^(?:data:)?[ \t]*([{\[].*[}\]])[ \t]*\r?$", re.MULTILINE)


class Edit(NamedTuple):
    """Replace ``text[start:end]`` by ``new``."""

    start: int
    end: int
    new: str


class Looker(Protocol):
    """What looks for something in plain text. ``encodes``: whether what replaces a part is encoded as that was.

    ``run_min``: characters of the shortest base64 that is worth decoding.
    """

    encodes: bool

    @property
    def run_min(self) -> int:
        """Characters of the shortest run of base64 that is looked into."""
        ...

    def direct(self, text: str, /, *, binary: bool = False) -> Sequence[Edit]:
        """What is to be replaced in the text as it stands. ``binary``: it is none, and holds no names."""
        ...

    def named(self, name: str, text: str, /) -> Sequence[Edit] | None:
        """What is to be replaced in a text because of the name that it stands under; None to look at it as any."""
        ...


def has_run(data: bytes, run_min: int = RUN_MIN) -> bool:
    """True if bytes hold a run of characters that could be a key, or base64 of one: no hash, no UUID, no ruler."""
    if b"a" * run_min not in data.translate(_ONE_KIND):
        return False
    long = [run for run in data.translate(_APART).split() if len(run) >= run_min]
    return run_min < RUN_MIN or any(run.translate(None, _HEX_CHARS) and len(set(run)) >= _DIFFERENT_MIN for run in long)


def parted(text: str, found: Iterable[Edit]) -> list[str]:
    """The text in parts: what stays, what is new, what stays, and so on. Edits must stand in order, and apart."""
    parts: list[str] = []
    at = 0
    for start, end, new in found:
        parts += text[at:start], new
        at = end
    return [*parts, text[at:]]


def applied(text: str, found: Iterable[Edit]) -> str:
    """The text with edits done."""
    return "".join(parted(text, found))


def text_of(data: bytes) -> str:
    """Bytes as a text; what is no UTF-8 in them as lone surrogates, one a byte."""
    return data.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """The bytes of ``text_of``."""
    return text.encode("utf-8", "surrogateescape")


def edits(text: str, look: Looker, depth: int = DEPTH) -> list[Edit]:
    """What ``look`` finds in a text and in what is encoded in it: in order, and apart from each other."""
    if depth and ("{" in text or "[" in text):
        whole = _json_edits(text, look, depth)
        if whole is not None:
            return whole
    found: list[Edit] = []
    if depth and "\\" in text:
        found += _escapes(text, look, depth)
    found += look.direct(text)
    if depth:
        if "\n" in text or text.startswith("data:"):
            found += _lines(text, look, depth)
        if "%" in text:
            found += _percent(text, look, depth)
        if len(text) >= look.run_min:
            found += _base64(text, look, depth)
    return _apart(found) if len(found) > 1 else found


def _apart(found: list[Edit]) -> list[Edit]:
    """In order of their place; of two that overlap the one that begins first, and of these the longer one."""
    kept: list[Edit] = []
    for edit in sorted(found, key=lambda edit: (edit.start, -edit.end)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept


def merged(joined: Sequence[Edit], alone: Iterable[Edit]) -> list[Edit]:
    """Edits of two looks at one text: ``joined``, each over all that an overlapping one of ``alone`` takes as well."""
    kept = list(joined)
    for edit in alone:
        over = [other for other in kept if other.start < edit.end and edit.start < other.end]
        span = [edit, *over]
        new = "".join(other.new for other in over) if over else edit.new
        kept = [other for other in kept if other not in over]
        kept.append(Edit(min(e.start for e in span), max(e.end for e in span), new))
        kept.sort()
    return kept


# -- JSON in a string -------------------------------------------------------------------------------------------------


def spelled_name(node: dict[str, Any]) -> str:
    """The name that an object gives to its ``value``, as HAR files and lists of settings do."""
    for key in ("name", "key", "header"):
        if type(node.get(key)) is str and "value" in node:
            return str(node[key])
    return ""


def name_of_item(node: list[Any], index: int, name: str) -> str:
    """The name that an item of a list stands under: that of the list, or of two texts the first."""
    if len(node) == 2 and type(node[0]) is str and type(node[1]) is str and _NAME.fullmatch(node[0]):
        return str(node[0]) if index else ""
    return name


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
        spelled = spelled_name(dict(node))
        for key, value in node:
            yield _literal(key, "", next(literals), look, depth)
            under = spelled if spelled and key == "value" else key
            yield from _literals(value, "" if type(value) is _Pairs else under, literals, look, depth)
    elif type(node) is list:
        for index, item in enumerate(node):
            yield from _literals(item, name_of_item(node, index, name), literals, look, depth)
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


# -- escapes, where no JSON is whole: in a repr, in code, in a log line -----------------------------------------------


def unescaped_with_places(text: str) -> tuple[str, Callable[[int], int]] | None:
    """A text with its escapes decoded, and what tells where a place of it is in ``text``; None where it has none."""
    decoded: list[str] = []
    ours, theirs = [0], [0]  # where a piece begins that stands as it is: in the decoded text, and in ``text``
    length = at = 0
    for match in _ESCAPE.finditer(text):
        decoded += text[at : match.start()], _unescaped(match.group())
        length += match.start() - at + 1
        at = match.end()
        ours.append(length)
        theirs.append(at)
    if not at:
        return None

    def place(index: int) -> int:
        piece = bisect.bisect_right(ours, index) - 1
        return theirs[piece] + index - ours[piece]

    return "".join((*decoded, text[at:])), place


def _escapes(text: str, look: Looker, depth: int) -> Iterator[Edit]:
    found = unescaped_with_places(text)
    if found is not None:
        decoded, place = found
        for start, end, new in edits(decoded, look, depth - 1):
            yield Edit(place(start), place(end), new)


def _unescaped(escape: str) -> str:
    kind = escape[1]
    if kind in "ux":
        units = escape.encode("ascii").decode("unicode-escape")
        return units.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return _LETTERS.get(kind, kind)


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
    for match in _run(look.run_min).finditer(text):
        run, at = match.group(), match.start()
        found = _recoded(run, look, depth)
        if found is not None:
            yield Edit(at, match.end(), found)
            continue
        if len(run) > _PARTED_MAX:
            continue
        for signs, pattern in _PARTS:  # the last step of a path, or of a name
            for part in pattern.finditer(run) if any(sign in run for sign in signs) else ():
                found = _recoded(part.group(), look, depth) if len(part.group()) >= look.run_min else None
                if found is not None:
                    yield Edit(at + part.start(), at + part.end(), found)


@functools.cache
def _run(run_min: int) -> re.Pattern[str]:
    return re.compile(rf"[A-Za-z0-9+/_-]{{{run_min},}}={{0,2}}")


def _recoded(run: str, look: Looker, depth: int) -> str | None:
    """A run of base64 with what is found in it replaced; None where there is nothing."""
    data = _unbase64(run)
    if data is None:
        return None
    plain = text_of(data)
    found = edits(plain, look, depth - 1) if _is_text(data) else look.direct(plain, binary=True)
    if not found:
        return None
    parts = parted(plain, found)
    if not look.encodes:
        spelled = (part if index % 2 else _plain64(bytes_of(part)) for index, part in enumerate(parts))
        return f"⟦base64:{''.join(spelled)}⟧"
    encode = base64.urlsafe_b64encode if "-" in run or "_" in run else base64.b64encode
    again = encode(bytes_of("".join(parts))).decode("ascii")
    return again if run.endswith("=") or len(run) % 4 == 0 else again.rstrip("=")


def _plain64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _unbase64(run: str) -> bytes | None:
    bare = run.rstrip("=")
    if len(bare) % 4 == 1 or _HEX.fullmatch(bare):
        return None
    try:
        return base64.b64decode(bare.replace("-", "+").replace("_", "/") + "=" * (-len(bare) % 4), validate=True)
    except binascii.Error:
        return None
