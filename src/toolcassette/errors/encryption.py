"""Why an encrypted cassette is not opened, or not made.

Rule: fields and a stable code; the text is derived from them. No key and no path is a word of it.
"""

from __future__ import annotations

from toolcassette.errors.base import CassetteError
from toolcassette.reasons import ENCRYPTION_REASONS

__all__ = ["EncryptionError"]


class EncryptionError(CassetteError):
    """An encrypted cassette cannot be opened or made. ``reason`` is a key of ``ENCRYPTION_REASONS``.

    ``frame`` is the 0-based number of the frame that is at fault, or None. ``exit_status`` is 2 where nothing can be
    judged, for want of a key or of the right one.
    """

    code = "CASSETTE_ENCRYPTION"
    exit_status = 2
    reason: str
    frame: int | None

    def __init__(self, reason: str, *, frame: int | None = None) -> None:
        what, advice, self.exit_status = ENCRYPTION_REASONS[reason]
        where = "" if frame is None else f" at frame {frame}"
        super().__init__(f"{what}{where} ({reason}); {advice}")
        self.reason = reason
        self.frame = frame
