"""README.md and SECURITY.md are true: every code block runs, every table is complete, every link leads somewhere.

Rule: the blocks of one level-2 section run in order, in one temporary directory and one namespace. By its language a
block is

    python    run; where its first line is `# NAME.py`, written to that file instead
    output    right after a `python` block: exactly what that printed
    console   `$ command` lines, run by bash, each followed by exactly what it prints on either stream; a command must
              exit with 0 (say `; echo "exit $?"` where it does not)
    bash      `pip install` lines, and the commands that CI runs itself, after a line `<!-- ci: NAME -->`: not run
    text      a picture, without anything that could be run

In expected output `...` stands for anything within a line, and alone on a line for any lines. Any other block is an
error.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import NamedTuple

import pytest

import toolcassette as tc
from toolcassette import errors, reasons
from toolcassette.format import state_of

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "SECURITY.md")
CI_BLOCKS = ("demo", "test")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"<!-- ci: (\w+) -->\n\Z")


class Block(NamedTuple):
    """A fenced block. ``line``: 1-based line of its fence; ``mark``: the name in the CI comment before it, or ""."""

    language: str
    text: str
    line: int
    mark: str


class Wrong(Exception):
    """A block that is not true; the text says where and how."""


def sections_of(page: str) -> dict[str, list[Block]]:
    """The blocks of each level-2 section, by its title; those before the first under ""."""
    found: dict[str, list[Block]] = {"": []}
    fences = list(FENCE.finditer(page))
    inside = [range(fence.start(), fence.end()) for fence in fences]
    titles = [(0, "")] + [
        (match.start(), match[1])
        for match in re.finditer(r"^## (.+)$", page, re.MULTILINE)
        if not any(match.start() in span for span in inside)
    ]
    for fence in fences:
        title = [title for at, title in titles if at <= fence.start()][-1]
        mark = MARK.search(page[: fence.start()])
        line = page.count("\n", 0, fence.start()) + 1
        found.setdefault(title, []).append(Block(fence[1], fence[2], line, mark[1] if mark else ""))
    return found


def matches(expected: str, actual: str) -> bool:
    """True if the lines are the same; ``...`` stands for anything in its line, and alone for any lines."""
    patterns = [
        r"([^\n]*\n)*" if line.strip() == "..." else "[^\n]*".join(map(re.escape, line.split("..."))) + r"\n"
        for line in expected.strip().splitlines()
    ]
    return re.fullmatch("".join(patterns), actual.strip() + "\n" if actual.strip() else "") is not None


def same_output(expected: str, actual: str, block: Block) -> None:
    if not matches(expected, actual):
        raise Wrong(f"line {block.line}: expected\n{expected}\ngot\n{actual}")


class Section:
    """Runs the blocks of one section in ``folder``. Each block raises ``Wrong`` if it is not true."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.module = types.ModuleType("readme_example")
        self.printed: str | None = None  # by the last block, if that was Python

    def run(self, blocks: list[Block]) -> None:
        for block in blocks:
            runner = getattr(self, f"_{block.language or 'none'}", None)
            if runner is None:
                raise Wrong(f"line {block.line}: a block of language {block.language!r}")
            printed, self.printed = self.printed, None
            runner(block, printed)
            if self.printed and block is blocks[-1]:
                raise Wrong(f"line {block.line}: prints what no output block expects\n{self.printed}")

    def _python(self, block: Block, printed: str | None) -> None:
        self._nothing_unsaid(block, printed)
        name = re.match(r"# ([\w.]+\.py)\n", block.text)
        if name:
            (self.folder / name[1]).write_text(block.text, "utf-8")
            return
        out = io.StringIO()
        code = compile("\n" * block.line + block.text, "README", "exec", dont_inherit=True)
        try:
            with contextlib.redirect_stdout(out):
                exec(code, self.module.__dict__)
        except Exception as error:
            raise Wrong(f"line {block.line}: {type(error).__name__}: {error}") from error
        self.printed = out.getvalue()

    def _output(self, block: Block, printed: str | None) -> None:
        if printed is None:
            raise Wrong(f"line {block.line}: output of nothing")
        same_output(block.text, printed, block)

    def _console(self, block: Block, printed: str | None) -> None:
        self._nothing_unsaid(block, printed)
        commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
        if commands[0] or len(commands) == 1:
            raise Wrong(f"line {block.line}: a console block begins with a command")
        for command in commands[1:]:
            given, _, expected = re.sub(r"\\\n", "", command).partition("\n")
            done = subprocess.run(
                ["bash", "-c", given],
                cwd=self.folder,
                env=self._environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
                check=False,
            )
            if done.returncode:
                raise Wrong(f"line {block.line}: $ {given}: exit {done.returncode}\n{done.stdout}")
            same_output(expected, done.stdout, block)

    def _environment(self) -> dict[str, str]:
        """This interpreter and this package, whatever is installed and however these tests are run."""
        tools = self.folder.parent / f"{self.folder.name}-bin"
        tools.mkdir(exist_ok=True)
        for name, command in (("python", ""), ("toolcassette", "-m toolcassette")):
            script = tools / name
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n', "utf-8")
            script.chmod(0o755)
        path = f"{tools}{os.pathsep}{os.environ['PATH']}"
        return {
            **{name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
            "PATH": path,
            "PYTHONPATH": str(REPOSITORY / "src"),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "toolcassette.pytest_plugin",
        }

    def _bash(self, block: Block, printed: str | None) -> None:
        self._nothing_unsaid(block, printed)
        lines = block.text.splitlines()
        if block.mark not in CI_BLOCKS and not all(line.startswith("pip install ") for line in lines):
            raise Wrong(f"line {block.line}: a bash block that nobody runs; make it a console block")

    def _text(self, block: Block, printed: str | None) -> None:
        self._nothing_unsaid(block, printed)
        if re.search(r"^(\$ |>>> |import |from \w+ import )", block.text, re.MULTILINE):
            raise Wrong(f"line {block.line}: a text block that could be run")

    def _nothing_unsaid(self, block: Block, printed: str | None) -> None:
        if printed:
            raise Wrong(f"before line {block.line}: prints what no output block expects\n{printed}")


def run_section(blocks: list[Block], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = Section(folder)
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, section.module.__name__, section.module)
    section.run(blocks)


def read(name: str) -> str:
    return (REPOSITORY / name).read_text("utf-8")


WITH_BLOCKS = [(page, title) for page in PAGES for title, blocks in sections_of(read(page)).items() if blocks]


@pytest.mark.parametrize(("page", "title"), WITH_BLOCKS)
def test_the_blocks_of_a_section_run(page: str, title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    run_section(sections_of(read(page))[title], folder, monkeypatch)


def test_the_two_commands_are_where_ci_looks_for_them() -> None:
    marked = [block for blocks in sections_of(read("README.md")).values() for block in blocks if block.mark]
    assert [block.mark for block in marked] == list(CI_BLOCKS)
    assert all(block.language == "bash" and len(block.text.splitlines()) == 1 for block in marked)


# --- tables ---------------------------------------------------------------------------------------------------------


def rows_of(page: str, heading: str) -> list[list[str]]:
    """The rows of the first table after a heading, without its head."""
    after = page.split(f"\n{heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", after, re.MULTILINE)
    assert table, heading
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table[0].splitlines()[2:]]


def codes_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def error_classes() -> list[type[errors.CassetteError]]:
    found = [getattr(errors, name) for name in errors.__all__]
    return [kind for kind in found if inspect.isclass(kind) and issubclass(kind, errors.CassetteError)]


def test_the_table_of_errors_is_complete() -> None:
    shown = {codes_in(row[0])[0]: (codes_in(row[1])[0], row[2]) for row in rows_of(read("README.md"), "### Errors")}
    real = {kind.__name__: (kind.code, str(kind.exit_status)) for kind in error_classes()}
    real["FormatError"] = (tc.FormatError.code, "1 or 2")  # by its reason
    real["SignatureError"] = (tc.SignatureError.code, "1 or 2")  # by its reason
    real["EncryptionError"] = (tc.EncryptionError.code, "1 or 2")  # by its reason
    assert shown == real


@pytest.mark.parametrize(
    ("heading", "wanted"),
    [
        ("### Mismatch reasons", errors.MISMATCH_REASONS),
        ("### Signature reasons", errors.SIGNATURE_REASONS),
        ("### Encryption reasons", errors.ENCRYPTION_REASONS),
        ("### Why nothing was published", reasons.NOT_PUBLISHED_REASONS),
        ("### Why a call has no session", reasons.NO_SESSION_REASONS),
    ],
)
def test_a_table_of_reasons_is_complete(heading: str, wanted: dict[str, str]) -> None:
    assert [codes_in(row[0])[0] for row in rows_of(read("README.md"), heading)] == list(wanted)


def test_every_attack_has_its_tests() -> None:
    rows = rows_of(read("SECURITY.md"), "### Each attack, and the test of it")
    assert len(rows) > 30
    assert [row[0] for row in rows if not codes_in(row[2])] == []
    missing = [name for row in rows for name in codes_in(row[2]) if not is_test(name)]
    assert missing == []


def is_test(name: str) -> bool:
    """Whether ``file::test``, below ``tests``, is a test."""
    file, _, test = name.partition("::")
    path = REPOSITORY / "tests" / file
    return path.exists() and re.search(rf"^(async )?def {test}\(", path.read_text("utf-8"), re.MULTILINE) is not None


def test_the_exit_statuses_of_signature_reasons_are_true() -> None:
    shown = {codes_in(row[0])[0]: int(row[1]) for row in rows_of(read("README.md"), "### Signature reasons")}
    assert shown == {reason: tc.SignatureError(reason).exit_status for reason in errors.SIGNATURE_REASONS}


def test_the_exit_statuses_of_encryption_reasons_are_true() -> None:
    shown = {codes_in(row[0])[0]: int(row[1]) for row in rows_of(read("README.md"), "### Encryption reasons")}
    assert shown == {reason: tc.EncryptionError(reason).exit_status for reason in errors.ENCRYPTION_REASONS}


def test_the_table_of_states_is_complete() -> None:
    shown = {
        reason: (row[0].strip("*"), status)
        for row in rows_of(read("README.md"), "### States and format reasons")
        for status, cell in ((1, row[1]), (2, row[2]))
        for reason in codes_in(cell)
    }
    real = {reason: (state_of(reason), tc.FormatError(reason).exit_status) for reason in errors.FORMAT_REASONS}
    assert shown == real


def test_the_table_of_options_is_complete() -> None:
    shown = {codes_in(row[0])[0]: codes_in(row[1])[0] for row in rows_of(read("README.md"), "### Options")}
    defaults = {name: getattr(tc.Options(), name) for name in tc.Options.__dataclass_fields__}
    real = {name: "FileStore()" if name == "store" else repr(value).strip("'") for name, value in defaults.items()}
    assert shown == real


@pytest.mark.parametrize("name", ["tapedeck", "ai-sdk-cache", "dsh-tool-cassette"])
def test_what_is_said_of_another_package_is_shown_by_a_test(name: str) -> None:
    rows = rows_of(read("README.md"), f"### {name}")
    assert len(rows) >= 15
    for there, here, shown in rows:
        assert there
        assert here
        if shown == "-":
            continue
        file, _, function = shown.strip("`").partition("::")
        source = read(f"tests/{file}")
        assert not function or re.search(rf"^(async )?def {function}\(", source, re.MULTILINE), shown


def test_every_public_name_is_mentioned() -> None:
    page = read("README.md")
    assert [name for name in tc.__all__ if not re.search(rf"\b{name}\b", page)] == []


def test_every_verb_of_the_command_line_is_shown() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "toolcassette", "--help"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    verbs = re.findall(r"^  ([\w-]+)  ", done.stdout.partition("Commands:")[2], re.MULTILINE)
    assert verbs
    assert [codes_in(row[0])[0].split()[0] for row in rows_of(read("README.md"), "## The command line")] == verbs


def test_the_life_of_a_call_names_real_things() -> None:
    text = read("README.md").split("\n## Life of a call\n", 1)[1].split("\n## ", 1)[0]
    names = [name for name in codes_in(text) if re.fullmatch(r"[a-z_]+(\.\w+)+", name) and name.count(".") >= 1]
    assert len(names) >= 20
    for name in names:
        resolve(f"toolcassette.{name}")


def resolve(name: str) -> object:
    """The thing of a dotted name. Raises ``AttributeError`` where there is none."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            thing: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            thing = getattr(thing, part)
        return thing
    raise AttributeError(name)


# --- links ----------------------------------------------------------------------------------------------------------


def broken_links(name: str, page: str, root: Path) -> list[str]:
    """Relative links to no file, and anchors to no heading."""
    prose = FENCE.sub("", page)
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+://", target):
            continue
        file, _, anchor = target.partition("#")
        there = root / (file or name)
        if not there.exists() or (anchor and anchor not in anchors_of(there.read_text("utf-8"))):
            wrong.append(target)
    return wrong


def anchors_of(page: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    assert broken_links(name, read(name), REPOSITORY) == []


# --- all of this can fail -------------------------------------------------------------------------------------------

BROKEN = {
    "```python\n1 / 0\n```\n": "ZeroDivisionError",
    "```python\nprint(1)\n```\n": "prints what no output block expects",
    "```python\nprint(1)\n```\n\n```text\nx\n```\n": "prints what no output block expects",
    "```python\nprint(1)\n```\n\n```output\n2\n```\n": "expected\n2\n",
    "```output\n2\n```\n": "output of nothing",
    "```python\nx = 1\n```\n\n```output\n2\n```\n": "expected\n2\n",
    "```console\n$ echo a\nb\n```\n": "expected\nb\n",
    "```console\n$ echo a\n```\n": "got\na\n",
    "```console\n$ exit 3\n```\n": "exit 3",
    "```console\necho a\n```\n": "begins with a command",
    "```bash\nrm -r x\n```\n": "nobody runs",
    "<!-- ci: other -->\n```bash\nx\n```\n": "nobody runs",
    "```text\n$ echo a\n```\n": "could be run",
    "```\nx\n```\n": "a block of language",
    "```ruby\nx\n```\n": "a block of language",
    "```python\nx = 1\n```\n\n## Next\n\n```python\nx\n```\n": "NameError",
}


@pytest.mark.parametrize(("page", "wanted"), BROKEN.items(), ids=range(len(BROKEN)))
def test_a_broken_block_is_found(page: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Wrong, match=re.escape(wanted)):
        for number, blocks in enumerate(sections_of(page).values()):
            folder = tmp_path / str(number)
            folder.mkdir()
            run_section(blocks, folder, monkeypatch)


def test_true_blocks_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (
        "```python\n# a.py\nprint('file', 5)\n```\n```python\nx = 'one'\n```\n```python\nprint(x, 2)\n```\n"
        "\n```output\none ...\n```\n```console\n$ python \\\n  a.py; echo $((1 + 1))\nfi...5\n2\n$ true\n```\n"
        "<!-- ci: demo -->\n```bash\nrun this\n```\n```bash\npip install x\n```\n```text\na -> b\n```\n"
    )
    run_section(sections_of(page)[""], tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("a...d", "abcd", True),
        ("a...", "a\nb", False),
        ("a\n...", "a\nb\nc", True),
        ("a\n...\nd", "a\nd", True),
        ("a\n...\nd", "a\nb\nc\nx", False),
        ("", "", True),
        ("", "a", False),
        ("a", "", False),
        ("a.c", "abc", False),
    ],
)
def test_what_three_dots_stand_for(expected: str, actual: str, same: bool) -> None:
    assert matches(expected, actual) is same


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "A.md").write_text("# One, two\n", "utf-8")
    page = "[a](A.md) [b](A.md#one-two) [c](https://example.org/x) [d](A.md#three) [e](B.md) `[f]`"
    assert broken_links("A.md", page, tmp_path) == ["A.md#three", "B.md"]


def test_a_name_that_is_gone_is_found() -> None:
    assert resolve("toolcassette.session.record") is tc.record
    for name in ("toolcassette.session.gone", "toolcassette.gone.record"):
        with pytest.raises(AttributeError):
            resolve(name)
