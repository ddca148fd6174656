"""Is a call the one that was recorded? Byte for byte; and where secrets were replaced, up to renaming.

Rule: one answer for matching, for looking up and for explaining. A live call is redacted under the rule set that the
cassette names, before anything is compared, and what is compared, printed or hashed is what is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcassette.redaction import (
    REPLAYED_FIRST,
    Abstract,
    Bindings,
    Redactor,
    Rules,
    abstract,
    filled,
    from_environment,
    handed_out,
    recorded_set,
    secret_name,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcassette.engine.call import Call
    from toolcassette.format import Cassette, RecordedOutcome
    from toolcassette.redaction import Ref, Rule

__all__ = ["Likeness"]


class Likeness:
    """The records of one cassette, compared with live calls. ``own``: the replaying session's rules."""

    def __init__(self, cassette: Cassette, own: Sequence[Rule] = (), secrets: Sequence[str] = ()) -> None:
        self._cassette = cassette
        entries = cassette.header.rules
        version = recorded_set(entries)
        digests = dict(entry.split("#", 1) for entry in entries if "#" in entry)
        rules = tuple(rule for rule in own if rule.id in digests)
        self.missing = sorted(digests.keys() - {rule.id for rule in rules})  # rules that only the recording had
        self.changed = sorted(rule.id for rule in rules if digests[rule.id] != rule.digest)
        if "declared" in entries and not secrets:
            self.missing.append("declared")
        self._redactor: Redactor | None = None
        if version is not None:
            self._redactor = Redactor(
                Rules(version, rules), declared=secrets, environment=from_environment(), first=REPLAYED_FIRST
            )
        self._learning = {rule.id for rule in rules if rule.kind == "name" and rule.secret}
        self._bindings = Bindings()
        self._abstracts: dict[int, Abstract] = {}  # of the records that hold stand-ins

    @property
    def renames(self) -> bool:
        """True if this cassette may hold stand-ins."""
        return self._redactor is not None

    def redacted(self, call: Call) -> Call:
        """The call as it is compared: without secrets, and without their numbers."""
        if self._redactor is None:
            return call
        args = self._redactor.redacted(call.args, sort=True, own=call.rules)
        if args is call.args and not self._redactor.secrets.given:
            return call
        template, refs = abstract(args)
        return call if template is call.args else call.changed(args=template, redacted=args, refs=refs)

    def template(self, number: int) -> bytes:
        """The arguments of a record as they are compared."""
        return self._cassette.place(number)[1] if self._redactor is None else self._abstract(number).template

    def same(self, number: int, call: Call) -> bool:
        """Whether a record is one of this call."""
        if self._is_plainly(number, call):
            return True
        return self._redactor is not None and self.bindings(number, call) is not None

    def _is_plainly(self, number: int, call: Call) -> bool:
        """Whether a record is this call byte for byte, with no secret in either."""
        return not call.refs and self._cassette.is_call(number, call.tool, call.args, call.boundary)

    def bindings(self, number: int, call: Call) -> dict[int, int] | None:
        """What would have to be bound for a record to be this call; None where it is another one."""
        head, _ = self._cassette.place(number)
        if (head.tool, head.boundary) != (call.tool, call.boundary):
            return None
        recorded = self._abstract(number)
        if recorded.template == call.args:
            return self._bindings.agree(call.refs, recorded.refs)
        if not recorded.refs or self._redactor is None:
            return None
        live = call.redacted or call.args
        pairs = filled(live, self._cassette.place(number)[1], self._learns, self._redactor.secrets.ref)
        return None if pairs is None else self._bindings.agree(*pairs)

    def take(self, number: int, call: Call) -> None:
        """A record was consumed by this call: what it says of secrets holds from now on."""
        if self._redactor is None or self._is_plainly(number, call):
            return
        self._bindings.bind(self.bindings(number, call) or {})

    def equal_outcomes(self, one: int, other: int) -> bool:
        """Whether two records ended in the same way, but for their time."""
        cassette = self._cassette
        ends = [cassette.outcome(number)._replace(at=0) for number in (one, other)]
        return ends[0] == ends[1] and list(cassette.chunks(one)) == list(cassette.chunks(other))

    def rules_of(self, number: int) -> list[str]:
        """The rules that replaced something in the arguments of a record."""
        return sorted({ref.rule for ref in self._abstract(number).refs}) if self._redactor is not None else []

    def unused(self) -> list[str]:
        """Ids of the session's own rules that matched nothing."""
        if self._redactor is None:
            return []
        used = self._redactor.secrets.used
        return [rule.id for rule in self._redactor.rules.own if rule.id not in used]

    def shown(self, data: bytes) -> bytes:
        """Recorded bytes as they are handed out."""
        return data if self._redactor is None else handed_out(data, self._given)

    def shown_outcome(self, ended: RecordedOutcome) -> RecordedOutcome:
        """A recorded outcome as it is handed out."""
        if self._redactor is None:
            return ended
        value, error, contexts, meta = (
            part if part is None else self.shown(part)
            for part in (ended.value, ended.error, ended.contexts, ended.meta)
        )
        return ended._replace(value=value, error=error, contexts=contexts, meta=meta)

    def _given(self, ref: Ref) -> None:
        assert self._redactor is not None  # asked by ``shown``
        self._redactor.secrets.given[ref.n] = ref

    def _learns(self, rule: str) -> bool:
        """Whether a rule makes what it finds a secret wherever it stands."""
        return rule in self._learning or rule == "env" or secret_name(rule) == rule

    def _abstract(self, number: int) -> Abstract:
        found = self._abstracts.get(number)
        if found is None:
            found = abstract(self._cassette.place(number)[1])
            if found.refs:
                self._abstracts[number] = found
        return found
