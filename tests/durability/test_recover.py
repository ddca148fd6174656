"""Every state that a crash can leave, and what recover makes of it; as a function and as a verb."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import toolcassette as tc
from tests.cli.helpers import cassette, run

FORMAL = "x.cassette.jsonl"
PARTIAL = FORMAL + ".partial"
WHOLE = cassette()
CUT = b"".join(WHOLE.splitlines(keepends=True)[:4])  # header, a whole call, the start of the next
EMPTY = b""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(formal: bytes | None = None, partial: bytes | None = None, *, linked: bool = False) -> None:
    if formal is not None:
        Path(FORMAL).write_bytes(formal)
    if partial is not None:
        Path(PARTIAL).write_bytes(partial)
    if linked:
        os.link(PARTIAL, FORMAL)


def files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path().iterdir()}


@pytest.mark.parametrize("asked", [FORMAL, PARTIAL])
@pytest.mark.parametrize(
    ("given", "found", "done", "left"),
    [
        ({"partial": WHOLE}, "finished", "published", {FORMAL: WHOLE}),
        ({"partial": WHOLE, "linked": True}, "linked", "tidied", {FORMAL: WHOLE}),
        ({"partial": WHOLE, "formal": EMPTY}, "placeholder", "published", {FORMAL: WHOLE}),
        ({"formal": WHOLE}, "cassette", "nothing", {FORMAL: WHOLE}),
    ],
)
def test_what_a_crash_interrupted_is_finished(asked, given, found, done, left):
    put(**given)
    first = tc.recover(asked)
    assert (first.found, first.done, first.ok, first.exit_status) == (found, done, True, 0)
    assert (first.path, first.frames, first.calls, first.lost, first.reason) == (asked, 8, 3, 0, None)
    assert files() == left
    second = tc.recover(asked)
    assert (second.found, second.done, second.exit_status) == ("cassette", "nothing", 0)
    assert files() == left


@pytest.mark.parametrize(
    ("given", "found", "reason", "counts"),
    [
        ({"partial": CUT}, "unfinished", "tail_missing", (4, 1, 1)),
        ({"partial": CUT[:-9]}, "unfinished", "torn", (3, 1, 0)),
        ({"partial": EMPTY}, "unfinished", "empty", (0, 0, 0)),
        ({"partial": CUT + bytes(40)}, "unfinished", "zero_filled", (4, 1, 1)),
        ({"partial": WHOLE.replace(b"rain", b"hail")}, "unfinished", "hash", (4, 1, 1)),
        ({"partial": CUT, "formal": WHOLE}, "unfinished", "tail_missing", (4, 1, 1)),
        ({"partial": CUT, "linked": True}, "unfinished", "tail_missing", (4, 1, 1)),
        ({"formal": CUT}, "damaged", "tail_missing", (4, 1, 1)),
        ({"formal": EMPTY}, "damaged", "empty", (0, 0, 0)),
    ],
)
def test_what_is_not_whole_stays_as_it_is(given, found, reason, counts):
    put(**given)
    before = files()
    for _ in range(2):
        answer = tc.recover(PARTIAL)
        assert (answer.found, answer.done, answer.reason, answer.exit_status) == (found, "nothing", reason, 1)
        assert (answer.frames, answer.calls, answer.lost) == counts
        assert reason in answer.message
        assert files() == before


def test_another_file_under_its_name_is_not_touched():
    put(formal=cassette([]), partial=WHOLE)
    before = files()
    for _ in range(2):
        with pytest.raises(tc.CassetteExists) as caught:
            tc.recover(PARTIAL)
        assert caught.value.what == "cassette"
        assert files() == before


def test_a_dangling_link_under_its_name_is_not_followed():
    put(partial=WHOLE)
    Path(FORMAL).symlink_to("elsewhere")
    with pytest.raises(tc.CassetteExists):
        tc.recover(PARTIAL)
    assert sorted(path.name for path in Path().iterdir()) == [FORMAL, PARTIAL]


def test_a_live_partial_is_refused():
    tool = tc.Registry().wrap(lambda: 1, name="one")
    with tc.record(FORMAL, ["one"]):
        tool()
        for salvage in (None, "new.cassette.jsonl"):
            with pytest.raises(tc.CassetteExists) as caught:
                tc.recover(PARTIAL, salvage=salvage)
            assert caught.value.what == "live_partial"
    assert tc.verify(FORMAL).ok
    assert set(files()) == {FORMAL}


def test_nothing_there_is_absent():
    for name in (FORMAL, PARTIAL):
        with pytest.raises(tc.FormatError) as caught:
            tc.recover(name)
        assert caught.value.reason == "absent"


def test_a_recording_that_was_set_aside_is_named_and_left():
    aside = Path(PARTIAL + ".abababab")
    aside.write_bytes(WHOLE)
    answer = tc.recover(aside)
    assert (answer.found, answer.done, answer.exit_status) == ("set-aside", "nothing", 1)
    aside.rename(PARTIAL)
    assert tc.recover(PARTIAL).done == "published"


def test_in_a_memory_store_too():
    store = tc.MemoryStore()
    spool = store.create("x", cassette_id="ab" * 16)
    spool.append(WHOLE)
    spool.keep()
    assert tc.recover("x", store=store).done == "published"
    assert tc.verify("x", store=store).ok


# -- salvage -----------------------------------------------------------------------------------------------------


def test_salvage_says_where_it_comes_from():
    put(partial=CUT)
    answer = tc.recover(PARTIAL, salvage="new.cassette.jsonl")
    assert (answer.done, answer.into, answer.ok) == ("salvaged", "new.cassette.jsonl", True)
    assert (answer.calls, answer.lost) == (1, 1)
    assert files()[PARTIAL] == CUT
    told = tc.inspect("new.cassette.jsonl")
    assert told.origin == {"cassette": "ab" * 16, "head": tc.verify(PARTIAL).head, "how": "salvage"}
    assert told.cassette != "ab" * 16
    assert told.producer.startswith("toolcassette ")
    assert (told.order, told.sync, told.created) == ("strict", "close", "2026-01-02T03:04:05.000000Z")
    assert tc.verify("new.cassette.jsonl", deep=True).ok
    assert list(tc.read_cassette("new.cassette.jsonl")) == list(tc.parse_cassette(WHOLE))[:1]
    assert tc.inspect("new.cassette.jsonl").outcomes["ok"] == 1
    put(formal=WHOLE)
    assert tc.inspect(FORMAL).origin is None


def test_salvage_of_a_damaged_cassette_stops_before_the_first_bad_frame():
    put(formal=WHOLE.replace(b"rain", b"hail"))
    answer = tc.recover(FORMAL, salvage="new.cassette.jsonl")
    assert (answer.found, answer.reason, answer.frame, answer.calls, answer.lost) == ("damaged", "hash", 4, 1, 1)
    assert files()[FORMAL] == WHOLE.replace(b"rain", b"hail")
    assert len(tc.read_cassette("new.cassette.jsonl")) == 1


def test_salvage_of_what_has_something_behind_it_keeps_every_call():
    put(formal=WHOLE + b"junk")
    assert tc.recover(FORMAL, salvage="new.cassette.jsonl").reason == "after_complete"
    assert list(tc.read_cassette("new.cassette.jsonl")) == list(tc.parse_cassette(WHOLE))


def test_salvage_keeps_the_order_of_calls_that_overlapped(tmp_path):
    """Call 1 has no end; 0 and 2 overlap, and still do; the numbers have no hole."""
    script = tmp_path / "overlap.py"
    script.write_text(
        "import asyncio, os\nimport toolcassette as tc\n"
        "@tc.cassette_tool\nasync def step(n, ms):\n    await asyncio.sleep(ms / 1000)\n    return n\n"
        "async def main():\n"
        "    async with tc.record('x.cassette.jsonl', ['step'], order='causal'):\n"
        "        hang = asyncio.ensure_future(step(1, 60_000))\n"
        "        tasks = [asyncio.ensure_future(step(0, 60)), hang, asyncio.ensure_future(step(2, 20))]\n"
        "        await asyncio.wait([tasks[0], tasks[2]])\n"
        "        os._exit(9)\n"
        "asyncio.run(main())\n",
        "utf-8",
    )
    src = Path(__file__).resolve().parents[2] / "src"
    done = subprocess.run([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": str(src)}, check=False)
    assert done.returncode == 9
    answer = tc.recover(PARTIAL, salvage="new.cassette.jsonl")
    assert (answer.calls, answer.lost) == (2, 1)
    kinds = [
        (frame["kind"], frame.get("call"))
        for frame in map(json.loads, Path("new.cassette.jsonl").read_bytes().splitlines())
    ]
    assert kinds == [
        ("header", None),
        ("call/start", 0),
        ("call/start", 1),
        ("call/result", 1),
        ("call/result", 0),
        ("complete", None),
    ]
    assert [call.args for call in tc.read_cassette("new.cassette.jsonl")] == [b'{"ms":60,"n":0}', b'{"ms":20,"n":2}']


@pytest.mark.parametrize("secret", ["AKIAIOSFODNN7EXAMPLE", "nothing of that kind"])
def test_salvage_tells_of_secrets_that_its_recorder_had_no_time_to_take_out(secret):
    @tc.Registry().wrap
    def note(text: str) -> str:
        return text

    with pytest.raises(ZeroDivisionError), tc.record(FORMAL, ["note"], redact=False):
        note(secret)
        raise ZeroDivisionError
    answer = tc.recover(PARTIAL, salvage="new.cassette.jsonl")
    assert answer.done == "salvaged"
    assert [("scan" in words, secret in words) for words in answer.notes] == [(True, False)] * (secret[:4] == "AKIA")


@pytest.mark.parametrize("given", [{"formal": WHOLE}, {"partial": WHOLE}])
def test_what_is_whole_is_not_salvaged(given):
    put(**given)
    before = files()
    answer = tc.recover(next(iter(before)), salvage="new.cassette.jsonl")
    assert (answer.done, answer.exit_status) == ("nothing", 1)
    assert "it is whole" in answer.message
    assert files() == before


def test_without_an_ended_call_there_is_nothing_to_salvage():
    put(partial=b"".join(WHOLE.splitlines(keepends=True)[:2]))
    before = files()
    answer = tc.recover(PARTIAL, salvage="new.cassette.jsonl")
    assert (answer.done, answer.calls, answer.lost, answer.exit_status) == ("nothing", 0, 1, 1)
    assert files() == before


def test_without_a_header_there_is_nothing_to_say():
    put(partial=b"not a cassette\n")
    with pytest.raises(tc.FormatError, match="not_a_cassette"):
        tc.recover(PARTIAL, salvage="new.cassette.jsonl")
    assert set(files()) == {PARTIAL}


@pytest.mark.parametrize(("into", "what"), [("taken.cassette.jsonl", "cassette"), (FORMAL, "stale_partial")])
def test_salvage_overwrites_nothing(into, what):
    put(partial=CUT)
    Path("taken.cassette.jsonl").write_bytes(b"mine")
    before = files()
    with pytest.raises(tc.CassetteExists) as caught:
        tc.recover(PARTIAL, salvage=into)
    assert caught.value.what == what
    assert files() == before


# -- the verb ----------------------------------------------------------------------------------------------------


def test_the_verb_judges_all_of_a_folder(here):
    for name, data in {"a": WHOLE, "b": CUT, "c": WHOLE}.items():
        Path(f"{name}.cassette.jsonl.partial").write_bytes(data)
    Path("c.cassette.jsonl").write_bytes(cassette([]))
    done = run(here, "recover", ".")
    assert done.returncode == 2
    lines = done.stdout.splitlines()
    assert lines[0] == "./a.cassette.jsonl.partial: a whole recording that was not published; published"
    assert lines[1].startswith("./b.cassette.jsonl.partial: a recording that was never finished; ")
    assert "--salvage NEW_FILE" in lines[1]
    assert len(lines) == 2
    assert "./c.cassette.jsonl: another file has its name, nothing was touched" in done.stderr
    assert run(here, "recover", "a.cassette.jsonl.partial").returncode == 0
    assert run(here, "recover", "b.cassette.jsonl.partial").returncode == 1
    assert run(here, "recover", "gone.cassette.jsonl.partial").returncode == 2


def test_the_verb_salvages_and_inspect_shows_it(here):
    put(partial=CUT)
    done = run(here, "recover", PARTIAL, "--salvage", "new.cassette.jsonl", "--format", "json")
    (answer,) = json.loads(done.stdout)
    assert done.returncode == 0
    assert (answer["done"], answer["into"], answer["calls"], answer["lost"]) == ("salvaged", "new.cassette.jsonl", 1, 1)
    head = tc.verify(PARTIAL).head
    text = run(here, "inspect", "new.cassette.jsonl").stdout
    assert f"  from      salvage of {'ab' * 16}, to head {head}\n" in text
    (told,) = json.loads(run(here, "inspect", "new.cassette.jsonl", "--format", "json").stdout)
    assert told["from"] == {"cassette": "ab" * 16, "head": head, "how": "salvage"}
    assert "origin" not in told
    again = run(here, "recover", PARTIAL, "--salvage", "new.cassette.jsonl")
    assert again.returncode == 2
    assert "give another name" in again.stderr


def test_the_verb_asks_for_what_it_can_use(here):
    put(partial=CUT)
    for args in ((), ("-",), (PARTIAL, FORMAL, "--salvage", "new.cassette.jsonl"), (PARTIAL, "--salvage", "")):
        done = run(here, "recover", *args)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("toolcassette: ")
    assert files() == {PARTIAL: CUT}
    refused = json.loads(run(here, "recover", "gone", "--format", "json").stdout)
    assert [(row["ok"], row["found"], row["exit_status"]) for row in refused] == [(False, "refused", 2)]
