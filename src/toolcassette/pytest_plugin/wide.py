"""Cassettes of fixtures that are wider than a test: a block with a session of its own.

Rule: such a cassette belongs to the run, not to a test: it lies in the cassette folder of the root folder, and where
several workers of pytest-xdist set the fixture up, the first to publish wins.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from toolcassette.pytest_plugin.ledger import shown_path
from toolcassette.pytest_plugin.naming import SUFFIX, safe_name
from toolcassette.pytest_plugin.settings import options_of
from toolcassette.pytest_plugin.taping import LOCKED, end, keep_view, open_tape

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from contextlib import AbstractContextManager

    from toolcassette.engine import Session
    from toolcassette.pytest_plugin.ledger import Ledger
    from toolcassette.pytest_plugin.settings import Settings

__all__ = ["opener"]


def opener(
    config: pytest.Config, settings: Settings, ledger: Ledger, defaults: Mapping[str, Any]
) -> Callable[..., AbstractContextManager[Session]]:
    """What the fixture ``toolcassette_session`` hands out. Called, it raises ``pytest.UsageError`` for bad options."""

    @contextlib.contextmanager
    def toolcassette_session(name: str, **told: Any) -> Generator[Session]:
        wish = options_of(f"toolcassette_session({name!r})", {"name": name, **told}, settings)
        path = config.rootpath / settings.folder / (safe_name(name) + SUFFIX)
        ledger.owned.add(str(path))
        tape = open_tape(
            path,
            settings.mode(wish),
            wish.include or defaults.get("include") or settings.include,
            {
                **settings.options,
                **{key: value for key, value in defaults.items() if key != "include"},
                **wish.options,
            },
            advice=lambda _tool, _args: "record it: pytest --toolcassette=record, with a test that needs this fixture",
            shared=hasattr(config, "workerinput"),
        )
        if tape.locked and settings.missing_key == "skip":
            tape.session.close()
            pytest.skip(LOCKED)
        try:
            yield tape.session
        except BaseException as error:
            ours = end(tape, error).error
            if ours is not None and ours is not error:
                error.add_note(f"toolcassette: {ours}")
            raise
        verdict = end(tape, None)
        if verdict.mode in ("replay", "record"):
            ledger.count("replayed" if verdict.mode == "replay" else "recorded", verdict.calls)
        ledger.notes += [f"{shown_path(path, config)}: {note}" for note in verdict.notes]
        if settings.view:
            keep_view(tape, verdict)
        if verdict.error is not None:
            raise verdict.error

    return toolcassette_session
