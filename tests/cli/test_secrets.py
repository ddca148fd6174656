"""``record`` and ``replay`` with rules of redaction; what a wrong description of a session comes to; and no verb that
shows a secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import toolcassette as tc
from tests.cli.helpers import NAME, cassette, environment, program, replay, run
from toolcassette.format import encode_value
from toolcassette.process import OPTIONS_VARIABLE
from toolcassette.process import environment as session_variables

CANARY = "cn4ry-Zx81kQm0pLw93v"
KEY = "sk-proj-" + CANARY
# A tool that is given two secrets and gives them back, and a number that its caller does not care for.
LOGIN = """
    @tc.cassette_tool
    def login(password: str, pin: str) -> dict[str, str]:
        open("bodies", "a").write("login\\n")
        shop = os.environ.get("SHOP", "none") + "!"
        return {"note": f"it is {password} at {os.getcwd()}", "pin": pin, "key": shop}

    found = login(os.environ["TYPED"], os.environ.get("PIN", "9381"))
    login(found["note"].split()[2], found["pin"])
"""


@pytest.fixture
def folder(tmp_path):
    program(tmp_path, LOGIN)
    return tmp_path


@pytest.fixture(autouse=True)
def _typed(monkeypatch):
    """The program is told the secret by a variable that does not look like one."""
    monkeypatch.setenv("TYPED", CANARY)


def recorded(folder, *options, **extra):
    done = run(folder, "record", NAME, "--include", "*", *options, "--", "agent.py", **extra)
    assert done.returncode == 0, done.stderr
    (folder / "bodies").unlink()
    return (folder / NAME).read_bytes()


def test_the_default_rules_and_another_password(folder):
    data = recorded(folder)
    assert CANARY.encode() not in data
    assert b"9381" in data
    assert json.loads(data.splitlines()[0])["rules"] == ["default/1"]
    done = replay(folder, TYPED="0ther-Secret-of-today")
    assert done.returncode == 0, done.stderr
    assert not (folder / "bodies").exists()
    assert replay(folder, PIN="1234").returncode == 1  # what is no secret is compared


def test_rules_of_the_command_line(folder):
    data = recorded(folder, "--redact", "pin", "--normalize", "cwd", "--secret-env", "SHOP", SHOP="plumtree")
    assert not [secret for secret in (CANARY, "9381", "plumtree", str(folder)) if secret.encode() in data]
    rules = json.loads(data.splitlines()[0])["rules"]
    assert [rule.partition("#")[0] for rule in rules] == ["default/1", "pin", "cwd", "declared"]
    options = ("--redact", "pin", "--normalize", "cwd", "--secret-env", "SHOP")
    assert replay(folder, *options, PIN="1234", SHOP="oaktrees").returncode == 0
    done = replay(folder, PIN="1234")
    assert done.returncode == 1
    assert "pin" in done.stderr  # the rule that was left out is named


def test_no_redact(folder):
    data = recorded(folder, "--no-redact")
    assert CANARY.encode() in data
    done = replay(folder, "--no-redact")
    assert done.returncode == 1
    assert done.stderr.startswith(f"toolcassette: {NAME}: ")
    assert "in the cassette: frame 1, $.args.password: password; " in done.stderr
    assert "pass --on-secret warn" in done.stderr
    assert CANARY not in done.stderr
    done = replay(folder, "--on-secret", "warn")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("in the cassette: frame 1") == 1
    assert CANARY not in done.stderr
    assert replay(folder, "--on-secret", "ignore").stderr == f"toolcassette: replayed {NAME} (2 calls, all consumed)\n"


@pytest.mark.parametrize("verb", ["record", "replay"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--no-redact", "--redact", "pin"), "--no-redact goes without"),
        (("--redact", "!"), "at least one letter"),
        (("--redact", "pin", "--redact", "pin"), "two rules go by the id pin"),
        (("--normalize", "moon"), "normalize takes"),
        (("--secret-env", "NOT_THERE"), "there is no variable NOT_THERE"),
        (("--secret-env", "SHORT"), "at least 4 characters"),
    ],
)
def test_wrong_options_are_refused_before_the_command_runs(folder, verb, options, words):
    (folder / NAME).write_bytes(cassette())
    told = ("--include", "*", "--replace") if verb == "record" else ()
    done = run(folder, verb, NAME, *told, *options, "--", "agent.py", SHORT="abc")
    assert done.returncode == 2
    assert words in done.stderr
    assert not (folder / "bodies").exists()


def test_no_value_of_a_secret_is_handed_on_in_a_variable(folder):
    program(folder, f"open('env', 'w').write(os.environ[{OPTIONS_VARIABLE!r}]); weather('Wuhan')")
    recorded(folder, "--secret-env", "SHOP", SHOP="plumtree")
    assert json.loads((folder / "env").read_text()) == {"strict_include": True, "secrets_from": ["SHOP"]}
    options = tc.Options(secrets=["plumtree"])
    assert "plumtree" not in "".join(session_variables("replay", "x", None, options, "status", ["SHOP"]).values())


# -- a session that is described wrongly ------------------------------------------------------------------------------

ASK_TWICE = """
    for _ in range(2):
        try:
            weather("Wuhan")
        except Exception as error:
            print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({OPTIONS_VARIABLE: "{"}, f"{OPTIONS_VARIABLE}: Expecting"),
        ({OPTIONS_VARIABLE: "[1]"}, f"{OPTIONS_VARIABLE}: "),
        ({OPTIONS_VARIABLE: '{"ordr": "strict"}'}, f"{OPTIONS_VARIABLE}: "),
        ({OPTIONS_VARIABLE: '{"order": "loose"}'}, f"{OPTIONS_VARIABLE}: order must be one of"),
        ({OPTIONS_VARIABLE: '{"secrets_from": ["GONE"]}'}, "secrets_from names a variable that is not set"),
        ({"TOOLCASSETTE_INCLUDE": "a,,b"}, "include has an empty pattern"),
        ({"TOOLCASSETTE_MODE": "rewind"}, "mode must be record or replay"),
        ({"TOOLCASSETTE_FILE": ""}, "file must be the path of a cassette"),
    ],
)
def test_a_wrong_description_is_one_clear_error(folder, wrong, words):
    """The same for every call, no body runs, and the parent hears of it."""
    program(folder, ASK_TWICE)
    status = folder / "status"
    told = session_variables("record", str(folder / NAME), ["weather"], tc.Options(), str(status))
    done = _python(folder, {**told, **wrong})
    first, second = done.stdout.splitlines()
    assert first == second
    assert first.startswith("ValueError ")
    assert words in first
    assert not (folder / "bodies").exists()
    said = json.loads(status.read_text())
    assert (said["outcome"], said["exit_status"], words in said["message"]) == ("failed", 2, True)


