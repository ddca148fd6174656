"""Recording: the order of frames, durable before the program goes on, poison, and what keeps a cassette unpublished."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import toolcassette as tc
from tests.engine.doubles import NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CALL = ["call/start", "call/result"]


class Tools:
    """A registry with tools that log their bodies; ``log`` may be shared with a store's."""

    def __init__(self, log: list[str] | None = None) -> None:
        self.log: list[str] = [] if log is None else log
        registry = tc.Registry()
        self.echo: Callable[[Any], Any] = registry.wrap(self._echo, name="echo")
        self.fails: Callable[[BaseException], Any] = registry.wrap(self._fails, name="fails", omit=["error"])
        self.outer: Callable[[], Any] = registry.wrap(self._outer, name="outer")

    def _echo(self, value: Any) -> Any:
        self.log.append("body")
        return value

    def _fails(self, error: BaseException) -> Any:
        self.log.append("body")
        raise error

    def _outer(self) -> Any:
        return ["inner gave", self.echo({"n": 1})]


def partial_kinds(file: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in (file.parent / f"{file.name}.partial").read_bytes().splitlines()]


def kept(session: tc.Session, reason: str | None = None) -> object:
    """The session's error, after checking that it published nothing and why."""
    verdict = session.verdict
    assert verdict is not None
    assert verdict.outcome == "kept"
    assert not verdict.ok
    assert verdict.error is not None
    assert reason is None or getattr(verdict.error, "reason", None) == reason
    return verdict.error


# -- order and durability ---------------------------------------------------------------------------------------------


def test_frames_and_their_members(file):
    tools = Tools()
    with tc.record(file, ["echo"]) as session:
        assert tools.echo(["é", 1.0]) == ["é", 1.0]
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert [line["kind"] for line in lines] == ["header", *CALL, "complete"]
    assert lines[0]["include"] == ["echo"]
    assert (lines[0]["order"], lines[0]["sync"]) == ("strict", "frame")
    assert lines[1]["args"] == {"value": ["é", 1.0]}
    assert lines[2]["value"] == ["é", 1.0]
    assert lines[2]["at"] >= lines[1]["at"] >= 0
    assert lines[3]["calls"] == 1
    assert session.verdict == tc.Verdict(mode="record", outcome="published", calls=1)
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    ("sync", "expected"),
    [
        ("frame", ["header", "call/start", "sync", "body", "call/result", "sync", "back"]),
        ("call", ["header", "call/start", "body", "call/result", "sync", "back"]),
        ("close", ["header", "call/start", "body", "call/result", "back"]),
        ("none", ["header", "call/start", "body", "call/result", "back"]),
    ],
)
def test_what_is_durable_before_the_program_goes_on(store, sync, expected):
    tools = Tools(store.log)
    with tc.record(NAME, ["echo"], store=store, sync=sync):
        tools.echo(1)
        store.log.append("back")
        assert store.log == expected
        tools.echo(2)
        assert store.syncs == {"frame": 4, "call": 2}.get(sync, 0)
    assert store.lines()[0]["sync"] == sync


def test_frame_order_is_start_order_under_threads(file):
    tools = Tools()
    together = threading.Barrier(4)

    def work(n: int) -> None:
        together.wait()
        for k in range(10):
            tools.echo([n, k])

    with tc.record(file, ["echo"], sync="none"), ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    starts = [line for line in lines if line["kind"] == "call/start"]
    assert [line["call"] for line in starts] == list(range(40))
    for n in range(4):  # each thread's own calls in its own order
        assert [s["args"]["value"][1] for s in starts if s["args"]["value"][0] == n] == list(range(10))
    assert tc.verify(file, deep=True).ok


def test_the_caller_gets_what_a_replay_hands_out(file):
    tools = Tools()
    given = {"rows": [1, 2]}
    with tc.record(file, ["echo"]):
        got = tools.echo(given)
        assert got == given
        assert got is not given
        assert got["rows"] is not given["rows"]
        got["rows"].append(3)
    assert tc.read_cassette(file).outcome(0).value == b'{"rows":[1,2]}'


