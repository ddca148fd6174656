"""A tool's promise, compiled once: encode an outcome, decode it, prove that it comes back.

Rule: what comes back is a fresh value, the same in type and in every part, or the value is refused while the tool's
real answer is at hand. A recorded value that does not fit today's annotation is ``ContractMismatch``, never mended.

Most tools return JSON values, which have a quick way: ``format.plain_copy`` is the proof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcassette.contracts.compiler import Compiler
from toolcassette.contracts.doors import DOORS
from toolcassette.contracts.extensions import NO_EXTENSIONS, Extensions
from toolcassette.contracts.names import readable
from toolcassette.contracts.nodes import Node, Reading, UnknownNode
from toolcassette.contracts.sameness import difference
from toolcassette.contracts.unfit import Unfit
from toolcassette.errors import ContractMismatch, FormatError, UnrecordableValue
from toolcassette.format import DEPTH_MAX, Refused, decode_tree, encode_tree, json_path, may_hold_tags, plain_copy

if TYPE_CHECKING:
    from toolcassette.contracts.json_schema import JsonSchema
    from toolcassette.format import Tree

__all__ = ["Contract", "contract_for"]

_DOES_NOT_COME_BACK = (
    "does not come back as it went; return a type that is listed in FORMAT.md, mend the annotation, "
    "or register the type"
)


class Contract:
    """One tool's return annotation, compiled. Make it with ``contract_for``; it is safe to share between threads."""

    __slots__ = ("_as_is", "_extensions", "_node", "_schema", "wanted")

    def __init__(self, node: Node, extensions: Extensions, schema: JsonSchema | None) -> None:
        self._node = node
        self._as_is = node.as_is
        self._extensions = extensions
        self._schema = schema
        self.wanted = node.wanted

    def __repr__(self) -> str:
        return f"<Contract {self.wanted}>"

    def encode(self, value: object) -> bytes:
        """Canonical JSON of a value, in the key order of the value. Raises ``UnrecordableValue``."""
        quick = self._quick(value)
        if quick is not None:
            return quick[0]
        data = self._write(value)
        if data.count(b"[") + data.count(b"{") > DEPTH_MAX:
            _reread(data, value)
        return data

    def decode(self, data: bytes) -> object:
        """The value of canonical JSON, fresh at each call.

        Raises ``ContractMismatch`` (``json_path``, ``wanted``) where it does not fit today's annotation,
        ``FormatError`` ``bulk`` or ``too_deep`` where the bytes are not canonical.
        """
        tree = decode_tree(data)
        try:
            return self._read(tree, data)
        except Unfit as unfit:
            raise ContractMismatch(json_path=json_path(reversed(unfit.segments)), wanted=unfit.wanted) from None
        except RecursionError:  # within the limit of the format, but on top of a stack that is deep already
            raise FormatError("too_deep") from None

    def round_trip(self, value: object) -> tuple[bytes, object]:
        """Canonical JSON of a value and a fresh copy decoded from it, proven to be the same in type and value.

        Raises ``UnrecordableValue`` with the place where they are not.
        """
        quick = self._quick(value)
        if quick is not None:
            return quick
        data = self._write(value)
        try:
            copy = self._read(_reread(data, value), data)
        except Unfit as unfit:
            path = json_path(reversed(unfit.segments))
            why = f"does not come back as {unfit.wanted}: {_DOES_NOT_COME_BACK}"
            raise UnrecordableValue(json_path=path, type_name=type(value).__qualname__, why=why) from None
        except RecursionError:
            raise _too_deep(value) from None
        found = difference(value, copy, self._extensions.alike)
        if found is not None:
            path = json_path(found.path)
            raise UnrecordableValue(json_path=path, type_name=found.type_name, why=_DOES_NOT_COME_BACK)
        return data, copy

    def _quick(self, value: Any) -> tuple[bytes, object] | None:
        """Bytes and copy of a value that is nothing but JSON; None for any other, or one that does not fit."""
        if not self._node.transparent or self._schema is not None:
            return None
        try:
            if type(value) is str:  # text is its own copy, if it can be written at all
                data, copy = encode_tree(value, sort=False), value
                if may_hold_tags(data):
                    return None
            else:
                plain = plain_copy(value)
                if plain is None:
                    return None
                data, copy = plain
            return data, copy if type(copy) in self._as_is else self._node.decode(copy, Reading(tagged=False))
        except (ValueError, RecursionError, Unfit):
            return None  # the long way can tell what is wrong, and where

    def _write(self, value: object) -> bytes:
        try:
            tree = self._node.encode(value)
            if self._schema is not None:
                self._schema.admit(tree)
            return encode_tree(tree, sort=False)
        except Refused as refused:
            raise refused.as_error() from None
        except RecursionError:
            raise _too_deep(value) from None

    def _read(self, tree: Tree, data: bytes) -> object:
        if self._schema is not None:
            self._schema.check(tree)
        tagged = may_hold_tags(data)
        return tree if type(tree) in self._as_is and not tagged else self._node.decode(tree, Reading(tagged=tagged))


def _too_deep(value: object) -> UnrecordableValue:
    why = f"is nested deeper than {DEPTH_MAX} levels of JSON"
    return UnrecordableValue(json_path="$", type_name=type(value).__qualname__, why=why)


def _reread(data: bytes, value: object) -> Tree:
    """The tree of bytes that we wrote. Raises ``UnrecordableValue`` if no reader would take them."""
    try:
        tree: Tree = decode_tree(data)
    except FormatError:
        raise _too_deep(value) from None
    return tree


_NO_ANNOTATION = object


def contract_for(
    annotation: object = _NO_ANNOTATION, *, extensions: Extensions = NO_EXTENSIONS, schema: JsonSchema | None = None
) -> Contract:
    """The contract of a return annotation; without one (or ``Any``, ``object``), of builtin and registered types alone.

    ``schema``: what values, as they are written, must fit besides. Raises ``UnrecordableValue`` at ``$`` for an
    annotation that no value can be encoded for: ``Callable``, an iterator, a class that no door knows.
    """
    node = Compiler([door.build for door in DOORS], extensions).node(annotation)
    if node.hopeless(set()):
        what = "" if isinstance(node, UnknownNode) else "with a part "
        advice = "return a type that is listed in FORMAT.md, or register it with registry.register_type"
        why = f"is a return annotation {what}that has no lossless form; {advice}"
        raise UnrecordableValue(json_path="$", type_name=readable(annotation), why=why)
    return Contract(node, extensions, schema)
