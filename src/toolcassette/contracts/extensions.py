"""A registry's own types and exceptions: how they are written, and how they are read.

Rule: code decides, never the file. A registered class is matched exactly and stored under the user's own tag, which
begins with ``x-`` so that no tag of the format is ever taken for it. Whatever a user's function raises is a refusal
while recording and a misfit while replaying, never an outcome of the tool, and its text is not shown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolcassette.contracts.advice import how_to_keep
from toolcassette.contracts.names import qualified_name
from toolcassette.contracts.unfit import Unfit
from toolcassette.errors import FormatError, printable
from toolcassette.format import TAG, TAGS, TYPES, Decoder, Encoder, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcassette.format import Tree

__all__ = ["NO_EXTENSIONS", "Extensions", "Registered"]

_TAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}")
_RESERVED: Final = TAGS | {"enum", "fields", "object"}
_PREFIX: Final = "x-"


class Registered(NamedTuple):
    """One registered class. ``encode``: instance -> value of builtin types; ``decode``: the way back."""

    cls: type
    tag: str
    encode: Callable[[Any], object]
    decode: Callable[[Any], object]

    def to_builtin(self, value: object) -> object:
        """What the user's ``encode`` makes of an instance. Raises ``Refused``."""
        try:
            return self.encode(value)
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything; its text may hold the value
            why = f"could not be written: the encode function registered for it raised {type(error).__qualname__}"
            raise Refused(self.cls.__qualname__, why) from None

    def from_builtin(self, value: object) -> Any:
        """What the user's ``decode`` makes of a value. Raises ``Unfit``."""
        try:
            found = self.decode(value)
        except Exception:  # noqa: BLE001 - see above
            found = None
        if type(found) is not self.cls:
            raise Unfit(self.cls.__qualname__)
        return found


class Extensions:
    """Types and exceptions that one registry knows beside those of the library.

    ``version`` grows with each registration; ``alike`` tells, by class, whether two instances are the same: they are if
    they are written the same.
    """

    def __init__(self) -> None:
        self._types: dict[type, Registered] = {}
        self._tags: dict[str, Registered] = {}
        self._errors: dict[str, Registered] = {}
        self.alike: dict[type, Callable[[object, object], bool]] = {}
        self.version = 0
        self._decoder = Decoder(unhook=self._unhook)

    def __repr__(self) -> str:
        return f"<Extensions types={len(self._types)} errors={len(self._errors)}>"

    def register_type(
        self, cls: type, encode: Callable[[Any], object], decode: Callable[[Any], object], tag: str
    ) -> None:
        """Keep instances of exactly ``cls`` as ``{"$tc": "x-<tag>", "v": encode(value)}``.

        Raises ``TypeError`` for what is no class or no function, ``ValueError`` for a class or a tag that is taken: by
        another class, or by the format itself.
        """
        _check(cls, encode, decode)
        if cls in TYPES:
            message = f"{cls.__qualname__} has a form of its own already"
            raise ValueError(message)
        if type(tag) is not str or not _TAG.fullmatch(tag):
            message = "a tag is 1 to 100 letters, digits and . _ : / -, and begins with a letter or a digit"
            raise ValueError(message)
        if tag in _RESERVED:
            message = f"the tag {tag} is one of the format's own; choose another"
            raise ValueError(message)
        name = tag if tag.startswith(_PREFIX) else _PREFIX + tag
        new = Registered(cls, name, encode, decode)
        for old in (self._types.get(cls), self._tags.get(name)):
            if old is not None and (qualified_name(old.cls), old.tag) != (qualified_name(cls), name):
                message = f"{printable(cls.__qualname__)} or the tag {name} is registered already"
                raise ValueError(message)
        replaced = self._tags.get(name)  # the same class defined again: in a notebook, after a reload
        if replaced is not None:
            self._types.pop(replaced.cls)
            self.alike.pop(replaced.cls)
        self._types[cls] = self._tags[name] = new
        self.alike[cls] = lambda one, other: self._is_alike(new, one, other)
        self.version += 1

    def register_error(
        self, cls: type[Exception], encode: Callable[[Any], object], decode: Callable[[Any], object]
    ) -> None:
        """Keep exceptions of exactly ``cls`` as ``encode(error)``, and raise ``decode`` of that in a replay.

        Raises ``TypeError`` for what is no exception class or no function.
        """
        _check(cls, encode, decode)
        if not issubclass(cls, Exception):
            message = f"{printable(cls.__qualname__)} is no class of exceptions"
            raise TypeError(message)
        self._errors[qualified_name(cls)] = Registered(cls, "", encode, decode)
        self.version += 1

    def type_for(self, cls: object) -> Registered | None:
        """How a class is kept; None for one that is not registered."""
        return self._types.get(cls) if isinstance(cls, type) else None

    def error_named(self, name: str) -> Registered | None:
        """How the exception class of a qualified name is kept; None for one that is not registered."""
        return self._errors.get(name)

    def write(self, value: object) -> Tree:
        """The tree of a value of builtin and registered types, nested as it may be. Raises ``Refused``."""
        return Encoder(hook=self.hook).tree(value)

    def read(self, tree: Tree) -> object:
        """The value of a tree. Raises ``Unfit`` for what is registered otherwise or not at all, ``FormatError``."""
        return self._decoder.value(tree)

    def hook(self, encoder: Encoder, value: object) -> Tree:
        """What an ``Encoder`` is to ask for values that are not builtin. Raises ``Refused``."""
        known = self._types.get(type(value))
        if known is None:
            raise Refused(type(value).__qualname__, how_to_keep(type(value)))
        return {TAG: known.tag, "v": encoder.tree(known.to_builtin(value))}

    def _unhook(self, decoder: Decoder, tree: Mapping[str, Any]) -> object:
        tag = tree[TAG]
        known = self._tags.get(tag) if type(tag) is str else None
        if known is None:
            if type(tag) is str and tag.startswith(_PREFIX):
                raise Unfit(f"of a type that is registered under the tag {tag}", spot=tree)
            if tag == "fields":
                raise Unfit("of a builtin type", spot=tree)
            raise FormatError("bulk")
        if list(tree) != [TAG, "v"]:
            raise FormatError("bulk")
        value = decoder.value(tree["v"])
        try:
            return known.from_builtin(value)
        except Unfit as unfit:
            raise Unfit(unfit.wanted, spot=tree) from None

    def _is_alike(self, known: Registered, one: object, other: object) -> bool:
        encoder = Encoder(hook=self.hook)
        try:
            return encoder.bytes(known.to_builtin(one)) == encoder.bytes(known.to_builtin(other))
        except Refused:
            return False


def _check(cls: object, encode: object, decode: object) -> None:
    if not isinstance(cls, type):
        message = "register a class"
        raise TypeError(message)
    if not (callable(encode) and callable(decode)):
        message = f"encode and decode of {printable(cls.__qualname__)} must be functions"
        raise TypeError(message)


NO_EXTENSIONS: Final = Extensions()
