"""Redaction while recording: every part of a call loses its secrets before it becomes a frame.

Theory. The program gets the live value, a replay hands out the stand-in; so the redacted form is held against the
tool's contract while the recording can still be refused. What turns out to be a secret only later may stand in frames
that are written already: these are looked through again at the end, and if one is found the whole recording is written
anew. A stream's items wait until nothing at their end may still become a secret.

Rule: one engine for recorder, replayer and scan; this module only says which part of a call is which.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from toolcassette.errors import CassetteError, ContractMismatch, FormatError, RedactionError
from toolcassette.format import RecordedOutcome, Writer, bulk_members, lines_of, rewritten
from toolcassette.redaction import ChunkRedactor, Redactor, abstract, from_environment, handed_out
from toolcassette.stores import PARTIAL_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolcassette.engine.call import Call, Kept, ToolContract
    from toolcassette.redaction import Rule, Rules
    from toolcassette.stores import Spool, Store

__all__ = ["Chunks", "RecordedRedaction"]


class RecordedRedaction:
    """What a recorder redacts by. ``frames`` tells how many frames were written so far."""

    def __init__(self, rules: Rules, declared: Iterable[str], frames: Callable[[], int]) -> None:
        self._redactor = Redactor(rules, declared=declared, environment=from_environment())
        self._frames = frames
        self._late = 0  # frames before this one may hold what was learned since
        self._own: dict[str, Sequence[Rule]] = {}  # tool -> its rules
        self._contracts: dict[str, ToolContract] = {}  # tool -> what its values must fit
        self._flying: dict[int, int] = {}  # call, by its identity -> what was known when its next frame was redacted

    @classmethod
    def of(cls, rules: Rules, declared: Iterable[str], frames: Callable[[], int]) -> RecordedRedaction | None:
        """None where nothing is redacted."""
        return cls(rules, declared, frames) if rules.version else None

    def args(self, call: Call) -> Call:
        """The call without secrets."""
        self._redactor.names_are((call.tool,))
        if call.rules:
            self._own[call.tool] = call.rules
        args = self._bytes(call, call.args, sort=True)
        return call if args is call.args else call.changed(args=args)

    def landed(self, call: Call) -> None:
        """The frame of what was redacted last for a call is written: what was learned meanwhile may stand in it."""
        if self._flying.pop(id(call), self._redactor.known) != self._redactor.known:
            self._late = self._frames()

    def kept(self, call: Call, contract: ToolContract, kept: Kept) -> Kept:
        """A tool's value without secrets; the copy that its caller gets stays whole."""
        self._contracts[call.tool] = contract
        parts = [self._bytes(call, part) if part else part for part in kept[1:]]
        again = kept._replace(value=parts[0] or b"", contexts=parts[1], meta=parts[2])
        if again != kept:
            shown = [handed_out(part, _nobody) if part else part for part in parts]
            ended = RecordedOutcome("ok", value=shown[0], contexts=shown[1], meta=shown[2])
            _fits(call.tool, again.value, lambda: contract.hand_out(ended))
        return again

    def error(self, call: Call, contract: ToolContract, data: bytes) -> bytes:
        """A tool's exception without secrets."""
        again = self._bytes(call, data)
        if again is not data:
            _fits(call.tool, again, lambda: contract.decode_error(handed_out(again, _nobody)))
        return again

    def chunks(self, call: Call, contract: ToolContract) -> Chunks:
        """What the items of one stream go through."""
        self._contracts[call.tool] = contract
        return Chunks(self, ChunkRedactor(self._redactor, call.rules), call, contract)

    def _bytes(self, call: Call, data: bytes, *, sort: bool = False) -> bytes:
        known = self._redactor.known
        self.flies(call)
        try:
            return self._redactor.redacted(data, sort=sort, own=call.rules)
        except RedactionError as error:
            raise error.of(call.tool) from None
        finally:
            self.learned(known)

    def flies(self, call: Call) -> None:
        """Something of a call is redacted now, and will be written soon."""
        self._flying.setdefault(id(call), self._redactor.known)

    @property
    def known(self) -> int:
        """How many secrets are looked for everywhere."""
        return self._redactor.known

    def learned(self, before: int, *, again: bool = False) -> None:
        """Note that frames written so far did not know of what is known now, if that is more than ``before``.

        ``again``: what was written has to be looked at once more in any case.
        """
        if again or self._redactor.known != before:
            self._late = self._frames()

    def unused(self) -> list[str]:
        """Ids of the session's own rules that matched nothing."""
        return [rule.id for rule in self._redactor.rules.own if rule.id not in self._redactor.secrets.used]

    # -- what was learned late ------------------------------------------------------------------------------------

    def cleaned(self, store: Store, spool: Spool, tools: Sequence[str], writer: Writer) -> Writer:
        """Write a recording anew that holds what was learned later. Returns the writer to go on with.

        ``tools`` names the tool of each call. Raises ``StoreError``, and ``RedactionError`` where a rule fails.
        """
        if self._late <= 1:
            return writer
        again = writer.again()
        spool.sync()  # some stores hold what was appended until then

        def lines() -> Iterator[bytes]:
            with store.open(spool.name + PARTIAL_SUFFIX) as source:
                yield from map(writer.opened, lines_of(source.blocks()))

        found = self._rewriting(lines, tools, again)
        if found is None:
            return writer
        spool.rewrite(found)
        return again

    def _rewriting(
        self, lines: Callable[[], Iterator[bytes]], tools: Sequence[str], writer: Writer
    ) -> Iterator[bytes] | None:
        """The lines written anew by ``writer``; None where no frame holds what was learned later."""
        self._redactor.review()
        streams: dict[int, ChunkRedactor] = {}
        items: dict[int, list[bytes]] = {}
        differs = False
        for number, line in enumerate(lines()):
            if number >= self._late and b'"kind":"call/chunk"' not in line[:48]:
                continue
            call, members = bulk_members(line)
            for member, data in members if number < self._late or call in streams else ():
                if member == "chunk":
                    own = self._own.get(tools[call], ())
                    stream = streams.setdefault(call, ChunkRedactor(self._redactor, own, whole=True))
                    items.setdefault(call, []).extend(stream.add(data))
                differs = differs or self._again(tools[call], member, data) != data
        for call, stream in streams.items():
            items[call].extend(stream.end())
        if not differs and not self._pieces_differ(lines, items):
            return None
        waiting = {call: iter(found) for call, found in items.items()}

        def change(call: int, member: str, data: bytes) -> bytes:
            piece = next(waiting[call], None) if member == "chunk" and call in waiting else None
            new = self._again(tools[call], member, data) if piece is None else piece
            if new != data:
                self._must_fit(tools[call], member, new)
            return new

        return rewritten(lines(), writer, change)

    def _pieces_differ(self, lines: Callable[[], Iterator[bytes]], items: dict[int, list[bytes]]) -> bool:
        waiting = {call: iter(found) for call, found in items.items()}
        for line in lines() if items else ():
            call, members = bulk_members(line)
            for member, data in members:
                if member == "chunk" and call in waiting and next(waiting[call], data) != data:
                    return True
        return False

    def _must_fit(self, tool: str, member: str, data: bytes) -> None:
        """What was recorded whole, and fitted, must fit without what was learned since."""
        contract = self._contracts.get(tool)
        if contract is not None and member in ("value", "chunk"):
            decode = contract.decode if member == "value" else contract.decode_chunk
            _fits(tool, data, functools.partial(decode, handed_out(data, _nobody)))

    def _again(self, tool: str, member: str, data: bytes) -> bytes:
        return self._redactor.redacted(data, sort=member == "args", own=self._own.get(tool, ()))


