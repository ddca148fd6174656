"""What is in a folder of cassettes, as data: ``list_cassettes``.

Rule: every cassette and partial is judged, and nothing is said of the calls of one that is not whole.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from toolcassette.errors import EncryptionError, FormatError
from toolcassette.folders import cassette_files
from toolcassette.verify import inspect, verify

if TYPE_CHECKING:
    from toolcassette.stores import Store
    from toolcassette.verify import Report

__all__ = ["Listed", "list_cassettes", "listed"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Listed:
    """One cassette or partial of a folder.

    ``report`` is what ``verify`` says of it. Of a whole cassette, else None: ``kind`` (``tools``, ``models``, ``both``
    or ``empty``; ``encrypted`` where no key is here to tell), the names of its ``tools`` and ``models``, and
    ``created`` (RFC 3339, UTC).
    """

    report: Report
    kind: str | None = None
    tools: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    created: str | None = None


def list_cassettes(folder: str | os.PathLike[str] = ".") -> tuple[Listed, ...]:
    """The cassettes and partials below a folder, sorted by path.

    A folder that is absent or cannot be read is in the list itself, as ``absent`` or ``unreadable``.
    """
    name = os.fspath(folder)
    return tuple(listed(path) for path, _ in cassette_files(name))


def listed(path: str, *, store: Store | None = None) -> Listed:
    """What one file is. Never raises on a bad one."""
    report = verify(path, store=store)
    if not report.ok:
        return Listed(report=report)
    try:
        found = inspect(path, store=store)
    except (FormatError, EncryptionError):  # it changed since it was judged; or its hashes were made anew
        return Listed(report=report)
    if found.locked is not None:
        return Listed(report=report, kind="encrypted", created=found.created)
    tools = tuple(summary.tool for summary in found.tools if summary.boundary == "tool")
    models = tuple(summary.tool for summary in found.tools if summary.boundary == "model")
    kind = "both" if tools and models else "tools" if tools else "models" if models else "empty"
    return Listed(report=report, kind=kind, tools=tools, models=models, created=found.created)
