"""``ToolReturn``: a value and what came beside it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import toolcassette as tc


def test_it_is_equal_by_its_parts_and_shows_none_of_them():
    one = tc.ToolReturn({"a": "canary"}, contexts=["canary", 2], meta={"k": "canary"})
    assert one == tc.ToolReturn({"a": "canary"}, contexts=["canary", 2], meta={"k": "canary"})
    for other in (tc.ToolReturn({"a": "canary"}), tc.ToolReturn(1, ["canary", 2], {"k": "canary"}), {"a": "canary"}):
        assert one != other
    assert repr(one) == "<ToolReturn dict contexts=2 meta=1>"
    assert repr(tc.ToolReturn(None)) == "<ToolReturn NoneType contexts=0>"


def test_it_is_frozen_and_what_was_not_given_is_empty():
    plain = tc.ToolReturn[int](3)
    assert (plain.value, plain.contexts, plain.meta) == (3, [], None)
    assert plain.contexts is not tc.ToolReturn(3).contexts
    with pytest.raises(dataclasses.FrozenInstanceError):
        plain.value = 4  # type: ignore[misc]
    with pytest.raises(TypeError):
        hash(plain)


@pytest.mark.parametrize(
    ("contexts", "meta"), [((1,), None), (None, None), ("ab", None), ([], []), ([], {1: 2}), ([], 3)]
)
def test_other_shapes_are_refused(contexts: Any, meta: Any):
    with pytest.raises(TypeError, match="ToolReturn"):
        tc.ToolReturn(1, contexts=contexts, meta=meta)


def test_what_came_beside_a_value_comes_back_with_it():
    store = tc.MemoryStore()
    tool = tc.Registry().wrap(lambda: tc.ToolReturn(1, contexts=["a", b"b"], meta={"k": (1, 2)}), name="tool")
    with tc.record("x", ["tool"], store=store):
        live = tool()
    with tc.replay("x", store=store):
        assert tool() == live == tc.ToolReturn(1, contexts=["a", b"b"], meta={"k": (1, 2)})
