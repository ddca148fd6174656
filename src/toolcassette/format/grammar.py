"""Which frame may follow which: the table, and its theory (FORMAT.md section 6).

Theory. A cassette is one sentence: a header, then frames of calls in any interleaving, then ``complete``. Two small
machines decide whether a word is allowed.

The *file* is ``empty``, ``open``, ``sealed`` or ``done``. A header opens it, as ``sealed`` where it is one of an
encrypted cassette; ``complete`` ends it; frames of calls stand between, all of them sealed, or none.

Each *call* is ``new``, ``running``, ``streaming`` or ``ended``. Calls are numbered in the order in which they start, so
a start must carry the number of calls so far and the numbers need not be searched. A running call gets chunks, numbered
from 0 (it is then streaming), or its one result. The result of a stream counts its chunks, also when there are none, so
a stream of no chunks is told apart from a plain value and from chunks that were lost; a plain result after a chunk is
refused.

A recorded call is a leaf: no other call lies below it. A composite call shows in the paths of the calls within, as
``name:<digest>#i``. If a tool of that name was recorded in the composite's place, it is both at once, and refused.

``complete`` is allowed only when no call is open, and its counts must be those of the frames that stand before it.

Rule: one object steps on write and on read. An illegal step raises ``FormatError`` and changes nothing.
"""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from msgspec import UNSET

