"""Which tools were called, in what order and how often: ``follows_route`` and ``assert_trajectory``.

Theory. A trajectory is a list of tool calls, from a cassette, a session, or whatever an agent framework hands out. A
*route* says which tool may follow which. It belongs to one agent: in a cassette the calls of each call path are walked
on their own, since sub-agents that ran at once have no order among each other. Model calls are no steps.

Rule: the first thing that is not as it should be is named by place and tool; no argument is ever shown.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from toolcassette.contracts import encode_args
from toolcassette.engine import Session
from toolcassette.errors import printable
from toolcassette.format import RecordedCall, decode_tree, encode_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["RouteCheck", "assert_trajectory", "follows_route"]

_NAMES: Final = ("tool", "tool_name", "toolName")
_ARGUMENTS: Final = ("args", "arguments", "input")
_GROUPS: Final = ("tool_calls", "toolCalls")  # a step of an agent that made several calls, or none
_ORDERS: Final = ("exact", "within", "any")
_SEGMENT: Final = re.compile(r'\.(\w+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')
_NOTHING: Final = object()

_Expected: TypeAlias = "str | tuple[str, Mapping[str, object]]"


class _Step(NamedTuple):
    tool: str
    path: tuple[str, ...]
    args: Any  # a JSON tree, or _NOTHING


@dataclasses.dataclass(frozen=True)
class RouteCheck:
    """What ``follows_route`` found; true if the route was followed.

    ``illegal`` is the 0-based place of the first call that may not stand there, else None; ``message`` says it all.
    """

    ok: bool
    illegal: int | None = None
    message: str = "every call is legal"

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return f"<RouteCheck: {self.message}>"


def follows_route(calls: Iterable[object] | Session, allowed: object) -> RouteCheck:
    """Whether each call is one that ``allowed`` lets follow the call before it: ``assert tc.follows_route(...)``.

    ``calls``: a cassette, a session (a recorder that has published, a replayer), or an iterable of names, of calls, or
    of mappings or objects with ``tool``, ``tool_name`` or ``toolName``; those with ``tool_calls`` or ``toolCalls`` are
    steps of several. ``allowed`` maps each tool to those that may come next, or has such a map as ``adjacency``. The
    first call may be any tool that the map knows; those under the key None, if it has that. Raises ``TypeError`` for
    what is neither.
    """
    route = _route(allowed)
    known = {name for name in route if name is not None}.union(*route.values())
    before: dict[tuple[str, ...], str] = {}
    for at, step in enumerate(_steps(calls)):
        last = before.get(step.path)
        legal = route.get(last, ()) if last is not None or None in route else known
        if step.tool not in legal:
            after = "as the first call" if last is None else f"after {printable(last)!r}"
            where = f" of path /{'/'.join(map(printable, step.path))}" if step.path else ""
            words = ", ".join(printable(name) for name in sorted(legal))
            said = f"call {at + 1}{where} ({printable(step.tool)!r} {after}) is illegal; legal next: [{words}]"
            return RouteCheck(ok=False, illegal=at, message=said)
        before[step.path] = step.tool
    return RouteCheck(ok=True)


def assert_trajectory(
    calls: Iterable[object] | Session,
    expected: Sequence[_Expected] | None = None,
    *,
    order: str = "exact",
    counts: Mapping[str, int] | None = None,
    route: object = None,
) -> None:
    """Raise ``AssertionError`` with the first thing that is wrong with a trajectory; ``calls`` as in ``follows_route``.

    ``expected`` lists names, or pairs of a name and the arguments that matter, by JSON path:
    ``("fetch", {"$.url": "https://a.example", "$.tags[0]": "new"})``. ``order``: they are the calls, in this order
    (``exact``); they occur in this order, with others between them (``within``); they are the calls in any order
    (``any``). ``counts`` says how often a tool is called; 0 for never. ``route`` is what ``follows_route`` takes.
    Raises ``ValueError`` where there is nothing to check, for an unknown order or a bad path.
    """
    if expected is None and counts is None and route is None:
        message = "nothing to check: pass expected, counts or route"
        raise ValueError(message)
    if order not in _ORDERS:
        message = f"order must be one of {', '.join(_ORDERS)}"
        raise ValueError(message)
    steps = list(_steps(calls))
    wanted = [_wanted(item) for item in expected or ()]
    found = "" if expected is None else _CHECKS[order](steps, wanted)
    found = found or _count(steps, counts or {})
    if not found and route is not None:
        followed = follows_route(steps, route)
        found = "" if followed else followed.message
    if found:
        raise AssertionError(found)


# -- what was called -------------------------------------------------------------------------------------------------


def _steps(calls: Iterable[object] | Session) -> Iterator[_Step]:
    made: Iterable[object] = calls.calls() if isinstance(calls, Session) else calls
    if isinstance(made, str) or not isinstance(made, Iterable):
        message = "a trajectory is a cassette, a session, or an iterable of calls"
        raise TypeError(message)
    for at, item in enumerate(made):
        yield from _of(item, at)


def _of(item: object, at: int) -> Iterator[_Step]:
    """The steps that one thing stands for: one, or those of a group, or none for a model call."""
    if isinstance(item, _Step):
        yield item
    elif isinstance(item, str):
        yield _Step(item, (), _NOTHING)
    elif isinstance(item, RecordedCall):
        if item.boundary == "tool":
            yield _Step(item.tool, item.path, decode_tree(item.args, sort=True))
    else:
        group = _member(item, _GROUPS)
        if isinstance(group, Iterable) and not isinstance(group, str):
            for part in group:
                yield from _of(part, at)
            return
        name = _member(item, _NAMES)
        if not isinstance(name, str):
            message = f"item {at} of the trajectory names no tool: it has none of {', '.join(_NAMES)}"
            raise TypeError(message)
        yield _Step(name, (), _arguments(_member(item, _ARGUMENTS)))


def _member(item: object, names: Sequence[str]) -> object:
    for name in names:
        value: object = item.get(name, None) if isinstance(item, Mapping) else getattr(item, name, None)
        if value is not None:
            return value
    return None


def _arguments(given: object) -> Any:
    """The tree of arguments that a framework gives as a mapping, or as JSON text."""
    if isinstance(given, (str, bytes)):
        try:
            given = json.loads(given)
        except ValueError:
            return _NOTHING
    return _tree(dict(given)) if isinstance(given, Mapping) else _NOTHING


def _tree(value: object) -> Any:
    return decode_tree(encode_args({"v": value}), sort=True)["v"]


def _route(allowed: object) -> dict[str | None, frozenset[str]]:
    given: object = getattr(allowed, "adjacency", allowed)
    if isinstance(given, Mapping) and isinstance(given.get("adjacency"), Mapping):
        given = given["adjacency"]
    if not isinstance(given, Mapping):
        message = "a route maps each tool to those that may follow it, or has such a map as adjacency"
        raise TypeError(message)
    for name, following in given.items():
        if isinstance(following, str) or not isinstance(following, Iterable):
            message = f"the route from {printable(str(name))} must be a list of tools"
            raise TypeError(message)
    return {name: frozenset(following) for name, following in given.items()}


# -- what was expected -----------------------------------------------------------------------------------------------


class _Wanted(NamedTuple):
    tool: str
    args: tuple[tuple[str, tuple[str | int, ...], bytes], ...]  # path as given, its segments, the canonical value

    def differs(self, step: _Step) -> str:
        """What is wrong with a call that should be this one; empty for nothing."""
        if step.tool != self.tool:
            return f"is {printable(step.tool)}, and not {printable(self.tool)}"
        for path, segments, value in self.args:
            found = _at(step.args, segments)
            if found is _NOTHING:
                return f"({printable(step.tool)}) has no argument {printable(path)}"
            if encode_tree(found, sort=True) != value:
                return f"({printable(step.tool)}) has another value at {printable(path)}"
        return ""


def _wanted(item: _Expected) -> _Wanted:
    tool, args = (item, {}) if isinstance(item, str) else item
    rows = ((path, _segments(path), encode_tree(_tree(value), sort=True)) for path, value in args.items())
    return _Wanted(tool, tuple(rows))


def _segments(path: str) -> tuple[str | int, ...]:
    """``$.rows[3]["odd key"]`` as ``("rows", 3, "odd key")``."""
    parts = list(_SEGMENT.finditer(path, 1))
    if path[:1] != "$" or "".join(part[0] for part in parts) != path[1:]:
        message = f'{printable(path)} is no JSON path; write it like $.rows[3]["odd key"]'
        raise ValueError(message)
    return tuple(part[1] or (int(part[2]) if part[2] else json.loads(part[3])) for part in parts)


def _at(tree: Any, segments: Sequence[str | int]) -> Any:
    for segment in segments:
        members: dict[Any, Any] = dict(enumerate(tree)) if isinstance(tree, list) else tree
        if type(members) is not dict or segment not in members:
            return _NOTHING
        tree = members[segment]
    return tree


def _exact(steps: Sequence[_Step], wanted: Sequence[_Wanted]) -> str:
    for at, (step, want) in enumerate(zip(steps, wanted, strict=False)):
        differs = want.differs(step)
        if differs:
            return f"call {at + 1} {differs}"
    if len(steps) > len(wanted):
        return f"call {len(wanted) + 1} ({printable(steps[len(wanted)].tool)}) is one too many"
    if len(wanted) > len(steps):
        return f"call {len(steps) + 1} is missing: {printable(wanted[len(steps)].tool)}"
    return ""


def _within(steps: Sequence[_Step], wanted: Sequence[_Wanted]) -> str:
    left = iter(enumerate(steps))
    last = 0
    for number, want in enumerate(wanted):
        at = next((at for at, step in left if not want.differs(step)), None)
        if at is None:
            after = f" after call {last}" if last else ""
            return f"expected call {number + 1} ({printable(want.tool)}, with its arguments) does not occur{after}"
        last = at + 1
    return ""


def _any(steps: Sequence[_Step], wanted: Sequence[_Wanted]) -> str:
    """Each expected call needs a call of its own; one that was taken may move over to another that fits (matching)."""
    takers: dict[int, int] = {}

    def place(number: int, seen: set[int]) -> bool:
        for at, step in enumerate(steps):
            if at not in seen and not wanted[number].differs(step):
                seen.add(at)
                if at not in takers or place(takers[at], seen):
                    takers[at] = number
                    return True
        return False

    for number, want in enumerate(wanted):
        if not place(number, set()):
            return f"expected call {number + 1} ({printable(want.tool)}, with its arguments) does not occur"
    extra = next((at for at in range(len(steps)) if at not in takers), None)
    return "" if extra is None else f"call {extra + 1} ({printable(steps[extra].tool)}) is one too many"


_CHECKS: Final = {"exact": _exact, "within": _within, "any": _any}


def _count(steps: Sequence[_Step], counts: Mapping[str, int]) -> str:
    for tool, wanted in counts.items():
        made = sum(step.tool == tool for step in steps)
        if made != wanted:
            return f"{printable(tool)} is called {made} times, and not {wanted}"
    return ""
