"""The pytest plugin: each marked test replays its own cassette, and fails where the run and the cassette part.

    @pytest.mark.toolcassette
    def test_agent():
        assert agent("Wuhan?") == "19.5 degrees"

``pytest --toolcassette=record`` records the cassettes that are missing; afterwards no tool body runs.

Rule: a run without a marked test pays nothing. This module and what it imports know neither engine nor format; what
runs around a test is loaded, and its hooks registered, with the first test that has a cassette.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import pytest

from toolcassette.pytest_plugin.ledger import Ledger, module_folder, shown_path, unused_cassettes
from toolcassette.pytest_plugin.naming import SUFFIX, safe_name
from toolcassette.pytest_plugin.settings import (
    MARKER,
    MARKER_HELP,
    Settings,
    Wish,
    add_options,
    config_of,
    settings_of,
    wish_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from contextlib import AbstractContextManager

    from toolcassette.engine import Session
    from toolcassette.pytest_plugin.running import Runner

_FIXTURE: Final = "toolcassette"
_SETTINGS: Final = pytest.StashKey[Settings]()
_LEDGER: Final = pytest.StashKey[Ledger]()
_WISH: Final = pytest.StashKey[Wish]()
_WRONG: Final = pytest.StashKey[str]()
_UNUSED: Final = pytest.StashKey[list[str]]()
_WORKERS: Final = pytest.StashKey[list[bool]]()  # one entry a worker: whether it has reported
_RUNNER: Final = pytest.StashKey["Runner"]()
_NOTES_MAX: Final = 20
_TOLD: Final = {  # count -> its unit for one and for more, and whether zero is told too
    "tests": ("test", "tests", True),
    "replayed": ("call replayed", "calls replayed", True),
    "recorded": ("call recorded", "calls recorded", False),
    "unchanged": ("cassette unchanged", "cassettes unchanged", False),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Read what holds for the whole run."""
    config.addinivalue_line("markers", MARKER_HELP)
    config.stash[_SETTINGS] = settings_of(config)
    config.stash[_LEDGER] = Ledger()
    config.stash[_WORKERS] = []
    config.stash[_UNUSED] = []


def pytest_report_header(config: pytest.Config) -> str:
    """One line: the mode and the folder."""
    settings = config.stash[_SETTINGS]
    return f"toolcassette: mode={settings.explicit or settings.default}, dir={settings.folder}"


# -- collection -------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    """Know whose cassette is whose, before tests are deselected; give marked tests their fixture, after."""
    owned = config.stash[_LEDGER].owned
    owned.update(str(_path_of(item, _wish_of(item))) for item in items if _is_ours(item))
    result = yield
    for item in items:  # again: a marker may have been added meanwhile
        if _is_ours(item):
            item.stash[_WISH] = wish = _wish_of(item)
            owned.add(str(_path_of(item, wish)))
            item.fixturenames = _with_fixture(item)
            _runner(config)
    return result


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Not all tests run, so unused cassettes are not judged."""
    for item in items[:1]:
        item.config.stash[_LEDGER].partly = True


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A module that cannot be collected (or skips itself) owns the cassettes that lie in its folder."""
    report = yield
    if not report.passed:
        config = collector.config
        ledger = config.stash[_LEDGER]
        if isinstance(collector, pytest.Module):
            ledger.blind.add(str(module_folder(collector.path, config.stash[_SETTINGS].folder)))
        else:
            ledger.partly = True
    return report


def _is_ours(item: pytest.Item) -> TypeGuard[pytest.Function]:
    """A test function that has the marker, or asks for the fixture."""
    return isinstance(item, pytest.Function) and (
        item.get_closest_marker(MARKER) is not None or _FIXTURE in item.fixturenames
    )


def _wish_of(item: pytest.Item) -> Wish:
    """What the markers say. A wrong one ends the run; a worker of pytest-xdist cannot, there it fails its test."""
    try:
        return wish_of(item, item.config.stash[_SETTINGS])
    except pytest.UsageError as error:
        if not hasattr(item.config, "workerinput"):
            raise
        item.stash[_WRONG] = str(error)
        return Wish()


def _path_of(item: pytest.Item, wish: Wish) -> Path:
    """Where the cassette of a test lies, if the fixture ``toolcassette_path`` does not say otherwise."""
    classes = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    name = wish.name or ".".join([*classes, item.name])
    return module_folder(item.path, item.config.stash[_SETTINGS].folder) / (safe_name(name) + SUFFIX)


def _with_fixture(item: pytest.Function) -> list[str]:
    """The names of a test's fixtures, in the order of their set-up: ours is the first of the test's own scope.

    Wider ones come before it: their tool calls would else land in the cassette of whichever test is the first.
    """
    known = item._fixtureinfo.name2fixturedefs  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - the scopes stand nowhere else
    others = [name for name in item.fixturenames if name != _FIXTURE]

    def is_wider(name: str) -> bool:
        return bool(known.get(name)) and known[name][-1].scope != "function"

    place = next((at for at, name in enumerate(others) if not is_wider(name)), len(others))
    return [*others[:place], _FIXTURE, *others[place:]]


