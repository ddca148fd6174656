"""Replaying: no body, no write, one reason for each way to part, and a verdict that no swallowed exception hides."""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import TYPE_CHECKING, Any

import pytest

import toolcassette as tc
from tests.engine.doubles import resealed
from tests.stores.conftest import FaultyOps
from toolcassette.errors import LeftOver
from toolcassette.stores import FileStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Declared(Exception):
    def __init__(self, code: int, *, hint: str) -> None:  # no constructor that args alone could call
        super().__init__(code)
        self.hint = hint


class Undeclared(Exception):
    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.code = 42
        self.data = {"field": "name"}


class Tools:
    """Fresh tools with one counter of bodies that ran."""

    def __init__(self) -> None:
        self.bodies = 0
        wrap = tc.Registry().wrap
        self.add: Callable[..., Any] = wrap(self._add, name="add")
        self.rows: Callable[[], Any] = wrap(self._rows, name="rows")
        self.fails: Callable[[str], Any] = wrap(self._fails, name="fails", errors=[Declared])
        self.other: Callable[[], Any] = wrap(self._other, name="other")

    def _add(self, a: int, b: int = 0) -> int:
        self.bodies += 1
        return a + b

    def _rows(self) -> list[dict[str, int]]:
        self.bodies += 1
        return [{"n": 1}]

    def _fails(self, how: str) -> None:
        self.bodies += 1
        raise {
            "builtin": KeyError("k"),
            "declared": Declared(7, hint="try again"),
            "undeclared": Undeclared("words"),
            "os": FileNotFoundError(2, "No such file", "notes.txt"),
        }[how]

    def _other(self) -> None:
        self.bodies += 1


INCLUDE = ["add", "rows", "fails"]


@pytest.fixture
def recorded(file: Path) -> Path:
    """add(1), rows(), add(2), in this order."""
    tools = Tools()
    with tc.record(file, INCLUDE):
        tools.add(1)
        tools.rows()
        tools.add(2)
    return file


# -- no body, no write ------------------------------------------------------------------------------------------------


def hit(tools: Tools) -> None:
    tools.add(1)


def mismatch(tools: Tools) -> None:
    tools.add(99)


def exhausted(tools: Tools) -> None:
    tools.add(1)
    tools.add(1)


def poisoned(tools: Tools) -> None:
    for call in (lambda: tools.add(99), lambda: tools.add(1), tools.rows, lambda: tools.fails("builtin")):
        with pytest.raises(tc.CassetteMismatch):
            call()


def not_selected(tools: Tools) -> None:
    tools.other()


def unfit(tools: Tools) -> None:
    tools.add(object())


@pytest.mark.parametrize("run", [hit, mismatch, exhausted, poisoned, not_selected, unfit])
def test_no_body_runs_and_the_file_is_not_touched(recorded, run):
    os.utime(recorded, ns=(10**18, 10**18))
    before = (hashlib.sha256(recorded.read_bytes()).digest(), recorded.stat().st_mtime_ns, recorded.stat().st_ino)
    tools = Tools()
    with pytest.raises(tc.CassetteError), tc.replay(recorded):
        run(tools)
    assert tools.bodies == 0
    assert (
        hashlib.sha256(recorded.read_bytes()).digest(),
        recorded.stat().st_mtime_ns,
        recorded.stat().st_ino,
    ) == before
    assert list(recorded.parent.iterdir()) == [recorded]


def test_a_recorded_error_runs_no_body(file):
    recording, tools = Tools(), Tools()
    with tc.record(file, ["fails"]), pytest.raises(KeyError):
        recording.fails("builtin")
    with tc.replay(file), pytest.raises(KeyError):
        tools.fails("builtin")
    assert (recording.bodies, tools.bodies) == (1, 0)


