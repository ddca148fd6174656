"""Lines in, one finding out: whether the bytes are a whole cassette, and if not, where and why (FORMAT.md section 8).

Theory. A frame can be wrong in three ways, and the plainest wins: its own bytes do not hash; it does not follow the
frame before; or it is intact and in place, but means nothing here. The frame named is the first whose own bytes do not
hash, else the first that does not link, else the first that means nothing. So a reader that has met a broken link still
looks at the own bytes of every later line. Only a file without any such fault can be *torn* (cut) or lack its tail.

States: *complete*; *open* (a partial, fine so far); *torn*; *zero-filled*; *damaged*; *absent*; *unreadable*. ``ok`` is
said of complete alone.

Rule: lines are split at LF only, and no line longer than the limit is ever held.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from toolcassette.errors import FormatError
from toolcassette.format.chain import Chain, own_fault, prev_and_hash
from toolcassette.format.codec import LINE_BYTES_MAX, decode_frame, decode_head
from toolcassette.format.frames import FORMAT, Complete, Header
from toolcassette.format.grammar import CALLS_MAX, Grammar
from toolcassette.format.runs import Cutter, survey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolcassette.format.frames import Frame
    from toolcassette.format.runs import Run, Survey

    Index = Callable[[Frame, int, int], None]

__all__ = ["Finding", "Reader", "RunIndex", "state_of"]

_STATES: Final = {
    "absent": "absent",
    "unreadable": "unreadable",
    "not_a_file": "unreadable",
    "format_unknown": "unreadable",
    "requires_unknown": "unreadable",
    "rules_unknown": "unreadable",
    "empty": "torn",
    "torn": "torn",
    "tail_missing": "torn",
    "final_newline_missing": "torn",
    "zero_filled": "zero-filled",
    "not_published": "open",
}

_BOM: Final = b"\xef\xbb\xbf"
_LFS: Final = b"version https://git-lfs.github.com/spec/"
_CONFLICT: Final = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")
_HEADER_START: Final = b'{"seq":0,"kind":"header","format":"'
_OTHER_FORMAT = re.compile(
    rb'\A.{0,64}"format":"toolcassette/(?!%b")[0-9]{1,9}"' % FORMAT.split("/")[1].encode(), re.DOTALL
)


def state_of(reason: str | None) -> str:
    """The state that goes with a reason of ``FormatError``; complete for None."""
    return "complete" if reason is None else _STATES.get(reason, "damaged")


class Finding(NamedTuple):
    """The first thing wrong with a file. ``offset`` is where the frame begins, in bytes."""

    reason: str
    frame: int | None
    offset: int | None

    def as_error(self) -> FormatError:
        """The error to raise for it."""
        return FormatError(self.reason, frame=self.frame, offset=self.offset)


class RunIndex(Protocol):
    """What is told of many frames at once: of every frame of a whole cassette, and of some before a fault."""

    def take_run(self, found: Survey, accepted: int, offset: int) -> None:
        """Take the first ``accepted`` frames of a survey that begins at byte ``offset``."""
        ...


class Reader:
    """Checks one cassette from its first byte to its last.

    ``index(frame, offset, length)`` is called for each frame that is intact, in place and means something; ``runs`` is
    told of the same frames, many at once, up to the first fault. ``deep`` looks at every bulk member too. Feed blocks,
    then ask ``finish`` for the finding; or ``take`` runs in file order, with surveys that were made elsewhere.
    """

    def __init__(
        self,
        *,
        index: Index | None = None,
        runs: RunIndex | None = None,
        deep: bool = False,
        line_bytes_max: int = LINE_BYTES_MAX,
        calls_max: int = CALLS_MAX,
    ) -> None:
        self.grammar = Grammar(calls_max=calls_max)
        self.header: Header | None = None
        self.complete: Complete | None = None
        self._chain = Chain()
        self._index = index
        self._runs = runs
        self._deep = deep
        self._line_bytes_max = line_bytes_max
        self.cutter = Cutter(line_bytes_max)
        self._line = 0  # lines seen
        self._offset = 0  # where the line begins
        self._faults: dict[str, Finding] = {}  # by class: own, link, meaning

    @property
    def head(self) -> str:
        """Hash of the last frame that was in place."""
        return self._chain.head

    @property
    def is_decided(self) -> bool:
        """True if nothing that may still come changes the finding."""
        return "own" in self._faults

    def feed(self, block: bytes) -> None:
        """Take the next bytes of the file."""
        if self.is_decided:
            return
        for run in self.cutter.cut(block):
            quick = self._index is None and not self._faults
            self.take(run, survey(run, deep=self._deep, line_bytes_max=self._line_bytes_max) if quick else None)

    def feed_all(self, blocks: Iterable[bytes]) -> Reader:
        """Take all the bytes there are, as far as they matter."""
        for block in blocks:
            self.feed(block)
            if self.is_decided:
                break
        return self

    def take(self, run: Run, found: Survey | None) -> None:
        """Take the next run and its survey, which must have been made with this reader's limits."""
        accepted = 0
        if found is not None and not self._faults and self._follows(found):
            accepted = self._accept(found, run)
        if found is None or accepted < len(found.lengths):
            for line in run.lines()[accepted:]:
                self._take(line)

    def _follows(self, found: Survey) -> bool:
        return found.prev == self._chain.head and found.seq == self._line

    def _accept(self, found: Survey, run: Run) -> int:
        """Take the frames of a sound run that the grammar takes; the others find their reason one by one."""
        accepted = self.grammar.run(found.steps)
        if not accepted:
            return 0
        if self._runs is not None:
            self._runs.take_run(found, accepted, self._offset)
        for at, frame in found.steps.frames:
            if at < accepted:
                self._remember(frame)
        whole = accepted == len(found.lengths)
        self._chain.jump(accepted, found.head if whole else prev_and_hash(run.lines()[accepted])[0])
        self._line += accepted
        self._offset += sum(found.lengths[:accepted])
        return accepted

    @property
    def _rest(self) -> bytes:
        """The line begun and not ended."""
        return self.cutter.rest

    def _fault(self, kind: str, reason: str) -> None:
        self._faults.setdefault(kind, Finding(reason, self._line, self._offset))

    def _take(self, line: bytes) -> None:
        if self.is_decided:
            return
        if len(line) > self._line_bytes_max:
            line = line[: self._line_bytes_max + 1]  # the same name for it, however the file is cut into blocks
            reason: str | None = "line_too_long"
        else:
            reason = own_fault(line)
        if reason is not None:
            self._fault("own", self._named(line, reason))
            return
        self._follow(line)
        self._line += 1
        self._offset += len(line)

    def _named(self, line: bytes, reason: str) -> str:
        """What a line whose own bytes are wrong really is, where that can be told."""
        if b"\0" in line:
            return "zero_filled"
        if self.grammar.state == "done" and not self._faults:
            return "after_complete"
        if line.endswith(b"\r\n"):
            return "crlf"
        if line.startswith(_CONFLICT):
            return "conflict_markers"
        if self._line == 0:
            return _named_first(line, reason)
        return reason

    def _follow(self, line: bytes) -> None:
        if "link" in self._faults:
            return
        try:
            self._chain.check(line)
        except FormatError as error:
            done = self.grammar.state == "done" and "meaning" not in self._faults
            self._fault("link", "after_complete" if done else error.reason)
            return
        if "meaning" in self._faults:
            return
        try:
            self._mean(line)
        except FormatError as error:
            self._fault("meaning", error.reason)

    def _mean(self, line: bytes) -> None:
        frame = decode_head(line)
        if frame.seq != self._line:
            raise FormatError("seq")
        if self._deep:
            decode_frame(line, type(frame))
        self.grammar.step(frame)
        self._remember(frame)
        if self._index is not None:
            self._index(frame, self._offset, len(line))

    def _remember(self, frame: Frame) -> None:
        if isinstance(frame, Header):
            self.header = frame
        elif isinstance(frame, Complete):
            self.complete = frame

    def finish(self, *, partial: bool = False) -> Finding | None:
        """The finding, or None for a complete cassette. A ``partial`` is open at best and may end anywhere."""
        for kind in ("own", "link", "meaning"):
            if kind in self._faults:
                return self._faults[kind]
        reason = self._tail(partial=partial)
        return None if reason is None else Finding(reason, self._line, self._offset)

    def _tail(self, *, partial: bool) -> str | None:
        rest = self._rest
        if b"\0" in rest:
            return "zero_filled"
        if rest and self.grammar.state == "done":
            return "after_complete"
        if partial:
            return "not_published"
        if rest:
            return self._tail_fragment(rest)
        if self._line == 0:
            return "empty"
        return None if self.grammar.state == "done" else "tail_missing"

    def _tail_fragment(self, rest: bytes) -> str:
        if own_fault(rest + b"\n") is None:
            last = rest.startswith(b'{"seq":%d,"kind":"complete"' % self._line)
            return "final_newline_missing" if last else "torn"
        if own_fault(rest[:-1] + b"\n") is None:
            return "hash"  # the frame is whole: its LF became another byte
        if rest.startswith(_CONFLICT):
            return "conflict_markers"
        if self._line == 0:
            return _named_first(rest, "torn")
        return "torn"


def _named_first(line: bytes, reason: str) -> str:
    """What a first line is whose own bytes are wrong."""
    if line.startswith(_BOM):
        return "bom"
    if line.startswith(_LFS):
        return "lfs_pointer"
    if reason == "hash":
        return reason
    if _OTHER_FORMAT.match(line):
        return "format_unknown"
    return reason if line.startswith(_HEADER_START[: len(line)]) else "not_a_cassette"
