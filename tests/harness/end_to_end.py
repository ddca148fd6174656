"""DeepSeek Harness with a Python MCP server, through the proxy: ``python -m tests.harness.end_to_end``.

Sets everything up itself, in a folder that it removes: Node 22 and the harness from npm, in the versions below. A fake
model makes the calls. A run is recorded; the server is taken away, and the run is replayed: no body runs, and the model
is shown the same results of tools. Then the model asks for something else: the harness ends with 0 all the same, and
``toolcassette check`` does not.

Exit status: 0, all of that is so; 1, something is not. Where npm or its packages cannot be had, a line that begins with
``not done:`` says so, and nothing is shown.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SRC = HERE.parents[1] / "src"
SERVER = HERE.parent / "adapters" / "mcp_server.py"
INSTALL_SECONDS = 600
RUN_SECONDS = 120

# rc.8 is the newest version whose parts are all published. Its ranges let its own kit move on, which then does not
# fit any more: these are the versions that it was made with.
HARNESS = {"@deepseek-ai/dsh": "0.1.0-rc.8"}
KIT = {
    "@deepseek-ai/cordis": "4.0.1",
    "@deepseek-ai/cordis-plugin-group": "1.0.1",
    "@deepseek-ai/cordis-plugin-hmr": "1.0.16",
    "@deepseek-ai/cordis-plugin-include": "1.0.6",
    "@deepseek-ai/cordis-plugin-loader": "1.0.2",
    "@deepseek-ai/cordis-plugin-timer": "1.1.3",
    "@deepseek-ai/cosmokit": "1.8.2",
    "@deepseek-ai/schemastery": "3.18.1",
}
PROFILE = {
    "name": "dsh-profile-headless",
    "private": True,
    "dependencies": {},
    "dsh": {"profile": {"bundles": ["@deepseek-ai/dsh-base", "@deepseek-ai/dsh-headless"]}},
}


class NotDone(Exception):
    """The packages cannot be had."""


def script(*cities: str) -> list[Any]:
    """The model's turns: the weather of these cities, a failing call, and an end."""
    calls = [{"id": city, "name": "mcp__wx__weather", "args": {"city": city}} for city in cities]
    fails = {"id": "fails", "name": "mcp__wx__fails", "args": {"n": 7}}
    return [{"text": "looking", "calls": [*calls, fails]}, {"text": "all is said"}]