def test_arguments_are_frozen_before_the_body(file):
    grow = tc.Registry().wrap(lambda rows: rows.append(1), name="grow")
    with tc.record(file, ["grow"]), pytest.warns(UserWarning, match="in place"):
        grow([])
    assert tc.read_cassette(file).place(0)[1] == b'{"rows":[]}'


# -- outcomes ---------------------------------------------------------------------------------------------------------


def test_a_tools_exception_goes_on_as_it_is(file):
    tools = Tools()
    error = KeyError("missing")
    with tc.record(file, ["fails"]):
        with pytest.raises(KeyError) as caught:
            tools.fails(error)
        assert caught.value is error
    assert tc.read_cassette(file).outcome(0).outcome == "error"


class Undeclared(Exception):
    pass


def test_an_undeclared_class_warns_once_and_is_recorded(file):
    tools = Tools()

    def twice() -> None:
        for _ in range(2):
            with pytest.raises(Undeclared):
                tools.fails(Undeclared("secret words"))

    with tc.record(file, ["fails"]), pytest.warns(UserWarning, match=r"errors=\[\.\.\.\]") as said:
        twice()
    assert len(said) == 1
    assert "secret words" not in str(said[0].message)
    assert [call.outcome for call in tc.read_cassette(file)] == ["error", "error"]


def test_where_warnings_are_errors_the_recording_is_whole_all_the_same(file):
    tools = Tools()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tc.record(file, ["fails"]), pytest.raises(UserWarning, match="Undeclared"):
            tools.fails(Undeclared())
    assert tc.read_cassette(file).outcome(0).outcome == "error"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, BaseException])
def test_what_is_no_outcome_leaves_no_result_frame(file, kind):
    tools = Tools()
    session = tc.record(file, ["fails", "echo"])
    with session:
        tools.echo(1)
        with pytest.raises(kind):
            tools.fails(kind())
        with pytest.raises(tc.NotPublished) as caught:
            session.__exit__(None, None, None)
    assert caught.value.reason == "open_call"
    assert "1 open" in str(caught.value)
    kept(session, "open_call")
    assert partial_kinds(file) == ["header", *CALL, "call/start"]
    assert not file.exists()


def test_an_error_of_ours_out_of_a_body_is_never_the_tools_outcome_and_poisons(file):
    tools = Tools()
    ours = tc.CassetteMismatch("exhausted", tool="other")  # of a replay that runs inside the body, say
    session = tc.record(file, ["fails", "echo"])
    with pytest.raises(tc.CassetteMismatch) as caught, session:
        for call in (lambda: tools.fails(ours), lambda: tools.echo(1)):
            with pytest.raises(tc.CassetteMismatch):
                call()
    assert caught.value is ours
    assert kept(session) is ours
    assert tools.log == ["body"]
    assert partial_kinds(file) == ["header", "call/start"]


# -- poison -----------------------------------------------------------------------------------------------------------


def test_a_result_that_cannot_be_kept_poisons_and_no_body_runs_after_it(file):
    give = tc.Registry().wrap(lambda: {"rows": [1, object()]}, name="give")
    tools = Tools()
    session = tc.record(file, ["give", "echo"])
    with pytest.raises(tc.UnrecordableValue) as caught, session:
        with pytest.raises(tc.UnrecordableValue) as first:
            give()
        assert (first.value.json_path, first.value.type_name, first.value.tool) == ("$.rows[1]", "object", "give")
        with pytest.raises(tc.UnrecordableValue):
            tools.echo(1)
    assert caught.value is first.value
    assert tools.log == []
    assert kept(session) is first.value
    assert partial_kinds(file) == ["header", "call/start"]


@dataclasses.dataclass
class Explosive:
    n: int

    def __getattribute__(self, name: str) -> object:
        if name == "n":
            raise ZeroDivisionError
        return object.__getattribute__(self, name)


def test_what_the_values_own_code_raises_is_not_what_the_tool_raised(file):
    def give() -> Explosive:
        return Explosive(1)

    with pytest.raises(tc.UnrecordableValue, match="ZeroDivisionError"), tc.record(file, ["give"]):
        tc.Registry().wrap(give)()
    assert partial_kinds(file) == ["header", "call/start"]