def test_a_read_only_file_in_a_read_only_directory(recorded):
    tools = Tools()
    recorded.chmod(0o400)
    recorded.parent.chmod(0o500)
    try:
        with tc.replay(recorded):
            assert (tools.add(1), tools.rows(), tools.add(2)) == (1, [{"n": 1}], 2)
    finally:
        recorded.parent.chmod(0o700)
    assert tools.bodies == 0


def test_nothing_is_asked_of_the_system_that_would_change_anything(recorded):
    tools, system = Tools(), FaultyOps()
    with tc.replay(recorded, store=FileStore(system)):
        tools.add(1), tools.rows(), tools.add(2)
    assert system.log
    assert set(system.effects()) <= {"open_read", "read"}


def test_each_call_gets_a_fresh_copy(file):
    tools = Tools()
    with tc.record(file, ["rows"]):
        tools.rows()
        tools.rows()
    with tc.replay(file):
        first = tools.rows()
        first[0]["n"] = 99
        assert tools.rows() == [{"n": 1}]


# -- reasons ----------------------------------------------------------------------------------------------------------


def one(tools: Tools) -> None:
    tools.add(1)


REASONS: list[tuple[str, list[Callable[[Tools], Any]], str, int, tuple[str, ...]]] = [
    # what the run does first; reason, ordinal and JSON paths of the mismatch that its last call meets
    ("never_recorded", [one, lambda t: t.fails("builtin")], "fails", 1, ()),
    ("arguments_differ", [lambda t: t.add(5)], "add", 0, ("$.a",)),
    ("arguments_differ", [lambda t: t.add(1, 1)], "add", 0, ("$.b",)),
    ("arguments_differ", [lambda t: t.add(True)], "add", 0, ("$.a",)),
    ("arguments_differ", [lambda t: t.add(1.0)], "add", 0, ("$.a",)),
    ("arguments_differ", [one, lambda t: t.rows(), lambda t: t.add(3, 4)], "add", 2, ("$.a", "$.b")),
    ("order_differs", [lambda t: t.rows()], "rows", 0, ()),
    ("order_differs", [lambda t: t.add(2)], "add", 0, ()),
    ("exhausted", [one, one], "add", 1, ()),
    ("exhausted", [one, lambda t: t.rows(), lambda t: t.add(2), lambda t: t.rows()], "rows", 3, ()),
]


@pytest.mark.parametrize(("reason", "calls", "tool", "ordinal", "differs"), REASONS)
def test_the_reason_of_a_mismatch(recorded, reason, calls, tool, ordinal, differs):
    tools = Tools()
    with pytest.raises(tc.CassetteMismatch) as caught, tc.replay(recorded):
        for call in calls:
            call(tools)
    error = caught.value
    assert type(error) is tc.CassetteMismatch
    assert (error.reason, error.tool, error.ordinal, error.path) == (reason, tool, ordinal, ())
    assert error.differs == differs
    assert error.fingerprint is not None
    assert (error.expected is not None) is (reason == "arguments_differ")
    assert error.expected != error.fingerprint
    assert error.code == "CASSETTE_MISMATCH"
    assert reason in str(error)


def test_an_argument_that_cannot_be_written_was_never_recorded(recorded):
    tools = Tools()
    with pytest.raises(tc.CassetteMismatch) as caught, tc.replay(recorded):
        tools.add(object())
    assert caught.value.reason == "arguments_differ"
    assert "$.a" in str(caught.value)


def test_fingerprints_are_keyed_anew_for_each_session(recorded):
    prints = set()
    for _ in range(2):
        with pytest.raises(tc.CassetteMismatch) as caught, tc.replay(recorded):
            Tools().add(5)
        prints.add(caught.value.fingerprint)
    assert len(prints) == 2


def test_another_call_path(store):
    data = _cassette([tc.RecordedCall("t", b"{}", path=("a",), value=b"1"), tc.RecordedCall("t", b"{}", value=b"2")])
    with pytest.raises(tc.CassetteMismatch) as caught, _replay_bytes(store, data) as session:
        pending = session.begin(tc.Call("t", b"{}", path=("b",)), _contract())
        pending.__enter__()
    assert (caught.value.reason, caught.value.path) == ("path_differs", ("b",))


