"""The raw anthropic client on a cassette, by its own middleware: plain, streaming, sync and async."""

from __future__ import annotations

import anthropic
import pytest

import toolcassette as tc
from tests.models.fake_server import SECRET, provider
from toolcassette.adapters.anthropic import cassette_client


@pytest.fixture
def server():
    with provider() as running:
        yield running


def said(text):
    return {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}


def client(server, **options):
    return cassette_client(anthropic.Anthropic(api_key=SECRET, base_url=server.url, max_retries=2), **options)


def async_client(server):
    return cassette_client(anthropic.AsyncAnthropic(api_key=SECRET, base_url=server.url, max_retries=2))


def both(file, server, run):
    with client(server) as asked, tc.record(file, ["anthropic"]):
        live = run(asked)
    requests = len(server.requests)
    server.stop()
    with client(server) as asked, tc.replay(file):
        again = run(asked)
    assert len(server.requests) == requests
    return live, again, requests


def test_plain_requests(file, server):
    def run(asked):
        raw = asked.messages.with_raw_response.create(**said("raw"))
        return asked.messages.create(**said("hi")).to_dict(), raw.status_code, raw.parse().to_dict()

    live, again, requests = both(file, server, run)
    assert live == again
    assert requests == 2
    assert live[0]["id"] == "msg_2"


def test_streams_are_equal_event_by_event(file, server):
    def run(asked):
        with asked.messages.stream(**said("hi")) as stream:
            events = [event.to_dict() for event in stream]
            final = stream.get_final_message().to_dict()
        return events, final, [event.to_dict() for event in asked.messages.create(**said("hi"), stream=True)]

    live, again, _ = both(file, server, run)
    assert live == again
    assert [event["delta"]["text"] for event in live[2] if event["type"] == "content_block_delta"] == [
        "he",
        "l",
        "lo ☂",
    ]
    assert [call.chunks is not None for call in tc.read_cassette(file)] == [True, True]


def test_a_stream_that_is_closed_early(file, server):
    def run(asked):
        with asked.messages.stream(**said("hi")) as stream:
            return next(iter(stream.text_stream))

    live, again, _ = both(file, server, run)
    assert live == again == "he"
    assert next(iter(tc.read_cassette(file))).outcome == "left_early"
    with client(server) as asked, pytest.raises(tc.CassetteMismatch), tc.replay(file):
        with asked.messages.stream(**said("hi")) as stream:
            list(stream)


def test_an_error_in_the_middle_of_a_stream(file, server):
    def run(asked):
        seen = []
        with pytest.raises(Exception) as caught:
            seen += asked.messages.create(**said("fail midway"), stream=True)
        return [event.to_dict() for event in seen], type(caught.value), str(caught.value)

    live, again, _ = both(file, server, run)
    assert live == again
    assert len(live[0]) == 2 or live[0] == []
    assert next(iter(tc.read_cassette(file))).outcome == "error"


def test_retries_are_records_of_their_own(file, server):
    live, again, requests = both(file, server, lambda asked: asked.messages.create(**said("retry 2")).to_dict())
    assert live == again
    assert requests == 3
    assert len(tc.read_cassette(file)) == 3


def test_a_failure_that_is_not_tried_again(file, server):
    def run(asked):
        with pytest.raises(anthropic.InternalServerError) as caught:
            asked.with_options(max_retries=0).messages.create(**said("retry 9"))
        return caught.value.status_code, str(caught.value)

    live, again, requests = both(file, server, run)
    assert live == again
    assert requests == 1


def test_a_failure_to_connect_is_the_clients_own_error_again(file, server):
    server.stop()

    def run(asked):
        with pytest.raises(anthropic.APIConnectionError) as caught:
            asked.with_options(max_retries=1).messages.create(**said("hi"))
        return str(caught.value)

    with client(server) as asked, tc.record(file, ["anthropic"]):
        live = run(asked)
    with client(server) as asked, tc.replay(file):
        assert run(asked) == live
    assert [call.outcome for call in tc.read_cassette(file)] == ["error", "error"]