def test_arguments_that_cannot_be_kept_poison_before_the_body(file):
    tools = Tools()
    session = tc.record(file, ["echo"])
    with pytest.raises(tc.UnrecordableValue), session:
        for value in (object(), 1):
            with pytest.raises(tc.UnrecordableValue) as caught:
                tools.echo(value)
            assert caught.value.json_path == "$.value"
    assert tools.log == []
    assert partial_kinds(file) == ["header"]


@pytest.mark.parametrize("kind", ["call/start", "call/result"])
def test_a_store_that_fails_to_write_poisons(store, kind):
    tools = Tools(store.log)
    store.fail_append_of = kind
    session = tc.record(NAME, ["echo"], store=store)
    with pytest.raises(tc.StoreError), session:
        for _ in range(2):
            with pytest.raises(tc.StoreError) as caught:
                tools.echo(1)
            assert caught.value.errno_name == "ENOSPC"
    assert store.log.count("body") == (kind == "call/result")
    assert isinstance(kept(session), tc.StoreError)


def test_a_store_that_fails_to_sync_poisons_before_the_body(store):
    tools = Tools(store.log)
    store.fail_sync = True
    session = tc.record(NAME, ["echo", "outer"], store=store)
    with pytest.raises(tc.StoreError), session:
        with pytest.raises(tc.StoreError):
            tools.echo(1)
        store.fail_sync = False
        for call in (lambda: tools.echo(2), tools.outer):  # not taken for calls inside the first one either
            with pytest.raises(tc.StoreError):
                call()
    assert "body" not in store.log
    assert store.kinds(partial=True) == ["header", "call/start"]


@pytest.mark.parametrize(
    ("limits", "reason", "bodies"),
    [({"calls_max": 1}, "too_many_calls", 1), ({"line_bytes_max": 1024}, "line_too_long", 1)],
)
def test_limits(store, limits, reason, bodies):
    tools = Tools(store.log)
    session = tc.record(NAME, ["echo"], store=store, **limits)
    with pytest.raises(tc.FormatError) as caught, session:
        tools.echo(1)
        with pytest.raises(tc.FormatError):
            tools.echo("x" * 2000)
        with pytest.raises(tc.FormatError):
            tools.echo(1)
    assert caught.value.reason == reason
    assert store.log.count("body") == bodies
    assert store.kinds(partial=True) == ["header", *CALL]


def test_a_finaliser_that_calls_a_tool_while_a_frame_is_written_meets_an_error_and_no_deadlock(store):
    tools = Tools(store.log)
    met: list[BaseException] = []

    def finaliser() -> None:
        store.during_append = int
        try:
            tools.echo("from a finaliser")
        except RuntimeError as error:  # Python prints it and goes on
            met.append(error)

    with tc.record(NAME, ["echo"], store=store):
        store.during_append = finaliser
        assert tools.echo(1) == 1
    assert len(met) == 1
    assert "finaliser" in str(met[0])
    assert store.log.count("body") == 1
    assert store.kinds() == ["header", *CALL, "complete"]


# -- what keeps it from being published -------------------------------------------------------------------------------


def test_the_blocks_own_exception_is_never_replaced(file):
    tools = Tools()
    session = tc.record(file, ["echo"])
    with pytest.raises(ZeroDivisionError) as caught, session:
        tools.echo(1)
        1 / 0  # noqa: B018 - raises
    assert any("publish_on_error" in note for note in caught.value.__notes__)
    kept(session, "block_raised")
    assert partial_kinds(file) == ["header", *CALL]
    report = tc.verify(f"{file}.partial")
    assert (report.state, report.ok, report.calls) == ("open", False, 1)


def test_publish_on_error(file):
    tools = Tools()
    with pytest.raises(ZeroDivisionError) as caught, tc.record(file, ["echo"], publish_on_error=True):
        tools.echo(1)
        1 / 0  # noqa: B018 - raises
    assert not hasattr(caught.value, "__notes__")
    assert tc.verify(file).ok


def test_empty(file):
    session = tc.record(file, ["echo"])
    with pytest.raises(tc.NotPublished) as caught, session:
        pass
    assert caught.value.reason == "empty"
    assert "allow_empty" in str(caught.value)
    kept(session, "empty")


def test_allow_empty(file):
    with tc.record(file, ["echo"], allow_empty=True) as session:
        pass
    assert tc.verify(file).ok
    assert session.verdict is not None
    assert session.verdict.notes == ("include selected nothing by echo",)


