"""The grammar against another description of the same language, over every word of up to six frames."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING

import pytest
from msgspec import UNSET

from tests.format.vector_language import LINES
from toolcassette.errors import FormatError
from toolcassette.format import (
    CALLS_MAX,
    CallChunk,
    CallResult,
    CallStart,
    Complete,
    Frame,
    Grammar,
    Header,
    decode_frame,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import UnsetType

WORD_FRAMES_MAX = 6
HEADER = decode_frame(LINES[0], Header)


def start(call: int) -> CallStart:
    return CallStart(seq=0, call=call, boundary="tool", path=[], tool="t", at=0)


def chunk(call: int, number: int) -> CallChunk:
    return CallChunk(seq=0, call=call, chunk=number, at=0)


def result(call: int, chunks: int | UnsetType = UNSET) -> CallResult:
    return CallResult(seq=0, call=call, outcome="ok", chunks=chunks, at=0)


def complete(word: str) -> Complete:
    """A last frame whose counts are those of the word before it, whatever that is."""
    calls, ok = word.count("a") + word.count("b"), sum(word.count(s) for s in "rsR")
    return Complete(seq=0, calls=calls, frames=len(word) + 1, ok=ok, error=0, cancelled=0, left_early=0, rejected=0)


SYMBOLS: dict[str, Callable[[str], Frame]] = {
    "h": lambda _: HEADER,
    "a": lambda _: start(0),
    "b": lambda _: start(1),
    "c": lambda _: chunk(0, 0),
    "r": lambda _: result(0),
    "s": lambda _: result(0, 1),
    "R": lambda _: result(1),
    "e": complete,
}

# Each call by itself, and how the two meet: an oracle that knows no state.
_FIRST = re.compile(r"(a(c?|r|cs))?")
_SECOND = re.compile(r"(bR?)?")
_WHOLE = re.compile(r"h[abcrsR]*e?")
_ENDED = re.compile(r"(a(r|cs))?\|(bR)?")


def allowed(word: str) -> bool:
    """Whether a word is the beginning of a cassette."""
    first, second = (re.sub(f"[^{letters}]", "", word) for letters in ("acrs", "bR"))
    return (
        (not word or _WHOLE.fullmatch(word) is not None)
        and _FIRST.fullmatch(first) is not None
        and _SECOND.fullmatch(second) is not None
        and ("b" not in word or "a" in word[: word.index("b")])
        and ("e" not in word or _ENDED.fullmatch(f"{first}|{second}") is not None)
    )


def snapshot(grammar: Grammar) -> tuple[object, ...]:
    calls = [grammar.call_state(n) for n in range(3)]
    return (
        grammar.state,
        grammar.frames,
        grammar.calls,
        grammar.open_calls,
        {**grammar.outcomes},
        calls,
        grammar._progress,
    )


def stepped(grammar: Grammar, frame: Frame) -> Grammar | None:
    """A copy one step on, or None where the step is illegal, which must have changed nothing."""
    after = copy.deepcopy(grammar)
    try:
        after.step(frame)
    except FormatError:
        assert snapshot(after) == snapshot(grammar)
        return None
    return after


def test_every_word_of_up_to_six_frames() -> None:
    words = 0
    accepted = 0

    def walk(word: str, grammar: Grammar | None) -> None:
        """``grammar`` has taken the whole word, or is None where the word was refused."""
        nonlocal words, accepted
        words += 1
        accepted += grammar is not None
        assert allowed(word) is (grammar is not None), word
        if len(word) < WORD_FRAMES_MAX:
            for symbol, make in SYMBOLS.items():
                walk(word + symbol, None if grammar is None else stepped(grammar, make(word)))

    walk("", Grammar())
    assert words == sum(len(SYMBOLS) ** n for n in range(WORD_FRAMES_MAX + 1)) == 299_593
    assert accepted == 33


@pytest.mark.parametrize(
    ("word", "frame", "reason"),
    [
        ("", start(0), "header_missing"),
        ("h", HEADER, "header_repeated"),
        ("h", start(1), "call_number"),
        ("ha", start(0), "call_number"),
        ("har", start(0), "call_number"),
        ("ha", start(2), "call_number"),
        ("h", chunk(0, 0), "call_unknown"),
        ("h", result(0), "call_unknown"),
        ("ha", result(1), "call_unknown"),
        ("ha", result(2**53 - 1), "call_unknown"),
        ("har", result(0), "call_ended"),
        ("har", chunk(0, 0), "call_ended"),
        ("hacs", chunk(0, 1), "call_ended"),
        ("ha", chunk(0, 1), "chunk_number"),
        ("hac", chunk(0, 0), "chunk_number"),
        ("hac", chunk(0, 2), "chunk_number"),
        ("ha", result(0, 1), "chunk_count"),
        ("hac", result(0), "chunk_count"),
        ("hac", result(0, 0), "chunk_count"),
        ("hac", result(0, 2), "chunk_count"),
        ("ha", complete("ha"), "call_open"),
        ("hab", complete("hab"), "call_open"),
        ("h", complete("ha"), "counts"),
        ("har", complete("hr"), "counts"),
        ("har", complete("harh"), "counts"),
        ("he", HEADER, "after_complete"),
        ("he", start(0), "after_complete"),
        ("he", complete("he"), "after_complete"),
    ],
)
def test_each_refusal_has_its_reason_and_changes_nothing(word: str, frame: Frame, reason: str) -> None:
    grammar = Grammar()
    for number, symbol in enumerate(word):
        grammar.step(SYMBOLS[symbol](word[:number]))
    before = snapshot(copy.deepcopy(grammar))
    with pytest.raises(FormatError) as caught:
        grammar.step(frame)
    assert (caught.value.reason, caught.value.frame) == (reason, len(word))
    assert snapshot(grammar) == before


def test_a_stream_of_no_items_is_ended_by_a_result_that_says_so() -> None:
    for chunks in (0, UNSET):
        grammar = Grammar()
        for frame in (HEADER, start(0), result(0, chunks)):
            grammar.step(frame)
        assert grammar.call_state(0) == "ended"


@pytest.mark.parametrize("outcome", ["ok", "error", "cancelled", "left_early"])
def test_outcomes_are_counted_each_for_itself(outcome: str) -> None:
    names = ("ok", "error", "cancelled", "left_early")
    for counted in names:
        grammar = Grammar()
        for frame in (HEADER, start(0), CallResult(seq=0, call=0, outcome=outcome, chunks=0, at=0)):  # type: ignore[arg-type]  # one of the four
            grammar.step(frame)
        ok, error, cancelled, left_early = (int(name == counted) for name in names)
        last = Complete(
            seq=0, calls=1, frames=4, ok=ok, error=error, cancelled=cancelled, left_early=left_early, rejected=9
        )
        if counted == outcome:
            grammar.step(last)
            assert grammar.state == "done"
        else:
            with pytest.raises(FormatError, match="counts"):
                grammar.step(last)


def test_calls_are_limited() -> None:
    assert CALLS_MAX == 1_000_000
    grammar = Grammar(calls_max=2)
    for frame in (HEADER, start(0), start(1)):
        grammar.step(frame)
    with pytest.raises(FormatError, match="too_many_calls"):
        grammar.step(start(2))
    assert grammar.calls == 2
