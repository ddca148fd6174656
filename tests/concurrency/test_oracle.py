"""``Order`` says what the specification says: for any cassette, at any moment of any replay."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.concurrency import oracle
from tests.concurrency.helpers import FULL, write
from toolcassette.engine import Call
from toolcassette.engine.order import Order
from toolcassette.format import parse_cassette

PATHS = ((), ("a",), ("b",), ("a", "x"), ("a", "y"), ("b", "x", "z"))
EXAMPLES = settings(max_examples=600 if FULL else 60, deadline=None)


@st.composite
def cassettes(draw: st.DrawFn) -> bytes:
    """Up to nine calls that overlap in any way, some of them streams, many alike."""
    count = draw(st.integers(1, 9))
    chunks = [draw(st.sampled_from([None, None, 1, 2])) for _ in range(count)]
    tokens = draw(st.permutations([n for n in range(count) for _ in range(2 + (chunks[n] or 0))]))
    events: list[tuple[str, int, Any]] = []
    seen: list[int] = []
    for at, token in enumerate(tokens):
        if token not in seen:
            seen.append(token)
            path = draw(st.sampled_from(PATHS))
            args = b'{"x":%d}' % draw(st.integers(0, 2))
            events.append(("start", seen.index(token), (path, "t", args)))
        elif token in tokens[at + 1 :]:
            events.append(("chunk", seen.index(token), tokens[:at].count(token) - 1))
        else:
            events.append(("end", seen.index(token), chunks[token]))
    return write(events)


def calls_of(data: bytes) -> list[oracle.Seen]:
    return oracle.calls_of([json.loads(line) for line in data.splitlines()])


def asked(call: oracle.Seen, args: bytes) -> Call:
    return Call(call.tool, args, path=call.path)


@pytest.mark.parametrize("policy", ["any", "causal", "strict"])
@given(data=cassettes(), order_of_starts=st.randoms(use_true_random=False))
@EXAMPLES
def test_who_may_begin_and_with_which_record(policy: str, data: bytes, order_of_starts: Any) -> None:
    calls, cassette = calls_of(data), parse_cassette(data)
    order = Order(cassette, policy)
    consumed: set[int] = set()
    while len(consumed) < len(calls):
        for j, call in enumerate(calls):
            found = order.candidate(asked(call, cassette.place(j)[1]))
            assert found == oracle.next_record(calls, consumed, policy, (call.path, call.tool, call.args))
            if found is not None:
                wanted = policy == "any" or oracle.may_begin(calls, consumed, found)
                assert (order.waits_for(found, call.path) is None) == wanted
        left = [j for j in range(len(calls)) if j not in consumed]
        free = [j for j in left if policy == "any" or order.waits_for(j, calls[j].path) is None]
        assert free  # the first one that is left can always begin
        taken = order_of_starts.choice(free)
        order.consume(taken, calls[taken].path)
        consumed.add(taken)
        assert set(range(len(calls))) - consumed == {n for n in range(len(calls)) if not order.consumed[n]}


@given(data=cassettes(), chance=st.randoms(use_true_random=False))
@EXAMPLES
def test_whose_outcome_may_go_out(data: bytes, chance: Any) -> None:
    calls = calls_of(data)
    order = Order(parse_cassette(data), "any")
    consumed: set[int] = set()
    handed: set[int] = set()
    held: set[int] = set()  # who asked, and had to wait
    items: dict[int, int] = {}
    while len(handed) < len(calls):
        for j in consumed - handed:
            free = oracle.may_end(calls, consumed, handed, items, j) and not oracle.held_before(calls, held, j)
            assert (order.held_by(j, calls[j].path) is None) == free
            if not free:
                held.add(j)
        number = chance.choice([n for n in range(len(calls)) if n not in handed])
        if number not in consumed:
            order.consume(number, calls[number].path)
            consumed.add(number)
        elif items.get(number, 0) < len(calls[number].chunks):
            order.hand_out_item(number)
            items[number] = items.get(number, 0) + 1
        else:
            order.hand_out(number)
            handed.add(number)
            held.discard(number)


@given(data=cassettes())
@EXAMPLES
def test_a_program_that_repeats_its_trace_is_never_held(data: bytes) -> None:
    """By the frames alone: whoever does what was done, in the order in which it was done, waits for nothing."""
    calls, cassette = calls_of(data), parse_cassette(data)
    orders = [Order(cassette, policy) for policy in ("any", "causal", "strict")]
    for frame in (json.loads(line) for line in data.splitlines()):
        for order in orders:
            if frame["kind"] == "call/start":
                path = calls[frame["call"]].path
                assert order.waits_for(frame["call"], path) is None
                order.consume(frame["call"], path)
            elif frame["kind"] == "call/chunk":
                order.hand_out_item(frame["call"])
            elif frame["kind"] == "call/result":
                assert order.held_by(frame["call"], calls[frame["call"]].path) is None
                order.hand_out(frame["call"])


def test_the_oracle_knows_the_plain_cases() -> None:
    """Two sub-agents at once; then a third one; and a call before, between and after."""
    a, b, c = ("a",), ("b",), ("c",)
    spans = [((), 1, 2), (a, 3, 4), (b, 5, 6), (a, 7, 8), ((), 9, 10), (c, 11, 12), ((), 13, 14)]
    calls = [oracle.Seen(path, "t", "", start, end, ()) for path, start, end in spans]
    table = {(i, j) for i in range(7) for j in range(7) if oracle.precedes(calls, i, j)}
    every = {(i, j) for i in range(7) for j in range(i + 1, 7)}
    assert every - table == {(1, 2), (2, 3)}  # b ran while a did
