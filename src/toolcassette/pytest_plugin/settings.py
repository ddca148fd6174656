"""What was asked for: command line, markers, environment and configuration file, each validated where it is read.

Rule: the command line beats a marker, a marker the environment, that the configuration file. A mode that records is
never taken from the surroundings in CI: there it must be on the command line.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "MARKER",
    "MARKER_HELP",
    "MODES",
    "UNUSED",
    "Settings",
    "Wish",
    "add_options",
    "checked_options",
    "config_of",
    "options_of",
    "settings_of",
    "wish_of",
]

MARKER: Final = "toolcassette"
MODES: Final = ("replay", "record", "rewrite", "live")
UNUSED: Final = ("ignore", "warn", "fail")
MISSING_KEY: Final = ("skip", "fail")
MARKER_HELP: Final = (
    "toolcassette(name=None, *, mode=None, include=None, order=None, allow_unconsumed=False, ...): record the tool "
    "calls of this test into a cassette, or replay them from it; the options are those of toolcassette.Options"
)

_RECORDING: Final = frozenset({"record", "rewrite"})
_MODE_VARIABLE: Final = "TOOLCASSETTE_MODE"
_RULES: Final = {  # options of a session that the configuration file may name, one a line
    "redact": "names and JSON paths to redact by too, one a line",
    "normalize": "what to replace because it differs from run to run, one a line",
}
# The plugin's own: when a cassette is replaced, published or set aside follows from the mode and the test's outcome.
_OWN_OPTIONS: Final = frozenset({"replace", "stale", "store", "publish_on_error"})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What holds for the whole run.

    ``explicit`` is the command line's mode or None, ``default`` the mode of a test whose marker names none; ``folder``
    lies beside each test module; ``include`` are patterns or None; ``view``: keep a text of each cassette;
    ``missing_key``: ``skip`` or ``fail``, a test whose cassette is encrypted where no key is.
    ``options``: those of every session, under what markers and fixtures say.
    """

    explicit: str | None
    default: str
    folder: str
    unused: str
    include: tuple[str, ...] | None
    forbid_live: bool
    view: bool
    missing_key: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])

    def mode(self, wish: Wish) -> str:
        """The mode of a test."""
        return self.explicit or wish.mode or self.default


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wish:
    """What the markers of one test say: ``name`` of the cassette, ``mode``, ``include``, and options of a session."""

    name: str | None = None
    mode: str | None = None
    include: tuple[str, ...] | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])


def add_options(parser: pytest.Parser) -> None:
    """Add the command line's options and the configuration file's keys."""
    group = parser.getgroup("toolcassette", "recorded tool calls")
    group.addoption(
        "--toolcassette",
        dest="toolcassette_mode",
        choices=MODES,
        default=None,
        metavar="MODE",
        help="replay (default); record: replay where there is a cassette, record where there is none; "
        "rewrite: record anew, and replace when the test has passed; live: run tools for real and keep nothing",
    )
    group.addoption(
        "--toolcassette-unused",
        choices=UNUSED,
        default=None,
        help="cassettes that belong to no test (ignore, warn, fail); judged only when whole folders were run",
    )
    group.addoption(
        "--toolcassette-dir", default=None, metavar="NAME", help="folder of cassettes beside each test module"
    )
    _add_keys(parser)


def _add_keys(parser: pytest.Parser) -> None:
    parser.addini(
        "toolcassette_mode", "mode of tests that name none: replay, record, rewrite or live", default="replay"
    )
    parser.addini("toolcassette_unused", "what cassettes come to that belong to no test", default="warn")
    parser.addini("toolcassette_dir", "folder of cassettes beside each test module", default="cassettes")
    parser.addini("toolcassette_include", "tools to record and replay, one pattern a line", type="linelist", default=[])
    for name, words in _RULES.items():
        parser.addini(f"toolcassette_{name}", words, type="linelist")
    parser.addini(
        "toolcassette_trusted_keys",
        "whose signatures count: verifier keys, or files of them, one a line; TOOLCASSETTE_TRUSTED_KEYS outranks it",
        type="linelist",
        default=[],
    )
    parser.addini(
        "toolcassette_require_signature",
        "how many trusted keys must have signed what is replayed; TOOLCASSETTE_REQUIRE_SIGNATURE may ask more",
        default="",
    )
    parser.addini(
        "toolcassette_missing_key",
        "a test whose cassette is encrypted, where no key is here: skip or fail",
        default="skip",
    )
    parser.addini(
        "toolcassette_view",
        "keep the text that `toolcassette view` shows beside each cassette that is recorded",
        type="bool",
        default=False,
    )
    parser.addini(
        "toolcassette_forbid_live",
        "in replay mode, a wrapped tool called outside any session fails in every test",
        type="bool",
        default=False,
    )


