"""The faults of 24 neighbouring tools that are about matching and about what a file may do, one test each.

Rule: as in test_peers_probes.py, which has the table. A crafted file is resealed, so that it is what the file says that
is judged and not its hash.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import pytest

import toolcassette as tc
from tests.cases.programs import RealBodyRan, dead, fails, frames, live, record, refused, replay, reseal


@pytest.fixture
def file(tmp_path):
    return tmp_path / "fault.cassette.jsonl"


def balance(user):
    return {"alice": 10, "bob": 99}[user]


def delete(user):
    return f"deleted {user}"


def test_fault_03_no_lenient_default(file):
    """Neither by place nor by name alone is anything served; leaving says so, not a list that somebody must look at."""
    registry = tc.Registry()
    tools = registry.wrap(balance), registry.wrap(delete)
    record(file, lambda: [tools[0]("alice"), tools[1]("x")])
    for index, argument in ((0, "bob"), (1, "x"), (1, "alice")):
        with fails(tc.CassetteMismatch), tc.replay(file):
            refused(tools[index], argument)


def test_fault_04_no_policy_only_warns(file):
    """No option serves a call that differs, and an unknown one is refused before anything is opened."""
    record(file, lambda: live(balance)("alice"))
    for options in ({"order": "lenient"}, {"policy": "warn"}, {"strict": False}, {"cancelled": "ignore"}):
        with pytest.raises((ValueError, TypeError)):
            tc.replay(file, **options)
    with fails(tc.CassetteMismatch), tc.replay(file, allow_unconsumed=True, strict_include=False):
        refused(lambda: dead(balance)("bob"))


@pytest.mark.parametrize(
    "name",
    ["id", "user_id", "created", "created_at", "timestamp", "updated_timestamp", "request_id", "date", "nonce", "token",
     "session", "cursor", "api_key", "password", "time", "uuid"],
)  # fmt: skip
def test_fault_05_no_argument_is_ignored(file, name):
    """Whatever it is called, as a parameter of its own or inside another one; a secret is no exception."""

    def get(**given):
        return given

    tool = live(get)
    record(file, lambda: [tool(**{name: 1}), tool(deep={name: "a"}), tool(deep={name: "a"})])
    with fails(tc.CassetteMismatch) as left, tc.replay(file):
        refused(lambda: dead(get)(**{name: 2}))
    assert left["error"].differs == (f"$.given.{name}",)
    with fails(tc.CassetteMismatch) as left, tc.replay(file):
        dead(get)(**{name: 1})
        dead(get)(deep={name: "a"})
        refused(lambda: dead(get)(deep={name: "b"}))
    assert left["error"].differs == (f"$.given.deep.{name}",)


def test_fault_08_another_day_is_another_call(file):
    def weather(city, date):
        return f"{city} on {date}: snow"

    record(file, lambda: live(weather)("Oslo", "2026-01-01"))
    with fails(tc.CassetteMismatch) as left, tc.replay(file):
        refused(lambda: dead(weather)("Oslo", "2026-07-01"))
    assert left["error"].differs == ("$.date",)


IMPORTS = "import pathlib\npathlib.Path(__file__).with_name('imported').touch()\nclass Evil(Exception): pass\n"


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A module that leaves a trace when it is imported."""
    (tmp_path / "evil_module.py").write_text(IMPORTS, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "imported"
    assert "evil_module" not in sys.modules


def crafted(file, old, new):
    """The cassette with ``old`` replaced by ``new`` in every line, and all hashes made right."""
    lines = frames(file)
    file.write_bytes(reseal([line.replace(old, new) for line in lines]))
    assert file.read_bytes() != b"".join(lines)
    assert tc.verify(file).ok


def test_fault_10_a_class_named_in_the_file_is_not_imported(file, evil):
    def fail(q):
        raise ValueError("bad")

    def again():
        with pytest.raises(tc.CassetteError) as raised:
            dead(fail)("a")
        return raised.value

    with tc.record(file, ["*"], sync="none"), pytest.raises(ValueError, match="bad"):
        live(fail)("a")
    crafted(file, b'"type":"builtins.ValueError"', b'"type":"evil_module.Evil"')
    error = replay(file, again)
    assert isinstance(error, tc.RecordedToolError)
    assert error.type_name == "evil_module.Evil"
    assert not evil.exists()


@pytest.mark.parametrize(
    "tag",
    [
        '{"$tc":"object","type":"evil_module.Evil","v":{}}',
        '{"$tc":"enum","type":"evil_module.Evil","v":"A"}',
        '{"$tc":"evil_module.Evil","v":{}}',
        '{"$tc":"dataclass","v":["evil_module","Evil"]}',
        '{"$tc":"path","kind":"evil_module.Evil","v":"a"}',
        '{"$tc":"datetime","v":"2026-01-01T00:00:00","zone":"evil_module"}',
    ],
)
def test_fault_11_a_tag_names_no_code(file, evil, tag):
    record(file, lambda: live(lambda q: "VALUE", name="give")("a"))
    crafted(file, b'"value":"VALUE"', b'"value":' + tag.encode())
    with fails(tc.CassetteMismatch) as left, tc.replay(file):
        refused(lambda: dead(lambda q: "VALUE", name="give")("a"))
    assert left["error"].reason == "contract_differs"
    assert not evil.exists()


def test_fault_15_the_name_is_in_the_key(file):
    """``refund`` never answers for ``lookup``; positional and named rest arguments are not one list."""

    def lookup(order):
        return "looked up"

    def refund(order):
        return "refunded"

    def loose(*args, **kwargs):
        return [list(args), kwargs]

    registry = tc.Registry()
    tools = {fn.__name__: registry.wrap(fn) for fn in (lookup, refund, loose)}
    record(file, lambda: tools["refund"]("A1"))
    with fails(tc.CassetteMismatch), tc.replay(file, ["*"]):
        refused(lambda: tools["lookup"]("A1"))

    calls: list[tuple[tuple[Any, ...], dict[str, Any]]]
    calls = [((1,), {"a": 2}), (([1], {"a": 2}), {}), ((1, {"a": 2}), {}), ((), {"args": [1], "kwargs": {"a": 2}})]
    other = file.with_name("loose.cassette.jsonl")
    record(other, lambda: [tools["loose"](*args, **kwargs) for args, kwargs in calls])
    assert len({call.args for call in tc.read_cassette(other)}) == len(calls)


def test_fault_17_an_error_of_ours_is_not_the_tools(file):
    """A value that cannot be kept leaves no recorded failure; past the end nothing is repeated."""

    async def give(q):
        return {"socket": object()}

    with fails(tc.UnrecordableValue) as left:
        record(file, lambda: asyncio.run(live(give)("a")))
    assert left["error"].json_path == "$.socket"
    assert b'"outcome"' not in file.with_name(file.name + ".partial").read_bytes()


def test_fault_18_pay(file):
    def pay(to):
        return f"paid {to}"

    tool = live(pay)
    record(file, lambda: tool("alice:10"))
    for name, argument in (("pay", "mallory:9999"), ("pay_now", "alice:10"), ("pay_now", "mallory:9999")):
        with fails(tc.CassetteMismatch), tc.replay(file, ["*"]):
            refused(dead(pay, name=name), argument)


def test_fault_19_failures_come_back_as_themselves(file):
    def fail(kind):
        raise {"key": KeyError("missing"), "zero": ZeroDivisionError("by nothing")}[kind]

    def program(tool):
        found = []
        for kind in ("key", "zero"):
            with pytest.raises(Exception) as raised:
                tool(kind)
            found.append((type(raised.value), raised.value.args))
        return found

    expected = [(KeyError, ("missing",)), (ZeroDivisionError, ("by nothing",))]
    assert record(file, lambda: program(live(fail))) == expected
    assert replay(file, lambda: program(dead(fail))) == expected


def test_fault_22_time_stands_for_nothing_in_a_replay(file):
    """Replay under a running loop with timeouts: no clock of the program's is touched."""

    async def slow(q):
        await asyncio.sleep(0.01)
        return q

    async def program(tool):
        async with asyncio.timeout(5):
            first = await tool("a")
            await asyncio.sleep(0.005)
            return [first, await tool("b")]

    assert record(file, lambda: asyncio.run(program(live(slow)))) == ["a", "b"]
    assert replay(file, lambda: asyncio.run(program(dead(slow)))) == ["a", "b"]


def test_fault_23_many_at_once(file):
    """Twelve in flight, four kinds of arguments thrice each, completed in reverse: each gets its own."""
    questions = [f"q{i % 4}" for i in range(12)]

    async def program(make):
        turns = [asyncio.Event() for _ in questions]
        started: list[str] = []

        async def answer(q):
            mine = len(started)
            started.append(q)
            if mine == len(questions) - 1:
                turns[mine].set()
            await turns[mine].wait()
            if mine:
                turns[mine - 1].set()
            return [q, mine]

        tool = make(answer)
        return await asyncio.gather(*(tool(q) for q in questions))

    expected = [[q, i] for i, q in enumerate(questions)]
    assert record(file, lambda: asyncio.run(program(live))) == expected
    calls = list(tc.read_cassette(file))
    assert [c.ended_at for c in calls] == sorted((c.ended_at for c in calls), reverse=True)
    assert replay(file, lambda: asyncio.run(program(dead))) == expected


def test_fault_25_polling(file):
    states = ["pending", "pending", "done"]

    def poll(job):
        return states.pop(0)

    def wait(tool):
        seen: list[str] = []
        while not seen or seen[-1] != "done":
            seen.append(tool("job"))
        return seen

    assert record(file, lambda: wait(live(poll))) == ["pending", "pending", "done"]
    assert replay(file, lambda: wait(dead(poll))) == ["pending", "pending", "done"]


class ConnectionError(Exception):  # noqa: A001 - the shadowing is the case
    """A library's own, of the same name as a builtin class."""


def test_fault_29_a_foreign_connection_error_is_not_the_builtin(file):
    import builtins

    def fetch(kind):
        raise ConnectionError("net down") if kind == "own" else builtins.ConnectionError("builtin")

    def program(tool):
        caught = []
        for kind in ("own", "builtin"):
            try:
                tool(kind)
            except ConnectionError as error:
                caught.append(("own", str(error)))
            except builtins.ConnectionError as error:
                caught.append(("builtin", str(error)))
        return caught

    expected = [("own", "net down"), ("builtin", "builtin")]
    assert record(file, lambda: program(live(fetch, errors=[ConnectionError]))) == expected
    assert replay(file, lambda: program(dead(fetch, errors=[ConnectionError]))) == expected


def in_a_thread(call):
    found = []
    thread = threading.Thread(target=lambda: found.append(refused(call)))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize(
    ("calls", "errors"),
    [
        ("aa", [None, tc.CassetteMismatch]),
        ("b", [tc.CassetteMismatch]),
        ("bab", [tc.CassetteMismatch, tc.CassettePoisoned, tc.CassettePoisoned]),
        ("tx", [tc.CassetteMismatch, tc.NotSelected]),
        ("x", [tc.NotSelected]),
    ],
)
def test_fault_37_no_way_falls_through(file, calls, errors):
    """In a replay no body runs, whatever goes wrong: another argument, one call too many, a thread, another tool."""
    with tc.record(file, ["balance"], sync="none"):
        live(balance)("alice")
    ways = {
        "a": lambda: dead(balance)("alice"),
        "b": lambda: dead(balance)("bob"),
        "x": lambda: dead(delete)("x"),
        "t": lambda: (_ for _ in ()).throw(in_a_thread(lambda: dead(balance)("bob"))),
    }
    with pytest.raises(tc.CassetteError), tc.replay(file):
        for call, error in zip(calls, errors, strict=True):
            if error is None:
                assert ways[call]() == 10
            else:
                assert type(refused(ways[call])) is error


def test_fault_37_a_closed_session_is_no_way_out(file):
    record(file, lambda: live(balance)("alice"))
    with tc.replay(file):
        bound = tc.bind(dead(balance))
        assert bound("alice") == 10
    assert isinstance(refused(lambda: bound("alice")), tc.SessionClosed)


@pytest.mark.parametrize("mode", ["once", "auto", "none", "new_episodes", ""])
def test_fault_37_the_mode_is_chosen_by_name(file, mode):
    """Never by a file that happens to be missing."""
    with pytest.raises(ValueError, match="mode must be one of"):
        tc.session(mode, file, ["balance"])


def test_fault_37_the_helper_can_fail():
    """What every test here leans on: a body that runs where it must not is seen, also by a swallowing program."""
    with pytest.raises(RealBodyRan):
        try:
            dead(balance)("alice")
        except Exception:
            pytest.fail("it was swallowed")


def test_fault_40_a_failed_run_is_not_published_by_finally(file):
    with pytest.raises(RuntimeError) as raised:
        with tc.record(file, ["*"], sync="none"):
            live(balance)("alice")
            raise RuntimeError("agent crashed")
    assert any("nothing was published" in note for note in raised.value.__notes__)
    assert not file.exists()


def test_fault_40_what_a_call_has_beside_is_part_of_it(file):
    def ask(prompt, **extra):
        return prompt

    record(file, lambda: live(ask)("hi", extra_body={"seed": 1}))
    for given in ({}, {"extra_body": {"seed": 2}}, {"extra_body": {"seed": 1}, "timeout": 3}):
        with fails(tc.CassetteMismatch), tc.replay(file):
            refused(dead(ask), "hi", **given)