class Chunks:
    """The items of one stream on their way to frames."""

    def __init__(
        self, redaction: RecordedRedaction, redactor: ChunkRedactor, call: Call, contract: ToolContract
    ) -> None:
        self._redaction = redaction
        self._redactor = redactor
        self._call = call
        self._contract = contract

    def add(self, data: bytes) -> list[bytes]:
        """Take an item; those that may be written now."""
        return self._fitting(lambda: self._redactor.add(data))

    def end(self) -> list[bytes]:
        """Those that are left."""
        return self._fitting(self._redactor.end)

    def _fitting(self, step: Callable[[], list[bytes]]) -> list[bytes]:
        known = self._redaction.known
        self._redaction.flies(self._call)
        try:
            ready = step()
        except RedactionError as error:
            raise error.of(self._call.tool) from None
        finally:
            self._redaction.learned(known, again=self._redactor.overflowed)
        for item in ready:
            if b"redacted" in item:
                _fits(self._call.tool, item, functools.partial(self._contract.decode_chunk, handed_out(item, _nobody)))
        return ready


def _fits(tool: str, data: bytes, decode: Callable[[], object]) -> None:
    """Raise ``RedactionError`` where a replay could not hand out what is left."""
    try:
        decode()
    except ContractMismatch as mismatch:
        rules = sorted({ref.rule for ref in abstract(data, sort=False).refs})
        raise RedactionError(
            "redaction_breaks_contract",
            rule=", ".join(rules) or "default",
            json_path=mismatch.json_path,
            tool=tool,
        ) from None
    except (FormatError, CassetteError) as error:
        raise RedactionError("redaction_breaks_contract", rule="default", tool=tool) from error


def _nobody(_ref: object) -> None:
    """Nobody needs to know what is handed out."""
