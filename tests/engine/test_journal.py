"""When the program may go on: one sync covers what came before it, and the first error sticks."""

from __future__ import annotations

import threading

import pytest

from tests.engine.doubles import NAME, WatchedStore
from toolcassette.engine import SYNC_POLICIES
from toolcassette.engine.journal import Journal
from toolcassette.errors import StoreError

KINDS = ("header", "call/start", "call/chunk", "call/result")
WAITS = {  # policy -> for which of KINDS somebody waits
    "frame": (False, True, True, True),
    "call": (False, False, True, True),
    "close": (False, False, False, False),
    "none": (False, False, False, False),
}


def journal_of(store: WatchedStore, sync: str = "frame") -> Journal:
    return Journal(store.create(NAME, cassette_id="0" * 32), sync)


@pytest.mark.parametrize("policy", SYNC_POLICIES)
def test_what_each_policy_waits_for(store, policy):
    journal = journal_of(store, policy)
    positions = [journal.append(b"%d\n" % n, kind) for n, kind in enumerate(KINDS)]
    assert tuple(position > 0 for position in positions) == WAITS[policy]
    assert store.syncs == 0


def test_one_sync_covers_all_that_was_appended_before_it(store):
    journal = journal_of(store)
    positions = [journal.append(b"x\n", "call/start") for _ in range(5)]
    journal.settle(positions[2])
    assert all(journal.is_durable(position) for position in positions)
    for position in positions:
        journal.settle(position)
    assert store.syncs == 1


def test_an_append_during_a_sync_is_not_covered_by_it(store):
    journal = journal_of(store)
    late: list[int] = []
    spool = journal._spool
    real = spool.sync

    def sync() -> None:
        if not late:
            late.append(journal.append(b"late\n", "call/start"))
        real()

    spool.sync = sync  # type: ignore[method-assign]  # the double's own attribute
    journal.settle(journal.append(b"early\n", "call/start"))
    assert not journal.is_durable(late[0])
    journal.settle(late[0])
    assert store.syncs == 2


def test_threads_share_syncs(store):
    store.sync_seconds = 0.02
    journal = journal_of(store)
    lock, together = threading.Lock(), threading.Barrier(8)

    def work() -> None:
        together.wait()
        with lock:
            position = journal.append(b"x\n", "call/start")
        journal.settle(position)
        assert journal.is_durable(position)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= store.syncs <= 4


def test_the_worker_wakes_everybody_also_after_a_failure(store):
    journal = journal_of(store)
    store.fail_sync = True
    position = journal.append(b"x\n", "call/start")
    woken = [threading.Event() for _ in range(3)]
    for event in woken:
        journal.request(position, event.set)
    assert all(event.wait(5) for event in woken)
    assert not journal.is_durable(position)
    with pytest.raises(StoreError):
        journal.settle(position)
    journal.stop()


def test_a_request_after_the_end_does_not_wait_for_ever(store):
    journal = journal_of(store)
    position = journal.append(b"x\n", "call/start")
    journal.stop()
    woken = threading.Event()
    journal.request(position, woken.set)
    assert woken.is_set()


def test_finish_lets_go_whoever_still_waits_and_costs_nothing_else(store):
    journal = journal_of(store)
    position = journal.append(b"x\n", "call/start")
    journal.finish()
    assert journal.is_durable(position)
    journal.finish()
    assert store.syncs == 1


def test_finish_makes_no_sync_where_nobody_waits(store):
    journal = journal_of(store, "close")
    journal.append(b"x\n", "call/start")
    journal.finish()
    assert store.syncs == 0


def test_the_worker_ends(store):
    journal = journal_of(store)
    woken = threading.Event()
    journal.request(journal.append(b"x\n", "call/start"), woken.set)
    assert woken.wait(5)
    workers = [thread for thread in threading.enumerate() if thread.name == "toolcassette-sync"]
    assert workers
    journal.stop()
    for worker in workers:
        worker.join(5)
    assert not any(worker.is_alive() for worker in workers)
