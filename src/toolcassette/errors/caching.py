"""What a response cache will not answer.

Rule: fields and a stable code; the text is derived from them and quotes no value.
"""

from __future__ import annotations

from toolcassette.errors.base import CassetteError
from toolcassette.reasons import printable

__all__ = ["CacheExpired", "CacheMiss"]


class CacheMiss(CassetteError):
    """``replay-only``, and the cache has no entry for this call of ``tool``."""

    code = "CASSETTE_CACHE_MISS"
    exit_status = 1
    tool: str

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"the cache has no entry for this call of {printable(tool)}, and replay-only calls nothing; "
            "run once in mode default where that is allowed, and commit the new file"
        )
        self.tool = tool


class CacheExpired(CassetteError):
    """The entry for this call of ``tool`` is older than ``max_age``; both ages are in seconds."""

    code = "CASSETTE_CACHE_EXPIRED"
    exit_status = 1
    tool: str
    age: float
    max_age: float

    def __init__(self, tool: str, *, age: float, max_age: float) -> None:
        super().__init__(
            f"the entry for this call of {printable(tool)} is {age:.0f} seconds old, and max_age is {max_age:.0f}; "
            "refresh it with mode record, or delete its file"
        )
        self.tool = tool
        self.age = age
        self.max_age = max_age
