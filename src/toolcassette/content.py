"""What one call of a cassette says, as a tree of named members: what ``view`` shows and ``diff`` compares.

Rule: everything but ids, times and numbers; what a call does not have is absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from toolcassette.format import decode_tree

if TYPE_CHECKING:
    from toolcassette.format import RecordedCall

__all__ = ["call_tree"]

_BULK: Final = ("value", "error", "contexts", "meta")


def call_tree(call: RecordedCall) -> dict[str, Any]:
    """The members of a call in a fixed order: tool, boundary (unless ``tool``), path, arguments, outcome, and what
    it came to. Raises ``FormatError`` ``bulk`` for stored bytes that are not canonical.
    """
    members: dict[str, Any] = {
        "tool": call.tool,
        "boundary": None if call.boundary == "tool" else call.boundary,
        "path": list(call.path),
        "effect": call.effect,
        "omitted": list(call.omitted) or None,
        "args": decode_tree(call.args, sort=True),
        "outcome": call.outcome,
        "phase": call.phase,
        "chunks": None if call.chunks is None else [decode_tree(chunk) for chunk in call.chunks],
    }
    present = {name: member for name, member in members.items() if member is not None}
    stored = ((name, getattr(call, name)) for name in _BULK)
    return {**present, **{name: decode_tree(data) for name, data in stored if data is not None}}
