"""Runs the command of ``record`` and ``replay`` and waits for it, whatever happens to us meanwhile.

Theory. The child is in our process group, so Ctrl-C reaches it without us: we only wait for what it makes of it. What
is sent to us alone (a CI that cancels, a service manager) is passed on. The child finds its session in its environment,
and leaves its status in a file of a fresh folder that is ours alone.

Rule: what comes back is what a shell would say, 128 + n for a child that signal n ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from toolcassette.cli.outlet import shown
from toolcassette.process import SESSION_VARIABLES, environment, read_status

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from toolcassette.process import Status
    from toolcassette.session import Options

__all__ = ["Ended", "run"]

_PASSED_ON: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Ended(NamedTuple):
    """How the command ended. ``code``: 128 + ``signal`` where a signal ended it. ``status`` None: no call was made."""

    code: int
    signal: int | None
    status: Status | None


def run(
    command: Sequence[str],
    mode: str,
    file: str,
    include: Sequence[str] | None,
    options: Options,
    secrets_from: Sequence[str] = (),
) -> Ended:
    """Run ``command`` with the session in its environment; ``file`` is an absolute path.

    ``secrets_from``: names of the variables that hold the secrets of ``options``. Raises ``click.ClickException`` if
    the command could not be started.
    """
    words = [sys.executable, *command] if command[0].endswith(".py") else list(command)
    with tempfile.TemporaryDirectory(prefix="toolcassette-", ignore_cleanup_errors=True) as folder:
        path = os.path.join(folder, "status")  # noqa: PTH118 - text, as it stands in the environment
        inherited = {name: value for name, value in os.environ.items() if name not in SESSION_VARIABLES}
        code = _wait(words, {**inherited, **environment(mode, file, include, options, path, secrets_from)})
        if code < 0:
            return Ended(128 - code, -code, read_status(path))
        return Ended(code, None, read_status(path))


def _wait(words: list[str], env: dict[str, str]) -> int:
    with _signals() as passing:
        try:
            child = subprocess.Popen(words, env=env)  # noqa: S603 - to run a command is what was asked for
        except (OSError, ValueError) as error:
            number = error.errno if isinstance(error, OSError) else None
            why = os.strerror(number).lower() if number else "it cannot be passed to the system"
            raise click.ClickException(f"could not run {shown(words[0])}: {why}") from None
        passing.to(child)
        return child.wait()


class _Passing:
    """Signals on their way to the child; those that came before it was there are not lost."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._waiting: list[int] = []

    def to(self, child: subprocess.Popen[bytes]) -> None:
        """From now on there is a child."""
        self._child = child
        while self._waiting:
            child.send_signal(self._waiting.pop(0))

    def __call__(self, number: int, frame: object) -> None:
        if self._child is None:
            self._waiting.append(number)
        else:
            self._child.send_signal(number)


def _outlived(number: int, frame: object) -> None:
    """Ctrl-C, which reaches the child without us."""


@contextmanager
def _signals() -> Generator[_Passing]:
    """Outlive Ctrl-C, pass on the rest. What was ignored before (``nohup``, a job in the background) stays ignored."""
    passing = _Passing()
    wanted: dict[int, Any] = {signal.SIGINT: _outlived, **dict.fromkeys(_PASSED_ON, passing)}
    before: dict[int, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number, handler in wanted.items():
                if signal.getsignal(number) not in {signal.SIG_IGN, None}:  # None: whoever embeds us has its own
                    # A function, not SIG_IGN: it does not outlive the exec, so the child has the default.
                    before[number] = signal.signal(number, handler)
        yield passing
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
