"""Many lines at once say what the same lines say one by one: of whole cassettes, of every vector, and of damage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.format.vector_language import BASE, WHOLE, edited, seal
from tests.strategies import recorded_calls
from toolcassette.format import Cutter, Finding, Reader, RecordedCall, runs, survey, write_cassette
from toolcassette.format.index import CassetteIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

VECTORS = sorted((Path(__file__).resolve().parents[2] / "schemas" / "v1" / "vectors").glob("*.jsonl*"))
WRITTEN = {"cassette": "0" * 32, "created": "2026-01-02T03:04:05.678901Z", "producer": "tests"}
SMALL = RecordedCall("t", b"{}", value=b"1")


def state(reader: Reader, finding: Finding | None) -> tuple[object, ...]:
    """All that a reader has to say."""
    seen = reader.grammar
    return (
        finding,
        reader.head,
        reader.header,
        reader.complete,
        (seen.frames, seen.calls, seen.open_calls, seen.outcomes, seen.state),
    )


def one_by_one(data: bytes, *, deep: bool = False, limit: int = 1 << 26, partial: bool = False) -> tuple[object, ...]:
    """A reader with an index of single frames takes no surveys."""
    reader = Reader(index=lambda _frame, _offset, _length: None, deep=deep, line_bytes_max=limit).feed_all([data])
    return state(reader, reader.finish(partial=partial))


def at_once(
    blocks: Iterable[bytes], *, deep: bool = False, limit: int = 1 << 26, partial: bool = False
) -> tuple[object, ...]:
    reader = Reader(deep=deep, line_bytes_max=limit).feed_all(blocks)
    return state(reader, reader.finish(partial=partial))


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


@pytest.fixture(params=["small", "large"])
def lines_are(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once as they are, and once with every line that spans blocks taken for a large one, in the smallest pieces."""
    if request.param == "large":
        monkeypatch.setattr(runs, "LARGE_LINE_BYTES", 1)
        monkeypatch.setattr(runs, "_PIECE_BYTES", 1)
        monkeypatch.setattr(runs, "_HEAD_BYTES", 100)


@pytest.mark.usefixtures("lines_are")
def test_every_vector() -> None:
    assert len(VECTORS) > 100
    for file in VECTORS:
        data = file.read_bytes()
        for deep in (False, True):
            wanted = one_by_one(data, deep=deep)
            for size in (170, 1000, 1 << 20):
                assert at_once(cut(data, size), deep=deep) == wanted, (file.name, deep, size)


def damaged(data: st.DataObject, whole: bytes) -> bytes:
    """The cassette with a few faults of any kind: bytes, lines, meanings with right hashes."""
    lines = whole.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(lines) - 1))
        kind = data.draw(st.sampled_from(["flip", "drop", "double", "swap", "edit", "cut"]))
        if kind == "flip" and lines[at]:
            place = data.draw(st.integers(0, len(lines[at]) - 1))
            changed = bytearray(lines[at])
            changed[place] ^= 1 << data.draw(st.integers(0, 7))
            lines[at] = bytes(changed)
        elif kind == "cut":
            lines[at] = lines[at][: data.draw(st.integers(0, len(lines[at])))]
        elif kind == "drop" and len(lines) > 1:
            del lines[at]
        elif kind == "double":
            lines.insert(at, lines[at])
        elif kind == "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == "edit" and all(len(line) > 150 for line in lines):
            old, new = data.draw(
                st.sampled_from(
                    [
                        (b'"call":0', b'"call":1'),
                        (b'"seq":2', b'"seq":3'),
                        (b'"ok"', b'"error"'),
                        (b'"path":[]', b'"path":["t"]'),
                        (b'"value"', b'"meta"'),
                        (b'"chunk":1', b'"chunk":2'),
                        (b'"calls":', b'"calls":1'),
                        (b"{}", b"{ }"),
                    ]
                )
            )
            bodies = [line[:-150].replace(old, new).decode("utf-8", "surrogateescape") for line in lines]
            lines = seal(*bodies).splitlines(keepends=True) if bodies == [b for b in bodies if b.isascii()] else lines
    return b"".join(lines)


@pytest.mark.usefixtures("lines_are")
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.lists(recorded_calls(), max_size=4), st.sampled_from([150, 301, 5000]), st.booleans())
def test_whatever_happened_to_a_cassette(data: st.DataObject, calls: list[RecordedCall], size: int, deep: bool) -> None:
    whole = data.draw(st.sampled_from([WHOLE, write_cassette(calls, **WRITTEN)]))
    bad = damaged(data, whole)
    partial = data.draw(st.booleans())
    limit = data.draw(st.sampled_from([1 << 26, 400]))
    wanted = one_by_one(bad, deep=deep, limit=limit, partial=partial)
    assert at_once(cut(bad, size), deep=deep, limit=limit, partial=partial) == wanted
    assert at_once([bad], deep=deep, limit=limit, partial=partial) == wanted