def test_each_path_has_its_own_order(store):
    calls = [tc.RecordedCall("t", b'{"n":%d}' % n, path=("ab"[n % 2],), value=b"%d" % n) for n in range(6)]
    with _replay_bytes(store, _cassette(calls)) as session:
        for n in (1, 3, 0, 5, 2, 4):
            call = tc.Call("t", b'{"n":%d}' % n, path=("ab"[n % 2],))
            with session.begin(call, _contract()) as pending:
                assert not pending.runs_body
            assert pending.outcome() == n


def test_a_model_call_is_no_tool_call(store):
    data = _cassette([tc.RecordedCall("t", b"{}", boundary="model", value=b"1")])
    with pytest.raises(tc.CassetteMismatch) as caught, _replay_bytes(store, data) as session:
        session.begin(tc.Call("t", b"{}"), _contract()).__enter__()
    assert caught.value.reason == "never_recorded"


def test_a_return_annotation_that_changed(recorded):
    tools = Tools()

    def rows() -> list[dict[str, str]]:
        raise AssertionError

    changed = tc.Registry().wrap(rows, name="rows")
    with pytest.raises(tc.ContractMismatch) as caught, tc.replay(recorded):
        tools.add(1)
        with pytest.raises(tc.ContractMismatch):
            changed()
        with pytest.raises(tc.CassettePoisoned):
            tools.add(2)
    error = caught.value
    assert (error.reason, error.code, error.tool, error.ordinal) == ("contract_differs", "CASSETTE_CONTRACT", "rows", 1)
    assert (error.json_path, error.wanted) == ("$[0].n", "str")


# -- the verdict ------------------------------------------------------------------------------------------------------


def test_a_swallowed_mismatch_still_fails_the_block(recorded):
    tools = Tools()
    session = tc.replay(recorded)
    with pytest.raises(tc.CassetteMismatch) as caught, session:
        for call in (lambda: tools.add(1), lambda: tools.add(7), tools.rows, lambda: tools.add(8)):
            with contextlib.suppress(Exception):  # as agent frameworks do
                call()
    assert caught.value.differs == ("$.a",)
    assert caught.value.ordinal == 1  # the first one stays the first
    assert session.verdict is not None
    assert (session.verdict.outcome, session.verdict.ok, session.verdict.calls) == ("failed", False, 1)
    assert session.verdict.error is caught.value


def test_poisoned_calls_tell_of_the_first_mismatch(recorded):
    tools = Tools()
    with pytest.raises(tc.CassetteMismatch) as first, tc.replay(recorded):
        with pytest.raises(tc.CassetteMismatch):
            tools.add(7)
        with pytest.raises(tc.CassettePoisoned) as later:
            tools.rows()
    assert later.value.code == "CASSETTE_POISONED"
    assert (later.value.reason, later.value.tool, later.value.differs) == ("arguments_differ", "add", ("$.a",))
    assert type(first.value) is tc.CassetteMismatch


def test_unconsumed_records_are_listed(recorded):
    tools = Tools()
    session = tc.replay(recorded)
    with pytest.raises(tc.UnconsumedCalls) as caught, session:
        tools.add(1)
    rows = (LeftOver("rows", (), 1, wrapped=False), LeftOver("add", (), 2, wrapped=True))
    assert caught.value.calls == rows
    assert session.verdict is not None
    assert session.verdict.unconsumed == rows
    text = str(caught.value)
    assert "2 recorded calls were never made" in text
    assert "tool rows, path /, ordinal 1 (no tool of this name was called at all)" in text
    assert "tool add, path /, ordinal 2;" in text


