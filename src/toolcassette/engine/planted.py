"""Secrets that stand in a cassette all the same: recorded without rules, by older ones, or put there by hand.

Rule: the rules of today, whatever the cassette was recorded under, and every view that redaction itself looks through.
The items of a stream are looked at one by one, and joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcassette.format import TRAILER_BYTES, bulk_members, decode_tree
from toolcassette.redaction import NEWEST, Redactor, Rules, text_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Joined", "planted"]


def planted(lines: Iterable[bytes], rules: Rules, secrets: Sequence[str] = ()) -> list[tuple[int, str, str]]:
    """Frame, JSON path (from the member, ``$.args.key``) and rule of each secret. ``rules``: the user's own besides.

    Raises ``RedactionError`` where a rule of the user's fails, ``FormatError`` where a frame is not canonical.
    """
    redactor = Redactor(Rules(NEWEST, tuple(rule for rule in rules.own if rule.secret)), declared=secrets)
    redactor.review()
    found: list[tuple[int, str, str]] = []
    streams: dict[int, Joined] = {}
    for frame, line in enumerate(lines):
        is_chunk = b'"kind":"call/chunk"' in line[:48]
        if frame == 0 or (not (is_chunk or streams) and redactor.is_clean(line[:-TRAILER_BYTES])):
            continue
        call, members = bulk_members(line)
        rows = [row for member, data in members for row in _findings(redactor, frame, member, data)]
        if is_chunk:
            streams.setdefault(call, Joined()).add(frame, members[0][1], found_here=bool(rows))
        elif call in streams:
            rows += streams.pop(call).findings(redactor)
        found += rows
    return [*found, *(row for joined in streams.values() for row in joined.findings(redactor))]


def _findings(redactor: Redactor, frame: int, member: str, data: bytes) -> Iterator[tuple[int, str, str]]:
    name = "value" if member == "chunk" else member
    for rule, at in redactor.findings(data, sort=member == "args"):
        yield frame, f"$.{name}{redactor.without_secrets(at).removeprefix('$')}", rule


class Joined:
    """The texts of a stream so far, by JSON path."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, type], list[Any]] = {}
        self._frame = 0
        self._found = False

    def add(self, frame: int, data: bytes, *, found_here: bool) -> None:
        """Take the next item. ``found_here``: it holds a secret by itself, which is told already."""
        self._frame = frame
        self._found = self._found or found_here
        for path, text in texts_of(decode_tree(data)):
            self._texts.setdefault((path, type(text)), []).append(text)

    def findings(self, redactor: Redactor) -> list[tuple[int, str, str]]:
        """What only the joined items hold, at the frame of the last one."""
        if self._found:
            return []
        return [
            (self._frame, f"$.value{redactor.without_secrets(path).removeprefix('$')}", rule)
            for (path, kind), parts in self._texts.items()
            if len(parts) > 1
            for rule in redactor.text_rules("".join(parts) if kind is str else text_of(b"".join(parts)))
        ]
