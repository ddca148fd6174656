"""What must hold on a disk after a cut, whatever it left: nothing promised is lost, and a cassette is whole.

``faults_of`` gives what does not hold, as lines; an empty list is a pass. It also recovers each state, twice, and cuts
the power again at every operation of that recovery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import toolcassette as tc
from tests.durability.disk import Disk, cut_anywhere
from tests.durability.programs import FILE, PARTIAL, PATH

if TYPE_CHECKING:
    from tests.durability.disk import Left


class Rule(NamedTuple):
    """What a scenario was. ``frames``: all that were written; ``old``: the cassette that it replaces."""

    frames: tuple[bytes, ...]
    old: bytes | None = None
    split_renames: bool = True
    placeholder: bool = False  # the name is kept by an empty file for a moment
    same: bool = False  # the old one says the same, and may answer for the new one

    @property
    def whole(self) -> bytes:
        return b"".join(self.frames)


def found_on(left: Left, rule: Rule, frames: int, *, published: bool) -> list[str]:
    """What is wrong with one state."""
    formal, partial = left.read(FILE), left.read(PARTIAL)
    wrong = []
    empty = rule.placeholder and formal == b"" and partial == rule.whole
    if formal is not None and formal not in {rule.whole, rule.old} and not empty:
        wrong.append("the formal file is there and not whole")
    if rule.old is not None and formal is None:
        wrong.append("the old cassette is gone")
    promised = b"".join(rule.frames[:frames])
    if rule.same and formal == rule.old:
        return wrong
    if promised and not any(data is not None and data.startswith(promised) for data in (formal, partial)):
        wrong.append("an acknowledged frame is lost")
    if published and formal != rule.whole:
        wrong.append("published, and not there")
    return wrong


def recovered(disk: Disk) -> str:
    """What ``recover`` says of a disk."""
    try:
        found = tc.recover(f"{PATH}.partial", store=tc.FileStore(disk))
    except tc.CassetteExists as error:
        return f"refused {error.what}"
    except tc.FormatError as error:
        return f"refused {error.reason}"
    return f"{found.found} {found.done}"


def ways_on(rule: Rule, left: Left) -> set[str]:
    """What ``recover`` may say of a state, by what is plain to see on it."""
    formal, partial = left.read(FILE), left.read(PARTIAL)
    if partial is None:
        return {"refused absent"} if formal is None else {"cassette nothing"}
    if partial != rule.whole:
        return {"unfinished nothing"}
    if formal is None:
        return {"finished published"}
    if left.names[FILE] == left.names[PARTIAL]:
        return {"linked tidied"}
    return {"refused cassette"} if formal else {"placeholder published"}


def after_recovery(left: Left, rule: Rule, frames: int, ops: type[Disk], *, published: bool) -> list[str]:
    """What is wrong when a state is recovered: once, twice, and with another cut in the middle."""
    disk = ops(left)
    said = recovered(disk)
    wrong = [] if said in ways_on(rule, left) else [f"recover said {said}"]
    wrong += [f"recovered: {fault}" for fault in found_on(disk.left(), rule, frames, published=published)]
    if said.endswith(("published", "tidied")):
        wrong += [] if disk.left().read(FILE) == rule.whole else ["recover said it is whole, and it is not"]
        wrong += [] if disk.left().read(PARTIAL) is None else ["recover left the partial"]
        for again, *_ in cut_anywhere(disk, split_renames=rule.split_renames):
            wrong += [f"cut while recovering: {fault}" for fault in found_on(again, rule, frames, published=published)]
    before = disk.left()
    second = recovered(Disk(before))
    once_done = {"finished published", "linked tidied", "placeholder published"}
    if second != ("cassette nothing" if said in once_done else said):
        wrong.append(f"recover said {said}, and the second time {second}")
    return wrong


def faults_of(disk: Disk, rule: Rule, *, ops: type[Disk] = Disk, stop: bool = False) -> tuple[int, set[str]]:
    """How many states there were, and what was wrong with any. ``stop``: at the first that is wrong."""
    count, wrong = 0, set[str]()
    for left, frames, published in cut_anywhere(disk, split_renames=rule.split_renames):
        count += 1
        wrong |= set(found_on(left, rule, frames, published=published))
        if not wrong:
            wrong |= set(after_recovery(left, rule, frames, ops, published=published))
        if wrong and stop:
            break
    return count, wrong