def test_no_key_reaches_the_cassette(file, server):
    plain = anthropic.Anthropic(api_key=SECRET, base_url=server.url, default_headers={"cookie": SECRET})
    with cassette_client(plain) as asked, tc.record(file, ["anthropic"]):
        asked.messages.create(**said("hi"), extra_headers={"anthropic-beta": "b-1", "x-key": SECRET})
        list(asked.messages.create(**said("hi"), stream=True))
    assert SECRET in server.requests[0]["headers"]["authorization"]
    assert SECRET.encode() not in file.read_bytes()
    assert b'"anthropic-beta":"b-1"' in file.read_bytes()


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"model": "other"}, "$.json.model"),
        ({"max_tokens": 8}, "$.json.max_tokens"),
        ({"stream": True}, "$.json.stream"),
        ({"stop_sequences": ["x"]}, "$.json.stop_sequences"),
        ({"extra_body": {"x": 1}}, "$.json.x"),
        ({"extra_query": {"beta": "true"}}, "$.query"),
    ],
)
def test_anything_else_that_is_asked_is_a_mismatch_at_once(file, server, change, path):
    with client(server) as asked, tc.record(file, ["anthropic"]):
        asked.messages.create(**said("hi"))
    with client(server) as asked, pytest.raises(tc.CassetteMismatch) as caught, tc.replay(file):
        asked.messages.create(**{**said("hi"), **change})
    assert path in caught.value.differs
    assert len(server.requests) == 1, "no request, and none of the client's retries"


def test_after_a_mismatch_of_a_tool_no_request_is_answered_or_sent(file, server):
    weather = tc.Registry().wrap(lambda city: "sunny", name="weather")
    with client(server) as asked, tc.record(file, ["anthropic", "weather"]):
        weather("Wuhan")
        asked.messages.create(**said("hi"))
    with client(server) as asked, pytest.raises(tc.CassetteMismatch), tc.replay(file):
        with pytest.raises(tc.CassetteMismatch):
            weather("Oslo")
        with pytest.raises(tc.CassettePoisoned):
            asked.messages.create(**said("hi"))
    assert len(server.requests) == 1


def test_without_a_session_requests_are_sent(server):
    with client(server) as asked:
        assert asked.messages.create(**said("hi")).id == "msg_1"
        assert len(list(asked.messages.create(**said("hi"), stream=True))) == 8


# A stream that is left early leaves generators of the client's own to the garbage collector, of which trio warns.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <async_generator:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.anyio
async def test_asynchronous_clients(file, server):
    async def run(asked):
        plain = (await asked.messages.create(**said("hi"))).to_dict()
        async with asked.messages.stream(**said("hi")) as stream:
            events = [event.to_dict() async for event in stream]
            final = (await stream.get_final_message()).to_dict()
        async with asked.messages.stream(**said("early")) as stream:
            first = await anext(aiter(stream.text_stream))
        retried = (await asked.messages.create(**said("retry 1"))).to_dict()
        return plain, events, final, first, retried

    async with async_client(server) as asked, tc.record(file, ["anthropic"]):
        live = await run(asked)
    requests = len(server.requests)
    server.stop()
    async with async_client(server) as asked, tc.replay(file):
        assert await run(asked) == live
    assert len(server.requests) == requests == 5
    assert [call.outcome for call in tc.read_cassette(file)] == ["ok", "ok", "left_early", "ok", "ok"]


def test_an_iterable_of_models_is_written_as_it_is_sent(file, server):
    block = anthropic.types.TextBlock(type="text", text="hi", citations=None)
    content = [{"role": "user", "content": iter([block])}]
    with client(server) as asked, tc.record(file, ["anthropic"]):
        asked.messages.create(model="claude", max_tokens=9, messages=content)
    assert server.requests[0]["body"]["messages"][0]["content"][0]["text"] == "hi"
    assert b'"text":"hi"' in next(iter(tc.read_cassette(file))).args


def test_what_is_no_client():
    with pytest.raises(TypeError, match="takes an Anthropic"):
        cassette_client(object())
