"""The refusal of a value on its way into a cassette: where it stands, what it is, why not.

Rule: it names types and JSON paths, never values. It is raised where the value is met and learns its path on the way
out, so that a value that is fine costs nothing for it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from toolcassette.errors import UnrecordableValue
from toolcassette.format.canonical import DEPTH_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Refused", "cannot", "json_path", "too_deep"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NO_FORM = "has no lossless form; return a type that is listed in FORMAT.md, or annotate the tool"


def json_path(segments: Iterable[str | int]) -> str:
    """``$.rows[3]["odd key"]``: where a value stands, from its root."""
    words = ["$"]
    for segment in segments:
        if isinstance(segment, int):
            words.append(f"[{segment}]")
        elif _IDENTIFIER.match(segment):
            words.append(f".{segment}")
        else:
            words.append(f"[{json.dumps(segment)}]")
    return "".join(words)


class Refused(Exception):
    """A value cannot be written or read back; carries the path from the root, innermost segment first.

    A signal inside this package and its callers, never shown.
    """

    def __init__(self, type_name: str, why: str) -> None:
        super().__init__(why)
        self.type_name = type_name
        self.why = why
        self.segments: list[str | int] = []

    def under(self, segment: str | int) -> Refused:
        """The same refusal, seen from one level further out."""
        self.segments.append(segment)
        return self

    def as_error(self) -> UnrecordableValue:
        """The error to raise at the edge."""
        path = json_path(reversed(self.segments))
        return UnrecordableValue(json_path=path, type_name=self.type_name, why=self.why)


def cannot(value: object, why: str = _NO_FORM) -> Refused:
    """The refusal of a value, by the name of its type."""
    return Refused(type(value).__qualname__, why)


def too_deep(value: object) -> Refused:
    """The refusal of a value that nests too deep."""
    return cannot(value, f"is nested deeper than {DEPTH_MAX} levels of JSON")
