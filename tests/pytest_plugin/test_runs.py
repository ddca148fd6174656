"""A run as a whole: parts of a suite, unused and renamed cassettes, what is told at the end."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

import toolcassette as tc
from toolcassette.pytest_plugin.sharing import Draft

if TYPE_CHECKING:
    from pathlib import Path

    from tests.pytest_plugin.suite import Suite

pytest_plugins = ("pytester",)

THREE = "def test_a(): weather('a')\ndef test_b(): weather('b')\ndef test_c(): weather('c')\n"


def unused_in(result: pytest.RunResult) -> list[str]:
    return [line.partition(": ")[2] for line in result.outlines if line.startswith("unused cassette: ")]


def test_what_was_recorded_for_all_is_published_however_large_its_frames_are(tmp_path: Path) -> None:
    """A frame beyond the limit that holds by default, which this recording was allowed."""
    path = tmp_path / "x.cassette.jsonl"
    draft = Draft(path)
    with tc.record(path, ["load"], store=draft.store, line_bytes_max=32 << 20, sync="none") as session:
        tc.Registry().wrap(lambda: "x" * (17 << 20), name="load")()
    assert session.verdict is not None
    verdict = draft.published(session.verdict)
    assert (verdict.outcome, verdict.error) == ("published", None)
    assert len(tc.read_cassette(path)) == 1


def test_parts_of_a_suite_replay_and_judge_nothing(suite: Suite) -> None:
    suite.write("test_a.py", THREE)
    suite.record()
    suite.write("test_a.py", THREE.replace("test_c", "test_d").replace("weather('c')", "pass"))
    full = suite.run("--toolcassette-unused=fail")
    full.assert_outcomes(passed=3)
    assert full.ret == pytest.ExitCode.TESTS_FAILED
    assert unused_in(full) == ["cassettes/test_a/test_c.cassette.jsonl"]
    for part in (["-k", "test_b"], ["test_a.py::test_a"], ["-x"], ["--deselect", "test_a.py::test_b"], ["--maxfail=3"]):
        result = suite.run("--toolcassette-unused=fail", *part)
        assert result.ret == 0, part
        assert unused_in(result) == [], part


def test_unused_is_a_warning_unless_asked_and_can_be_ignored(suite: Suite) -> None:
    suite.write("test_a.py", THREE)
    suite.record()
    suite.write("test_a.py", "def test_a(): weather('a')\n")
    gone = ["cassettes/test_a/test_b.cassette.jsonl", "cassettes/test_a/test_c.cassette.jsonl"]
    warned = suite.run()
    assert (warned.ret, unused_in(warned)) == (0, gone)
    ignored = suite.run("--toolcassette-unused=ignore")
    assert (ignored.ret, unused_in(ignored)) == (0, [])
    suite.write("pytest.ini", "[pytest]\ntoolcassette_unused = fail\n")
    assert suite.run().ret == 1
    assert len(suite.cassettes()) == 3  # nothing is ever deleted


def test_only_places_that_were_collected_whole_are_judged(suite: Suite) -> None:
    for folder in ("one", "two"):
        suite.write(f"{folder}/test_{folder}.py", THREE)
    suite.record()
    suite.write("one/test_one.py", "def test_a(): weather('a')\n")
    (suite.path / "two" / "test_two.py").unlink()
    gone = [f"one/cassettes/test_one/test_{n}.cassette.jsonl" for n in "bc"]
    lost = [f"two/cassettes/test_two/test_{n}.cassette.jsonl" for n in "abc"]
    assert unused_in(suite.run("one")) == gone
    assert unused_in(suite.run("one/test_one.py")) == gone
    assert unused_in(suite.run()) == gone + lost  # a folder without a test is judged with the folder above


def test_tests_that_are_skipped_or_cannot_be_imported_own_their_cassettes(suite: Suite) -> None:
    suite.write("test_a.py", THREE)
    suite.write("test_b.py", THREE)
    suite.record()
    suite.write(
        "test_a.py",
        "@pytest.mark.skip\ndef test_a(): pass\n"
        + THREE.partition("\n")[2]
        + "pytestmark = pytest.mark.toolcassette\n",
    )
    suite.write("test_b.py", "pytest.skip('not here', allow_module_level=True)\n")
    result = suite.run("--toolcassette-unused=fail")
    assert (result.ret, unused_in(result)) == (0, [])
    suite.write("test_b.py", "import nowhere\n")
    result = suite.run("--toolcassette-unused=fail", "--continue-on-collection-errors")
    assert unused_in(result) == []


def test_last_failed_replays_and_judges_nothing(suite: Suite) -> None:
    suite.write("test_a.py", THREE)
    suite.record()
    suite.write("test_a.py", THREE.replace("weather('c')", "weather('x')"))
    on = "-pcacheprovider"
    suite.run(on).assert_outcomes(passed=2, failed=1)
    result = suite.run(on, "--lf", "--toolcassette-unused=fail")
    result.assert_outcomes(failed=1)
    assert unused_in(result) == []


@pytest.mark.parametrize(
    ("renamed", "where", "move"),
    [
        (
            "test_new",
            "test_a.py",
            "git mv cassettes/test_a/test_b.cassette.jsonl cassettes/test_a/test_new.cassette.jsonl",
        ),
        (
            "test_b",
            "test_z.py",
            (
                "mkdir -p cassettes/test_z && "
                "git mv cassettes/test_a/test_b.cassette.jsonl cassettes/test_z/test_b.cassette.jsonl"
            ),
        ),
    ],
)
def test_a_renamed_or_moved_test_is_told_which_orphan_is_its_own(
    suite: Suite, renamed: str, where: str, move: str
) -> None:
    suite.write("test_a.py", THREE)
    suite.record()
    suite.write("test_a.py", THREE.replace("def test_b(): weather('b')\n", ""))
    old = (suite.path / where).read_text() if where == "test_a.py" else ""
    suite.write(where, (old and old.partition("toolcassette\n")[2]) + f"def {renamed}(): weather('b')\n")
    result = suite.run()
    result.assert_outcomes(passed=2, failed=1)
    assert move in result.stdout.str()
    told = f"moved? cassettes/test_a/test_b.cassette.jsonl -> cassettes/*{renamed}.cassette.jsonl"
    result.stdout.fnmatch_lines([told])
    assert move in suite.run("-k", renamed).stdout.str()  # what is deselected is known to own its cassette
    assert "git mv" not in suite.run(f"{where}::{renamed}").stdout.str()  # what else there is was not collected
    for command in move.split(" && "):
        program, *arguments = command.split()
        if program == "mkdir":
            (suite.path / arguments[1]).mkdir(parents=True)
        else:
            (suite.path / arguments[1]).rename(suite.path / arguments[2])
    result = suite.run("--toolcassette-unused=fail")
    assert result.ret == 0, result.stdout.str()


def test_an_orphan_that_begins_with_another_call_is_not_offered(suite: Suite) -> None:
    suite.write("test_a.py", THREE)
    suite.record()
    suite.write("test_a.py", "def test_new(): weather('another')\n")
    assert "git mv" not in suite.run().stdout.str()


def test_parameters_classes_and_folders_have_cassettes_apart(suite: Suite) -> None:
    body = (
        "@pytest.mark.parametrize('x', ['a/b', 'a\\\\b', 'a:b', '../../up', 'CON',"
        "'A', 'a', '', 'x' * 300, 'x' * 301])\n"
        "def test_a(x): weather(x)\n"
        "class TestA:\n    def test_a(self): weather('1')\n    class TestB:\n"
        "        def test_a(self): weather('2')\n"
        "class Testa:\n    def test_a(self): weather('3')\n"
    )
    suite.write("one/test_a.py", body)
    suite.write("one/two/test_b.py", body)
    suite.record(passed=26)
    names = list(suite.cassettes())
    assert len({name.lower() for name in names}) == 26
    assert {name.rpartition("/")[0] for name in names} == {"one/cassettes/test_a", "one/two/cassettes/test_b"}
    assert max(len(name.rpartition("/")[2]) for name in names) <= 120
    suite.run("--toolcassette-unused=fail").assert_outcomes(passed=26)


def test_one_parameter_can_be_marked_alone(suite: Suite) -> None:
    suite.write(
        "test_a.py",
        "@pytest.mark.parametrize('x', ['plain', pytest.param('marked', marks=pytest.mark.toolcassette)])\n"
        "def test_a(x):\n    weather(x)\n    assert (x in RUN) == (x == 'plain' or bool(os.environ.get('REC')))\n",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REC", "1")
        suite.record(passed=2)
    assert len(suite.cassettes()) == 1
    suite.run().assert_outcomes(passed=2)


def test_a_marker_added_while_collecting_counts(suite: Suite) -> None:
    suite.write(
        "conftest.py",
        "import pytest\ndef pytest_collection_modifyitems(items):\n    for item in items:\n"
        "        item.add_marker(pytest.mark.toolcassette)\n",
    )
    suite.write("test_a.py", "# no toolcassette here\ndef test_a(): weather('a')\n")
    suite.record(passed=1)
    assert len(suite.cassettes()) == 1
    assert suite.run("--toolcassette-unused=fail").ret == 0


def test_doctests_are_left_alone(suite: Suite) -> None:
    suite.write(
        "test_a.py", "def test_a():\n    '''\n    >>> weather('ab')\n    {'degrees': 2}\n    '''\n    weather('a')\n"
    )
    suite.run("--doctest-modules", "--toolcassette=record").assert_outcomes(passed=2)
    assert len(suite.cassettes()) == 1
    suite.run("--doctest-modules").assert_outcomes(passed=2)


def test_adding_one_test_to_a_suite_of_200_records_one_and_replays_the_rest(suite: Suite) -> None:
    suite.write(
        "test_a.py",
        "pytestmark = pytest.mark.toolcassette(sync='none')\n@pytest.mark.parametrize('n', range(199))\n"
        "def test_a(n): weather(str(n))\n",
    )
    suite.record(passed=199)
    before = suite.cassettes()
    suite.write("test_b.py", "def test_new():\n    weather('new')\n    assert RUN == ['new']\n")
    result = suite.run("--toolcassette=record", "--toolcassette-unused=fail")
    result.assert_outcomes(passed=200)
    result.stdout.fnmatch_lines(["toolcassette: 200 tests, 199 calls replayed, 1 call recorded"])
    after = suite.cassettes()
    assert sorted(set(after) - set(before)) == ["cassettes/test_b/test_new.cassette.jsonl"]
    assert {name: after[name] for name in before} == before


def test_the_end_tells_numbers_and_a_run_without_cassettes_tells_nothing(suite: Suite) -> None:
    suite.write("test_a.py", "# toolcassette\ndef test_a(): weather('a')\n")
    assert not [line for line in suite.run("-q").outlines if "toolcassette" in line]
    suite.write("test_a.py", THREE)
    suite.record()
    suite.run("-q").stdout.fnmatch_lines(["toolcassette: 3 tests, 3 calls replayed"])


def test_junit_properties_tell_cassette_head_and_calls(suite: Suite) -> None:
    suite.write("test_a.py", THREE + "def test_none(): pass\n")
    suite.record()
    suite.run("--junitxml=report.xml")
    cases = {case.get("name"): case for case in ET.parse(suite.path / "report.xml").iter("testcase")}
    told = {p.get("name"): p.get("value") for p in cases["test_b"].iter("property")}
    name = "cassettes/test_a/test_b.cassette.jsonl"
    head = tc.verify(suite.path / name).head
    assert told == {"toolcassette_cassette": name, "toolcassette_head": head, "toolcassette_calls": "1"}
    assert list(cases["test_none"].iter("property")) == []


def test_a_cassette_whose_include_selects_nothing_is_noted(suite: Suite) -> None:
    suite.write("test_a.py", "@pytest.mark.toolcassette(include=['weather', 'wether'])\ndef test_a(): weather('a')\n")
    result = suite.run("--toolcassette=record")
    result.stdout.fnmatch_lines(["cassettes/test_a/test_a.cassette.jsonl: include selected nothing by wether"])
    assert result.ret == 0
