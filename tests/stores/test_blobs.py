"""Stores that are made of get, put and delete; those that begin with bytes; and those that are only read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import toolcassette as tc
from tests.stores.conftest import CASSETTE_ID
from tests.stores.sqlite_store import SqliteStore
from toolcassette.stores import PARTIAL_SUFFIX

HERE = Path(__file__).parent


@tc.cassette_tool
def double(n: int) -> int:
    return 2 * n


def recorded(store, name="x"):
    with tc.record(name, ["double"], store=store):
        double(2)


@pytest.fixture
def sqlite(tmp_path):
    stores = []

    def connect():
        stores.append(SqliteStore(tmp_path / "cassettes.db"))
        return stores[-1]

    yield connect
    for store in stores:
        store._db.close()


def test_the_store_of_the_readme_is_the_one_that_is_tested():
    readme = (HERE.parents[1] / "README.md").read_text("utf-8")
    text = (HERE / "sqlite_store.py").read_text("utf-8")
    assert f"```python\n{text}```" in readme
    assert len(text.splitlines()) <= 28


@pytest.mark.parametrize("sync", ["frame", "call", "close", "none"])
def test_a_database_records_and_replays(sqlite, sync):
    with tc.record("x", ["double"], store=sqlite(), sync=sync):
        assert double(2) == 4
    with tc.replay("x", store=sqlite()):
        assert double(2) == 4
    assert tc.verify("x", store=sqlite()).ok


def test_two_processes_share_a_database_and_one_of_them_gets_the_name(sqlite):
    """Two connections are as good as two processes: all that they share is the database."""
    one, two = sqlite(), sqlite()
    spool = one.create("x", cassette_id=CASSETTE_ID)
    with pytest.raises(tc.CassetteExists) as caught:
        two.create("x", cassette_id=CASSETTE_ID)
    assert caught.value.what == "stale_partial"  # whether its writer lives is not known here
    spool.append(b"mine\n")
    spool.publish()
    with pytest.raises(tc.CassetteExists) as caught:
        two.create("x", cassette_id=CASSETTE_ID)
    assert caught.value.what == "cassette"


def test_a_partial_that_another_process_took_is_not_written_over(sqlite):
    one, two = sqlite(), sqlite()
    spool = one.create("x", cassette_id=CASSETTE_ID)
    spool.append(b"mine\n")
    spool.sync()
    other = two.create("x", cassette_id=CASSETTE_ID, set_aside=True)
    other.append(b"theirs\n")
    other.sync()
    spool.append(b"more\n")
    for act in (spool.sync, spool.publish):
        with pytest.raises(tc.StoreError):
            act()
    spool.keep()
    other.publish()
    assert two.get("x") == b"theirs\n"


class Broken(tc.BlobStore):
    """A place that fails; its message would tell a path."""

    def get(self, name):
        raise KeyError("/secret/path")

    def put(self, name, data, old):
        raise KeyError("/secret/path")

    def delete(self, name, old):
        raise KeyError("/secret/path")


def test_what_a_place_raises_becomes_an_error_of_ours():
    store = Broken()
    for act in (lambda: store.create("x", cassette_id=CASSETTE_ID), lambda: store.adopt("x")):
        with pytest.raises(tc.StoreError) as caught:
            act()
        assert "secret" not in str(caught.value)
    with pytest.raises(tc.FormatError) as unread:
        store.open("x")
    assert unread.value.reason == "unreadable"
    assert not store.has_partial("x")
    assert tc.verify("x", store=store).state == "unreadable"


def test_a_place_that_fails_on_the_way_fails_the_recording(sqlite):
    store = sqlite()
    with pytest.raises(tc.StoreError), tc.record("x", ["double"], store=store):
        store._db.close()
        double(2)


# -- read-only and seeded --------------------------------------------------------------------------------------------


def test_a_read_only_store_replays_and_refuses_the_rest():
    inner = tc.MemoryStore()
    recorded(inner)
    store = tc.ReadOnlyStore(inner)
    with tc.replay("x", store=store):
        double(2)
    assert tc.verify("x", store=store).ok
    assert not store.has_partial("x")
    for options in ({}, {"replace": True}):
        with (
            pytest.raises(tc.StoreError, match="this store is read-only"),
            tc.record("x", ["a"], store=store, **options),
        ):
            pass
    with pytest.raises(tc.StoreError, match="this store is read-only"):
        store.adopt("x")


def test_a_store_that_is_seeded_with_bytes():
    inner = tc.MemoryStore()
    recorded(inner)
    with inner.open("x") as source:
        data = b"".join(source.blocks())
    store = tc.MemoryStore({"a/x": data, "y" + PARTIAL_SUFFIX: data[:-5]})
    with tc.replay("a/x", store=store):
        double(2)
    assert store.has_partial("y")
    with store.open("y" + PARTIAL_SUFFIX) as source:
        assert (source.partial, source.live) == (True, False)
    with pytest.raises(tc.CassetteExists):
        recorded(store, "a/x")
    recorded(store, "z")
    with pytest.raises(ValueError, match="name of a cassette"):
        tc.MemoryStore({"": b""})


QUIET = """
import sys
import toolcassette as tc

@tc.cassette_tool
def double(n: int) -> int:
    raise AssertionError("a body ran")

store = tc.MemoryStore({"x": sys.stdin.buffer.read()})

def replay():
    with tc.replay("x", store=store):
        return double(2)

replay()  # imports what is imported when it is used
seen = []
sys.addaudithook(lambda event, args: seen.append(event))
answer = replay()
done = [e for e in seen if e == "open" or e.startswith(("socket.", "os.", "subprocess.", "_thread.start"))]
print(answer, done)
"""


def test_a_replay_from_memory_opens_no_file_thread_or_socket():
    inner = tc.MemoryStore()
    recorded(inner)
    with inner.open("x") as source:
        data = b"".join(source.blocks())
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "src")}
    done = subprocess.run([sys.executable, "-c", QUIET], input=data, capture_output=True, env=environment, check=True)
    assert done.stdout == b"4 []\n"
