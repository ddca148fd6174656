"""Through the front door: live == recorded and returned == replayed, in type and value, here and in other processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolcassette as tc
from tests.contracts import corpus
from tests.contracts.test_properties import PAIRINGS, UNTYPED
from toolcassette.contracts import same

ROOT = Path(__file__).resolve().parents[2]


def through(annotation: Any, value: Any) -> tuple[Any, Any]:
    """What a tool that is given and returns ``value`` hands out, recorded and replayed."""
    bodies: list[int] = []

    def give(value: Any, *, more: Any = None) -> Any:
        bodies.append(1)
        return value

    tool = tc.Registry().wrap(give, returns=annotation)
    store = tc.MemoryStore()
    with tc.record("x", ["give"], store=store, sync="none"):
        live = tool(value, more=[value])
    with tc.replay("x", store=store):
        again = tool(value, more=[value])
    assert len(bodies) == 1
    return live, again


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_every_type_as_argument_and_as_result(data):
    annotation, values = data.draw(PAIRINGS, label="annotation")
    value = data.draw(values, label="value")
    live, again = through(annotation, value)
    assert same(live, value) is None
    assert same(again, value) is None


@settings(deadline=None, max_examples=40)
@given(UNTYPED)
def test_every_builtin_type_without_an_annotation(value):
    live, again = through(Any, value)
    assert same(live, value) is None
    assert same(again, value) is None


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_two_calls_are_one_only_if_their_arguments_are_the_same(data):
    pairing = data.draw(PAIRINGS)
    one = data.draw(pairing[1])
    other = data.draw(pairing[1] | data.draw(PAIRINGS)[1])
    tool = tc.Registry().wrap(lambda value: None, name="t", returns=Any)
    store = tc.MemoryStore()
    with tc.record("x", ["t"], store=store, sync="none"):
        tool(one)
    try:
        with tc.replay("x", store=store):
            tool(other)
    except tc.CassetteMismatch:
        assert same(one, other) is not None
    else:  # key order and the order of sets never count; every type, number and character does
        assert sorted(repr(one)) == sorted(repr(other))


def test_the_program_of_the_corpus_comes_back_whole():
    store = tc.MemoryStore()
    with tc.record("x", ["*"], store=store, sync="none"):
        live = corpus.program(run=True)
    with tc.replay("x", store=store):
        again = corpus.program(run=False)
    assert same(again, live) is None
    assert same(live[: len(corpus.VALUES)], [value for _, value in corpus.VALUES]) is None


def test_the_committed_cassette_replays_on_this_python():
    assert tc.verify(corpus.FILE, deep=True).ok
    with tc.replay(corpus.FILE):
        found = corpus.program(run=False)
    values = len(corpus.VALUES)
    assert same(found[:values], [value for _, value in corpus.VALUES]) is None
    assert same(found[values:], [corpus.shown(error) for error in corpus.failures()]) is None


PROGRAM = """
import sys
import toolcassette as tc
from tests.contracts import corpus
with (tc.record if sys.argv[1] == "record" else tc.replay)(sys.argv[2], ["*"]):
    corpus.program(run=sys.argv[1] == "record")
"""


def in_process(seed: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_row_37_no_hash_seed_shows(tmp_path):
    file = tmp_path / "a.cassette.jsonl"
    assert in_process(1, "record", file).returncode == 0
    for seed in (2, 3):
        done = in_process(seed, "replay", file)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("value", [corpus.VALUES[3][1], corpus.VALUES[21][1]])
def test_row_38_nothing_is_shared_between_the_body_the_caller_and_the_cassette(value):
    annotation = Any if value is corpus.VALUES[3][1] else corpus.VALUES[21][0]
    tool = tc.Registry().wrap(lambda: value, name="t", returns=annotation)
    store = tc.MemoryStore()
    with tc.record("x", ["t"], store=store, sync="none"):
        first, second = tool(), tool()
        first.append(1)
        assert same(second, value) is None
    with tc.replay("x", store=store):
        one = tool()
        one.clear()
        assert same(tool(), value) is None
