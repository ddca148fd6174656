"""The verb ``lock``, and what ``verify --locked`` makes of a lock.

Rule: the lock is that of the folder one is in. It is written whole or not at all, and only if every cassette is whole.
"""

# A path stays as it was given; pathlib would normalise it.
# ruff: noqa: PTH105, PTH108
from __future__ import annotations

import dataclasses
import errno
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from toolcassette.cli.inputs import STDIN, expand
from toolcassette.cli.locked import below, read_lock
from toolcassette.cli.looking import headline
from toolcassette.cli.outlet import complain, counted, progressing, say
from toolcassette.crypto import Trust
from toolcassette.errors import SignatureError, printable
from toolcassette.lock import LOCK_NAME, Entry, entry_of, lock_bytes, parse_lock
from toolcassette.stores import PARTIAL_SUFFIX
from toolcassette.verify import verify_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["lock_verb"]

_SUFFIX: Final = ".cassette.jsonl"
_HEAD_CHARS: Final = 8  # enough to compare by eye


@click.command("lock", short_help="write down which cassettes are meant")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
def lock_verb(paths: tuple[str, ...]) -> int:
    """Write cassettes.lock, in the folder you are in: path, id, head and frames of each cassette

    A PATH is a file or a folder (default: the one you are in), and the lock names what they hold and nothing else. Each
    must be whole. Commit the lock and review its changes; toolcassette verify --locked then finds a cassette that is
    not the one that is meant, also an older one. Where a merge left conflicts in it, this makes it anew.
    """
    if STDIN in paths:
        raise click.UsageError("lock works on files, not on stdin")
    files = [(item.path, item.store) for item in expand(paths or (".",)) if not _is_partial(item.path)]
    with progressing("locking") as progress:
        reports = verify_all(files, deep=True, progress=progress, trust=Trust())
    bad = [report for report in reports if report.state != "complete"]
    for report in bad:
        complain(headline(report))
    if bad:
        complain(f"{LOCK_NAME} was not written")
        return max(report.exit_status for report in bad)
    entries = [entry_of(below(report.path), dataclasses.replace(report, reason=None)) for report in reports]
    old = _old()
    _write(lock_bytes(dict.fromkeys(entries)))
    for line in _changes(old, {entry.path: entry for entry in entries}):
        say(line)
    complain(f"locked {counted(len(set(entries)), 'cassette')} in {LOCK_NAME}")
    return 0


def _is_partial(path: str) -> bool:
    """True for what a folder has beside its cassettes: recordings that are not published."""
    return f"{_SUFFIX}{PARTIAL_SUFFIX}" in path


def _old() -> Mapping[str, Entry]:
    """What the lock said so far; nothing where it cannot be read."""
    try:
        return parse_lock(read_lock())
    except SignatureError:
        return {}


def _write(data: bytes) -> None:
    fresh = f"{LOCK_NAME}.{secrets.token_hex(4)}"
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, LOCK_NAME)
    except OSError as error:
        with suppress(OSError):
            os.unlink(fresh)
        why = errno.errorcode.get(error.errno or 0, "unknown error")
        raise click.ClickException(f"could not write {LOCK_NAME}: {why}") from None


def _changes(old: Mapping[str, Entry], new: Mapping[str, Entry]) -> Iterator[str]:
    for path in sorted({*old, *new}):
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        heads = " -> ".join(entry.head[:_HEAD_CHARS] for entry in (before, after) if entry is not None)
        kind = "changed" if before and after else "added" if after else "gone"
        yield f"{kind}: {printable(path)} (head {heads})"
