"""Names of classes and annotations: one kind for files, one for people.

Rule: a name in a file is the module and the qualified name, and does not depend on how the program was started; a name
for people is short. Neither ever leads back to code: nothing is looked up by a name that a file gave.
"""

from __future__ import annotations

import pathlib
import sys
import types
from typing import Annotated, Literal, TypeVar, Union, get_args, get_origin

__all__ = ["qualified_name", "readable"]


def _main_module() -> str:
    """The name that the main module would have if it were imported: one class is one name both ways."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name:
        return str(spec.name)
    file = getattr(main, "__file__", None)
    return pathlib.PurePath(file).stem if file else "__main__"


def qualified_name(cls: type) -> str:
    """``module.Qual.Name`` of a class; for a class of the main script the script's stem stands for ``__main__``."""
    # A generic model with its arguments (pydantic) is a class of whichever module wrote them first; its origin is not.
    generic: dict[str, type | None] = getattr(cls, "__pydantic_generic_metadata__", {})
    home = generic.get("origin") or cls
    module = _main_module() if home.__module__ == "__main__" else home.__module__
    return f"{module}.{cls.__qualname__}"


def readable(annotation: object) -> str:
    """How a person would write an annotation: ``list[Row]``, ``str | None``."""
    if annotation is None or annotation is type(None):
        return "None"
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return readable(args[0])
    if origin is Union or origin is types.UnionType:
        return " | ".join(readable(arg) for arg in args)
    if origin is Literal:
        return f"Literal[{', '.join(repr(arg) for arg in args)}]"
    if annotation is Ellipsis:
        return "..."
    if origin is not None and args:
        return f"{readable(origin)}[{', '.join(readable(arg) for arg in args)}]"
    if isinstance(annotation, type):
        return annotation.__qualname__.rpartition("<locals>.")[2]
    if isinstance(annotation, TypeVar):
        return annotation.__name__
    if isinstance(annotation, list):  # the parameters of a Callable
        return f"[{', '.join(readable(arg) for arg in annotation)}]"
    name = getattr(annotation, "__name__", None) or getattr(annotation, "_name", None)
    return name if isinstance(name, str) else type(annotation).__name__
