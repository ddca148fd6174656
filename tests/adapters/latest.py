"""Adapters against the newest releases of their packages: ``python -m tests.adapters.latest [NAME ...]``.

An adapter is held here where there are both ``tests/adapters/test_<name>.py`` and an extra of that name. Each gets a
venv of its own with this package and the newest version of what the extra names, whatever lower bound it has. One line
an adapter: its name, the versions, and what became of its tests.

Rule: exit status 0 if all pass, 1 if one fails, 2 if one could not be installed, or a name is unknown.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
NEEDED = ("jsonschema", "pytest", "trio")  # of the tests themselves


def name_of(requirement: str) -> str:
    """The package that a requirement is of, without extras and versions."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found
    return found[0]


def adapters() -> dict[str, list[str]]:
    """Adapters that have tests, and the packages that their extras name."""
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    found = {name.replace("-", "_"): [name_of(each) for each in needed] for name, needed in extras.items()}
    return {name: found[name] for name in sorted(found) if (HERE / f"test_{name}.py").exists()}


def judged(name: str, packages: list[str], folder: Path) -> int:
    """Try one adapter, in a new venv in ``folder``. Prints a line, and what failed. Returns an exit status."""
    python = folder / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--upgrade", *packages, *NEEDED, "--editable", "."]
    for command in ([sys.executable, "-m", "venv", str(folder)], install):
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}: not installed\n{done.stderr}", flush=True)
            return 2
    asked = "import sys; from importlib.metadata import version; print(*(f'{n} {version(n)}' for n in sys.argv[1:]))"
    versions = subprocess.run([python, "-c", asked, *packages], capture_output=True, text=True, check=True)
    tests = [str(python), "-m", "pytest", "-q", f"tests/adapters/test_{name}.py"]
    done = subprocess.run(tests, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    *above, last = done.stdout.strip().splitlines() or [done.stderr]
    print(f"{name}: {versions.stdout.strip()}: {last.strip('= ')}", flush=True)
    if done.returncode:
        print("\n".join(above), flush=True)
    return min(done.returncode, 1)


def main(names: list[str]) -> int:
    """Try the named adapters, or all. Returns the exit status: the worst."""
    known = adapters()
    strangers = sorted(set(names) - known.keys())
    if strangers:
        print(f"no such adapter: {', '.join(strangers)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    status = 0
    for name in names or known:
        with tempfile.TemporaryDirectory() as folder:
            status = max(status, judged(name, known[name], Path(folder)))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
