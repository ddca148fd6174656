"""What makes two requests to a model one and the same: everything that was passed, but for run-random ids.

Theory. Tool calls, messages, responses and requests carry ids that providers and frameworks make up anew in each run,
and later messages of a conversation repeat them. In the key each id stands as an alias by first appearance, ``id#0``,
``id#1``: two requests are the same if they are equal up to a consistent renaming of ids. An id is the value of a member
whose name says so, or the ``id`` of an object that is a message, a part of one or a call. What a tool is called with,
schemas and metadata are data: an ``id`` in them is a value like any other. So is ``previous_response_id``, and a
``conversation_id`` that is passed beside the messages: they decide what the answer is.

Anything else is part of the key unless a declared rule removes it: a function from the request, as JSON by parameter
name, to what shall count of it.

Rule: never too narrow. What is not known to be an id is a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from toolcassette.format import TAG, decode_tree, encode_tree

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Rule", "identify", "normalize_tools"]

Rule: TypeAlias = "Callable[[dict[str, Any]], Mapping[str, Any]]"
_T = TypeVar("_T")

_ID_NAMES: Final = frozenset({
    "call_id", "message_id", "provider_response_id", "request_id", "response_id", "run_id", "tool_call_id",
    "tool_use_id", "toolCallId", "toolUseId",
})  # fmt: skip
_ITEM_ID_NAMES: Final = ("conversation_id", "id")  # ids in these objects: messages, parts of them, calls and results
_ITEM_KINDS: Final = re.compile(
    r"custom|function|item_reference|message|reasoning|tool[-_](call|use|result)"
    r"|\w+_(call|call_output|call_result|approval_request|list_tools|tool_use|tool_result)"
)
_DATA: Final = frozenset({
    "args", "arguments", "input_schema", "json_schema", "metadata", "parameters", "properties", "schema",
})  # fmt: skip
_DATA_IF_OBJECT: Final = ("content", "input", "output")  # else text, or a list of parts
_REST: Final = "args"  # at the top, what a function calls the rest of its positional parameters
_MAPS: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})  # of schemas
_SCHEMA_DATA: Final = frozenset({"const", "default", "enum", "examples"})
_TOOLS: Final = ("functions", "tools")


def identify(request: bytes, rules: Sequence[Rule] = ()) -> bytes:
    """The key of a request: canonical arguments after the rules, with aliases for ids. Takes canonical arguments.

    Raises ``TypeError`` where a rule gives no JSON object, and whatever a rule raises.
    """
    tree: Mapping[str, Any] = decode_tree(request, sort=True)
    for rule in rules:
        tree = rule(dict(tree))
        if not isinstance(tree, Mapping):
            message = "a rule takes a request and must return what counts of it, as a mapping"
            raise TypeError(message)
    ids: dict[str, str] = {}
    done = {
        name: tree[name] if name in _DATA and name != _REST else _aliased(tree[name], name, ids)
        for name in sorted(tree)
    }
    return encode_tree(done, sort=True)


def _aliased(value: Any, name: str, ids: dict[str, str]) -> Any:
    if isinstance(value, str):
        return ids.setdefault(value, f"id#{len(ids)}") if name in _ID_NAMES else value
    return _walked(value, ids)


def _walked(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_walked(item, ids) for item in value]
    if not isinstance(value, dict):
        return value
    if TAG in value:  # an instance of a class has members; anything else that is tagged is a value
        return value | {"v": _walked(value["v"], ids)} if value[TAG] == "object" else value
    is_item = _is_item(value)
    found: dict[str, Any] = {}
    for name in sorted(value):
        member = value[name]
        if name in _DATA or (name in _DATA_IF_OBJECT and isinstance(member, dict)):
            found[name] = member
        else:
            found[name] = _aliased(member, "call_id" if is_item and name in _ITEM_ID_NAMES else name, ids)
    return found


def _is_item(value: dict[str, Any]) -> bool:
    if isinstance(value.get("role"), str) or "part_kind" in value or ("kind" in value and "parts" in value):
        return True
    kind = value.get("type")
    return isinstance(kind, str) and _ITEM_KINDS.fullmatch(kind) is not None


def normalize_tools(tools: _T, *, descriptions: bool = True, titles: bool = True) -> _T:
    """Tool definitions without what only a model reads: descriptions and titles, also those within schemas.

    Takes a list of them, or a whole request with ``tools`` or ``functions``, so it is a rule as it stands:
    ``tc.wrap_model(ask, rules=[tc.normalize_tools])``. A parameter that is called ``title`` stays one.
    """
    dropped = frozenset(name for name, drop in (("description", descriptions), ("title", titles)) if drop)
    done: Any = (
        [_undescribed(tool, dropped) for tool in tools] if isinstance(tools, list) else _request(tools, dropped, 1)
    )
    found: _T = done
    return found


def _request(value: Any, dropped: frozenset[str], depth: int) -> Any:
    """A request whose tools are at the top, or in one of its members (keywords, a body)."""
    if not isinstance(value, Mapping):
        return value
    found = dict(value)
    for name, member in value.items():
        if name in _TOOLS and isinstance(member, list):
            found[name] = [_undescribed(tool, dropped) for tool in member]
        elif depth:
            found[name] = _request(member, dropped, depth - 1)
    return found


def _undescribed(node: Any, dropped: frozenset[str]) -> Any:
    if isinstance(node, list):
        return [_undescribed(item, dropped) for item in node]
    if not isinstance(node, Mapping):
        return node
    found: dict[str, Any] = {}
    for name, member in node.items():
        if name in dropped and isinstance(member, str):
            continue
        if name in _SCHEMA_DATA:
            found[name] = member
        elif name in _MAPS and isinstance(member, Mapping):
            found[name] = {key: _undescribed(schema, dropped) for key, schema in member.items()}
        else:
            found[name] = _undescribed(member, dropped)
    return found
