"""What two cassettes say differently, call by call, as data: ``diff``.

Theory. A call of one cassette is paired with the call of the other that it most likely is, in rounds: the same path,
tool and arguments; then the same path and tool with the nearest arguments; then the same tool and arguments under
another path. What is left was added or removed. Pairs are compared member by member. Of the pairs of one path, the
longest run that kept its order stays where it is; the others were reordered.

Rule: ids, times and hashes do not count, everything else does: two cassettes are the same exactly if re-recording one
over the other would leave the file unchanged. Values are in the data for who asks for them, never in a repr.
"""

from __future__ import annotations

import dataclasses
import os
from bisect import bisect_left
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from toolcassette.content import call_tree
from toolcassette.engine import read
from toolcassette.format import TAG, Cassette, decode_tree, encode_tree, json_path
from toolcassette.stores import FileStore

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from toolcassette.format import RecordedCall
    from toolcassette.stores import Store

__all__ = ["CallChange", "Diff", "Difference", "Place", "diff"]

Kind: TypeAlias = Literal["added", "removed", "changed", "reordered"]
_Pairs: TypeAlias = "list[tuple[int, int]]"

_PAIRS_WEIGHED_MAX: Final = 2_500  # above that many candidates they are paired in their order: minutes say no more


class Place(NamedTuple):
    """Where a call stands: its number in the file, its call path, and its ordinal among the calls of that path."""

    call: int
    path: tuple[str, ...]
    ordinal: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """One place at which something differs. ``old`` and ``new`` are canonical JSON, None on the side that lacks it.

    ``reordered``: an object has the same keys in another order, which a model may see.
    """

    json_path: str
    kind: Kind
    old: bytes | None = dataclasses.field(default=None, repr=False)
    new: bytes | None = dataclasses.field(default=None, repr=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CallChange:
    """One call that is not the same in both. ``old`` is None for an added call, ``new`` for a removed one.

    ``differs`` has what differs within a ``changed`` call; ``reordered`` is True also for a changed call that moved.
    """

    kind: Kind
    boundary: str
    tool: str
    old: Place | None
    new: Place | None
    reordered: bool = False
    differs: tuple[Difference, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Diff:
    """What ``diff`` found.

    ``calls``: the calls that differ, in the order of the new cassette, removed ones where they stood. ``header``:
    differences of header and last frame (include, order, sync, rejected calls). ``interleaving``: all calls are the
    same and only started or ended in another order across paths. ``unchanged``: how many calls are the same.
    ``only``: the one side that there is, where the other has no cassette at all.
    """

    calls: tuple[CallChange, ...]
    header: tuple[Difference, ...]
    interleaving: bool
    old_calls: int
    new_calls: int
    unchanged: int
    only: Literal["old", "new"] | None = None

    @property
    def same(self) -> bool:
        """True if the two say the same."""
        return not (self.calls or self.header or self.interleaving or self.only)

    @property
    def counts(self) -> dict[str, int]:
        """How many calls were ``changed``, ``added``, ``removed`` and only ``reordered``."""
        kinds: tuple[Kind, ...] = ("changed", "added", "removed", "reordered")
        return {kind: sum(change.kind == kind for change in self.calls) for kind in kinds}


_Given: TypeAlias = "Cassette | str | os.PathLike[str] | None"


def diff(old: _Given, new: _Given, *, store: Store | None = None) -> Diff:
    """What differs between two cassettes, which are given as such or as files; None stands for no cassette.

    Raises ``FormatError`` for a file that is not a whole cassette.
    """
    before, after = (_read(side, store or FileStore()) for side in (old, new))
    olds, news = ([] if side is None else [_timeless(call) for call in side] for side in (before, after))
    pairs = _aligned(olds, news)
    calls = tuple(_changes(olds, news, pairs))
    header = () if before is None or after is None else tuple(_walk(_facts(before), _facts(after), ()))
    return Diff(
        calls=calls,
        header=header,
        interleaving=not calls and before is not None and after is not None and _frames(before) != _frames(after),
        old_calls=len(olds),
        new_calls=len(news),
        unchanged=sum(olds[i] == news[j] for i, j in pairs) - sum(change.kind == "reordered" for change in calls),
        only=None if (before is None) == (after is None) else "old" if after is None else "new",
    )


def _read(given: _Given, store: Store) -> Cassette | None:
    return given if given is None or isinstance(given, Cassette) else read(store, os.fspath(given))


def _timeless(call: RecordedCall) -> RecordedCall:
    return call._replace(started_at=0, ended_at=0)


def _facts(cassette: Cassette) -> dict[str, Any]:
    """What header and last frame say beside ids, times, counts of frames, and the producer."""
    header = cassette.header
    facts = {"requires": header.requires, "include": header.include, "order": header.order, "sync": header.sync}
    return {"header": {**facts, "rules": header.rules}, "complete": {"rejected": cassette.complete.rejected}}


def _frames(cassette: Cassette) -> list[bytes]:
    """The frames of the calls as they follow each other."""
    return cassette.content()[1:-1]


# -- which call is which ---------------------------------------------------------------------------------------------


def _aligned(olds: Sequence[RecordedCall], news: Sequence[RecordedCall]) -> _Pairs:
    """Pairs of call numbers, in the order of the old ones."""
    pairs: _Pairs = []
    left_old, left_new = set(range(len(olds))), set(range(len(news)))
    for key, match in _ROUNDS:
        groups = _grouped(news, left_new, key)
        for name, numbers in _grouped(olds, left_old, key).items():
            found = list(match(olds, news, numbers, groups.get(name, [])))
            pairs += found
            left_old -= {i for i, _ in found}
            left_new -= {j for _, j in found}
    return sorted(pairs)


def _grouped(
    calls: Sequence[RecordedCall], numbers: Iterable[int], key: Callable[[RecordedCall], Hashable]
) -> dict[Hashable, list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for number in sorted(numbers):
        groups.setdefault(key(calls[number]), []).append(number)
    return groups


def _in_step(
    olds: Sequence[RecordedCall], news: Sequence[RecordedCall], left: Sequence[int], right: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Repeated calls: the n-th with the n-th; where one side has more, as many with the same outcome as can be."""
    if len(left) == len(right) or len(left) * len(right) > _PAIRS_WEIGHED_MAX:
        yield from zip(left, right, strict=False)
        return
    a, b = [olds[i] for i in left], [news[j] for j in right]
    for _, start, end, other, other_end in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        yield from zip(left[start:end], right[other:other_end], strict=False)


def _nearest(
    olds: Sequence[RecordedCall], news: Sequence[RecordedCall], left: Sequence[int], right: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Those with the fewest differing arguments first, then those that stand nearest."""
    if len(left) * len(right) > _PAIRS_WEIGHED_MAX:
        yield from zip(left, right, strict=False)
        return
    a, b = ([decode_tree(calls[n].args, sort=True) for n in ns] for calls, ns in ((olds, left), (news, right)))
    weighed = sorted(
        (sum(1 for _ in _walk(x, y, ())), abs(i - j), i, j) for i, x in enumerate(a) for j, y in enumerate(b)
    )
    taken_left: set[int] = set()
    taken_right: set[int] = set()
    for _, _, i, j in weighed:
        if i not in taken_left and j not in taken_right:
            taken_left.add(i)
            taken_right.add(j)
            yield left[i], right[j]


_Calls: TypeAlias = "Sequence[RecordedCall]"
_Key: TypeAlias = "Callable[[RecordedCall], Hashable]"
_Match: TypeAlias = "Callable[[_Calls, _Calls, Sequence[int], Sequence[int]], Iterator[tuple[int, int]]]"
_ROUNDS: Final[tuple[tuple[_Key, _Match], ...]] = (
    (lambda call: (call.path, call.boundary, call.tool, call.args), _in_step),
    (lambda call: (call.path, call.boundary, call.tool), _nearest),
    (lambda call: (call.boundary, call.tool, call.args), _in_step),
)


# -- what is not the same --------------------------------------------------------------------------------------------


def _changes(olds: Sequence[RecordedCall], news: Sequence[RecordedCall], pairs: _Pairs) -> list[CallChange]:
    old_places, new_places = _places(olds), _places(news)
    moved = _moved(olds, news, pairs)
    after = dict(pairs)
    found: list[tuple[tuple[int, int], CallChange]] = []
    for i, j in pairs:
        old, new = olds[i], news[j]
        differs = () if old == new else tuple(_walk(call_tree(old), call_tree(new), ()))
        if differs or i in moved:
            kind: Kind = "changed" if differs else "reordered"
            change = _change(kind, new, old_places[i], new_places[j], reordered=i in moved, differs=differs)
            found.append(((j, -1), change))
    stood = -1
    for i, call in enumerate(olds):
        stood = after.get(i, stood)
        if i not in after:
            found.append(((stood, i), _change("removed", call, old_places[i], None)))
    lone = set(range(len(news))) - set(after.values())
    found += [((j, -1), _change("added", news[j], None, new_places[j])) for j in lone]
    return [change for _, change in sorted(found, key=lambda item: item[0])]


def _change(
    kind: Kind,
    call: RecordedCall,
    old: Place | None,
    new: Place | None,
    *,
    reordered: bool = False,
    differs: tuple[Difference, ...] = (),
) -> CallChange:
    return CallChange(
        kind=kind, boundary=call.boundary, tool=call.tool, old=old, new=new, reordered=reordered, differs=differs
    )


def _places(calls: Sequence[RecordedCall]) -> list[Place]:
    met: dict[tuple[str, ...], int] = {}
    places: list[Place] = []
    for number, call in enumerate(calls):
        ordinal = met.get(call.path, 0)
        met[call.path] = ordinal + 1
        places.append(Place(number, call.path, ordinal))
    return places


def _moved(olds: Sequence[RecordedCall], news: Sequence[RecordedCall], pairs: _Pairs) -> set[int]:
    """Old numbers of the calls that are not in the longest run of their path that kept its order."""
    by_path: dict[tuple[str, ...], _Pairs] = {}
    for i, j in pairs:
        if olds[i].path == news[j].path:
            by_path.setdefault(olds[i].path, []).append((i, j))
    return {i for run in by_path.values() for i, _ in run} - {i for run in by_path.values() for i in _rising(run)}


def _rising(pairs: _Pairs) -> set[int]:
    """Old numbers of a longest run of pairs whose new numbers rise (patience sorting)."""
    tops: list[int] = []  # the smallest new number in which a run of each length can end
    ends: list[int] = []  # which pair that is
    before: list[int] = []  # the pair before each one in its run
    for number, (_, j) in enumerate(pairs):
        length = bisect_left(tops, j)
        before.append(ends[length - 1] if length else -1)
        tops[length : length + 1] = [j]
        ends[length : length + 1] = [number]
    kept: set[int] = set()
    at = ends[-1] if ends else -1
    while at >= 0:
        kept.add(pairs[at][0])
        at = before[at]
    return kept


# -- where it is not the same ----------------------------------------------------------------------------------------


def _walk(old: Any, new: Any, path: tuple[str | int, ...]) -> Iterator[Difference]:
    if type(old) is dict and type(new) is dict and TAG not in old and TAG not in new:
        yield from _walk_objects(old, new, path)
    elif type(old) is list and type(new) is list:
        yield from _walk_arrays(old, new, path)
    elif _spelled(old) != _spelled(new):
        yield _difference(path, "changed", old=[old], new=[new])


def _walk_objects(old: dict[str, Any], new: dict[str, Any], path: tuple[str | int, ...]) -> Iterator[Difference]:
    if [key for key in old if key in new] != [key for key in new if key in old]:
        yield _difference(path, "reordered", old=[old], new=[new])
    for key in dict.fromkeys((*old, *new)):
        if key not in old:
            yield _difference((*path, key), "added", new=[new[key]])
        elif key not in new:
            yield _difference((*path, key), "removed", old=[old[key]])
        else:
            yield from _walk(old[key], new[key], (*path, key))


def _walk_arrays(old: list[Any], new: list[Any], path: tuple[str | int, ...]) -> Iterator[Difference]:
    """Items by their index; where the lengths differ, what both end in is left out of it first."""
    tail = 0
    if len(old) != len(new):
        shorter = min(len(old), len(new))
        head = next((n for n in range(shorter) if _spelled(old[n]) != _spelled(new[n])), shorter)
        while tail < shorter - head and _spelled(old[-1 - tail]) == _spelled(new[-1 - tail]):
            tail += 1
    nothing = object()
    pairs = zip_longest(old[: len(old) - tail], new[: len(new) - tail], fillvalue=nothing)
    for index, (a, b) in enumerate(pairs):
        if a is nothing:
            yield _difference((*path, index), "added", new=[b])
        elif b is nothing:
            yield _difference((*path, index), "removed", old=[a])
        else:
            yield from _walk(a, b, (*path, index))


def _difference(
    path: tuple[str | int, ...], kind: Kind, *, old: Sequence[Any] = (), new: Sequence[Any] = ()
) -> Difference:
    """``old`` and ``new`` hold one tree, or none: null is a tree too."""
    before, after = ([_spelled(tree) for tree in side] for side in (old, new))
    return Difference(json_path=json_path(path), kind=kind, old=next(iter(before), None), new=next(iter(after), None))


def _spelled(tree: Any) -> bytes:
    return encode_tree(tree, sort=False)
