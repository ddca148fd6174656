"""From the PATHs of a command line to cassettes: files, folders, stdin and lists.

Rule: paths stay as they were given; a folder stands for the cassettes and partials below it, links to folders are not
followed, and a folder that holds none, or cannot be read, stays in the list to be judged, so that a wrong path is never
a good one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from toolcassette.cli.outlet import shown
from toolcassette.errors import FormatError
from toolcassette.folders import cassette_files
from toolcassette.stores import FileStore, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolcassette.stores import Source, Store

__all__ = ["STDIN", "Input", "expand", "listed"]

STDIN: Final = "-"


class _Folder(FileStore):
    """Where a folder without cassettes is looked for: it is no file, however it is named (``.``, ``here/``)."""

    def open(self, name: str) -> Source:
        try:
            os.scandir(name).close()
        except OSError:
            raise FormatError("unreadable") from None
        raise FormatError("not_a_file")


class Input(NamedTuple):
    """One thing to judge: its path as given, the store that has it. ``folder``: it is a folder without cassettes."""

    path: str
    store: Store
    folder: bool = False


def expand(paths: Sequence[str]) -> Iterator[Input]:
    """What the PATHs stand for, in their order; the files of a folder sorted by name."""
    files = FileStore()
    piped: MemoryStore | None = None
    for path in paths:
        if path == STDIN:
            piped = piped or _piped()
            yield Input(STDIN, piped)
        elif os.path.isdir(path):  # noqa: PTH112 - a path stays as it was given
            below = list(cassette_files(path))
            for name, is_folder in below or [(path, True)]:
                yield Input(name, _Folder() if is_folder else files, is_folder)
        else:
            yield Input(path, files)


def listed(source: str) -> list[str]:
    """The paths in the file ``source`` (``-``: stdin), one a line; empty lines do not count.

    Raises ``click.ClickException`` where it cannot be read or names nothing.
    """
    try:
        data = _read_stdin() if source == STDIN else Path(source).read_bytes()
    except (OSError, ValueError) as error:
        raise click.ClickException(f"could not read the list {shown(source)}: {_why(error)}") from None
    found = [os.fsdecode(line) for line in data.replace(b"\r\n", b"\n").split(b"\n") if line]
    if not found:
        raise click.ClickException(f"the list {shown(source)} names no file")
    return found


def _why(error: Exception) -> str:
    return os.strerror(error.errno).lower() if isinstance(error, OSError) and error.errno else "no such name"


def _piped() -> MemoryStore:
    store = MemoryStore()
    spool = store.create(STDIN, cassette_id="0" * 32)
    spool.append(_read_stdin())
    spool.publish()
    return store


def _read_stdin() -> bytes:
    """All there is; nothing where the process was started without a stdin."""
    return sys.stdin.buffer.read() if sys.stdin is not None else b""
