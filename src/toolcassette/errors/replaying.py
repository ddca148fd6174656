"""Where a run and its cassette part, and calls that no session will answer.

Rule: fields and a stable code; the text is derived from them and quotes no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from toolcassette.errors.base import CassetteError
from toolcassette.reasons import MISMATCH_REASONS, NO_SESSION_REASONS, place, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "AmbiguousScope",
    "CassetteMismatch",
    "CassettePoisoned",
    "ContractMismatch",
    "LeftOver",
    "NoSession",
    "NotSelected",
    "RecordedToolError",
    "SecretFound",
    "SessionClosed",
    "ToolCancelled",
    "UnconsumedCalls",
]


class CassetteMismatch(CassetteError):
    """The first place where the run and the cassette part.

    ``reason`` is a key of ``MISMATCH_REASONS``; ``path`` the call path, root first; ``ordinal`` the call's place among
    the calls of its path; ``differs`` the JSON paths at which the nearest record differs; ``fingerprint`` and
    ``expected`` short keyed digests of the arguments, safe to print and of no use as identity.
    """

    code = "CASSETTE_MISMATCH"
    exit_status = 1
    reason: str
    tool: str
    path: tuple[str, ...]
    ordinal: int
    differs: tuple[str, ...]
    fingerprint: str | None
    expected: str | None

    def __init__(
        self,
        reason: str,
        *,
        tool: str,
        path: Sequence[str] = (),
        ordinal: int = 0,
        differs: Sequence[str] = (),
        fingerprint: str | None = None,
        expected: str | None = None,
        advice: str = "",
    ) -> None:
        words = [f"{MISMATCH_REASONS[reason]} ({reason}): {place(tool, path, ordinal)}"]
        if differs:
            words.append("differs at " + ", ".join(printable(p) for p in differs))
        if fingerprint or expected:
            words.append(f"arguments {fingerprint or '-'}, recorded {expected or '-'}")
        if advice:
            words.append(advice)
        super().__init__("; ".join(words))
        self.reason = reason
        self.tool = tool
        self.path = tuple(path)
        self.ordinal = ordinal
        self.differs = tuple(differs)
        self.fingerprint = fingerprint
        self.expected = expected


class CassettePoisoned(CassetteMismatch):
    """The session met a mismatch earlier; no selected call is served or run any more. Fields are those of the first."""

    code = "CASSETTE_POISONED"

    def __init__(self, first: CassetteMismatch) -> None:
        super().__init__(
            first.reason,
            tool=first.tool,
            path=first.path,
            ordinal=first.ordinal,
            differs=first.differs,
            advice="this was the first mismatch; the session is poisoned and answers no further call",
        )


class ContractMismatch(CassetteMismatch):
    """The recorded outcome no longer fits the tool's contract. ``json_path``: where; ``wanted``: what stands there today."""

    code = "CASSETTE_CONTRACT"
    json_path: str
    wanted: str

    def __init__(
        self, *, json_path: str, wanted: str, tool: str = "", path: Sequence[str] = (), ordinal: int = 0
    ) -> None:
        super().__init__(
            "contract_differs",
            tool=tool,
            path=path,
            ordinal=ordinal,
            advice=f"{printable(json_path)} of the recorded value is not {printable(wanted)}; record again, or mend the annotation",
        )
        self.json_path = json_path
        self.wanted = wanted

    def at(self, tool: str, path: Sequence[str], ordinal: int) -> ContractMismatch:
        """The same error, with the call it happened in."""
        return ContractMismatch(json_path=self.json_path, wanted=self.wanted, tool=tool, path=path, ordinal=ordinal)


class LeftOver(NamedTuple):
    """One recorded call that was never made. ``wrapped``: a tool of this name was met by the session."""

    tool: str
    path: tuple[str, ...]
    ordinal: int
    wrapped: bool


class UnconsumedCalls(CassetteError):
    """Recorded calls that were never made, as ``LeftOver`` rows in recorded order."""

    code = "CASSETTE_UNCONSUMED"
    exit_status = 1
    calls: tuple[LeftOver, ...]

    _SHOWN_MAX = 10

    def __init__(self, calls: Sequence[LeftOver]) -> None:
        rows = [
            place(c.tool, c.path, c.ordinal) + ("" if c.wrapped else " (no tool of this name was called at all)")
            for c in calls[: self._SHOWN_MAX]
        ]
        more = len(calls) - len(rows)
        super().__init__(
            f"{len(calls)} recorded call{'s were' if len(calls) != 1 else ' was'} never made: "
            + "; ".join(rows)
            + (f"; and {more} more" if more > 0 else "")
            + "; the program skipped a step, or pass allow_unconsumed=True"
        )
        self.calls = tuple(calls)


