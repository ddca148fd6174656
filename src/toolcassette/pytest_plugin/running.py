"""What happens around a test that has a cassette: set-up, call, verdict, report. Loaded with the first such test.

Theory. The session is opened by a fixture, before every other fixture of the test's own scope and after the wider ones
(whose calls would else land in whichever test runs first), and it is ended in the call phase, inside of every other
plugin: what it has to say is the test's outcome, so expected failures, reruns and reports treat it as any failure.
From set-up to tear-down of a test that replays, a wrapped tool called outside the session raises, in child processes
too.

Async tests may run in a task that is older than the session (a loop shared by several tests); for the time of the test
that task is given the context of the set-up.

Rule: a test's own failure stays its own, with a note. Nothing of ours is shown with its local variables.
"""

from __future__ import annotations

import contextlib
import contextvars
import difflib
import functools
import inspect
import os
import shlex
import types
from typing import TYPE_CHECKING, Any, Final

import pytest

from toolcassette.engine import MODE_VARIABLE, forbid_live
from toolcassette.errors import CassetteError
from toolcassette.pytest_plugin.ledger import orphans, shown_path
from toolcassette.pytest_plugin.taping import LOCKED, Tape, end, first_call_of, keep_view, open_tape

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

    from toolcassette.engine import Session, Verdict
    from toolcassette.pytest_plugin.ledger import Ledger
    from toolcassette.pytest_plugin.settings import Settings, Wish

__all__ = ["Runner", "nothing_live"]

_PROPERTY: Final = "toolcassette_"
_ORPHANS_MAX: Final = 500  # cassettes looked into for one that was renamed


class Running:
    """One run of one test. ``told``: the error that is the test's outcome, because the session says so."""

    __slots__ = ("forbidden", "tape", "told")

    def __init__(self) -> None:
        self.forbidden = contextlib.ExitStack()
        self.tape: Tape | None = None
        self.told: CassetteError | None = None


_RUNNING: Final = pytest.StashKey[Running]()
_COUNTED: Final = pytest.StashKey[bool]()


