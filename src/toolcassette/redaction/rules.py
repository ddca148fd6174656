"""Which rules a session redacts by: a version of the default set, and the user's own.

Theory. The default set is versioned and old versions stay, since a replay must find what the recording found. The
user's own rules are code, so a cassette holds only their names and digests: enough to say that a replay goes by another
rule, never to rebuild one. A *normaliser* is a rule of the same kind for what is no secret and differs from run to run:
a directory, an id, a moment.

Rule: nothing here looks at a value; what a rule names is compiled once, and a bad one is a ``ValueError`` at once.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from toolcassette.errors import FormatError, printable
from toolcassette.format import decode_tree, encode_value
from toolcassette.redaction.names import words
from toolcassette.redaction.places import directory_pattern, special_directories

if TYPE_CHECKING:
    from toolcassette.format import Tree

__all__ = [
    "NEWEST",
    "NORMALISERS",
    "OFF",
    "Redact",
    "Rule",
    "Rules",
    "compiled",
    "normalisers",
    "own_name",
    "recorded_set",
]

NEWEST: Final = "default/1"
_SETS: Final = frozenset({"default/1"})  # the versions that this release knows; every one that ever was

Finder: TypeAlias = Callable[[str], Iterable[str]]

_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_STEP: Final = re.compile(r"\.(\*|[A-Za-z_][A-Za-z0-9_-]*)|\[(?:(\*)|([0-9]+)|'((?:[^'\\]|\\.)*)')\]")
_DIGEST_HEX: Final = 16
_NOTHING: Final = object()

_PATTERNS: Final = {
    "uuid": re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9A-Za-z])"),
    "timestamp": re.compile(
        r"(?<![0-9])[0-9]{4}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9](?::[0-6][0-9](?:[.,][0-9]{1,9})?)?"
        r"(?:Z|[+-][0-2][0-9]:?[0-5][0-9])?(?![0-9])"
    ),
}
NORMALISERS: Final = (*_PATTERNS, "cwd", "home", "tmp")


@dataclasses.dataclass(frozen=True)
class Redact:
    """One rule of your own.

    ``what``: a name (``"pin"``, matched as whole words at the end of a name), a JSON path (``"$.user.ssn"``, with
    ``[*]`` and ``.*`` for any), a compiled pattern (group 1, if there is one, is the secret), a directory (a
    ``pathlib`` path, in every spelling), or a function that takes a text and gives the parts of it to replace. ``id``
    names the rule in the cassette; a function needs one. ``stand_in``: what a replay hands out for a whole value, where
    the tool's annotation does not take ``⟦redacted:id:1⟧``.
    """

    what: str | re.Pattern[str] | PurePath | Finder = dataclasses.field(repr=False)  # a pattern may spell a secret out
    id: str | None = None
    stand_in: object = dataclasses.field(default=_NOTHING, repr=False)


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule, compiled. ``kind``: name, path, pattern, finder or directory, which says what ``what`` is."""

    id: str
    kind: str
    what: Any = dataclasses.field(repr=False)
    digest: str
    handed: tuple[Tree] | None = dataclasses.field(default=None, repr=False)
    secret: bool = True  # False for a normaliser

    @property
    def entry(self) -> str:
        """How a header names it."""
        return f"{self.id}#{self.digest}"


@dataclasses.dataclass(frozen=True)
class Rules:
    """What one session redacts by. ``version`` None: nothing at all."""

    version: str | None = NEWEST
    own: tuple[Rule, ...] = ()
    declared: bool = False  # values that were named as secrets; a cassette does not tell how many

    @property
    def entries(self) -> list[str]:
        """The member ``rules`` of a header."""
        if self.version is None:
            return []
        return [self.version, *(rule.entry for rule in self.own), *(["declared"] if self.declared else [])]


OFF: Final = Rules(version=None)


def compiled(rules: Iterable[object], *, secret: bool = True) -> tuple[Rule, ...]:
    """The rules that a user wrote. Raises ``ValueError`` for what is none, or for two of one id."""
    given: Iterable[Any] = rules
    found = (_compiled(rule if isinstance(rule, Redact) else Redact(rule), secret=secret) for rule in given)
    return _distinct(tuple(found))


