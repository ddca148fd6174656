"""What to do with a value that has no lossless form.

Rule: a refusal names the type, never the value, and says what would help: another type, an annotation, a registration.
"""

from __future__ import annotations

from typing import Final

__all__ = ["how_to_keep", "is_foreign"]

# By the package that the class is from: what usually helps, before registering it.
_CONVERSIONS: Final[dict[str, str]] = {
    "numpy": "return .tolist() or .item() of it",
    "pandas": "return .to_dict() of it",
    "polars": "return .to_dicts() of it",
    "torch": "return .tolist() of it",
}


def is_foreign(cls: type) -> bool:
    """True for classes of packages whose values look like builtin ones and are not."""
    return cls.__module__.partition(".")[0] in _CONVERSIONS


def how_to_keep(cls: type) -> str:
    """Words that follow the name of a class: why it is refused, and the ways to have it kept."""
    package = cls.__module__.partition(".")[0]
    registration = f"registry.register_type({cls.__name__}, encode, decode, tag)"
    conversion = _CONVERSIONS.get(package)
    if conversion is not None:
        return f"is a type of {package}, which has no lossless form; {conversion}, or {registration}"
    return f"has no lossless form; return a type that is listed in FORMAT.md, annotate the tool, or {registration}"
