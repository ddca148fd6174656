"""A body that changes its arguments in place is told of; an argument that reading uses up is refused unread."""

from __future__ import annotations

import dataclasses
import io
import warnings
from collections.abc import Iterator  # noqa: TC003 - hints of tools, resolved in these tests
from typing import Any

import pytest

import toolcassette as tc


@dataclasses.dataclass
class Point:
    x: Any


def recording(tool: Any, *calls: Any, **more: Any) -> list[str]:
    """The warnings of a recording of these calls."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with tc.record("x", ["*"], store=tc.MemoryStore(), sync="none"):
            for call in calls:
                tool(*call, **more)
    return [str(warning.message) for warning in caught]


def append(rows: list[Any], point: Any = None) -> int:
    rows.append("canary")
    return len(rows)


def test_it_is_told_once_a_tool_and_session_with_the_path_and_no_value():
    tool = tc.Registry().wrap(append)
    (message,) = recording(tool, ([],), ([1],), ([2],))
    assert message.startswith("the body of append changed its arguments in place at $.rows")
    assert "canary" not in message
    assert len(recording(tool, ([],))) == 1  # another session


def change_point(point: Point, *rest: Any, **named: Any) -> None:
    point.x = named.get("value", 5)


def change_default(rows: list[int] = []) -> None:  # noqa: B006 - the case
    rows.append(1)


def put_object(box: dict[str, Any]) -> None:
    box["a"] = object()


def change_deep(box: tuple[Any, ...]) -> None:
    box[0]["a"][0] += 1


@pytest.mark.parametrize(("function", "call", "path"), [
    (change_point, (Point(1), 2), "$.point"),
    (change_default, (), "$.rows"),
    (put_object, ({},), "$.box.a"),  # what has no lossless form has changed as well
    (change_deep, (({"a": [1]},),), "$.box"),
])  # fmt: skip
def test_wherever_it_happens(function, call, path):
    (message,) = recording(tc.Registry().wrap(function), call)
    assert path in message


def test_async_tools_too():
    async def change(rows: list[int]) -> None:
        rows.append(1)

    import anyio

    tool = tc.Registry().wrap(change)

    async def program() -> None:
        async with tc.record("x", ["*"], store=tc.MemoryStore()):
            await tool([])

    with pytest.warns(UserWarning, match=r"\$\.rows"):
        anyio.run(program)


def test_bodies_that_change_nothing_of_the_caller_are_not_told_of():
    def look(rows: list[int], text: str = "a", *, box: Any = ()) -> list[int]:
        rows = [*rows, 1]
        return sorted(rows)

    assert recording(tc.Registry().wrap(look), ([1],), ([2],), ([],), box={"a": (1,)}) == []


def test_what_stays_out_of_the_call_may_change():
    assert recording(tc.Registry().wrap(append, omit=["rows"]), ([],)) == []


def test_a_replay_runs_no_body_and_says_nothing():
    tool = tc.Registry().wrap(append)
    store = tc.MemoryStore()
    rows: list[int] = []
    with pytest.warns(UserWarning, match="in place"), tc.record("x", ["*"], store=store):
        tool(rows)
    rows.clear()
    with tc.replay("x", store=store):
        assert tool(rows) == 1
    assert rows == []


def test_where_warnings_are_errors_what_was_recorded_is_whole():
    store = tc.MemoryStore()
    with tc.record("x", ["*"], store=store), pytest.raises(UserWarning):
        tc.Registry().wrap(append)([])
    assert [call.outcome for call in tc.read_cassette("x", store=store)] == ["ok"]


def take(source: Any) -> int:
    raise AssertionError("the body ran")


def numbers() -> Iterator[int]:
    yield from range(3)


@pytest.mark.parametrize("make", [
    numbers, lambda: iter([1, 2]), lambda: map(str, [1]), lambda: io.StringIO("ab"), lambda: io.BytesIO(b"ab"),
    lambda: zip([1], [2], strict=True), lambda: (n for n in [1]),
])  # fmt: skip
def test_an_argument_that_is_used_up_by_reading_is_refused_before_it_is(make):
    source = make()
    with pytest.raises(tc.UnrecordableValue) as caught, tc.record("x", ["*"], store=tc.MemoryStore()):
        tc.Registry().wrap(take)({"a": [source]})
    assert caught.value.json_path == "$.source.a[0]"
    assert list(source) == list(make())


def test_an_open_file_is_refused_before_it_is_read(tmp_path):
    (tmp_path / "f").write_text("canary")
    with (tmp_path / "f").open() as file:
        with pytest.raises(tc.UnrecordableValue) as caught, tc.record("x", ["*"], store=tc.MemoryStore()):
            tc.Registry().wrap(take)(file)
        assert file.tell() == 0
    assert (caught.value.json_path, caught.value.type_name) == ("$.source", "TextIOWrapper")


def test_a_return_annotation_that_no_contract_can_encode_is_refused_before_the_body():
    def give() -> io.StringIO:
        raise AssertionError("the body ran")

    with pytest.raises(tc.UnrecordableValue, match="annotation"), tc.record("x", ["*"], store=tc.MemoryStore()):
        tc.Registry().wrap(give)()
