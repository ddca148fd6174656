"""Cassettes that differ in one thing, real git repositories, and the command line as git and a shell find it."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import sysconfig
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from toolcassette import RecordedCall, parse_cassette, write_cassette
from toolcassette.cli import main

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = "weather.cassette.jsonl"
SECRET = "CANARY-VALUE"


def call(tool="weather", args=b"{}", value=b"1", **more):
    return RecordedCall(tool=tool, args=args, value=value, **more)


def city(name, sky="sun", **more):
    return call(args=b'{"city":"%s"}' % name.encode(), value=b'{"sky":"%s"}' % sky.encode(), **more)


def cassette_bytes(*calls, cassette="ab" * 16, **header):
    fixed = {"created": "2026-01-02T03:04:05.000000Z", "producer": "test", "include": ["*"]}
    return write_cassette(calls, cassette=cassette, **{**fixed, **header})


def cassette(*calls, **header):
    return parse_cassette(cassette_bytes(*calls, **header))


def tools_on_path(folder):
    """A folder with `toolcassette` and `python` in it: this interpreter and this source."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    for name, command in (("python", ""), ("toolcassette", "-m toolcassette")):
        script = tools / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n', "utf-8")
        script.chmod(0o755)
    return tools


def environment(folder, **extra):
    """That of a user whose git knows nothing but the repository's own settings."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "GITHUB_", "TOOLCASSETTE_", "PYTHON"))}
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "cat", "LC_ALL": "C.UTF-8"}
    who = {f"GIT_{role}_{what}": "tester@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    path = f"{tools_on_path(folder)}{os.pathsep}{os.environ['PATH']}"
    return {**clean, **settings, **who, "PATH": path, "PYTHONPATH": str(REPOSITORY / "src"), **extra}


class Repo:
    """A git repository in ``folder / name``; ``git`` and ``tool`` run there."""

    def __init__(self, folder, name="repo", *, clone=None, settings=()):
        self.home, self.folder = folder, folder / name
        options = [part for setting in settings for part in ("-c", setting)]
        if clone is None:
            self._run("git", "init", "-q", "-b", "main", str(self.folder), cwd=folder)
        else:
            self._run("git", "clone", "-q", *options, str(clone.folder), str(self.folder), cwd=folder)

    def _run(self, *command, cwd=None, check=True, **extra):
        done = subprocess.run(
            command, cwd=cwd or self.folder, env=environment(self.home, **extra), capture_output=True, timeout=60
        )
        assert not check or done.returncode == 0, done.stderr.decode()
        return done

    def git(self, *args, check=True, **extra):
        return self._run("git", *args, check=check, **extra)

    def tool(self, *args, cwd=None, **extra):
        """Status, stdout and stderr of `toolcassette`, run in this process."""
        out, err, here = io.StringIO(), io.StringIO(), Path.cwd()
        os.chdir(cwd or self.folder)
        try:
            with mock.patch.dict(os.environ, environment(self.home, **extra), clear=True):
                with redirect_stdout(out), redirect_stderr(err):
                    status = main([str(arg) for arg in args])
        finally:
            os.chdir(here)
        assert "Traceback" not in err.getvalue()
        return status, out.getvalue(), err.getvalue()

    def write(self, data, name=NAME):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return file

    def commit(self, data=None, name=NAME, message="change"):
        if data is not None:
            self.write(data, name)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)


def prek(repo, *args):
    """Run prek in a repository, with a cache of its own."""
    # Where this interpreter has its scripts: its environment need not be active.
    program = shutil.which("prek", path=sysconfig.get_path("scripts")) or shutil.which("prek")
    assert program, "prek is in the extra `test`"
    env = environment(repo.home, PREK_HOME=str(repo.home / "prek"))
    return subprocess.run([program, *args], cwd=repo.folder, env=env, capture_output=True, text=True, timeout=60)
