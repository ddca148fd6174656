"""What becomes of a secret that stands in a cassette, and of a tool that writes or pays."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import toolcassette as tc
from tests.cases.programs import dead, live, record, refused, replay

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "policy.cassette.jsonl"


def echo(x: Any) -> Any:
    return {"got": x}


@pytest.fixture
def planted(file):
    record(file, lambda: live(echo)({"k": SECRET}), redact=False)
    return file


def test_refuse_is_the_default_and_says_where(planted):
    before = planted.read_bytes()
    with pytest.raises(tc.SecretFound) as caught:
        replay(planted, lambda: dead(echo)({"k": SECRET}))
    assert caught.value.findings == ((1, "$.args.x.k", "github-token"), (2, "$.value.got.k", "github-token"))
    assert "frame 1, $.args.x.k: github-token" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert planted.read_bytes() == before


def test_warn_goes_on(planted):
    with pytest.warns(UserWarning, match=r"frame 1, \$\.args\.x\.k: github-token") as caught:
        assert replay(planted, lambda: dead(echo)({"k": SECRET}), on_secret="warn") == {"got": {"k": SECRET}}
    assert SECRET not in str(caught[0].message)


def test_ignore_says_nothing(planted):
    assert replay(planted, lambda: dead(echo)({"k": SECRET}), on_secret="ignore") == {"got": {"k": SECRET}}


def test_what_is_declared_now_is_found(file):
    record(file, lambda: live(echo)("the horse"))
    replay(file, lambda: dead(echo)("the horse"))
    with pytest.raises(tc.SecretFound):
        replay(file, lambda: None, secrets=["horse"])


def test_a_rule_of_the_replays_own_finds_too(file):
    record(file, lambda: live(echo)({"badge": "b1"}))
    with pytest.raises(tc.SecretFound) as caught:
        replay(file, lambda: None, redact=["badge"])
    assert {rule for *_, rule in caught.value.findings} == {"badge"}


def test_what_is_redacted_is_never_found(file):
    def program(make: Any) -> Any:
        return make(echo)(
            {"password": "p", "url": f"https://me:{SECRET}@x.example/?token=t", "Authorization": "Basic eDp5"}
        )

    record(file, lambda: program(live))
    replay(file, lambda: program(dead))


def test_no_option_of_another_word(file):
    with pytest.raises(ValueError, match="on_secret"):
        tc.replay(file, on_secret="maybe")


# -- what writes or pays ---------------------------------------------------------------------------------------------


@pytest.fixture
def ran():
    return []


@pytest.fixture
def tools(ran):
    tools = tc.Registry()

    def tool(name: str, effect: str | None) -> Any:
        def body() -> str:
            ran.append(name)
            return name

        return tools.wrap(body, name=name, effect=effect)

    return {name: tool(name, effect) for name, effect in EFFECTS.items()}


EFFECTS = {"plain": None, "read": "read", "write": "write", "pay": "pay", "recorded": "pay"}


@pytest.mark.parametrize("include", [None, ["recorded"]])
@pytest.mark.parametrize("effect", ["write", "pay"])
def test_what_lasts_never_runs_beside_a_replay(file, tools, ran, effect, include):
    record(file, tools["recorded"], allow_empty=True)
    with tc.record(file.with_name("b.cassette.jsonl"), ["recorded"]):
        tools["recorded"]()
    ran.clear()
    for target in (lambda call: call(), in_a_thread):
        with pytest.raises(tc.NotSelected) as caught, tc.replay(file.with_name("b.cassette.jsonl"), include=include):
            tools["recorded"]()
            error = target(lambda: refused(tools[effect]))
            assert type(error) is tc.NotSelected
            assert error.effect == effect
        assert caught.value.effect == effect
    assert ran == []


def in_a_thread(call: Any) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


def test_what_reads_runs_beside_a_replay_that_names_its_include(file, tools, ran):
    with tc.record(file, ["recorded"]):
        tools["recorded"]()
    ran.clear()
    with tc.replay(file, include=["recorded"]):
        tools["recorded"]()
        assert [tools["read"](), tools["plain"](), in_a_thread(tools["read"])] == ["read", "plain", "read"]
    assert ran == ["read", "plain", "read"]


def test_what_lasts_runs_while_recording_and_outside(file, tools, ran):
    with tc.record(file, ["recorded"]):
        tools["recorded"](), tools["pay"]()
    tools["write"]()
    assert ran == ["recorded", "pay", "write"]


def test_the_effect_is_stored(file, tools):
    record(file, lambda: [tool() for tool in tools.values()])
    assert {call.tool: call.effect for call in tc.read_cassette(file)} == EFFECTS


@pytest.mark.parametrize("effect", ["", "delete", "PAY", 1])
def test_no_effect_of_another_word(effect):
    with pytest.raises(ValueError, match="effect"):
        tc.Registry().wrap(echo, effect=effect)


def test_an_async_tool_that_pays(file, tools, ran):
    tools2 = tc.Registry()

    async def transfer() -> str:
        ran.append("transfer")
        return "done"

    def stream() -> Any:
        ran.append("stream")
        yield 1

    paying, writing = tools2.wrap(transfer, effect="pay"), tools2.wrap(stream, effect="write")

    with tc.record(file, ["recorded"]):
        tools["recorded"]()
    ran.clear()

    async def program() -> None:
        async with tc.replay(file, include=["recorded"]):
            tools["recorded"]()
            with pytest.raises(tc.NotSelected):
                await paying()
            with pytest.raises(tc.NotSelected):
                list(writing())

    with pytest.raises(tc.NotSelected):
        asyncio.run(program())
    assert ran == []
