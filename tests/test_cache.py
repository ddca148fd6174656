"""The response cache: what is asked, what is kept, what is refused; and many processes in one folder."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator  # noqa: TC003 - contracts resolve them
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

import toolcassette as tc

SRC = Path(__file__).resolve().parents[1] / "src"


class Asked(list):
    """What was asked for real; the answer tells the how many-th it was."""

    def add(self, what):
        self.append(what)
        return len(self)


@pytest.fixture
def asked():
    return Asked()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def entries(folder):
    return sorted(path.name for path in folder.iterdir())


def answering(asked):
    def answer(text: str, *, n: int = 0) -> dict[str, int]:
        return {"times": asked.add((text, n))}

    return answer


def test_a_hit_is_handed_out_and_a_miss_is_asked_for(here, asked):
    answer = tc.cached(answering(asked))
    assert answer("a") == answer(text="a", n=0) == {"times": 1}
    assert answer("b") == {"times": 2}
    assert asked == [("a", 0), ("b", 0)]
    assert len(entries(here / ".toolcassette-cache")) == 2
    assert all(name.startswith("answer-") for name in entries(here / ".toolcassette-cache"))
    assert all(row.report.ok and row.report.calls == 1 for row in tc.list_cassettes(here))
    assert all(tc.verify(path, deep=True).ok for path in (here / ".toolcassette-cache").iterdir())


def test_another_interpreter_finds_what_is_kept(here, asked):
    first = tc.cache().wrap(answering(asked))
    again = tc.cache(".toolcassette-cache").wrap(answering(asked))
    assert first("a") == again("a") == {"times": 1}
    first("a")["times"] = 9
    assert first("a") == {"times": 1}, "a fresh value each time"


def test_record_asks_always_and_swaps(tmp_path, asked):
    fresh, plain = (tc.cache(tmp_path / "c", mode=mode).wrap(answering(asked)) for mode in ("record", "default"))
    assert [fresh("a"), plain("a"), fresh("a"), plain("a")] == [{"times": n} for n in (1, 1, 2, 2)]
    assert len(entries(tmp_path / "c")) == 1


def test_record_keeps_the_old_entry_where_the_new_one_fails(tmp_path):
    fails = False

    def answer() -> int:
        if fails:
            raise ConnectionError("down")
        return 1

    tc.cache(tmp_path / "c").wrap(answer)()
    fails = True
    with pytest.raises(ConnectionError):
        tc.cache(tmp_path / "c", mode="record").wrap(answer)()
    assert tc.cache(tmp_path / "c", mode="replay-only").wrap(answer)() == 1


def test_replay_only_turns_a_miss_into_an_error(tmp_path, asked):
    offline = tc.cache(tmp_path / "c", mode="replay-only").wrap(answering(asked))
    with pytest.raises(tc.CacheMiss) as caught:
        offline("a")
    assert (caught.value.tool, caught.value.exit_status) == ("answer", 1)
    assert asked == []
    assert not (tmp_path / "c").exists()
    tc.cache(tmp_path / "c").wrap(answering(asked))("a")
    assert offline("a") == {"times": 1}


def test_bypass_and_disabled_keep_nothing(tmp_path, asked):
    on = True
    bypassed = tc.cache(tmp_path / "c", mode="bypass").wrap(answering(asked))
    switched = tc.cache(tmp_path / "c", enabled=lambda: on).wrap(answering(asked))
    disabled = tc.cache(tmp_path / "c", enabled=False).wrap(answering(asked))
    assert [bypassed("a"), bypassed("a"), disabled("a")] == [{"times": n} for n in (1, 2, 3)]
    assert not (tmp_path / "c").exists()
    assert switched("a") == switched("a") == {"times": 4}
    on = False
    assert switched("a") == {"times": 5}


def test_a_key_of_ones_own(tmp_path, asked):
    by_text = tc.cache(tmp_path / "c", key=lambda call: json.loads(call.args)["text"]).wrap(answering(asked))
    assert by_text("a", n=1) == by_text("a", n=2) == {"times": 1}
    with pytest.raises(TypeError, match="key must return a text"):
        tc.cache(tmp_path / "c", key=lambda call: "").wrap(answering(asked))("a")


@pytest.mark.parametrize("options", [{}, {"store": tc.MemoryStore()}])
def test_a_cache_in_memory_or_in_a_store(here, asked, options):
    memory = tc.cache(**options) if options else tc.memory_cache()
    answer = memory.wrap(answering(asked))
    assert answer("a") == answer("a") == {"times": 1}
    assert list(here.iterdir()) == []
    assert tc.memory_cache().wrap(answering(asked))("a") == {"times": 2}


def test_deleting_a_file_is_a_refresh(tmp_path, asked):
    answer = tc.cache(tmp_path / "c").wrap(answering(asked))
    answer("a")
    for path in (tmp_path / "c").iterdir():
        path.unlink()
    assert answer("a") == {"times": 2}


def test_every_change_of_a_call_is_a_miss(asked):
    calls = tc.memory_cache()

    def wrapped(name, **identity):
        return calls.wrap(tc.wrap_model(lambda **request: asked.add(request), name=name, identity=identity))

    results = [
        wrapped("a")(x=1), wrapped("b")(x=1), wrapped("a")(x=1.0), wrapped("a")(x=True), wrapped("a")(y=1),
        wrapped("a", model="m")(x=1), calls.wrap(tc.cassette_tool(name="a")(lambda **request: asked.add(request)))(x=1),
    ]  # fmt: skip
    assert results == list(range(1, 8))
    assert wrapped("a")(x=1) == 1


def test_rules_and_aliases_of_a_model_hold_in_the_cache(asked):
    model = tc.memory_cache().wrap(
        tc.wrap_model(lambda messages, tools: asked.add(messages), name="m", rules=[tc.normalize_tools])
    )
    for call_id, text in (("c1", "a"), ("c2", "b")):
        assert model([{"role": "tool", "tool_call_id": call_id}], [{"name": "f", "description": text}]) == 1


def test_binary_payloads_survive():
    data = {"image": b"\x00\xff\x89PNG", "parts": (b"", bytearray(b"x"))}
    image = tc.memory_cache().wrap(tc.cassette_tool(name="image", returns=object)(lambda: data))
    assert image() == image() == data


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_what_fails_is_not_kept(asked, error):
    def answer() -> int:
        if asked.add("x") < 3:
            raise error
        return 1

    cached = tc.memory_cache().wrap(answer)
    for _ in range(2):
        with pytest.raises(type(error)):
            cached()
    assert cached() == cached() == 1


# -- streams ---------------------------------------------------------------------------------------------------------


def test_a_stream_is_kept_when_it_was_read_to_its_end(asked):
    @tc.memory_cache()
    def tokens(text: str) -> Iterator[str]:
        asked.add("begun")
        yield from text
        asked.add("ended")

    partly = tokens("abc")
    assert next(partly) == "a"
    partly.close()  # type: ignore[attr-defined] # a generator has it
    assert asked == ["begun"]
    assert list(tokens("abc")) == ["a", "b", "c"]
    assert list(tokens("abc")) == ["a", "b", "c"]
    assert asked == ["begun", "begun", "ended"]
    assert next(tokens("abc")) == "a", "a hit may be left early"


def test_an_item_arrives_before_the_next_is_made(asked):
    @tc.memory_cache()
    def tokens() -> Iterator[int]:
        yield asked.add("a")
        yield asked.add("b")

    stream = tokens()
    next(stream)
    assert asked == ["a"]
    list(stream)


def test_a_stream_that_fails_midway_is_not_kept(asked):
    @tc.memory_cache()
    def tokens() -> Iterator[int]:
        yield asked.add("a")
        if len(asked) == 1:
            raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        list(tokens())
    assert list(tokens()) == list(tokens()) == [2]


def test_a_function_that_returns_a_stream_and_a_context_manager_that_is_none(asked):
    def source() -> Iterator[int]:
        return iter([asked.add("a"), 7])

    cached = tc.memory_cache().wrap(source)
    assert list(cached()) == list(cached()) == [1, 7]

    @contextmanager
    def managed():
        yield iter([1])

    with pytest.raises(tc.UnrecordableValue, match="cache what is inside it"):
        tc.memory_cache().wrap(managed)()


@pytest.mark.anyio
async def test_asynchronous_functions_and_streams(asked):
    @tc.memory_cache()
    async def answer(text: str) -> int:
        await anyio.lowlevel.checkpoint()
        return asked.add(text)

    @tc.memory_cache()
    async def tokens(text: str) -> AsyncIterator[str]:
        asked.add(text)
        for letter in text:
            yield letter

    @tc.memory_cache()
    async def opened(text: str) -> AsyncIterator[str]:
        return tokens.__wrapped__(text)  # type: ignore[attr-defined] # what functools.wraps leaves there

    assert await answer("a") == await answer("a") == 1
    for _ in range(2):
        assert [letter async for letter in tokens("abc")] == ["a", "b", "c"]
        assert [letter async for letter in await opened("de")] == ["d", "e"]
    assert asked == ["a", "abc", "de"]

    stream = tokens("xyz")
    assert await anext(stream) == "x"
    await stream.aclose()  # type: ignore[attr-defined] # an asynchronous generator has it
    assert [letter async for letter in tokens("xyz")] == ["x", "y", "z"]
    assert asked[3:] == ["xyz", "xyz"]


# -- what is refused -------------------------------------------------------------------------------------------------


def aged(folder, days):
    """Make the entries look older: by their headers, as no touch of a file does."""
    for path in folder.iterdir():
        cassette = tc.read_cassette(path)
        created = (dt.datetime.now(dt.UTC) - dt.timedelta(days=days)).replace(tzinfo=None)
        data = tc.write_cassette(
            list(cassette), cassette="ab" * 16, created=f"{created.isoformat(timespec='microseconds')}Z", producer="x"
        )
        path.unlink()
        path.write_bytes(data)


def test_an_entry_that_is_too_old_fails_or_warns_and_is_never_asked_for_in_silence(tmp_path, asked):
    folder = tmp_path / "c"
    tc.cache(folder).wrap(answering(asked))("a")
    aged(folder, days=2)
    week, day = dt.timedelta(days=7), 86_400.0
    assert tc.cache(folder, max_age=week).wrap(answering(asked))("a") == {"times": 1}
    with pytest.raises(tc.CacheExpired) as caught:
        tc.cache(folder, max_age=day).wrap(answering(asked))("a")
    assert caught.value.max_age == day
    assert 2 * day <= caught.value.age < 2 * day + 60
    with pytest.warns(UserWarning, match="172800 seconds old, and max_age is 86400"):
        assert tc.cache(folder, max_age=day, expired="warn").wrap(answering(asked))("a") == {"times": 1}
    assert len(asked) == 1
    assert tc.cache(folder, max_age=day, mode="record").wrap(answering(asked))("a") == {"times": 2}
    assert tc.cache(folder, max_age=day).wrap(answering(asked))("a") == {"times": 2}


def test_the_time_of_the_file_says_nothing(tmp_path, asked):
    folder = tmp_path / "c"
    tc.cache(folder).wrap(answering(asked))("a")
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    assert tc.cache(folder, max_age=60).wrap(answering(asked))("a") == {"times": 1}


@pytest.mark.parametrize("mode", ["default", "replay-only"])
def test_a_damaged_entry_raises(tmp_path, asked, mode):
    folder = tmp_path / "c"
    tc.cache(folder).wrap(answering(asked))("a")
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes().replace(b'"times":1', b'"times":2'))
    with pytest.raises(tc.FormatError):
        tc.cache(folder, mode=mode).wrap(answering(asked))("a")
    assert tc.cache(folder, mode="record").wrap(answering(asked))("a") == {"times": 2}


def test_an_entry_under_a_wrong_name_raises(tmp_path, asked):
    folder = tmp_path / "c"
    answer = tc.cache(folder).wrap(answering(asked))
    answer("a")
    (name,) = entries(folder)
    answer("b")
    (other,) = set(entries(folder)) - {name}
    (folder / other).write_bytes((folder / name).read_bytes())
    with pytest.raises(tc.CassetteMismatch, match="holds another call"):
        answer("b")
    assert answer("a") == {"times": 1}


def test_a_value_that_does_not_come_back_is_refused(asked):
    with pytest.raises(tc.UnrecordableValue) as caught:
        tc.memory_cache().wrap(tc.cassette_tool(name="f")(lambda: {"x": object()}))()
    assert (caught.value.tool, caught.value.json_path) == ("f", "$.x")
    with pytest.raises(tc.UnrecordableValue):
        tc.memory_cache().wrap(answering(asked))(object())


def test_an_entry_that_no_longer_fits_the_annotation(tmp_path):
    def old(n: int) -> int:
        return n

    def new(n: int) -> str:
        return "never asked"

    tc.cache(tmp_path / "c").wrap(old)(1)
    new.__name__ = "old"
    with pytest.raises(tc.ContractMismatch) as caught:
        tc.cache(tmp_path / "c").wrap(new)(1)
    assert caught.value.tool == "old"


@pytest.mark.parametrize(
    "options", [{"mode": "replay"}, {"expired": "call"}, {"max_age": -1}, {"max_age": float("nan")}]
)
def test_bad_options(options):
    with pytest.raises(ValueError, match="must be"):
        tc.cache(**options)


# -- beside sessions -------------------------------------------------------------------------------------------------


def test_a_session_decides_where_it_selects_the_function(asked):
    store = tc.MemoryStore()
    calls = tc.memory_cache()

    @calls
    @tc.cassette_tool
    def double(n: int) -> int:
        asked.add(n)
        return 2 * n

    double(1)
    with tc.record("x", ["double"], store=store):
        double(1)
        double(1)
    assert asked == [1, 1, 1], "what is in the cache is recorded all the same"
    with tc.replay("x", store=store):
        double(1)
        double(1)
    with pytest.raises(tc.CassetteMismatch), tc.replay("x", store=store):
        double(2)
    with tc.record("y", ["other"], store=store, allow_empty=True):
        assert double(1) == 2
    assert asked == [1, 1, 1]
    with pytest.raises(tc.NotSelected), tc.replay("y", store=store):
        double(1)


def test_methods_and_looks(asked):
    calls = tc.memory_cache()

    class Client:
        @calls
        def ask(self, text: str) -> int:
            """Ask."""
            return asked.add(text)

        @calls
        @staticmethod
        def plain(text: str) -> int:
            return asked.add(text)

    client = Client()
    assert client.ask("a") == client.ask(text="a") == Client().ask("a") == 1
    assert client.plain("a") == client.plain("a") == 2
    assert (Client.ask.__name__, Client.ask.__doc__) == ("ask", "Ask.")
    bound = tc.memory_cache().wrap(client.ask)
    assert bound("b") == bound("b") == 3
    assert repr(calls) == "<Cache default>"


# -- many processes --------------------------------------------------------------------------------------------------

FILLER = """
import json, os, random, sys, time
import toolcassette as tc

