"""What a session has to say at its end.

Rule: success is decided here, when the session ends, and not by the absence of an exception: agent frameworks swallow
what their tools raise.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcassette.errors import CassetteError, LeftOver

__all__ = ["SHUFFLED_NOTE", "Verdict", "unused_rules_note"]

SHUFFLED_NOTE: Final = (
    "calls that overlap were begun by several threads, or by a scheduler that shuffles: their start order need not "
    "repeat; record with order='causal'"
)


def unused_rules_note(ids: Sequence[str]) -> list[str]:
    """A note on rules of redaction that matched nothing."""
    return [f"rules of redaction that matched nothing: {', '.join(ids)}"] if ids else []


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """The end of a session.

    ``outcome``: for a recorder ``published``, ``unchanged`` (a re-recording that found nothing new), ``finished``
    (complete, to be published by the parent process) or ``kept`` (the partial stays); for a replayer ``consumed`` or
    ``failed``; else ``live``. ``calls`` were recorded or made. ``error`` is what leaving raised, or None. ``notes`` are
    worth a look.
    """

    mode: str
    outcome: str
    calls: int = 0
    unconsumed: tuple[LeftOver, ...] = ()
    error: CassetteError | None = None
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if the session did all that was asked of it."""
        return self.error is None and self.outcome not in ("kept", "failed")
