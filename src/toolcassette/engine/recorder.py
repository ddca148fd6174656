"""The recorder: runs the real bodies, and writes down what was asked and how it ended.

Theory. Start order is everything: call number and the place of the start frame are taken in one critical section with
no wait inside, so frame order is start order. A frame is durable before the program goes on: the body starts only after
its start frame is, the caller gets its result only after the result frame is. An error of ours (a value that cannot be
kept, a disk that is full) is never written down as the tool's outcome: it poisons the recorder, which then runs no
further body and never publishes.

Rule: what a caller gets while recording is the decoded copy of what was written: the very thing a replay will hand out.
"""

from __future__ import annotations

import collections
import datetime as dt
import secrets
import threading
import time
import warnings
from typing import TYPE_CHECKING, ClassVar, TypeVarTuple

from toolcassette.engine import current
from toolcassette.engine.base import Session
from toolcassette.engine.journal import Journal
from toolcassette.engine.proof import refuse_signature, sign_published, stale_note
from toolcassette.engine.publication import publish, read, refuse_foreign
from toolcassette.engine.recording import Inside, NestedCall, RecordingCall, inside
from toolcassette.engine.redacting import RecordedRedaction
from toolcassette.engine.selection import unused_note
from toolcassette.engine.verdict import SHUFFLED_NOTE, Verdict, unused_rules_note
from toolcassette.errors import CassetteError, FormatError, IncludeUnused, NestedSelection, NotPublished, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolcassette.engine.call import Call, Pending, ToolContract
    from toolcassette.engine.selection import Selection
    from toolcassette.engine.settings import RecorderSettings
    from toolcassette.format import RecordedCall, RecordedOutcome
    from toolcassette.stores import Spool, Store

__all__ = ["Recorder"]

_Parts = TypeVarTuple("_Parts")


