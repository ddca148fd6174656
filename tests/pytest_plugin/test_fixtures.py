"""The fixtures: what lands in which cassette, what is configured where, and what may run for real beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.pytest_plugin.suite import Suite

pytest_plugins = ("pytester",)


def test_the_fixture_alone_does_it_too_and_hands_out_the_session(suite: Suite) -> None:
    suite.write(
        "test_a.py",
        "def test_a(toolcassette):\n    weather('a')\n    assert toolcassette.is_open\n"
        "    assert toolcassette.mode == os.environ['MODE']\n"
        "@pytest.fixture\ndef mine(toolcassette):\n    return toolcassette\n"
        "def test_b(mine):\n    weather('b')\n    assert mine.mode == os.environ['MODE']\n"
        "def test_live():\n    weather('c')\n    assert RUN[-1] == 'c'\n",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODE", "record")
        suite.record(passed=3)
        patch.setenv("MODE", "replay")
        suite.run().assert_outcomes(passed=3)
    assert sorted(suite.cassettes()) == [f"cassettes/test_a/test_{n}.cassette.jsonl" for n in "ab"]


def test_the_session_spans_set_up_and_call_and_wider_fixtures_stay_out(suite: Suite) -> None:
    suite.write(
        "test_a.py",
        "@pytest.fixture(scope='module', autouse=True)\ndef wide():\n    weather('wide')\n"
        "@pytest.fixture(autouse=True)\ndef narrow():\n    weather('narrow')\n    yield\n    weather('after')\n"
        "@pytest.fixture\ndef asked():\n    weather('asked')\n"
        "def test_a(asked): weather('body')\ndef test_b(asked, toolcassette): weather('body')\n"
        "pytestmark = pytest.mark.toolcassette(mode='record')\n",
    )
    suite.record()
    for name in ("test_a", "test_b"):
        data = suite.cassettes()[f"cassettes/test_a/{name}.cassette.jsonl"].decode()
        cities = [line.partition('"city":"')[2].partition('"')[0] for line in data.splitlines() if '"args"' in line]
        assert cities == ["narrow", "asked", "body"], name


def test_in_replay_a_call_outside_the_session_raises_in_a_marked_test_and_its_fixtures(suite: Suite) -> None:
    body = (
        "@pytest.fixture(scope='module')\ndef wide():\n    {wide}\n"
        "@pytest.fixture\ndef narrow():\n    yield\n    {after}\n"
        "@pytest.mark.toolcassette\ndef test_a(wide, narrow): weather('a')\n"
        "def test_unmarked():\n    weather('live')\n    assert RUN[-1] == 'live'\n"
    )
    suite.write("test_a.py", body.format(wide="pass", after="pass"))
    suite.record()
    suite.run().assert_outcomes(passed=2)
    suite.write("test_a.py", body.format(wide="weather('w')", after="pass"))
    result = suite.run()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*NoSession: tool weather has no session (forbidden)*"])
    suite.write("test_a.py", body.format(wide="pass", after="weather('w')"))
    suite.run().assert_outcomes(passed=2, errors=1)
    suite.run("--toolcassette=rewrite").assert_outcomes(passed=2)  # while recording it simply runs


def test_forbid_live_extends_that_to_all_tests(suite: Suite) -> None:
    suite.write("pytest.ini", "[pytest]\ntoolcassette_forbid_live = true\n")
    suite.write(
        "test_a.py",
        "def test_unmarked(): weather('live')\n@pytest.mark.toolcassette(mode='live')\n"
        "def test_live(): weather('live')\n",
    )
    result = suite.run()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*NoSession: tool weather has no session (forbidden)*"])
    suite.run("--toolcassette=record").assert_outcomes(passed=2)


def test_include_decides_what_runs_beside_a_replay(suite: Suite) -> None:
    body = (
        "def test_a():\n    weather('a')\n    {other}\n{mark}\n"
        "@tc.cassette_tool\ndef other(n: int) -> int:\n    return n\n"
    )
    marked = "pytestmark = pytest.mark.toolcassette(include='weather')"
    suite.write("test_a.py", body.format(other="other(1)", mark=marked))
    suite.record()
    assert suite.run().ret == 0  # named by the marker: the other runs for real
    suite.write("test_a.py", body.format(other="other(1)", mark="pytestmark = pytest.mark.toolcassette"))
    result = suite.run()
    result.assert_outcomes(failed=1)  # the cassette's own include never lets a tool run
    result.stdout.fnmatch_lines(["*NotSelected: tool other is not selected*"])


def test_config_and_path_can_be_overridden_and_the_marker_wins(suite: Suite) -> None:
    suite.write(
        "conftest.py",
        "import pytest\n@pytest.fixture(scope='session')\ndef toolcassette_config():\n"
        "    return {'order': 'causal', 'include': ['weather']}\n"
        "@pytest.fixture\ndef toolcassette_path(toolcassette_path, request):\n"
        "    return request.config.rootpath / 'flat' / toolcassette_path.name\n",
    )
    suite.write(
        "test_a.py",
        "def test_a(): weather('a')\n@pytest.mark.toolcassette(order='any')\ndef test_b(): weather('b')\n"
        "pytestmark = pytest.mark.toolcassette\n",
    )
    suite.record()
    made = suite.cassettes()
    assert sorted(made) == ["flat/test_a.cassette.jsonl", "flat/test_b.cassette.jsonl"]
    assert b'"include":["weather"],"order":"causal"' in made["flat/test_a.cassette.jsonl"]
    assert b'"include":["weather"],"order":"any"' in made["flat/test_b.cassette.jsonl"]
    assert suite.run("--toolcassette-unused=fail").ret == 0


def test_a_wrong_config_is_said_plainly(suite: Suite) -> None:
    suite.write(
        "conftest.py",
        "import pytest\n@pytest.fixture(scope='session')\ndef toolcassette_config():\n    return {'ordr': 1}\n",
    )
    suite.write("test_a.py", "def test_a(): pass\n")
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["fixture toolcassette_config: unknown option ordr; there are include, *"])


WIDE = (
    "@pytest.fixture(scope='session')\ndef index(toolcassette_session):\n"
    "    with toolcassette_session('the index') as session:\n        value = weather({city})\n    return value\n"
    "@pytest.mark.toolcassette\ndef test_a(index):\n    assert weather('a') == {{'degrees': 1}}\n"
    "    assert index == {{'degrees': 5}}\n"
    "def test_b(index):\n    assert index == {{'degrees': 5}}\n"
)


def test_a_wider_fixture_has_a_cassette_of_its_own(suite: Suite) -> None:
    suite.write("deep/test_a.py", WIDE.format(city="'index'"))
    suite.record()
    [one, other] = sorted(suite.cassettes())
    assert one.startswith("cassettes/the-index-")
    assert other == "deep/cassettes/test_a/test_a.cassette.jsonl"
    suite.run("--toolcassette-unused=fail").assert_outcomes(passed=2)
    suite.write("deep/test_a.py", WIDE.format(city="'other'"))
    result = suite.run()
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*CassetteMismatch: the arguments differ*"])
    assert suite.run("--toolcassette=rewrite").ret == 0
    suite.run().assert_outcomes(passed=2)


def test_a_wider_session_that_raises_is_not_published_and_options_are_checked(suite: Suite) -> None:
    suite.write("test_a.py", WIDE.format(city="'index' if os.environ.get('OK') else weather('x') and 1 / 0"))
    suite.run("--toolcassette=record").assert_outcomes(errors=2)
    assert suite.cassettes() == {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OK", "1")
        suite.record()
    suite.write(
        "test_b.py", "def test_b(toolcassette_session):\n    with toolcassette_session('x', ordr=1):\n        pass\n"
    )
    suite.run("test_b.py").stdout.fnmatch_lines(["*UsageError: toolcassette_session('x'): unknown option ordr;*"])


def test_a_missing_cassette_of_a_wider_session(suite: Suite) -> None:
    suite.write("test_a.py", WIDE.format(city="'index'"))
    result = suite.run()
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*(no_cassette): tool weather*record it: pytest --toolcassette=record*"])


def test_asked_for_in_the_middle_of_a_test_it_is_refused(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a(request):\n    request.getfixturevalue('toolcassette')\n")
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["toolcassette: ask for the session by marker or argument*"])


def test_a_pattern_of_the_config_may_stand_alone(suite: Suite) -> None:
    """As in the marker; and an unknown option is told what there is here, which is no ``mode``."""
    config = "import pytest\n@pytest.fixture(scope='session')\ndef toolcassette_config():\n    return {}\n"
    suite.write("test_a.py", "def test_a(): weather('a')\n")
    suite.write("conftest.py", config.format("{'include': 'wea*'}"))
    suite.record()
    assert b'"include":["wea*"]' in b"".join(suite.cassettes().values())
    for wrong, words in (
        ("{'include': []}", "include must name at least one tool"),
        ("{'include': ['a', 'a']}", "include has a twice"),
        ("{'mode': 'live'}", "unknown option mode; there are include, allow_empty*"),
    ):
        suite.write("conftest.py", config.format(wrong))
        result = suite.run()
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines([f"fixture toolcassette_config: {words}"])
