"""``cassettes.lock`` of the folder one is in: reading it, and holding what is judged against it.

Rule: what the lock says comes last: it speaks of cassettes that are as they should be otherwise.
"""

# A path stays as it was given; pathlib would normalise it.
# ruff: noqa: PTH112, PTH117
from __future__ import annotations

import dataclasses
import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import click

from toolcassette.cli.inputs import STDIN
from toolcassette.cli.outlet import shown
from toolcassette.errors import SignatureError
from toolcassette.lock import LOCK_NAME, parse_lock, reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcassette.verify import Report

__all__ = ["Locked", "below", "read_lock"]

_LOCK_BYTES_MAX: Final = 64 * 1024 * 1024


def below(path: str) -> str:
    """A path as the lock has it. Raises ``click.ClickException`` for one outside of the folder."""
    relative = PurePath(os.path.relpath(path)).as_posix()
    if relative == ".." or relative.startswith("../") or os.path.isabs(relative):
        raise click.ClickException(f"{shown(path)} is not below this folder; go to the one that the lock is for")
    return relative


def read_lock() -> bytes:
    """The lock's content. Raises ``SignatureError`` ``lock_missing``, ``lock_junk``."""
    try:
        with open(LOCK_NAME, "rb") as file:  # noqa: PTH123 - in the folder we are in
            data = file.read(_LOCK_BYTES_MAX + 1)
    except OSError:
        raise SignatureError("lock_missing") from None
    if len(data) > _LOCK_BYTES_MAX:
        raise SignatureError("lock_junk")
    return data


class Locked:
    """The lock of this folder, held against what is judged. Raises ``SignatureError`` where there is none."""

    def __init__(self) -> None:
        self._entries = parse_lock(read_lock())

    def missing(self, paths: Sequence[str], judged: Sequence[str]) -> list[str]:
        """Locked cassettes that the PATHs stand for, and that are not there to be judged."""
        present = {PurePath(os.path.relpath(path)).as_posix() for path in judged}
        folders = [PurePath(os.path.relpath(path)) for path in paths if path != STDIN and os.path.isdir(path)]
        return [
            path
            for path in self._entries
            if path not in present and any(PurePath(path).is_relative_to(folder) for folder in folders)
        ]

    def judged(self, report: Report) -> Report:
        """The report, with what the lock says of a cassette that is as it should be otherwise."""
        if not report.ok:
            return report
        relative = PurePath(os.path.relpath(report.path)).as_posix()
        reason = reason_of(self._entries.get(relative), report)
        return report if reason is None else dataclasses.replace(report, reason=reason, signed=False, signers=())
