"""Calls that never reach us: a framework refused them, or something outside answered in our place."""

from __future__ import annotations

import pytest

import toolcassette as tc


def add(a: int) -> int:
    return a + 1


add = tc.Registry().wrap(add, name="add")


def run(session, *, rejects=0):
    add(1)
    for _ in range(rejects):
        session.rejected("add")


@pytest.mark.parametrize("rejects", [0, 1, 3])
def test_rejections_are_counted_and_are_the_same_again(file, rejects):
    with tc.record(file, ["add"]) as session:
        run(session, rejects=rejects)
        session.rejected("other")  # is not selected
    assert tc.inspect(file).rejected == rejects
    with tc.replay(file) as session:
        run(session, rejects=rejects)


@pytest.mark.parametrize(("recorded", "now", "tool"), [(0, 1, "add"), (1, 0, "(any)"), (2, 3, "add")])
def test_another_number_of_rejections_fails_the_session(file, recorded, now, tool):
    with tc.record(file, ["add"]) as session:
        run(session, rejects=recorded)
    with pytest.raises(tc.CassetteMismatch) as caught, tc.replay(file) as session:
        run(session, rejects=now)
    assert (caught.value.reason, caught.value.tool) == ("rejected_differs", tool)
    assert f"{now} rejected, {recorded} when recorded" in str(caught.value)


def test_fewer_rejections_may_be_left_over_where_calls_may(file):
    with tc.record(file, ["add"]) as session:
        run(session, rejects=2)
    with tc.replay(file, allow_unconsumed=True) as session:
        run(session, rejects=1)
    with pytest.raises(tc.CassetteMismatch), tc.replay(file, allow_unconsumed=True) as session:
        run(session, rejects=3)


def test_a_run_whose_calls_are_all_rejected_is_a_cassette(file):
    with tc.record(file, ["add"]) as session:
        session.rejected("add")
    assert tc.verify(file).ok
    with tc.replay(file) as session:
        session.rejected("add")


def test_a_bypass_keeps_the_partial(file):
    with pytest.raises(tc.NotPublished) as caught, tc.record(file, ["add"]) as session:
        add(1)
        session.bypassed("other")
        session.bypassed("add")
        assert add(2) == 3, "the run goes on undisturbed"
    assert caught.value.reason == "bypassed"
    assert not file.exists()


def test_a_bypass_poisons_a_replay(file):
    with tc.record(file, ["add"]) as session:
        run(session)
    with pytest.raises(tc.CassetteMismatch) as caught, tc.replay(file) as session:
        session.bypassed("other")
        with pytest.raises(tc.CassetteMismatch):
            session.bypassed("add")
        with pytest.raises(tc.CassettePoisoned):
            add(1)
    assert (caught.value.reason, caught.value.tool, caught.value.ordinal) == ("bypassed", "add", 0)


def test_a_session_that_is_over_takes_no_more(file):
    with tc.record(file, ["add"]) as session:
        run(session)
    for note in (session.rejected, session.bypassed):
        with pytest.raises(tc.SessionClosed):
            note("add")


def test_a_live_session_has_nothing_to_note():
    with tc.session("live") as session:
        session.rejected("add")
        session.bypassed("add")
