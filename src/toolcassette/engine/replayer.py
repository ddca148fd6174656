"""The replayer: answers the selected calls from a verified cassette, and judges at the end.

Theory. The cassette is verified whole before the first call. A call matches exactly on call path, tool, canonical
arguments and place; ``order`` says what place means, and here it is ``strict``: the next record, in start order, of its
own path. The first mismatch poisons the session: every later selected call fails, and no body runs. Agent frameworks
swallow what tools raise, so the end decides: leaving raises the first mismatch, or lists the records that were never
asked for.

Rule: no real body, whatever happens.
"""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn

from toolcassette.engine.base import Session
from toolcassette.engine.likeness import Likeness
from toolcassette.engine.order import ORDERS
from toolcassette.engine.planted import planted
from toolcassette.engine.playback import Playback
from toolcassette.engine.proof import read_proven
from toolcassette.engine.replaying import ReplayedCall
from toolcassette.engine.selection import Selection, unused_note
from toolcassette.engine.streams import CONTEXTS, END_NOTES, SHAPES
from toolcassette.engine.verdict import Verdict, unused_rules_note
from toolcassette.errors import (
    CassetteError,
    CassetteMismatch,
    ContractMismatch,
    FormatError,
    IncludeUnused,
    LeftOver,
    NotSelected,
    RedactionError,
    SecretFound,
    UnconsumedCalls,
    printable,
)
from toolcassette.format import decode_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcassette.engine.call import Call, Pending, ToolContract
    from toolcassette.engine.settings import ReplayerSettings
    from toolcassette.engine.stream_replaying import ReplayedFeed
    from toolcassette.format import Cassette, RecordedCall, RecordedOutcome
    from toolcassette.stores import Store

__all__ = ["Replayer"]

_GONE: Final = frozenset({"hash", "unreadable"})  # of a frame that was verified: the file is another one now
_CHANGED: Final = "the cassette was changed while it was replayed; replay it again"