def test_a_whole_cassette_is_surveyed_and_not_read_one_by_one() -> None:
    calls = [SMALL, SMALL._replace(path=("a", "b:1#2")), SMALL._replace(chunks=(b"1", b"2"), value=None)]
    whole = write_cassette(
        [*calls, SMALL._replace(tool="\u00e9", outcome="error", value=None, error=_error())], **WRITTEN
    )
    for deep in (False, True):
        surveys = [survey(run, deep=deep) for run in Cutter().cut(whole)]
        assert all(found is not None for found in surveys)
        assert sum(len(found.lengths) for found in surveys if found) == whole.count(b"\n")


def _error() -> bytes:
    return b'{"type":"builtins.ValueError","message":"m"}'


def test_a_run_is_not_surveyed_where_anything_is_wrong() -> None:
    bad = {
        "hash": WHOLE.replace(b'"z":1', b'"z":2'),
        "link": b"".join(WHOLE.splitlines(keepends=True)[::2]),
        "seq": edited(2, '"seq":2', '"seq":3'),
        "head": edited(1, '"tool":"weather"', '"tool":""'),
        "short": b"{}\n" + WHOLE,
        "bytes": b"\xff" * 400 + b"\n",
    }
    for name, data in bad.items():
        assert [survey(run) for run in Cutter().cut(data)] == [None], name
    spelled = edited(6, '"z":1', '"z": 1')
    assert [survey(run) is None for run in Cutter().cut(spelled)] == [False]
    assert [survey(run, deep=True) for run in Cutter().cut(spelled)] == [None]


def indexed(blocks: Iterable[bytes], *, calls_max: int = 100) -> tuple[object, ...]:
    """All that a reader has to say, and of a whole cassette all that an index keeps."""
    index = CassetteIndex()
    reader = Reader(runs=index, calls_max=calls_max).feed_all(blocks)
    finding = reader.finish()
    if finding is not None:
        return state(reader, finding)
    names = [index.naming(call) for call in range(len(index.starts))]
    spans = [(list(each.offsets), list(each.lengths)) for each in (index.starts, index.ends)]
    paths = {path: list(calls) for path, calls in index.paths.items()}
    return state(reader, finding), names, spans, paths


@pytest.mark.parametrize("calls_max", [100, 7])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ('"call":5', '"call":6'),
        ('result","call":7', 'result","call":6'),
        ('result","call":6,"outcome":"ok"', 'result","call":6,"outcome":"error"'),
        (
            'start","call":7,"boundary":"tool","path":[],"tool":"t","at":0,"args":{}',
            'result","call":6,"outcome":"ok","at":0,"value":1',
        ),
        ('"call":8,"boundary":"tool","path":[]', '"call":8,"boundary":"tool","path":["s"]'),
        ('"call":8,"boundary":"tool","path":[]', '"call":8,"boundary":"tool","path":["t:0123456789abcdef#0"]'),
    ],
)
def test_calls_in_turn_are_taken_as_any_others(old: str, new: str, calls_max: int) -> None:
    calls = [SMALL._replace(tool="tu"[number % 3 == 2], value=b"1" * number or b"0") for number in range(12)]
    lines = write_cassette(calls, **WRITTEN).decode().splitlines()
    whole = seal(*[line[:-149].replace(old, new) for line in lines])
    header, rest = whole.split(b"\n", 1)
    wanted = indexed(line + b"\n" for line in whole.split(b"\n")[:-1])
    assert indexed([whole], calls_max=100) == wanted
    wanted = indexed((line + b"\n" for line in whole.split(b"\n")[:-1]), calls_max=calls_max)
    for size in range(250, len(rest), 61):
        assert indexed([header + b"\n", *cut(rest, size)], calls_max=calls_max) == wanted, size


def test_a_line_over_many_blocks_is_held_once() -> None:
    cutter = Cutter()
    line = b"x" * 1_000_000 + b"\n"
    made = [run for block in cut(line * 3 + b"rest", 100_000) for run in cutter.cut(block)]
    assert b"".join(run.data() for run in made) == line * 3
    assert [run.size for run in made if run.large] == [len(line)] * 3
    assert cutter.rest == b"rest"


def test_the_base_has_what_the_damage_is_about() -> None:
    assert any('"chunk":1' in body for body in BASE)
    assert any('"path":[]' in body for body in BASE)
