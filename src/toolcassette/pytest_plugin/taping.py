"""The session of one test: opened by what was asked for and what is there, and ended by how the test went.

Theory. A test whose cassette is missing gets a session that serves nothing: only the first selected call is a mismatch,
so a test that calls no tool needs no cassette. A cassette that cannot be used (damaged, in the way) gives the same kind
of session with its own error, which fails the test whether a call is made or not. So set-up never fails for a
cassette's sake, and the verdict is always that of the test.

Rule: a test replays or records, never both; a recording becomes a cassette only when its test has passed.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from toolcassette.crypto import read_signer
from toolcassette.engine import Replayer, Selection, Session, Verdict, sign_published
from toolcassette.errors import (
    CassetteError,
    CassetteMismatch,
    CassettePoisoned,
    EncryptionError,
    FormatError,
    NotPublished,
)
from toolcassette.pytest_plugin.naming import SUFFIX
from toolcassette.pytest_plugin.sharing import Draft, patiently
from toolcassette.session import record, replay, session
from toolcassette.stores import FileStore
from toolcassette.verify import read_cassette, verify
from toolcassette.view import view

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from toolcassette.crypto import Signer
    from toolcassette.engine import Call, ToolContract

__all__ = ["LOCKED", "Refusing", "Tape", "end", "first_call_of", "keep_view", "open_tape"]


LOCKED: Final = "toolcassette: the cassette is encrypted, and no key is here to open it (TOOLCASSETTE_IDENTITY)"
_VIEW_SUFFIX: Final = ".cassette.md"


class Refusing(Session):
    """Serves no call, and runs none that it selects: there is nothing to replay. ``why`` is what fails the session in
    any case; else ``advice`` tells what to do about the first call made, which is a mismatch ``no_cassette``.
    """

    mode: ClassVar[str] = "replay"

    def __init__(
        self,
        include: tuple[str, ...] | None,
        *,
        why: CassetteError | None = None,
        advice: Callable[[str, bytes | None], str] = lambda _tool, _args: "",
    ) -> None:
        super().__init__()
        self._selection = Selection(include or ("*",))
        self._exclusive = include is None
        self._why = why
        self._advice = advice
        self._first: CassetteMismatch | None = None

    @property
    def exclusive(self) -> bool:
        """True where no include was named: then no wrapped tool runs."""
        return self._exclusive

    @property
    def selection(self) -> Selection:
        """What would be replayed."""
        return self._selection

    def begin(self, call: Call, contract: ToolContract) -> NoReturn:
        """Raise: the session's own error, or the mismatch."""
        raise self._refused(call.tool, call.path, call.args)

    def refuse(self, error: CassetteError, tool: str) -> CassetteError:
        """The same for a call that could not be described."""
        return self._refused(tool, self.place().path, None)

    def _refused(self, tool: str, path: tuple[str, ...], args: bytes | None) -> CassetteError:
        if self._why is not None:
            return self._why
        if self._first is not None:
            return CassettePoisoned(self._first)
        self._first = CassetteMismatch("no_cassette", tool=tool, path=path, advice=self._advice(tool, args))
        return self._first

    def _open(self) -> None:
        """Nothing to open."""

    def _release(self) -> None:
        """Nothing is held."""

    def _end(self, error: BaseException | None) -> Verdict:
        why = self._why or self._first
        return Verdict(mode=self.mode, outcome="failed" if why else "consumed", error=why)


class Tape:
    """An open session and its cassette. ``effect``: what the session does, ``replay``, ``record`` or ``live``."""

    __slots__ = ("draft", "effect", "locked", "path", "session", "signer", "stood")

    def __init__(self, path: Path, mode: str, *, shared: bool) -> None:
        self.path = path
        self.stood = os.path.lexists(path)  # a cassette was there before
        replays = mode == "replay" or (mode == "record" and self.stood)
        self.effect = "live" if mode == "live" else "replay" if replays else "record"
        # Several processes may record this one at once: each in memory, and the first to end publishes.
        self.draft = Draft(path) if shared and self.effect == "record" else None
        self.session: Session = Refusing(None)
        self.locked = False  # an encrypted cassette, and no key is here
        self.signer: Signer | None = None  # of a draft, which is signed where it is published

    @property
    def head(self) -> str | None:
        """The last hash of the cassette; None where there is none."""
        played = self.session
        return played.cassette.head if isinstance(played, Replayer) else verify(self.path).head


