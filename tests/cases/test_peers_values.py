"""What a survey of 24 neighbouring tools asked of them, asked of this one: are values and arguments what they were?

Rule: as in test_peers_probes.py, which has the table. A value is the same on replay, or refused; never another one.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import pathlib
import random
import time
import uuid
from typing import Any, NamedTuple

import pytest

import toolcassette as tc
from tests.cases.programs import dead, fails, frames, live, record, refused, replay
from tests.strategies import same


@pytest.fixture
def file(tmp_path):
    return tmp_path / "probe.cassette.jsonl"


def tool_a(q):
    return {"q": q}


ARGUMENT_PAIRS: dict[str, tuple[Any, Any]] = {
    "True/1": (True, 1),
    "1/1.0": (1, 1.0),
    "'1'/1": ("1", 1),
    "None/'null'": (None, "null"),
    "NFC/NFD": ("\u00e9", "e\u0301"),
    "{1:}/{'1':}": ({1: "a"}, {"1": "a"}),
    "(1,)/[1]": ((1,), [1]),
    "id=1/id=2": ({"id": 1}, {"id": 2}),
    "date": ({"date": "2026-01-01"}, {"date": "2026-02-02"}),
    "timestamp": ({"timestamp": 1}, {"timestamp": 2}),
    "created": ({"created": 1}, {"created": 2}),
    "token": ({"token": "a"}, {"token": "b"}),
    "'a '/'a'": ("a ", "a"),
    "None-key": ({"k": None}, {}),
    "0/-0.0": (0.0, -0.0),
}


@pytest.mark.parametrize("name", ARGUMENT_PAIRS)
def test_probe_argtypes(file, name):
    recorded, asked = ARGUMENT_PAIRS[name]
    tool = live(tool_a)
    for one, other in ((recorded, asked), (asked, recorded)):
        target = file.with_name(f"{type(one).__name__}-{same(one, recorded)}.cassette.jsonl")
        record(target, functools.partial(tool, one), redact=False)  # whole, so that a token is compared by its text
        assert same(replay(target, functools.partial(dead(tool_a), one), on_secret="ignore"), {"q": one})
        with fails(tc.CassetteMismatch) as left, tc.replay(target, on_secret="ignore"):
            refused(dead(tool_a), other)
        assert left["error"].reason == "arguments_differ"


def test_probe_argtypes_key_order(file):
    record(file, lambda: live(tool_a)({"a": 1, "b": {"c": 2, "d": 3}}))
    assert replay(file, lambda: dead(tool_a)({"b": {"d": 3, "c": 2}, "a": 1})) == {"q": {"a": 1, "b": {"c": 2, "d": 3}}}


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Color(str, enum.Enum):  # noqa: UP042 - the older spelling is the case
    RED = "red"


class Num(enum.IntEnum):
    ONE = 1


class NT(NamedTuple):
    a: int
    b: int


RETURNED: dict[str, Any] = {
    "datetime": dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
    "decimal": decimal.Decimal("1.10"),
    "bytes": b"\x00\xff",
    "tuple": (1, 2),
    "set": {1, 2},
    "dataclass": Point(1, 2),
    "strenum": Color.RED,
    "intenum": Num.ONE,
    "intkeys": {1: "a"},
    "nan": float("nan"),
    "bigint": 2**70,
    "none": None,
    "namedtuple": NT(1, 2),
    "uuid": uuid.UUID(int=5),
    "path": pathlib.PurePosixPath("/a"),
    "ordereddict": collections.OrderedDict(b=1, a=2),
    "bytearray": bytearray(b"x"),
    "dictorder": {"b": 1, "a": 2},
    "trail_space": "a ",
    "floatint": 1.0,
    "surrogate": "\ud800",
    "u2028": "a\u2028b\u0085c",
    "object": object(),
}
# Without an annotation these have no name that could bring them back.
NEED_ANNOTATION = {"dataclass", "strenum", "intenum", "namedtuple"}


def giver(value: Any, annotation: Any = None) -> Any:
    def give(q):
        return value

    if annotation is not None:
        give.__annotations__["return"] = annotation
    return give


@pytest.mark.parametrize("name", RETURNED)
def test_probe_types(file, name):
    value = RETURNED[name]
    if name in NEED_ANNOTATION or name == "object":
        with fails(tc.UnrecordableValue) as left:
            record(file, lambda: live(giver(value))("a"))
        assert left["error"].json_path == "$"
        assert left["error"].tool == "give"
        assert not file.exists()
    if name == "object":
        return
    annotation = type(value) if name in NEED_ANNOTATION else None
    with tc.record(file, ["*"], sync="none", stale="set-aside"):
        assert same(live(giver(value, annotation))("a"), value)
    copies = [replay(file, lambda: dead(giver(value, annotation))("a")) for _ in range(2)]
    assert all(same(copy, value) for copy in copies)
    if isinstance(value, dict):
        assert list(copies[0].items()) == list(value.items())


def told_of_changes():
    """The recorder says that a replay will not make the change that the body made."""
    return pytest.warns(UserWarning, match="changed its arguments in place")


def test_probe_mutarg(file):
    """What was asked is what stood there before the body ran, so the unchanged program matches for ever."""

    def mutate(opts):
        opts["seen"] = True
        return "ok"

    given = {"a": 1}
    with told_of_changes():
        record(file, lambda: live(mutate)(given))
    assert given == {"a": 1, "seen": True}
    for _ in range(2):
        asked = {"a": 1}
        assert replay(file, functools.partial(dead(mutate), asked)) == "ok"
        assert asked == {"a": 1}
    assert next(iter(tc.read_cassette(file))).args == b'{"opts":{"a":1}}'


def test_probe_mutres(file):
    """The caller's changes are the caller's: the body's own object and the cassette know nothing of them."""
    own = {"v": [1]}

    def give(q):
        return own

    def program(tool):
        first = tool("a")
        first["v"].append(999)
        first["junk"] = 1
        return tool("a")

    assert record(file, lambda: program(live(give))) == {"v": [1]}
    assert own == {"v": [1]}
    assert replay(file, lambda: program(dead(give))) == {"v": [1]}


