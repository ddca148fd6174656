"""What was asked for: command line, marker, environment, ini, in this order; each validated, each refusal plain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.pytest_plugin.suite import Suite

pytest_plugins = ("pytester",)

PASSES = "def test_a():\n    assert weather('ab') == {'degrees': 2}\n"
"    assert len(RUN) == int(os.environ['BODIES'])\n"


@pytest.fixture
def bodies(suite: Suite, monkeypatch: pytest.MonkeyPatch):
    """``bodies(n)``: the test expects n tool bodies to have run."""
    return lambda count: monkeypatch.setenv("BODIES", str(count))


def test_the_command_line_beats_the_marker_the_environment_and_ini(suite: Suite, monkeypatch, bodies) -> None:
    suite.write("pytest.ini", "[pytest]\ntoolcassette_mode = record\n")
    suite.write("test_a.py", PASSES)
    bodies(1)
    assert suite.run().ret == 0  # ini records
    assert list(suite.cassettes()) == ["cassettes/test_a/test_a.cassette.jsonl"]
    bodies(0)
    assert suite.run().ret == 0  # record replays where there is a cassette
    monkeypatch.setenv("TOOLCASSETTE_MODE", "live")
    bodies(1)
    assert suite.run().ret == 0  # the environment beats ini
    suite.write("test_a.py", "pytestmark = pytest.mark.toolcassette(mode='replay')\n" + PASSES)
    bodies(0)
    assert suite.run().ret == 0  # the marker beats the environment
    bodies(1)
    assert suite.run("--toolcassette=live").ret == 0  # the command line beats the marker


@pytest.mark.parametrize("mode", ["record", "rewrite"])
def test_in_ci_recording_needs_the_command_line(suite: Suite, monkeypatch, bodies, mode: str) -> None:
    suite.write("test_a.py", PASSES)
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("TOOLCASSETTE_MODE", mode)
    result = suite.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*in CI, recording must be asked for on the command line: --toolcassette={mode}"])
    assert not suite.cassettes()
    bodies(1)
    assert suite.run(f"--toolcassette={mode}").ret == 0
    monkeypatch.setenv("TOOLCASSETTE_MODE", "replay")
    bodies(0)
    assert suite.run().ret == 0


def test_in_ci_a_marker_cannot_record(suite: Suite, monkeypatch) -> None:
    suite.write("test_a.py", "@pytest.mark.toolcassette(mode='record')\ndef test_a():\n    weather('a')\n")
    monkeypatch.setenv("CI", "1")
    result = suite.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*marker of test_a.py::test_a: in CI, recording must be asked for*"])
    monkeypatch.setenv("CI", "false")
    assert suite.run().ret == 0


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("ordr='strict'", "unknown option ordr; there are mode, include,*order*"),
        ("replace=True", "unknown option replace;*"),
        ("stale='set-aside'", "unknown option stale;*"),
        ("redact='pin'", "redact must be a list of rules"),
        ("redact=['pin', 'pin']", "two rules go by the id pin*"),
        ("secrets=['abc']", "secrets must be a list of texts of at least 4 characters*"),
        ("normalize=['moon']", "normalize takes uuid,*"),
        ("on_secret='tell'", "on_secret must be one of refuse, warn, ignore"),
        ("order='loose'", "order must be one of any, causal, strict"),
        ("mode='once'", "mode must be one of replay, record, rewrite, live"),
        ("include=[]", "include must name at least one tool"),
        ("include=['a', 'a']", "include has a twice"),
        ("include=['']", "include has an empty pattern"),
        ("include=3", "*"),
        ("stall_after='x'", "*"),
        ("calls_max=0", "calls_max must be at least 1"),
        ("name=''", "name must be text"),
        ("name=3", "name must be text"),
        ("'a', 'b'", "it takes one name, and keyword options"),
        ("'a', name='b'", "it takes one name, and keyword options"),
    ],
)
def test_a_wrong_marker_ends_the_run_and_names_its_test(suite: Suite, mark: str, words: str) -> None:
    suite.write("test_a.py", f"def test_ok(): pass\n@pytest.mark.toolcassette({mark})\ndef test_bad(): pass\n")
    result = suite.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*toolcassette marker of test_a.py::test_bad: {words}"])


@pytest.mark.parametrize(
    ("arguments", "ini", "words"),
    [
        (["--toolcassette-dir=/abs"], "", "*toolcassette_dir names a folder beside each test module*"),
        (["--toolcassette-dir=../up"], "", "*toolcassette_dir names a folder beside each test module*"),
        (["--toolcassette-dir=."], "", "*toolcassette_dir names a folder beside each test module*"),
        ([], "toolcassette_mode = once", "*toolcassette mode must be one of replay, record, rewrite, live"),
        ([], "toolcassette_redact = !", "*toolcassette_redact: a rule that is a name needs at least one letter*"),
        ([], "toolcassette_normalize = moon", "*toolcassette_normalize: normalize takes uuid,*"),
        ([], "toolcassette_unused = maybe", "*toolcassette_unused must be one of ignore, warn, fail"),
        (["--toolcassette=once"], "", "*invalid choice: 'once'*"),
        (["--toolcassette-unused=maybe"], "", "*invalid choice: 'maybe'*"),
    ],
)
def test_wrong_settings_end_the_run(suite: Suite, arguments: list[str], ini: str, words: str) -> None:
    suite.write("pytest.ini", f"[pytest]\n{ini}\n")
    result = suite.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([words])


def test_an_unknown_mode_in_the_environment_ends_the_run(suite: Suite, monkeypatch) -> None:
    monkeypatch.setenv("TOOLCASSETTE_MODE", "once")
    result = suite.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*toolcassette mode must be one of*"])


def test_dir_and_include_from_ini_and_command_line(suite: Suite) -> None:
    suite.write("pytest.ini", "[pytest]\ntoolcassette_dir = tapes/in\ntoolcassette_include =\n    wea*\n    other\n")
    suite.write("test_a.py", "import asyncio\ndef test_a():\n    weather('a'); asyncio.run(forecast('b'))\n")
    suite.record()
    suite.record("--toolcassette-dir=elsewhere")
    assert list(suite.cassettes()) == [
        "elsewhere/test_a/test_a.cassette.jsonl",
        "tapes/in/test_a/test_a.cassette.jsonl",
    ]
    assert b'"tool":"forecast"' not in b"".join(suite.cassettes().values())  # not selected: it runs beside
    assert suite.run().ret == 0


def test_the_closest_marker_wins_option_by_option(suite: Suite) -> None:
    suite.write(
        "test_a.py",
        "pytestmark = pytest.mark.toolcassette(order='causal', include=['weather'])\n"
        "@pytest.mark.toolcassette('mine', include='wea*')\nclass TestA:\n"
        "    @pytest.mark.toolcassette(order='any')\n    def test_a(self):\n        weather('a')\n",
    )
    suite.record()
    [(name, data)] = suite.cassettes().items()
    assert name == "cassettes/test_a/mine.cassette.jsonl"
    assert b'"include":["wea*"],"order":"any"' in data


def test_header_help_and_markers_speak_of_it(suite: Suite) -> None:
    suite.write("test_a.py", "def test_a(): pass\n")
    suite.run("--toolcassette=record").stdout.fnmatch_lines(["toolcassette: mode=record, dir=cassettes"])
    suite.run("--markers").stdout.fnmatch_lines(["@pytest.mark.toolcassette(name=None, *, mode=None, *"])
    suite.run("--help").stdout.fnmatch_lines(
        ["*--toolcassette=MODE*", "*--toolcassette-unused*", "*toolcassette_forbid_live*"]
    )
    assert suite.run("--strict-markers", "--strict-config").ret == 0
