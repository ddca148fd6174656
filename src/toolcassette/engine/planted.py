"""Secrets that stand in a cassette all the same: recorded without rules, by older ones, or put there by hand.

Rule: what ``scan`` would find in the file (``Search``); nothing here knows where to look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcassette.engine.searching import Search

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolcassette.redaction import Rules

__all__ = ["planted"]


def planted(lines: Iterable[bytes], rules: Rules, secrets: Sequence[str] = ()) -> list[tuple[int, str, str]]:
    """Frame, JSON path (``$.args.key``) and rule of each secret. ``rules``: the user's own besides.

    Raises ``RedactionError`` where a rule of the user's fails.
    """
    search = Search(rules, secrets)
    found = [row for frame, line in enumerate(lines) for row in search.line(frame, line)]
    return list(dict.fromkeys([*found, *search.end()]))