def settings_of(config: pytest.Config) -> Settings:
    """The settings of a run. Raises ``pytest.UsageError`` for a value that is none of those allowed."""
    option = config.option
    default = os.environ.get(_MODE_VARIABLE) or config.getini("toolcassette_mode")
    folder = option.toolcassette_dir or config.getini("toolcassette_dir")
    unused = option.toolcassette_unused or config.getini("toolcassette_unused")
    _one_of("toolcassette mode", default, MODES)
    missing_key = config.getini("toolcassette_missing_key")
    _one_of("toolcassette_unused", unused, UNUSED)
    _one_of("toolcassette_missing_key", missing_key, MISSING_KEY)
    pure = PurePath(folder)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise pytest.UsageError("toolcassette_dir names a folder beside each test module: no absolute path, no '..'")
    if default in _RECORDING and option.toolcassette_mode is None:
        _refuse_in_ci(default)
    return Settings(
        explicit=option.toolcassette_mode,
        default=default,
        folder=folder,
        unused=unused,
        include=tuple(config.getini("toolcassette_include")) or None,
        forbid_live=config.getini("toolcassette_forbid_live"),
        view=config.getini("toolcassette_view"),
        missing_key=missing_key,
        options={**_session_options(config), **_proof(config)},
    )


def _session_options(config: pytest.Config) -> dict[str, Any]:
    """Rules of redaction, as options of a session. Raises ``pytest.UsageError`` that names the key."""
    found: dict[str, Any] = {}
    for name in _RULES:
        lines = config.getini(f"toolcassette_{name}")
        if lines:
            try:
                found |= checked_options({name: tuple(lines)})
            except ValueError as error:
                raise pytest.UsageError(f"toolcassette_{name}: {error}") from None
    return found


def _proof(config: pytest.Config) -> dict[str, Any]:
    """Whom a cassette must be signed by, as options of a session. Raises ``pytest.UsageError``."""
    entries, required = config.getini("toolcassette_trusted_keys"), str(config.getini("toolcassette_require_signature"))
    if not entries and not required:
        return {}
    from toolcassette.crypto import looks_like_key, required_number

    try:
        number = required_number(required)
    except ValueError as error:
        raise pytest.UsageError(f"toolcassette_require_signature: {error}") from None
    keys = tuple(entry if looks_like_key(entry) else str(config.rootpath / entry) for entry in entries)
    return {"trusted_keys": keys, "require_signature": number > 0, "threshold": max(number, 1)}


def wish_of(item: pytest.Item, settings: Settings) -> Wish:
    """What the markers of a test say; the closest wins, option by option. ``pytest.UsageError`` names the test."""
    told: dict[str, Any] = {}
    whose = f"toolcassette marker of {item.nodeid}"
    for mark in reversed(list(item.iter_markers(MARKER))):
        if len(mark.args) > 1 or (mark.args and "name" in mark.kwargs):
            raise pytest.UsageError(f"{whose}: it takes one name, and keyword options")
        told |= {**mark.kwargs, "name": mark.args[0]} if mark.args else mark.kwargs
    return options_of(whose, told, settings)


def options_of(whose: str, told: Mapping[str, Any], settings: Settings) -> Wish:
    """A wish from keyword options. Raises ``pytest.UsageError`` that begins with ``whose``."""
    rest = dict(told)
    name, mode, include = rest.pop("name", None), rest.pop("mode", None), rest.pop("include", None)
    try:
        if name is not None and not (isinstance(name, str) and name):
            raise ValueError("name must be text")
        if mode is not None:
            _one_of("mode", mode, MODES)
            if mode in _RECORDING and settings.explicit is None:
                _refuse_in_ci(mode)
        return Wish(name=name, mode=mode, include=_patterns(include), options=checked_options(rest))
    except (TypeError, ValueError, pytest.UsageError) as error:
        raise pytest.UsageError(f"{whose}: {error}") from None


def config_of(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the fixture ``toolcassette_config`` gives, with its ``include`` as the marker's. Raises as
    ``checked_options``.
    """
    rest = {name: value for name, value in told.items() if name != "include"}
    checked_options(rest, also=("include",))
    include = _patterns(told.get("include"))
    return rest if include is None else {**rest, "include": include}


def checked_options(told: Mapping[str, Any], *, also: tuple[str, ...] = ("mode", "include")) -> Mapping[str, Any]:
    """Options of a session, by name, as they are. Raises ``ValueError`` or ``TypeError`` for one that cannot be.

    ``also``: what the caller takes besides, for the message.
    """
    if not told:
        return told
    from toolcassette.session import Options

    allowed = {field.name for field in dataclasses.fields(Options)} - _OWN_OPTIONS
    unknown = sorted(str(name) for name in told if name not in allowed)
    if unknown:
        raise ValueError(f"unknown option {', '.join(unknown)}; there are {', '.join((*also, *sorted(allowed)))}")
    Options(**told)
    return told


def _patterns(include: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """Patterns as a tuple; one pattern may stand alone."""
    if include is None:
        return None
    from toolcassette.engine import Selection

    return Selection([include] if isinstance(include, str) else include).patterns


def _one_of(what: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise pytest.UsageError(f"{what} must be one of {', '.join(allowed)}")


def _refuse_in_ci(mode: str) -> None:
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise pytest.UsageError(f"in CI, recording must be asked for on the command line: --toolcassette={mode}")
