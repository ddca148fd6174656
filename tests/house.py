"""The rules of the house as pure functions over ``{module name: source}``; each returns its findings as lines.

Rule: a table says what is allowed, a checker compares, an empty list is a pass. Nothing here reads a file or imports
what it checks, so ``test_house.py`` can show on small made-up trees that every checker is able to fail.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Sources = dict[str, str]

ROOT = "toolcassette"

# A room imports only rooms on lower floors. "" is the facade, toolcassette/__init__.py.
FLOORS: Mapping[str, int] = {
    "_version": -1,
    "reasons": -1,
    "errors": 0,
    "format": 1,
    "stores": 1,
    "contracts": 2,
    "crypto": 2,
    "redaction": 2,
    "engine": 3,
    "cached_functions": 4,
    "folders": 4,
    "telemetry": 4,
    "identity": 4,
    "promise": 4,
    "snapshots": 4,
    "content": 5,
    "describe": 5,
    "surveying": 5,
    "proving": 6,
    "recover": 6,
    "rewrapping": 6,
    "signing": 6,
    "session": 6,
    "tools": 7,
    "verify": 6,
    "compare": 6,
    "scan": 6,
    "trajectory": 6,
    "view": 6,
    "wrapping": 6,
    "lock": 7,
    "listing": 7,
    "merging": 7,
    "models": 8,
    "cache": 8,
    "process": 7,
    "": 9,
    "adapters": 10,
    "cli": 11,
    "pytest_plugin": 11,
    "__main__": 12,
}


class Door(NamedTuple):
    """Where a third-party package may be imported: in these modules and below; ``one``: in a single one of them."""

    modules: tuple[str, ...]
    one: bool = False


DOORS: Mapping[str, Door] = {
    "agents": Door((f"{ROOT}.adapters._openai_agents",)),
    "anthropic": Door((f"{ROOT}.adapters.anthropic",)),
    "anyio": Door(
        (f"{ROOT}.engine.aio", f"{ROOT}.adapters._rpc", f"{ROOT}.adapters.mcp", f"{ROOT}.adapters.mcp_stdio")
    ),
    "attr": Door((f"{ROOT}.contracts",), one=True),
    "attrs": Door((f"{ROOT}.contracts",), one=True),
    "click": Door((f"{ROOT}.cli",)),
    "cryptography": Door((f"{ROOT}.crypto",)),
    "langchain": Door((f"{ROOT}.adapters._langchain",)),
    "langchain_core": Door((f"{ROOT}.adapters._langchain",)),
    "langgraph": Door((f"{ROOT}.adapters._langchain",)),
    "jsonschema": Door((f"{ROOT}.contracts",), one=True),
    "fastmcp": Door((f"{ROOT}.adapters.fastmcp",)),
    "mcp": Door((f"{ROOT}.adapters.mcp",)),
    "mcp_types": Door((f"{ROOT}.adapters.fastmcp", f"{ROOT}.adapters.mcp")),  # of SDK 2.x
    "msgspec": Door((f"{ROOT}.format", f"{ROOT}.contracts", f"{ROOT}.cli")),
    "openai": Door((f"{ROOT}.adapters.openai",)),
    "opentelemetry": Door((f"{ROOT}.telemetry",)),
    "pydantic": Door((f"{ROOT}.contracts",), one=True),
    "pydantic_ai": Door((f"{ROOT}.adapters._pydantic_ai",)),
    "pytest": Door((f"{ROOT}.pytest_plugin",)),
    "referencing": Door((f"{ROOT}.contracts",), one=True),  # a dependency of jsonschema, of one door with it
    "trio": Door((f"{ROOT}.engine.aio",)),
}

# What `format` may not know: files, clocks, threads, loops, chance.
IMPURE = frozenset({
    "asyncio", "concurrent", "glob", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets", "select",
    "shutil", "signal", "socket", "subprocess", "tempfile", "threading", "time",
})  # fmt: skip
# Values of these classes are kept in cassettes, so their names must be known to the one module that tags them.
PURE_EXCEPTIONS: Mapping[str, frozenset[str]] = {
    f"{ROOT}.format.values": frozenset({"pathlib"}),
}

# Importing the facade must stay cheap, and so must its first use: nothing but msgspec is loaded by it.
NOT_AT_IMPORT = tuple(sorted((DOORS.keys() - {"msgspec"}) | {"asyncio", "httpx", "httpx2"}))

MODULE_LINES_MAX = 400  # what one reads in a sitting
ADAPTER_LINES_MAX = 250  # an adapter translates; logic belongs to the engine
FUNCTION_LINES_MAX = 50  # one screen

TOP_LEVEL = frozenset({
    "CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md", "demo", "pyproject.toml", "schemas", "src", "tests",
})  # fmt: skip

# Written apart, so that this file does not hold what it forbids.
FORBIDDEN = tuple(
    word.replace("|", "")
    for word in (
        "TO|DO",
        "FIX|ME",
        "XX|X",
        "/wo|rk/",
        "DESI|GN §",
        "pypi|.org",
        "python|hosted.org",
        "npm|js.org",
        "deb|ian.org",
    )
)


class Import(NamedTuple):
    """One imported thing: ``target`` is a module of ours if there is one of that name, else what stood there."""

    module: str
    line: int
    target: str
    name: str  # what `from target import name` names, "" for a module

    def says(self, text: str) -> str:
        return f"{self.module}:{self.line}: {text}"


@lru_cache(maxsize=512)
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


def room(module: str) -> str:
    """The top-level module or package below the root that ``module`` is in; "" for the facade."""
    return module.partition(".")[2].partition(".")[0]


def is_in(module: str, place: str) -> bool:
    return module == place or module.startswith(place + ".")


def imports(sources: Sources) -> Iterator[Import]:
    """Every import, wherever it stands: at the top, in a function, under TYPE_CHECKING."""
    for module, source in sources.items():
        for node in ast.walk(parsed(source)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield Import(module, node.lineno, alias.name, "")
            elif isinstance(node, ast.ImportFrom):
                origin = "." * node.level + (node.module or "")
                for alias in node.names:
                    whole = f"{origin}.{alias.name}"
                    known = whole in sources
                    yield Import(module, node.lineno, whole if known else origin, "" if known else alias.name)


def check_floors(sources: Sources) -> list[str]:
    """Imports go down, never up and never sideways; no adapter imports another."""
    found = [f"{m}: {room(m)} has no floor in the table" for m in sources if room(m) not in FLOORS]
    for item in imports(sources):
        if not is_in(item.target, ROOT):
            if item.target.startswith("."):
                found.append(item.says("relative import"))
            continue
        here, there = room(item.module), room(item.target)
        if here not in FLOORS or there not in FLOORS:
            found += [] if there in FLOORS else [item.says(f"imports {item.target}, which has no floor in the table")]
        elif here != there and FLOORS[there] >= FLOORS[here]:
            found.append(item.says(f"{here or 'the facade'} may not import {item.target}: not a lower floor"))
        elif here == there == "adapters" and _is_other_adapter(item):
            found.append(item.says(f"an adapter imports another: {item.target}"))
    return found


def _is_other_adapter(item: Import) -> bool:
    """What adapters share lives in `adapters._shared` and the like."""
    name = item.target.split(".")[2:3]
    return bool(name) and item.target != item.module and not name[0].startswith("_")


def check_front_doors(sources: Sources) -> list[str]:
    """From another room only the package itself is imported, and only its public names. Adapters are doors each."""
    found: list[str] = []
    for item in imports(sources):
        if not is_in(item.target, ROOT) or room(item.target) == room(item.module):
            continue
        if item.target.count(".") > 1 and room(item.target) != "adapters":
            found.append(item.says(f"{item.target} is behind the front door of {room(item.target)}"))
        elif item.name.startswith("_") and not item.name.startswith("__"):
            found.append(item.says(f"{item.target}.{item.name} is private"))
    return found


def check_third_party(sources: Sources) -> list[str]:
    """One third-party package, one door."""
    found: list[str] = []
    users: dict[str, set[str]] = {}
    for item in imports(sources):
        package = item.target.split(".")[0]
        if package in {ROOT, "", *sys.stdlib_module_names}:
            continue
        door = DOORS.get(package)
        if door is None:
            found.append(item.says(f"{package} has no door in the table"))
        elif not any(is_in(item.module, place) for place in door.modules):
            found.append(item.says(f"{package} is imported outside {', '.join(door.modules)}"))
        else:
            users.setdefault(package, set()).add(item.module)
    for package, modules in users.items():
        if DOORS[package].one and len(modules) > 1:
            found.append(f"{package} is imported by more than one module: {', '.join(sorted(modules))}")
    return found


def check_pure(sources: Sources) -> list[str]:
    """``format`` imports nothing that touches the world, and opens nothing."""
    pure = {m: s for m, s in sources.items() if room(m) == "format"}
    found: list[str] = []
    for item in imports(pure):
        package = item.target.split(".")[0]
        if package in IMPURE and package not in PURE_EXCEPTIONS.get(item.module, frozenset()):
            found.append(item.says(f"format is pure, but {package} is imported"))
    return found + [f"{where}: format is pure, but open() is called" for where in _calls(pure, "open")]


def check_prints(sources: Sources) -> list[str]:
    """Only the command line prints."""
    return [
        f"{w}: print() outside cli" for w in _calls({m: s for m, s in sources.items() if room(m) != "cli"}, "print")
    ]


def _calls(sources: Sources, function: str) -> Iterator[str]:
    for module, source in sources.items():
        for node in ast.walk(parsed(source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
                yield f"{module}:{node.lineno}"


def check_cycles(sources: Sources) -> list[str]:
    """No module imports itself by way of others."""
    graph: dict[str, set[str]] = {module: set() for module in sources}
    for item in imports(sources):
        if item.target in graph:
            graph[item.module].add(item.target)
    found: list[str] = []
    done: set[str] = set()

    def walk(module: str, way: list[str]) -> None:
        if module in way:
            found.append("import cycle: " + " -> ".join([*way[way.index(module) :], module]))
        elif module not in done:
            for target in sorted(graph[module]):
                walk(target, [*way, module])
            done.add(module)

    for module in sorted(graph):
        walk(module, [])
    return found


def check_sizes(sources: Sources) -> list[str]:
    """Lines of a module, and lines of a function without decorators and docstring."""
    found: list[str] = []
    for module, source in sources.items():
        limit = ADAPTER_LINES_MAX if room(module) == "adapters" else MODULE_LINES_MAX
        lines = len(source.splitlines())
        if lines > limit:
            found.append(f"{module}: {lines} lines, {limit} allowed")
        for node in ast.walk(parsed(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1 - _docstring_lines(node)
                if length > FUNCTION_LINES_MAX:
                    found.append(
                        f"{module}:{node.lineno}: {node.name} has {length} lines, {FUNCTION_LINES_MAX} allowed"
                    )
    return found


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    if ast.get_docstring(node) is None:
        return 0
    first = node.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1


def exported(sources: Sources, module: str) -> list[str] | None:
    """The literal ``__all__`` of a module; None where it has none."""
    for node in parsed(sources[module]).body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if value is not None and any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            return list(ast.literal_eval(value))
    return None


def check_docstrings(sources: Sources) -> list[str]:
    """Each module says what it is for; so does each function and class that some ``__all__`` names."""
    found = [f"{m}: no module docstring" for m, s in sources.items() if not ast.get_docstring(parsed(s))]
    public: set[tuple[str, str]] = set()
    for module in sources:
        public |= {(module, name) for name in exported(sources, module) or ()}
    # A front door names what it imports: follow it to where the thing is defined.
    defined = {(i.module, i.name): i.target for i in imports(sources) if i.name and i.target in sources}
    for module, name in sorted(public):
        home = module
        while (home, name) in defined:
            home = defined[home, name]
        for node in parsed(sources[home]).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
                if any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list):
                    continue  # the implementation has it
                found += [] if ast.get_docstring(node) else [f"{home}:{node.lineno}: public {name} has no docstring"]
    return sorted(set(found))


def check_words(texts: Mapping[str, str]) -> list[str]:
    """``{path: text}``: no unfinished business, no address of the place where it was written."""
    pattern = re.compile("|".join(rf"\b{w}\b" if w.isalpha() else re.escape(w) for w in FORBIDDEN))
    return [
        f"{path}:{number}: forbidden word {match[0]}"
        for path, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        for match in pattern.finditer(line)
    ]


def check_top_level(names: set[str]) -> list[str]:
    """A newcomer finds few things at the top; dot-entries and what .gitignore names do not count."""
    return [
        f"{name} does not belong at the top level" for name in sorted(names - TOP_LEVEL) if not name.startswith(".")
    ]


def check_names(frozen: list[str], actual: list[str]) -> list[str]:
    """The public names are a promise: ``frozen`` is the sorted list of them, ``actual`` an ``__all__``."""
    found = [] if frozen == sorted(set(frozen)) else ["the frozen list is not sorted, or names something twice"]
    found += [] if len(actual) == len(set(actual)) else ["__all__ names something twice"]
    found += [f"{name} is public but not in the frozen list" for name in sorted(set(actual) - set(frozen))]
    return found + [f"{name} is in the frozen list but not public" for name in sorted(set(frozen) - set(actual))]