class NotSelected(CassetteError):
    """A wrapped tool outside what the cassette was recorded for: it is neither served nor run.

    ``effect`` is that of the tool, or None; ``write`` and ``pay`` never run for real in a replay.
    """

    code = "CASSETTE_NOT_SELECTED"
    exit_status = 1
    tool: str
    effect: str | None

    def __init__(self, tool: str, effect: str | None = None) -> None:
        lasting = effect in ("write", "pay")
        advice = (
            f"its effect is {effect}, so it never runs for real in a replay: record it too"
            if lasting
            else "name include= in code to let other tools run for real, or record it too"
        )
        super().__init__(f"tool {printable(tool)} is not selected by the cassette being replayed; {advice}")
        self.tool = tool
        self.effect = effect


class SecretFound(CassetteError):
    """Secrets stand in a cassette. ``findings``: frame, JSON path and rule of each, never the value."""

    code = "CASSETTE_SECRET"
    exit_status = 1
    findings: tuple[tuple[int, str, str], ...]

    def __init__(self, findings: Sequence[tuple[int, str, str]]) -> None:
        listed = "; ".join(f"frame {frame}, {printable(path)}: {printable(rule)}" for frame, path, rule in findings[:8])
        more = f"; and {len(findings) - 8} more" if len(findings) > 8 else ""
        super().__init__(
            f"{len(findings)} secret{'s stand' if len(findings) != 1 else ' stands'} in the cassette: {listed}{more}; "
            "close these credentials and record again, or pass on_secret='warn'"
        )
        self.findings = tuple(findings)


class NoSession(CassetteError):
    """A call that may not run for real and has no session it clearly belongs to. ``reason`` is stable."""

    code = "CASSETTE_NO_SESSION"
    exit_status = 1
    reason: str
    tool: str

    def __init__(self, reason: str, *, tool: str) -> None:
        super().__init__(f"tool {printable(tool)} has no session ({reason}): {NO_SESSION_REASONS[reason]}")
        self.reason = reason
        self.tool = tool


class AmbiguousScope(CassetteError):
    """A scope was opened while an equal one is open under the same parent: their calls could not be told apart."""

    code = "CASSETTE_AMBIGUOUS_SCOPE"
    exit_status = 1
    label: str

    def __init__(self, label: str) -> None:
        super().__init__(
            f"scope {printable(label)} is open already under the same parent; "
            "tell the two apart with key=, by something that is the same in every run"
        )
        self.label = label


class SessionClosed(CassetteError):
    """The session that this call belongs to is over (or stayed with the parent of a fork)."""

    code = "CASSETTE_SESSION_CLOSED"
    exit_status = 1
    tool: str

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"tool {printable(tool)} was called after its session had ended; "
            "end every task and thread that calls tools before leaving the session"
        )
        self.tool = tool


class RecordedToolError(CassetteError):
    """Stands in for an exception whose class is neither builtin nor declared with ``errors=[...]``.

    ``type_name`` is the qualified name of the original class (never imported), ``message`` its text; ``error_code`` and
    ``data`` are its ``code`` and ``data`` attributes where it had any that could be kept.
    """

    code = "CASSETTE_TOOL_ERROR"
    exit_status = 1
    type_name: str
    message: str
    error_code: Any
    data: Any

    def __init__(self, type_name: str, message: str, *, error_code: Any = None, data: Any = None) -> None:
        super().__init__(f"{printable(type_name)}: {message}" if message else printable(type_name))
        self.type_name = type_name
        self.message = message
        self.error_code = error_code
        self.data = data


class ToolCancelled(CassetteError):
    """The recorded call was cancelled; the replaying program did not cancel it."""

    code = "CASSETTE_TOOL_CANCELLED"
    exit_status = 1
    tool: str

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"the recorded call of {printable(tool)} was cancelled; cancel it here too, as the recorded run did"
        )
        self.tool = tool
