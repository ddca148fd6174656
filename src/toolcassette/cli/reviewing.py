"""Verbs for those who review cassettes: ``diff`` and ``view``.

Rule: all inputs are judged, also after a bad one; of their exit statuses 2 beats 1 beats 0, and a difference is a 1.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from toolcassette.cli.differing import FORMS, Compared, as_json, named
from toolcassette.cli.inputs import STDIN, Input, expand
from toolcassette.cli.outlet import complain, say, say_json, shown
from toolcassette.cli.repository import CASSETTE_NAME, blob_at, names_at, revision
from toolcassette.compare import diff
from toolcassette.crypto import opening_with
from toolcassette.errors import EncryptionError, FormatError, printable
from toolcassette.format import LINE_BYTES_CEILING, parse_cassette, state_of
from toolcassette.stores import FileStore
from toolcassette.verify import read_cassette
from toolcassette.view import view

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolcassette.format import Cassette

__all__ = ["diff_verb", "view_verb"]


_Side: TypeAlias = "Input | bytes | None"  # a file, the content of one, or no cassette

# -- diff ------------------------------------------------------------------------------------------------------------


@click.command("diff", short_help="show which calls of two cassettes differ")
@click.argument("paths", metavar="A B | --base REV [PATH]...", nargs=-1)
@click.option("--base", metavar="REV", help="compare files of the work tree with those of this git revision")
@click.option("--show-values", is_flag=True, help="show arguments and results too: they may be secret")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", help="how to say it")
def diff_verb(paths: tuple[str, ...], base: str | None, show_values: bool, form: str) -> int:
    """Show which calls of two cassettes differ, and at which JSON paths; exit status 1 if any does

    Calls are added, removed, changed or reordered; ids and times do not count. A and B are files, or - for stdin. With
    --base a PATH is a file or a folder (default: the one you are in), and each cassette in it is compared with what
    REV has under its name. Values are shown only with --show-values.
    """
    if base is None and len(paths) != 2:
        raise click.UsageError("give two files, or --base REV")
    if base is not None and STDIN in paths:
        raise click.UsageError("stdin has no name that a revision could have")
    found = _Comparison()
    if base is None:
        found.compare(named(*paths), *(_input(path) for path in paths))
    else:
        for path in paths or (".",):
            _compare_with_base(found, base, path)
    if form == "json":
        say_json(as_json(found.compared, show_values))
    else:
        for line in FORMS[form](found.compared, show_values):
            say(line)
    return found.status


class _Comparison:
    """What was compared so far, and the exit status that it comes to."""

    def __init__(self) -> None:
        self.compared: list[Compared] = []
        self.status = 0

    def compare(self, name: str, old: _Side, new: _Side) -> None:
        """Compare one pair; a side that is no whole cassette is told and judged."""
        sides: list[Cassette | None] = []
        for side in (old, new):
            try:
                sides.append(_cassette(side))
            except (FormatError, EncryptionError) as error:
                where = shown(side.path) if isinstance(side, Input) else name
                complain(f"{where}: {_state(error)}: {error}")
                self.fail(error.exit_status)
        if len(sides) == 2:
            self.compared.append(Compared(name, diff(*sides)))
            self.fail(0 if self.compared[-1].diff.same else 1)

    def fail(self, status: int) -> None:
        """2 beats 1 beats 0."""
        self.status = max(self.status, status)


def _cassette(side: _Side) -> Cassette | None:
    """One side, each frame of it proven. Raises ``FormatError``, ``EncryptionError``."""
    if side is None:
        return None
    if isinstance(side, bytes):
        cassette = parse_cassette(side, line_bytes_max=LINE_BYTES_CEILING, opens=opening_with())
    else:
        cassette = read_cassette(side.path, store=side.store)
    cassette.content()  # values are judged when they are decoded: now, while it is known whose they are
    return cassette


def _input(path: str) -> Input:
    """One file: a folder is refused when it is read."""
    return next(expand([path])) if path == STDIN else Input(path, FileStore())


def _compare_with_base(found: _Comparison, base: str, path: str) -> None:
    """A file or folder of the work tree against a revision."""
    is_folder = os.path.isdir(path)  # noqa: PTH112 - a path stays as it was given
    folder = path if is_folder else _existing(os.path.dirname(path))  # noqa: PTH120
    commit = revision(base, folder)
    names = _names(commit, path) if is_folder else [path]
    for name in names:
        old = blob_at(commit, name)
        new = _input(name) if os.path.lexists(name) else None
        if old is None and new is None:
            complain(f"{shown(name)}: neither here nor in {shown(base)}")
            found.fail(2)
        else:
            found.compare(shown(name), old, new)


def _existing(folder: str) -> str:
    """The nearest folder above that there is: a removed cassette may have taken its own along."""
    while folder and not os.path.isdir(folder):  # noqa: PTH112
        folder = os.path.dirname(folder)  # noqa: PTH120
    return folder


def _names(commit: str, folder: str) -> list[str]:
    """The cassettes below a folder, now or then, by name."""
    here = (item.path for item in expand([folder]) if not item.folder and CASSETTE_NAME.search(item.path))
    then = (os.path.join(folder, *name.split("/")) for name in names_at(commit, folder))  # noqa: PTH118
    return sorted({*here, *then})


# -- view ------------------------------------------------------------------------------------------------------------


@click.command("view", short_help="show the calls of a cassette as a text to review")
@click.argument("file", metavar="FILE")
@click.option("--check", "kept", metavar="KEPT", help="say whether the file KEPT is the view of the cassette")
@click.option("--textconv", is_flag=True, help="for git: exit status 0 also for a file that is no whole cassette")
def view_verb(file: str, kept: str | None, textconv: bool) -> int:
    """Show the calls of a cassette as a text to review: tool, path, arguments, outcome, one scalar a line

    The text is Markdown and shows values. It has no ids, times and hashes, so that it changes only where calls do. With
    --check nothing is shown but whether KEPT is this text: exit status 1 if it is not.
    """
    item = _input(file)
    try:
        text = view(read_cassette(item.path, store=item.store))
    except (FormatError, EncryptionError) as error:
        if textconv and _state(error) not in ("absent", "unreadable"):
            _say_lines(_as_it_is(item, error))
            return 0
        complain(f"{shown(file)}: {_state(error)}: {error}")
        return error.exit_status
    if kept is not None:
        return _check(file, kept, text)
    _say_lines(text.removesuffix("\n").split("\n"))
    return 0


def _say_lines(lines: Sequence[str] | Iterator[str]) -> None:
    """The text as a file has it: UTF-8 with LF whatever the system would take, unless a person looks on."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    for line in lines:
        say(line)


