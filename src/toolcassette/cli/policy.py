"""Whom a revision trusts: the keys in pytest's configuration at the top of the repository, as they stood there.

Rule: nothing of the work tree is looked at, nor of the index: a change that empties the keys, or puts others in their
place, is judged by the keys from before it. Files that the configuration names are read from the same revision.
"""

from __future__ import annotations

import configparser
import os
import tomllib
from typing import TYPE_CHECKING, Any, Final

import click

from toolcassette.cli.outlet import shown
from toolcassette.cli.repository import blob_at, revision, top_of
from toolcassette.crypto import Trust, VerifierKey, keys_in, looks_like_key, required_number
from toolcassette.errors import SignatureError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["policy_at"]

# As pytest looks for them: (file, where in it)
_FILES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("pytest.toml", ("pytest",)),
    (".pytest.toml", ("pytest",)),
    ("pytest.ini", ("pytest",)),
    (".pytest.ini", ("pytest",)),
    ("pyproject.toml", ("tool", "pytest")),
    ("pyproject.toml", ("tool", "pytest", "ini_options")),
    ("tox.ini", ("pytest",)),
    ("setup.cfg", ("tool:pytest",)),
)
_KEYS: Final = "toolcassette_trusted_keys"
_REQUIRED: Final = "toolcassette_require_signature"


def policy_at(name: str) -> Trust:
    """What the first file of a revision says that says something.

    Raises ``click.ClickException`` for an unknown revision or a file that cannot be read, ``SignatureError``
    ``key_missing`` where no key is trusted there.
    """
    top = top_of("")
    commit = revision(name, top)
    for file, place in _FILES:
        data = blob_at(commit, os.path.join(top, file))  # noqa: PTH118 - text, for git
        found = {} if data is None else _section(data, file, place)
        if _KEYS in found or _REQUIRED in found:
            return _trust(found, file, commit, top)
    raise SignatureError("key_missing")


def _section(data: bytes, file: str, place: tuple[str, ...]) -> dict[str, Any]:
    try:
        text = data.decode("utf-8")
        if file.endswith(".toml"):
            found: Any = tomllib.loads(text)
            for word in place:
                found = found.get(word, {})
            return dict(found)
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_string(text)
        return dict(parser[place[0]]) if parser.has_section(place[0]) else {}
    except (
        ValueError,
        AttributeError,
        configparser.Error,
    ):  # a UnicodeDecodeError and a TOMLDecodeError are ValueErrors
        raise click.ClickException(f"could not read {file} of that revision") from None


def _trust(found: dict[str, Any], file: str, commit: str, top: str) -> Trust:
    entries, required = found.get(_KEYS, ()), found.get(_REQUIRED, "")
    words = entries.split("\n") if isinstance(entries, str) else [str(entry) for entry in entries]
    try:
        number = required_number(str(required))
    except ValueError as error:
        raise click.ClickException(f"{file} of that revision: {_REQUIRED}: {error}") from None
    keys = tuple(key for entry in words if entry.strip() for key in _keys(entry.strip(), commit, top))
    if not keys:
        raise SignatureError("key_missing")
    return Trust(keys=keys, required=number > 0, threshold=max(number, 1))


def _keys(entry: str, commit: str, top: str) -> Iterator[VerifierKey]:
    if looks_like_key(entry):
        yield VerifierKey.parse(entry)
        return
    data = blob_at(commit, os.path.join(top, entry))  # noqa: PTH118 - text, for git
    if data is None:
        raise click.ClickException(f"{shown(entry)}, which should hold keys, is not in that revision")
    yield from keys_in(data)
