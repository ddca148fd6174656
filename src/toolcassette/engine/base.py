"""What recorder and replayer share: opening, closing, and the block in between.

Rule: a session is used once. Leaving it decides: it raises its own error only if the block is not raising, and else
leaves the block's exception as it is, with a note.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, ClassVar, Self

from toolcassette.engine import current
from toolcassette.engine.path import enter_root, leave_root, place_in
from toolcassette.engine.verdict import Verdict
from toolcassette.errors import CassetteError, NotSelected, SessionClosed, printable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from toolcassette.engine.call import Call, Pending, Place, ToolContract
    from toolcassette.engine.selection import Selection
    from toolcassette.format import RecordedCall

__all__ = ["Session"]


class Session(abc.ABC):
    """A stretch of a program whose selected calls are recorded, or replayed.

    Open it with ``with`` or ``async with``. ``mode`` says what it does; ``verdict`` is None until it has ended.
    """

    mode: ClassVar[str]

    def __init__(self) -> None:
        self.verdict: Verdict | None = None
        self._state = "new"  # new -> open -> closed; forked in a child process
        self._met: dict[str, object] = {}  # tool name -> what function it was
        self._rejected: list[str] = []  # tools of selected calls that a framework refused; a list appends whole

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._state}>"

    @property
    def is_open(self) -> bool:
        """True between opening and closing, in the process that opened it."""
        return self._state == "open"

    @property
    @abc.abstractmethod
    def exclusive(self) -> bool:
        """True if wrapped tools that this session does not select may not run beside it."""

    @property
    @abc.abstractmethod
    def selection(self) -> Selection | None:
        """What the session selects; None selects nothing."""

    def selects(self, tool: str) -> bool:
        """True if calls of this tool are the session's."""
        selection = self.selection
        return selection is not None and selection.selects(tool)

    def meet(self, tool: str, identity: object) -> None:
        """Note which function goes by a name. Raises ``ValueError`` if another one did before."""
        if self._met.setdefault(tool, identity) != identity:
            message = f"two different functions go by the name {printable(tool)} in one session; "
            raise ValueError(message + "give one of them another name=")

    def calls(self) -> Iterable[RecordedCall]:
        """The calls made so far, in the order in which they were; none where nothing is recorded or replayed.

        Raises ``RuntimeError`` for a recording that is not published.
        """
        return ()

    def place(self) -> Place:
        """Where a call made here stands: its path below this session."""
        return place_in(self)

    @abc.abstractmethod
    def begin(self, call: Call, contract: ToolContract) -> Pending:
        """One call, not yet begun: nothing is touched until it is entered."""

    @abc.abstractmethod
    def refuse(self, error: CassetteError, tool: str) -> CassetteError:
        """Note that a call could not even be described; the error to raise for it."""

    def stray(self, tool: str, effect: str | None = None) -> CassetteError:
        """Note that a tool was called that may not run beside this session; the error to raise."""
        return NotSelected(tool, effect)

    def rejected(self, tool: str) -> None:
        """A framework refused a call of this tool (approval, guardrail, argument check) before it came to us.

        Counted where the session selects the tool. Raises ``SessionClosed``.
        """
        if self.selects(tool):
            self._ensure_open(tool)
            self._rejected.append(tool)

    def bypassed(self, tool: str) -> None:
        """Something outside answered a call of this tool in our place.

        Where the session selects the tool, a recording is not published. Raises ``SessionClosed``, and replaying
        ``CassetteMismatch``, which poisons.
        """
        if self.selects(tool):
            self._ensure_open(tool)
            self._note_bypassed(tool)

    def _note_bypassed(self, tool: str) -> None:  # noqa: B027 - a live session has nothing to note
        """See ``bypassed``; nothing where nothing is recorded or replayed."""

    @abc.abstractmethod
    def _open(self) -> None:
        """Do what opening takes; may block."""

    @abc.abstractmethod
    def _end(self, error: BaseException | None) -> Verdict:
        """Do what closing takes, and judge; may block. ``error`` is what the block raises."""

    @abc.abstractmethod
    def _release(self) -> None:
        """Close descriptors and nothing else: we are a forked child."""

    def _may_end_soon(self) -> bool:
        """True while a stream is open: if it was dropped, its finaliser is a task that the loop has yet to run."""
        return False

    def _abandon(self) -> None:
        """Let go of what ``_open`` took hold of: the session will not begin after all."""
        self._release()

    # -- opening and closing ------------------------------------------------------------------------------------

    def open(self, *, any_thread: bool = False) -> Self:
        """Open without a block: calls find it by thread only. ``close`` it. For the session of a whole process."""
        self._begin_opening()
        self._open()
        self._opened(any_thread=any_thread)
        return self

    def close(self, error: BaseException | None = None) -> Verdict:
        """End a session that was opened with ``open``; does not raise what the verdict holds."""
        if self._state == "open":
            self._closed()
            self.verdict = self._end(error)
        return self.verdict or Verdict(mode=self.mode, outcome="failed")

    def forget(self) -> None:
        """Close without a trace: we are a forked child, and the parent goes on."""
        self._state = "forked"
        self._release()

    def _begin_opening(self) -> None:
        if self._state != "new":
            message = "a session is used once: make a new one with tc.record or tc.replay"
            raise RuntimeError(message)
        self._state = "opening"

    def _opened(self, *, any_thread: bool = False) -> None:
        self._state = "open"
        current.join(self, any_thread=any_thread)

    def _closed(self) -> None:
        current.part(self)
        self._state = "closed"
        current.leave(self)
        leave_root(self)

    def __enter__(self) -> Self:
        self.open()
        current.enter(self)
        enter_root(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state != "open":
            return  # a forked child leaves the block too
        self.close(error)
        self._say(error)

    async def __aenter__(self) -> Self:
        from toolcassette.engine import aio

        self._begin_opening()
        try:
            await aio.off_loop(self._open)
        except BaseException:  # a cancellation that came while it was being opened
            self._abandon()
            raise
        self._opened()
        current.enter(self)
        enter_root(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state != "open":
            return
        from toolcassette.engine import aio

        cancelled = await aio.let_finalisers_run(self._may_end_soon)
        self._closed()
        self.verdict = await aio.off_loop(lambda: self._end(error))
        self._say(cancelled or error)
        if cancelled is not None:
            raise cancelled

    def _say(self, error: BaseException | None) -> None:
        """Raise what the verdict holds, or note it on what the block raises."""
        ours = self.verdict.error if self.verdict else None
        if ours is None or ours is error:
            return
        if error is None:
            raise ours
        error.add_note(f"toolcassette: {ours}")

    def _ensure_open(self, tool: str) -> None:
        if self._state != "open":
            raise SessionClosed(tool)
