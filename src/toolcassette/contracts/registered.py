"""Registered types under an annotation that names them.

Rule: asked before every other door, so that a registration also decides for classes that a door would know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcassette.contracts.hints import class_of
from toolcassette.contracts.names import readable
from toolcassette.contracts.nodes import AnyNode, Node, Reading, Unfit
from toolcassette.errors import FormatError
from toolcassette.format import TAG

if TYPE_CHECKING:
    from toolcassette.contracts.compiler import Compiler
    from toolcassette.contracts.extensions import Registered
    from toolcassette.format import Tree

__all__ = ["build"]


def build(annotation: object, compiler: Compiler) -> Node | None:
    """The node of a registered class, None for anything else."""
    known = compiler.extensions.type_for(class_of(annotation))
    if known is None:
        return None
    return _RegisteredNode(known, AnyNode(compiler.extensions), readable(annotation))


class _RegisteredNode(Node):
    """Instances of one registered class."""

    rank = 0

    def __init__(self, known: Registered, inner: AnyNode, wanted: str) -> None:
        self._known = known
        self._inner = inner
        self.wanted = wanted

    def takes(self, value: object) -> bool:
        return type(value) is self._known.cls

    def write(self, value: object) -> Tree:
        return {TAG: self._known.tag, "v": self._inner.write(self._known.to_builtin(value))}

    def decode(self, tree: Tree, reading: Reading) -> object:
        if type(tree) is not dict or tree.get(TAG) != self._known.tag:
            raise Unfit(self.wanted)
        if list(tree) != [TAG, "v"]:
            raise FormatError("bulk")
        return self._known.from_builtin(self._inner.decode(tree["v"], reading))
