"""A value with what came beside it: what a tool returns that has contexts or meta to give.

Rule: frozen, equal by its parts, and silent about what they hold.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Generic, TypeVar

__all__ = ["ToolReturn"]

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class ToolReturn(Generic[_T]):  # noqa: PLW1641 - its parts can change, so it has no hash
    """``value`` is the tool's result; ``contexts`` are values for the program beside it, ``meta`` a dict about it.

    A replay hands out all three again. Contexts and meta hold builtin and registered types; the keys of ``meta`` are
    str. Raises ``TypeError`` for anything else than a list and a dict (or None).
    """

    value: _T
    contexts: list[Any] = dataclasses.field(default_factory=list)
    meta: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if type(self.contexts) is not list:
            message = "contexts of a ToolReturn must be a list"
            raise TypeError(message)
        if self.meta is not None and (type(self.meta) is not dict or any(type(key) is not str for key in self.meta)):
            message = "meta of a ToolReturn must be a dict with str keys, or None"
            raise TypeError(message)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ToolReturn):
            return NotImplemented
        theirs: ToolReturn[Any] = other
        return (self.value, self.contexts, self.meta) == (theirs.value, theirs.contexts, theirs.meta)

    def __repr__(self) -> str:
        names = "" if self.meta is None else f" meta={len(self.meta)}"
        return f"<ToolReturn {type(self.value).__qualname__} contexts={len(self.contexts)}{names}>"


ToolReturn.__module__ = "toolcassette"  # its public home
