"""Why an intact cassette is not taken for the one that is wanted.

Rule: fields and a stable code; the text is derived from them. No key, signature or path is a word of it.
"""

from __future__ import annotations

from toolcassette.errors.base import CassetteError
from toolcassette.reasons import SIGNATURE_REASONS, printable

__all__ = ["SignatureError"]


class SignatureError(CassetteError):
    """The cassette is not proven to be the one that is wanted. ``reason`` is a key of ``SIGNATURE_REASONS``.

    ``key`` is the name of the key that it is about, or None. ``exit_status`` is 2 where nothing can be judged: a key
    that is none, or none at all.
    """

    code = "CASSETTE_SIGNATURE"
    exit_status = 1
    reason: str
    key: str | None

    def __init__(self, reason: str, *, key: str | None = None) -> None:
        what, advice, self.exit_status = SIGNATURE_REASONS[reason]
        whose = f": {printable(key)}" if key else ""
        super().__init__(f"{what}{whose} ({reason}); {advice}")
        self.reason = reason
        self.key = key
