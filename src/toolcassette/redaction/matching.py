"""Are two calls the same up to renaming of their secrets? What a replay compares arguments by.

Theory. A recorded call holds stand-ins; the live one holds stand-ins too, some that the replay handed out (their number
is the recorded one) and some that its own rules made (their number means nothing yet). With every number taken out both
must be the same text, the *template*. Then the numbers, in the order of the template, must agree with all that was seen
before: each live secret goes with one recorded secret, and each recorded one with one live secret, for good.

A recording also replaces what it learned to be a secret only later, when it rewrites its first frames. A replay has not
learned it yet when it comes to them. So where templates differ, a text of the live call may *fill* a stand-in of a rule
that learns: if all around it is equal, and it is random enough to be such a secret.

Rule: nothing here guesses. What could stand for two records with different outcomes is told as ambiguous.
"""

from __future__ import annotations

import base64
import itertools
import re
import secrets
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolcassette.format import TAG, decode_tree, encode_tree, json_path
from toolcassette.redaction.redactor import REPLAYED_FIRST, Redactor
from toolcassette.redaction.rules import Rules
from toolcassette.redaction.secrets import is_random
from toolcassette.redaction.standins import STANDIN, Ref, is_redacted, ref_of, shown, unescaped
from toolcassette.redaction.views import RUN_MIN, Edit, applied, bytes_of, edits, has_run, parted, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolcassette.format import Tree


__all__ = ["Abstract", "Bindings", "abstract", "filled", "handed_out", "holes", "masked", "masked_text", "may_hold"]

_NONCE: Final = secrets.token_hex(8)  # no data can hold what only this process knows
_HOLE: Final = re.compile(rf"⟦{_NONCE}#([0-9]+):([A-Za-z0-9._-]+)⟧".encode())
_BLANK: Final = f"⟦{_NONCE}⟧".encode()
_BLOT: Final = "⟦redacted⟧".encode()
_SIGN: Final = b"redacted"
_SETS: Final = frozenset({"set", "frozenset"})


def may_hold(data: bytes) -> bool:
    """False if bytes surely hold no stand-in, in any encoding."""
    return _SIGN in data or b"%" in data or has_run(data)


class Abstract(NamedTuple):
    """Canonical bytes with the numbers taken out, and the numbers in their order."""

    template: bytes
    refs: tuple[Ref, ...]


def abstract(data: bytes, *, sort: bool = True) -> Abstract:
    """What of some canonical bytes is compared as text, and what up to renaming."""
    if not may_hold(data):
        return Abstract(data, ())
    tree = _Holes().tree(decode_tree(data, sort=sort))
    marked = encode_tree(tree, sort=sort)
    refs = tuple(Ref(int(m.group(1)), m.group(2).decode()) for m in _HOLE.finditer(marked))
    return Abstract(_HOLE.sub(_BLANK, marked), refs) if refs else Abstract(data, ())


def masked(data: bytes) -> bytes:
    """Canonical arguments with what the default rules find in them blotted out: the same in every run."""
    redactor = Redactor(Rules())
    if redactor.is_clean(data):
        return data
    return abstract(redactor.redacted(data, sort=True)).template.replace(_BLANK, _BLOT)


def masked_text(text: str) -> str:
    """As ``masked``, for a text alone."""
    data = encode_tree(text, sort=True)
    blotted = masked(data)
    if blotted == data:
        return text
    tree = decode_tree(blotted, sort=True)
    return tree if type(tree) is str else _BLOT.decode()


def holes(template: bytes) -> list[str]:
    """The JSON paths at which a template holds a hole."""
    return [json_path(path) for path in _hole_paths(decode_tree(template, sort=True), ())]