def _runner(config: pytest.Config) -> Runner:
    """The hooks around tests that have a cassette, registered once."""
    runner = config.stash.get(_RUNNER, None)
    if runner is None:
        from toolcassette.pytest_plugin.running import Runner

        runner = Runner(config, config.stash[_SETTINGS], config.stash[_LEDGER], lambda i: i.stash.get(_WISH, None))
        config.stash[_RUNNER] = runner
        config.pluginmanager.register(runner, "toolcassette_runner")
    return runner


# -- fixtures ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def toolcassette_config() -> Mapping[str, Any]:
    """Options for every cassette, as a dict (``include``, ``order``, ...): override it. A test's marker wins."""
    return {}


@pytest.fixture
def toolcassette_path(request: pytest.FixtureRequest) -> Path:
    """The cassette of this test: override it to keep cassettes elsewhere."""
    item = request.node
    return _path_of(item, item.stash.get(_WISH, None) or _wish_of(item))


@pytest.fixture
def toolcassette(
    request: pytest.FixtureRequest, toolcassette_config: Mapping[str, Any], toolcassette_path: Path
) -> Generator[Session, None, None]:
    """The open session of this test. The marker ``toolcassette`` brings it to tests that do not ask for it by name."""
    item = request.node
    wish = item.stash.get(_WISH, None)
    if wish is None:
        why = "toolcassette: ask for the session by marker or argument; getfixturevalue comes too late"
        pytest.fail(why, pytrace=False)
    if (wrong := item.stash.get(_WRONG, None)) is not None:
        pytest.fail(wrong, pytrace=False)
    yield from _runner(request.config).open(item, wish, _checked(toolcassette_config), Path(toolcassette_path))


@pytest.fixture(scope="session")
def toolcassette_session(
    request: pytest.FixtureRequest, toolcassette_config: Mapping[str, Any]
) -> Callable[..., AbstractContextManager[Session]]:
    """For a fixture that is wider than a test, a cassette of its own.

    Enter what it makes of a name: ``with toolcassette_session("index"): ...``. The cassette lies in the cassette
    folder of the root folder; ``mode``, ``include`` and other options are those of the marker.
    """
    from toolcassette.pytest_plugin.wide import opener

    config = request.config
    return opener(config, config.stash[_SETTINGS], config.stash[_LEDGER], _checked(toolcassette_config))


def _checked(told: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return config_of(told)
    except (TypeError, ValueError) as error:
        pytest.fail(f"fixture toolcassette_config: {error}", pytrace=False)


# -- the run ----------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """With the ini key, no test of a replaying run calls a wrapped tool for real."""
    settings = session.config.stash[_SETTINGS]
    if not settings.forbid_live or (settings.explicit or settings.default) != "replay":
        return (yield)
    from toolcassette.pytest_plugin.running import nothing_live

    with nothing_live():
        return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist how tests are dealt out, and wait for its report."""
    node.workerinput["toolcassette_dist"] = node.config.getoption("dist")
    config: pytest.Config = node.config
    config.stash[_WORKERS].append(False)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take a worker's ledger."""
    data = getattr(node, "workeroutput", {}).get("toolcassette")
    if data is not None:
        config: pytest.Config = node.config
        workers = config.stash[_WORKERS]
        workers[workers.index(False)] = True
        config.stash[_LEDGER].merge(data)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Judge unused cassettes, once, where all is known."""
    config = session.config
    settings, ledger = config.stash[_SETTINGS], config.stash[_LEDGER]
    output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    if output is not None:
        output["toolcassette"] = ledger.as_data()
        return
    workers = config.stash[_WORKERS]
    asked = bool(ledger.owned) or config.option.toolcassette_unused is not None
    if settings.unused == "ignore" or not asked or exitstatus not in (0, 1) or not all(workers):
        return
    unused = unused_cassettes(config, settings.folder, ledger)
    config.stash[_UNUSED] = [shown_path(path, config) for path in unused]
    if unused and settings.unused == "fail" and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What is worth a look, and one line of numbers."""
    ledger = config.stash[_LEDGER]
    lines = [f"unused cassette: {path}" for path in config.stash[_UNUSED]]
    lines += [f"moved? {old} -> {new}" for old, new in ledger.moved]
    lines += ledger.notes[:_NOTES_MAX]
    if len(ledger.notes) > _NOTES_MAX:
        lines.append(f"and {len(ledger.notes) - _NOTES_MAX} more notes")
    if lines:
        terminalreporter.section("toolcassette")
    counts = ledger.counts
    if counts["tests"]:
        words = [f"{counts[what]} {unit[counts[what] != 1]}" for what, unit in _TOLD.items() if counts[what] or unit[2]]
        lines.append("toolcassette: " + ", ".join(words))
    for line in lines:
        terminalreporter.write_line(line)
