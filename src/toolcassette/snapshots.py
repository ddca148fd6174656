"""Could a body have changed a value, and has it?

Rule: the cheapest answer that is surely right; where it is not, the caller looks closer.
"""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["are_frozen", "marshalled"]

_FROZEN: Final = frozenset({str, int, float, bool, type(None), bytes})


def marshalled(parts: Any) -> bytes | None:
    """Bytes that change when a part does; None where there are other types than builtin ones."""
    try:
        return marshal.dumps(parts, 2)  # version 2 says nothing of who else refers to a part
    except ValueError:
        return None


def are_frozen(values: Collection[Any]) -> bool:
    """True if no body could change any of them."""
    for value in values:  # a loop: most have few values, and a generator costs more than all of them
        kind = type(value)
        if kind not in _FROZEN and not (kind is tuple and are_frozen(value)):
            return False
    return True
