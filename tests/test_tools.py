"""Tools: names, what counts as one call, what stays out of it, and that a wrapper cannot be told from its tool."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import gc
import importlib.util
import inspect
import itertools
import json
import sys
import textwrap
import typing
import warnings
from collections.abc import Awaitable, Callable, Coroutine  # noqa: TC003 - hints of tools, resolved in these tests
from typing import TYPE_CHECKING, Any

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolcassette as tc

if TYPE_CHECKING:
    import random
    from pathlib import Path
    from types import ModuleType


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


def recorded(call: Callable[[], object]) -> list[tc.RecordedCall]:
    """The calls that a program makes, of any tool."""
    store = tc.MemoryStore()
    with tc.record("x", ["*"], store=store, sync="none"):
        call()
    return list(tc.read_cassette("x", store=store))


def arguments(call: Callable[[], object]) -> Any:
    (only,) = recorded(call)
    return json.loads(only.args)


def module_of(tmp_path: Path, name: str, text: str) -> ModuleType:
    path = tmp_path / f"{name}.py"
    path.write_text(textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# -- names ------------------------------------------------------------------------------------------------------------


def plain(a: int, b: str = "x") -> str:
    """What it does."""
    return b * a


class Adder:
    """Adds."""

    def __init__(self, base: int = 10) -> None:
        self.base = base

    def __call__(self, n: int) -> int:
        return self.base + n

    def method(self, n: int) -> int:
        """A method."""
        return self.base - n

    @classmethod
    def of(cls, n: int) -> int:
        return cls(1)(n)

    @staticmethod
    def double(n: int) -> int:
        return 2 * n


class AsyncAdder:
    async def __call__(self, n: int) -> int:
        return n + 1


NAMES = [
    (plain, {}, "plain"),
    (plain, {"name": "given.name"}, "given.name"),
    (functools.partial(plain, 2), {}, "plain"),
    (Adder(), {}, "Adder"),
    (Adder().method, {}, "method"),
    (Adder.of, {}, "of"),
    (Adder.double, {}, "double"),
    (lambda: None, {}, "<lambda>"),
    (plain, {"name": "wetter für köln"}, "wetter für köln"),
]


@pytest.mark.parametrize(("fn", "options", "name"), NAMES)
def test_names(fn, options, name):
    registry = tc.Registry()
    tool = registry.wrap(fn, **options)
    assert registry.names() == (name,)
    del tool


@pytest.mark.parametrize("name", ["", "a\ud800"])
def test_unusable_names(name):
    with pytest.raises(ValueError, match="name of a tool"):
        tc.Registry().wrap(plain, name=name)


@pytest.mark.parametrize("thing", [1, "plain", None, Point, getattr])
def test_what_cannot_be_a_tool(thing):
    with pytest.raises(TypeError):
        tc.Registry().wrap(thing)


@pytest.mark.parametrize("errors", [[KeyError("x")], ["KeyError"], [KeyboardInterrupt], [int]])
def test_errors_lists_exception_classes(errors):
    with pytest.raises(TypeError, match="exception classes"):
        tc.Registry().wrap(plain, errors=errors)


@pytest.mark.parametrize("omit", [["c"], ["a", "zz"], "ab"])
def test_omit_lists_parameters(omit):
    with pytest.raises(ValueError, match="omit of plain"):
        tc.Registry().wrap(plain, omit=omit)


# -- what stays out of a call -----------------------------------------------------------------------------------------


class Connection:
    pass


def test_omit_leaves_a_parameter_out_and_says_so():
    query = tc.Registry().wrap(lambda conn, sql: sql, name="query", omit=["conn"])
    (call,) = recorded(lambda: query(Connection(), "select 1"))
    assert json.loads(call.args) == {"sql": "select 1"}
    assert call.omitted == ("conn",)


def test_omit_types_leaves_out_what_is_annotated_so():
    class Special(Connection):
        pass

    def query(conn: Connection, sql: str, other: typing.Annotated[Special, "x"], plain_one: int = 1) -> str:
        return sql

    query.__annotations__["other"] = typing.Annotated[Special, "x"]
    tool = tc.Registry(omit_types=[Connection]).wrap(query)
    (call,) = recorded(lambda: tool(Connection(), "s", Special()))
    assert json.loads(call.args) == {"sql": "s", "plain_one": 1}
    assert call.omitted == ("conn", "other")


def test_self_and_cls_stay_out(tmp_path):
    class Box:
        def __init__(self) -> None:
            self.unrecordable = object()

        @tc.cassette_tool(name="box.get")
        def get(self, n: int) -> int:
            return n

        @classmethod
        @tc.cassette_tool(name="box.of")
        def of(cls, n: int) -> str:
            return cls.__name__ * n

        @tc.cassette_tool(name="box.of2")
        @classmethod
        def of2(cls, n: int) -> str:
            return cls.__name__ * n

        @tc.cassette_tool(name="box.st")
        @staticmethod
        def st(n: int) -> int:
            return n

    def program() -> list[object]:
        return [Box().get(1), Box.get(Box(), 2), Box.of(1), Box().of2(2), Box.of2(1), Box.st(3), Box().st(4)]

    file = tmp_path / "x"
    with tc.record(file, ["box.*"]):
        found = program()
    assert found == [1, 2, "Box", "BoxBox", "Box", 3, 4]
    assert [list(json.loads(call.args)) for call in tc.read_cassette(file)] == [["n"]] * 7
    assert [call.omitted for call in tc.read_cassette(file)][:4] == [("self",), ("self",), ("cls",), ("cls",)]
    with tc.replay(file):
        assert program() == found


def test_a_parameter_called_self_of_a_plain_function_is_a_parameter():
    tool = tc.Registry().wrap(lambda self: self, name="t")
    assert arguments(lambda: tool(1)) == {"self": 1}


MISSING = object()


def test_a_default_that_cannot_be_written_is_left_out_when_it_is_that_default():
    tool = tc.Registry().wrap(lambda a, limit=MISSING: a, name="t")
    (left_out,) = recorded(lambda: tool(1))
    assert (json.loads(left_out.args), left_out.omitted) == ({"a": 1}, ("limit",))
    assert arguments(lambda: tool(1, MISSING)) == {"a": 1}
    assert arguments(lambda: tool(1, 5)) == {"a": 1, "limit": 5}
    with pytest.raises(tc.UnrecordableValue) as caught:
        recorded(lambda: tool(1, object()))
    assert caught.value.json_path == "$.limit"


# -- any spelling of one call is one call -----------------------------------------------------------------------------


VALUES = [0, 1, True, 1.0, "1", None, -1]


@dataclasses.dataclass(frozen=True)
class Shape:
    """A signature: how many parameters of each kind, and how many of the trailing ones have a default."""

    only_place: int
    both: int
    rest: bool
    only_name: int
    names: bool
    defaults: int

    @property
    def placed(self) -> list[str]:
        return [f"p{n}" for n in range(self.only_place + self.both)]

    @property
    def with_default(self) -> set[str]:
        placed = self.placed
        return {*placed[len(placed) - min(self.defaults, len(placed)) :], *[f"k{n}" for n in range(self.only_name)]}

    def function(self) -> Callable[..., Any]:
        def spelled(name: str) -> str:
            return f"{name}=0" if name in self.with_default else name

        words = [spelled(name) for name in self.placed[: self.only_place]]
        words += ["/"] if words else []
        words += [spelled(name) for name in self.placed[self.only_place :]]
        words += ["*rest"] if self.rest else ["*"] if self.only_name else []
        words += [spelled(f"k{n}") for n in range(self.only_name)]
        words += ["**names"] if self.names else []
        made: dict[str, Any] = {}
        exec(f"def tool({', '.join(words)}): return 0", made)
        function: Callable[..., Any] = made["tool"]
        return function


@dataclasses.dataclass(frozen=True)
class Meant:
    """One call as it is meant, whatever way it is spelled."""

    values: dict[str, Any]
    rest: tuple[Any, ...]
    names: dict[str, Any]


shapes = st.builds(
    Shape,
    only_place=st.integers(0, 2),
    both=st.integers(0, 3),
    rest=st.booleans(),
    only_name=st.integers(0, 2),
    names=st.booleans(),
    defaults=st.integers(0, 5),
)
values = st.sampled_from(VALUES)


@st.composite
def meant_calls(draw: st.DrawFn, shape: Shape) -> Meant:
    names = [*shape.placed, *[f"k{n}" for n in range(shape.only_name)]]
    return Meant(
        {name: draw(values) for name in names},
        tuple(draw(st.lists(values, max_size=2))) if shape.rest else (),
        draw(st.dictionaries(st.sampled_from(["x", "rest", "names", "tool"]), values, max_size=2))
        if shape.names
        else {},
    )


def spell(shape: Shape, meant: Meant, choose: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """One of the ways to write the call."""
    placed = shape.placed
    by_place = len(placed) if meant.rest else choose.randint(shape.only_place, len(placed))
    args = [meant.values[name] for name in placed[:by_place]] + list(meant.rest)
    by_name = {name: value for name, value in meant.values.items() if name not in placed[:by_place]}
    left_out = {
        name
        for name, value in by_name.items()
        if name in shape.with_default and type(value) is int and value == 0 and choose.random() < 0.5
    }
    rows = [*((n, v) for n, v in by_name.items() if n not in left_out), *meant.names.items()]
    choose.shuffle(rows)
    return args, dict(rows)


@settings(deadline=None, max_examples=60)
@given(shapes.flatmap(lambda shape: st.tuples(st.just(shape), meant_calls(shape))), st.randoms(use_true_random=False))
def test_any_spelling_of_one_call_is_one_call(pair, choose):
    shape, meant = pair
    tool = tc.Registry().wrap(shape.function())

    def program() -> None:
        for _ in range(4):
            args, kwargs = spell(shape, meant, choose)
            tool(*args, **kwargs)

    assert len({call.args for call in recorded(program)}) == 1


@settings(deadline=None, max_examples=60)
@given(
    shapes.flatmap(lambda shape: st.tuples(st.just(shape), meant_calls(shape), meant_calls(shape))),
    st.randoms(use_true_random=False),
)
def test_different_calls_are_never_one_call(triple, choose):
    shape, one, two = triple
    tool = tc.Registry().wrap(shape.function())

    def program() -> None:
        for meant in (one, two):
            args, kwargs = spell(shape, meant, choose)
            tool(*args, **kwargs)

    first, second = recorded(program)
    same = _typed(one) == _typed(two)
    assert (first.args == second.args) is same


def _typed(meant: Meant) -> str:
    return repr((sorted(meant.values.items()), meant.rest, sorted(meant.names.items())))


def test_wrong_arguments_raise_what_python_raises_and_make_no_call(tmp_path):
    tool: Any = tc.Registry().wrap(plain)
    with tc.record(tmp_path / "x", ["plain"], allow_empty=True) as session:
        for args, kwargs in [((), {}), ((1, 2, 3), {}), ((1,), {"a": 1}), ((1,), {"zz": 1})]:
            with pytest.raises(TypeError):
                tool(*args, **kwargs)
    assert session.verdict is not None
    assert session.verdict.calls == 0


def test_an_added_parameter_at_its_default_is_a_mismatch_that_says_just_that(tmp_path):
    old = tc.Registry().wrap(lambda city: city, name="weather")
    new = tc.Registry().wrap(lambda city, unit="c": city, name="weather")
    with tc.record(tmp_path / "x", ["weather"]):
        old("Wuhan")
    with pytest.raises(tc.CassetteMismatch) as caught, tc.replay(tmp_path / "x"):
        new("Wuhan")
    assert (caught.value.reason, caught.value.differs) == ("arguments_differ", ("$.unit",))
    assert "$.unit was not there when this was recorded" in str(caught.value)
    with tc.record(tmp_path / "y", ["weather"]):
        new("Wuhan")
    with pytest.raises(tc.CassetteMismatch, match=r"\$\.unit was recorded and is not passed any more"):
        with tc.replay(tmp_path / "y"):
            old("Wuhan")


def test_a_partials_bound_arguments_are_part_of_its_calls():
    tool = tc.Registry().wrap(functools.partial(plain, 2, b="y"))
    assert arguments(tool) == {"a": 2, "b": "y"}
    assert arguments(lambda: tool(b="z")) == {"a": 2, "b": "z"}


# -- a wrapper cannot be told from its tool ---------------------------------------------------------------------------


async def asynchronous(a: int, point: Point, *, flag: bool = False) -> list[Point]:
    """Asynchronous."""
    return [point] * a


@functools.wraps(asynchronous)
def shell(*args: Any, **kwargs: Any) -> Coroutine[Any, Any, list[Point]]:
    return asynchronous(*args, **kwargs)


def awaitable(n: int) -> Awaitable[int]:
    """A plain function that returns an awaitable."""
    return asyncio.sleep(0, n)


def everything(
    a: int, /, b: str, *rest: float, c: Point | None = None, d: typing.Annotated[int, "note"] = 3, **names: bool
) -> dict[str, list[Point]]:
    """Everything at once."""
    return {}


def keywords(*, a: int = 1, point: Point | None = None, **names: bool) -> None:
    """Keywords alone."""


FUNCTIONS = [plain, asynchronous, shell, awaitable, everything]
BOUND = [Adder().method, Adder.of, Adder.double]
OBJECTS = [functools.partial(plain, 2), functools.partial(asynchronous, 1), Adder(), AsyncAdder()]


@pytest.mark.parametrize("fn", FUNCTIONS + BOUND)
def test_a_function_and_its_wrapper_look_the_same(fn):
    tool = tc.Registry().wrap(fn)
    assert inspect.signature(tool) == inspect.signature(fn)
    assert inspect.signature(tool, eval_str=True) == inspect.signature(fn, eval_str=True)
    assert typing.get_type_hints(tool) == typing.get_type_hints(fn)
    assert typing.get_type_hints(tool, include_extras=True) == typing.get_type_hints(fn, include_extras=True)
    assert inspect.iscoroutinefunction(tool) is inspect.iscoroutinefunction(fn)
    for attribute in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__"):
        assert getattr(tool, attribute) == getattr(fn, attribute)
    assert inspect.getdoc(tool) == inspect.getdoc(fn)
    assert inspect.getsource(tool) == inspect.getsource(fn)
    assert callable(tool)


@pytest.mark.parametrize("fn", OBJECTS)
def test_an_object_and_its_wrapper_look_the_same(fn):
    tool = tc.Registry().wrap(fn)
    carrier = fn.func if isinstance(fn, functools.partial) else type(fn).__call__
    assert inspect.signature(tool) == inspect.signature(fn)
    shown = {*inspect.signature(fn).parameters, "return"}
    assert typing.get_type_hints(tool) == {k: v for k, v in typing.get_type_hints(carrier).items() if k in shown}
    assert inspect.iscoroutinefunction(tool) is inspect.iscoroutinefunction(carrier)


@pytest.mark.parametrize("fn", [plain, asynchronous, awaitable, keywords, *BOUND])
def test_pydantic_builds_the_same_schema(fn):
    tool = tc.Registry().wrap(fn)
    assert pydantic.TypeAdapter(tool).json_schema() == pydantic.TypeAdapter(fn).json_schema()
    assert json.dumps(pydantic.TypeAdapter(tool).json_schema()) == json.dumps(pydantic.TypeAdapter(fn).json_schema())


def test_pydantic_validates_the_calls_of_a_tool():
    tool: Any = pydantic.validate_call(tc.Registry().wrap(plain))
    assert arguments(lambda: tool("2")) == {"a": 2, "b": "x"}
    with pytest.raises(pydantic.ValidationError):
        tool("two")


def test_msgspec_builds_the_same_schema():
    tool = tc.Registry().wrap(asynchronous)
    for name in ("point", "return"):
        ours, theirs = typing.get_type_hints(tool)[name], typing.get_type_hints(asynchronous)[name]
        assert msgspec.json.encode(msgspec.json.schema(ours)) == msgspec.json.encode(msgspec.json.schema(theirs))
        assert msgspec.inspect.type_info(ours) == msgspec.inspect.type_info(theirs)


def test_hints_of_a_module_without_postponed_annotations(tmp_path):
    module = module_of(tmp_path, "eager_tools", "def tool(a: int, b: list[str]) -> dict[str, int]:\n    return {}\n")
    tool = tc.Registry().wrap(module.tool)
    assert typing.get_type_hints(tool) == typing.get_type_hints(module.tool)
    assert pydantic.TypeAdapter(tool).json_schema() == pydantic.TypeAdapter(module.tool).json_schema()


def test_hints_that_exist_only_later_are_resolved_at_the_first_call(tmp_path):
    module = module_of(
        tmp_path,
        "late_tools",
        """
        from __future__ import annotations
        import dataclasses
        import toolcassette as tc

        @tc.cassette_tool(name="late")
        def late(n: int) -> Answer:
            return Answer(n)

        @dataclasses.dataclass
        class Answer:
            n: int
        """,
    )
    with tc.record(tmp_path / "x", ["late"]):
        assert module.late(1) == module.Answer(1)
    with tc.replay(tmp_path / "x"):
        assert module.late(1) == module.Answer(1)


def test_a_hint_that_cannot_be_resolved_counts_as_absent(tmp_path):
    module = module_of(tmp_path, "broken_tools", "def tool(n: 'Nowhere') -> 'Nowhere':\n    return {'n': n}\n")
    tool = tc.Registry().wrap(module.tool)
    assert arguments(lambda: tool(1)) == {"n": 1}


def test_returns_overrides_a_wrong_annotation():
    def wrong(n: int) -> str:
        return n  # type: ignore[return-value]  # the annotation is wrong on purpose

    with pytest.raises(tc.UnrecordableValue):
        recorded(lambda: tc.Registry().wrap(wrong)(1))
    assert arguments(lambda: tc.Registry().wrap(wrong, returns=Any)(1)) == {"n": 1}


def test_an_annotation_that_nothing_can_encode_is_refused_before_the_body():
    ran = []

    def tool() -> Callable[[], int]:
        ran.append(1)
        return int

    with pytest.raises(tc.UnrecordableValue):
        recorded(lambda: tc.Registry().wrap(tool)())
    assert ran == []


# -- kinds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "args", "expected"),
    [
        (asynchronous, (2, Point(1)), [Point(1), Point(1)]),
        (shell, (1, Point(1)), [Point(1)]),
        (awaitable, (3,), 3),
        (AsyncAdder(), (3,), 4),
        (functools.partial(asynchronous, 1), (Point(2),), [Point(2)]),
    ],
)
def test_what_is_awaited(fn, args, expected, tmp_path):
    tool = tc.Registry().wrap(fn, name="tool")

    async def program() -> object:
        waiting = tool(*args)
        assert inspect.isawaitable(waiting)
        return await waiting

    assert asyncio.run(program()) == expected
    with tc.record(tmp_path / "x", ["tool"]):
        assert asyncio.run(program()) == expected
    with tc.replay(tmp_path / "x"):
        assert asyncio.run(program()) == expected


def test_a_bare_awaitable_annotation():
    def bare(n: int) -> Awaitable:
        return asyncio.sleep(0, n)

    bare.__annotations__["return"] = typing.Awaitable
    tool = tc.Registry().wrap(bare)

    async def program() -> None:
        assert await tool(1) == 1

    (call,) = recorded(lambda: asyncio.run(program()))
    assert call.value == b"1"


def test_a_coroutine_that_nobody_announced_is_refused_without_a_warning():
    tool = tc.Registry().wrap(lambda: asyncio.sleep(0), name="tool")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tc.UnrecordableValue, match="async def"):
            recorded(tool)
        gc.collect()


def test_without_a_session_a_tool_is_its_function():
    sentinel = object()
    assert tc.Registry().wrap(lambda: sentinel, name="t")() is sentinel


# -- registries -------------------------------------------------------------------------------------------------------


def test_a_registry_refuses_a_second_live_tool_of_one_name():
    registry = tc.Registry()
    first = registry.wrap(plain)
    with pytest.raises(ValueError, match="plain already"):
        registry.wrap(plain)
    other = registry.wrap(plain, name="plain2")
    assert registry.names() == ("plain", "plain2")
    assert repr(registry) == "<Registry tools=2>"
    del first, other


def test_a_registry_keeps_no_tool_alive():
    registry = tc.Registry()
    tool = registry.wrap(plain)
    del tool
    gc.collect()
    assert registry.names() == ()
    again = registry.wrap(plain)
    assert registry.names() == ("plain",)
    assert again(1) == "x"


def test_wrap_all_of_a_module(tmp_path):
    module = module_of(
        tmp_path,
        "some_tools",
        """
        import json
        from os.path import join

        def one(a): return a
        async def two(a): return a
        def _private(a): return a
        class Three: pass
        CONSTANT = 1
        """,
    )
    registry = tc.Registry()
    tools = registry.wrap_all(module)
    assert sorted(tools) == ["one", "two"]
    assert registry.names() == ("one", "two")
    assert tools["one"] is not module.one
    assert not hasattr(module.one, "__wrapped__")  # nothing is patched


def test_wrap_all_of_a_mapping():
    registry = tc.Registry()
    tools = registry.wrap_all({"a.b": plain, "c": Adder()})
    assert registry.names() == ("a.b", "c")
    assert tools["c"](1) == 11


@pytest.mark.parametrize("again", [lambda tool: tool, functools.partial])
def test_wrapping_twice_is_wrapping_once(again):
    inner = tc.Registry().wrap(plain, name="inner")
    tool = tc.Registry().wrap(again(inner), name="outer")
    if again is functools.partial:  # a new function around a tool is no tool yet: that is selecting both
        with pytest.raises(tc.NestedSelection):
            recorded(lambda: tool(2))
        return
    assert [call.tool for call in recorded(lambda: tool(2))] == ["outer"]


def test_wrapping_a_bound_method_of_a_wrapped_one_keeps_its_object():
    class Box:
        def __init__(self, base: int) -> None:
            self.base = base

        @tc.cassette_tool(name="box.add")
        def add(self, n: int) -> int:
            return self.base + n

    tool = tc.Registry().wrap(Box(10).add, name="ten.add")
    assert tool(1) == 11
    (call,) = recorded(lambda: tool(1))
    assert (call.tool, call.args) == ("ten.add", b'{"n":1}')


def test_a_decorator_around_a_tool_is_not_lost_when_that_is_wrapped():
    inner = tc.cassette_tool(name="inner")(plain)

    @functools.wraps(inner)
    def loud(*args: Any, **kwargs: Any) -> str:
        return inner(*args, **kwargs).upper()

    assert tc.Registry().wrap(loud, name="loud")(2) == "XX"


def test_an_object_that_has_every_attribute_can_be_a_tool():
    class Anything:
        def __getattr__(self, name: str) -> object:
            if name.startswith("__") and name != "__toolcassette__":
                raise AttributeError(name)
            return self

        def __call__(self, n: int) -> int:
            return n

    assert tc.Registry().wrap(Anything(), name="t")(3) == 3


def test_two_functions_of_one_name_in_one_session_raise(tmp_path):
    one = tc.cassette_tool(name="same")(lambda n: n)
    two = tc.cassette_tool(name="same")(lambda n: n + 1)
    with tc.record(tmp_path / "x", ["same"]):
        one(1)
        with pytest.raises(ValueError, match="two different functions"):
            two(1)
        one(2)


def test_two_modules_with_the_same_text_are_two_functions(tmp_path):
    text = "def tool(n): return n + BASE\nBASE = %d\n"
    one, two = (module_of(tmp_path, f"twin{base}", text % base).tool for base in (1, 2))
    first, second = tc.cassette_tool(one), tc.cassette_tool(two)
    with tc.record(tmp_path / "x", ["tool"]):
        first(1)
        with pytest.raises(ValueError, match="two different functions"):
            second(1)


def test_one_function_wrapped_for_two_objects_is_one_tool(tmp_path):
    tools = [tc.Registry().wrap(Adder(base).method) for base in (1, 2)]
    with tc.record(tmp_path / "x", ["method"]):
        assert [tool(1) for tool in tools] == [0, 1]


def test_a_redefinition_replaces_in_the_default_registry():
    made = [tc.cassette_tool(name="again")(lambda n=n: n) for n in range(3)]
    assert [tool() for tool in made] == [0, 1, 2]


def test_the_decorator_bare_and_with_options():
    @tc.cassette_tool
    def bare(n: int) -> int:
        return n

    @tc.cassette_tool(name="db.query", omit=["conn"], errors=[KeyError])
    def query(conn: object, sql: str) -> str:
        return sql

    names = [call.tool for call in recorded(lambda: (bare(1), query(object(), "s")))]
    assert names == ["bare", "db.query"]
    assert list(itertools.chain(inspect.signature(query).parameters)) == ["conn", "sql"]