from toolcassette.errors import FormatError
from toolcassette.format.frames import (
    CallChunk,
    CallResult,
    CallStart,
    Complete,
    Frame,
    Header,
    SealedChunk,
    SealedResult,
    SealedStart,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CALLS_MAX", "CHUNK", "ERROR", "OK", "START", "Grammar", "Naming", "Steps"]

CALLS_MAX: Final = 1_000_000  # calls in one cassette; more is a load test, and a reader's index must stay bounded

_COMPOSITE: Final = re.compile(r"(.+):[0-9a-f]{16}#[0-9]+", re.DOTALL)  # no scope is called so
_ESCAPE: Final = re.compile(rb"%([0-9A-F]{2})")

_PLAIN: Final[tuple[type[Frame], ...]] = (CallStart, CallChunk, CallResult)
_SEALED: Final[tuple[type[Frame], ...]] = (SealedStart, SealedChunk, SealedResult)

# file state -> kind -> next file state, or the reason why not
_FILE: Final[dict[str, dict[type[Frame], str]]] = {
    "empty": {Header: "open", **dict.fromkeys((*_PLAIN, *_SEALED, Complete), "!header_missing")},
    "open": {
        Header: "!header_repeated",
        **dict.fromkeys(_PLAIN, "open"),
        **dict.fromkeys(_SEALED, "!members"),
        Complete: "done",
    },
    "sealed": {
        Header: "!header_repeated",
        **dict.fromkeys(_PLAIN, "!members"),
        **dict.fromkeys(_SEALED, "sealed"),
        Complete: "done",
    },
    "done": dict.fromkeys((Header, *_PLAIN, *_SEALED, Complete), "!after_complete"),
}

# How far a call is: the number of its chunks so far, or one of these.
_RUNNING: Final = 0
_ENDED: Final = -1

# What the two lowest bits of a step's code say; the others are the number of the call.
START: Final = 0
CHUNK: Final = 1
OK: Final = 2
ERROR: Final = 3
_OUTCOMES: Final = {OK: "ok", ERROR: "error"}
_FRAME: Final = -1  # a code of its own: a frame that has no short form

Naming: TypeAlias = tuple[tuple[str, ...], str, str]  # path, tool and boundary of a call


class Steps:
    """Many frames in short form, in their order.

    ``codes``: a number for each. ``more``: what a code has no room for, in the same order: the naming of a start, the
    number of a chunk, or the frame itself. ``frames``: those frames again, each with its place in ``codes``.
    """

    __slots__ = ("codes", "frames", "more")

    def __init__(self) -> None:
        self.codes = array("q")
        self.more: list[Naming | int | Frame] = []
        self.frames: list[tuple[int, Frame]] = []

    def add_frame(self, frame: Frame) -> None:
        """Add a frame of any kind."""
        self.frames.append((len(self.codes), frame))
        self.codes.append(_FRAME)
        self.more.append(frame)

    def in_turn(self) -> bool:
        """True if these are calls one after the other, each of them ok: then, and only then, codes count up by twos."""
        if self.frames or not self.codes or self.codes[0] & 1:
            return False
        first = self.codes[0]
        return self.codes == array("q", range(first, first + 2 * len(self.codes), 2))


# call state -> kind -> the reason why not, or '' where the numbers decide
_CALL: Final[dict[str, dict[type[Frame], str]]] = {
    "new": {CallStart: "", CallChunk: "call_unknown", CallResult: "call_unknown"},
    "running": {CallStart: "call_number", CallChunk: "", CallResult: ""},
    "streaming": {CallStart: "call_number", CallChunk: "", CallResult: ""},
    "ended": {CallStart: "call_number", CallChunk: "call_ended", CallResult: "call_ended"},
}
for _row in _CALL.values():  # a sealed frame is one of its kind
    _row |= {sealed: _row[plain] for plain, sealed in zip(_PLAIN, _SEALED, strict=True)}


class Grammar:
    """Steps over frames in file order. ``calls``, ``frames`` and ``outcomes`` count what was accepted."""

    __slots__ = ("_composites", "_leaves", "_open", "_progress", "calls_max", "frames", "outcomes", "state")

    def __init__(self, *, calls_max: int = CALLS_MAX) -> None:
        self.state = "empty"
        self.frames = 0
        self.outcomes = {"ok": 0, "error": 0, "cancelled": 0, "left_early": 0}
        self._progress = array("q")  # by call number: chunks so far, or _ENDED
        self._open = 0
        self._leaves: set[tuple[str, ...]] = set()  # path and tool of each recorded call
        self._composites: set[tuple[str, ...]] = set()  # path and name of each composite that a call lies below
        self.calls_max = calls_max

    @property
    def calls(self) -> int:
        """Calls that were started."""
        return len(self._progress)

    @property
    def open_calls(self) -> int:
        """Calls that were started and have no result."""
        return self._open

    def call_state(self, call: int) -> str:
        """``new``, ``running``, ``streaming`` or ``ended``."""
        if call >= len(self._progress):
            return "new"
        progress = self._progress[call]
        return "ended" if progress == _ENDED else "streaming" if progress > _RUNNING else "running"

    def step(self, frame: Frame) -> None:
        """Accept one frame. Raises ``FormatError`` with the reason and the frame's place; then nothing changed."""
        following = _FILE[self.state][type(frame)]
        reason = following[1:] if following.startswith("!") else self._why_not(frame)
        if reason:
            raise FormatError(reason, frame=self.frames)
        self._accept(frame)
        self.state = "sealed" if isinstance(frame, Header) and frame.requires else following
        self.frames += 1

    def begin(self, path: Sequence[str], tool: str) -> None:
        """Accept the start frame of the next call, as ``step`` does."""
        call = len(self._progress)
        is_known = (*path, tool) in self._leaves  # then it was seen not to be nested
        if self.state != "open" or call >= self.calls_max or (not is_known and self._is_nested(path, tool)):
            following = _FILE[self.state][CallStart]
            refused = "too_many_calls" if call >= self.calls_max else "nested"
            raise FormatError(following[1:] if following.startswith("!") else refused, frame=self.frames)
        self._progress.append(_RUNNING)
        self._open += 1
        if not is_known:
            self._name(path, tool)
        self.frames += 1

    def may_end_plainly(self, call: int) -> bool:
        """True if ``end_plainly`` would accept the result of a call that is no stream."""
        progress = self._progress
        return self.state == "open" and call < len(progress) and progress[call] == _RUNNING

    def end_plainly(self, call: int) -> None:
        """Accept the result, ok, of a call that is no stream; ``may_end_plainly`` was asked."""
        self._progress[call] = _ENDED
        self._open -= 1
        self.outcomes["ok"] += 1
        self.frames += 1

    def run(self, steps: Steps) -> int:
        """Accept what ``step`` would accept, up to the first frame that it would refuse. Returns how many there were.

        The short forms say in numbers what ``_CALL`` says in words: how far the call is decides.
        """
        if steps.in_turn() and self._take_turns(steps):
            return len(steps.codes)
        progress, more = self._progress, iter(steps.more)
        known: set[object] = set()  # names looked at since the last that was new
        is_open = self.state == "open"
        accepted, uncounted = 0, 0  # of those accepted, the short ones that are not in self.frames yet
        for code in steps.codes:
            kind, call = code & 3, code >> 2
            if code == _FRAME:
                self.frames, uncounted = self.frames + uncounted, 0
                if not self._may_step(cast("Frame", next(more))):
                    return accepted
                is_open = self.state == "open"
                known.clear()
                accepted += 1
                continue
            if kind == START:
                naming = next(more)
                if call != len(progress) or call >= self.calls_max or not is_open:
                    break
                if naming not in known and not self._meet(naming, known):
                    break
                progress.append(_RUNNING)
                self._open += 1
            elif call >= len(progress) or not is_open or progress[call] != (next(more) if kind == CHUNK else _RUNNING):
                break
            elif kind == CHUNK:
                progress[call] += 1
            else:
                progress[call] = _ENDED
                self._open -= 1
                self.outcomes[_OUTCOMES[kind]] += 1
            accepted += 1
            uncounted += 1
        self.frames += uncounted
        return accepted

    def _take_turns(self, steps: Steps) -> bool:
        """Accept calls in turn, all at once; False, and nothing changed, where a name is new or a number not next."""
        progress, first, last = self._progress, steps.codes[0], steps.codes[-1]
        namings = cast("set[Naming]", set(steps.more))
        if self.state != "open" or last >> 2 >= self.calls_max:
            return False
        if not all((*path, tool) in self._leaves for path, tool, _ in namings):
            return False
        if first & 2:  # begins with the end of a call that was begun before
            if first >> 2 != len(progress) - 1 or progress[-1] != _RUNNING:
                return False
            progress[-1] = _ENDED
        elif first >> 2 != len(progress):
            return False
        started = len(steps.more)
        ended = len(steps.codes) - started
        progress.extend(array("q", [_ENDED]) * started)
        if not last & 2:
            progress[-1] = _RUNNING
        self._open += started - ended
        self.outcomes["ok"] += ended
        self.frames += len(steps.codes)
        return True

    def _may_step(self, frame: Frame) -> bool:
        try:
            self.step(frame)
        except FormatError:
            return False
        return True

    def _meet(self, naming: object, known: set[object]) -> bool:
        """Whether a call may start under this name: it is not nested."""
        path, tool, _ = cast("Naming", naming)
        if self._is_nested(path, tool):
            return False
        if (*path, tool) not in self._leaves:
            known.clear()
            self._name(path, tool)
        known.add(naming)
        return True

    def _why_not(self, frame: Frame) -> str:
        if isinstance(frame, Header):
            return ""
        if isinstance(frame, Complete):
            return self._why_not_complete(frame)
        reason = _CALL[self.call_state(frame.call)][type(frame)]
        if reason:
            return reason
        if isinstance(frame, CallStart | SealedStart):
            if frame.call != self.calls:
                return "call_number"
            if self.calls >= self.calls_max:
                return "too_many_calls"
            # Below what a sealed one lies is known to who can open it (``opening.opened``).
            return "nested" if isinstance(frame, CallStart) and self._is_nested(frame.path, frame.tool) else ""
        progress = self._progress[frame.call]
        if isinstance(frame, CallChunk | SealedChunk):
            return "" if frame.chunk == progress else "chunk_number"
        if frame.outcome not in self.outcomes:  # a writer's slip; a reader's head was checked
            return "head"
        counted = 0 if frame.chunks is UNSET else frame.chunks
        return "" if counted == progress else "chunk_count"

    def _is_nested(self, path: Sequence[str], tool: str) -> bool:
        """True if a call lies below a recorded one, or a recorded one below it."""
        if self._composites and (*path, tool) in self._composites:
            return True
        return bool(path) and not self._leaves.isdisjoint(_composites(path))

    def _name(self, path: Sequence[str], tool: str) -> None:
        """Keep the name of a call, for the calls that may lie above and below."""
        self._leaves.add((*path, tool))
        if path:
            self._composites.update(_composites(path))

    def _why_not_complete(self, frame: Complete) -> str:
        if self._open:
            return "call_open"
        counted = (frame.calls, frame.frames, frame.ok, frame.error, frame.cancelled, frame.left_early)
        return "" if counted == (self.calls, self.frames + 1, *self.outcomes.values()) else "counts"

    def _accept(self, frame: Frame) -> None:
        if isinstance(frame, CallStart | SealedStart):
            self._progress.append(_RUNNING)
            self._open += 1
            if isinstance(frame, CallStart):
                self._name(frame.path, frame.tool)
        elif isinstance(frame, CallChunk | SealedChunk):
            self._progress[frame.call] += 1
        elif isinstance(frame, CallResult | SealedResult):
            self._progress[frame.call] = _ENDED
            self._open -= 1
            self.outcomes[frame.outcome] += 1


def _composites(path: Sequence[str]) -> list[tuple[str, ...]]:
    """Path and name of each composite call that a path leads through."""
    found = ((path[:depth], _COMPOSITE.fullmatch(segment)) for depth, segment in enumerate(path))
    return [(*above, _unescaped(match[1])) for above, match in found if match is not None]


def _unescaped(name: str) -> str:
    return _ESCAPE.sub(lambda byte: bytes.fromhex(byte[1].decode()), name.encode()).decode("utf-8", "replace")