class Runner:
    """The hooks of tests that have a cassette. ``concerns``: whether an item is such a test."""

    def __init__(
        self, config: pytest.Config, settings: Settings, ledger: Ledger, concerns: Callable[[pytest.Item], Wish | None]
    ) -> None:
        self._config = config
        self._settings = settings
        self._ledger = ledger
        self._concerns = concerns

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """From here on no tool runs for real in a test that replays, nor in a fixture that it sets up."""
        wish = self._concerns(item)
        if wish is not None:
            item.stash[_RUNNING] = running = Running()
            if self._settings.mode(wish) == "replay":
                running.forbidden.enter_context(nothing_live())
        try:
            return (yield)
        except BaseException as error:
            if isinstance(error, CassetteError) and wish is not None:
                self._say_where(error, item, item.stash[_RUNNING].tape)
            self._hide(error)
            raise

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """End the session with the body, and let it speak."""
        running = item.stash.get(_RUNNING, None)
        try:
            result = yield
        except BaseException as error:
            if running is not None and running.tape is not None:
                self._ended(item, running, running.tape, error)
            self._hide(error)
            raise
        if running is None or running.tape is None:
            return result
        kept: list[pytest.ExceptionInfo[BaseException]] = getattr(item, "_excinfo", None) or []  # unittest's way
        self._ended(item, running, running.tape, kept[0].value if kept else None)
        if running.told is not None:
            raise running.told.with_traceback(None) from None
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """The mismatch report alone, where the body itself raised nothing."""
        report = yield
        running = item.stash.get(_RUNNING, None)
        told = running.told if running is not None else None
        if told is not None and call.excinfo is not None and call.excinfo.value is told:
            report.longrepr = _as_text(told).getrepr(style="value")
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Tools may run for real again when all is torn down."""
        try:
            return (yield)
        except BaseException as error:
            self._hide(error)
            raise
        finally:
            if (running := item.stash.get(_RUNNING, None)) is not None:
                running.forbidden.close()

    def open(
        self, item: pytest.Function, wish: Wish, config: Mapping[str, Any], path: Path
    ) -> Generator[Session, None, None]:
        """The fixture's body: the open session, until the test is torn down."""
        running = item.stash.setdefault(_RUNNING, Running())
        include = wish.include or config.get("include") or self._settings.include
        told = {name: value for name, value in config.items() if name != "include"}
        options = {**self._settings.options, **told, **wish.options}
        self._ledger.owned.add(str(path))
        advice = functools.partial(self._advice, item, path)
        mode = self._settings.mode(wish)
        try:
            tape = open_tape(path, mode, include, options, advice=advice, shared=is_everywhere(self._config))
        except ValueError as error:
            pytest.fail(f"toolcassette: {error}", pytrace=False)
        if tape.locked and self._settings.missing_key == "skip":
            tape.session.close()
            pytest.skip(LOCKED)
        running.tape = tape
        if tape.effect == "replay":
            running.forbidden.enter_context(nothing_live())
        body = item.obj
        if inspect.iscoroutinefunction(body):
            item.obj = _in_context_of_here(body)
        try:
            yield tape.session
        finally:
            item.obj = body
            tape.session.close(RuntimeError("the test was not run"))  # nothing, where it was

    def _hide(self, error: BaseException) -> None:
        """Show no frame of ours, unless pytest was asked for all of them (``--full-trace``)."""
        if not self._config.option.fulltrace:
            _drop_our_frames(error)

    # -- the end ---------------------------------------------------------------------------------------------------

    def _ended(self, item: pytest.Item, running: Running, tape: Tape, error: BaseException | None) -> None:
        verdict = end(tape, error)
        self._count(item, tape, verdict)
        if self._settings.view:
            keep_view(tape, verdict)
        ours = verdict.error
        if ours is None:
            return
        if error is None:
            running.told = ours
            self._say_where(ours, item, tape)
        elif isinstance(error, CassetteError):
            self._say_where(error, item, tape)
        else:
            error.add_note(f"toolcassette: {ours}")
            error.add_note(f"cassette: {shown_path(tape.path, self._config)}")

    def _say_where(self, error: CassetteError, item: pytest.Item, tape: Tape | None) -> None:
        """Add to an error which cassette it is about, and what to do if the test is right."""
        if tape is None or any(note.startswith("cassette: ") for note in getattr(error, "__notes__", ())):
            return
        error.add_note(f"cassette: {shown_path(tape.path, self._config)}")
        if tape.stood and tape.effect == "replay":
            error.add_note(f"if the change is meant: {self._command(item, 'rewrite')}")

    def _count(self, item: pytest.Item, tape: Tape, verdict: Verdict) -> None:
        shown = shown_path(tape.path, self._config)
        if not item.stash.setdefault(_COUNTED, False):  # a rerun is no other test
            self._ledger.count("tests")
            item.stash[_COUNTED] = True
        if verdict.mode in ("replay", "record"):
            self._ledger.count("replayed" if verdict.mode == "replay" else "recorded", verdict.calls)
        if verdict.outcome == "unchanged":
            self._ledger.count("unchanged")
        if verdict.outcome == "kept" and verdict.calls:
            self._ledger.notes.append(f"{shown}: not published, kept as .partial")
        self._ledger.notes += [f"{shown}: {note}" for note in verdict.notes]
        item.user_properties[:] = [p for p in item.user_properties if not p[0].startswith(_PROPERTY)]
        if verdict.outcome not in ("live", "kept") and (tape.stood or verdict.calls):
            for name, value in (("cassette", shown), ("head", tape.head or ""), ("calls", verdict.calls)):
                item.user_properties.append((_PROPERTY + name, value))

    # -- what to do -------------------------------------------------------------------------------------------------

    def _command(self, item: pytest.Item, mode: str) -> str:
        module = os.path.relpath(item.path, self._config.invocation_params.dir)
        return f"pytest --toolcassette={mode} {shlex.quote(module + ''.join(item.nodeid.partition('::')[1:]))}"

    def _advice(self, item: pytest.Item, path: Path, tool: str, args: bytes | None) -> str:
        """What to do about a missing cassette: the command that records it, or the one that renames what it was."""
        words = [f"record it: {self._command(item, 'record')}"]
        orphan = self._orphan(path, tool, args)
        if orphan is not None:
            old, new = (os.path.relpath(p, self._config.invocation_params.dir) for p in (orphan, path))
            move = f"git mv {shlex.quote(old)} {shlex.quote(new)}"
            if not path.parent.is_dir():
                move = f"mkdir -p {shlex.quote(os.path.dirname(new))} && {move}"  # noqa: PTH120 - text, not a path
            words.append(f"a cassette that begins with this call belongs to no test; if this is it: {move}")
            self._ledger.moved.append((shown_path(orphan, self._config), shown_path(path, self._config)))
        return "; ".join(words)

    def _orphan(self, path: Path, tool: str, args: bytes | None) -> Path | None:
        """The cassette without a test that begins with this call; of several, that of the likest name."""
        found = orphans(self._config, self._settings.folder, self._ledger)[:_ORPHANS_MAX]
        begun = [orphan for orphan in found if first_call_of(orphan) == (tool, args)]
        return max(begun, key=lambda o: difflib.SequenceMatcher(None, str(o), str(path)).ratio(), default=None)