def test_allow_unconsumed(recorded):
    tools = Tools()
    with tc.replay(recorded, allow_unconsumed=True) as session:
        tools.add(1)
    assert session.verdict is not None
    assert session.verdict.ok
    assert len(session.verdict.unconsumed) == 2
    with pytest.raises(tc.CassetteMismatch), tc.replay(recorded, allow_unconsumed=True):
        tools.add(7)


@pytest.mark.parametrize(("swallow", "word"), [(True, "arguments_differ"), (False, "never made")])
def test_the_blocks_own_exception_is_never_replaced(recorded, swallow, word):
    tools = Tools()
    with pytest.raises(ZeroDivisionError) as caught, tc.replay(recorded):
        if swallow:
            with pytest.raises(tc.CassetteMismatch):
                tools.add(7)
        1 / 0  # noqa: B018 - raises
    (note,) = caught.value.__notes__
    assert note.startswith("toolcassette: ")
    assert word in note


def test_a_mismatch_that_leaves_the_block_is_raised_as_it_is(recorded):
    with pytest.raises(tc.CassetteMismatch) as caught, tc.replay(recorded):
        Tools().add(7)
    assert not hasattr(caught.value, "__notes__")


def test_a_consumed_replay(recorded):
    tools = Tools()
    with tc.replay(recorded) as session:
        assert (tools.add(1), tools.rows(), tools.add(b=0, a=2)) == (1, [{"n": 1}], 2)
    assert session.verdict == tc.Verdict(mode="replay", outcome="consumed", calls=3)


# -- include ----------------------------------------------------------------------------------------------------------


def test_an_include_that_misses_a_recorded_tool_is_refused(recorded):
    with pytest.raises(ValueError, match="does not select rows"):
        tc.replay(recorded, ["add", "fails"]).__enter__()


def test_an_include_pattern_that_selects_nothing(recorded):
    def run(**options: bool) -> tc.Session:
        tools = Tools()
        with tc.replay(recorded, ["add", "r*", "nobody"], **options) as session:
            tools.add(1), tools.rows(), tools.add(2)
        return session

    verdict = run().verdict
    assert verdict is not None
    assert verdict.ok
    assert verdict.notes == ("include selected nothing by nobody",)
    with pytest.raises(tc.IncludeUnused):
        run(strict_include=True)


def test_the_cassettes_own_include_is_not_judged_again(recorded):
    tools = Tools()
    with tc.replay(recorded, strict_include=True):
        tools.add(1), tools.rows(), tools.add(2)


# -- errors -----------------------------------------------------------------------------------------------------------


def replayed_error(file: Path, how: str) -> Exception:
    tools = Tools()
    with tc.record(file, ["fails"]), pytest.raises(Exception):  # noqa: B017 - each its own
        tools.fails(how)
    with tc.replay(file):
        try:
            tools.fails(how)
        except Exception as error:
            return error
    raise AssertionError


def test_a_builtin_error_comes_back(file):
    error = replayed_error(file, "builtin")
    assert type(error) is KeyError
    assert error.args == ("k",)


def test_a_builtin_error_comes_back_with_its_state(file):
    error = replayed_error(file, "os")
    assert type(error) is FileNotFoundError
    assert (error.errno, error.strerror, error.filename) == (2, "No such file", "notes.txt")


def test_a_declared_error_comes_back_without_its_constructor(file):
    error = replayed_error(file, "declared")
    assert type(error) is Declared
    assert (error.args, error.hint) == ((7,), "try again")


@pytest.mark.filterwarnings("ignore:.*neither builtin nor declared")
def test_an_undeclared_error_comes_back_as_a_stand_in(file):
    error = replayed_error(file, "undeclared")
    assert type(error) is tc.RecordedToolError
    assert error.type_name.endswith("Undeclared")
    assert (error.message, error.error_code, error.data) == ("words", 42, {"field": "name"})


def test_a_recorded_error_does_not_fail_the_session(file):
    replayed_error(file, "builtin")
    with tc.replay(file) as session, pytest.raises(KeyError):
        Tools().fails("builtin")
    assert session.verdict is not None
    assert session.verdict.ok