def _python(folder, variables):
    words = [sys.executable, "agent.py"]
    env = environment(**variables)
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=60)


# -- no verb shows a secret -------------------------------------------------------------------------------------------


def leaking(folder):
    """Files full of the canary: whole, damaged, cut, a partial, and no cassette at all. Their names."""
    value = {KEY: {"password": CANARY}, "text": f"at {CANARY} and {KEY}", "data": KEY.encode()}
    call = tc.RecordedCall("login", encode_value({"password": CANARY}), value=encode_value(value), path=("a",))
    failed = tc.RecordedCall(
        "login", b"{}", outcome="error", error=encode_value({"type": "ValueError", "message": f"no {KEY}"})
    )
    data = cassette([call, failed], include=["login"])
    files = {
        NAME: data,
        f"damaged-{NAME}": data.replace(CANARY.encode(), CANARY.upper().encode(), 1),
        f"torn-{NAME}": data[: data.index(CANARY.encode()) + 40],
        f"spaced-{NAME}": data.replace(b'"value":{', b'"value": {'),
        f"{NAME}.partial": data[:-100],
        "notes.txt": f"password = {CANARY}\nOPENAI={KEY}\n".encode(),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return list(files)


VERBS = [
    ("scan",),
    ("scan", "--format", "json"),
    ("scan", "--format", "sarif"),
    ("scan", "--format", "github"),
    ("scan", "--secret-env", "SHOP"),
    ("scan", "--pattern", "Zx[0-9]+"),
    ("verify", "--deep"),
    ("verify", "--format", "json"),
    ("verify", "--format", "github"),
    ("inspect",),
    ("inspect", "--format", "json"),
    ("ls",),
    ("recover",),
]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_no_verb_says_a_secret(tmp_path, verb):
    done = run(tmp_path, *verb, *leaking(tmp_path), SHOP=CANARY)
    assert done.returncode in (1, 2)
    assert CANARY.lower() not in (done.stdout + done.stderr).lower()
    assert "Traceback" not in done.stderr


def test_nor_do_those_that_compare_and_run(folder):
    leaking(folder)
    (folder / "other.cassette.jsonl").write_bytes(cassette([]))
    for done in (
        run(folder, "diff", NAME, "other.cassette.jsonl"),
        run(folder, "diff", NAME, f"torn-{NAME}"),
        run(folder, "diff", NAME, "other.cassette.jsonl", "--format", "json"),
        run(folder, "scan", "--canary", CANARY),
        run(folder, "scan", "--canary", CANARY, "--redact", "pin", "--secret-env", "SHOP", SHOP="plumtree"),
        replay(folder, "--secret-env", "SHOP", SHOP=CANARY),
        replay(folder, "--on-secret", "ignore"),
    ):
        assert done.returncode in (1, 2)
        assert CANARY not in done.stdout + done.stderr


def test_names_of_variables_only(folder):
    """A secret that is no variable's value is not guessed from the rest of the environment, nor is any shown."""
    done = run(folder, "scan", os.devnull, "--secret-env", "SHOP", SHOP=CANARY)
    assert (done.returncode, CANARY in done.stderr) == (2, False)
