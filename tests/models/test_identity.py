"""What makes two requests one: every leaf counts, but ids up to renaming and what a declared rule removes."""

from __future__ import annotations

import copy
import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolcassette as tc
from toolcassette.contracts import encode_args
from toolcassette.identity import identify
from toolcassette.stores import MemoryStore

WEATHER = {
    "type": "object",
    "title": "Weather",
    "properties": {
        "title": {"type": "string", "title": "Title", "description": "not a description of the object"},
        "id": {"type": "string", "default": "c1", "enum": ["c1", "c2"]},
    },
    "required": ["title"],
    "$defs": {"description": {"type": "object", "description": "a class of that name"}},
}
REQUEST = {
    "provider": "openai",
    "model": "gpt-5",
    "messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "Wuhan?"}, {"type": "image", "data": b"\x00\x01"}]},
        {
            "role": "assistant",
            "id": "msg_1",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"id":"c1"}'}},
                {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": {"id": "c2"}}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
        {"role": "tool", "tool_call_id": "call_2", "content": "rain"},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"id": "c1", "call_id": "c1"}},
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "ok", "id": "kept"}]},
    ],
    "tools": [
        {"type": "function", "function": {"name": "weather", "description": "the weather", "parameters": WEATHER}},
        {"name": "other", "input_schema": WEATHER, "strict": True},
    ],
    "tool_choice": {"type": "function", "function": {"name": "weather"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": WEATHER}},
    "temperature": 0.5,
    "top_p": 1,
    "max_tokens": 100,
    "seed": 7,
    "stop": ["\n"],
    "stream": False,
    "previous_response_id": "resp_1",
    "metadata": {"run_id": "mine", "id": 3},
    "user": None,
}
IDS = {"msg_1", "call_1", "call_2", "toolu_1"}


def leaves(tree, path=()):
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    elif isinstance(tree, list) and tree:
        for index, value in enumerate(tree):
            yield from leaves(value, (*path, index))
    else:
        yield path, tree


def with_leaf(tree, path, value):
    changed = copy.deepcopy(tree)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return changed


def without_leaf(tree, path):
    changed = copy.deepcopy(tree)
    place = changed
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    return changed


def key(request, *rules):
    return identify(encode_args(request), rules)


# Where an id stands once, its renaming is consistent: nothing else in the request says otherwise.
ALL = list(leaves(REQUEST))
LONE_IDS = {path for path, value in ALL if value == "msg_1"}
OTHERS = {str: "changed", int: 8, float: 0.25, bool: None, type(None): 0, bytes: b"\x00\x02"}


asked: list[str] = []


@tc.wrap_model(name="gpt")
def ask(**request: object) -> str:
    asked.append("once")
    return "answer"


@pytest.mark.parametrize(("path", "value"), ALL, ids=[".".join(map(str, path)) for path, _ in ALL])
def test_any_single_leaf_that_changes_is_a_miss(path, value):
    """End to end, on a cassette: the changed request is refused, and the model is not asked."""
    asked.clear()
    store = MemoryStore()
    with tc.record("x", ["gpt"], store=store):
        ask(**REQUEST)
    changed = with_leaf(REQUEST, path, OTHERS[type(value)])
    if path in LONE_IDS:
        with tc.replay("x", store=store):
            assert ask(**changed) == "answer"
    else:
        with pytest.raises(tc.CassetteMismatch) as caught, tc.replay("x", store=store):
            ask(**changed)
        assert caught.value.reason == "arguments_differ"
    assert asked == ["once"]


@pytest.mark.parametrize("path", [path for path, _ in ALL], ids=[".".join(map(str, path)) for path, _ in ALL])
def test_any_single_leaf_that_goes_is_a_miss(path):
    assert key(without_leaf(REQUEST, path)) != key(REQUEST)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text("ab#0", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "type", "input", "content", "name", "tools"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(st.sampled_from("abc"), JSON, min_size=1), JSON, st.data())
def test_no_two_requests_without_ids_share_a_key(request, other, data):
    path, _ = data.draw(st.sampled_from(list(leaves(request))))
    changed = with_leaf(request, path, other)
    same = encode_args(changed) == encode_args(request)
    assert (key(changed) == key(request)) == same


NAMES = st.sampled_from(["a", "b", "c"])
TALK = st.lists(
    st.builds(lambda n, k: {"role": "tool", k: n, "content": n}, NAMES, st.sampled_from(["id", "tool_call_id"])),
    min_size=1,
    max_size=5,
)


def renamed(talk, names):
    return [{k: names[v] if k in ("id", "tool_call_id") else v for k, v in message.items()} for message in talk]


@settings(max_examples=300, deadline=None)
@given(TALK, st.permutations(["a", "b", "c"]), st.data())
def test_ids_count_up_to_a_consistent_renaming(talk, names, data):
    mapped = dict(zip("abc", names, strict=True))
    assert key({"messages": renamed(talk, mapped)}) == key({"messages": talk})
    one = data.draw(st.integers(0, len(talk) - 1))
    mixed = [*talk[:one], *renamed(talk[one : one + 1], {"a": "x", "b": "x", "c": "x"}), *talk[one + 1 :]]
    lone = sum(m.get("id", m.get("tool_call_id")) == talk[one].get("id", talk[one].get("tool_call_id")) for m in talk)
    assert (key({"messages": mixed}) == key({"messages": talk})) == (lone == 1)


def test_only_ids_are_aliased():
    seen = key(REQUEST)
    for name in IDS:
        assert b'"%s"' % name.encode() not in seen
    for kept in (b'"id":"kept"', b'"run_id":"mine"', b'"resp_1"', b'"input":{"call_id":"c1","id":"c1"}'):
        assert kept in seen
    assert key({"run_id": "r1", "other": "r1"}) == b'{"other":"r1","run_id":"id#0"}'


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function_call", "id": "X", "call_id": "Y"},
        {"type": "reasoning", "id": "X"},
        {"type": "web_search_call", "id": "X"},
        {"type": "mcp_tool_use", "id": "X"},
        {"type": "message", "id": "X"},
        {"type": "item_reference", "id": "X"},
        {"part_kind": "text", "id": "X"},
        {"role": "assistant", "id": "X"},
        {"kind": "request", "parts": [], "conversation_id": "X"},
        {"type": "tool-call", "toolCallId": "X"},
    ],
)
def test_ids_of_items(item):
    assert b'"X"' not in key({"input": [item]})