def open_tape(
    path: Path,
    mode: str,
    include: tuple[str, ...] | None,
    options: Mapping[str, Any],
    *,
    advice: Callable[[str, bytes | None], str],
    shared: bool = False,
) -> Tape:
    """Open the session of a test. ``advice``: tool and canonical arguments of the first call that has no cassette (None
    where they cannot be written) -> what to do. ``shared``: other processes may record the same cassette now.

    Raises ``ValueError`` for options that do not go together with the cassette.
    """
    tape = Tape(path, mode, shared=shared)
    try:
        tape.session = _made(tape, include, options, replace=mode == "rewrite").__enter__()
    except FormatError as error:
        missing = error.reason == "absent" and not tape.stood
        refusing = Refusing(include, advice=advice) if missing else Refusing(include, why=error)
        tape.session = refusing.__enter__()
    except CassetteError as error:
        tape.locked = isinstance(error, EncryptionError) and error.reason == "identity_missing"
        tape.session = Refusing(include, why=error).__enter__()
    return tape


def _made(tape: Tape, include: tuple[str, ...] | None, options: Mapping[str, Any], *, replace: bool) -> Session:
    if tape.effect == "replay":
        return replay(tape.path, include, **options)
    if tape.effect == "live":
        return session("live")
    if tape.draft is not None:
        key = options.get("sign")
        tape.signer = None if key is None else read_signer(key)
        return record(tape.path, include or ("*",), **{**options, "store": tape.draft.store, "sign": None})
    return record(tape.path, include or ("*",), replace=replace, stale="set-aside", **options)


def end(tape: Tape, error: BaseException | None) -> Verdict:
    """End the session of a test that passed, or that raised ``error``. A recording without a call is no failure and
    leaves nothing behind, unless it was to replace a cassette.
    """
    verdict = tape.session.close(error)
    if verdict.mode != "record":
        return verdict
    why = verdict.error
    if not verdict.calls and isinstance(why, NotPublished) and why.reason in ("empty", "block_raised"):
        if tape.draft is None:
            FileStore().adopt(os.fspath(tape.path)).discard()
        return verdict if tape.stood else Verdict(mode="record", outcome="kept")
    if tape.draft is not None and why is None:
        return _signed(tape, tape.draft.published(verdict))
    return verdict


def _signed(tape: Tape, verdict: Verdict) -> Verdict:
    """The verdict of a draft, once what was published is signed."""
    signer = tape.signer
    if signer is None or verdict.error is not None:
        return verdict
    try:  # another process may be signing it now
        patiently(lambda: sign_published(FileStore(), os.fspath(tape.path), signer, verdict.outcome))
    except CassetteError as error:
        return dataclasses.replace(verdict, error=error)
    return verdict


def keep_view(tape: Tape, verdict: Verdict) -> None:
    """Write the text of a cassette that was just recorded beside it, if it is not there: whole or not at all, 0600."""
    if verdict.outcome not in ("published", "unchanged"):
        return
    if verify(tape.path).encrypted:  # a text beside it would be in the clear
        return
    text = view(read_cassette(tape.path)).encode()
    kept = tape.path.with_name(tape.path.name.removesuffix(SUFFIX) + _VIEW_SUFFIX)
    if kept.is_file() and kept.read_bytes() == text:
        return
    fresh = kept.with_name(f"{kept.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)
    fresh.replace(kept)


def first_call_of(path: Path) -> tuple[str, bytes] | None:
    """Tool and canonical arguments of the first call of a cassette; None where it has none, or is none."""
    try:
        cassette = read_cassette(path)
    except (FormatError, EncryptionError):
        return None
    if not len(cassette):
        return None
    start, args = cassette.place(0)
    return start.tool, args
