"""What one call of a cassette says, as a tree of named members: what ``view`` shows and ``diff`` compares.

Rule: everything but ids, times and numbers; what a call does not have is absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from toolcassette.format import decode_tree, encode_tree
from toolcassette.redaction import legible

if TYPE_CHECKING:
    from toolcassette.format import RecordedCall

__all__ = ["call_tree", "with_stand_ins"]

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


def with_stand_ins(data: bytes) -> str:
    """Canonical JSON to look at: stand-ins of whole values as ``"⟦redacted:api-key:1⟧"``, and not as tag objects."""
    tree = decode_tree(data) if b'"redacted"' in data else None
    return data.decode("utf-8") if tree is None else encode_tree(_shown(tree), sort=False).decode("utf-8")


def _shown(tree: Any) -> Any:
    stand_in = legible(tree)
    if stand_in is not None:
        return stand_in
    if type(tree) is dict:
        return {key: _shown(value) for key, value in tree.items()}
    return [_shown(item) for item in tree] if type(tree) is list else tree
