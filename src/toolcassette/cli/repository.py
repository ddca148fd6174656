"""The verb ``git install``, and the one place that asks git: for the files of a revision, and for its settings.

Rule: git is asked through its plumbing, with names that cannot be taken for options. What a file has already is not
written again, and nothing that stands in it is changed: lines are appended.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import click

from toolcassette.cli.outlet import complain, say, shown

__all__ = ["CASSETTE_NAME", "blob_at", "git_group", "names_at", "revision", "top_of"]

CASSETTE_NAME: Final = re.compile(r"\.cassette\.jsonl\Z")
ATTRIBUTES: Final = "*.cassette.jsonl -text -ident -merge diff=toolcassette linguist-generated"
SIGNATURES: Final = "*.cassette.jsonl.sig -text -merge"
PARTIALS: Final = "*.cassette.jsonl.partial*"
CASSETTES: Final = "*.cassette.jsonl"
TEXTCONV: Final = ("diff.toolcassette.textconv", "toolcassette view --textconv")

# What the line of ATTRIBUTES must come to, in the words of `git check-attr`.
_WANTED: Final = {"text": "unset", "ident": "unset", "merge": "unset", "diff": "toolcassette"}
_PROBE: Final = "probe.cassette.jsonl"


def _git(folder: str, *args: str) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder. Raises ``click.ClickException`` where there is no git, or no such folder."""
    try:
        return subprocess.run(  # noqa: S603 - no shell, and no name that could pass for an option
            ["git", *args],  # noqa: S607 - the user's own git
            cwd=folder or ".",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError:
        raise click.ClickException("could not run git; install it, or give two files to compare") from None


def _asked(folder: str, *args: str, otherwise: str) -> bytes:
    """What git answered. Raises ``click.ClickException`` with our own words: its own hold absolute paths."""
    done = _git(folder, *args)
    if done.returncode:
        raise click.ClickException(otherwise)
    return done.stdout


# -- files of a revision ---------------------------------------------------------------------------------------------


def revision(name: str, folder: str) -> str:
    """The id of the commit that ``name`` stands for, in the repository of a folder. Raises ``click.ClickException``."""
    unknown = f"no revision {shown(name)} here; in a shallow clone, fetch it first"
    if name.startswith("-"):
        raise click.UsageError("a revision does not begin with a dash")
    found = _asked(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", otherwise=unknown)
    return found.decode("ascii").strip()


def top_of(folder: str) -> str:
    """The top of the work tree that a folder is in. Raises ``click.ClickException`` where there is none."""
    outside = "not in the work tree of a git repository"
    top = os.fsdecode(_asked(folder, "rev-parse", "--show-toplevel", otherwise=outside).removesuffix(b"\n"))
    if not top:
        raise click.ClickException(outside)
    return top


def names_at(commit: str, folder: str) -> list[str]:
    """The cassettes below a folder in a commit, relative to the folder."""
    failed = f"could not list {shown(folder)} in the repository"
    listed = _asked(folder, "ls-tree", "-r", "-z", "--name-only", commit, "--", ".", otherwise=failed)
    return [name for name in map(os.fsdecode, listed.split(b"\0")) if CASSETTE_NAME.search(name)]


def blob_at(commit: str, path: str) -> bytes | None:
    """The content of a file in a commit, as it is stored; None where it is not in it. The file need not exist now."""
    folder, rest = os.path.split(path)
    while folder and not os.path.isdir(folder):  # noqa: PTH112 - a path stays as it was given
        folder, last = os.path.split(folder)
        rest = f"{last}/{rest}"
    done = _git(folder, "cat-file", "blob", f"{commit}:./{rest}")
    return None if done.returncode else done.stdout


# -- git install -----------------------------------------------------------------------------------------------------


@click.group("git", no_args_is_help=False, short_help="teach git what a cassette is")
def git_group() -> None:
    """Teach git what a cassette is"""


@git_group.command("install", short_help="set this repository up for cassettes")
@click.option("--private", is_flag=True, help="keep cassettes out of the repository: they go into .gitignore too")
def install_verb(private: bool) -> int:
    """Set the repository that you are in up for cassettes

    Adds one line to .gitattributes (no line ending is changed, no merge mixes two recordings, a diff shows calls), and
    partials to .gitignore; both are to be committed. Has this clone show a cassette as `toolcassette view` does in a
    diff. What is there already stays.
    """
    top = top_of("")
    _add_lines(top, ".gitattributes", [ATTRIBUTES, SIGNATURES])
    _add_lines(top, ".gitignore", [PARTIALS, CASSETTES] if private else [PARTIALS])
    _configure(top)
    return _overruled(top)


def _add_lines(top: str, name: str, lines: list[str]) -> None:
    """Append the lines that a file does not have, in its own line ending; say for each what became of it."""
    path = Path(top, name)
    if path.is_symlink():  # git does not follow it either, and it may lead anywhere
        raise click.ClickException(f"{name} is a symbolic link, which git does not read; make it a file")
    try:
        old = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise click.ClickException(f"could not read {name}: {_why(error)}") from None
    present = {line.strip() for line in old.splitlines()}
    missing = [line for line in lines if line.encode() not in present]
    if missing:
        end = b"\r\n" if b"\r\n" in old else b"\n"
        start = end if old and not old.endswith(b"\n") else b""
        try:
            with path.open("ab") as file:
                file.write(start + b"".join(line.encode() + end for line in missing))
        except OSError as error:
            raise click.ClickException(f"could not write {name}: {_why(error)}") from None
    for line in lines:
        say(f"{name}: {'added' if line in missing else 'has'} {line}")


def _why(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else "unknown error"


def _configure(top: str) -> None:
    key, wanted = TEXTCONV
    present = _git(top, "config", "--get", key).stdout.decode("utf-8", "replace").strip()
    if present != wanted:
        _asked(top, "config", key, wanted, otherwise=f"could not set {key} in the repository's configuration")
    say(f"git config: {'has' if present == wanted else 'set'} {key} = {wanted}")


def _overruled(top: str) -> int:
    """1 where something else in the repository's attributes overrules the line, else 0."""
    asked = _asked(top, "check-attr", "-z", *_WANTED, "--", _PROBE, otherwise="could not read the attributes back")
    parts = asked.decode("utf-8", "replace").split("\0")
    seen = dict(zip(parts[1::3], parts[2::3], strict=False))
    wrong = sorted(name for name, value in _WANTED.items() if seen.get(name) != value)
    for name in wrong:
        complain(
            f"the attribute {name} is set otherwise for cassettes; look into .gitattributes and .git/info/attributes"
        )
    return 1 if wrong else 0
