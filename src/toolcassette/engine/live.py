"""The session that does nothing: mode ``live``.

Rule: it selects no tool, so every tool runs for real and nothing is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from toolcassette.engine.base import Session
from toolcassette.engine.verdict import Verdict

if TYPE_CHECKING:
    from toolcassette.engine.call import Call, Pending, ToolContract
    from toolcassette.errors import CassetteError

__all__ = ["Live"]


class Live(Session):
    """Lets every tool run for real."""

    mode: ClassVar[str] = "live"

    @property
    def exclusive(self) -> bool:
        """Never."""
        return False

    @property
    def selection(self) -> None:
        """Nothing."""

    def begin(self, call: Call, contract: ToolContract) -> Pending:
        """Cannot be: no call is selected. Raises ``RuntimeError``."""
        message = "a live session selects no call"
        raise RuntimeError(message)

    def refuse(self, error: CassetteError, tool: str) -> CassetteError:
        """The error as it is."""
        return error

    def _open(self) -> None:
        """Nothing to do."""

    def _release(self) -> None:
        """Nothing is held."""

    def _end(self, error: BaseException | None) -> Verdict:
        return Verdict(mode=self.mode, outcome="live")
