"""A failure that a tool states: message, code, data.

Rule: it always comes back as itself; it needs no declaration.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ToolFailure"]


class ToolFailure(Exception):
    """Raised by a tool whose callers tell failures apart by data: ``ToolFailure("no such city", code="not_found")``.

    ``code`` and ``data`` are values of builtin or registered types. Raises ``TypeError`` for a message that is no str.
    """

    message: str
    code: Any
    data: Any

    def __init__(self, message: str, *, code: Any = None, data: Any = None) -> None:
        if type(message) is not str:
            text = "the message of a ToolFailure must be a str"
            raise TypeError(text)
        super().__init__(message)
        self.message = message
        self.code = code
        self.data = data


ToolFailure.__module__ = "toolcassette"  # its public home, and its name in cassettes
