"""The raw openai client on a cassette: plain, streaming, sync and async; and a provider that is stopped in a replay."""

from __future__ import annotations

import importlib

import openai
import pytest

import toolcassette as tc
from tests.models.fake_server import SECRET, provider
from toolcassette.adapters._http import public
from toolcassette.adapters.httpx import async_cassette_transport, cassette_transport
from toolcassette.adapters.openai import cassette_client

HI = [{"role": "user", "content": "hi"}]


@pytest.fixture
def server():
    with provider() as running:
        yield running


def client(server, **options):
    return cassette_client(openai.OpenAI(api_key=SECRET, base_url=f"{server.url}/v1", max_retries=2), **options)


def async_client(server):
    return cassette_client(openai.AsyncOpenAI(api_key=SECRET, base_url=f"{server.url}/v1", max_retries=2))


def ask(asked, **options):
    return asked.chat.completions.create(model="g", messages=HI, **options)


def said(text):
    return [{"role": "user", "content": text}]


def both(file, server, run, **options):
    """What a program gets live, and in a replay with the provider stopped; and how many requests it was."""
    with client(server) as asked, tc.record(file, ["openai"], **options):
        live = run(asked)
    requests = len(server.requests)
    server.stop()
    with client(server) as asked, tc.replay(file):
        again = run(asked)
    assert len(server.requests) == requests
    return live, again, requests


def test_plain_requests(file, server):
    def run(asked):
        return [
            asked.chat.completions.create(model="g", messages=HI).to_dict(),
            asked.responses.create(model="g", input="hi", temperature=0.5).to_dict(),
            asked.chat.completions.create(model="g", messages=HI).to_dict(),
        ]

    live, again, requests = both(file, server, run)
    assert live == again
    assert requests == 3
    assert live[0]["choices"][0]["message"]["content"] == "answer 1"
    assert live[2]["id"] == "c3", "ids are replayed as they were"


def test_streams_are_equal_chunk_by_chunk(file, server):
    def run(asked):
        chunks = [c.to_dict() for c in asked.chat.completions.create(model="g", messages=HI, stream=True)]
        with asked.responses.stream(model="g", input="hi") as stream:
            events = [event.model_dump_json(warnings=False) for event in stream]
        return chunks, events

    live, again, _ = both(file, server, run)
    assert live == again
    assert [c["choices"][0]["delta"].get("content") for c in live[0]] == ["he", "l", "lo ☂", None]
    assert [call.chunks is not None for call in tc.read_cassette(file)] == [True, True]


def test_bytes_arrive_as_they_came(file, server):
    """The chunks of the wire themselves, below the parser."""

    def run(asked):
        with asked.chat.completions.with_streaming_response.create(model="g", messages=HI, stream=True) as response:
            return list(response.iter_bytes())

    live, again, _ = both(file, server, run)
    assert live == again
    assert b"".join(live).endswith(b"data: [DONE]\n\n")


def test_a_stream_that_is_closed_early(file, server):
    def run(asked):
        stream = asked.chat.completions.create(model="g", messages=HI, stream=True)
        first = next(iter(stream))
        stream.close()
        return first.to_dict()

    live, again, _ = both(file, server, run)
    assert live == again
    (call,) = tc.read_cassette(file)
    assert call.outcome == "left_early"
    with client(server) as asked, pytest.raises(tc.CassetteMismatch), tc.replay(file):
        list(asked.chat.completions.create(model="g", messages=HI, stream=True))


def test_an_error_in_the_middle_of_a_stream(file, server):
    def run(asked):
        seen = []
        with pytest.raises(openai.APIConnectionError) as caught:
            seen += asked.chat.completions.create(model="g", messages=said("fail midway"), stream=True)
        cause = caught.value.__cause__
        return [chunk.to_dict() for chunk in seen], str(caught.value), type(cause), str(cause)

    live, again, _ = both(file, server, run)
    assert live == again
    assert next(iter(tc.read_cassette(file))).outcome == "error"


def test_retries_are_records_of_their_own(file, server):
    def run(asked):
        return asked.chat.completions.create(model="g", messages=said("retry 2")).to_dict()

    live, again, requests = both(file, server, run)
    assert live == again
    assert requests == 3, "two attempts that failed, and one that did not"
    values = [call.value for call in tc.read_cassette(file)]
    assert [b'"status":500' in (value or b"") for value in values] == [True, True, False]


