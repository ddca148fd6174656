"""One test and its cassette: what is recorded, what is replayed, and what fails, with which words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import toolcassette as tc
from toolcassette.view import view

if TYPE_CHECKING:
    from tests.pytest_plugin.suite import Suite

pytest_plugins = ("pytester",)

ONE = "cassettes/test_a/test_a.cassette.jsonl"


def failure_of(result: pytest.RunResult) -> str:
    """The failure section of the report, without its title."""
    text = result.stdout.str()
    assert " FAILURES " in text, text
    return text.partition(" FAILURES ")[2].partition("\n")[2].partition("short test summary")[0]


def test_record_then_replay_runs_no_body(suite: Suite) -> None:
    suite.write(
        "test_a.py",
        "def test_a():\n    assert weather('Wuhan') == {'degrees': 5}\n"
        "    assert RUN == (['Wuhan'] if os.environ.get('REC') else [])\n",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REC", "1")
        suite.record()
    before = suite.cassettes()
    assert list(before) == [ONE]
    assert tc.verify(suite.path / ONE, deep=True).ok
    assert suite.run().ret == 0
    assert suite.run("--toolcassette=record").ret == 0  # there is a cassette: it is replayed
    assert suite.cassettes() == before
    assert suite.partials() == []


def test_without_a_cassette_the_first_call_fails_and_tells_the_command(suite: Suite) -> None:
    suite.write(
        "deep/test_a.py", "@pytest.mark.parametrize('city', ['a b'])\ndef test_a(city):\n    agent(city, city)\n"
    )
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert "there is no cassette to replay (no_cassette): tool weather" in failure_of(result)
    command = "record it: pytest --toolcassette=record 'deep/test_a.py::test_a[a b]'"
    assert command in failure_of(result)
    assert not (suite.path / "deep" / "cassettes").exists()


def test_the_command_that_is_told_does_it(suite: Suite) -> None:
    suite.write(
        "test_a.py", "@pytest.mark.parametrize('n', [1, 2])\nclass TestA:\n    def test_a(self, n): weather(str(n))\n"
    )
    told = failure_of(suite.run("-k", "2")).partition("record it: pytest ")[2].partition("\n")[0]
    mode, node = told.split()
    assert suite.run(mode, node.strip("'")).ret == 0
    assert len(suite.cassettes()) == 1
    suite.run().assert_outcomes(passed=1, failed=1)


def test_a_test_that_makes_no_call_needs_no_cassette_and_leaves_none(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a(): pass\n")
    for mode in ("replay", "record", "rewrite", "live"):
        assert suite.run(f"--toolcassette={mode}").ret == 0
    assert suite.cassettes() == {}
    assert suite.partials() == []


def test_a_swallowed_mismatch_fails_the_test_in_its_call_phase_with_the_report_as_text(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a():\n    agent('a', os.environ.get('CITY', 'b'))\n")
    suite.record()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CITY", "c")
        result = suite.run()
    result.assert_outcomes(failed=1)  # FAILED, and no ERROR beside it
    text = failure_of(result)
    assert "the arguments differ from those recorded here (arguments_differ): tool weather, path /, ordinal 1" in text
    assert "differs at $.city" in text
    assert f"cassette: {ONE}" in text
    assert "if the change is meant: pytest --toolcassette=rewrite test_a.py::test_a" in text
    assert "Traceback" not in text
    assert ".py:" not in text.replace("test_a.py::", "")  # no traceback: the body raised nothing
    result.stdout.fnmatch_lines(["FAILED test_a.py::test_a - Failed: the arguments differ*"])


def test_a_mismatch_that_leaves_the_body_shows_where_and_none_of_our_frames(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a():\n    weather(os.environ.get('CITY', 'b'))\n")
    suite.record()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CITY", "c")
        text = failure_of(suite.run())
        everything = failure_of(suite.run("--full-trace"))
    assert ">       weather(os.environ.get('CITY', 'b'))" in text.replace(">   ", ">   ")
    assert "(arguments_differ)" in text
    assert f"cassette: {ONE}" in text
    assert "toolcassette/engine" not in text
    assert "toolcassette/engine" in everything.replace("\\", "/")


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        ("agent('a', 'b')", "agent('a')", "1 recorded call was never made: tool weather, path /, ordinal 1"),
        ("agent('a')", "agent('a', 'a')", "every recorded call of this kind was made already (exhausted)"),
        ("agent('a', 'b')", "agent('b', 'a')", "another call was recorded in this place (order_differs)"),
        ("agent('a')", "agent('b', 'a')", "(arguments_differ)"),  # poisoned: the later right call is not served
        ("agent('a')", "pass", "no tool of this name was called at all"),
    ],
)
def test_each_difference_fails(suite: Suite, first: str, then: str, words: str) -> None:
    suite.write("test_a.py", f"def test_a():\n    {first}\n")
    suite.record()
    suite.write("test_a.py", f"def test_a():\n    {then}\n    assert RUN == []\n")
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert words in failure_of(result)


def test_allow_unconsumed_by_marker(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a(): agent('a', 'b')\n")
    suite.record()
    suite.write("test_a.py", "@pytest.mark.toolcassette(allow_unconsumed=True)\ndef test_a(): agent('a')\n")
    assert suite.run().ret == 0


def test_a_failure_of_its_own_is_kept_with_a_note(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a():\n    agent('a', 'b')\n")
    suite.record()
    suite.write("test_a.py", "def test_a():\n    agent('x')\n    assert 1 == 2, 'mine'\n")
    result = suite.run()
    result.assert_outcomes(failed=1)
    text = failure_of(result)
    assert "AssertionError: mine" in text
    assert "toolcassette: the arguments differ" in text
    result.stdout.fnmatch_lines(["FAILED test_a.py::test_a - AssertionError: mine*"])


def test_a_failed_recording_is_not_published_and_does_not_block_the_next(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a():\n    agent('a', 'b')\n    assert False\n")
    for _ in range(2):
        result = suite.run("--toolcassette=record")
        result.assert_outcomes(failed=1)
        assert "nothing was published, the partial is kept" in failure_of(result)
        result.stdout.fnmatch_lines([f"{ONE}: not published, kept as .partial"])
    assert suite.cassettes() == {}
    assert len(suite.partials()) == 2
    suite.write("test_a.py", "def test_a():\n    agent('a')\n")
    suite.record()
    assert list(suite.cassettes()) == [ONE]
    assert suite.run().ret == 0
    assert all(".partial." in name for name in suite.partials())  # both set aside: nothing is destroyed


def test_an_expected_exception_is_recorded_and_replayed(suite: Suite) -> None:
    suite.write(
        "test_a.py",
        "@tc.cassette_tool\ndef broken(n: int) -> int:\n    RUN.append(n)\n    raise ValueError('no')\n"
        "def test_a():\n    with pytest.raises(ValueError, match='no'):\n        broken(1)\n"
        "    assert RUN == ([1] if os.environ.get('REC') else [])\n"
        "pytestmark = pytest.mark.toolcassette\n",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REC", "1")
        suite.record()
    assert suite.run().ret == 0


def test_rewrite_without_a_change_leaves_every_byte(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a(): agent('a', 'b')\ndef test_b(): agent('c')\n")
    suite.record()
    before = suite.cassettes()
    stats = {name: (suite.path / name).stat() for name in before}
    result = suite.run("--toolcassette=rewrite")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["toolcassette: 2 tests, 0 calls replayed, 3 calls recorded, 2 cassettes unchanged"])
    assert suite.cassettes() == before
    assert {name: (suite.path / name).stat().st_mtime_ns for name in before} == {
        n: s.st_mtime_ns for n, s in stats.items()
    }
    assert suite.partials() == []


def test_rewrite_swaps_only_when_the_test_has_passed(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a(): agent('a')\n")
    suite.record()
    before = suite.cassettes()
    suite.write("test_a.py", "def test_a():\n    agent('b')\n    assert False\n")
    suite.run("--toolcassette=rewrite").assert_outcomes(failed=1)
    assert suite.cassettes() == before
    suite.write("test_a.py", "def test_a():\n    agent('b')\n")
    assert suite.run("--toolcassette=rewrite").ret == 0
    assert suite.cassettes() != before
    assert suite.run().ret == 0


def test_rewrite_of_a_test_that_calls_nothing_any_more_keeps_its_cassette_and_fails(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a(): agent('a')\n")
    suite.record()
    before = suite.cassettes()
    suite.write("test_a.py", "def test_a(): pass\n")
    result = suite.run("--toolcassette=rewrite")
    result.assert_outcomes(failed=1)
    assert "no selected call was made" in failure_of(result)
    assert suite.cassettes() == before
    assert suite.partials() == []


def test_live_keeps_and_reads_nothing(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a():\n    weather('a')\n    assert RUN == ['a']\n")
    assert suite.run("--toolcassette=live").ret == 0
    assert suite.cassettes() == {}


def test_a_damaged_cassette_fails_its_test_in_every_mode_that_reads_it(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a(): agent('a')\ndef test_b(): agent('b')\n")
    suite.record()
    file = suite.path / ONE
    file.write_bytes(file.read_bytes().replace(b'"city":"a"', b'"city":"b"'))
    for mode in ("replay", "record"):
        result = suite.run(f"--toolcassette={mode}")
        result.assert_outcomes(passed=1, failed=1)
        assert "the bytes of the frame do not match its hash at frame 1" in failure_of(result)
    suite.write("test_a.py", "def test_a(): pass\n")
    suite.run().assert_outcomes(failed=1)  # no call made, and yet nothing that was promised holds
    suite.write("test_a.py", "def test_a(): agent('a')\n")
    assert suite.run("--toolcassette=rewrite").ret == 0
    assert suite.run().ret == 0


def test_a_foreign_file_is_never_replaced(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a(): agent('a')\n")
    suite.write(ONE, "my notes\n")
    result = suite.run("--toolcassette=rewrite")
    result.assert_outcomes(failed=1)
    assert (suite.path / ONE).read_text() == "my notes\n"


def test_a_value_that_cannot_be_kept_fails_the_recording(suite: Suite) -> None:
    suite.write(
        "test_a.py",
        "@tc.cassette_tool\ndef odd(n: int):\n    return object()\n@pytest.mark.toolcassette\ndef test_a():\n"
        "    try:\n        odd(1)\n    except Exception:\n        pass\n",
    )
    result = suite.run("--toolcassette=record")
    result.assert_outcomes(failed=1)
    assert "cannot record $ of odd: object" in failure_of(result)
    assert suite.cassettes() == {}


def test_order_that_is_looser_than_recorded_is_said_plainly(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a(): agent('a')\n")
    suite.record()
    suite.write("test_a.py", "@pytest.mark.toolcassette(order='any')\ndef test_a(): agent('a')\n")
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["toolcassette: order=any is looser than the strict that was recorded*"])


def test_expected_failures_and_skips_are_what_pytest_makes_of_them(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a(): agent('a')\ndef test_b(): agent('b')\ndef test_c(): pass\n")
    suite.record()
    suite.write(
        "test_a.py",
        "@pytest.mark.xfail(raises=tc.CassetteMismatch, strict=True)\ndef test_a(): agent('x')\n"
        "@pytest.mark.xfail(raises=tc.UnconsumedCalls, strict=True)\ndef test_b(): pass\n"
        "def test_c():\n    agent\n    pytest.skip('later')\n"
        "@pytest.mark.skip\ndef test_d(): agent('d')\n"
        "pytestmark = pytest.mark.toolcassette\n",
    )
    suite.run().assert_outcomes(xfailed=2, skipped=2)
    suite.run("--toolcassette=record").assert_outcomes(xfailed=2, skipped=2)
    assert len(suite.cassettes()) == 2
    assert suite.partials() == []


def test_unittest_cases_have_cassettes_and_verdicts_too(suite: Suite) -> None:
    case = (
        "import unittest\n@pytest.mark.toolcassette\nclass TestA(unittest.TestCase):\n"
        "    def setUp(self): weather('setup')\n    def test_a(self):\n        agent({cities})\n        {end}\n"
    )
    suite.write("test_a.py", case.format(cities="'a'", end="assert False"))
    suite.run("--toolcassette=record").assert_outcomes(failed=1)
    assert suite.cassettes() == {}
    suite.write("test_a.py", case.format(cities="'a'", end="pass"))
    suite.record()
    assert suite.run().ret == 0
    suite.write("test_a.py", case.format(cities="'x'", end="pass"))
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert "(arguments_differ)" in failure_of(result)
    suite.write("test_a.py", case.format(cities="'x'", end="self.fail('mine')"))
    assert "AssertionError: mine" in failure_of(suite.run())


def test_a_view_is_kept_beside_each_recorded_cassette(suite: Suite) -> None:
    suite.write("pytest.ini", "[pytest]\ntoolcassette_view = true\n")
    suite.write("test_a.py", "def test_a(): agent('a')\ndef test_none(): pass\n")
    suite.record()
    kept = suite.path / "cassettes" / "test_a" / "test_a.cassette.md"
    assert [path.name for path in suite.path.rglob("*.md*")] == [kept.name]
    assert kept.read_text("utf-8") == view(tc.read_cassette(suite.path / ONE))
    assert kept.stat().st_mode & 0o777 == 0o600
    before = kept.stat()
    assert suite.run("--toolcassette=rewrite").ret == 0
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    suite.write("test_a.py", "def test_a():\n    agent('b')\n    assert os.environ.get('OK')\n")
    suite.run("--toolcassette=rewrite").assert_outcomes(failed=1)
    assert kept.stat().st_mtime_ns == before.st_mtime_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OK", "1")
        assert suite.run("--toolcassette=rewrite").ret == 0
    assert kept.read_text("utf-8") == view(tc.read_cassette(suite.path / ONE))
    assert '"b"' in kept.read_text("utf-8")