def normalisers(given: Iterable[object]) -> tuple[Rule, ...]:
    """The normalisers that a user asked for, by name (``NORMALISERS``) or as rules. Raises as ``compiled``."""
    found: list[Rule] = []
    for item in given:
        if isinstance(item, str) and item in _PATTERNS:
            found.append(_compiled(Redact(_PATTERNS[item], id=item), secret=False))
        elif isinstance(item, str) and item in NORMALISERS:
            paths = special_directories(item)
            found.append(Rule(item, "directory", directory_pattern(paths), _digest("directory", item), secret=False))
        elif isinstance(item, str) and not item.startswith("$"):
            message = f"normalize takes {', '.join(NORMALISERS)}, a JSON path or a tc.Redact, and not {printable(item)}"
            raise ValueError(message)
        else:
            found.extend(compiled([item], secret=False))
    return _distinct(tuple(found))


def rules_of(own: Iterable[object], normalise: Iterable[object] = (), *, declared: bool = False) -> Rules:
    """The newest default set with the user's rules and normalisers. Raises ``ValueError``."""
    return Rules(NEWEST, _distinct((*compiled(own), *normalisers(normalise))), declared)


def recorded_set(entries: Iterable[str]) -> str | None:
    """The version of the default set that a header names; None where nothing was redacted.

    Raises ``FormatError`` ``rules_unknown`` for one that this release does not know.
    """
    version = next((entry for entry in entries if "/" in entry and "#" not in entry), None)
    if version is not None and version not in _SETS:
        raise FormatError("rules_unknown", frame=0)
    return version


def _distinct(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            message = f"two rules go by the id {rule.id}; give one of them another id="
            raise ValueError(message)
        seen.add(rule.id)
    return rules


def _compiled(rule: Redact, *, secret: bool) -> Rule:
    kind, what, spec, name = _kind(rule.what)
    found = rule.id or name
    if found is None:
        raise ValueError("a rule that is a function needs an id=, which names it in the cassette")
    if not _ID.fullmatch(found) or found == "declared":
        message = f"a rule's id is 1 to 64 of A-Z a-z 0-9 . _ -, and not {printable(found)}; pass id="
        raise ValueError(message)
    handed: tuple[Tree] | None = None
    if rule.stand_in is not _NOTHING:
        spec += "=" + encode_value(rule.stand_in).decode("utf-8")
        handed = (_tree(rule.stand_in),)
    return Rule(found, kind, what, _digest(kind, spec), handed, secret)


def _kind(what: object) -> tuple[str, Any, str, str | None]:
    """Kind, compiled form, text that the digest covers, and the id where none is given."""
    if isinstance(what, str) and what.startswith("$"):
        return "path", _steps(what), what, re.sub(r"[^A-Za-z0-9._-]+", "-", what[1:]).strip(".-")[:64] or "root"
    if isinstance(what, str):
        if not words(what):
            raise ValueError("a rule that is a name needs at least one letter or digit")
        return "name", tuple(words(what)), " ".join(words(what)), re.sub(r"[^A-Za-z0-9._-]+", "-", what)[:64]
    if isinstance(what, re.Pattern) and isinstance(what.pattern, str):
        spec = f"{what.flags}:{what.pattern}"
        return "pattern", what, spec, f"pattern-{_digest('pattern', spec)[:8]}"
    if isinstance(what, PurePath):
        return "directory", directory_pattern([what]), "", "directory"  # where it lies is no part of the rule
    if callable(what):
        return "finder", what, "", None
    message = f"a rule is a name, a JSON path, a pattern of str, a path or a function, and not {type(what).__name__}"
    raise ValueError(message)


def _steps(path: str) -> tuple[str | int | None, ...]:
    """The steps of a JSON path; None for any."""
    steps: list[str | int | None] = []
    at = 1
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            message = f"{printable(path)} is no JSON path like $.user['last name'][0] or $.rows[*].id"
            raise ValueError(message)
        name, anything, index, quoted = match.groups()
        if name == "*" or anything:
            steps.append(None)
        elif index:
            steps.append(int(index))
        else:
            steps.append(name or re.sub(r"\\(.)", r"\1", quoted))
        at = match.end()
    return tuple(steps)


def _tree(value: object) -> Tree:
    tree: Tree = decode_tree(encode_value(value))
    return tree


def _digest(kind: str, spec: str) -> str:
    return hashlib.sha256(f"{kind}\0{spec}".encode()).hexdigest()[:_DIGEST_HEX]


def own_name(rule: Rule, name: str) -> bool:
    """Whether a name rule of the user's matches a name: its words are the last ones of it."""
    phrase: tuple[str, ...] = rule.what
    return tuple(words(name)[-len(phrase) :]) == phrase
