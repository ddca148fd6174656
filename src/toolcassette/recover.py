"""What a crash left behind, told apart and brought to an end: ``recover``.

Theory. A recording ends in these steps: ``complete`` is on disk; the formal name is given to the same file; the name of
the partial is taken away. A crash can come between any two of them, so there are few states, and each has one way on:

    partial              formal name          found        done
    ------------------   ------------------   ----------   ------------------------------------------------
    written right now    (any)                             refused: CassetteExists("live_partial")
    not whole            (any)                unfinished   nothing: it is evidence; salvage keeps its calls
    whole                free                 finished     published, create-only
    whole                the same file        linked       the partial's name is taken away ("tidied")
    whole                an empty file        placeholder  put in its place, where the file is still empty
    whole                another file                      refused: CassetteExists("cassette")
    whole, set aside     (any)                set-aside    nothing: which name it belongs under is not ours to guess
    none                 whole                cassette     nothing
    none                 not whole            damaged      nothing: salvage keeps its calls
    none                 free                              refused: FormatError("absent")

Every step is the one that the recorder itself would have taken, so a crash in the middle leaves one of these states
again, and doing it twice is doing it once.

Rule: nothing is overwritten and no frame is ever deleted. What is salvaged goes to a new file that says what it is.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
from typing import TYPE_CHECKING, Final

from toolcassette._version import __version__
from toolcassette.engine import planted_secrets
from toolcassette.errors import CassetteExists, FormatError
from toolcassette.format import LINE_BYTES_CEILING, Reader, lines_of, salvage
from toolcassette.redaction import Rules
from toolcassette.stores import PARTIAL_SUFFIX, FileStore

if TYPE_CHECKING:
    from toolcassette.format import Finding
    from toolcassette.stores import Source, Spool, Store

__all__ = ["Recovery", "recover"]

# what was found -> in words, and what to do next where nothing was done
_FOUND: Final = {
    "cassette": ("a whole cassette", "nothing to do"),
    "finished": ("a whole recording that was not published", "publish it: recover, without a salvage"),
    "linked": ("a published cassette and its partial, one file under two names", ""),
    "placeholder": ("a whole recording beside the empty file that kept its name", ""),
    "set-aside": ("a whole recording that was set aside", "give it back the name of its partial, then recover that"),
    "unfinished": ("a recording that was never finished", "delete it, or keep its ended calls: salvage='NEW FILE'"),
    "damaged": ("a file that is no whole cassette", "restore it, or keep its ended calls: salvage='NEW FILE'"),
}
_DONE: Final = {
    "published": "published",
    "tidied": "the partial is removed, the cassette stays",
    "salvaged": "its ended calls are in a new cassette, which says where they come from",
}
_WAY_ON: Final = {"finished": "published", "linked": "tidied", "placeholder": "published"}
_WHOLE: Final = frozenset({"cassette", *_WAY_ON, "set-aside"})
_SECRETS_NOTE: Final = "secrets stand in what was salvaged: look at them with toolcassette scan, and record again"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recovery:
    """What ``recover`` found, and what it did.

    ``found``: cassette, finished, linked, placeholder, set-aside, unfinished or damaged. ``done``: nothing, published,
    tidied or salvaged. Where the file is not whole, ``reason``, ``frame`` (0-based) and ``offset`` (bytes) say why, as
    in ``Report``. ``frames`` of it are intact from the start; of the calls that begin in them, ``calls`` have their end
    and ``lost`` have not. ``into`` is the new cassette of a salvage. ``path`` is the name as it was given. ``notes``
    say what the place could not promise.
    """

    path: str
    found: str
    done: str = "nothing"
    reason: str | None = None
    frame: int | None = None
    offset: int | None = None
    frames: int = 0
    calls: int = 0
    lost: int = 0
    into: str | None = None
    notes: tuple[str, ...] = ()
    asked: str = "recover"  # or salvage: what a whole cassette is not there for

    @property
    def ok(self) -> bool:
        """True if a whole cassette stands now where one was asked for."""
        return self.done != "nothing" or (self.found == "cassette" and self.asked == "recover")

    @property
    def exit_status(self) -> int:
        """0 if ok, 2 if the file could not be judged, else 1."""
        if self.ok:
            return 0
        return 1 if self.reason is None else FormatError(self.reason).exit_status

    @property
    def message(self) -> str:
        """What was found and done, and what to do next."""
        what, advice = _FOUND[self.found]
        words = [what]
        if self.reason is not None:
            why = str(FormatError(self.reason, frame=self.frame)).partition(";")[0]
            words.append(f"{why}; frames intact: {self.frames}, calls ended: {self.calls}, calls lost: {self.lost}")
        if self.done != "nothing":
            words.append(_DONE[self.done])
        elif self.asked == "salvage":
            words.append("nothing to salvage: it is whole" if self.found in _WHOLE else "nothing to salvage")
        else:
            words.append(advice)
        return "; ".join(words)


def recover(
    file: str | os.PathLike[str], *, salvage: str | os.PathLike[str] | None = None, store: Store | None = None
) -> Recovery:
    """Finish what a crash interrupted: publish a whole partial, or tidy up after one. Doing it again does nothing.

    ``file`` is a partial, or the cassette that it belongs to. With ``salvage``, the calls that ended in the intact
    beginning of ``file`` (a partial, one that was set aside, or a damaged cassette) are written to that new file, whose
    header says ``from``; ``file`` itself stays as it is. Calls without an end, and all after the first bad frame, are
    lost: a replay that makes them is a mismatch.

    Raises ``FormatError`` where there is nothing to read or not even a header; ``CassetteExists`` (nothing was touched)
    for a partial that is being written and for a name that is taken by another file; ``StoreError``; ``ValueError`` for
    an unusable name.
    """
    place = store or FileStore()
    path = os.fspath(file)
    if salvage is not None:
        return _salvage(place, path, os.fspath(salvage))
    if _is_set_aside(place, path):
        with place.open(path) as source:
            return _judged(path, source, whole="set-aside", else_="unfinished")
    name = path.removesuffix(PARTIAL_SUFFIX)
    try:
        spool = place.adopt(name)
    except FormatError as error:
        if error.reason != "absent":
            raise
    else:
        try:
            return _finished(place, path, spool)
        finally:
            spool.keep()
    with place.open(name) as source:
        return _judged(path, source, whole="cassette", else_="damaged")


def _is_set_aside(store: Store, path: str) -> bool:
    if path.endswith(PARTIAL_SUFFIX):
        return False
    try:
        with store.open(path) as source:
            return source.partial
    except FormatError:
        return False


def _judged(path: str, source: Source, *, whole: str, else_: str) -> Recovery:
    """What a file is that nothing is done to."""
    # Deep: what is published here must be as good as what any reader will ever ask of it.
    reader = Reader(deep=True, line_bytes_max=LINE_BYTES_CEILING).feed_all(source.blocks())
    finding, seen = reader.finish(), reader.grammar
    found = Recovery(
        path=path,
        found=whole if finding is None else else_,
        frames=seen.frames,
        calls=seen.calls - seen.open_calls,
        lost=seen.open_calls,
    )
    return _with_fault(found, finding)


def _with_fault(found: Recovery, finding: Finding | None) -> Recovery:
    if finding is None:
        return found
    return dataclasses.replace(found, reason=finding.reason, frame=finding.frame, offset=finding.offset)


def _finished(store: Store, path: str, spool: Spool) -> Recovery:
    """The partial that ``spool`` holds: publish it if it is whole. ``CassetteExists`` if another file has its name."""
    size = _size(store, spool.name)
    with store.open(spool.name + PARTIAL_SUFFIX) as source:
        found = _judged(path, source, whole="finished", else_="unfinished")
    if found.found == "unfinished":
        return found
    if size == 0:  # the swap looks again, and refuses if somebody has written to it meanwhile
        spool.swap()
    else:
        spool.publish()  # sees by itself that the name is one of the very same file
    state = "finished" if size is None else "linked" if size else "placeholder"
    return dataclasses.replace(found, found=state, done=_WAY_ON[state], notes=tuple(spool.notes))


def _size(store: Store, name: str) -> int | None:
    """Bytes of what stands under the formal name; None where it is free, or nothing that can be read."""
    try:
        with store.open(name) as source:
            return source.size
    except FormatError:
        return None


def _salvage(store: Store, path: str, into: str) -> Recovery:
    with store.open(path) as source:
        if source.live:
            raise CassetteExists("live_partial")
        partial, data = source.partial, b"".join(source.blocks())
    identity = secrets.token_hex(16)
    left = salvage(data, cassette=identity, producer=f"toolcassette {__version__}")
    broken, whole = ("unfinished", "finished") if partial else ("damaged", "cassette")
    found = Recovery(
        path=path,
        found=whole if left.finding is None else broken,
        frames=left.frames,
        calls=left.kept,
        lost=left.lost,
        asked="salvage",
    )
    found = _with_fault(found, left.finding)
    if left.data is None:
        return found
    spool = store.create(into, cassette_id=identity)
    try:
        spool.append(left.data)
        spool.publish()
    finally:
        spool.keep()
    # A recorder takes out at its end what it learned to be a secret; this one had no end.
    secrets_left = planted_secrets(lines_of([left.data]), Rules())
    notes = (*spool.notes, *([_SECRETS_NOTE] if secrets_left else []))
    return dataclasses.replace(found, done="salvaged", into=into, notes=notes)
