"""The root of the tree, and what may be wrong with a file or the place where it is kept.

Rule: fields and a stable code; the text is derived from them and quotes no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcassette.reasons import COULD_NOT_JUDGE, EXISTS_ADVICE, FORMAT_REASONS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CassetteError", "CassetteExists", "FormatError", "StoreError"]


class CassetteError(Exception):
    """Base of every error of ours.

    ``code`` is stable (``CASSETTE_...``); ``exit_status`` is what a command line turns it into: 1 for a finding,
    2 where nothing could be judged.
    """

    code: str = "CASSETTE_ERROR"
    exit_status: int = 2

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only constructors do not survive the default pickling, and xdist and multiprocessing carry errors.
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(cls: type[CassetteError], args: tuple[Any, ...], state: Mapping[str, Any]) -> CassetteError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class FormatError(CassetteError):
    """The bytes are no whole cassette. ``reason`` is a key of ``FORMAT_REASONS``, ``frame`` a 0-based frame number.

    ``frame`` is None where no frame is at fault (an absent file). ``offset`` is a byte offset in the file, or None.
    """

    code = "CASSETTE_FORMAT"
    reason: str
    frame: int | None
    offset: int | None

    def __init__(self, reason: str, *, frame: int | None = None, offset: int | None = None) -> None:
        what, advice = FORMAT_REASONS[reason]
        where = "" if frame is None else f" at frame {frame}"
        super().__init__(f"{what}{where} ({reason}); {advice}")
        self.reason = reason
        self.frame = frame
        self.offset = offset
        self.exit_status = 2 if reason in COULD_NOT_JUDGE else 1


class StoreError(CassetteError):
    """The bytes could not be kept. ``step`` says which step failed, ``errno_name`` how (``ENOSPC``) or None."""

    code = "CASSETTE_STORE"
    step: str
    errno_name: str | None

    def __init__(self, step: str, *, errno_name: str | None = None, advice: str = "") -> None:
        how = f": {errno_name}" if errno_name else ""
        super().__init__(f"could not {step}{how}" + (f"; {advice}" if advice else ""))
        self.step = step
        self.errno_name = errno_name


class CassetteExists(StoreError):
    """Something stands in the way of a recording; nothing was touched. ``what``: cassette, signature, live or stale partial."""

    code = "CASSETTE_EXISTS"
    what: str

    def __init__(self, what: str) -> None:
        advice = EXISTS_ADVICE[what]
        super().__init__(f"record: the {what.replace('_', ' ')} exists already", advice=advice)
        self.what = what