def test_outside_the_client_a_retried_request_is_one_record(file, server):
    with openai.OpenAI(api_key=SECRET, base_url=f"{server.url}/v1") as plain:
        ask = tc.wrap_model(lambda **request: plain.chat.completions.create(**request).to_dict(), name="ask")
        with tc.record(file, ["ask"]):
            live = ask(model="g", messages=said("retry 1"))
        server.stop()
        with tc.replay(file):
            assert ask(model="g", messages=said("retry 1")) == live
    assert len(server.requests) == 2
    assert len(tc.read_cassette(file)) == 1


def test_a_failure_to_connect_is_the_clients_own_error_again(file, server):
    server.stop()

    def run(asked):
        with pytest.raises(openai.APIConnectionError) as caught:
            asked.with_options(max_retries=1).chat.completions.create(model="g", messages=HI)
        return str(caught.value), type(caught.value.__cause__)

    with client(server) as asked, tc.record(file, ["openai"]):
        live = run(asked)
    with client(server) as asked, tc.replay(file):
        assert run(asked) == live
    assert [call.outcome for call in tc.read_cassette(file)] == ["error", "error"]


def test_no_key_reaches_the_cassette(file, server):
    plain = openai.OpenAI(
        api_key=SECRET,
        base_url=f"{server.url}/v1",
        default_headers={"cookie": SECRET, "x-api-key": SECRET, "OpenAI-Beta": "assistants=v2"},
        default_query={"api-version": "7", "key": SECRET},
    )
    with cassette_client(plain) as asked, tc.record(file, ["openai"]):
        ask(asked)
        list(ask(asked, stream=True))
    assert SECRET in server.requests[0]["headers"]["authorization"]
    data = file.read_bytes()
    assert SECRET.encode() not in data
    assert b"?api-version=7" in data
    assert b'"openai-beta":"assistants=v2"' in data


def test_a_password_in_a_url_does_not_reach_it_either():
    assert (
        public(f"https://me:{SECRET}@x.example:8080/v1?b=2&TOKEN={SECRET}&a=#f") == "https://x.example:8080/v1?a=&b=2"
    )


def test_anything_else_that_is_asked_is_a_mismatch_and_nothing_is_sent(file, server):
    with client(server) as asked, tc.record(file, ["openai"]):
        asked.chat.completions.create(model="g", messages=HI)
    for change in ({"model": "h"}, {"messages": said("ho")}, {"temperature": 1}, {"stream": True}, {"seed": 1}):
        with client(server) as asked, pytest.raises(tc.CassetteMismatch) as caught, tc.replay(file):
            asked.chat.completions.create(**{"model": "g", "messages": HI, **change})
        (name,) = change
        assert any(path.startswith(f"$.json.{name}") for path in caught.value.differs)
    assert len(server.requests) == 1


def test_rules_and_names(file, server):
    def tools(text):
        return [{"type": "function", "function": {"name": "f", "description": text, "parameters": {}}}]

    with client(server, rules=[tc.normalize_tools], name="mini") as asked:
        with tc.record(file, ["mini"]):
            asked.chat.completions.create(model="g", messages=HI, tools=tools("a"))
        with tc.replay(file):
            asked.chat.completions.create(model="g", messages=HI, tools=tools("b"))
    assert len(server.requests) == 1
    (call,) = tc.read_cassette(file)
    assert (call.tool, call.boundary) == ("mini", "model")


def test_tools_and_the_client_on_one_cassette(file, server):
    ran = []

    @tc.cassette_tool
    def weather(city: str) -> str:
        ran.append(city)
        return "sunny"

    def run(asked):
        first = asked.chat.completions.create(model="g", messages=HI).id
        told = {"role": "tool", "tool_call_id": "run-random-7", "content": weather("Wuhan")}
        return first, asked.chat.completions.create(model="g", messages=[*HI, told]).id

    with client(server) as asked, tc.record(file, ["openai", "weather"]):
        live = run(asked)
    server.stop()
    with client(server) as asked, tc.replay(file):
        assert run(asked) == live
    assert (ran, len(server.requests)) == (["Wuhan"], 2)


def test_after_a_mismatch_of_a_tool_no_request_is_answered_or_sent(file, server):
    weather = tc.Registry().wrap(lambda city: "sunny", name="weather")
    with client(server) as asked, tc.record(file, ["openai", "weather"]):
        weather("Wuhan")
        asked.chat.completions.create(model="g", messages=HI)
    with client(server) as asked, pytest.raises(tc.CassetteMismatch), tc.replay(file):
        with pytest.raises(tc.CassetteMismatch):
            weather("Oslo")
        with pytest.raises(tc.CassettePoisoned):
            asked.chat.completions.create(model="g", messages=HI)
    assert len(server.requests) == 1


