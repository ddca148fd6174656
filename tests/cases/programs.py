"""Small programs for the cases: wrap, record, replay, run a script, break a file.

Rule: everything goes through the public names, as a user's program would; what breaks a file is written out here.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import toolcassette as tc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SRC = Path(__file__).resolve().parents[2] / "src"
NOBODY = 65534


class RealBodyRan(BaseException):
    """Not an ``Exception``, so that no program under test can swallow it."""


def boom_like(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the same name, kind and signature, whose body must not run."""
    if inspect.isgeneratorfunction(fn):

        @functools.wraps(fn)
        def dead(*args: Any, **kwargs: Any) -> Any:
            raise RealBodyRan
            yield
    elif inspect.isasyncgenfunction(fn):

        @functools.wraps(fn)
        async def dead(*args: Any, **kwargs: Any) -> Any:
            raise RealBodyRan
            yield
    elif inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def dead(*args: Any, **kwargs: Any) -> Any:
            raise RealBodyRan
    else:

        @functools.wraps(fn)
        def dead(*args: Any, **kwargs: Any) -> Any:
            raise RealBodyRan

    return dead


def live(fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """``fn`` as a tool."""
    return tc.Registry().wrap(fn, **options)


def dead(fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """``fn`` as a tool that can only be replayed."""
    return live(boom_like(fn), **options)


def record(file: Path, program: Callable[[], Any], **options: Any) -> Any:
    """What ``program`` returns, recorded. Not durable before it is published, so that tests are quick."""
    with tc.record(file, ["*"], **({"sync": "none"} | options)):
        return program()


def replay(file: Path, program: Callable[[], Any], **options: Any) -> Any:
    """What ``program`` returns, replayed; raises what leaving raises."""
    with tc.replay(file, **options):
        return program()


def refused(call: Callable[..., Any], *args: Any, **kwargs: Any) -> tc.CassetteError:
    """The error of ours that a call raises, as an agent loop would swallow it."""
    try:
        call(*args, **kwargs)
    except tc.CassetteError as error:
        return error
    raise AssertionError("the call was served")


@contextlib.contextmanager
def fails(kind: type[tc.CassetteError]) -> Iterator[dict[str, Any]]:
    """The block raises exactly ``kind``; its ``error`` is put into the dict."""
    found: dict[str, Any] = {}
    with pytest.raises(tc.CassetteError) as raised:
        yield found
    found["error"] = raised.value
    assert type(raised.value) is kind


def run_script(folder: Path, text: str, *args: str, under: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """A plain script, run by a fresh interpreter in ``folder``; or by ``toolcassette`` with the words ``under``."""
    script = folder / "program.py"
    script.write_text(text, "utf-8")
    command = ["-m", "toolcassette", *under, "--"] if under else ["-W", "error"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TOOLCASSETTE")} | {"PYTHONPATH": str(SRC)}
    return subprocess.run(
        [sys.executable, *command, script.name, *args],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def frames(file: Path) -> list[bytes]:
    """The lines of a cassette, each with its LF."""
    return [line + b"\n" for line in file.read_bytes().split(b"\n")[:-1]]


def reseal(lines: list[bytes]) -> bytes:
    """The lines with every ``prev`` and ``hash`` made right again, as anybody can who may write the file."""
    head, sealed = "0" * 64, []
    for line in lines:
        covered = line[:-150] + b',"prev":"' + head.encode() + b'"'
        head = hashlib.sha256(b"\0" + covered).hexdigest()
        sealed.append(covered + b',"hash":"' + head.encode() + b'"}\n')
    return b"".join(sealed)


def verdicts(file: Path) -> set[tuple[str, int | None]]:
    """Reason and frame as ``verify``, ``inspect``, ``read_cassette`` and ``replay`` see them."""
    report = tc.verify(file)
    assert not report.ok
    found = {(str(report.reason), report.frame)}
    for look in (tc.inspect, tc.read_cassette, lambda name: replay(name, lambda: None)):
        with fails(tc.FormatError) as caught:
            look(file)
        found.add((caught["error"].reason, caught["error"].frame))
    return found


@contextlib.contextmanager
def no_permission(file: Path) -> Iterator[None]:
    """``file`` cannot be read within the block, not even by a test run of the superuser."""
    mode, user = file.stat().st_mode, os.geteuid()
    file.chmod(0)
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        file.chmod(mode)
