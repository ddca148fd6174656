"""The hints of a class's fields: resolved, and with the type arguments put in.

Rule: what cannot be resolved counts as ``Any``, field by field; one bad name does not hide the others.
"""

from __future__ import annotations

import inspect
import sys
from types import SimpleNamespace
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

__all__ = ["class_of", "field_hints", "substitute"]


def class_of(annotation: object) -> type | None:
    """The class that an annotation (``Box`` or ``Box[int]``) names, None if it names none."""
    origin = get_origin(annotation) or annotation
    return origin if isinstance(origin, type) else None


def substitute(annotation: Any, scope: dict[object, object]) -> Any:
    """An annotation with type variables replaced. ``scope``: type variable -> annotation."""
    if isinstance(annotation, TypeVar):
        return scope.get(annotation, annotation)
    parameters: tuple[object, ...] = getattr(annotation, "__parameters__", ())
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation  # a bare generic class: its parameters are its own
    if not any(parameter in scope for parameter in parameters):
        return annotation
    try:
        generic: Any = annotation
        return generic[tuple(scope.get(parameter, parameter) for parameter in parameters)]
    except TypeError:  # Generic[T] itself takes no classes
        return annotation


def _scopes(annotation: object) -> dict[type, dict[object, object]]:
    """For a class and each of its bases: what the type variables of its own declaration stand for."""
    found: dict[type, dict[object, object]] = {}
    waiting = [annotation]
    while waiting:
        alias = waiting.pop()
        cls = class_of(alias)
        if cls is None or cls in found:
            continue
        found[cls] = dict(zip(getattr(cls, "__parameters__", ()), get_args(alias), strict=False))
        bases = cls.__dict__.get("__orig_bases__", cls.__bases__)
        waiting += [substitute(base, found[cls]) for base in bases]
    return found


def _own_names(cls: type) -> list[str]:
    if "__annotations__" in cls.__dict__:
        return list(cls.__dict__["__annotations__"])  # noqa: RUF063 - the rest is for Pythons without it
    try:
        return list(inspect.get_annotations(cls))
    except NameError:  # lazily evaluated, and one of them cannot be
        return []


def _one_by_one(cls: type) -> dict[str, object]:
    hints: dict[str, object] = {}
    for base in reversed(cls.__mro__):
        names = {base.__name__: base, cls.__name__: cls}  # a class inside a function may at least speak of itself
        module = sys.modules.get(base.__module__)
        known = {} if module is None else dict(vars(module))
        own: dict[str, object] = base.__dict__.get("__annotations__", {})  # noqa: RUF063 - unresolved on purpose
        for name, annotation in own.items():
            lone = SimpleNamespace(__annotations__={name: annotation})
            try:
                hints |= get_type_hints(lone, known, names, include_extras=True)
            except Exception:  # noqa: BLE001 - resolving evaluates the user's text: anything may come out
                hints[name] = Any
    return hints


def field_hints(annotation: object) -> dict[str, object]:
    """Hints by field name for a class or a generic alias of one, type arguments put in."""
    cls = class_of(annotation)
    if cls is None:
        return {}
    try:
        hints: dict[str, object] = dict(get_type_hints(cls, include_extras=True))
    except Exception:  # noqa: BLE001 - see above
        hints = _one_by_one(cls)
    scopes = _scopes(annotation)
    of_name: dict[str, dict[object, object]] = {}
    for base in reversed([*cls.__mro__, *(base for base in scopes if base not in cls.__mro__)]):
        for name in _own_names(base):
            of_name[name] = scopes.get(base, {})
    return {name: substitute(hint, of_name.get(name, {})) for name, hint in hints.items()}
