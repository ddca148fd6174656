"""Which session a call belongs to.

Theory. A session is found by context first: the innermost session of the call's context that selects the tool decides,
open or closed (closed: ``SessionClosed``). Executors and bare threads drop the context. Such a call belongs to the one
open session that selects the tool, if its thread opened that session or was started after it opened; with two such
sessions, or from an older thread, nobody can know: ``NoSession``. A thread born while a session was open belongs to it:
its calls after the close raise ``SessionClosed``, and never land in the session that comes next. In a forked child
every session is closed.

Rule: a call that a session selects is served, recorded or refused; it never runs for real because its session could
not be found.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import os
import threading
import weakref
from typing import TYPE_CHECKING, ClassVar, Final, Literal, ParamSpec, Protocol, TypeVar

from toolcassette.errors import NoSession, SessionClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from toolcassette.engine.call import Call, Pending, Place, ToolContract
    from toolcassette.errors import CassetteError

__all__ = [
    "MODE_VARIABLE",
    "Member",
    "around",
    "bind",
    "enter",
    "forbid_live",
    "join",
    "leave",
    "may_be_asked",
    "newest",
    "on_unclaimed",
    "part",
    "selecting",
    "session_for",
]

MODE_VARIABLE = "TOOLCASSETTE_MODE"

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Member(Protocol):
    """A session, as the search and the tools see it."""

    mode: ClassVar[str]

    @property
    def is_open(self) -> bool:
        """False before it was opened, after it was closed, and in a forked child."""
        ...

    @property
    def exclusive(self) -> bool:
        """True if wrapped tools that it does not select may not run beside it."""
        ...

    def selects(self, tool: str) -> bool:
        """True if calls of this tool are the session's."""
        ...

    def meet(self, tool: str, identity: object) -> None:
        """Note which function goes by a name. Raises ``ValueError`` if another one did before."""
        ...

    def place(self) -> Place:
        """Where a call made here stands."""
        ...

    def begin(self, call: Call, contract: ToolContract) -> Pending:
        """One call, not yet begun."""
        ...

    def refuse(self, error: CassetteError, tool: str) -> CassetteError:
        """Note that a call could not even be described; the error to raise for it."""
        ...

    def stray(self, tool: str, effect: str | None = None) -> CassetteError:
        """Note that a tool was called that may not run beside this session; the error to raise."""
        ...

    def rejected(self, tool: str) -> None:
        """A framework refused a call of this tool before it came to us."""
        ...

    def bypassed(self, tool: str) -> None:
        """Something outside answered a call of this tool in our place."""
        ...

    def forget(self) -> None:
        """Close without a trace: we are a forked child."""
        ...


class _Threads:
    """The thread that opened a session, and those that are older than it. Weak: a thread's object may be reused."""

    __slots__ = ("_older", "_opener")

    def __init__(self, *, any_thread: bool) -> None:
        opener = threading.current_thread()
        self._opener = weakref.ref(opener)
        self._older: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
        if not any_thread:
            self._older.update(t for t in threading.enumerate() if t is not opener)

    def older(self, thread: threading.Thread) -> bool:
        """True if ``thread`` ran before the session was opened, by another thread."""
        return thread in self._older

    def born_since(self) -> Iterator[threading.Thread]:
        """The threads that were started while the session was open, and still run."""
        opener = self._opener()
        return (t for t in threading.enumerate() if t is not opener and t not in self._older)


_context: contextvars.ContextVar[tuple[Member, ...]] = contextvars.ContextVar("toolcassette_sessions", default=())
# Re-entrant: a finaliser that calls a tool may run while we hold it; what it guards is whole at every step.
_lock = threading.RLock()
_open: dict[Member, _Threads] = {}
# thread -> the closed sessions that it was born under, innermost first
_orphans: weakref.WeakKeyDictionary[threading.Thread, tuple[Member, ...]] = weakref.WeakKeyDictionary()
_forbidden = 0  # blocks that forbid live calls, in any thread
_unclaimed: Callable[[str], Member | Literal["live"] | None] | None = None


def enter(session: Member) -> None:
    """Make ``session`` the innermost one of this context."""
    _context.set((*_context.get(), session))


def leave(session: Member) -> None:
    """Undo ``enter``, in any order, also in another context than the one it was called in (fixtures, generators)."""
    # Not by a token: resetting to what stood before would drop a session that was entered since and is still open.
    _context.set(tuple(s for s in _context.get() if s is not session))


def join(session: Member, *, any_thread: bool = False) -> None:
    """Count ``session`` among the open ones; with ``any_thread`` no thread counts as older than it."""
    threads = _Threads(any_thread=any_thread)
    with _lock:
        _open[session] = threads


