"""A secret that is recognised late stands in no frame, early or late, published or kept."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, Literal

import pytest

import toolcassette as tc
from tests.cases.programs import dead, live, record, replay
from tests.redaction.attacker import holds
from tests.redaction.test_pieces import text

LATE = "zK4mQ9xW2pT7vB5nR8"  # random, and of no known shape
OTHER = "hJ3cF6dS1gL0yU9eA7"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "late.cassette.jsonl"


def look(q: Any) -> Any:
    return {"seen": q}


def login(user: str, password: str) -> str:
    return f"welcome {user}"


def feed(q: str) -> Any:
    yield "begin "
    for at in range(0, len(q), 4):
        yield q[at : at + 4]
    yield " end"


def agent(make: Any, secret: str) -> list[Any]:
    """Only its last call tells that something is a secret."""
    looks, login_, feed_ = make(look), make(login), make(feed)
    seen = [looks(f"https://x.example/?q={secret}&n=1"), looks({"deep": [secret]}), list(feed_(secret))]
    return [*seen, login_("me", secret), looks(f"again {secret}")]


def test_frames_written_before_hold_it_no_more(file):
    recorded = record(file, lambda: agent(live, LATE))
    assert LATE in str(recorded)  # the program got the live values
    assert not holds(file.read_bytes(), LATE.encode())
    assert tc.verify(file, deep=True).ok
    replayed = replay(file, lambda: agent(dead, LATE))
    assert LATE not in str(replayed)
    assert "".join(map(text, replayed[2])) == "begin ⟦redacted:password:1⟧ end"


def test_another_secret_in_its_place_is_a_hit(file):
    record(file, lambda: agent(live, LATE))
    replay(file, lambda: agent(dead, OTHER))


@pytest.mark.parametrize("order", ["any", "causal"])
def test_in_another_order_it_is_a_hit_too(file, order):
    record(file, lambda: agent(live, LATE), order=order)
    replay(file, lambda: agent(dead, OTHER))


def test_another_value_around_it_is_a_miss(file):
    record(file, lambda: agent(live, LATE))
    with pytest.raises(tc.CassetteMismatch) as caught, tc.replay(file):
        dead(look)(f"https://x.example/?q={OTHER}&n=2")
    assert caught.value.reason == "arguments_differ"


def test_a_value_that_is_no_such_secret_is_a_miss(file):
    """What fills the place of a late secret must look like one, and be the same from then on."""
    record(file, lambda: agent(live, LATE))
    with pytest.raises(tc.CassetteMismatch), tc.replay(file):
        dead(look)("https://x.example/?q=shoes&n=1")

    def program():
        looks = dead(look)
        looks(f"https://x.example/?q={OTHER}&n=1")
        looks({"deep": [LATE]})

    with pytest.raises(tc.CassetteMismatch):
        replay(file, program)


def test_a_partial_that_is_kept_holds_none_either(file):
    with pytest.raises(KeyError), tc.record(file, ["*"], sync="none"):
        agent(live, LATE)
        raise KeyError
    partial = file.with_name(file.name + ".partial")
    assert partial.exists()
    assert not holds(partial.read_bytes(), LATE.encode())
    assert sorted(path.name for path in file.parent.iterdir()) == [partial.name]


def test_a_re_recording_that_says_the_same_is_unchanged(file):
    record(file, lambda: agent(live, LATE))
    before = file.read_bytes()
    with tc.record(file, ["*"], sync="none", replace=True) as session:
        agent(live, OTHER)
    assert session.verdict is not None
    assert session.verdict.outcome == "unchanged"
    assert file.read_bytes() == before


def test_a_value_that_tells_it_only_at_its_end(file):
    def tool(first: str, z_token: str) -> dict[str, str]:
        return {"a": f"x-{z_token}-y", "z_token": z_token}

    record(file, lambda: live(tool)(f"of {LATE}", LATE))
    assert not holds(file.read_bytes(), LATE.encode())
    replay(file, lambda: dead(tool)(f"of {OTHER}", OTHER))


def test_what_another_thread_learns_while_a_call_is_on_its_way(file):
    """One call's result is redacted, then another thread learns the secret, then that result is written."""
    redacted, learned = threading.Event(), threading.Event()

    tools = tc.Registry()

    @tools.wrap
    def fetch(q: str) -> str:
        return f"page of {q}"

    @tools.wrap
    def enter(password: str) -> str:
        return "in"

    with tc.record(file, ["*"], order="causal") as session:
        end = session.end

        def held(number: int, tool: str, ended: Any) -> int:
            if tool == "fetch":
                redacted.set()
                assert learned.wait(10)
            return end(number, tool, ended)

        session.end = held  # type: ignore[method-assign] # between redaction and the frame
        thread = threading.Thread(target=lambda: fetch(LATE))
        thread.start()
        assert redacted.wait(10)
        enter(LATE)
        learned.set()
        thread.join()
    assert not holds(file.read_bytes(), LATE.encode())


def test_a_stream_that_was_read_before_it_was_known(file):
    record(file, lambda: (list(live(feed)(LATE)), live(login)("me", LATE)))
    data = file.read_bytes()
    assert not holds(data, LATE.encode())
    chunks = [json.loads(line)["value"] for line in data.splitlines() if b"call/chunk" in line]
    assert "".join(map(text, chunks)) == "begin ⟦redacted:password:1⟧ end"
    assert len(replay(file, lambda: (list(dead(feed)(LATE)), dead(login)("me", LATE)))[0]) == len(chunks)


def test_nothing_is_written_anew_where_nothing_was_learned_late(file):
    class Counting(tc.MemoryStore):
        rewrites = 0

        def create(self, *args: Any, **options: Any) -> Any:
            spool = super().create(*args, **options)
            rewrite = spool.rewrite

            def counted(lines: Any) -> None:
                self.rewrites += 1
                rewrite(lines)

            spool.rewrite = counted  # type: ignore[method-assign]
            return spool

    store = Counting()
    record(Path("a"), lambda: (live(login)("me", LATE), live(look)(LATE)), store=store)
    assert store.rewrites == 0
    record(Path("b"), lambda: (live(look)(LATE), live(login)("me", LATE)), store=store)
    assert store.rewrites == 1


def test_what_a_replay_could_not_hand_out_any_more_is_not_published(file):
    """The first result fits its annotation, and would not without what the last call tells to be a secret."""

    def choose(q: str) -> Literal["zK4mQ9xW2pT7vB5nR8"]:
        return q  # type: ignore[return-value]

    def program(make: Any) -> None:
        make(choose)(LATE)
        make(login)("me", LATE)

    with pytest.raises(tc.RedactionError, match=r"redaction_breaks_contract.*stand_in=") as caught:
        record(file, lambda: program(live))
    assert (caught.value.tool, caught.value.rule, caught.value.json_path) == ("choose", "password", "$")
    assert not file.exists()
