"""Which files of a folder are cassettes.

Rule: paths stay as they were given; links to folders are not followed, and what cannot be looked into is named, so that
a wrong path is never a good one.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["cassette_files"]

_CASSETTE: Final = re.compile(r"\.cassette\.jsonl(\.partial.*)?\Z", re.DOTALL)


def cassette_files(folder: str) -> Iterator[tuple[str, bool]]:
    """Cassettes and partials below a folder, sorted; and, marked True, the folders that cannot be looked into."""
    closed: list[str] = []

    def refused(error: OSError) -> None:
        closed.append(error.filename)

    for place, folders, names in os.walk(folder, onerror=refused):
        folders.sort()
        yield from (
            (os.path.join(place, name), False)  # noqa: PTH118 - a path stays as it was given
            for name in sorted(names)
            if _CASSETTE.search(name)
        )
    yield from ((name, True) for name in closed)
