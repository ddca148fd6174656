"""What the command line says, and where: results to stdout, talk to stderr.

Rule: every text that reaches a terminal goes through ``printable``, or through JSON that is ASCII only. Voice: no
capital, no period; what happened, where, what to do next. No colour, so that there is none to turn off.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import click

from toolcassette.errors import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

__all__ = [
    "complain",
    "counted",
    "finish",
    "in_flags",
    "mute",
    "progressing",
    "ready_streams",
    "say",
    "say_json",
    "shown",
    "table",
]

_LINE_CHARS_MAX: Final = 65_536  # a list of unconsumed calls is long; a line longer than this helps nobody
_PATH_CHARS_MAX: Final = 4096  # what systems allow
_PROGRESS_AFTER_SECONDS: Final = 1.0  # what ends sooner needs no line

# Errors give their advice in the words of Python; here the same option has a flag.
_FLAGS: Final = (
    ("replace=True", "--replace"),
    ("stale='set-aside'", "--set-aside"),
    ("allow_empty=True", "--allow-empty"),
    ("publish_on_error=True", "--publish-on-error"),
    ("allow_unconsumed=True", "--allow-unconsumed"),
    ("strict_include=False", "--no-strict-include"),
    ("on_secret='warn'", "--on-secret warn"),
    ("salvage='NEW FILE'", "--salvage NEW_FILE"),
    ("--key, trusted_keys= or TOOL", "--key or TOOL"),
)


def say(line: str = "") -> None:
    """Print one line of the result. It must be safe to show; only its length is not looked at."""
    with _writing():
        sys.stdout.write(line + "\n")


def say_json(value: object) -> None:
    """Print one JSON document as the result: ASCII only, also without the one control that JSON leaves raw."""
    say(json.dumps(value, indent=2).replace("\x7f", "\\u007f"))


def finish() -> None:
    """Hand on all that was said: only then has it gone out."""
    with _writing():
        sys.stdout.flush()


@contextmanager
def _writing() -> Generator[None]:
    """Around writing the result. ``BrokenPipeError`` goes on, any other failure is a ``click.ClickException``."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        mute(sys.stdout)
        name = errno.errorcode.get(error.errno or 0, "unknown error")
        raise click.ClickException(f"could not write the result: {name}") from None


def complain(text: str) -> None:
    """Print one line of talk to stderr, escaped."""
    sys.stderr.write(f"toolcassette: {printable(text, _LINE_CHARS_MAX)}\n")


@contextmanager
def progressing(what: str) -> Generator[Callable[[int, int], None] | None]:
    """Around long work: what to tell how much of how much is done. One line on a terminal, from the second second on.

    None where stderr is no terminal; then nothing is said.
    """
    if not sys.stderr.isatty():
        yield None
        return
    began = time.monotonic()
    width = 0

    def tell(done: int, size: int) -> None:
        nonlocal width
        if time.monotonic() - began >= _PROGRESS_AFTER_SECONDS:
            line = f"{what}: {min(done, size) * 100 // max(size, 1)}% of {size // 2**20} MiB"
            sys.stderr.write("\r" + line.ljust(width))
            sys.stderr.flush()
            width = max(width, len(line))

    try:
        yield tell
    finally:
        if width:
            sys.stderr.write("\r" + " " * width + "\r")
            sys.stderr.flush()


def shown(path: str) -> str:
    """A path as it was given, safe to print."""
    return printable(path, _PATH_CHARS_MAX)


def in_flags(text: str) -> str:
    """The text of an error, with options named as the command line names them."""
    for python, flag in _FLAGS:
        text = text.replace(python, flag)
    return text


def counted(number: int, noun: str) -> str:
    """``1 call``, ``2 calls``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a plain table, columns padded to their widest cell. Cells must be safe to show."""
    cells = [tuple(titles), *(tuple(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(titles))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def ready_streams() -> None:
    """Let a terminal of a smaller alphabet show escapes where it has no letter; live without a closed stream."""
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def mute(*streams: TextIO) -> None:
    """Let what is still buffered go nowhere: the interpreter flushes at exit, and would fail a second time."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in streams:
            with suppress(OSError, ValueError):
                os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
