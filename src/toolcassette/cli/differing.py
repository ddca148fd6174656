"""What ``diff`` found, as text, JSON and Markdown.

Rule: values are shown only if asked for. In Markdown everything that comes from a file stands in a fenced block, each
of its lines behind a mark of our own, so that it can neither be markup nor end the block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolcassette.cli.outlet import counted, shown
from toolcassette.content import with_stand_ins
from toolcassette.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolcassette.compare import CallChange, Diff, Difference, Place

__all__ = ["FORMS", "Compared", "as_json", "in_summary", "named"]

_SUMMARY_BYTES_MAX: Final = 1_000_000  # GitHub refuses a step's summary above 1 MiB
_PLACES_MAX: Final = 20  # per call; --format json has all
_VALUE_CHARS_MAX: Final = 200  # what one looks at; --format json has it whole
_JSON_PATH_CHARS_MAX: Final = 300
_MARKS: Final = {"added": "+", "removed": "-", "changed": "!", "reordered": "!"}
_INTERLEAVING: Final = "the calls are the same; across call paths they started or ended in another order"


class Compared(NamedTuple):
    """One pair of cassettes: what they are called, and how they differ."""

    name: str
    diff: Diff


Render = Callable[[Sequence[Compared], bool], "Iterator[str]"]


def _headline(diff: Diff) -> str:
    if diff.only is not None:
        calls = counted(diff.new_calls if diff.only == "new" else diff.old_calls, "call")
        return f"{'new cassette' if diff.only == 'new' else 'the cassette is gone'} ({calls})"
    if diff.same:
        return f"the same ({counted(diff.new_calls, 'call')})"
    parts = [f"{number} {kind}" for kind, number in diff.counts.items() if number]
    parts += ["header differs"] if diff.header else []
    parts += ["interleaved otherwise"] if diff.interleaving else []
    return f"{', '.join(parts)} ({counted(diff.unchanged, 'call')} unchanged)"


# -- as text ---------------------------------------------------------------------------------------------------------


def _text(compared: Sequence[Compared], values: bool) -> Iterator[str]:
    different = [item for item in compared if not item.diff.same]
    if len(compared) > 1 and not different:
        yield f"{counted(len(compared), 'cassette')} compared, no difference"
    for name, diff in different if len(compared) > 1 else compared:
        yield f"{name}: {_headline(diff)}"
        yield from (f"  {line}" for line in _detail(diff, values))


def _detail(diff: Diff, values: bool) -> Iterator[str]:
    """One line a call, each place of it in a line below. The first character is the mark."""
    if diff.header:
        yield "! header"
        yield from _places(diff.header, values)
    for change in diff.calls:
        yield f"{_MARKS[change.kind]} {_what(change)}"
        yield from _places(change.differs, values)
    if diff.interleaving:
        yield f"! {_INTERLEAVING}"


def _what(change: CallChange) -> str:
    kind = "changed and reordered" if change.kind == "changed" and change.reordered else change.kind
    boundary = "" if change.boundary == "tool" else f"{printable(change.boundary)} "
    return f"{kind}: {boundary}{printable(change.tool)}, {_where(change)}"


def _where(change: CallChange) -> str:
    old, new = change.old, change.new
    if old is None or new is None:
        only = old or new
        return "" if only is None else _place(only)
    if old.path == new.path:
        moved = "" if old.ordinal == new.ordinal else f" -> {new.ordinal}"
        return _place(old) + moved
    return f"{_place(old)} -> {_place(new)}"


def _place(place: Place) -> str:
    return f"path /{'/'.join(map(printable, place.path))}, ordinal {place.ordinal}"


def _places(differs: Sequence[Difference], values: bool) -> Iterator[str]:
    for difference in differs[:_PLACES_MAX]:
        where = printable(difference.json_path, _JSON_PATH_CHARS_MAX)
        yield f"    {where} {difference.kind}{_values(difference) if values else ''}"
    if len(differs) > _PLACES_MAX:
        yield f"    ... and {len(differs) - _PLACES_MAX} more"


def _values(difference: Difference) -> str:
    old, new = (
        "nothing" if side is None else printable(with_stand_ins(side), _VALUE_CHARS_MAX)
        for side in (difference.old, difference.new)
    )
    return f": {old} -> {new}"


# -- as JSON ---------------------------------------------------------------------------------------------------------


def as_json(compared: Sequence[Compared], values: bool) -> list[dict[str, Any]]:
    """One object for each pair, nothing cut."""
    return [_fields(name, diff, values) for name, diff in compared]


def _fields(name: str, diff: Diff, values: bool) -> dict[str, Any]:
    return {
        "cassette": name,
        "same": diff.same,
        "only": diff.only,
        **diff.counts,
        "unchanged": diff.unchanged,
        "interleaving": diff.interleaving,
        "header": [_difference_fields(difference, values) for difference in diff.header],
        "calls": [_change_fields(change, values) for change in diff.calls],
    }


def _change_fields(change: CallChange, values: bool) -> dict[str, Any]:
    old, new = (None if side is None else side._asdict() for side in (change.old, change.new))
    return {
        "kind": change.kind,
        "boundary": change.boundary,
        "tool": change.tool,
        "old": old,
        "new": new,
        "reordered": change.reordered,
        "differs": [_difference_fields(difference, values) for difference in change.differs],
    }


def _difference_fields(difference: Difference, values: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"json_path": difference.json_path, "kind": difference.kind}
    if values:  # a side that has nothing there has no member: null is a value
        sides = (("old", difference.old), ("new", difference.new))
        fields.update((name, json.loads(side)) for name, side in sides if side is not None)
    return fields


# -- as Markdown -----------------------------------------------------------------------------------------------------


def _markdown(compared: Sequence[Compared], values: bool) -> Iterator[str]:
    different = [item for item in compared if not item.diff.same]
    yield "### Cassettes"
    yield ""
    if not different:
        yield f"{counted(len(compared), 'cassette')} compared, no difference."
        return
    yield f"{counted(len(compared), 'cassette')} compared, {len(different)} different."
    for name, diff in different:
        yield from ("", f"#### {_span(name)}", "", f"{_headline(diff)}", "")
        lines = list(_detail(diff, values))
        if lines:
            yield from ("```diff", *lines, "```")


def _span(text: str) -> str:
    """A code span that holds any text of one line."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def in_summary(lines: Iterable[str]) -> Iterator[str]:
    """The lines that fit into a step's summary; where some do not, whatever block is open is closed, and it says so."""
    left = _SUMMARY_BYTES_MAX
    inside = False
    for line in lines:
        left -= len(line.encode("utf-8", "backslashreplace")) + 1
        if left < 0:
            yield from (("```",) if inside else ())
            yield from ("", "... and more than a summary may hold: run it again where you can see all.")
            return
        inside ^= line.startswith("```")
        yield line


FORMS: Final[dict[str, Render]] = {
    "text": _text,
    "markdown": lambda compared, values: in_summary(_markdown(compared, values)),
}


def named(old: str, new: str) -> str:
    """The name of a pair of files, safe to print."""
    return f"{shown(old)} -> {shown(new)}"
