"""Calls as spans, on the real SDK with its exporter in memory; what is told, what is not, and what it costs without."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator  # noqa: TC003 - contracts resolve them
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import toolcassette as tc
from toolcassette.engine.recording import RecordingCall
from toolcassette.engine.replaying import ReplayedCall

CANARY = "cn4ry"


class Spans:
    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("test")

    def all(self):
        """The finished spans since the last look, in the order of their ends."""
        found = self.exporter.get_finished_spans()
        self.exporter.clear()
        return found


@pytest.fixture
def spans():
    return Spans()


@pytest.fixture
def store():
    return tc.MemoryStore()


def own(span):
    return {k.removeprefix("toolcassette."): v for k, v in span.attributes.items() if k.startswith("toolcassette.")}


@tc.cassette_tool
def weather(city: str) -> str:
    if city == "Atlantis":
        raise KeyError(f"{CANARY} {city}")
    return f"sunny {CANARY}"


@tc.wrap_model(name="gpt")
def chat(prompt: str, model: str = "gpt-5") -> Iterator[str]:
    yield from (CANARY, "b", "c")


def test_a_tool_recorded_and_replayed(spans, store):
    with tc.record("x", ["*"], store=store, tracer=spans.tracer):
        with tc.scope("team"):
            weather("Wuhan")
        weather("Oslo")
        weather("Oslo")
    cassette = tc.read_cassette("x", store=store)
    below, *recorded = spans.all()
    assert own(below)["path"] == ("team",)
    assert [span.name for span in recorded] == ["execute_tool weather"] * 2
    identity = {"cassette": cassette.header.cassette}
    assert [own(span) for span in recorded] == [
        {"mode": "record", "hit": False, "ordinal": n, "outcome": "ok", **identity} for n in (0, 1)
    ]
    with tc.replay("x", store=store, tracer=spans.tracer):
        with tc.scope("team"):
            weather("Wuhan")
        weather("Oslo")
        weather("Oslo")
    _, *replayed = spans.all()
    identity["head"] = cassette.head
    assert [own(span) for span in replayed] == [
        {"mode": "replay", "hit": True, "ordinal": n, "outcome": "ok", **identity} for n in (0, 1)
    ]
    for span in (*recorded, *replayed):
        assert span.attributes["gen_ai.operation.name"] == "execute_tool"
        assert span.attributes["gen_ai.tool.name"] == "weather"
        assert span.status.status_code is StatusCode.UNSET


def test_a_model_that_streams(spans, store):
    with tc.record("x", ["*"], store=store, tracer=spans.tracer):
        list(chat("hi"))
        stream = chat("early")
        next(stream)
        stream.close()  # type: ignore[attr-defined] # a generator has it
    recorded = spans.all()
    with tc.replay("x", store=store, tracer=spans.tracer):
        stream = chat("hi")
        next(stream)
        assert spans.all() == (), "the span goes on with the stream"
        list(stream)
        stream = chat("early")
        next(stream)
        stream.close()  # type: ignore[attr-defined] # a generator has it
    replayed = spans.all()
    for whole, early in (recorded, replayed):
        assert (whole.name, whole.attributes["gen_ai.request.model"]) == ("chat gpt", "gpt-5")
        assert whole.attributes["gen_ai.operation.name"] == "chat"
        assert (own(whole)["chunks"], own(whole)["outcome"]) == (3, "ok")
        assert (own(early)["chunks"], own(early)["outcome"]) == (1, "left_early")
        assert "gen_ai.tool.name" not in whole.attributes


@pytest.mark.parametrize(
    ("ask", "model"),
    [
        (lambda: tc.wrap_model(lambda model: 1, name="m")("a"), "a"),
        (lambda: tc.wrap_model(lambda **request: 1, name="m")(model="b"), "b"),
        (lambda: tc.wrap_model(lambda: 1, name="m", identity={"model": "c"})(), "c"),
        (lambda: tc.wrap_model(lambda model: 1, name="m")(7), "m"),
        (lambda: tc.wrap_model(lambda: 1, name="m")(), "m"),
    ],
)
def test_which_model_it_is(spans, store, ask, model):
    with tc.record("x", ["*"], store=store, tracer=spans.tracer):
        ask()
    (span,) = spans.all()
    assert span.attributes["gen_ai.request.model"] == model


def test_a_mismatch_is_an_exception_and_an_error(spans, store):
    with tc.record("x", ["*"], store=store):
        weather("Wuhan")
    with pytest.raises(tc.CassetteMismatch), tc.replay("x", store=store, tracer=spans.tracer):
        with pytest.raises(tc.CassetteMismatch):
            weather("Oslo")
        with pytest.raises(tc.CassettePoisoned):
            weather("Wuhan")
    first, second = spans.all()
    for span, kind in ((first, "CassetteMismatch"), (second, "CassettePoisoned")):
        assert span.status.status_code is StatusCode.ERROR
        assert (own(span)["hit"], own(span)["reason"], span.attributes["error.type"]) == (
            False,
            "arguments_differ",
            kind,
        )
        (event,) = span.events
        assert event.name == "exception"
        assert "arguments differ" in span.status.description


def test_a_stream_that_differs_is_a_mismatch_too(spans, store):
    with tc.record("x", ["*"], store=store):
        list(chat("hi"))
    with pytest.raises(tc.CassetteMismatch), tc.replay("x", store=store, tracer=spans.tracer):
        stream = chat("hi")
        next(stream)
        stream.close()  # type: ignore[attr-defined] # a generator has it
    (span,) = spans.all()
    assert span.status.status_code is StatusCode.ERROR
    assert (own(span)["reason"], own(span)["chunks"]) == ("stream_differs", 1)


def test_a_failure_of_the_tool(spans, store):
    def run():
        with pytest.raises(KeyError):
            weather("Atlantis")

    with tc.record("x", ["*"], store=store, tracer=spans.tracer):
        run()
    with tc.replay("x", store=store, tracer=spans.tracer):
        run()
    for span in spans.all():
        assert (span.status.status_code, span.attributes["error.type"]) == (StatusCode.ERROR, "KeyError")
        assert own(span)["outcome"] == "error"
        assert span.events == ()


def test_values_are_told_only_where_that_was_asked_for(spans, store):
    def run():
        weather(f"{CANARY}!")
        list(chat(CANARY))
        with pytest.raises(KeyError):
            weather("Atlantis")

    with tc.record("x", ["*"], store=store, tracer=spans.tracer):
        run()
    with tc.replay("x", store=store, tracer=spans.tracer):
        run()
    silent = spans.all()
    assert len(silent) == 6
    assert CANARY not in "".join(span.to_json() for span in silent)
    with tc.replay("x", store=store, tracer=spans.tracer, trace_values=True):
        run()
    tool, model, failed = spans.all()
    assert tool.attributes["gen_ai.tool.call.arguments"] == '{"city":"cn4ry!"}'
    assert tool.attributes["gen_ai.tool.call.result"] == '"sunny cn4ry"'
    assert model.attributes["toolcassette.request"] == '{"model":"gpt-5","prompt":"cn4ry"}'
    assert CANARY in failed.status.description


def test_values_are_told_without_secrets(spans, store):
    @tc.cassette_tool
    def login(user: str, password: str) -> dict[str, str]:
        return {"token": "tok-live-9f2", "user": user}

    with tc.record("x", ["login"], store=store, tracer=spans.tracer, trace_values=True):
        login("bob", "hunter2")
    with tc.replay("x", store=store, tracer=spans.tracer, trace_values=True):
        login("bob", "hunter3")
    for span in spans.all():
        arguments, result = (span.attributes[f"gen_ai.tool.call.{name}"] for name in ("arguments", "result"))
        assert '"user":"bob"' in arguments
        assert '"rule":"password"' in arguments
        assert '"rule":"token"' in result
        assert not any(secret in arguments + result for secret in ("hunter", "tok-live"))


def test_what_is_refused_ends_its_span(spans, store):
    bad = tc.Registry().wrap(lambda: object(), name="bad")
    with pytest.raises(tc.UnrecordableValue), tc.record("x", ["*"], store=store, tracer=spans.tracer):
        bad()
    (span,) = spans.all()
    assert (span.status.status_code, span.attributes["error.type"]) == (StatusCode.ERROR, "UnrecordableValue")


def test_a_result_that_no_longer_fits(spans, store):
    with tc.record("x", ["*"], store=store):
        tc.Registry().wrap(lambda: "text", name="f")()

    def f() -> int:
        raise AssertionError

    with pytest.raises(tc.ContractMismatch), tc.replay("x", store=store, tracer=spans.tracer):
        tc.Registry().wrap(f)()
    (span,) = spans.all()
    assert (own(span)["reason"], span.attributes["error.type"]) == ("contract_differs", "ContractMismatch")


def test_spans_of_the_body_lie_below_its_call_and_those_of_the_consumer_do_not(spans, store):
    @tc.cassette_tool
    def outer() -> Iterator[int]:
        with spans.tracer.start_as_current_span("body"):
            pass
        yield 1

    @tc.cassette_tool
    def plain() -> int:
        with spans.tracer.start_as_current_span("body"):
            return 1

    with tc.record("x", ["*"], store=store, tracer=spans.tracer):
        plain()
        for _ in outer():
            with spans.tracer.start_as_current_span("consumer"):
                pass
    by_name: dict[str, list] = {}
    for span in spans.all():
        by_name.setdefault(span.name, []).append(span)
    assert by_name["body"][0].parent.span_id == by_name["execute_tool plain"][0].context.span_id
    assert by_name["consumer"][0].parent is None


@pytest.mark.anyio
async def test_tasks_that_overlap(spans, store):
    @tc.cassette_tool
    async def slow(n: int) -> int:
        await anyio.sleep(0.01 * (3 - n))
        return n

    @tc.cassette_tool
    async def letters() -> AsyncIterator[str]:
        yield "a"
        yield "b"

    async def run():
        async with anyio.create_task_group() as group:
            for n in range(3):
                group.start_soon(slow, n)
        return [letter async for letter in letters()]

    async with tc.record("x", ["*"], store=store, order="causal", tracer=spans.tracer):
        await run()
    recorded = spans.all()
    async with tc.replay("x", store=store, tracer=spans.tracer):
        await run()
    for found in (recorded, spans.all()):
        assert sorted(own(span)["ordinal"] for span in found) == [0, 1, 2, 3]
        assert own(found[-1])["chunks"] == 2
        assert all(span.parent is None for span in found)


class Plain:
    """A tracer that is none of OpenTelemetry's."""

    def __init__(self):
        self.seen = []

    @contextmanager
    def start_as_current_span(self, name, *, attributes, **options):
        self.seen.append(("start", name))
        yield self

    def set_attribute(self, name, value):
        pass

    def record_exception(self, error):
        self.seen.append(("exception", type(error).__name__))

    def set_status(self, status):
        self.seen.append(("status",))

    def end(self):
        self.seen.append(("end",))


