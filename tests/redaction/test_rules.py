"""Rules of one's own: what each kind finds, what a bad one is, and what is told of one that failed or changed."""

from __future__ import annotations

import json
import pickle
import re
import traceback
import uuid
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import pydantic
import pytest

import toolcassette as tc
from tests.cases.programs import dead, live, record, refused, replay, reseal

CANARY = "sk-CANARY-77"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "rules.cassette.jsonl"


def echo(x: Any) -> Any:
    return {"got": x}


def args(file: Any) -> Any:
    return json.loads(file.read_bytes().splitlines()[1])["args"]["x"]


def upper_words(text: str) -> list[str]:
    return [word for word in text.split() if word.isupper()]


def tag(n: int, rule: str) -> dict[str, Any]:
    return {"$tc": "redacted", "n": n, "rule": rule}


KINDS = {
    "a name": ("badge", {"badge": "b1", "myBadge": "b2", "badge_count": "b3"}, ["b3"], ["b1", "b2"]),
    "a name of two words": ("staff no", {"staff_no": "s1", "StaffNo": "s2", "no": "s3"}, ["s3"], ["s1", "s2"]),
    "a pattern": (re.compile(r"ID[0-9]{4}"), "see ID1234, and ID12", ["ID12"], ["ID1234"]),
    "a group of a pattern": (re.compile(r"pin:(\w+)"), "pin:q1w2 and", ["pin:"], ["q1w2"]),
    "a path": ("$.x.user.ssn", {"user": {"ssn": "123", "n": "456"}}, ["456"], ["123"]),
    "a path with any index": ("$.x[*].id", [{"id": "i1"}, {"id": "i2", "no": "i3"}], ["i3"], ["i1", "i2"]),
    "a path with any name": ("$.x.*.id", {"a": {"id": "i1"}, "b": {"id": "i2"}, "c": ["i3"]}, ["i3"], ["i1", "i2"]),
    "a quoted path": ("$.x['last name']", {"last name": "Muster", "name": "Max"}, ["Max"], ["Muster"]),
    "a function": (tc.Redact(upper_words, id="upper"), "so SHOUT me", ["so", "me"], ["SHOUT"]),
    "a directory": (PurePosixPath("/srv/app"), "in /srv/app/x.txt and /srv/apple", ["/srv/apple"], ["/srv/app"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_rule_of_each_kind(file, kind):
    rule, value, stays, goes = KINDS[kind]

    def take(x: Any) -> None:
        pass

    record(file, lambda: live(take)(value), redact=[rule])
    said = json.dumps(args(file), ensure_ascii=False)
    assert all(word in said for word in stays)
    assert not any(re.search(rf"(?<!\w){word}(?!\w)", said) for word in goes)
    replay(file, lambda: dead(take)(value), redact=[rule])


def test_a_path_takes_a_value_of_any_type(file):
    record(file, lambda: live(echo)({"n": 5, "l": [1, 2]}), redact=["$.x.n", "$.x.l"])
    assert args(file) == {"l": tag(1, "x.l"), "n": tag(2, "x.n")}
    replay(file, lambda: dead(echo)({"n": 6, "l": []}), redact=["$.x.n", "$.x.l"])


def test_the_users_own_rules_come_first(file):
    record(file, lambda: live(echo)({"password": "p"}), redact=[tc.Redact("password", id="mine")])
    assert args(file) == {"password": tag(1, "mine")}


def test_rules_of_a_tool_hold_for_it_alone(file):
    tools = tc.Registry()
    strict = tools.wrap(lambda x: x, name="strict", redact=["badge"])
    plain = tools.wrap(lambda x: x, name="plain")
    record(file, lambda: (strict({"badge": "b1"}), plain({"badge": "b1"})))
    starts = [json.loads(line)["args"]["x"] for line in file.read_bytes().splitlines() if b"call/start" in line]
    assert starts == [{"badge": tag(1, "badge")}, {"badge": "b1"}]
    replay(file, lambda: (strict({"badge": "b2"}), plain({"badge": "b1"})))


def test_declared_values(file):
    record(file, lambda: live(echo)("a tok9 b dG9rOQ== c"), secrets=["tok9"])
    assert not {"tok9", "dG9rOQ"} & set(re.findall(r"\w+", args(file)))
    assert "declared" in json.loads(file.read_bytes().splitlines()[0])["rules"]


@pytest.mark.parametrize("value", [b"x tok9", {"tok9": 1}, ["tok9"], "dG9rOQ==", "%74ok9", "xtok9x"])
def test_a_short_declared_value_is_found_in_every_form(file, value):
    record(file, lambda: live(echo)(value), secrets=["tok9"])
    data = file.read_bytes()
    assert b"tok9" not in data
    assert b"dG9rOQ" not in data
    assert b"eCB0b2s5" not in data
    assert b"%74ok9" not in data
    replay(file, lambda: dead(echo)(value), secrets=["tok9"])


def test_the_environments_secrets(file, monkeypatch):
    monkeypatch.setenv("MY_SERVICE_TOKEN", "zK4mQ9xW2pT7vB5nR8")
    monkeypatch.setenv("POSTGRES_PASSWORD", "postgres")  # a word: it stands everywhere
    monkeypatch.setenv("MAX_TOKENS", "hJ3cF6dS1gL0yU9eA7")  # no secret name
    said = "zK4mQ9xW2pT7vB5nR8 postgres hJ3cF6dS1gL0yU9eA7"
    record(file, lambda: live(echo)(said))
    assert args(file) == "⟦redacted:env:1⟧ postgres hJ3cF6dS1gL0yU9eA7"
    monkeypatch.setenv("MY_SERVICE_TOKEN", "another-1-zK4mQ9xW2pT7v")
    replay(file, lambda: dead(echo)(said.replace("zK4mQ9xW2pT7vB5nR8", "another-1-zK4mQ9xW2pT7v")))


def test_what_the_environment_holds_beside_secrets(file, tmp_path, monkeypatch):
    """A shell keeps its directory in PWD, credentials are often a file's, and nobody learns how many there are."""
    folder = tmp_path / "zK4mQ9xW2pT7vB5nR8"
    folder.mkdir()
    monkeypatch.setenv("PWD", str(folder))
    monkeypatch.setenv("OLDPWD", "/gone/hJ3cF6dS1gL0yU9eA7")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(folder))
    monkeypatch.setenv("OTHER_TOKEN", "hJ3cF6dS1gL0yU9eA7-x")
    said = f"{folder} /gone/hJ3cF6dS1gL0yU9eA7"
    record(file, lambda: live(echo)({"said": said, "password": "a"}))
    assert args(file) == {"said": said, "password": {"$tc": "redacted", "n": 1, "rule": "password"}}


BAD = {
    "no name": [""],
    "no letters": ["--"],
    "no path": ["$.a["],
    "a path of words": ["$ a"],
    "a function without an id": [upper_words],
    "a number": [3],
    "bytes": [re.compile(b"x")],
    "an id with spaces": [tc.Redact("a", id="a b")],
    "an id of ours": [tc.Redact("a", id="declared")],
    "two of one id": ["badge", tc.Redact("pin", id="badge")],
    "a text": "badge",
    "true in a list": [True],
    "none": None,
}


@pytest.mark.parametrize("rules", BAD.values(), ids=BAD)
def test_a_bad_rule_is_a_value_error_at_once(file, rules):
    with pytest.raises(ValueError, match=r"rule|redact|path|name|id"):
        tc.record(file, ["*"], redact=rules)
    if type(rules) is list:
        with pytest.raises(ValueError, match=r"rule|redact|path|name|id"):
            tc.Registry().wrap(echo, redact=rules)


@pytest.mark.parametrize("secrets", ["abcdef", ["abc"], [""]])
def test_a_bad_secret_is_a_value_error_that_does_not_show_it(file, secrets):
    with pytest.raises(ValueError, match="secrets") as caught:
        tc.record(file, ["*"], secrets=secrets)
    assert "abc" not in str(caught.value)


def failing(text: str) -> list[str]:
    raise KeyError(f"cannot read {text}")


@pytest.mark.parametrize("when", ["arguments", "result", "error", "chunk"])
def test_a_rule_that_raises_poisons_and_leaks_nothing(file, when):
    def tool(x: str) -> Any:
        if when == "error":
            raise ValueError(CANARY)
        return CANARY

    def stream(x: str) -> Any:
        yield CANARY

    rule = tc.Redact(lambda text: failing(text) if "CANARY" in text else [], id="broken")
    errors: list[BaseException] = []

    def run() -> None:
        tools = tc.Registry()
        one, two = tools.wrap(stream if when == "chunk" else tool, name="one"), tools.wrap(echo, name="two")
        errors.append(refused(lambda: list(one(CANARY if when == "arguments" else "x"))))
        errors.append(refused(lambda: two("x")))

    with pytest.raises(tc.CassetteError) as caught, tc.record(file, ["*"], redact=[rule]):
        run()
    assert {type(error).__name__ for error in errors} == {"RedactionError"}
    first: Any = errors[0]
    assert (first.reason, first.rule) == ("rule_failed", "broken")
    assert "KeyError" in str(first)
    for error in (*errors, caught.value):
        shown = "".join(traceback.format_exception(error)) if when != "error" else str(error) + repr(error)
        assert CANARY not in shown
        assert CANARY.encode() not in pickle.dumps(error)
    assert not file.exists()
    assert CANARY.encode() not in file.with_name(file.name + ".partial").read_bytes()


def test_a_rule_that_raises_while_replaying_poisons(file):
    calls = []

    def sometimes(text: str) -> list[str]:
        calls.append(text)
        return failing(text) if "CANARY" in text else []

    rule = tc.Redact(sometimes, id="broken")
    record(file, lambda: live(echo)("x"), redact=[rule])
    with pytest.raises(tc.CassetteMismatch) as caught, tc.replay(file, redact=[rule]):
        error = refused(lambda: dead(echo)(CANARY))
        assert type(error).__name__ == "RedactionError"
        refused(lambda: dead(echo)("x"))
    assert CANARY not in "".join(traceback.format_exception(caught.value))


class Account(pydantic.BaseModel):
    name: str
    token: Annotated[str, pydantic.Field(pattern=r"^tok_[a-z]+$")]


def typed(hint: Any, value: Any) -> Any:
    def tool() -> Any:
        return value

    tool.__annotations__["return"] = hint
    return tool


STRICT = {
    "a pydantic model": (Account, Account(name="me", token="tok_abc"), "token", "tok_redacted"),
    "a uuid": (dict[str, uuid.UUID], {"token": uuid.UUID(int=5)}, "$.token", uuid.UUID(int=0)),
    "a choice": (dict[str, Literal["a", "b"]], {"pin": "a"}, "pin", "b"),
    "a number": (dict[str, int], {"pin": 1234}, "$.pin", 0),
}


@pytest.mark.parametrize("kind", STRICT)
def test_what_a_replay_could_not_hand_out_is_refused_while_recording(file, kind):
    hint, value, rule, stand_in = STRICT[kind]
    tool = typed(hint, value)
    with pytest.raises(tc.CassetteError) as caught:
        record(file, lambda: live(tool)(), redact=[tc.Redact(rule, id="mine")])
    error: Any = caught.value
    assert (error.reason, error.rule) == ("redaction_breaks_contract", "mine")
    assert "stand_in" in str(error)
    assert "tok_abc" not in str(error)
    assert not file.exists()
    file.with_name(file.name + ".partial").unlink()

    rules = [tc.Redact(rule, id="mine", stand_in=stand_in)]
    assert record(file, lambda: live(tool)(), redact=rules) == value
    replayed = replay(file, lambda: dead(tool)(), redact=rules)
    assert type(replayed) is type(value)
    assert replayed != value or kind == "a choice"


# -- the header ------------------------------------------------------------------------------------------------------


def header_rules(file: Any) -> list[str]:
    found: list[str] = json.loads(file.read_bytes().splitlines()[0])["rules"]
    return found


def test_the_header_names_the_set_and_a_digest_of_each_rule(file):
    rules = ["badge", re.compile("x9"), tc.Redact(upper_words, id="upper")]
    record(file, lambda: live(echo)("x"), redact=rules, secrets=["abcdef"])
    found = header_rules(file)
    assert (found[0], found[-1]) == ("default/1", "declared")
    assert [entry.split("#")[0] for entry in found[1:-1]] == ["badge", f"pattern-{found[2][8:16]}", "upper"]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+#[0-9a-f]{16}", entry) for entry in found[1:-1])
    assert b"abcdef" not in file.read_bytes()


def test_without_redaction_the_header_names_nothing(file):
    record(file, lambda: live(echo)({"password": "p"}), redact=False)
    assert header_rules(file) == []
    with pytest.raises(tc.CassetteMismatch):
        replay(file, lambda: dead(echo)({"password": "q"}), on_secret="ignore")
    replay(file, lambda: dead(echo)({"password": "p"}), on_secret="ignore")


def test_rules_of_a_newer_release_are_not_guessed(file):
    record(file, lambda: live(echo)("x"))
    lines = [line + b"\n" for line in file.read_bytes().splitlines()]
    file.write_bytes(reseal([lines[0].replace(b'"default/1"', b'"default/99"'), *lines[1:]]))
    with pytest.raises(tc.FormatError) as caught:
        replay(file, lambda: dead(echo)("x"))
    assert caught.value.reason == "rules_unknown"


def test_a_rule_that_matched_nothing_is_in_the_verdict(file):
    with tc.record(file, ["*"], redact=["badge", "pin"]) as session:
        live(echo)({"badge": "b"})
    assert session.verdict is not None
    assert [note for note in session.verdict.notes if "matched nothing" in note] == [
        "rules of redaction that matched nothing: pin"
    ]


# -- what shows itself -----------------------------------------------------------------------------------------------


def test_no_object_of_ours_shows_a_secret(file):
    from toolcassette.redaction import NEWEST, ChunkRedactor, Redactor, Rules

    options = tc.Options(secrets=[CANARY])
    redactor = Redactor(Rules(NEWEST), declared=[CANARY])
    redactor.redacted(b'{"password":"hunter2-CANARY"}')
    objects = [options, redactor, redactor.secrets, ChunkRedactor(redactor), options.rules]
    with tc.record(file, ["*"], secrets=[CANARY]) as session:
        live(echo)(CANARY)
        objects += [session, session._settings, session.redaction]
    with tc.replay(file, secrets=[CANARY]) as replaying:
        dead(echo)(CANARY)
        objects += [replaying, replaying._settings, replaying._played.likeness, replaying.verdict, session.verdict]
    for thing in objects:
        assert "CANARY" not in repr(thing)
        assert "CANARY" not in str(thing)


def test_the_rules_of_a_session_do_not_show_a_stand_in_or_pattern():
    rules = [re.compile(CANARY), tc.Redact("pin", stand_in=CANARY), tc.Redact(re.compile(CANARY), id="c")]
    options = tc.Options(redact=rules, secrets=[CANARY])
    for thing in (options, options.rules, *rules[1:], *options.rules.own):
        assert CANARY not in repr(thing)