# -- bytes that somebody changed --------------------------------------------------------------------------------------


def test_resealing_is_done_right(recorded):
    data = recorded.read_bytes()
    assert resealed(data, b"rows", b"rows") == data


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'[{"n":1}]', b'[{"n": 1}]'),
        (b'[{"n":1}]', b'[{"n":1,"n":1}]'),
        (b'[{"n":1}]', b'[{"\\u006e":1}]'),
        (b'[{"n":1}]', b'[{"n":01}]'),
        (b'[{"n":1}]', b'[{"n":1}'),
    ],
)
def test_a_value_that_is_not_canonical_is_refused_at_its_use(recorded, old, new):
    recorded.write_bytes(resealed(recorded.read_bytes(), old, new))
    tools = Tools()
    with pytest.raises(tc.CassetteError) as caught, tc.replay(recorded):
        tools.add(1)
        tools.rows()
    assert isinstance(caught.value, tc.CassetteMismatch | tc.FormatError)
    assert tools.bodies == 0
    assert not tc.verify(recorded, deep=True).ok


def test_a_changed_value_with_fitting_hashes_is_what_a_signature_is_for(recorded):
    recorded.write_bytes(resealed(recorded.read_bytes(), b'[{"n":1}]', b'[{"n":2}]'))
    tools = Tools()
    with tc.replay(recorded):
        assert (tools.add(1), tools.rows(), tools.add(2)) == (1, [{"n": 2}], 2)


@pytest.mark.parametrize("old", [b'"add"', b'{"a":1,"b":0}', b'[{"n":1}]', b'"calls":3'])
def test_a_changed_byte_is_refused_before_the_first_call(recorded, old):
    data = recorded.read_bytes()
    at = data.index(old) + 1
    recorded.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    tools = Tools()
    with pytest.raises(tc.FormatError) as caught, tc.replay(recorded):
        tools.add(1)
    assert caught.value.reason == "hash"
    assert tools.bodies == 0


def test_an_absent_cassette_runs_nothing_and_creates_nothing(file):
    tools = Tools()
    with pytest.raises(tc.FormatError) as caught, tc.replay(file):
        tools.add(1)
    assert (caught.value.reason, caught.value.exit_status) == ("absent", 2)
    assert tools.bodies == 0
    assert list(file.parent.iterdir()) == []


def test_the_cassette_is_read_once(recorded):
    tools = Tools()
    with tc.replay(recorded):
        recorded.unlink()
        assert (tools.add(1), tools.rows(), tools.add(2)) == (1, [{"n": 1}], 2)


# -- misuse -----------------------------------------------------------------------------------------------------------


def test_misuse_is_never_a_mismatch(recorded):
    session = tc.replay(recorded, allow_unconsumed=True)
    with pytest.raises(RuntimeError, match="not open"):
        _ = session.cassette
    with session:
        pending = session.begin(tc.Call("add", b'{"a":1,"b":0}'), _contract())
        with pytest.raises(RuntimeError, match="not entered"):
            pending.outcome()
        with pending:
            with pytest.raises(RuntimeError, match="keeps no value"):
                pending.keep(1)
        assert pending.outcome() == 1
    with pytest.raises(RuntimeError, match="used once"):
        session.__enter__()


def _contract() -> tc.ToolContract:
    from toolcassette.contracts import contract_for

    return tc.ToolContract(contract_for())


def _cassette(calls: list[tc.RecordedCall]) -> bytes:
    return tc.write_cassette(calls, cassette="0" * 32, created="2026-01-01T00:00:00.000000Z", producer="test")


def _replay_bytes(store: Any, data: bytes) -> tc.Replayer:
    spool = store.create("x", cassette_id="0" * 32)
    spool.append(data)
    spool.publish()
    return tc.replay("x", store=store)