class Harness:
    """The harness in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.ran = folder / "ran"
        self.path = f"{folder / 'tools/node_modules/.bin'}{os.pathsep}{os.environ['PATH']}"
        (folder / "work").mkdir()

    def install(self) -> None:
        """Raises ``NotDone``."""
        if shutil.which("npm") is None:
            raise NotDone("there is no npm here")
        tools, harness = self.folder / "tools", self.folder / "harness"
        for place, package in ((tools, {}), (harness, {"dependencies": HARNESS, "pnpm": {"overrides": KIT}})):
            place.mkdir()
            (place / "package.json").write_text(json.dumps({"private": True, **package}), "utf-8")
        self._fetch(tools, "npm", "install", "--no-audit", "--no-fund", "node@22", "pnpm@10")
        self._fetch(harness, "pnpm", "install", "--ignore-scripts")
        profile = self.home / "profiles" / "headless"
        profile.mkdir(parents=True)
        (profile / "package.json").write_text(json.dumps(PROFILE), "utf-8")
        shutil.copy(HERE / "model.mjs", profile)

    def _fetch(self, folder: Path, *words: str) -> None:
        env = {**os.environ, "PATH": self.path}
        try:
            done = subprocess.run(
                words, cwd=folder, env=env, capture_output=True, timeout=INSTALL_SECONDS, check=False, text=True
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotDone(f"{words[0]} did not install: {type(error).__name__}") from None
        if done.returncode:
            raise NotDone(f"{words[0]} did not install: exit {done.returncode}")

    def run(self, turns: list[Any], *proxy: str) -> list[Any]:
        """A whole run with ``toolcassette mcp`` as the server; the tool results that the model was shown last."""
        saw, told, patch = (self.folder / name for name in ("saw", "script.json", "patch.yml"))
        saw.unlink(missing_ok=True)
        told.write_text(json.dumps(turns), "utf-8")
        patch.write_text(json.dumps(self._patch(proxy)), "utf-8")  # JSON is YAML
        env = {"DSH_HOME": str(self.home), "MODEL_SAW": str(saw), "MODEL_SCRIPT": str(told), "PATH": self.path}
        done = subprocess.run(
            [self.folder / "harness/node_modules/.bin/dsh", "--profile", "headless", "--patch", patch, "go"],
            cwd=self.folder / "work",
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        print(done.stderr, end="", flush=True)
        assert done.returncode == 0, done.returncode
        assert "all is said" in done.stdout, done.stdout
        found: list[Any] = json.loads(saw.read_text("utf-8").splitlines()[-1])
        return found

    def _patch(self, proxy: tuple[str, ...]) -> list[Any]:
        server = {
            "serverName": "wx",
            "transport": "stdio",
            "command": sys.executable,
            "args": ["-m", "toolcassette", "mcp", *proxy],
            "env": {"PYTHONPATH": str(SRC), "RAN": str(self.ran)},  # the harness hands on little else
            "failOnStartupError": True,
        }
        model = str(self.home / "profiles/headless/model.mjs")
        return [
            {"id": "agent-default-model", "config": {"provider": "scripted", "model": "scripted"}},
            {"id": "session-title-llm", "disabled": True},
            {
                "insert": [
                    {"id": "scripted-model", "name": model},
                    {"id": "mcp-wx", "name": "@deepseek-ai/dsh-mcp-client", "config": server},
                ]
            },
        ]

    def bodies(self) -> list[str]:
        """The bodies that ran since the last look."""
        found = self.ran.read_text("utf-8").split() if self.ran.exists() else []
        self.ran.unlink(missing_ok=True)
        return found


def check(status: Path) -> int:
    """What ``toolcassette check`` makes of a status file."""
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    return subprocess.run([sys.executable, "-m", "toolcassette", "check", status], env=env, check=False).returncode


def show(folder: Path) -> None:
    """All that is promised. Raises ``AssertionError``, or ``NotDone``."""
    harness = Harness(folder)
    harness.install()
    cassette, server = folder / "wx.cassette.jsonl", folder / "server.py"
    shutil.copy(SERVER, server)
    recorded, replayed, drifted = (folder / name for name in ("recorded", "replayed", "drifted"))

    first = harness.run(
        script("武汉", "Oslo"), "record", str(cassette), "--status", str(recorded), "--", sys.executable, str(server)
    )
    assert harness.bodies() == ["weather-武汉", "weather-Oslo", "fails"]
    assert [result["isError"] for result in first] == [False, False, True], first
    assert check(recorded) == 0

    server.unlink()
    second = harness.run(script("武汉", "Oslo"), "replay", str(cassette), "--status", str(replayed))
    assert harness.bodies() == []
    assert second == first, (second, first)
    assert check(replayed) == 0

    third = harness.run(script("武汉", "Paris"), "replay", str(cassette), "--status", str(drifted))
    assert harness.bodies() == []
    assert [result["isError"] for result in third] == [False, True, True], third
    assert check(drifted) == 1


def main() -> int:
    """Returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="toolcassette-harness-", ignore_cleanup_errors=True) as folder:
        try:
            show(Path(folder))
        except NotDone as why:
            print(f"not done: DeepSeek Harness, end to end ({why})")
            return 0
        except AssertionError as wrong:
            print(f"wrong: {wrong!r}", file=sys.stderr)
            raise
    print("recorded, replayed with no server and no body, drift found: DeepSeek Harness 0.1.0-rc.8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
