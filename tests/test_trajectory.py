"""Trajectories: what was called, in what order, how often and with what; and the first thing that is wrong."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import toolcassette as tc
from toolcassette.stores import MemoryStore

ROUTE = {"search": ["fetch"], "fetch": ["summarize", "search"], "summarize": []}

STARTS: dict[str | None, list[str]] = {None: ["search"]}


@tc.cassette_tool
def search(query: str) -> str:
    return query


@tc.cassette_tool
def fetch(url: str, *, tags: list[str] | None = None) -> str:
    return url


def agent():
    search("t-shirts")
    with tc.scope("reader"):
        fetch("https://a.example", tags=["new", "odd key"])
    fetch("https://b.example")


@pytest.mark.parametrize(
    "spelled",
    [
        lambda names: names,
        lambda names: [{"tool": name} for name in names],
        lambda names: [{"tool_name": name} for name in names],
        lambda names: [{"toolName": name} for name in names],
        lambda names: [SimpleNamespace(tool_name=name) for name in names],
        lambda names: [{"toolCalls": [{"toolName": name} for name in names]}, {"toolCalls": []}],
        lambda names: [SimpleNamespace(tool_calls=[{"tool": name}]) for name in names],
        lambda names: [tc.RecordedCall(tool=name, args=b"{}") for name in names],
        lambda names: iter(names),
    ],
)
@pytest.mark.parametrize("allowed", [ROUTE, {"adjacency": ROUTE, "routerVersion": 1}, SimpleNamespace(adjacency=ROUTE)])
def test_every_spelling_of_calls_and_routes(spelled, allowed):
    assert tc.follows_route(spelled(["search", "fetch", "search", "fetch", "summarize"]), allowed)
    found = tc.follows_route(spelled(["search", "fetch", "fetch"]), allowed)
    assert (found.ok, found.illegal) == (False, 2)
    assert repr(found) == ("<RouteCheck: call 3 ('fetch' after 'fetch') is illegal; legal next: [search, summarize]>")


def test_the_first_call():
    assert tc.follows_route([], ROUTE)
    assert tc.follows_route(["summarize"], ROUTE)
    assert tc.follows_route(["x"], ROUTE).message.startswith("call 1 ('x' as the first call) is illegal")
    assert not tc.follows_route(["fetch"], STARTS | ROUTE)
    assert tc.follows_route(["search"], STARTS | ROUTE)


def test_what_comes_after_a_tool_that_the_route_does_not_go_on_from():
    found = tc.follows_route(["summarize", "search"], ROUTE)
    assert found.message.endswith("('search' after 'summarize') is illegal; legal next: []")


def test_a_recorder_and_a_replayer_are_trajectories():
    store = MemoryStore()
    with tc.record("x", ["*"], store=store) as recorder:
        agent()
        with pytest.raises(RuntimeError, match="once it is published"):
            tc.follows_route(recorder, ROUTE)
    with tc.replay("x", store=store) as replayer:
        assert tc.follows_route(replayer, {}), "nothing was called yet"
        agent()
        tc.assert_trajectory(replayer, ["search", "fetch", "fetch"])
    for calls in (recorder, replayer, tc.read_cassette("x", store=store)):
        assert tc.follows_route(calls, {"search": ["fetch"]}), "sub-agents are walked on their own"
        tc.assert_trajectory(
            calls,
            ["search", ("fetch", {"$.url": "https://a.example", "$.tags[1]": "odd key"}), ("fetch", {"$.tags": None})],
            counts={"search": 1, "fetch": 2, "summarize": 0},
            route={"search": ["fetch"]},
        )


def test_the_calls_of_a_replay_are_those_that_were_made_in_their_order():
    store = MemoryStore()
    with tc.record("x", ["*"], store=store, order="any"):
        search("a")
        fetch("b")
    with tc.replay("x", store=store, allow_unconsumed=True) as replayer:
        fetch("b")
    tc.assert_trajectory(replayer, ["fetch"])
    with tc.replay("x", store=store) as replayer:
        fetch("b")
        search("a")
    tc.assert_trajectory(replayer, ["fetch", "search"])


def test_model_calls_are_no_steps():
    calls = [tc.RecordedCall(tool="gpt", args=b"{}", boundary="model"), tc.RecordedCall(tool="search", args=b"{}")]
    tc.assert_trajectory(calls, ["search"])


def test_a_path_is_named_where_the_route_is_left_below_it():
    calls = [tc.RecordedCall(tool="fetch", args=b"{}", path=("team", "r\x1b"))] * 2
    assert tc.follows_route(calls, {"fetch": []}).message.startswith("call 2 of path /team/r\\x1b ('fetch' after")


A, B = ("fetch", {"$.url": "a"}), ("fetch", {"$.url": "b"})
CALLS = [{"tool": "search"}, {"tool": "fetch", "args": {"url": "a"}}, {"tool": "fetch", "input": '{"url":"b"}'}]


@pytest.mark.parametrize(
    ("expected", "order"),
    [
        (["search", A, B], "exact"),
        ([A, B], "within"),
        ([], "within"),
        ([B, "search", A], "any"),
        (["fetch", "search", A], "any"),  # "fetch" must move over to the second fetch
    ],
)
def test_what_is_as_expected(expected, order):
    tc.assert_trajectory(CALLS, expected, order=order)


@pytest.mark.parametrize(
    ("expected", "order", "words"),
    [
        (["search", B, A], "exact", r"call 2 \(fetch\) has another value at \$\.url"),
        (["fetch"], "exact", "call 1 is search, and not fetch"),
        (["search", "fetch"], "exact", r"call 3 \(fetch\) is one too many"),
        (["search", A, B, "search"], "exact", "call 4 is missing: search"),
        ([("search", {"$.q": 1})], "exact", r"call 1 \(search\) has no argument \$\.q"),
        ([B, A], "within", r"expected call 2 \(fetch, with its arguments\) does not occur after call 3"),
        ([A, A, "search"], "any", r"expected call 2 \(fetch, with its arguments\) does not occur"),
        ([A, B], "any", r"call 1 \(search\) is one too many"),
    ],
)
def test_the_first_thing_that_is_not(expected, order, words):
    with pytest.raises(AssertionError, match=words):
        tc.assert_trajectory(CALLS, expected, order=order)


def test_counts_and_routes_that_do_not_hold():
    with pytest.raises(AssertionError, match="fetch is called 2 times, and not 1"):
        tc.assert_trajectory(CALLS, counts={"fetch": 1})
    with pytest.raises(AssertionError, match=r"call 3 \('fetch' after 'fetch'\) is illegal"):
        tc.assert_trajectory(CALLS, route={"search": ["fetch"]})


def test_values_are_told_apart_by_type_and_never_shown():
    one = [{"tool": "f", "args": {"n": 1, "o": {"b": 1, "a": 2}}}]
    tc.assert_trajectory(one, [("f", {"$.o": {"a": 2, "b": 1}, '$["n"]': 1})])
    for other in (1.0, True, "1"):
        with pytest.raises(AssertionError) as caught:
            tc.assert_trajectory(one, [("f", {"$.n": other})])
        assert str(caught.value) == "call 1 (f) has another value at $.n"


@pytest.mark.parametrize("path", ["url", "$url", "$.a[x]", "$.a[0", "$.a..b", "$.[0]"])
def test_a_bad_path(path):
    with pytest.raises(ValueError, match="no JSON path"):
        tc.assert_trajectory(CALLS, [("search", {path: 1})])


@pytest.mark.parametrize("calls", [7, "search", [7], [{"name": "search"}], [None]])
def test_what_is_no_trajectory(calls):
    with pytest.raises(TypeError, match="trajectory"):
        tc.follows_route(calls, ROUTE)


@pytest.mark.parametrize("allowed", [None, ["search"], {"search": "fetch"}, {"search": 3}])
def test_what_is_no_route(allowed):
    with pytest.raises(TypeError, match="route"):
        tc.follows_route([], allowed)


def test_nothing_to_check_and_an_unknown_order():
    with pytest.raises(ValueError, match="nothing to check"):
        tc.assert_trajectory([])
    with pytest.raises(ValueError, match="order must be one of"):
        tc.assert_trajectory([], [], order="loose")
