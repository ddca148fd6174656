"""What place means: which record a call may take, and when its outcome may be handed out.

Theory. A record has a start and an end, in the order of their frames. Two records of one path either overlapped or one
*precedes* the other: its end comes before the other's start. Records of different paths are compared where their paths
part: under the deepest path that both lie below, each is held by one child (a call, or a scope with all that is in it),
and the one precedes the other if its child ended before the other child began. So sub-agents that ran at once are never
ordered against each other, and scopes that ran one after the other are ordered as wholes.

Each policy adds to the one before it:

    any       the n-th record with this path, name and arguments
    causal    ... and every record that precedes it is consumed
    strict    ... and it is the next record, in start order, of its own path

For one child, "ended before it began" is a prefix of its siblings sorted by end. So a parent keeps its children by end
and a mark: how many of them, from the front, are consumed whole. A record may be taken if, at each level of its path,
the mark has reached its child's prefix: the check costs depth, not calls.

*Completion*: an outcome may be handed out when every frame of its path that was recorded between its start and its end
has happened again, starts and chunks too, and no outcome of its path is held that was recorded before it; so a program
that looks at completion order takes the recorded way. A program that repeats its trace is never held for ever: all that
an event waits for stands before it in the file.

Rule: pure bookkeeping. Nothing here waits, and nothing asks for the time; the replayer does, under its lock.
"""

from __future__ import annotations

import bisect
import collections
from array import array
from typing import TYPE_CHECKING, Final, TypeAlias

from toolcassette.engine.likeness import Likeness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolcassette.engine.call import Call
    from toolcassette.format import Cassette

__all__ = ["ORDERS", "Ambiguous", "Event", "Order", "Path"]

ORDERS: Final = ("any", "causal", "strict")  # from loose to strict

Path: TypeAlias = tuple[str, ...]
Event: TypeAlias = tuple[str, int]  # "start", "chunk" or "end", and the record's number

_KEY_MAX: Final = 2**32 - 1  # four bytes a record


