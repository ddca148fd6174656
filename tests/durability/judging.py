"""What a dead program left, held against what it had been promised. Also where the power was cut under it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import toolcassette as tc

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = ".cassette.jsonl"


def promises(acks: str) -> dict[str, tuple[int, bool]]:
    """``recording -> frames, published``, from what the dead wrote down. Its last line may be cut."""
    found: dict[str, tuple[int, bool]] = {}
    for line in acks.splitlines(keepends=True):
        if line.endswith("\n"):
            name, what = line.split()
            frames, _ = found.get(name, (0, False))
            found[name] = (frames, True) if what == "published" else (max(frames, int(what)), False)
    return found


def faults_of(folder: Path, acks: str) -> tuple[int, set[str], list[str]]:
    """Look at one dead program's folder, and recover it, twice.

    Returns its acknowledged frames, what recover found, and what is wrong: nothing, or the lines of a bad report.
    """
    promised = promises(acks)
    names = {path.name.partition(".")[0] for path in folder.glob("r*")} | set(promised)
    found: set[str] = set()
    wrong: list[str] = []
    for name in sorted(names):
        frames, published = promised.get(name, (0, False))
        formal, partial = folder / f"{name}{SUFFIX}", folder / f"{name}{SUFFIX}.partial"
        wrong += [f"{name}: {fault}" for fault in _faults(formal, partial, frames, published=published)]
        if formal.exists() or partial.exists():
            found.add(recover_twice(partial, formal, wrong))
            wrong += [f"{name} recovered: {fault}" for fault in _faults(formal, partial, frames, published=published)]
    return sum(frames for frames, _ in promised.values()), found, wrong


def _faults(formal: Path, partial: Path, frames: int, *, published: bool) -> list[str]:
    wrong = []
    if formal.exists() and not tc.verify(formal, deep=True).ok:
        wrong.append("the formal file is there and not whole")
    if published and not formal.exists():
        wrong.append("published, and not there")
    kept = max(tc.verify(formal).frames, tc.verify(partial).frames)
    if kept < frames:
        wrong.append(f"{frames} frames acknowledged, {kept} there")
    return wrong


def recover_twice(partial: Path, formal: Path, wrong: list[str]) -> str:
    """What recover found. The second time it finds what the first made of it, and does nothing."""
    first, second = tc.recover(partial), tc.recover(partial)
    if second.done != "nothing" or second.found != ("cassette" if first.ok else first.found):
        wrong.append(f"recover found {first.found}, did {first.done}; then found {second.found}, did {second.done}")
    if formal.exists() is (first.found == "unfinished"):
        wrong.append(f"recover found {first.found}, and the formal file is {'' if formal.exists() else 'not '}there")
    return first.found