def test_any_tracer_will_do(store):
    tracer = Plain()
    with tc.record("x", ["*"], store=store, tracer=tracer):
        weather("Wuhan")
    with pytest.raises(tc.CassetteMismatch), tc.replay("x", store=store, tracer=tracer):
        weather("Oslo")
    assert tracer.seen == [
        ("start", "execute_tool weather"), ("end",),
        ("start", "execute_tool weather"), ("exception", "CassetteMismatch"), ("status",), ("end",),
    ]  # fmt: skip


def test_without_a_tracer_there_is_no_cost(store):
    """No class of ours stands in between, and nothing of OpenTelemetry is loaded."""
    with tc.record("x", ["*"], store=store) as session:
        assert type(session) is tc.Recorder
        call = tc.Call("weather", b'{"city":"Wuhan"}')
        assert type(session.begin(call, tc.ToolContract(None))) is RecordingCall
        weather("Wuhan")
    with tc.replay("x", store=store) as session:
        assert type(session) is tc.Replayer
        assert type(session.begin(call, tc.ToolContract(None))) is ReplayedCall
        weather("Wuhan")
    program = (
        f"import sys; sys.path.insert(0, {str(Path(tc.__file__).parents[1])!r}); import toolcassette as tc\n"
        "with tc.record('x', ['*'], store=tc.MemoryStore(), allow_empty=True): pass\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_nested_call_has_a_span_that_ends(spans, store):
    outer = tc.Registry().wrap(lambda: weather("Wuhan"), name="outer")
    with pytest.raises(tc.NestedSelection), tc.record("x", ["*"], store=store, tracer=spans.tracer):
        outer()
    inner, around = spans.all()
    assert inner.parent.span_id == around.context.span_id
    assert "ordinal" not in own(inner)


def test_a_session_that_is_live_tells_nothing(spans):
    with tc.session("live", tracer=spans.tracer):
        weather("Wuhan")
    assert spans.all() == ()