def _as_text(error: CassetteError) -> pytest.ExceptionInfo[BaseException]:
    """The error and its notes as a report without a traceback."""
    text = "\n".join([str(error), *getattr(error, "__notes__", ())])
    told = pytest.fail.Exception(text, pytrace=False).with_traceback(error.__traceback__)
    return pytest.ExceptionInfo.from_exception(told)


@contextlib.contextmanager
def nothing_live() -> Generator[None]:
    """Within the block a wrapped tool outside any session raises: in this process, and in those that it starts."""
    before = os.environ.get(MODE_VARIABLE)
    os.environ[MODE_VARIABLE] = "replay"
    try:
        with forbid_live():
            yield
    finally:
        if before is None:
            os.environ.pop(MODE_VARIABLE, None)
        else:
            os.environ[MODE_VARIABLE] = before


def is_everywhere(config: pytest.Config) -> bool:
    """True in a worker of pytest-xdist that runs the same tests as the others (``--dist=each``)."""
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    return worker.get("toolcassette_dist") == "each"


def _in_context_of_here(body: Callable[..., Any]) -> Callable[..., Any]:
    """An async test that finds, in whatever task it runs, our context variables as they are here and now."""
    ours = [(var, value) for var, value in contextvars.copy_context().items() if var.name.startswith("toolcassette_")]

    @functools.wraps(body)
    async def inside(*args: Any, **kwargs: Any) -> Any:
        tokens = [(var, var.set(value)) for var, value in ours]
        try:
            return await body(*args, **kwargs)
        finally:
            for var, token in tokens:
                var.reset(token)

    return inside


def _drop_our_frames(error: BaseException | None) -> None:
    """Take the frames of this package out of the tracebacks: their local variables hold arguments and results."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        frames = [
            step
            for step in _steps(error.__traceback__)
            if not f"{step.tb_frame.f_globals.get('__name__')}.".startswith("toolcassette.")
        ]
        trace: types.TracebackType | None = None
        for step in reversed(frames):
            trace = types.TracebackType(trace, step.tb_frame, step.tb_lasti, step.tb_lineno)
        error.__traceback__ = trace
        error = error.__cause__ or error.__context__


def _steps(trace: types.TracebackType | None) -> Generator[types.TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next