def test_probe_secret(file):
    """What is left out is not in the file, a secret in the result neither, and harmless digests are whole."""
    answer = {"token": "sk-ABCDEFGH", "sha": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}

    def login(user, token):
        return answer

    tool = live(login, omit=["token"])
    assert record(file, lambda: tool("bob", "sk-SECRETSECRET")) == answer
    assert b"SECRETSECRET" not in file.read_bytes()
    assert b"sk-ABCDEFGH" not in file.read_bytes()
    again = replay(file, lambda: dead(login, omit=["token"])("bob", "sk-OTHER"))
    assert again == answer | {"token": "⟦redacted:token:1⟧"}


def test_fault_06_recording_does_not_change_the_run(file):
    def login():
        return {"access_token": "sk-live-value"}

    assert record(file, live(login)) == {"access_token": "sk-live-value"}
    assert replay(file, dead(login)) == {"access_token": "⟦redacted:token:1⟧"}
    whole = file.with_name("whole.cassette.jsonl")
    record(whole, live(login), redact=False)
    assert replay(whole, dead(login), on_secret="ignore") == {"access_token": "sk-live-value"}


def test_fault_07_u2028(file):
    """Separators of Unicode lines break no frame: they are spelled out, and only LF ends a line."""
    texts = ["a\u2028b", "a\u2029b", "a\x85b", "a\x0bb", "a\x0cb", "a\x1cb", "a\rb"]
    tool = live(tool_a)
    record(file, lambda: [tool(text) for text in texts])
    assert replay(file, lambda: [dead(tool_a)(text)["q"] for text in texts]) == texts
    assert len(file.read_text("utf-8").splitlines()) == len(frames(file)) == 2 * len(texts) + 2


def test_fault_09_short_strings(file):
    """400 random short strings, blanks and controls among them, come back; `'a '` is not `'a'`."""
    chance = random.Random(9)
    alphabet = "ab \t\r\n\x00\x0b'\"\\:#-?{}[]&*!|>%@`~\u00e9\u2028\ufeff\U0001f378"
    texts = ["a ", "\r", "", " ", *("".join(chance.choices(alphabet, k=chance.randint(1, 6))) for _ in range(400))]
    tool = live(tool_a)
    record(file, lambda: [tool(text) for text in texts])
    assert replay(file, lambda: [dead(tool_a)(text)["q"] for text in texts]) == texts


def test_fault_13_a_mutated_argument_is_not_restored(file):
    """The program's own object is left alone, in both modes: nothing is put back that the tool has changed."""

    def fill(basket):
        basket.append("data")
        return len(basket)

    def program(tool):
        basket: list[str] = []
        return tool(basket), tool(basket), basket

    with told_of_changes():
        assert record(file, lambda: program(live(fill))) == (1, 2, ["data", "data"])
    with fails(tc.CassetteMismatch) as left, tc.replay(file):
        refused(lambda: program(dead(fill)))  # the second call depends on the effect of the first: told, not guessed
    assert (left["error"].reason, left["error"].ordinal) == ("exhausted", 1)


def test_fault_27_harmless_data_is_whole(file):
    data = {"sha": "0" * 64, "uuid": str(uuid.UUID(int=7)), "hex": uuid.UUID(int=7).hex, "git": "a" * 40}
    assert record(file, lambda: live(tool_a)(data)) == replay(file, lambda: dead(tool_a)(data)) == {"q": data}


def test_fault_28_the_clock_is_nobodys(file):
    def clock(q):
        first = time.monotonic_ns()
        while time.monotonic_ns() == first:
            pass
        return type(dt.datetime.now(dt.UTC)) is dt.datetime

    assert record(file, lambda: live(clock)("a")) is True


def test_fault_30_a_call_that_raised_is_a_record(file):
    def flaky(q):
        if q == "bad":
            raise ValueError("down")
        return q

    def program(tool):
        found = []
        for q in ("a", "bad", "b"):
            try:
                found.append(tool(q))
            except ValueError as error:
                found.append(str(error))
        return found

    assert record(file, lambda: program(live(flaky))) == ["a", "down", "b"]
    assert replay(file, lambda: program(dead(flaky))) == ["a", "down", "b"]
    assert [call.outcome for call in tc.read_cassette(file)] == ["ok", "error", "ok"]


def test_fault_31_arguments_are_taken_before_the_call(file):
    """Also where the body runs for long, and where it is another thread that changes them meanwhile."""
    shared = {"n": 1}

    def slow(opts):
        shared["n"] = 2
        return opts["n"]

    with told_of_changes():
        record(file, lambda: live(slow)(shared))
    assert replay(file, lambda: dead(slow)({"n": 1})) == 2


@pytest.mark.parametrize("value", [object(), [].__iter__, {"deep": [open]}, lambda: 1, type("Custom", (), {})()])
def test_fault_32_no_repr_is_ever_stored(file, value):
    with fails(tc.UnrecordableValue) as left:
        record(file, lambda: live(giver(value))("a"))
    assert left["error"].json_path == ("$.deep[0]" if isinstance(value, dict) else "$")
    partial = file.with_name(file.name + ".partial")
    assert b" at 0x" not in partial.read_bytes()
    assert len(frames(partial)) == 2  # header and start: the body ran, and has no recorded end