class Recorder(Session):
    """Records the selected calls into a new cassette."""

    mode: ClassVar[str] = "record"

    def __init__(self, store: Store, name: str, selection: Selection, settings: RecorderSettings) -> None:
        super().__init__()
        self._store = store
        self._name = name
        self.cassette_id = ""  # 32 hex digits, once it is open
        self._selection = selection
        self._settings = settings
        # Re-entrant only so that a finaliser that calls a tool meets an error and not a deadlock.
        self._lock = threading.RLock()
        self._writing = False
        self._put_off_lines: collections.deque[tuple[Callable[[], tuple[bytes, int]], str]] = collections.deque()
        self._writer = settings.writer()
        self._redaction = RecordedRedaction.of(settings.rules, settings.secrets, lambda: self._writer.seq)
        self._tools: list[str] = []  # of each call, where what is learned late may have to be taken out of it
        self._spool: Spool | None = None
        self._journal: Journal | None = None
        self._clock_zero = 0
        self._failure: CassetteError | None = None  # the first error of ours
        self._unrecorded: NotPublished | None = None  # the first selected call that could not be recorded
        self._starter = 0  # the thread that began the last call
        self._shuffled = False  # calls that overlap were begun in an order that need not repeat
        self._warned: set[str] = set()

    @property
    def exclusive(self) -> bool:
        """Never: tools that are not selected run beside a recording."""
        return False

    @property
    def selection(self) -> Selection:
        """What is recorded."""
        return self._selection

    def calls(self) -> Iterable[RecordedCall]:
        """See ``Session.calls``."""
        if self.verdict is None or self.verdict.outcome not in ("published", "unchanged"):
            message = "the calls of a recording can be looked at once it is published"
            raise RuntimeError(message)
        return read(self._store, self._name)

    @property
    def journal(self) -> Journal:
        """Where lines wait to be durable."""
        assert self._journal is not None  # opened
        return self._journal

    def begin(self, call: Call, contract: ToolContract) -> Pending:
        """One call, not yet begun; inside the body of another selected call it runs unrecorded."""
        outer = inside(self)
        late = self.place().late
        if outer is not None:
            found: NotPublished = NestedSelection(tool=call.tool, inside=outer)
            return NestedCall(lambda: self._note_unrecorded(found, call.tool))
        if late is not None:
            found = NotPublished("late_child", detail=f"{printable(call.tool)} below {late}")
            return NestedCall(lambda: self._note_unrecorded(found, call.tool))
        return RecordingCall(self, call, contract)

    def _note_unrecorded(self, found: NotPublished, tool: str) -> None:
        """A selected call runs undisturbed and leaves no frame: nothing is published. None runs once poisoned."""
        with self._lock:
            self.ready(tool)
            self._unrecorded = self._unrecorded or found

    def _note_bypassed(self, tool: str) -> None:
        self._note_unrecorded(NotPublished("bypassed", detail=printable(tool)), tool)

    def refuse(self, error: CassetteError, tool: str) -> CassetteError:
        """Poison: a call whose arguments cannot be kept must not run."""
        return self.poison(error)

    def poison(self, error: CassetteError) -> CassetteError:
        """Keep the first error of ours; every later call is refused with it."""
        with self._lock:
            self._failure = self._failure or error
        return error

    def undeclared(self, tool: str, error: Exception) -> None:
        """Warn, once a tool and class, that a replay will not raise this exception's own class."""
        name = f"{printable(tool)} raised {printable(type(error).__qualname__)}"
        with self._lock:
            if name in self._warned:
                return
            self._warned.add(name)
        warnings.warn(
            f"{name}, which is neither builtin nor declared: a replay will raise RecordedToolError in its place; "
            "declare it with errors=[...]",
            stacklevel=2,
        )

    # -- one call: what recording.Log asks ------------------------------------------------------------------------

    def start(self, call: Call, *, shuffled: bool = False) -> tuple[int, int]:
        """Write the start frame. Returns the call's number and the position to wait for."""
        if self._redaction is None:
            return self._append("call/start", call.tool, self._start_line, call, shuffled)
        try:
            redacted = self._redaction.args(call)
        except CassetteError as error:
            raise self.poison(error) from None
        written = self._append("call/start", call.tool, self._start_line, redacted, shuffled)
        self._redaction.landed(call)
        return written

    def _start_line(self, call: Call, shuffled: bool) -> tuple[bytes, int]:
        grammar = self._writer.grammar
        number = grammar.calls
        thread = threading.get_ident()
        if grammar.open_calls:
            self._shuffled |= shuffled or self._starter != thread
        self._starter = thread
        if self._redaction is not None:
            self._tools.append(call.tool)
        data = self._writer.start(
            tool=call.tool,
            args=call.args,
            at=self._now(),
            boundary=call.boundary,
            path=call.path,
            effect=call.effect,
            omitted=call.omitted,
        )
        return data, number

    @property
    def redaction(self) -> RecordedRedaction | None:
        """What the parts of a call lose their secrets by; None where nothing is redacted."""
        return self._redaction

    def chunk(self, number: int, tool: str, chunk: int, value: bytes) -> int:
        """Write a chunk frame. Returns the position to wait for."""
        return self._append("call/chunk", tool, self._chunk_line, number, chunk, value)[1]

    def _chunk_line(self, number: int, chunk: int, value: bytes) -> tuple[bytes, int]:
        return self._writer.chunk(number, chunk, value=value, at=self._now()), number

    def end(self, number: int, tool: str, ended: RecordedOutcome) -> int:
        """Write the result frame. Returns the position to wait for."""
        return self._append("call/result", tool, self._end_line, number, ended)[1]

    def _end_line(self, number: int, ended: RecordedOutcome) -> tuple[bytes, int]:
        return self._writer.result(number, ended, at=self._now()), number

    def ready(self, tool: str) -> None:
        """Raise if no more of a body may run: the session is over, or poisoned."""
        self._ensure_open(tool)
        if self._failure is not None:
            raise self._failure

    def running(self, tool: str) -> Inside:
        """Around a step of a body, so that selected calls inside it are known as nested."""
        return Inside(self, tool)

    def settle(self, position: int) -> None:
        """Block until a position is durable. Raises ``StoreError``, which poisons."""
        try:
            self.journal.settle(position)
        except CassetteError as error:
            raise self.poison(error) from None

    async def asettle(self, position: int) -> None:
        """As ``settle``, off the loop and shielded; a native cancellation that came meanwhile is raised afterwards."""
        from toolcassette.engine import aio

        try:
            await aio.settle(self.journal, position)
        except CassetteError as error:
            raise self.poison(error) from None

    async def end_cancelled(self, end: Callable[[], int]) -> None:
        """Write how a cancelled call ended, and wait. Its cancellation goes on; another one meanwhile adds nothing."""
        from toolcassette.engine import aio

        try:
            await aio.settle(self.journal, end())
        except CassetteError as error:
            self.poison(error)  # the cancellation must reach its scope; the recorder keeps the error for the end
        except BaseException as error:
            if not aio.is_cancellation(error):
                raise

    def _append(
        self, kind: str, tool: str, make: Callable[[*_Parts], tuple[bytes, int]], *parts: *_Parts
    ) -> tuple[int, int]:
        """The critical section: one line made and handed to the store. Raises what poisons, or ``SessionClosed``."""
        with self._lock:
            if self._failure is not None or self._state != "open":
                self.ready(tool)
            if self._writing:
                return self._put_off(kind, lambda: make(*parts))
            self._writing = True
            try:
                data, number = make(*parts)
                position = self.journal.append(data, kind)
                if self._put_off_lines:
                    self._append_put_off()
            except CassetteError as error:
                raise self.poison(error) from None
            finally:
                self._writing = False
            if self._put_off_lines:  # a finaliser came in between
                self._append_put_off()
            return number, position

    def _put_off(self, kind: str, line: Callable[[], tuple[bytes, int]]) -> tuple[int, int]:
        """A finaliser (garbage collection) fired in our own critical section: the end of a dropped stream can wait."""
        if kind == "call/start":
            message = "a tool was called by a finaliser while the recorder was writing a frame"
            raise RuntimeError(message)
        self._put_off_lines.append((line, kind))
        return 0, 0

    def _append_put_off(self) -> None:
        """Write what finalisers put off, and what they put off meanwhile. Under the lock."""
        while self._put_off_lines:
            self._writing = True
            try:
                line, kind = self._put_off_lines.popleft()
                self.journal.append(line()[0], kind)
            except CassetteError as error:
                raise self.poison(error) from None
            finally:
                self._writing = False

    def _now(self) -> int:
        return (time.monotonic_ns() - self._clock_zero) // 1000

    # -- opening and ending ---------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Close without a trace: we are a forked child, where the thread that holds the lock may not exist."""
        self._lock = threading.RLock()
        super().forget()

    def _begin_opening(self) -> None:
        if any(outer.mode == "replay" and outer.is_open for outer in current.around()):
            message = (
                "a recording inside a replay would run tools for real where none may run; "
                "open it around the replay, or after it"
            )
            raise RuntimeError(message)
        super()._begin_opening()

    def _open(self) -> None:
        settings = self._settings
        self.cassette_id = cassette = secrets.token_hex(16)
        self._name = self._store.resolve(self._name)
        if settings.replace:
            refuse_foreign(self._store, self._name)
        elif settings.signer is not None:
            refuse_signature(self._store, self._name)
        self._spool = self._store.create(
            self._name, cassette_id=cassette, replace=settings.replace, set_aside=settings.set_aside
        )
        self._journal = Journal(self._spool, settings.sync)
        self._clock_zero = time.monotonic_ns()
        created = dt.datetime.now(dt.UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        line = self._writer.header(
            cassette=cassette,
            created=created,
            producer=settings.producer,
            include=self._selection.patterns,
            order=settings.order,
            sync=settings.sync,
            rules=settings.rules.entries,
        )
        try:
            self._journal.append(line, "header")
        except BaseException:
            self._spool.keep()
            raise

    def _may_end_soon(self) -> bool:
        grammar = self._writer.grammar
        return bool(grammar.open_calls) and any(
            grammar.call_state(number) == "streaming" for number in reversed(range(grammar.calls))
        )

    def _abandon(self) -> None:
        if self._spool is not None:
            self._spool.keep()

    def _release(self) -> None:
        if self._spool is not None:
            self._spool.forget()

    def _end(self, error: BaseException | None) -> Verdict:
        assert self._spool is not None  # opened
        with self._lock:
            why = self._why_not_published(error)
        outcome, signing = "kept", list[str]()
        try:
            if self._redaction is not None:  # what turned out to be a secret only late
                self._writer = self._redaction.cleaned(self._store, self._spool, self._tools, self._writer)
            self.journal.finish(kept=why is not None)
            if why is None:
                outcome = self._publish(self._spool)
                signing = self._sign(outcome)
        except CassetteError as failure:
            why = why or failure
        finally:
            self._spool.keep()
            self.journal.stop()
        words = unused_note(self._selection.unused())
        words += [SHUFFLED_NOTE] if self._shuffled and self._settings.order == "strict" else []
        words += unused_rules_note(self._redaction.unused()) if self._redaction is not None else []
        return Verdict(
            mode=self.mode,
            outcome=outcome,
            calls=self._writer.grammar.calls,
            error=why,
            notes=(*words, *signing, *self._spool.notes),
        )

    def _why_not_published(self, error: BaseException | None) -> CassetteError | None:
        """The first of the reasons to keep the partial, the plainest first."""
        settings, grammar, unused = self._settings, self._writer.grammar, self._selection.unused()
        reasons: tuple[tuple[bool, Callable[[], CassetteError | None]], ...] = (
            (self._failure is not None, lambda: self._failure),
            (self._unrecorded is not None, lambda: self._unrecorded),
            (error is not None and not settings.publish_on_error, lambda: NotPublished("block_raised")),
            (grammar.open_calls > 0, lambda: NotPublished("open_call", detail=f"{grammar.open_calls} open")),
            (not grammar.calls and not self._rejected and not settings.allow_empty, lambda: NotPublished("empty")),
            (bool(unused) and settings.strict_include, lambda: IncludeUnused(unused)),
        )
        return next((make() for applies, make in reasons if applies), None)

    def _publish(self, spool: Spool) -> str:
        try:
            spool.append(self._writer.complete(rejected=len(self._rejected)))
        except FormatError as refused:  # a call began while we were ending
            raise NotPublished("open_call") from refused
        if self._settings.publish:
            return publish(self._store, spool, replace=self._settings.replace)
        spool.sync()
        return "finished"

    def _sign(self, outcome: str) -> list[str]:
        """Sign what was published, or say that nobody does. Raises ``CassetteError``: it is published, not signed."""
        settings = self._settings
        if settings.signer is not None and settings.publish:
            sign_published(self._store, self._name, settings.signer, outcome, self._writer.head)
        elif settings.replace and outcome == "published":
            return stale_note(self._store, self._name)
        return []