def test_without_a_session_requests_are_sent(server):
    with client(server) as asked:
        assert asked.chat.completions.create(model="g", messages=HI).id == "c1"
        assert len(list(asked.chat.completions.create(model="g", messages=HI, stream=True))) == 4
    assert len(server.requests) == 2


# A stream that is left early leaves generators of the client's own to the garbage collector, of which trio warns.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <async_generator:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.anyio
async def test_asynchronous_clients(file, server):
    async def run(asked):
        plain = (await asked.chat.completions.create(model="g", messages=HI)).to_dict()
        stream = await asked.chat.completions.create(model="g", messages=HI, stream=True)
        chunks = [chunk.to_dict() async for chunk in stream]
        early = await asked.chat.completions.create(model="g", messages=said("early"), stream=True)
        async for chunk in early:
            chunks.append(chunk.to_dict())
            break
        await early.close()
        cut = await asked.chat.completions.create(model="g", messages=said("fail midway"), stream=True)
        chunks.append((await anext(aiter(cut))).to_dict())
        with pytest.raises(openai.APIConnectionError) as caught:
            [chunk async for chunk in cut]
        retried = (await asked.chat.completions.create(model="g", messages=said("retry 1"))).to_dict()
        return plain, chunks, type(caught.value.__cause__), retried

    async with async_client(server) as asked, tc.record(file, ["openai"]):
        live = await run(asked)
    requests = len(server.requests)
    server.stop()
    async with async_client(server) as asked, tc.replay(file):
        assert await run(asked) == live
    assert len(server.requests) == requests == 6
    assert [call.outcome for call in tc.read_cassette(file)] == ["ok", "ok", "left_early", "error", "ok", "ok"]


def test_what_is_no_client():
    with pytest.raises(TypeError, match="takes an OpenAI"):
        cassette_client(object())
    with pytest.raises(TypeError, match="must be a transport"):
        cassette_transport(object(), name="x")


@pytest.mark.parametrize("package", ["httpx2", "httpx"])
def test_any_client_of_httpx(file, package):
    httpx = importlib.import_module(package)
    asked = []

    def answer(request):
        asked.append(request)
        if request.url.path == "/bytes":
            return httpx.Response(200, content=b"\x00\xff")
        if request.url.path == "/text":
            return httpx.Response(200, text='{"a":1,"a":2}')
        return httpx.Response(200, json={"n": len(asked), "f": 1e400 if request.url.path == "/inf" else 0.1})

    def run(transport):
        with httpx.Client(transport=transport) as http:
            return [
                http.post("http://x/json", json={"q": 1}).json(),
                http.get("http://x/bytes").content,
                http.get("http://x/text", params={"key": SECRET, "b": "2", "a": "1"}).text,
                http.post("http://x/up", content=b"\xff").json(),
                http.post("http://x/up", content="plain").json(),
            ]

    with tc.record(file, ["x"]):
        live = run(cassette_transport(httpx.MockTransport(answer), name="x"))
    with tc.replay(file):
        assert run(cassette_transport(httpx.MockTransport(answer), name="x")) == live
    assert len(asked) == 5
    assert SECRET.encode() not in file.read_bytes()
    assert b'"url":"http://x/text?a=1&b=2"' in file.read_bytes()


def test_a_client_that_follows_a_redirect(file):
    import httpx2

    def answer(request):
        if request.url.path == "/old":
            return httpx2.Response(307, headers={"location": f"/new?a=1&key={SECRET}"})
        return httpx2.Response(200, text=str(request.url))

    def run():
        transport = cassette_transport(httpx2.MockTransport(answer), name="x")
        with httpx2.Client(transport=transport, follow_redirects=True) as http:
            return http.get("http://x/old").text

    with tc.record(file, ["x"]):
        live = run()
    with tc.replay(file):
        assert run() == live == "http://x/new?a=1"
    assert len(tc.read_cassette(file)) == 2
    assert SECRET.encode() not in file.read_bytes()


@pytest.mark.anyio
async def test_any_asynchronous_client_of_httpx(file):
    import httpx2

    async def run(transport):
        async with httpx2.AsyncClient(transport=transport) as http:
            return (await http.get("http://x/")).text

    inner = httpx2.MockTransport(lambda request: httpx2.Response(200, text="hello"))
    async with tc.record(file, ["x"]):
        live = await run(async_cassette_transport(inner, name="x"))
    async with tc.replay(file):
        assert await run(async_cassette_transport(inner, name="x")) == live == "hello"
