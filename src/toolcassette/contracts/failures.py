"""A tool's exception as data, and back: with its notes, its causes and, of a group, its parts.

Rule: a class comes from the table of builtins, from the tool's own ``errors=[...]`` or from a registration, matched by
its whole name, never from a name in a file. What does not come back as it was, is stored without what would rebuild it
and comes back as ``RecordedToolError``. Of an exception and its causes each is judged by itself; a group is its own
class only with its parts.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import msgspec

from toolcassette.contracts.extensions import NO_EXTENSIONS, Extensions
from toolcassette.contracts.names import qualified_name
from toolcassette.contracts.rebuilding import (
    BUILTIN,
    NOTES,
    attributes,
    is_same_error,
    message_of,
    new,
    state_names,
    state_of,
)
from toolcassette.contracts.tool_failure import ToolFailure
from toolcassette.contracts.unfit import Unfit
from toolcassette.errors import ContractMismatch, FormatError, RecordedToolError
from toolcassette.format import TAG, Encoder, ErrorBody, Refused, decode_tree, encode_tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolcassette.contracts.extensions import Registered
    from toolcassette.format import Tree

__all__ = ["decode_error", "encode_error"]

CAUSES_MAX: Final = 16  # links of a chain of causes, and levels of groups in groups; what is further out tells no more


def encode_error(
    exc: Exception, declared: Sequence[type[Exception]], *, extensions: Extensions = NO_EXTENSIONS
) -> tuple[bytes, bool]:
    """Canonical JSON of an exception, and whether a replay will raise its own class (else ``RecordedToolError``).

    ``declared``: the classes that the tool names in ``errors``. What an exception holds that has no lossless form is
    left out. Raises ``UnrecordableValue`` only where that was promised: for a ``ToolFailure`` that holds such a thing,
    and for a registered exception that its own functions cannot write and read.
    """
    writer = _Writer(declared, extensions)
    try:
        tree, is_own = writer.body(exc, CAUSES_MAX, frozenset())
        data = encode_tree(tree, sort=False)
        decode_tree(data)
    except (FormatError, RecursionError):  # nested too deep to be read again
        return encode_tree(_ordered(writer.head(exc)), sort=False), False
    except Refused as refused:
        raise refused.as_error() from None
    return data, is_own


def decode_error(
    data: bytes, declared: Sequence[type[Exception]], *, extensions: Extensions = NO_EXTENSIONS
) -> Exception:
    """The exception of canonical JSON, fresh at each call.

    Raises ``FormatError`` where the bytes are no error body, ``ContractMismatch`` where a registered function refuses.
    """
    try:
        return _Reader(declared, extensions).error(decode_tree(data))
    except Unfit as unfit:
        raise ContractMismatch(json_path="$", wanted=unfit.wanted) from None
    except RecursionError:
        raise FormatError("too_deep") from None


class _Known:
    """Which classes may come back as themselves."""

    def __init__(self, declared: Sequence[type[Exception]], extensions: Extensions) -> None:
        self.extensions = extensions
        self._declared = declared

    def class_of(self, name: str) -> type[Exception] | None:
        """The class of a qualified name."""
        return next((cls for cls in self._declared if qualified_name(cls) == name), BUILTIN.get(name))


class _Writer(_Known):
    def __init__(self, declared: Sequence[type[Exception]], extensions: Extensions) -> None:
        super().__init__(declared, extensions)
        self._reader = _Reader(declared, extensions)

    def body(self, exc: BaseException, room: int, above: frozenset[int]) -> tuple[dict[str, Tree], bool]:
        """The members of an exception, and whether it comes back as its own class. ``above``: what led to it."""
        above |= {id(exc)}
        tree, is_own = self._lone(exc)
        if isinstance(exc, BaseExceptionGroup) and room and ("attributes" in tree or not attributes(exc)):
            bodies = [self.body(part, room - 1, above) for part in exc.exceptions]
            tree["parts"] = [body for body, _ in bodies]
            kinds = {type(exc), type(self._reader.error(_ordered(tree)))}
            is_own = all(own for _, own in bodies) and len(kinds) == 1
        cause = exc.__cause__
        if cause is not None and room and id(cause) not in above:
            tree["cause"], _ = self.body(cause, room - 1, above)
        return _ordered(tree), is_own

    def _lone(self, exc: BaseException) -> tuple[dict[str, Tree], bool]:
        """An exception without its causes and parts."""
        if type(exc) is ToolFailure:
            return self.head(exc) | self._stated(exc), True
        registered = self.extensions.error_named(qualified_name(type(exc)))
        if registered is not None and registered.cls is type(exc):
            return self._registered(exc, registered), True
        if not isinstance(exc, Exception):
            return self.head(exc), False
        if isinstance(exc, BaseExceptionGroup):
            kept = self._kept({"attributes": attributes(exc)})
            return self.head(exc) | {name: tree for name, tree in kept.items() if tree}, False
        is_known = self.class_of(qualified_name(type(exc))) is type(exc)
        head, parts, tail = self.head(exc), self._parts(exc), self._tail(exc)  # once: they run the user's own code
        whole = head | parts | tail
        data = encode_tree(_ordered(whole), sort=False)
        back = self._reader.error(decode_tree(data))
        if is_known and is_same_error(exc, back, self.extensions.alike):
            return whole, True
        if not is_known and type(back) is RecordedToolError:
            return whole, False  # complete, should the class be declared one day
        return head | tail, False

    def _stated(self, exc: ToolFailure) -> dict[str, Tree]:
        found: dict[str, Tree] = {"message": Encoder().tree(exc.message)}
        for name, part, value in (("error_code", "code", exc.code), ("data", "data", exc.data)):
            if value is not None:
                try:
                    found[name] = self.extensions.write(value)
                except Refused as refused:
                    raise refused.under(part) from None
        return found

    def _registered(self, exc: BaseException, known: Registered) -> dict[str, Tree]:
        tree = self.head(exc) | {"data": self.extensions.write(known.to_builtin(exc))}
        try:
            known.from_builtin(self.extensions.read(tree["data"]))
        except Unfit:
            why = "cannot be rebuilt: the decode function registered for it raised, or gave another type"
            raise Refused(type(exc).__qualname__, why) from None
        return tree

    def _kept(self, parts: Mapping[str, object]) -> dict[str, Tree]:
        """The trees of those parts that have one."""
        found: dict[str, Tree] = {}
        for name, part in parts.items():
            with contextlib.suppress(Refused, RecursionError):
                found[name] = self.extensions.write(part)
        return found

    def head(self, exc: BaseException) -> dict[str, Tree]:
        """Type, message and notes: what every exception has."""
        kept = getattr(exc, NOTES, None)  # anything at all may have been put there
        notes = [note for note in kept if type(note) is str] if isinstance(kept, list) else []
        head: dict[str, object] = {"message": message_of(exc)}
        return {"type": qualified_name(type(exc)), **self._kept(head | ({"notes": notes} if notes else {}))}

    def _parts(self, exc: Exception) -> dict[str, Tree]:
        """``args``, ``attributes``, ``state``; nothing if one of them cannot be kept, or more is kept elsewhere."""
        if any(cls.__dict__.get("__slots__") for cls in type(exc).__mro__):
            return {}
        groups = {"args": list(exc.args), "attributes": attributes(exc), "state": state_of(exc)}
        trees = self._kept(groups)
        if len(trees) < len(groups) or any(type(tree) is dict and TAG in tree for tree in trees.values()):
            return {}
        return {name: tree for name, tree in trees.items() if tree or name == "args"}

    def _tail(self, exc: Exception) -> dict[str, Tree]:
        found: dict[str, object] = {}
        for name, attribute in (("error_code", "code"), ("data", "data")):
            with contextlib.suppress(Exception):  # a user's property may do anything
                found[name] = getattr(exc, attribute, None)
        return self._kept({name: value for name, value in found.items() if value is not None})


class _Reader(_Known):
    def error(self, tree: Tree) -> Exception:
        """The exception of a body. Raises ``FormatError``, ``Unfit``."""
        if type(tree) is not dict or list(tree) != [name for name in ErrorBody.__struct_fields__ if name in tree]:
            raise FormatError("bulk")
        try:
            lone = {name: part for name, part in tree.items() if name not in ("cause", "parts")}
            body = msgspec.convert(lone, ErrorBody)
        except msgspec.ValidationError:
            raise FormatError("bulk") from None
        parts = tree.get("parts", [])
        if type(parts) is not list:
            raise FormatError("bulk")
        exc = self._own(body, [self.error(part) for part in parts]) or self._stand_in(body)
        if "cause" in tree:
            exc.__cause__ = self.error(tree["cause"])
        for note in body.notes or ():
            exc.add_note(_text(self.extensions.read(note)))
        return exc

    def _own(self, body: ErrorBody, parts: Sequence[Exception]) -> Exception | None:
        """An instance of the original class; None where that is not known, or does not take what was kept."""
        if body.type == qualified_name(ToolFailure):
            code, data = self._stated(body)
            return ToolFailure(_text(self.extensions.read(body.message)), code=code, data=data)
        registered = self.extensions.error_named(body.type)
        if registered is not None and body.data is not msgspec.UNSET and body.args is msgspec.UNSET:
            made: Exception = registered.from_builtin(self.extensions.read(body.data))
            return made
        if parts:
            return self._group(body, parts)
        return self._rebuilt(body, self.class_of(body.type))

    def _group(self, body: ErrorBody, parts: Sequence[Exception]) -> Exception | None:
        cls = ExceptionGroup if body.type == qualified_name(ExceptionGroup) else self.class_of(body.type)
        if cls is None or not issubclass(cls, ExceptionGroup):
            return None
        message = _text(self.extensions.read(body.message))
        try:
            group: Exception = cls.__new__(cls, message, list(parts))
        except Exception:  # noqa: BLE001 - a declared class's __new__ has its own rules
            return None
        group.__dict__.update({name: self.extensions.read(tree) for name, tree in (body.attributes or {}).items()})
        return group

    def _rebuilt(self, body: ErrorBody, cls: type[Exception] | None) -> Exception | None:
        if cls is None or body.args is msgspec.UNSET:
            return None
        read = self.extensions.read
        args = tuple(read(tree) for tree in body.args)
        own = {name: read(tree) for name, tree in (body.attributes or {}).items()}
        state = {name: read(tree) for name, tree in (body.state or {}).items()}
        names = state_names(cls)
        try:
            exc = new(cls, args)
            for name, value in state.items():
                names[name].__dict__[name].__set__(exc, value)
        except Exception:  # noqa: BLE001 - builtin constructors and a declared class's __new__ have their own rules
            return None
        exc.__dict__.update(own)
        return exc if type(exc) is cls else None  # OSError(2, ...) makes a FileNotFoundError

    def _stated(self, body: ErrorBody) -> tuple[object, object]:
        code = None if body.error_code is msgspec.UNSET else self.extensions.read(body.error_code)
        data = None if body.data is msgspec.UNSET else self.extensions.read(body.data)
        return code, data

    def _stand_in(self, body: ErrorBody) -> Exception:
        code, data = self._stated(body)
        return RecordedToolError(body.type, _text(self.extensions.read(body.message)), error_code=code, data=data)


def _text(value: object) -> str:
    if type(value) is not str:
        raise FormatError("bulk")
    return value


def _ordered(members: Mapping[str, Tree]) -> dict[str, Tree]:
    """Members in the order of the format."""
    return {name: members[name] for name in ErrorBody.__struct_fields__ if name in members}