def test_strict_include(file):
    tools = Tools()
    session = tc.record(file, ["echo", "nobody*", "nothing"], strict_include=True)
    with pytest.raises(tc.IncludeUnused) as caught, session:
        tools.echo(1)
    assert caught.value.patterns == ("nobody*", "nothing")
    kept(session)


def test_an_unused_pattern_is_a_note_without_strict_include(file):
    tools = Tools()
    with tc.record(file, ["echo", "nobody"]) as session:
        tools.echo(1)
    assert session.verdict is not None
    assert session.verdict.ok
    assert session.verdict.notes == ("include selected nothing by nobody",)


def test_a_nested_selection_disturbs_nobody_and_is_not_published(file):
    tools = Tools()
    session = tc.record(file, ["echo", "outer"])
    with pytest.raises(tc.NestedSelection) as caught, session:
        assert tools.outer() == ["inner gave", {"n": 1}]
        tools.echo(2)
    assert (caught.value.tool, caught.value.inside, caught.value.reason) == ("echo", "outer", "nested")
    assert tools.log == ["body", "body"]
    assert partial_kinds(file) == ["header", *CALL, *CALL]
    kept(session, "nested")


def test_an_unselected_tool_inside_a_selected_one_is_part_of_its_body(file):
    tools = Tools()
    with tc.record(file, ["outer"]):
        tools.outer()
    with tc.replay(file):
        assert tools.outer() == ["inner gave", {"n": 1}]
    assert tools.log == ["body"]


def test_a_call_that_outlives_the_session_is_refused_and_keeps_the_partial(file):
    begun, go, found = threading.Event(), threading.Event(), []

    def slow() -> int:
        begun.set()
        go.wait()
        return 1

    tool = tc.Registry().wrap(slow, name="slow")

    def work() -> None:
        try:
            tool()
        except tc.CassetteError as error:
            found.append(error)

    session = tc.record(file, ["slow"])
    with pytest.raises(tc.NotPublished), session:
        thread = threading.Thread(target=work)
        thread.start()
        begun.wait()
    go.set()
    thread.join()
    assert isinstance(found[0], tc.SessionClosed)
    kept(session, "open_call")
    assert partial_kinds(file) == ["header", "call/start"]


def test_a_result_that_waits_for_the_disk_when_the_session_ends_is_let_go(store):
    store.sync_seconds = 0.2
    tools = Tools(store.log)
    found: list[object] = []
    with tc.record(NAME, ["echo"], store=store, sync="call") as session:
        thread = threading.Thread(target=lambda: found.append(tools.echo(1)))
        thread.start()
        while "call/result" not in store.log:
            time.sleep(0.001)
    thread.join()
    assert found == [1]
    assert session.verdict is not None
    assert session.verdict.outcome == "published"


# -- what stands in the way -------------------------------------------------------------------------------------------


def test_an_existing_cassette_is_refused_and_untouched(file):
    file.write_bytes(b"anything at all")
    with pytest.raises(tc.CassetteExists) as caught:
        tc.record(file, ["echo"]).__enter__()
    assert caught.value.what == "cassette"
    assert file.read_bytes() == b"anything at all"
    assert list(file.parent.iterdir()) == [file]


def test_a_live_partial_is_always_refused(file):
    tools = Tools()
    with tc.record(file, ["echo"]):
        for stale in ("refuse", "set-aside"):
            with pytest.raises(tc.CassetteExists) as caught:
                tc.record(file, ["echo"], stale=stale).__enter__()
            assert caught.value.what == "live_partial"
        tools.echo(1)
    assert tc.verify(file).ok


def test_a_stale_partial_is_refused_or_set_aside(file):
    tools = Tools()
    with pytest.raises(tc.NotPublished), tc.record(file, ["echo"]):
        pass
    stale = file.parent / f"{file.name}.partial"
    before = stale.read_bytes()
    with pytest.raises(tc.CassetteExists) as caught:
        tc.record(file, ["echo"]).__enter__()
    assert caught.value.what == "stale_partial"
    assert stale.read_bytes() == before
    with tc.record(file, ["echo"], stale="set-aside"):
        tools.echo(1)
    aside = file.parent / f"{file.name}.partial.{json.loads(before)['cassette'][:8]}"
    assert aside.read_bytes() == before
    assert tc.verify(file).ok
    assert not stale.exists()


