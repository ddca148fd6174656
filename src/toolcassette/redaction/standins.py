"""Stand-ins: what a cassette holds in the place of a secret (FORMAT.md section 5.1).

Theory. A whole value is the tag object ``{"$tc":"redacted","n":1,"rule":"api-key"}`` (``"of":"bytes"`` for bytes; with
a member ``v``, what the rule wants handed out). Inside a string it is the text ``⟦redacted:api-key:1⟧``. ``n`` is the
same for the same secret in one cassette; ``rule`` says which rule found it first. A text that merely looks like one
gets a backslash after the bracket, and loses it again when it is handed out.

Rule: what is handed out for a whole secret is the text form, as str or bytes, so that a program that puts it into
another string makes the very text that was recorded there.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolcassette.format import TAG

if TYPE_CHECKING:
    from toolcassette.format import Tree

__all__ = ["MARK", "STANDIN", "Ref", "escaped", "is_redacted", "legible", "ref_of", "shown", "tag", "text", "unescaped"]

MARK: Final = "⟦redacted:"
STANDIN: Final = re.compile(r"⟦redacted:([A-Za-z0-9._-]{1,64}):([0-9]{1,16})⟧")
_LIKE: Final = re.compile(r"⟦(\\*)(?=redacted:)")
_ESCAPED: Final = re.compile(r"⟦\\(\\*)(?=redacted:)")


class Ref(NamedTuple):
    """One secret of one cassette: its number, and the rule that found it."""

    n: int
    rule: str


def text(ref: Ref) -> str:
    """The text form."""
    return f"{MARK}{ref.rule}:{ref.n}⟧"


def tag(ref: Ref, *, of: str = "str", handed: tuple[Tree] | None = None) -> dict[str, Tree]:
    """The tag object of a whole value. ``of``: str or bytes; ``handed``: a value to hand out in its place."""
    tree: dict[str, Tree] = {TAG: "redacted", "n": ref.n}
    if of != "str":
        tree["of"] = of
    tree["rule"] = ref.rule
    if handed is not None:
        tree["v"] = handed[0]
    return tree


def is_redacted(tree: Any) -> bool:
    """True for a tag object of this kind."""
    return type(tree) is dict and tree.get(TAG) == "redacted"


def ref_of(tree: dict[str, Any]) -> Ref:
    """Whom a tag object stands for."""
    return Ref(tree["n"], tree["rule"])


def shown(tree: dict[str, Any]) -> Tree:
    """What is handed out for a tag object, as a tree."""
    if "v" in tree:
        handed: Tree = tree["v"]
        return handed
    words = text(ref_of(tree))
    if tree.get("of") == "bytes":
        return {TAG: "bytes", "v": base64.b64encode(words.encode()).decode("ascii")}
    return words


def legible(tree: Any) -> str | None:
    """A tag object of this kind in words, as no JSON spells them: ``⟦redacted:api-key:1⟧ (bytes)``. None for others.

    None also where it says what to hand out, which is to be seen.
    """
    if not is_redacted(tree) or not tree.keys() <= {TAG, "n", "of", "rule"}:
        return None
    words = text(ref_of(tree))
    return f"{words} ({tree['of']})" if "of" in tree else words


def escaped(value: str) -> str:
    """``value`` so that nothing in it passes for a stand-in."""
    return _LIKE.sub(r"⟦\\\1", value) if "⟦" in value else value


def unescaped(value: str) -> str:
    """What ``escaped`` was given."""
    return _ESCAPED.sub(r"⟦\1", value) if "⟦\\" in value else value