def part(session: Member) -> None:
    """Count ``session`` among the closed ones; the threads born under it stay its own."""
    with _lock:
        threads = _open.pop(session, None)
        for thread in threads.born_since() if threads is not None else ():
            _orphans[thread] = (*_orphans.get(thread, ()), session)


def around() -> tuple[Member, ...]:
    """The sessions of this context, open or closed, the outermost first."""
    return _context.get()


def newest() -> Member | None:
    """The open session that was opened last."""
    with _lock:
        return next(reversed(_open), None)


def may_be_asked() -> bool:
    """True if a call made outside any context of a session could belong to one, now or soon."""
    return bool(_open) or os.environ.get(MODE_VARIABLE) in ("record", "replay")


def selecting(composite: str) -> tuple[Member | None, bool]:
    """The session that selects a composite as if it were a leaf; and whether its path matters to any session at all."""
    stack = _context.get()
    for session in reversed(stack):
        if session.selects(composite):
            return _usable(session, composite), True
    if stack:
        return None, True
    with _lock:
        sessions = list(_open)
    if any(session.selects(composite) for session in sessions):
        return session_for(composite), True
    if not sessions and _unclaimed is not None:
        answer = _unclaimed(composite)  # the session of the process may begin with a composite
        if answer is not None and not isinstance(answer, str) and answer.selects(composite):
            return _usable(answer, composite), True
    return None, may_be_asked()


EFFECTS: Final = ("read", "write", "pay")
_LASTING: Final = frozenset({"write", "pay"})


def session_for(tool: str, effect: str | None = None) -> Member | None:
    """The open session that a call of ``tool`` made here belongs to, or None where it simply runs.

    Raises ``SessionClosed``, ``NotSelected`` or ``NoSession``. An ``effect`` that lasts never happens beside a replay.
    """
    stack = _context.get()
    if not stack:
        return _without_context(tool, effect)
    for session in reversed(stack):
        if session.selects(tool):
            return _usable(session, tool)
    for session in stack:
        if session.exclusive or (effect in _LASTING and session.mode == "replay"):
            raise _usable(session, tool).stray(tool, effect)
    return None


def _usable(session: Member, tool: str) -> Member:
    if not session.is_open:
        raise SessionClosed(tool)
    return session


def _without_context(tool: str, effect: str | None = None) -> Member | None:
    if not _open and not _orphans:
        return _without_session(tool)
    thread = threading.current_thread()
    if any(closed.selects(tool) or closed.exclusive for closed in _orphans.get(thread, ())):
        raise SessionClosed(tool)
    with _lock:
        sessions = list(_open.items())
    selecting = [(session, threads) for session, threads in sessions if session.selects(tool)]
    if len(selecting) > 1:
        raise NoSession("ambiguous", tool=tool)
    for session, threads in selecting:
        if threads.older(thread):
            raise NoSession("older_thread", tool=tool)
        return _usable(session, tool)
    for session, _ in sessions:
        if session.exclusive or (effect in _LASTING and session.mode == "replay"):
            raise _usable(session, tool).stray(tool, effect)
    return _without_session(tool)


def _without_session(tool: str) -> Member | None:
    answer = None if _unclaimed is None else _unclaimed(tool)
    if answer is not None and not isinstance(answer, str):
        return _usable(answer, tool)
    if _forbidden or (answer is None and os.environ.get(MODE_VARIABLE) == "replay"):
        raise NoSession("forbidden", tool=tool)
    return None


def on_unclaimed(opener: Callable[[str], Member | Literal["live"] | None]) -> None:
    """Let ``opener`` answer for calls that have no session (the session of a whole process).

    ``live``: whoever started the process named what is replayed, and this tool is not in it. None: no answer.
    """
    global _unclaimed  # noqa: PLW0603 - one hook a process, set once when session.py is imported
    _unclaimed = opener


@contextlib.contextmanager
def forbid_live() -> Generator[None]:
    """Within the block, in every thread, a wrapped tool called outside any session raises ``NoSession``."""
    global _forbidden  # noqa: PLW0603 - a count, so that blocks may overlap
    with _lock:
        _forbidden += 1
    try:
        yield
    finally:
        with _lock:
            _forbidden -= 1


def bind(fn: Callable[_P, _R]) -> Callable[_P, _R]:
    """``fn`` with today's context, for executors and threads that drop it: its calls belong to the session of here.

    Raises ``TypeError`` for a coroutine function, which runs in the context of its task, not of its caller.
    """
    if inspect.iscoroutinefunction(fn):
        message = "bind takes a plain function: a coroutine runs in the context of the task that awaits it"
        raise TypeError(message)
    context = contextvars.copy_context()

    @functools.wraps(fn)
    def bound(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        # A copy each time: one context cannot be entered by two threads at once.
        return context.copy().run(fn, *args, **kwargs)

    return bound


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - the parent's lock may be held by a thread that does not exist here
    _lock = threading.RLock()
    for session in list(_open):
        session.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
