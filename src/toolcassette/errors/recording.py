"""What keeps a recording from becoming a cassette.

Rule: fields and a stable code; the text is derived from them and quotes no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcassette.errors.base import CassetteError
from toolcassette.reasons import NOT_PUBLISHED_REASONS, REDACTION_REASONS, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["IncludeUnused", "NestedSelection", "NotPublished", "RedactionError", "UnrecordableValue"]


class NotPublished(CassetteError):
    """A recording ended without a cassette; its frames are kept in the partial. ``reason`` is stable."""

    code = "CASSETTE_NOT_PUBLISHED"
    exit_status = 1
    reason: str

    def __init__(self, reason: str, *, detail: str = "") -> None:
        super().__init__(
            f"nothing was published, the partial is kept: {NOT_PUBLISHED_REASONS[reason]}"
            + (f" ({detail})" if detail else "")
        )
        self.reason = reason


class NestedSelection(NotPublished):
    """A selected call ran inside the body of another selected call: which of the two is the leaf?"""

    code = "CASSETTE_NESTED"
    tool: str
    inside: str

    def __init__(self, *, tool: str, inside: str) -> None:
        super().__init__("nested", detail=f"{printable(tool)} inside {printable(inside)}")
        self.tool = tool
        self.inside = inside


class IncludeUnused(CassetteError):
    """With ``strict_include``: ``patterns`` of include that selected nothing by the end of the session."""

    code = "CASSETTE_INCLUDE_UNUSED"
    exit_status = 1
    patterns: tuple[str, ...]

    def __init__(self, patterns: Sequence[str]) -> None:
        names = ", ".join(printable(pattern) for pattern in patterns)
        super().__init__(f"include selected nothing by {names}; correct the pattern, or pass strict_include=False")
        self.patterns = tuple(patterns)


class UnrecordableValue(CassetteError):
    """A value that would not come back as it went. ``json_path`` says where, ``type_name`` what stands there."""

    code = "CASSETTE_UNRECORDABLE"
    exit_status = 1
    json_path: str
    type_name: str
    tool: str | None

    def __init__(self, *, json_path: str, type_name: str, why: str, tool: str | None = None) -> None:
        of = f" of {printable(tool)}" if tool else ""
        super().__init__(f"cannot record {printable(json_path)}{of}: {printable(type_name)} {why}")
        self.json_path = json_path
        self.type_name = type_name
        self.tool = tool
        self._why = why

    def below(self, member: str) -> UnrecordableValue:
        """The same error, in what stands under ``member`` of something larger."""
        path = f"$.{member}{self.json_path.removeprefix('$')}"
        return UnrecordableValue(json_path=path, type_name=self.type_name, why=self._why, tool=self.tool)

    def of(self, tool: str) -> UnrecordableValue:
        """The same error, with the tool it happened in."""
        return UnrecordableValue(json_path=self.json_path, type_name=self.type_name, why=self._why, tool=tool)


class RedactionError(CassetteError):
    """A rule of redaction cannot do its work. ``reason`` is stable; ``rule`` is its id, ``json_path`` says where."""

    code = "CASSETTE_REDACTION"
    exit_status = 1
    reason: str
    rule: str
    json_path: str
    tool: str | None

    def __init__(
        self, reason: str, *, rule: str, json_path: str = "$", detail: str = "", tool: str | None = None
    ) -> None:
        what, advice = REDACTION_REASONS[reason]
        of = f" of {printable(tool)}" if tool else ""
        more = f" ({printable(detail)})" if detail else ""
        super().__init__(f"{what}{more} ({reason}): rule {printable(rule)}, {printable(json_path)}{of}; {advice}")
        self.reason = reason
        self.rule = rule
        self.json_path = json_path
        self.tool = tool
        self._detail = detail

    def of(self, tool: str) -> RedactionError:
        """The same error, with the tool it happened in."""
        return RedactionError(self.reason, rule=self.rule, json_path=self.json_path, detail=self._detail, tool=tool)