folder, mode, begin, seed = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
asked = []

@tc.cache(folder, mode=mode)
def answer(n: int) -> dict[str, int]:
    asked.append(n)
    return {"n": n, "by": os.getpid()}

keys = list(range(200))
random.Random(seed).shuffle(keys)
time.sleep(max(0, begin - time.time()))
told = {n: answer(n) for n in keys}
print(json.dumps({"pid": os.getpid(), "asked": asked, "told": told}))
"""


def fillers(folder, mode, seeds):
    begin = time.time() + 1.5  # when all of them have been imported
    started = [
        subprocess.Popen(
            [sys.executable, "-c", FILLER, str(folder), mode, str(begin), str(seed)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SRC)},
        )
        for seed in seeds
    ]
    done = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0] * len(started), done
    return [json.loads(out) for out, _ in done]


@pytest.mark.parametrize("seeds", [(1, 1), (1, 2)], ids=["the same order", "another order"])
def test_two_processes_fill_one_folder_with_the_same_keys(tmp_path, seeds):
    folder = tmp_path / "c"
    runs = fillers(folder, "default", seeds)
    assert len(entries(folder)) == 200, "no lost or doubled entry, and no partial"
    winners = {}
    for path in folder.iterdir():
        assert tc.verify(path, deep=True).ok
        (call,) = tc.read_cassette(path)
        value = json.loads(call.value or b"")
        winners[value["n"]] = value["by"]
    assert winners.keys() == set(range(200))
    asked = {run["pid"]: set(run["asked"]) for run in runs}
    assert all(n in asked[pid] for n, pid in winners.items()), "a winner has asked"
    assert set.union(*asked.values()) == set(range(200))
    for run in runs:
        for n, told in run["told"].items():
            own = int(n) in asked[run["pid"]]
            assert told == {"n": int(n), "by": run["pid"] if own else winners[int(n)]}
    (offline,) = fillers(folder, "replay-only", [random.randrange(100)])
    assert offline["asked"] == []
    assert {int(n): told["by"] for n, told in offline["told"].items()} == winners


def test_two_processes_that_record_leave_whole_entries(tmp_path):
    folder = tmp_path / "c"
    fillers(folder, "record", (1, 2))
    assert len(entries(folder)) == 200
    assert all(tc.verify(path).ok for path in folder.iterdir())
