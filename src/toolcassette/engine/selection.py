"""Which tools a session selects: exact names and ``*`` globs.

Rule: a selection is validated when it is made, matching takes time linear in the name, and a pattern that selected
nothing is known at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcassette.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Selection", "glob_matches", "unused_note"]


def glob_matches(pattern: str, name: str) -> bool:
    """True if ``name`` is ``pattern``, in which each ``*`` stands for any run of characters, also of none."""
    head, star, rest = pattern.partition("*")
    if not star:
        return name == pattern
    *middle, tail = rest.split("*")
    if not name.startswith(head) or len(name) < len(head) + len(tail) or not name.endswith(tail):
        return False
    at, end = len(head), len(name) - len(tail)
    for part in middle:  # leftmost fits are enough: what follows has the most room
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


class Selection:
    """An include list. Raises ``ValueError`` for an empty one, an empty or a doubled pattern, or a bare string."""

    __slots__ = ("_known", "_used", "patterns")

    def __init__(self, patterns: Iterable[str]) -> None:
        if isinstance(patterns, str):
            message = "include must be a list of patterns, not one string: write include=['name']"
            raise ValueError(message)  # noqa: TRY004 - every fault of include is a ValueError
        self.patterns = tuple(patterns)
        if not self.patterns:
            message = "include must name at least one tool"
            raise ValueError(message)
        if not all(isinstance(pattern, str) and pattern for pattern in self.patterns):
            message = "include has an empty pattern"
            raise ValueError(message)
        doubled = {pattern for pattern in self.patterns if self.patterns.count(pattern) > 1}
        if doubled:
            message = f"include has {printable(min(doubled))} twice"
            raise ValueError(message)
        self._known: dict[str, bool] = {}
        self._used: set[str] = set()

    def selects(self, name: str) -> bool:
        """True if a pattern selects the tool ``name``; the pattern then counts as used."""
        known = self._known.get(name)
        if known is None:
            hits = {pattern for pattern in self.patterns if glob_matches(pattern, name)}
            self._used |= hits
            known = self._known[name] = bool(hits)
        return known

    def unused(self) -> tuple[str, ...]:
        """The patterns that selected nothing so far, in their order."""
        return tuple(pattern for pattern in self.patterns if pattern not in self._used)


def unused_note(unused: Sequence[str]) -> list[str]:
    """What a verdict notes of patterns that selected nothing; nothing where there are none."""
    return [f"include selected nothing by {', '.join(map(printable, unused))}"] if unused else []