class Replayer(Session):
    """Replays a cassette. Without ``selection`` the cassette's own include decides, and nothing else may run."""

    mode: ClassVar[str] = "replay"

    def __init__(self, store: Store, name: str, selection: Selection | None, settings: ReplayerSettings) -> None:
        super().__init__()
        self._store = store
        self._name = name
        self._selection = selection
        self._exclusive = selection is None
        self._settings = settings
        self._playback: Playback | None = None
        self._stray: NotSelected | None = None
        # While their handles live; one whose handle is gone was left.
        self._streams: weakref.WeakValueDictionary[int, ReplayedFeed] = weakref.WeakValueDictionary()

    @property
    def exclusive(self) -> bool:
        """True where the cassette's own include decides: then no other wrapped tool runs beside the replay."""
        return self._exclusive

    @property
    def selection(self) -> Selection | None:
        """What is replayed; None before opening, where the cassette decides."""
        return self._selection

    @property
    def cassette(self) -> Cassette:
        """What is replayed. Raises ``RuntimeError`` before the session was opened."""
        return self._played.cassette

    @property
    def _played(self) -> Playback:
        if self._playback is None:
            message = "the session is not open"
            raise RuntimeError(message)
        return self._playback

    def calls(self) -> Iterable[RecordedCall]:
        """See ``Session.calls``."""
        return (self.cassette.call(number) for number in self._played.order.taken)

    def begin(self, call: Call, contract: ToolContract) -> Pending:
        """One call, not yet begun."""
        return ReplayedCall(self, call, contract)

    def refuse(self, error: CassetteError, tool: str) -> CassetteError:
        """Poison: arguments that cannot be written were never recorded."""
        self.ready(tool)
        place = self.place()
        mismatch = CassetteMismatch(
            "arguments_differ",
            tool=tool,
            path=place.path,
            ordinal=self._played.order.cursor(place.path),
            advice=str(error),
        )
        return self._played.poison(mismatch)

    def stray(self, tool: str, effect: str | None = None) -> CassetteError:
        """A wrapped tool that may not run beside this replay was called; swallowed or not, the end says so."""
        error = NotSelected(tool, effect)
        self._stray = self._stray or error
        return error

    def _note_bypassed(self, tool: str) -> None:
        path = self.place().path
        raise self._played.poison(
            CassetteMismatch("bypassed", tool=tool, path=path, ordinal=self._played.order.cursor(path))
        )

    # -- one call: what replaying.Deck asks -----------------------------------------------------------------------

    def take(self, call: Call) -> int:
        """Match and consume. Returns the number of the record. Raises ``CassetteMismatch`` or ``CassettePoisoned``."""
        placed = self._placed(call)
        try:
            return self._played.take(placed)
        except FormatError as defect:
            self._poison_changed(defect, placed)

    async def atake(self, call: Call) -> int:
        """As ``take``, for a task."""
        placed = self._placed(call)
        try:
            return await self._played.atake(placed)
        except FormatError as defect:
            self._poison_changed(defect, placed)

    def _poison_changed(self, defect: FormatError, call: Call) -> NoReturn:
        """Poison, and raise the defect: a large cassette is read when it is used, and is not what was verified."""
        ordinal = self._played.order.cursor(call.path)
        self._played.poison(
            CassetteMismatch("contract_differs", tool=call.tool, path=call.path, ordinal=ordinal, advice=_CHANGED)
        )
        raise defect

    def _placed(self, call: Call) -> Call:
        """The call as it is compared, if no frame around it has ended."""
        late = self.place().late
        if late is None:
            return self._redacted(call)
        advice = f"it is made below the scope {late}, which has ended; end the tasks of a scope before it"
        raise self._played.poison(CassetteMismatch("path_differs", tool=call.tool, path=call.path, advice=advice))

    def _redacted(self, call: Call) -> Call:
        try:
            return self._played.likeness.redacted(call)
        except RedactionError as error:
            self._played.poison(
                CassetteMismatch("arguments_differ", tool=call.tool, path=call.path, advice=str(error.of(call.tool)))
            )
            raise error.of(call.tool) from None

    def ready(self, tool: str) -> None:
        """Raise if nothing is served any more: the session is over, or poisoned."""
        self._played.ready(tool)

    def turn(self, number: int, call: Call) -> None:
        """Block until the outcome may go out."""
        self._played.turn(number, call)

    async def aturn(self, number: int, call: Call) -> None:
        """As ``turn``, for a task."""
        await self._played.aturn(number, call)

    def handed_out(self, number: int) -> None:
        """The outcome goes out without waiting for its turn."""
        self._played.handed_out(number)

    def ended(self, number: int, call: Call) -> RecordedOutcome:
        """How a recorded call ended. Raises a mismatch where its frame is not canonical."""
        try:
            return self.cassette.outcome(number, quick=True)
        except FormatError as defect:
            self._poison_at(defect, number, call)
        except RuntimeError:  # a large cassette is read on use, and was closed under this call
            self.ready(call.tool)
            raise

    def hand_out(self, number: int, ended: RecordedOutcome, call: Call, contract: ToolContract) -> object:
        """The recorded value; raises the recorded error, or ``ContractMismatch``, which poisons."""
        try:
            if ended.value is not None:
                return self._value(number, ended, contract)
            error = contract.decode_error(self._played.likeness.shown(ended.error or b""))
        except (ContractMismatch, FormatError) as defect:
            self._poison_at(defect, number, call)
        raise error

    def _value(self, number: int, ended: RecordedOutcome, contract: ToolContract) -> object:
        """A recorded value; one that something stands behind, as contexts do, is read in full."""
        shown = self._played.likeness.shown_outcome
        try:
            return contract.hand_out(shown(ended))
        except FormatError:
            return contract.hand_out(shown(self.cassette.outcome(number)))

    def stream_end(self, number: int, ended: RecordedOutcome, call: Call, contract: ToolContract) -> tuple[str, str]:
        """The shape of a recorded stream, and what its end notes. Raises ``ContractMismatch`` where it does not fit."""
        if not contract.may_stream:
            self._poison_at(ContractMismatch(json_path="$", wanted="a value, and no stream"), number, call)
        meta = decode_value(ended.meta or b"null")
        shape, note = (meta.get("stream"), meta.get("end", "")) if type(meta) is dict else (None, "")
        never_ended = shape in CONTEXTS and ended.outcome == "ok"
        if shape not in SHAPES or note not in ("", *END_NOTES) or never_ended:
            self._poison_at(ContractMismatch(json_path="$", wanted="a stream of a known shape"), number, call)
        if contract.shape not in (None, shape):
            wanted = f"a stream read as {contract.shape}"
            self._poison_at(ContractMismatch(json_path="$", wanted=wanted), number, call)
        return str(shape), str(note)

    def going(self, number: int, feed: ReplayedFeed) -> None:
        """A stream begins; it must have ended when the session ends."""
        self._streams[number] = feed

    def item(self, number: int, chunk: int, call: Call, contract: ToolContract) -> object:
        """One recorded item, decoded. Raises ``ContractMismatch``, which poisons."""
        try:
            item = contract.decode_chunk(self._played.likeness.shown(self.cassette.chunk(number, chunk)))
        except (ContractMismatch, FormatError) as error:
            self._poison_at(error, number, call)
        self._played.item_out(number)
        return item

    def stream_differs(self, number: int, call: Call, read: int, why: str) -> CassetteError:
        """Poison: the consumer does not end the stream as the recorded one did. The error to raise."""
        advice = f"at item {read}: {why}; read as the recorded program did, or record again"
        return self._played.poison(self._played.mismatch("stream_differs", number, call, advice))

    def patience(self, number: int, ended: RecordedOutcome) -> float:
        """Seconds to wait for the program to cancel a call that was cancelled when recorded."""
        if self._settings.cancelled == "raise":
            return 0.0
        return (ended.at - self.cassette.place(number)[0].at) / 1e6 + self._settings.stall_after

    def _poison_at(self, error: ContractMismatch | FormatError, number: int, call: Call) -> NoReturn:
        """Raise what a record that cannot be handed out comes to."""
        if isinstance(error, ContractMismatch):
            located: CassetteMismatch = error.at(call.tool, call.path, self._played.ordinal(number, call.path))
        else:  # its bytes hash and link, but are not what our writer writes: only `verify --deep` looks at that
            advice = _CHANGED if error.reason in _GONE else _not_canonical(error)
            located = self._played.mismatch("contract_differs", number, call, advice)
        raise self._played.poison(located) from None

    # -- opening and ending ---------------------------------------------------------------------------------------

    def _open(self) -> None:
        settings = self._settings
        cassette = read_proven(
            self._store,
            self._store.resolve(self._name),
            calls_max=settings.calls_max,
            trust=settings.trust,
            expect_head=settings.expect_head,
            identities=settings.identities,
        )
        recorded = cassette.header.order
        policy = settings.order or recorded
        if ORDERS.index(policy) < ORDERS.index(recorded):
            message = f"order={policy} is looser than the {recorded} that was recorded; a replay may only be stricter"
            raise ValueError(message)
        if self._selection is None:
            self._selection = Selection(cassette.header.include)
        else:
            _select_all(self._selection, cassette)
        self._refuse_planted(cassette)
        self._playback = Playback(
            cassette,
            Likeness(cassette, settings.rules.own, settings.secrets),
            policy=policy,
            completion=settings.completion,
            stall_after=settings.stall_after,
            is_open=lambda: self.is_open,
        )

    def _refuse_planted(self, cassette: Cassette) -> None:
        """A secret that any rule of today finds in a cassette is one too many. Raises ``SecretFound``."""
        settings = self._settings
        policy = settings.on_secret
        found = [] if policy == "ignore" else planted(cassette.all_lines(), settings.rules, settings.secrets)
        if found and policy == "refuse":
            cassette.close()
            raise SecretFound(found)
        if found:
            warnings.warn(str(SecretFound(found)), stacklevel=2)

    def _release(self) -> None:
        """Let go of the file of a large cassette."""
        if self._playback is not None:
            self._playback.cassette.close()

    def forget(self) -> None:
        """Close without a trace: we are a forked child, and the parent goes on."""
        if self._playback is not None:
            self._playback.forget()
        super().forget()

    def _closed(self) -> None:
        super()._closed()
        self._played.closed()

    def _end(self, error: BaseException | None) -> Verdict:
        for feed in list(self._streams.values()):
            feed.drop()
        left = self._left_over()
        self._release()
        unused = self._unused()
        why: CassetteError | None = self._played.first or self._stray
        if why is None:
            why = self._rejections_differ()
        if why is None and left and not self._settings.allow_unconsumed:
            why = UnconsumedCalls(left)
        if why is None and unused and self._settings.strict_include:
            why = IncludeUnused(unused)
        return Verdict(
            mode=self.mode,
            outcome="consumed" if why is None else "failed",
            calls=sum(self._played.order.consumed),
            unconsumed=left,
            error=why,
            notes=(*unused_note(unused), *unused_rules_note(self._played.likeness.unused()), *self._played.notes),
        )

    def _rejections_differ(self) -> CassetteMismatch | None:
        """What there is to say of the calls that a framework refused; fewer may be left over like calls."""
        now, recorded = self._rejected, self.cassette.complete.rejected
        if len(now) == recorded or (len(now) < recorded and self._settings.allow_unconsumed):
            return None
        tool = now[recorded] if len(now) > recorded else ""
        advice = f"{len(now)} rejected, {recorded} when recorded; mend what rejects calls, or record again"
        return CassetteMismatch("rejected_differs", tool=tool or "(any)", advice=advice)

    def _left_over(self) -> tuple[LeftOver, ...]:
        consumed = self._played.order.consumed
        places = sorted(
            (number, path, ordinal)
            for path, numbers in self.cassette.paths.items()
            for ordinal, number in enumerate(numbers)
            if not consumed[number]
        )
        named = ((self.cassette.tool(number), path, ordinal) for number, path, ordinal in places)
        return tuple(LeftOver(tool, path, ordinal, wrapped=tool in self._met) for tool, path, ordinal in named)

    def _unused(self) -> tuple[str, ...]:
        """Patterns of an include that was named in code; the cassette's own were judged when it was recorded."""
        return () if self._exclusive or self._selection is None else self._selection.unused()


def _not_canonical(defect: FormatError) -> str:
    return f"the recorded outcome is not in canonical form ({defect.reason}); see verify --deep"


def _select_all(selection: Selection, cassette: Cassette) -> None:
    """Raise ``ValueError`` where an include leaves out a recorded tool."""
    for missing in sorted(tool for tool in cassette.tools if not selection.selects(tool)):
        message = (
            f"include does not select {printable(missing)}, which the cassette holds; a replay selects every "
            "recorded tool, so that nothing is half cassette and half live"
        )
        raise ValueError(message)
