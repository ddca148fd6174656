"""What the order of frames promises, told again the slow way: straight from the words of the format's specification.

Rule: nothing of the package is used here. Everything is looked up in the frames, for each question anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Path = tuple[str, ...]
Interval = tuple[int, int]


class Seen(NamedTuple):
    """One call, as its frames tell: numbers of its start and its result frame, and of its chunks."""

    path: Path
    tool: str
    args: str
    start: int
    end: int
    chunks: tuple[int, ...]


def calls_of(frames: Sequence[Mapping[str, Any]]) -> list[Seen]:
    """The calls of a cassette, by number."""
    starts = {f["call"]: f for f in frames if f["kind"] == "call/start"}
    ends = {f["call"]: f["seq"] for f in frames if f["kind"] == "call/result"}
    return [
        Seen(
            tuple(start["path"]),
            start["tool"],
            repr(start["args"]),
            start["seq"],
            ends[number],
            tuple(f["seq"] for f in frames if f["kind"] == "call/chunk" and f["call"] == number),
        )
        for number, start in sorted(starts.items())
    ]


def child_interval(calls: Sequence[Seen], above: Path, call: Seen) -> Interval:
    """From where to where the child of ``above`` reaches that holds ``call``: the call itself, or a scope."""
    if call.path == above:
        return call.start, call.end
    scope = call.path[: len(above) + 1]
    inside = [other for other in calls if other.path[: len(scope)] == scope]
    return min(c.start for c in inside), max(c.end for c in inside)


def precedes(calls: Sequence[Seen], i: int, j: int) -> bool:
    """Record i precedes j when the result of i stands before the start of j and they are not independent.

    They are independent when, of the two children (calls or scopes) of the deepest path that holds both, the one with i
    and the one with j overlap in the file.
    """
    one, two = calls[i], calls[j]
    if i == j or one.end > two.start:
        return False
    depth = 0
    while depth < min(len(one.path), len(two.path)) and one.path[depth] == two.path[depth]:
        depth += 1
    above = one.path[:depth]
    first, second = child_interval(calls, above, one), child_interval(calls, above, two)
    return first[1] < second[0] or second[1] < first[0]


def may_begin(calls: Sequence[Seen], consumed: set[int], j: int) -> bool:
    """Every record that precedes j is consumed."""
    return all(i in consumed for i in range(len(calls)) if precedes(calls, i, j))


def next_record(calls: Sequence[Seen], consumed: set[int], order: str, wanted: tuple[Path, str, str]) -> int | None:
    """The record that a call is for; None where it is a mismatch."""
    left = [n for n, c in enumerate(calls) if n not in consumed and c.path == wanted[0]]
    if order == "strict":
        left = left[:1]
    same = [n for n in left if (calls[n].path, calls[n].tool, calls[n].args) == wanted]
    return same[0] if same else None


def may_end(calls: Sequence[Seen], consumed: set[int], handed: set[int], items: Mapping[int, int], j: int) -> bool:
    """Every frame of the path that stands between start and result of j has happened again."""

    def between(frame: int) -> bool:
        return calls[j].start < frame < calls[j].end

    for number, other in enumerate(calls):
        if number == j or other.path != calls[j].path:
            continue
        if between(other.start) and number not in consumed:
            return False
        if between(other.end) and number not in handed:
            return False
        read = len(other.chunks) if number in handed else items.get(number, 0)
        if any(between(frame) for frame in other.chunks[read:]):
            return False
    return True


def held_before(calls: Sequence[Seen], held: set[int], j: int) -> bool:
    """True if an outcome of the path of j is held whose result stands before that of j."""
    return any(calls[i].path == calls[j].path and calls[i].end < calls[j].end for i in held)