class Ambiguous(Exception):
    """Only secrets that were not seen before tell two records apart. ``number``: the first of them."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Parent:
    """The children of one path: its calls, and the scopes right below it."""

    __slots__ = ("by_end", "calls", "mark", "out", "scopes")

    def __init__(self, calls: Sequence[int]) -> None:
        self.calls = calls  # in start order
        self.scopes: list[_Scope] = []
        self.by_end = array("i")  # children by end: a call's number, or -1 - index into scopes
        self.mark = 0  # how many of them, from the front, are consumed whole
        self.out = 0  # how many of them, from the front, hold nothing back any more


class _Scope:
    """A scope seen from the path that it lies right below."""

    __slots__ = ("end", "left", "prefix", "start")

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self.left = 0  # calls in it that are not consumed
        self.prefix = 0  # how many siblings ended before it began


class Order:
    """The state of one replay: what is consumed, what was handed out, and what may come next."""

    def __init__(self, cassette: Cassette, policy: str, likeness: Likeness | None = None) -> None:
        self.policy = policy
        self._likeness = likeness = likeness or Likeness(cassette)
        self.consumed = bytearray(len(cassette))
        self.taken = array("I")  # the records that are consumed, in the order in which they were
        self._cassette = cassette
        self._paths = cassette.paths
        self._handed = bytearray(len(cassette))
        self._held: dict[Path, list[tuple[int, int]]] = {}  # ends and numbers of the calls that are held, in order
        self._held_at: dict[int, Path] = {}
        self._items: dict[int, int] = {}  # stream -> how many of its items were handed out
        self._overlaps: dict[Path, dict[int, list[tuple[int, int]]]] = {}  # see _streams_over
        self._cursors = dict.fromkeys(cassette.paths, 0)  # path -> the first record of it that is not consumed
        self._parents: dict[Path, _Parent] = {}
        self._scopes: dict[Path, _Scope] = {}  # path of a scope -> itself, as a child of its parent
        self._prefixes = array("I")  # call -> how many siblings ended before it began
        # With one path, strict start order says all that precedence could: the tree is built only if completion asks.
        self._has_marks = policy == "causal" or (policy == "strict" and len(cassette.paths) > 1)
        if self._has_marks:
            self._build()
        self._keys, self._by_key = _by_key(cassette, likeness) if policy != "strict" else (array("I"), array("I"))
        self._skips = array("I", bytes(4 * len(self._keys)))  # where a key begins -> how many of it are consumed

    # -- building -------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        """Parents, scopes and prefixes of every path that calls lie below."""
        self._prefixes = array("I", bytes(4 * len(self._cassette)))
        for path in self._cassette.paths:
            for depth in range(len(path) + 1):
                above = path[:depth]
                if above not in self._parents:
                    self._parents[above] = _Parent(self._cassette.paths.get(above, ()))
        for path, numbers in self._cassette.paths.items():
            self._widen(path, numbers)
        for path, scope in self._scopes.items():
            self._parents[path[:-1]].scopes.append(scope)
        for parent in self._parents.values():
            self._number(parent)

    def _widen(self, path: Path, numbers: Sequence[int]) -> None:
        """Let the scopes around some calls reach from the first start to the last end."""
        start = self._cassette.span(numbers[0])[0]
        end = max(self._cassette.span(number)[1] for number in numbers)
        for depth in range(1, len(path) + 1):
            scope = self._scopes.get(path[:depth])
            if scope is None:
                scope = self._scopes[path[:depth]] = _Scope()
                scope.start, scope.end = start, end
            scope.start, scope.end = min(scope.start, start), max(scope.end, end)
            scope.left += len(numbers)

    def _number(self, parent: _Parent) -> None:
        """Sort a parent's children by end, and count for each how many ended before it began."""
        spans = [(*self._cassette.span(number), number) for number in parent.calls]
        spans += [(scope.start, scope.end, -1 - index) for index, scope in enumerate(parent.scopes)]
        by_end = sorted((end, child) for _, end, child in spans)
        parent.by_end = array("i", (child for _, child in by_end))
        ended = 0
        for start, _, child in sorted(spans):
            while ended < len(by_end) and by_end[ended][0] < start:
                ended += 1
            if child < 0:
                parent.scopes[-1 - child].prefix = ended
            else:
                self._prefixes[child] = ended

    # -- matching -------------------------------------------------------------------------------------------------

    def candidate(self, call: Call) -> int | None:
        """The record that a call is for, None where there is none: then the call is a mismatch.

        Raises ``Ambiguous`` where only secrets that nobody has seen yet tell two records apart.
        """
        if self.policy == "strict":
            records = self._paths.get(call.path, ())
            cursor = self._cursors.get(call.path, 0)
            return records[cursor] if cursor < len(records) and self._likeness.same(records[cursor], call) else None
        key = _key(call.path, call.boundary, call.tool, call.args)
        first = at = bisect.bisect_left(self._keys, key)
        if first < len(self._keys):
            at += self._skips[first]  # so that the n-th of many equal calls costs what the first one did
        while at < len(self._keys) and self._keys[at] == key:
            number = self._by_key[at]
            if not self.consumed[number]:
                if self._likeness.same(number, call) and self._lies_at(number, call.path):
                    self._refuse_rivals(number, call, at)
                    return number
            elif at == first + self._skips[first]:
                self._skips[first] += 1
            at += 1
        return self._filled(call) if self._likeness.renames else None

    def _filled(self, call: Call) -> int | None:
        """A record whose secrets stand in the call, where no rule finds them there."""
        records = self._cassette.paths.get(call.path, ())
        fitting = (n for n in records if not self.consumed[n] and self._likeness.bindings(n, call) is not None)
        return next(fitting, None)

    def _refuse_rivals(self, number: int, call: Call, at: int) -> None:
        """Raise ``Ambiguous`` where another record could be meant as well, and ended otherwise."""
        new = self._likeness.bindings(number, call) if call.refs else None
        if not new:
            return
        free = self.waits_for(number, call.path) is None
        for other in self._by_key[at + 1 :]:
            if self.consumed[other] or not self._lies_at(other, call.path):
                continue
            others = self._likeness.bindings(other, call)
            if others is None or others == new or (free and self.waits_for(other, call.path) is not None):
                continue
            if not self._likeness.equal_outcomes(number, other):
                raise Ambiguous(number)

    def _lies_at(self, number: int, path: Path) -> bool:
        records = self._cassette.paths.get(path, ())
        at = bisect.bisect_left(records, number)
        return at < len(records) and records[at] == number

    def waits_for(self, number: int, path: Path) -> tuple[Path, int] | None:
        """A path, and the mark that it must reach before ``number`` may be taken; None where that is now."""
        if not self._has_marks:
            return None
        for depth in range(len(path) + 1):
            prefix = self._scopes[path[: depth + 1]].prefix if depth < len(path) else self._prefixes[number]
            if self._parents[path[:depth]].mark < prefix:
                return path[:depth], prefix
        return None

    def consume(self, number: int, path: Path) -> list[tuple[Path, int]]:
        """Take a record: its start has happened again. Returns the paths whose marks moved, and where to."""
        self.consumed[number] = 1
        self.taken.append(number)
        records, cursor = self._paths[path], self._cursors[path]
        while cursor < len(records) and self.consumed[records[cursor]]:
            cursor += 1
        self._cursors[path] = cursor
        moved: list[tuple[Path, int]] = []
        if not self._has_marks:
            return moved
        for depth in range(len(path), -1, -1):
            if depth:
                self._scopes[path[:depth]].left -= 1
            parent = self._parents[path[:depth]]
            if self._advance(parent):
                moved.append((path[:depth], parent.mark))
        return moved

    def _advance(self, parent: _Parent) -> bool:
        by_end, before = parent.by_end, parent.mark
        while parent.mark < len(by_end):
            child = by_end[parent.mark]
            if not (self.consumed[child] if child >= 0 else not parent.scopes[-1 - child].left):
                break
            parent.mark += 1
        return parent.mark > before

    def cursor(self, path: Path) -> int:
        """The ordinal of the first record of a path that is not consumed."""
        return self._cursors.get(path, 0)

    # -- completion -----------------------------------------------------------------------------------------------

    def is_free(self, number: int) -> bool:
        """True if surely nothing holds an outcome: a quick answer for most."""
        return not self._held_at and self._cassette.adjacent(number)

    def held_by(self, number: int, path: Path) -> Event | None:
        """An event that was recorded before the end of ``number`` and must happen again first; None: hand it out."""
        event = self._overlapping(number, path) or self._held_before(number, path)
        if event is not None and number not in self._held_at:
            self._held_at[number] = path
            bisect.insort(self._held.setdefault(path, []), (self._cassette.span(number)[1], number))
        return event

    def _held_before(self, number: int, path: Path) -> Event | None:
        """The last end before this one whose call is held. It may have been let go already, and not yet gone on."""
        held = self._held.get(path, ())
        at = bisect.bisect_left(held, (self._cassette.span(number)[1], number))
        return ("end", held[at - 1][1]) if at else None

    def _overlapping(self, number: int, path: Path) -> Event | None:
        if self._cassette.adjacent(number):
            return None
        start, end = self._cassette.span(number)
        records = self._cassette.paths[path]
        # Of several the last is named: who waits for the first is woken by each of them.
        for at in _backwards(records, start, end, lambda other: self._cassette.span(other)[0], self._cursors[path]):
            if not self.consumed[records[at]]:
                return "start", records[at]
        if not self._parents:
            self._build()
        parent = self._parents[path]
        while parent.out < len(parent.by_end) and self._is_out(parent.by_end[parent.out]):
            parent.out += 1
        for at in _backwards(parent.by_end, start, end, lambda child: self._end_of(parent, child), parent.out):
            if not self._is_out(parent.by_end[at]):
                return "end", parent.by_end[at]
        for stream, items in self._streams_over(path).get(number, ()):
            if self._items.get(stream, 0) < items and not self._handed[stream]:
                return "chunk", stream
        return None

    def _streams_over(self, path: Path) -> dict[int, list[tuple[int, int]]]:
        """Of each call, the streams that went on when it ended, and how many items each had given by then.

        Only those that gave one while the call was open.
        """
        found = self._overlaps.get(path)
        if found is not None:
            return found
        found = self._overlaps[path] = {}
        cassette, going = self._cassette, list[int]()
        coming = collections.deque(n for n in cassette.paths[path] if cassette.has_chunks(n))
        for child in self._parents[path].by_end if coming else ():
            if child < 0:
                continue
            start, end = cassette.span(child)
            while coming and cassette.span(coming[0])[0] < end:
                going.append(coming.popleft())
            going = [stream for stream in going if cassette.span(stream)[1] > end]
            rows = [(stream, cassette.chunks_before(stream, end)) for stream in going]
            rows = [(stream, items) for stream, items in rows if items > cassette.chunks_before(stream, start)]
            if rows:
                found[child] = rows
        return found

    def _is_out(self, child: int) -> bool:
        """True unless a child is a call whose outcome was not handed out."""
        return child < 0 or bool(self._handed[child])

    def _end_of(self, parent: _Parent, child: int) -> int:
        return self._cassette.span(child)[1] if child >= 0 else parent.scopes[-1 - child].end

    def hand_out(self, number: int) -> None:
        """A record's outcome reached the program: its end has happened again."""
        self._handed[number] = 1
        path = self._held_at.pop(number, None)
        if path is not None:
            held = self._held[path]
            del held[bisect.bisect_left(held, (self._cassette.span(number)[1], number))]

    def hand_out_item(self, number: int) -> None:
        """The next item of a stream reached the program."""
        self._items[number] = self._items.get(number, 0) + 1


def _key(path: Path, boundary: str, tool: str, args: bytes) -> int:
    """A number to look records up by, in this process only; what it finds is compared byte for byte."""
    return hash((path, boundary, tool, args)) & _KEY_MAX


def _backwards(children: Sequence[int], start: int, end: int, key: Callable[[int], int], settled: int) -> Iterable[int]:
    """Places in ``children``, sorted by ``key``, of those strictly between two frames; the last one first.

    The first ``settled`` of them need no look.
    """
    low = max(bisect.bisect_right(children, start, key=key), settled)
    return range(bisect.bisect_left(children, end, key=key) - 1, low - 1, -1)


def _by_key(cassette: Cassette, likeness: Likeness) -> tuple[array[int], array[int]]:
    """The keys of all records in order, and beside them the records, equal keys in start order."""
    pairs: list[tuple[int, int]] = []
    for path, numbers in cassette.paths.items():
        for number in numbers:
            head, _ = cassette.place(number)
            pairs.append((_key(path, head.boundary, head.tool, likeness.template(number)), number))
    pairs.sort()
    return array("I", (key for key, _ in pairs)), array("I", (number for _, number in pairs))
