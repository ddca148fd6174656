"""Secrets in tests: none in a cassette, another one in the next run, and a cassette that holds one fails its test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import toolcassette as tc

if TYPE_CHECKING:
    from tests.pytest_plugin.suite import Suite

pytest_plugins = ("pytester",)

SECRET = "Zx81kQm0pLw93v"
TOOL = """
@tc.cassette_tool
def login(password: str, pin: str) -> str:
    RUN.append(1)
    return f"{password} in {os.getcwd()}"

"""
ASKS = "    found = login(os.environ['TYPED'], os.environ.get('PIN', '9381'))\n"


def marked(options: str = "") -> str:
    return f"{TOOL}@pytest.mark.toolcassette({options})\ndef test_a():\n{ASKS}"


@pytest.fixture(autouse=True)
def typed(monkeypatch: pytest.MonkeyPatch):
    """``typed(secret, pin)``: what the tests of the suite are told; SECRET and 9381 to begin with."""

    def tell(secret: str, pin: str = "9381") -> None:
        monkeypatch.setenv("TYPED", secret)
        monkeypatch.setenv("PIN", pin)

    tell(SECRET)
    return tell


def written(suite: Suite) -> str:
    return b"".join(suite.cassettes().values()).decode()


def test_recorded_with_one_secret_and_replayed_with_another(suite: Suite, typed) -> None:
    suite.write("test_a.py", marked() + "    assert RUN == ([1] if os.environ['TYPED'][0] == 'Z' else [])\n")
    suite.record()
    assert SECRET not in written(suite)
    typed("0ther-Secret-of-today")
    result = suite.run()
    assert result.ret == 0, result.stdout.str()
    typed("0ther-Secret-of-today", "1234")
    assert suite.run().ret == 1  # what is no secret is compared


def test_rules_of_a_marker(suite: Suite, typed) -> None:
    suite.write("test_a.py", marked("redact=['pin'], normalize=['cwd'], secrets=['plumtree']"))
    suite.record()
    assert not [word for word in (SECRET, "9381", str(suite.path)) if word in written(suite)]
    assert '"rules":["default/1","pin#' in written(suite)
    typed("0ther-Secret-of-today", "1234")
    assert suite.run().ret == 0


def test_rules_of_the_ini_file_and_the_fixture(suite: Suite, typed) -> None:
    ini = "[pytest]\ntoolcassette_redact =\n    pin\n    $.user.ssn\ntoolcassette_normalize = cwd\n"
    suite.write("pytest.ini", ini)
    suite.write("test_a.py", marked())
    suite.write("test_b.py", marked("redact=False").replace("test_a", "test_b"))
    suite.record()
    found = {name.split("/")[1]: data.decode() for name, data in suite.cassettes().items()}
    assert not [word for word in (SECRET, "9381", str(suite.path)) if word in found["test_a"]]
    assert SECRET in found["test_b"]  # the marker beats the ini file
    assert '"rules":[]' in found["test_b"]
    typed("0ther-Secret-of-today", "1234")
    assert suite.run("test_a.py").ret == 0
    suite.write(
        "conftest.py",
        "import pytest\n@pytest.fixture(scope='session')\ndef toolcassette_config():\n"
        "    return {'include': 'login', 'redact': ['card']}\n",
    )
    assert suite.run("test_a.py").ret == 1  # the fixture beats the ini file: the rule for pins is missing
    assert '"rules":["default/1","card#' not in written(suite)
    suite.run("--toolcassette=rewrite", "test_a.py")
    assert '"rules":["default/1","card#' in written(suite)
    assert '"include":["login"]' in written(suite)


def test_a_wider_cassette_goes_by_the_ini_file_too(suite: Suite) -> None:
    suite.write("pytest.ini", "[pytest]\ntoolcassette_redact = pin\n")
    suite.write(
        "test_a.py",
        TOOL + "@pytest.fixture(scope='session')\ndef index(toolcassette_session):\n"
        "    with toolcassette_session('index'):\n" + ASKS.replace("    found", "        found") + "    return 1\n\n"
        "def test_a(index):\n    assert index\n",
    )
    suite.record()
    assert '"rules":["default/1","pin#' in written(suite)
    assert suite.run().ret == 0


def test_a_planted_secret_fails_the_test(suite: Suite) -> None:
    suite.write("test_a.py", marked("redact=False"))
    suite.record()
    suite.write("test_a.py", marked())
    result = suite.run()
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "SecretFound: " in text or "2 secrets stand in the cassette: frame 1, $.args.password: password" in text
    assert "frame 1, $.args.password: password" in text
    assert "cassette: cassettes/test_a/test_a.cassette.jsonl" in text
    assert SECRET not in text + result.stderr.str()
    suite.write("test_a.py", marked("on_secret='ignore'"))
    assert suite.run().ret == 0
    suite.write("test_a.py", marked("on_secret='warn'"))
    result = suite.run("-Wdefault")
    result.assert_outcomes(passed=1, warnings=1)
    assert "frame 1, $.args.password: password" in result.stdout.str()
    assert SECRET not in result.stdout.str()


def test_a_rule_that_breaks_the_contract_fails_the_test(suite: Suite) -> None:
    suite.write("test_a.py", "@pytest.mark.toolcassette(redact=['$.degrees'])\ndef test_a():\n    weather('ab')\n")
    result = suite.run("--toolcassette=record")
    result.assert_outcomes(failed=1)
    assert "(redaction_breaks_contract): rule degrees, $.degrees of weather; give the rule a stand_in=" in (
        result.stdout.str()
    )
    suite.write(
        "test_a.py",
        "@pytest.mark.toolcassette(redact=[tc.Redact('$.degrees', stand_in=0)])\ndef test_a():\n    weather('ab')\n",
    )
    suite.record()
    (data,) = suite.cassettes().values()
    assert tc.parse_cassette(data)
    assert suite.run().ret == 0