@pytest.mark.parametrize(
    "item",
    [
        {"id": "X"},
        {"type": "file", "id": "X"},
        {"type": "image", "file_id": "X"},
        {"x": "X"},
        {"kind": "a", "id": "X"},
        {"conversation_id": "X"},
    ],
)
def test_what_is_no_id(item):
    assert b'"X"' in key({"input": [item]})


@dataclasses.dataclass
class Message:
    role: str
    id: str
    data: bytes = b"\x01"


def test_instances_of_classes_are_looked_into():
    assert key({"m": [Message("tool", "a")]}) == key({"m": [Message("tool", "b")]})
    assert key({"m": [Message("tool", "a")]}) != key({"m": [Message("user", "a")]})


# -- rules -----------------------------------------------------------------------------------------------------------


def described(text):
    return {
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": text,
                    "parameters": {
                        "title": text,
                        "properties": {"title": {"description": text}, "description": {"default": {"title": "kept"}}},
                        "required": ["title"],
                    },
                },
            }
        ]
    }


def test_normalize_tools_takes_descriptions_and_titles_and_nothing_else():
    assert tc.normalize_tools(described("a")) == {
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "parameters": {
                        "properties": {"title": {}, "description": {"default": {"title": "kept"}}},
                        "required": ["title"],
                    },
                },
            }
        ]
    }
    assert tc.normalize_tools(described("a")["tools"]) == tc.normalize_tools(described("b"))["tools"]
    assert tc.normalize_tools({"kwargs": described("a")}) == tc.normalize_tools({"kwargs": described("b")})
    assert tc.normalize_tools({"messages": [{"title": "x"}], "n": 1}) == {"messages": [{"title": "x"}], "n": 1}


def test_normalize_tools_by_option():
    kept = tc.normalize_tools(described("a"), titles=False)["tools"][0]["function"]
    assert kept["parameters"]["title"] == "a"
    assert "description" not in kept
    assert tc.normalize_tools(described("a"), titles=False, descriptions=False) == described("a")


def test_a_request_is_not_changed_by_its_normal_form():
    before = described("a")
    tc.normalize_tools(before)
    assert before == described("a")


def test_a_declared_rule_removes_and_nothing_else_does():
    def no_timeout(request):
        request.pop("timeout", None)
        return request

    assert key({"timeout": 1, "n": 1}, no_timeout) == key({"timeout": 2, "n": 1}, no_timeout) == key({"n": 1})
    assert key(described("a"), tc.normalize_tools) == key(described("b"), tc.normalize_tools)
    assert key(described("a")) != key(described("b"))
    with pytest.raises(TypeError, match="a rule takes a request"):
        key({"n": 1}, lambda request: None)
