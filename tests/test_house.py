"""The house stands: floors, doors, sizes, docstrings, names, words. And every rule is shown to be able to fail."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import house

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY = Path(__file__).resolve().parent.parent
SRC = REPOSITORY / "src"
MADE = {"PKG-INFO", "__pycache__", "build", "dist", "htmlcov"}  # made by tools
WRITTEN_DOT_FOLDERS = {".ci", ".github"}

SOURCE_CHECKS = (
    house.check_floors,
    house.check_front_doors,
    house.check_third_party,
    house.check_pure,
    house.check_prints,
    house.check_cycles,
    house.check_sizes,
    house.check_docstrings,
)


def read_sources(src: Path) -> house.Sources:
    """``{module name: source}`` of every Python file below ``src``."""
    sources = {}
    for file in sorted(src.rglob("*.py")):
        parts = file.relative_to(src).with_suffix("").parts
        sources[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file.read_text("utf-8")
    return sources


def written_files(folder: Path) -> Iterator[Path]:
    """Every file that people write: no caches, no environments, no builds."""
    for entry in sorted(folder.iterdir()):
        if not entry.is_dir():
            yield entry
        elif entry.name in WRITTEN_DOT_FOLDERS or not (
            entry.name.startswith(".") or entry.name in MADE or entry.name.endswith(".egg-info")
        ):
            yield from written_files(entry)


def loaded_by(statement: str, names: tuple[str, ...]) -> list[str]:
    """Which of ``names`` are loaded in a fresh interpreter after ``statement``."""
    program = f"import sys\n{statement}\nprint(*(n for n in {names!r} if n in sys.modules))"
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def report(findings: list[str]) -> None:
    """Fail with all findings, one a line."""
    assert not findings, "\n" + "\n".join(findings)


# The real house


@pytest.mark.parametrize("check", SOURCE_CHECKS)
def test_sources(check: Callable[[house.Sources], list[str]]) -> None:
    sources = read_sources(SRC)
    assert house.ROOT in sources
    report(check(sources))


def test_every_table_row_is_about_something_real() -> None:
    top = {entry.stem for entry in (SRC / house.ROOT).iterdir()}
    assert set(house.PURE_EXCEPTIONS) <= set(read_sources(SRC))
    assert {"errors", "format", "stores", "contracts", "engine", "tools", "session", "verify", "cli"} <= top


def test_public_names_are_frozen() -> None:
    frozen = (REPOSITORY / "tests" / "public_names.txt").read_text("utf-8").split()
    report(house.check_names(frozen, importlib.import_module(house.ROOT).__all__))


def test_every_public_name_resolves() -> None:
    sources = read_sources(SRC)
    doors = {m for m in sources if house.exported(sources, m) is not None}
    assert {house.ROOT, f"{house.ROOT}.errors", f"{house.ROOT}.format", f"{house.ROOT}.stores"} <= doors
    missing = [
        f"{door}.{name}"
        for door in sorted(doors)
        for name in house.exported(sources, door) or ()
        if not hasattr(importlib.import_module(door), name)
    ]
    report(missing)


@pytest.mark.parametrize("use", ["", f"{house.ROOT}.record", f"{house.ROOT}.verify"])
def test_importing_and_using_the_facade_loads_nothing_heavy(use: str) -> None:
    report(loaded_by(f"import {house.ROOT}\n{use}", house.NOT_AT_IMPORT))


def test_words_in_the_repository() -> None:
    texts = {
        file.relative_to(REPOSITORY).as_posix(): file.read_bytes().decode("utf-8", "replace")
        for file in written_files(REPOSITORY)
    }
    assert "pyproject.toml" in texts
    report(house.check_words(texts))


def test_top_level_of_the_repository() -> None:
    report(house.check_top_level({entry.name for entry in REPOSITORY.iterdir()} - MADE))


# Every rule can fail

GOOD = {
    "toolcassette": '"""D."""\nfrom toolcassette.format import link\n__all__ = ["link"]\n',
    "toolcassette.errors": '"""D."""\n',
    "toolcassette.format": '"""D."""\nfrom toolcassette.format.chain import link\n__all__ = ["link"]\n',
    "toolcassette.format.chain": (
        '"""D."""\nimport msgspec\nfrom toolcassette.errors import E\ndef link():\n    """D."""\n'
    ),
    "toolcassette.cli": '"""D."""\nimport click\nimport toolcassette\nprint()\n',
}
TYPING_ONLY = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    "
BAD: list[tuple[Callable[[house.Sources], list[str]], dict[str, str], str]] = [
    (house.check_floors, {"errors": "import toolcassette.format"}, "not a lower floor"),
    (house.check_floors, {"errors": "from toolcassette import format"}, "not a lower floor"),
    (house.check_floors, {"errors": "def f():\n    import toolcassette.cli"}, "not a lower floor"),
    (house.check_floors, {"errors": TYPING_ONLY + "import toolcassette.cli"}, "not a lower floor"),
    (house.check_floors, {"stores": "from toolcassette.format import link"}, "not a lower floor"),
    (house.check_floors, {"session": "from toolcassette import link"}, "may not import toolcassette:"),
    (house.check_floors, {"format.writer": "from .chain import link"}, "relative import"),
    (house.check_floors, {"attic": ""}, "no floor in the table"),
    (house.check_floors, {"cli": "import toolcassette.attic"}, "no floor in the table"),
    (
        house.check_floors,
        {"adapters": "", "adapters.a": "", "adapters.b": "from toolcassette.adapters import a"},
        "imports another",
    ),
    (house.check_front_doors, {"engine": "from toolcassette.format.chain import link"}, "behind the front door"),
    (house.check_front_doors, {"engine": "from toolcassette.format import chain"}, "behind the front door"),
    (
        house.check_front_doors,
        {"engine": TYPING_ONLY + "from toolcassette.format.chain import link"},
        "behind the front",
    ),
    (house.check_front_doors, {"engine": "from toolcassette.format import _secret"}, "is private"),
    (house.check_third_party, {"engine": "import requests"}, "requests has no door"),
    (house.check_third_party, {"engine": "from cryptography.hazmat import x"}, "cryptography is imported outside"),
    (house.check_third_party, {"engine.aiox": "import anyio"}, "anyio is imported outside"),
    (
        house.check_third_party,
        {"contracts.a": "import pydantic", "contracts.b": "import pydantic"},
        "more than one module",
    ),
    (house.check_pure, {"format.chain": "import os.path"}, "os is imported"),
    (house.check_pure, {"format.chain": "from pathlib import Path"}, "pathlib is imported"),
    (house.check_pure, {"format.chain": "open('x')"}, "open() is called"),
    (house.check_prints, {"engine": "print('x')"}, "print() outside cli"),
    (
        house.check_cycles,
        {"format.a": "from toolcassette.format import b", "format.b": "import toolcassette.format.a"},
        "a",
    ),
    (house.check_cycles, {"format.chain": "from toolcassette.format import link"}, "toolcassette.format ->"),
    (house.check_sizes, {"engine": "\n" * 401}, "401 lines, 400 allowed"),
    (house.check_sizes, {"adapters.mcp": "\n" * 251}, "251 lines, 250 allowed"),
    (house.check_sizes, {"engine": "def f():\n" + "    x = 1\n" * 50}, "f has 51 lines"),
    (house.check_docstrings, {"engine": "x = 1"}, "no module docstring"),
    (house.check_docstrings, {"format.chain": '"""D."""\ndef link(): ...'}, "public link has no docstring"),
    (
        house.check_docstrings,
        {"tools": '"""D."""\n__all__: list[str] = ["T"]\nclass T: ...'},
        "public T has no docstring",
    ),
]


@pytest.mark.parametrize("check", SOURCE_CHECKS)
def test_a_good_tree_passes(check: Callable[[house.Sources], list[str]]) -> None:
    assert check(GOOD) == []


@pytest.mark.parametrize(("check", "change", "wanted"), BAD)
def test_a_bad_tree_fails(
    check: Callable[[house.Sources], list[str]], change: dict[str, str], wanted: str, tmp_path: Path
) -> None:
    sources = GOOD | {f"{house.ROOT}.{module}": source for module, source in change.items()}
    for module, source in sources.items():
        package = any(other.startswith(module + ".") for other in sources)
        file = (
            tmp_path.joinpath(*module.split(".")) / "__init__.py"
            if package
            else tmp_path / f"{module.replace('.', '/')}.py"
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source, "utf-8")
    assert read_sources(tmp_path) == sources
    found = check(sources)
    assert found
    assert any(wanted in line for line in found), found


def test_limits_are_inclusive() -> None:
    at_limit = "\n" * 400
    function = 'def f():\n    """A\n    long\n    docstring."""\n' + "    x = 1\n" * 49
    assert house.check_sizes({"toolcassette.engine": at_limit, "toolcassette.tools": function}) == []


@pytest.mark.parametrize("word", house.FORBIDDEN)
def test_each_forbidden_word_is_found(word: str) -> None:
    assert house.check_words({"a.py": f"fine\n# {word} x"}) == [f"a.py:2: forbidden word {word}"]
    assert house.check_words({"a.py": "fine"}) == []


def test_forbidden_words_are_whole_words() -> None:
    assert house.check_words({"a.py": "\n".join(f"a{word}b" for word in house.FORBIDDEN if word.isalpha())}) == []


def test_top_level_finds_a_stray_file() -> None:
    assert house.check_top_level({"src", ".git", "notes.txt"}) == ["notes.txt does not belong at the top level"]


@pytest.mark.parametrize(
    ("frozen", "actual", "wanted"),
    [
        (["a", "b"], ["a"], "b is in the frozen list but not public"),
        (["a"], ["a", "b"], "b is public but not in the frozen list"),
        (["b", "a"], ["a", "b"], "the frozen list is not sorted, or names something twice"),
        (["a"], ["a", "a"], "__all__ names something twice"),
    ],
)
def test_a_changed_promise_is_found(frozen: list[str], actual: list[str], wanted: str) -> None:
    assert house.check_names(frozen, actual) == [wanted]


def test_a_heavy_import_is_found() -> None:
    assert loaded_by("import asyncio", ("asyncio", "click")) == ["asyncio"]


def test_written_files_skips_only_what_tools_make(tmp_path: Path) -> None:
    for name in (".ci/run", ".venv/x", "src/a.py", "src/__pycache__/a.pyc", "a.egg-info/x", "dist/x", ".gitignore"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [f.relative_to(tmp_path).as_posix() for f in written_files(tmp_path)] == [
        ".ci/run",
        ".gitignore",
        "src/a.py",
    ]
