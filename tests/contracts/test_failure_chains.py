"""Causes, notes, groups and stated failures: what an exception brings along comes back with it."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

import toolcassette as tc
from toolcassette.contracts import decode_error, encode_error
from toolcassette.contracts.failures import CAUSES_MAX
from toolcassette.errors import FormatError, RecordedToolError, UnrecordableValue


class DbError(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(f"no {number}")
        self.number = number


class ManyErrors(ExceptionGroup[Exception]):
    label = ""


class ConnectionError(Exception):  # noqa: A001 - a library's own, as many have
    pass


def caused(error: BaseException, *causes: BaseException) -> Any:
    last = error
    for cause in causes:
        last.__cause__ = cause
        last = cause
    return error


def again(error: Exception, declared: Any = ()) -> Any:
    """What a replay raises; it must be as whole as it says."""
    data, is_own = encode_error(error, declared)
    back = decode_error(data, declared)
    assert is_own is (type(back) is type(error) and "RecordedToolError" not in shown(back, causes=False))
    return back


def shown(error: Any, *, causes: bool = True) -> str:
    """An exception with all that is said about it."""
    parts = ", ".join(shown(part, causes=causes) for part in getattr(error, "exceptions", ()))
    text = f"{type(error).__name__}({parts or error}){getattr(error, '__notes__', '')}"
    return f"{text} <- {shown(error.__cause__)}" if causes and error.__cause__ is not None else text


def test_a_chain_of_causes_comes_back_with_notes_and_as_if_raised_from():
    error = caused(ValueError("top"), DbError(3), KeyError("k"), OSError(2, "none", "f"))
    error.__cause__.add_note("seen")
    back = again(error, [DbError])
    assert shown(back) == shown(error)
    assert back.__suppress_context__
    assert back.__cause__.number == 3
    assert back.__cause__.__cause__.__cause__.filename == "f"
    assert again(ValueError("alone")).__cause__ is None


def test_a_cause_that_is_not_declared_is_a_stand_in_and_the_error_is_itself():
    back = again(caused(ValueError("top"), DbError(3)))
    cause: Any = back.__cause__
    assert type(back) is ValueError
    assert (type(cause), cause.type_name) == (RecordedToolError, f"{__name__}.DbError")


@pytest.mark.parametrize(
    "cause", [KeyboardInterrupt("canary"), asyncio.CancelledError(), SystemExit(3), GeneratorExit()]
)
def test_a_cause_that_is_no_exception_is_never_raised_again(cause):
    back = again(caused(ValueError("top"), cause))
    assert type(back.__cause__) is RecordedToolError
    assert back.__cause__.type_name.endswith(type(cause).__name__)


def test_chains_end_somewhere():
    loop = caused(ValueError("a"), KeyError("b"))
    loop.__cause__.__cause__ = loop
    assert shown(again(loop)) == "ValueError(a) <- KeyError('b')"
    long: Any = ValueError(0)
    for number in range(1, 200):
        long = caused(ValueError(number), long)
    back, length = again(long), 0
    while back is not None:
        back, length = back.__cause__, length + 1
    assert length == CAUSES_MAX + 1
    deep: Any = ValueError("x")
    for _ in range(200):
        deep = ExceptionGroup("g", [deep])
    assert encode_error(deep, [])[1] is False


def test_groups_come_back_with_their_parts_nested():
    inner: Any = ExceptionGroup("in", [OSError(28, "full"), DbError(1)])
    error = caused(ExceptionGroup("many", [ValueError(1, (2,)), inner]), KeyError("k"))
    error.add_note("all of them")
    inner.exceptions[0].add_note("disk")
    back: Any = again(error, [DbError])
    assert shown(back) == shown(error)
    assert [type(group) for group in (back, back.exceptions[1])] == [ExceptionGroup] * 2
    assert back.message == "many"
    assert back.exceptions[1].exceptions[1].number == 1
    whole: Any = ExceptionGroup.split
    matched, rest = whole(back, DbError)
    assert (len(matched.exceptions), rest.subgroup(DbError)) == (1, None)  # what `except* DbError` goes by


def test_a_group_with_a_part_that_is_not_its_own_class_says_so():
    error = ExceptionGroup("g", [ValueError(1), DbError(2)])
    data, is_own = encode_error(error, [])
    back: Any = decode_error(data, [])
    assert not is_own  # recording warns: except* DbError would not see it
    assert [type(part) for part in back.exceptions] == [ValueError, RecordedToolError]


def test_a_declared_class_of_groups():
    error = ManyErrors("m", [ValueError(1)])
    error.label = "own"
    back = again(error, [ManyErrors])
    assert (type(back), back.label, back.message) == (ManyErrors, "own", "m")
    stranger = again(error)
    assert (type(stranger), stranger.message) == (RecordedToolError, "m")


def test_a_group_that_cannot_be_rebuilt_as_it_was_is_a_stand_in():
    error = ExceptionGroup("g", [ValueError(1)])
    error.handle = object()  # type: ignore[attr-defined]  # has no lossless form

    class Picky(ExceptionGroup[Exception]):
        def __new__(cls, message, errors, *, key=None):
            if key is None:
                raise TypeError
            return super().__new__(cls, message, errors)

        def __init__(self, message, errors, *, key=None):
            super().__init__(message, errors)

    for group, declared in ((error, []), (Picky("g", [ValueError(1)], key=1), [Picky])):
        back = again(group, declared)
        assert (type(back), back.message) == (RecordedToolError, "g")


def test_a_group_of_what_is_no_exception_stays_a_stand_in():
    group = BaseExceptionGroup("b", [KeyboardInterrupt(), ValueError(1)])
    back = again(caused(ValueError("top"), group))
    assert (type(back.__cause__), back.__cause__.type_name) == (RecordedToolError, "builtins.BaseExceptionGroup")


def test_a_class_that_has_the_name_of_a_builtin_is_not_it():
    back = again(caused(ExceptionGroup("g", [ConnectionError("refused")]), ConnectionError("x")))
    for part in (back.exceptions[0], back.__cause__):
        assert (type(part), part.type_name) == (RecordedToolError, f"{__name__}.ConnectionError")


@pytest.mark.parametrize("text", [
    '{"type":"builtins.ExceptionGroup","message":"g","parts":[1]}',
    '{"type":"builtins.ExceptionGroup","message":"g","parts":{}}',
    '{"type":"builtins.ExceptionGroup","message":1,"parts":[{"type":"builtins.ValueError","message":"m","args":[]}]}',
    '{"type":"builtins.ValueError","message":"m","cause":null}',
    '{"type":"builtins.ValueError","message":"m","cause":{"message":"m","type":"a"}}',
    '{"type":"builtins.ValueError","message":"m","parts":[],"cause":{"type":"a","message":"b"}}',
])  # fmt: skip
def test_a_crafted_body_is_refused(text):
    with pytest.raises(FormatError):
        decode_error(text.encode(), [])


def test_a_crafted_group_makes_nothing_but_groups():
    text = '{"type":"%s","message":"g","parts":[{"type":"builtins.ValueError","message":"m","args":[]}]}'
    for name in ("builtins.ValueError", "builtins.eval", "os.system", "builtins.BaseExceptionGroup"):
        assert type(decode_error((text % name).encode(), [])) is RecordedToolError
    empty: Any = decode_error(b'{"type":"builtins.ExceptionGroup","message":"g"}', [])
    assert (type(empty), empty.message) == (RecordedToolError, "g")


# --- ToolFailure


@pytest.mark.parametrize("failure", [
    tc.ToolFailure("no such city"),
    tc.ToolFailure("", code=404, data={"a": [(1,), b"x"]}),
    tc.ToolFailure("a\ud800", code="not_found", data=0),
])  # fmt: skip
def test_a_stated_failure_always_comes_back_as_itself(failure):
    failure.add_note("n")
    back = again(caused(failure, KeyError("k")))
    assert (type(back), back.message, back.code, back.data) == (
        tc.ToolFailure,
        failure.message,
        failure.code,
        failure.data,
    )
    assert (str(back), back.args, back.__notes__, repr(back.__cause__)) == (
        str(failure),
        failure.args,
        ["n"],
        "KeyError('k')",
    )
    assert b'"toolcassette.ToolFailure"' in encode_error(failure, [])[0]


def test_a_stated_failure_is_an_exception_of_the_tools_and_not_of_ours():
    assert not issubclass(tc.ToolFailure, tc.CassetteError)
    copy = pickle.loads(pickle.dumps(tc.ToolFailure("m", code=1, data=[2])))
    assert (copy.message, copy.code, copy.data) == ("m", 1, [2])
    with pytest.raises(TypeError):
        tc.ToolFailure(3)  # type: ignore[arg-type]


def test_a_stated_failure_that_cannot_be_kept_is_refused_with_its_place():
    for failure, path in (
        (tc.ToolFailure("m", data={"a": object()}), "$.data.a"),
        (tc.ToolFailure("m", code=DbError), "$.code"),
    ):
        with pytest.raises(UnrecordableValue) as caught:
            encode_error(failure, [])
        assert caught.value.json_path == path


def test_a_subclass_of_it_is_a_class_like_any_other():
    class Own(tc.ToolFailure):
        pass

    back = again(Own("m", code=1), [Own])
    assert (type(back), back.code) == (Own, 1)
    assert type(again(Own("m", code=1))) is RecordedToolError


def test_through_a_tool_from_call_to_replay(recwarn):
    tools = tc.Registry()

    def fail(kind: str) -> int:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            if kind == "stated":
                raise tc.ToolFailure("no", code="c", data=[1]) from inner
            raise ExceptionGroup("many", [ValueError(1), DbError(2)]) from inner

    tool = tools.wrap(fail, errors=[DbError])

    def program() -> list[str]:
        found = []
        for kind in ("stated", "group"):
            try:
                tool(kind)
            except Exception as error:
                found.append(shown(error))
        return found

    store = tc.MemoryStore()
    with tc.record("e", ["*"], store=store):
        live = program()
    with tc.replay("e", store=store):
        assert program() == live
    assert live == [
        "ToolFailure(no) <- KeyError('inner')",
        "ExceptionGroup(ValueError(1), DbError(no 2)) <- KeyError('inner')",
    ]
    assert len(recwarn) == 0
