"""What the rules find in one text: the order in which they are asked, and what comes of a find.

Rule: the user's own rules come first, then what is known, then shapes, then names inside the text; of finds that
overlap, the one that begins first stays. A stand-in that was handed out is nobody's secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from toolcassette.errors import RedactionError
from toolcassette.redaction.names import secret_name
from toolcassette.redaction.rules import own_name
from toolcassette.redaction.shapes import ASSIGNED, LONG_SHAPES, QUOTED, RUN, SCHEME, SHORT_SHAPES
from toolcassette.redaction.standins import STANDIN, Ref, text
from toolcassette.redaction.views import Edit

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator, Sequence

    from toolcassette.format import Tree
    from toolcassette.redaction.rules import Rule, Rules
    from toolcassette.redaction.secrets import Secrets

__all__ = ["Finding", "Look"]

_ASSIGNMENTS: Final = (("=", ASSIGNED), ('"', QUOTED))
_COOKIES: Final = frozenset({"cookie", "cookies"})


class Finding(NamedTuple):
    """A secret that stands where none may: by which rule, and at which JSON path."""

    rule: str
    json_path: str


class Look:
    """How one value is looked at: by the session's rules and those of its tool."""

    encodes = True

    def __init__(self, given: Rules, secrets: Secrets, own: Sequence[Rule] = ()) -> None:
        self._secrets = secrets
        rules = (*own, *given.own)
        self._names = [rule for rule in rules if rule.kind == "name"]
        self._texts = [rule for rule in rules if rule.kind in ("pattern", "finder", "directory")]
        self._handed = {rule.id: rule.handed for rule in rules if rule.handed is not None}
        self._default = given.version is not None
        self._rules: list[str] = []  # of the finds since ``taken``
        self.at: Callable[[], str] = lambda: "$"

    def handed(self, rule: str) -> tuple[Tree] | None:
        """What a rule wants handed out for a whole value."""
        return self._handed.get(rule)

    @property
    def run_min(self) -> int:
        """Characters of the shortest base64 that is looked into."""
        return self._secrets.run_min

    @property
    def has_taken(self) -> bool:
        """True if something was found since ``taken``."""
        return bool(self._rules)

    def taken(self, json_path: str) -> list[Finding]:
        """What was found since this was last asked."""
        rules, self._rules = dict.fromkeys(self._rules), []
        return [Finding(rule, json_path) for rule in rules]

    def direct(self, value: str, *, binary: bool = False) -> list[Edit]:
        """What is to be replaced in a text as it stands. ``binary``: it is no text, and holds no names."""
        before = len(self._rules)
        found = [edit for rule in self._texts for edit in self._by_rule(rule, value)]
        found += [self._edit(start, end, ref) for start, end, ref in self._secrets.found_in(value)]
        if self._default:
            found += self._shapes(value)
            for sign, pattern in _ASSIGNMENTS:
                if sign in value and not binary:
                    found += self._assigned(pattern, value)
        if not found:
            return found
        kept = self._beside_given(value, _first(found)) if "⟦" in value else _first(found)
        rules = zip(found, self._rules[before:], strict=True)  # one was noted for each find
        self._rules[before:] = [rule for edit, rule in rules if any(edit is other for other in kept)]
        return kept

    def is_name(self, name: str) -> bool:
        """True if a text under this name is looked at for its name."""
        return (self._default and secret_name(name) is not None) or any(own_name(rule, name) for rule in self._names)

    def named(self, name: str, value: str) -> list[Edit] | None:
        """What is to be replaced in a text because of the name that it stands under; None where that is nothing."""
        if not value:
            return None
        own = next((rule for rule in self._names if own_name(rule, name)), None)
        rule = own.id if own else secret_name(name) if self._default else None
        if rule is None:
            return None
        given = STANDIN.fullmatch(value)
        if given is not None and self._secrets.is_given(int(given.group(2))):
            return []
        scheme = SCHEME.fullmatch(value)
        start, end = scheme.span(1) if scheme else (0, len(value))
        inner = STANDIN.fullmatch(scheme.group(1)) if scheme else None
        if inner is not None and self._secrets.is_given(int(inner.group(2))):
            return None
        secret = value[start:end]
        ref = self._secrets.everywhere(secret, rule) if own is None or own.secret else self._secrets.ref(secret, rule)
        if rule in _COOKIES:
            for part in secret.split(";"):
                self._learn(part.partition("=")[2].strip(), rule)
        return [self._edit(start, end, ref, rule)]

    def _learn(self, value: str, rule: str) -> None:
        if value:
            self._secrets.everywhere(value, rule)

    def _edit(self, start: int, end: int, ref: Ref, rule: str = "") -> Edit:
        self._rules.append(rule or ref.rule)
        self._secrets.used.add(rule or ref.rule)
        return Edit(start, end, text(ref))

    def _shapes(self, value: str) -> Iterator[Edit]:
        for shape in SHORT_SHAPES if RUN.search(value) is None else (*LONG_SHAPES, *SHORT_SHAPES):
            for needle in shape.needles:
                if needle in value:
                    break
            else:
                continue
            for match in shape.pattern.finditer(value):
                start, end = match.span(1 if shape.pattern.groups else 0)
                # A password in an address may be a word; the rest proves itself.
                surely = shape.id not in ("url-credentials", "header")
                ref = self._secrets.everywhere(value[start:end], shape.id, surely=surely)
                yield self._edit(start, end, ref, shape.id)

    def _assigned(self, pattern: re.Pattern[str], value: str) -> Iterator[Edit]:
        for match in pattern.finditer(value):
            rule = secret_name(match["name"])
            if rule is not None:
                ref = self._secrets.everywhere(match["value"], rule)
                yield self._edit(*match.span("value"), ref, rule)

    def _by_rule(self, rule: Rule, value: str) -> Iterator[Edit]:
        if rule.kind == "directory":
            for match in rule.what.finditer(value):
                self._secrets.used.add(rule.id)
                self._rules.append(rule.id)
                rest = match.group(2).replace("\\\\", "/").replace("\\", "/")
                yield Edit(match.start(), match.end(), text(self._secrets.ref(f"\0{rule.id}", rule.id)) + rest)
            return
        for start, end in self._spans(rule, value):
            secret = value[start:end]
            ref = self._secrets.everywhere(secret, rule.id) if rule.secret else self._secrets.ref(secret, rule.id)
            yield self._edit(start, end, ref, rule.id)

    def _spans(self, rule: Rule, value: str) -> Iterator[tuple[int, int]]:
        if rule.kind == "pattern":
            group = 1 if rule.what.groups else 0
            spans = (match.span(group) for match in rule.what.finditer(value))
            yield from (span for span in spans if span[0] < span[1])
            return
        try:
            parts = {part for part in rule.what(value) if type(part) is str and part}
        except Exception as error:  # noqa: BLE001 - the user's own code
            raise RedactionError(
                "rule_failed", rule=rule.id, json_path=self.at(), detail=type(error).__qualname__
            ) from None
        for part in parts:
            at = value.find(part)
            while at >= 0:
                yield at, at + len(part)
                at = value.find(part, at + len(part))

    def _beside_given(self, value: str, found: list[Edit]) -> list[Edit]:
        """Without finds that reach into a stand-in that was handed out."""
        given = [m.span() for m in STANDIN.finditer(value) if self._secrets.is_given(int(m.group(2)))]
        return [edit for edit in found if all(edit.end <= start or edit.start >= end for start, end in given)]


def _first(found: list[Edit]) -> list[Edit]:
    """Of finds that overlap the first by the order of the rules."""
    kept: list[Edit] = []
    for edit in found:
        if all(edit.end <= other.start or edit.start >= other.end for other in kept):
            kept.append(edit)
    return sorted(kept, key=lambda edit: edit.start)
