"""``cassettes.lock``: which cassettes a tree holds, by their heads; small enough to be reviewed line by line.

    {"format":"toolcassette-lock/1"}
    {"path":"tests/cassettes/a.cassette.jsonl","cassette":"<32 hex>","head":"<64 hex>","frames":4}

One line a cassette, sorted by path, so that two branches that touch different cassettes merge by themselves. A
signature tells who made a cassette, and an older one of theirs is as good as the newest; the lock tells which is meant.

Rule: the lock is configuration and trusted as far as it was reviewed. It is made anew from what stands there, never
edited; its paths are compared with the paths that were asked for, and lie below its own folder.
"""

from __future__ import annotations

import json
import posixpath
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolcassette.errors import SignatureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolcassette.verify import Report

__all__ = ["LOCK_NAME", "Entry", "entry_of", "lock_bytes", "parse_lock", "reason_of"]

LOCK_NAME: Final = "cassettes.lock"
_FORMAT: Final = {"format": "toolcassette-lock/1"}
_CONFLICT: Final = re.compile(rb"^(<<<<<<<|=======|>>>>>>>|\|\|\|\|\|\|\|)", re.MULTILINE)
_CASSETTE: Final = re.compile(r"[0-9a-f]{32}\Z")
_HEAD: Final = re.compile(r"[0-9a-f]{64}\Z")


class Entry(NamedTuple):
    """One cassette: its path below the lock's folder (slashes), its id, its last hash, its frames."""

    path: str
    cassette: str
    head: str
    frames: int


def entry_of(path: str, report: Report) -> Entry:
    """The entry of a whole cassette under a path. Raises ``ValueError`` for one that is not whole."""
    if not report.ok or report.cassette is None or report.head is None:
        raise ValueError("only a whole cassette can be locked")
    return Entry(path, report.cassette, report.head, report.frames)


def reason_of(entry: Entry | None, report: Report) -> str | None:
    """What a lock says of a whole cassette: None where it is the one that is meant, else a reason."""
    if entry is None:
        return "not_locked"
    same = (entry.cassette, entry.head, entry.frames) == (report.cassette, report.head, report.frames)
    return None if same else "lock_differs"


def lock_bytes(entries: Iterable[Entry]) -> bytes:
    """The content of a lock: ASCII, one LF after each line."""
    lines = [_FORMAT, *(entry._asdict() for entry in sorted(entries))]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode("ascii")


def parse_lock(data: bytes) -> Mapping[str, Entry]:
    """The entries of a lock, by path. Raises ``SignatureError``: ``lock_conflict``, or ``lock_junk``.

    Line endings do not count: a lock is text, and git may change them.
    """
    if _CONFLICT.search(data):
        raise SignatureError("lock_conflict")
    found: dict[str, Entry] = {}
    try:
        first, *rest = (json.loads(line) for line in data.splitlines())
        if first != _FORMAT:
            raise ValueError
        entries = [_entry(line) for line in rest]
    except (ValueError, TypeError, RecursionError):
        raise SignatureError("lock_junk") from None
    for entry in entries:
        if entry.path in found:  # merged without a word: which of the two is meant, nobody said
            raise SignatureError("lock_conflict")
        found[entry.path] = entry
    return found


def _entry(line: Any) -> Entry:
    """Raises ``TypeError`` or ``ValueError``."""
    entry = Entry(**line)
    path = entry.path
    inside = path == posixpath.normpath(path) and not path.startswith(("/", "../")) and path not in {".", ".."}
    hashes = _CASSETTE.match(entry.cassette) and _HEAD.match(entry.head)
    if not (inside and "\0" not in path and hashes and type(entry.frames) is int):
        raise ValueError
    return entry