def _state(error: FormatError | EncryptionError) -> str:
    """What a file is that cannot be shown, in a word."""
    return "encrypted" if isinstance(error, EncryptionError) else state_of(error.reason)


def _as_it_is(item: Input, error: FormatError | EncryptionError) -> Iterator[str]:
    """For git, which shows no diff at all where this fails: what is wrong, and the lines escaped."""
    what = "not shown" if isinstance(error, EncryptionError) else "not a whole cassette"
    yield f"{what}: {_state(error)}: {error}"
    yield ""
    with item.store.open(item.path) as source:
        data = b"".join(source.blocks())
    for line in data.split(b"\n"):
        yield printable(line.decode("utf-8", "backslashreplace"), LINE_BYTES_CEILING)


def _check(file: str, kept: str, text: str) -> int:
    try:
        with Path(kept).open("rb") as stream:
            present = stream.read()
    except (OSError, ValueError):
        complain(f"{shown(kept)}: could not read it; make it with toolcassette view {shown(file)}")
        return 2
    wanted = text.encode("utf-8")
    if present.replace(b"\r\n", b"\n") == wanted:  # git may check a text out with CRLF; a view has no CR of its own
        say(f"{shown(kept)}: is the view of {shown(file)}")
        return 0
    ours, theirs = wanted.split(b"\n"), present.replace(b"\r\n", b"\n").split(b"\n")
    line = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    where = f"line {line + 1} differs; make it again with toolcassette view"
    say(f"{shown(kept)}: is not the view of {shown(file)}: {where}")
    return 1