# -- re-recording -----------------------------------------------------------------------------------------------------


def test_a_rerecording_without_news_leaves_the_old_file_as_it_is(file):
    tools = Tools()
    with tc.record(file, ["echo"]):
        tools.echo(1)
    os.utime(file, ns=(10**18, 10**18))
    before, stat = file.read_bytes(), file.stat()
    with tc.record(file, ["echo"], replace=True) as session:
        tools.echo(1)
    assert session.verdict is not None
    assert session.verdict.outcome == "unchanged"
    assert session.verdict.ok
    assert file.read_bytes() == before
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == (stat.st_mtime_ns, stat.st_ino)
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    "again",
    [
        lambda tools: tools.echo(2),
        lambda tools: tools.echo(1.0),
        lambda tools: (tools.echo(1), tools.echo(1)),
    ],
)
def test_a_rerecording_with_news_swaps(file, again):
    tools = Tools()
    with tc.record(file, ["echo"]):
        tools.echo(1)
    before = file.read_bytes()
    with tc.record(file, ["echo"], replace=True) as session:
        again(tools)
        assert file.read_bytes() == before
    assert session.verdict is not None
    assert session.verdict.outcome == "published"
    assert file.read_bytes() != before
    assert tc.verify(file).ok
    assert list(file.parent.iterdir()) == [file]


def test_a_rerecording_that_fails_leaves_the_old_cassette(file):
    tools = Tools()
    with tc.record(file, ["echo"]):
        tools.echo(1)
    before = file.read_bytes()
    with pytest.raises(ZeroDivisionError), tc.record(file, ["echo"], replace=True):
        tools.echo(2)
        1 / 0  # noqa: B018 - raises
    assert file.read_bytes() == before


def test_a_damaged_cassette_is_replaced(file):
    tools = Tools()
    with tc.record(file, ["echo"]):
        tools.echo(1)
    file.write_bytes(file.read_bytes()[:-20])
    with tc.record(file, ["echo"], replace=True):
        tools.echo(1)
    assert tc.verify(file).ok


@pytest.mark.parametrize("content", [b"a letter to somebody\n", b"\0" * 4096, b'{"format":"toolcassette/2"}\n'])
def test_what_is_no_cassette_is_not_replaced(file, content):
    file.write_bytes(content)
    with pytest.raises(tc.FormatError):
        tc.record(file, ["echo"], replace=True).__enter__()
    assert file.read_bytes() == content
    assert list(file.parent.iterdir()) == [file]


# -- use of the session object ----------------------------------------------------------------------------------------


def test_a_session_is_used_once(file):
    session = tc.record(file, ["echo"], allow_empty=True)
    with session:
        with pytest.raises(RuntimeError, match="used once"):
            session.__enter__()
    with pytest.raises(RuntimeError, match="used once"):
        session.__enter__()


def test_leaving_without_keeping_a_value_is_misuse(store):
    with pytest.raises(tc.NotPublished), tc.record(NAME, ["t"], store=store) as session:
        contract = tc.ToolContract(_any_contract())
        with pytest.raises(RuntimeError, match="keep"):
            with session.begin(tc.Call("t", b"{}"), contract):
                pass
        pending = session.begin(tc.Call("t", b"{}"), contract)
        with pytest.raises(RuntimeError, match="no value"):
            pending.outcome()
    assert store.kinds(partial=True) == ["header", "call/start"]


def test_begin_touches_nothing(store):
    with tc.record(NAME, ["t"], store=store, allow_empty=True) as session:
        session.begin(tc.Call("t", b"{}"), tc.ToolContract(_any_contract()))
        assert store.log == ["header"]


def _any_contract() -> Any:
    from toolcassette.contracts import contract_for

    return contract_for()


def test_the_repr_tells_the_state_and_nothing_else(file):
    session = tc.record(file, ["echo"], allow_empty=True)
    assert repr(session) == "<Recorder new>"
    with session:
        assert repr(session) == "<Recorder open>"
    assert repr(session) == "<Recorder closed>"
