"""The session of a whole process: how a command runs under ``toolcassette record`` and ``toolcassette replay``.

Theory. The command line starts a program with a session described in its environment. In the program, the first
selected call that has no session opens it, for every thread; it ends when the interpreter exits, and leaves its verdict
in a status file for the parent. The first process that makes a call claims that file, create-only; in any other process
(a worker, a subprocess) such a call raises ``NoSession``, and is never live. While recording, the child stops after
``complete``, and the parent publishes, if the child ended well: only the parent can know.

Rule: no status means that nothing was recorded, or nothing consumed.
"""

from __future__ import annotations

import atexit
import dataclasses
import json
import os
import threading
from typing import TYPE_CHECKING, Any, Final, Literal

from toolcassette.engine import MODE_VARIABLE, Selection, on_unclaimed
from toolcassette.errors import CassetteError, NoSession
from toolcassette.session import FILE_VARIABLE, INCLUDE_VARIABLE, Options, process_session
from toolcassette.stores import store_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcassette.engine import Member, Session, Verdict

__all__ = [
    "SESSION_VARIABLES",
    "STATUS_VARIABLE",
    "Status",
    "claim_status",
    "environment",
    "read_status",
    "write_status",
]

STATUS_VARIABLE: Final = "TOOLCASSETTE_STATUS"  # path of the status file, which must not exist yet
OPTIONS_VARIABLE: Final = "TOOLCASSETTE_OPTIONS"  # JSON object of the options that differ from their default
_SECRETS_FROM: Final = "secrets_from"  # in that object: the names of variables that hold the option ``secrets``
# All that describe a session: what a parent may have inherited of them does not describe its child's.
SESSION_VARIABLES: Final = frozenset(
    {MODE_VARIABLE, FILE_VARIABLE, INCLUDE_VARIABLE, STATUS_VARIABLE, OPTIONS_VARIABLE}
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Status:
    """What a process says of its session. ``outcome`` is that of ``Verdict``, or ``open`` where it never got to say
    more.
    """

    outcome: str = "open"
    calls: int = 0
    exit_status: int = 1
    code: str | None = None
    message: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if the session ended, and without an error."""
        return self.code is None and self.outcome in ("finished", "published", "unchanged", "consumed")


def environment(
    mode: str,
    file: str,
    include: Sequence[str] | None,
    options: Options,
    status: str,
    secrets_from: Sequence[str] = (),
) -> dict[str, str]:
    """The variables that describe a session to a child process.

    ``secrets_from`` names the variables that hold the secrets of ``options``: the child reads them there, since no
    value of a secret is written into another variable.
    """
    changed = {
        field.name: getattr(options, field.name)
        for field in dataclasses.fields(options)
        if field.name not in ("store", "secrets") and getattr(options, field.name) != field.default
    }
    if secrets_from:
        changed[_SECRETS_FROM] = list(secrets_from)
    variables = {
        MODE_VARIABLE: mode,
        FILE_VARIABLE: file,
        STATUS_VARIABLE: status,
        OPTIONS_VARIABLE: json.dumps(changed),
    }
    return variables if include is None else {**variables, INCLUDE_VARIABLE: ",".join(include)}


def claim_status(path: str) -> None:
    """Make the status file, which must not exist yet, and say that a session is open. Raises ``OSError``."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    _write(path, Status())


def write_status(path: str, verdict: Verdict, *, refused: str = "") -> None:
    """Say in the status file how a session ended. ``refused``: why it counts as failed, in its own words or beside."""
    _write(path, _status_of(verdict, refused))


def _status_of(verdict: Verdict, refused: str = "") -> Status:
    status = Status(outcome=verdict.outcome, calls=verdict.calls, exit_status=0, notes=verdict.notes)
    if verdict.error is None and not refused:
        return status
    failed = _failed(verdict.error) if verdict.error is not None else Status(outcome="failed", code="CASSETTE_ENDED")
    message = refused or failed.message
    return dataclasses.replace(status, code=failed.code, message=message, exit_status=failed.exit_status)


def read_status(path: str) -> Status | None:
    """What the process said, or None where none made a call."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - a path as text, as it stands in the environment
            fields: dict[str, Any] = json.load(file)
        notes = tuple(fields.pop("notes"))
        return Status(**fields, notes=notes)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError):  # cut short, or written by another version
        return Status()


class _Process:
    """The one session of this process: not asked for yet, refused, or there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._refusal: CassetteError | ValueError | None = None
        self._selection: Selection | None = None

    def forked(self) -> None:
        """We are a forked child, where the thread that holds the lock may not exist."""
        self._lock = threading.Lock()

    def session_for(self, tool: str) -> Member | Literal["live"] | None:
        """Answer for a call that has no session: None where the environment describes none, ``live`` where it does, but
        not for this tool.
        """
        path = os.environ.get(STATUS_VARIABLE)
        if path is None:
            return None
        with self._lock:
            if not self._concerns(tool):
                return "live"
            if self._session is None and self._refusal is None:
                self._refusal = self._begin(path)
            if self._refusal is not None:
                raise self._refused(tool)
            return self._session

    def _concerns(self, tool: str) -> bool:
        try:
            self._selection = self._selection or _selection()
        except ValueError:
            return True  # which tools are meant nobody knows: beginning says so, to each of them
        return self._selection is None or self._selection.selects(tool)  # None: a replay, the cassette decides

    def _refused(self, tool: str) -> CassetteError | ValueError:
        if isinstance(self._refusal, NoSession):
            return NoSession(self._refusal.reason, tool=tool)
        if isinstance(self._refusal, CassetteError):
            return self._refusal
        return ValueError(str(self._refusal))

    def _begin(self, path: str) -> CassetteError | ValueError | None:
        """Claim the status file and open the session. Returns why that cannot be: the same for every call."""
        try:
            claim_status(path)
        except FileExistsError:
            return NoSession("other_process", tool="")
        except OSError as error:
            return store_error("claim the session of this run", error)
        try:
            mode, file = os.environ.get(MODE_VARIABLE, ""), os.environ.get(FILE_VARIABLE, "")
            session = process_session(mode, file, self._selection or _selection(), _options())
            self._session = session.open(any_thread=True)
        except (CassetteError, ValueError) as error:
            _write(path, _failed(error))
            return error
        atexit.register(self._end, path, os.getpid())
        return None

    def _end(self, path: str, owner: int) -> None:
        if os.getpid() != owner or self._session is None:
            return  # a forked child leaves the interpreter too
        write_status(path, self._session.close())


def _selection() -> Selection | None:
    """What the environment includes. Raises ``ValueError`` for a pattern that is none."""
    include = os.environ.get(INCLUDE_VARIABLE)
    return None if include is None else Selection(include.split(","))


def _options() -> Options:
    """The options that the environment describes. Raises ``ValueError``."""
    try:
        told: dict[str, Any] = dict(json.loads(os.environ.get(OPTIONS_VARIABLE) or "{}"))
        variables: list[str] = told.pop(_SECRETS_FROM, [])
        if variables:
            told["secrets"] = tuple(os.environ[name] for name in variables)
        return Options(**told)
    except KeyError:
        message = f"{OPTIONS_VARIABLE}: {_SECRETS_FROM} names a variable that is not set"
    except (TypeError, ValueError) as error:
        message = f"{OPTIONS_VARIABLE}: {error}"
    raise ValueError(message)


def _failed(error: CassetteError | ValueError) -> Status:
    code, status = (error.code, error.exit_status) if isinstance(error, CassetteError) else ("VALUE_ERROR", 2)
    return Status(outcome="failed", code=code, message=str(error), exit_status=status)


def _write(path: str, status: Status) -> None:
    """Whole or not at all: the parent may look at any moment."""
    fresh = f"{path}.{os.getpid()}"
    with open(fresh, "w", encoding="utf-8") as file:  # noqa: PTH123 - as above
        json.dump(dataclasses.asdict(status), file)
    os.replace(fresh, path)  # noqa: PTH105 - as above


_process = _Process()
on_unclaimed(_process.session_for)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.forked)
