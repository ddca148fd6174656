"""Model calls on a cassette, beside tools: recorded, replayed, in any order, each once, and none after a mismatch."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator  # noqa: TC003 - contracts resolve them

import anyio
import anyio.lowlevel
import pytest

import toolcassette as tc
from toolcassette.stores import MemoryStore

asked: list[object] = []


@pytest.fixture(autouse=True)
def nothing_asked():
    asked.clear()


@tc.cassette_tool
def weather(city: str) -> str:
    asked.append(city)
    return f"sunny in {city}"


@tc.wrap_model(name="gpt")
def chat(messages: list[dict], *, temperature: float = 1.0) -> dict:
    asked.append(messages)
    return {"text": f"answer {len(asked)}", "id": f"resp_{len(asked)}"}


@functools.partial(tc.wrap_model, name="gpt-stream")
def chat_stream(messages: list[dict]) -> Iterator[str]:
    asked.append(messages)
    yield from ("he", "l", "lo")


def user(text):
    return [{"role": "user", "content": text}]


def agent(run):
    """One question, one tool, one answer; its ids are of this run."""
    first = chat(user("Wuhan?"))
    told = weather("Wuhan")
    call = f"call_{run}"
    talk = [
        *user("Wuhan?"),
        {"role": "assistant", "tool_calls": [{"type": "function", "id": call}]},
        {"role": "tool", "tool_call_id": call, "content": told},
    ]
    return first, told, chat(talk), list(chat_stream(talk))


def test_tools_and_models_on_one_cassette(file):
    with tc.record(file, ["*"]):
        live = agent("a1")
    assert len(asked) == 4
    with tc.replay(file) as session:
        assert agent("b2") == live
    assert len(asked) == 4, "0 bodies, 0 requests"
    assert session.verdict is not None
    assert session.verdict.outcome == "consumed"
    assert [(call.tool, call.boundary) for call in tc.read_cassette(file)] == [
        ("gpt", "model"), ("weather", "tool"), ("gpt", "model"), ("gpt-stream", "model"),
    ]  # fmt: skip
    assert {(tool.tool, tool.boundary) for tool in tc.inspect(file).tools} == {
        ("gpt", "model"), ("weather", "tool"), ("gpt-stream", "model"),
    }  # fmt: skip


def test_ids_are_aliased_in_the_key_and_replayed_as_they_were(file):
    with tc.record(file, ["*"]):
        agent("a1")
    calls = list(tc.read_cassette(file))
    assert b'"tool_call_id":"id#0"' in calls[2].args
    assert b"call_a1" not in calls[2].args
    assert calls[2].value == b'{"text":"answer 3","id":"resp_3"}'


def test_a_model_that_is_asked_something_else_is_a_mismatch_and_ends_the_session(file):
    with tc.record(file, ["*"]):
        agent("a1")
    with pytest.raises(tc.CassetteMismatch) as caught, tc.replay(file):
        with pytest.raises(tc.CassetteMismatch) as first:
            chat(user("Wuhan?"), temperature=0.5)
        assert first.value.differs == ("$.temperature",)
        for call in (lambda: weather("Wuhan"), lambda: chat(user("Wuhan?"))):
            with pytest.raises(tc.CassettePoisoned):
                call()
    assert caught.value.reason == "arguments_differ"
    assert len(asked) == 4


def test_a_mismatch_of_a_tool_fails_the_models_too(file):
    with tc.record(file, ["*"]):
        agent("a1")
    with pytest.raises(tc.CassetteMismatch), tc.replay(file):
        chat(user("Wuhan?"))
        with pytest.raises(tc.CassetteMismatch):
            weather("Oslo")
        for model in (chat, lambda talk: list(chat_stream(talk))):
            with pytest.raises(tc.CassettePoisoned):
                model(user("Wuhan?"))


def test_many_calls_in_any_order_each_record_once():
    store = MemoryStore()
    with tc.record("x", ["gpt"], store=store, order="any"):
        live = {text: [chat(user(text)) for _ in range(n)] for text, n in (("a", 1), ("b", 3), ("c", 2))}
    with tc.replay("x", store=store):
        told = {text: [chat(user(text)) for _ in range(n)] for text, n in (("c", 2), ("b", 3), ("a", 1))}
    assert told == live
    assert live["b"][0] != live["b"][1], "identical requests in their recorded order, not one answer for all"
    with pytest.raises(tc.CassetteMismatch) as caught, tc.replay("x", store=store, allow_unconsumed=True):
        for _ in range(4):
            chat(user("b"))
    assert caught.value.reason == "exhausted"


def test_a_tool_and_a_model_of_one_name_are_two():
    store = MemoryStore()
    tool = tc.Registry().wrap(lambda text: "tool", name="x")
    model = tc.wrap_model(lambda text: "model", name="x")
    with tc.record("a", ["x"], store=store):
        model("hi")
    with pytest.raises(tc.CassetteMismatch), tc.replay("a", store=store):
        tool("hi")


def test_what_a_client_holds_is_named():
    def asking(text):
        return text

    ask = {name: tc.wrap_model(asking, name="ask", identity={"model": name}) for name in ("gpt-5", "gpt-6")}
    store = MemoryStore()
    with tc.record("x", ["ask"], store=store):
        ask["gpt-5"]("hi")
    (call,) = tc.read_cassette("x", store=store)
    assert call.args == b'{"model":"gpt-5","text":"hi"}'
    with pytest.raises(tc.CassetteMismatch) as caught, tc.replay("x", store=store):
        ask["gpt-6"]("hi")
    assert caught.value.differs == ("$.model",)


def test_rules_are_declared_with_the_model():
    def tools(text):
        return [{"name": "f", "description": text, "input_schema": {"title": text}}]

    loose = tc.wrap_model(lambda *, tools: 1, name="loose", rules=[tc.normalize_tools])
    tight = tc.wrap_model(lambda *, tools: 1, name="tight")
    store = MemoryStore()
    with tc.record("x", ["*"], store=store):
        loose(tools=tools("a"))
        tight(tools=tools("a"))
    with pytest.raises(tc.CassetteMismatch) as caught, tc.replay("x", store=store):
        loose(tools=tools("b"))
        tight(tools=tools("b"))
    assert caught.value.tool == "tight"


def test_what_is_wrong_with_a_model_is_said_when_it_is_wrapped():
    with pytest.raises(ValueError, match="identity of f has text, which is one of its parameters"):
        tc.wrap_model(lambda text: 1, name="f", identity={"text": 1})
    with pytest.raises(TypeError, match="rules must list functions"):
        tc.wrap_model(lambda text: 1, name="f", rules=["tools"])  # type: ignore[list-item] # that is the point
    with pytest.raises(tc.UnrecordableValue):
        tc.wrap_model(lambda text: 1, name="f", identity={"client": object()})


def test_a_wrapped_model_looks_like_the_function():
    assert chat.__name__ == "chat"
    assert list(chat.__annotations__) == ["messages", "temperature", "return"]
    assert tc.wrap_model(len) is not len


@pytest.mark.anyio
async def test_asynchronous_models_and_streams(file):
    @tc.wrap_model
    async def ask(text: str) -> str:
        asked.append(text)
        await anyio.lowlevel.checkpoint()
        return text.upper()

    @tc.wrap_model
    async def tokens(text: str) -> AsyncIterator[str]:
        asked.append(text)
        for letter in text:
            yield letter

    async def run():
        return await ask("hi"), [letter async for letter in tokens("hi")]

    async with tc.record(file, ["*"]):
        live = await run()
    async with tc.replay(file):
        assert await run() == live == ("HI", ["h", "i"])
    assert len(asked) == 2


def test_a_stream_that_is_closed_early_and_one_that_fails_are_so_again(file):
    @tc.wrap_model
    def tokens(text: str) -> Iterator[str]:
        yield "a"
        yield "b"
        raise ConnectionResetError("gone")

    def run():
        stream = tokens("left")
        seen = [next(stream)]
        stream.close()  # type: ignore[attr-defined] # a generator has it
        with pytest.raises(ConnectionResetError, match="gone"):
            seen += tokens("failed")
        return seen

    with tc.record(file, ["*"]):
        live = run()
    with tc.replay(file):
        assert run() == live
    with pytest.raises(tc.CassetteMismatch), tc.replay(file):
        list(tokens("left"))