def _hole_paths(node: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if type(node) is str:
        if _BLANK.decode() in node:
            yield path
    elif type(node) is list:
        for index, item in enumerate(node):
            yield from _hole_paths(item, (*path, index))
    elif type(node) is dict:
        for key, value in node.items():
            yield from _hole_paths(value, path if TAG in node else (*path, key))


class _Holes:
    """Puts holes in the place of stand-ins, however these are encoded."""

    encodes = False
    run_min = RUN_MIN

    def direct(self, text: str, *, binary: bool = False) -> list[Edit]:
        del binary
        return [Edit(m.start(), m.end(), _hole(Ref(int(m.group(2)), m.group(1)))) for m in STANDIN.finditer(text)]

    def named(self, _name: str, _text: str) -> None:
        return None

    def tree(self, node: Any) -> Any:
        if type(node) is str:
            return applied(node, edits(node, self))
        if type(node) is list:
            return [self.tree(item) for item in node]
        if type(node) is not dict:
            return node
        if is_redacted(node):
            return {TAG: "hole", "of": node.get("of", "str"), "v": _hole(ref_of(node))}
        if node.get(TAG) in ("bytes", "bytearray") and type(node.get("v")) is str:
            return self._bytes(node)
        again = {applied(key, edits(key, self)): self.tree(value) for key, value in node.items()}
        if node.get(TAG) in _SETS and type(again.get("v")) is list:
            again["v"].sort(key=_place)
        return again

    def _bytes(self, node: dict[str, Any]) -> Any:
        text = text_of(base64.b64decode(node["v"]))
        found = edits(text, self)
        if not found:
            return node
        parts = parted(text, found)
        kept = (base64.b64encode(bytes_of(part)).decode("ascii") for part in parts[::2])
        return node | {"v": [*itertools.chain.from_iterable(zip(kept, [*parts[1::2], ""], strict=True))]}


def _place(item: Tree) -> bytes:
    """Where an item of a set stands, whatever the numbers in it."""
    return _HOLE.sub(_BLANK, encode_tree(item, sort=True))


def _hole(ref: Ref) -> str:
    return f"⟦{_NONCE}#{ref.n}:{ref.rule}⟧"


def handed_out(data: bytes, given: Callable[[Ref], object]) -> bytes:
    """Canonical bytes as a replay hands them out: stand-ins as texts. ``given`` is told of each."""
    found = abstract(data, sort=False)
    if not found.refs and b"\xe2\x9f\xa6\\" not in data:
        return data
    for ref in found.refs:
        given(ref)
    return encode_tree(_shown(decode_tree(data)), sort=False)


def _shown(node: Any) -> Any:
    if type(node) is str:
        return unescaped(node)
    if type(node) is list:
        return [_shown(item) for item in node]
    if type(node) is not dict:
        return node
    return shown(node) if is_redacted(node) else {unescaped(key): _shown(value) for key, value in node.items()}


class Bindings:
    """Which live secret goes with which recorded one, as far as the session has seen."""

    def __init__(self) -> None:
        self._recorded: dict[int, int] = {}  # by live number
        self._live: dict[int, int] = {}  # by recorded number

    def agree(self, live: Sequence[Ref], recorded: Sequence[Ref]) -> dict[int, int] | None:
        """What would have to be bound for the numbers to be the same; None where they cannot be."""
        if len(live) != len(recorded):
            return None
        new: dict[int, int] = {}
        taken: dict[int, int] = {}
        for (ours, _), (theirs, _) in zip(live, recorded, strict=True):
            if ours < REPLAYED_FIRST:  # a stand-in that was handed out
                if ours != theirs:
                    return None
                continue
            bound = self._recorded.get(ours, new.get(ours, theirs))
            other = self._live.get(theirs, taken.get(theirs, ours))
            if (bound, other) != (theirs, ours):
                return None
            if ours not in self._recorded:
                new[ours], taken[theirs] = theirs, ours
        return new

    def bind(self, new: dict[int, int]) -> None:
        """Keep what ``agree`` said, for good."""
        for ours, theirs in new.items():
            self._recorded[ours] = theirs
            self._live[theirs] = ours


def filled(
    live: bytes, recorded: bytes, learns: Callable[[str], bool], number: Callable[[str, str], Ref]
) -> tuple[list[Ref], list[Ref]] | None:
    """The numbers of two calls that are the same if some texts of the live one are secrets; None where they are not.

    ``learns`` tells of a rule whether it makes texts secrets wherever they stand; ``number`` gives a text its number.
    """
    filler = _Filler(learns, number)
    pairs = filler.fill(decode_tree(live, sort=True), decode_tree(recorded, sort=True))
    return None if pairs is None else ([pair[0] for pair in pairs], [pair[1] for pair in pairs])


class _Filler:
    def __init__(self, learns: Callable[[str], bool], number: Callable[[str, str], Ref]) -> None:
        self._learns = learns
        self._number = number

    def fill(self, live: Any, recorded: Any) -> list[tuple[Ref, Ref]] | None:
        if is_redacted(recorded):
            return self._whole(live, ref_of(recorded), recorded.get("of", "str"))
        if type(live) is not type(recorded):
            return None
        if type(live) is dict:
            if live.keys() != recorded.keys():
                return None
            return self._all((live[key], recorded[key]) for key in live)
        if type(live) is list:
            return self._all(zip(live, recorded, strict=True)) if len(live) == len(recorded) else None
        if type(live) is str and STANDIN.search(recorded):
            return self._inside(live, recorded)
        return [] if encode_tree(live, sort=True) == encode_tree(recorded, sort=True) else None

    def _all(self, parts: Iterator[tuple[Any, Any]] | Any) -> list[tuple[Ref, Ref]] | None:
        found: list[tuple[Ref, Ref]] = []
        for ours, theirs in parts:
            more = self.fill(ours, theirs)
            if more is None:
                return None
            found += more
        return found

    def _whole(self, live: Any, ref: Ref, of: str) -> list[tuple[Ref, Ref]] | None:
        if is_redacted(live):
            return [(ref_of(live), ref)] if live.get("of", "str") == of else None
        if of != "str" or type(live) is not str:
            return None
        ours = self._ref(live, ref)
        return None if ours is None else [(ours, ref)]

    def _inside(self, live: str, recorded: str) -> list[tuple[Ref, Ref]] | None:
        refs: list[Ref] = []
        pattern: list[str] = []
        at = 0
        for match in STANDIN.finditer(recorded):
            pattern += re.escape(recorded[at : match.start()]), "(.+?)"
            refs.append(Ref(int(match.group(2)), match.group(1)))
            at = match.end()
        whole = re.fullmatch("".join((*pattern, re.escape(recorded[at:]))), live, re.DOTALL)
        if whole is None:
            return None
        pairs: list[tuple[Ref, Ref]] = []
        for text, theirs in zip(whole.groups(), refs, strict=True):
            ours = self._ref(text, theirs)
            if ours is None:
                return None
            pairs.append((ours, theirs))
        return pairs

    def _ref(self, text: str, theirs: Ref) -> Ref | None:
        standin = STANDIN.fullmatch(text)
        if standin is not None:
            return Ref(int(standin.group(2)), standin.group(1))
        return self._number(text, theirs.rule) if self._learns(theirs.rule) and is_random(text) else None
