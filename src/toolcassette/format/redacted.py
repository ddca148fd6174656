"""The tag of a value that was taken out: what a reader that knows no rules makes of it (FORMAT.md section 5.1).

Rule: a stand-in is never the value. It reads as its text, or as what its rule wants handed out in its place.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Protocol

from toolcassette.format.containers import TAG

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["decode", "is_exact"]

_RULE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class _Reads(Protocol):
    def value(self, tree: Any) -> Any: ...


def _decode(decoder: _Reads, tree: dict[str, Any]) -> Any:
    if "v" in tree:
        return decoder.value(tree["v"])
    text = f"⟦redacted:{tree['rule']}:{tree['n']}⟧"
    return text.encode() if "of" in tree else text


def _is_exact(tree: dict[str, Any], _value: Any) -> bool:
    members = [name for name in (TAG, "n", "of", "rule", "v") if name in tree]
    return (
        list(tree) == members
        and type(tree["n"]) is int
        and tree["n"] > 0
        and tree.get("of", "bytes") == "bytes"
        and type(tree["rule"]) is str
        and _RULE.fullmatch(tree["rule"]) is not None
    )


decode: Final[dict[str, Callable[[Any, dict[str, Any]], Any]]] = {"redacted": _decode}
is_exact: Final[dict[str, Callable[[dict[str, Any], Any], bool]]] = {"redacted": _is_exact}
