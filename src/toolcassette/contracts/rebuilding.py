"""What an exception is made of, and how a class of exceptions is rebuilt from it.

Rule: builtin classes stand in one fixed table and are rebuilt by their constructor; a declared class is rebuilt without
its own: ``__new__``, ``args``, ``__dict__``.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Final

from toolcassette.contracts.names import qualified_name
from toolcassette.contracts.sameness import difference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["BUILTIN", "NOTES", "attributes", "is_same_error", "message_of", "new", "state_names", "state_of"]

BUILTIN: Final[Mapping[str, type[Exception]]] = {
    qualified_name(cls): cls
    for cls in vars(builtins).values()
    if isinstance(cls, type) and issubclass(cls, Exception) and not issubclass(cls, BaseExceptionGroup)
}

# What builtin classes keep outside args and __dict__. AttributeError.obj is left out: it may be anything.
_STATE: Final[Mapping[type[Exception], tuple[str, ...]]] = {
    OSError: ("errno", "strerror", "filename", "filename2"),
    ImportError: ("msg", "name", "path"),
    NameError: ("name",),
    AttributeError: ("name",),
    StopIteration: ("value",),
    SyntaxError: ("msg", "filename", "lineno", "offset", "text", "end_lineno", "end_offset", "print_file_and_line"),
    UnicodeEncodeError: ("encoding", "object", "start", "end", "reason"),
    UnicodeDecodeError: ("encoding", "object", "start", "end", "reason"),
    UnicodeTranslateError: ("object", "start", "end", "reason"),
}

NOTES: Final = "__notes__"


def message_of(exc: BaseException) -> str:
    """The text of an exception; of a group, its own without the count of its parts."""
    try:
        # Joined: of a subclass of str, the text alone.
        return "".join((exc.message if isinstance(exc, BaseExceptionGroup) else str(exc),))
    except Exception:  # noqa: BLE001 - a user's __str__ may do anything
        return type(exc).__qualname__


def attributes(exc: BaseException) -> dict[str, object]:
    """The exception's own dict, without its notes."""
    return {name: value for name, value in exc.__dict__.items() if name != NOTES}


def state_names(cls: type) -> dict[str, type[Exception]]:
    """The names of the builtin state of a class, and where each is defined."""
    return {name: base for base, names in _STATE.items() if issubclass(cls, base) for name in names}


def state_of(exc: Exception) -> dict[str, object]:
    """Builtin state that ``args`` alone would not bring back."""
    try:
        plain: object = new(type(exc), exc.args)
    except Exception:  # noqa: BLE001 - a user's __new__ may do anything; then all of it is state
        plain = None
    found: dict[str, object] = {}
    for name, base in state_names(type(exc)).items():
        slot: Any = base.__dict__[name]
        value = slot.__get__(exc)
        if value is not None and (plain is None or difference(value, slot.__get__(plain)) is not None):
            found[name] = value
    return found


def new(cls: type[Exception], args: tuple[object, ...]) -> Exception:
    """An exception of a class with these ``args``. Raises what its constructor or ``__new__`` does."""
    if BUILTIN.get(qualified_name(cls)) is cls:
        return cls(*args)
    made = cls.__new__(cls, *args)
    made.args = args
    return made


def is_same_error(exc: Exception, back: Exception, alike: Mapping[type, Callable[[Any, Any], bool]]) -> bool:
    """True if two exceptions are the same, their notes and causes apart."""
    if type(exc) is not type(back) or message_of(exc) != message_of(back):
        return False
    ours = [list(exc.args), attributes(exc), state_of(exc)]
    return difference(ours, [list(back.args), attributes(back), state_of(back)], alike) is None
