r"""Directories that differ from machine to machine, in every spelling in which a path turns up.

Theory. One directory is written in three ways: native (``/home/me/x``, ``C:\Users\me\x``), escaped (``C:\\Users\\me``,
as in JSON or a repr), and as a file URI (``file:///C:/Users/me``). After it comes the rest of a path, whose separators
are those of the machine. A pattern takes all of them; group 1 is the directory, group 2 the rest.

Rule: a match ends where a name ends: ``/home/me`` is no part of ``/home/meredith``.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["directory_pattern", "special_directories"]

_REST: Final = r"((?:(?:\\\\|[\\/])[^\\/\s\"'<>|:*?,;)\]}]*)*)"
_END: Final = r"(?![A-Za-z0-9_.-])"
_NEVER: Final = re.compile(r"(?!)()()")


def special_directories(word: str) -> list[PurePath]:
    """The directory that a word means on this machine, as named and as resolved."""
    if word == "cwd":
        return [Path.cwd()]
    if word == "home":
        return [Path.home(), Path.home().resolve()]
    return [*map(Path, {tempfile.gettempdir(), os.path.realpath(tempfile.gettempdir())})]


def directory_pattern(paths: Iterable[PurePath]) -> re.Pattern[str]:
    """A pattern for some directories in every spelling; of two the longer one wins."""
    spelled = {form for path in paths for form in _forms(path)}
    if not spelled:
        return _NEVER
    either = "|".join(re.escape(form) for form in sorted(spelled, key=lambda form: (-len(form), form)))
    return re.compile(f"({either}){_END}{_REST}")


def _forms(path: PurePath) -> set[str]:
    text = str(path)
    if len(path.parts) < 2:  # the root: everything lies below it
        return set()
    forms = {text, text.replace("\\", "\\\\")}
    kinds: list[type[PurePath]] = [PureWindowsPath] if "\\" in text or text[1:2] == ":" else [PurePosixPath]
    for kind in kinds:
        slashed = kind(text).as_posix()
        lead = "/" if kind is PureWindowsPath else ""
        forms |= {slashed, lead + slashed, lead + quote(slashed, safe="/:")}
    return forms
