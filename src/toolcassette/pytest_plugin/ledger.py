"""What a run did with its cassettes, and which cassettes belong to no test.

Theory. Every process of a run keeps one ledger; the workers of pytest-xdist hand theirs to the controller as plain
data, and only there it is judged. A cassette is unused if no collected test owns it and none opened it. That can be
said only of places whose tests were all collected: a folder that was named whole, in a run that left no test out. One
worker that did not report, one test deselected, and nothing is judged. A module that could not be imported keeps its
folder.

Rule: nothing is ever deleted here. Paths are told as seen from the root folder of the run.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolcassette.pytest_plugin.naming import SUFFIX, safe_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

__all__ = ["Ledger", "module_folder", "orphans", "shown_path", "unused_cassettes"]

_COUNTS = ("tests", "replayed", "recorded", "unchanged")


@dataclasses.dataclass
class Ledger:
    """What is known of the cassettes of a run.

    ``owned``: absolute paths of cassettes that belong to a collected test or were opened; ``blind``: folders of modules
    that could not be collected; ``counts`` of tests, calls replayed, calls recorded, cassettes unchanged; ``notes``:
    lines worth a look; ``moved``: an orphan, and where its test looks for it; ``partly``: tests were left out.
    """

    owned: set[str] = dataclasses.field(default_factory=set[str])
    blind: set[str] = dataclasses.field(default_factory=set[str])
    counts: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(_COUNTS, 0))
    notes: list[str] = dataclasses.field(default_factory=list[str])
    moved: list[tuple[str, str]] = dataclasses.field(default_factory=list[tuple[str, str]])
    partly: bool = False

    def count(self, what: str, by: int = 1) -> None:
        """Add to one of the counts."""
        self.counts[what] += by

    def as_data(self) -> dict[str, Any]:
        """The ledger as what pytest-xdist can carry."""
        return {
            "owned": sorted(self.owned),
            "blind": sorted(self.blind),
            "counts": self.counts,
            "notes": self.notes,
            "moved": [list(pair) for pair in self.moved],
            "partly": self.partly,
        }

    def merge(self, data: dict[str, Any]) -> None:
        """Add what a worker handed over with ``as_data``."""
        self.owned.update(data["owned"])
        self.blind.update(data["blind"])
        for what, number in data["counts"].items():
            self.counts[what] += number
        self.notes += [note for note in data["notes"] if note not in self.notes]
        self.moved += [(old, new) for old, new in data["moved"] if (old, new) not in self.moved]
        self.partly |= data["partly"]


def shown_path(path: str | os.PathLike[str], config: pytest.Config) -> str:
    """A path as it may be printed: seen from the root folder; of one outside of it, its name alone."""
    try:
        return Path(path).relative_to(config.rootpath).as_posix()
    except ValueError:
        return Path(path).name


def module_folder(module: Path, folder: str) -> Path:
    """Where the cassettes of a test module lie."""
    return module.parent / folder / safe_name(module.stem)


def unused_cassettes(config: pytest.Config, folder: str, ledger: Ledger) -> list[Path]:
    """The cassettes that belong to no test, sorted; empty for a run that may have left tests out."""
    if ledger.partly or any(getattr(config.option, name, None) for name in ("maxfail", "ignore", "ignore_glob")):
        return []
    return orphans(config, folder, ledger)


def orphans(config: pytest.Config, folder: str, ledger: Ledger) -> list[Path]:
    """The cassettes that no collected test owns, sorted, where all tests were collected (selected to run or not)."""
    if any(getattr(config.option, name, None) for name in ("lf", "stepwise")) or any("::" in a for a in config.args):
        return []
    found: set[Path] = set()
    for argument in config.args:
        place = Path(os.path.abspath(config.invocation_params.dir / argument))  # noqa: PTH100 - links stay as they are
        places = (
            _folders_named(place, folder, config.getini("norecursedirs"))
            if place.is_dir()
            else [module_folder(place, folder)]
        )
        for cassettes in places:
            found.update(cassettes.rglob(f"*{SUFFIX}"))
    return sorted(
        path for path in found if path.is_file() and str(path) not in ledger.owned and not _inside(path, ledger.blind)
    )


def _inside(path: Path, folders: set[str]) -> bool:
    return any(str(parent) in folders for parent in path.parents)


def _folders_named(top: Path, folder: str, left_out: list[str]) -> Iterator[Path]:
    """Folders called ``folder`` in and below ``top``, where pytest looks for tests."""
    for here, below, files in os.walk(top):
        if "pyvenv.cfg" in files:
            below.clear()
            continue
        if (place := Path(here) / folder).is_dir():
            yield place
        below[:] = [
            name
            for name in below
            if name != "__pycache__" and not any(fnmatch.fnmatch(name, pattern) for pattern in left_out)
        ]
