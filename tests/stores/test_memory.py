"""What is the memory store's own: a forked child must not wait for a lock that nobody will give back."""

from __future__ import annotations

from tests.stores.conftest import CASSETTE_ID
from toolcassette.stores import MemoryStore


def test_forget_takes_no_lock():
    store = MemoryStore()
    spool = store.create("x", cassette_id=CASSETTE_ID)
    with store._lock:  # as in a child that was forked while another thread was inside
        spool.forget()
    with store.open("x.partial") as source:
        assert source.live  # nothing was touched


def test_two_stores_share_nothing():
    one, two = MemoryStore(), MemoryStore()
    one.create("x", cassette_id=CASSETTE_ID).publish()
    assert not two.has_partial("x")
    two.create("x", cassette_id=CASSETTE_ID).publish()
