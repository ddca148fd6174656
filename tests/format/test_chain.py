"""The chain against plain hashlib, and against the command that FORMAT.md section 3 gives for doing it by hand."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.format.vector_language import BASE, LINES, WHOLE
from tests.make_vectors import SCHEMAS
from toolcassette.errors import FormatError
from toolcassette.format.chain import TRAILER_BYTES, Chain, leaf_hash, own_fault, prev_and_hash

if TYPE_CHECKING:
    from pathlib import Path

ZEROS = "0" * 64
bodies = st.lists(
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])).map(str.encode), max_size=5
)


def test_the_leaf_hash_is_that_of_rfc_6962() -> None:
    assert leaf_hash(b"") == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert leaf_hash(b"L123456") == "395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56"


@given(bodies)
def test_link_and_check_are_one_chain(texts: list[bytes]) -> None:
    writing, reading, prev = Chain(), Chain(), ZEROS
    for seq, body in enumerate(texts):
        assert writing.seq == seq
        line = writing.link(body)
        assert line.startswith(body + b',"prev":"' + prev.encode())
        assert len(line) == len(body) + TRAILER_BYTES
        assert own_fault(line) is None
        assert prev_and_hash(line) == (prev, writing.head)
        assert writing.head == hashlib.sha256(b"\0" + line[:-76]).hexdigest()
        reading.check(line)
        assert (reading.head, reading.seq) == (writing.head, writing.seq)
        prev = writing.head


def test_a_broken_link_moves_nothing() -> None:
    chain = Chain()
    chain.check(LINES[0])
    before = chain.head
    with pytest.raises(FormatError) as caught:
        chain.check(LINES[2])
    assert (caught.value.reason, caught.value.frame) == ("link", 1)
    assert (chain.head, chain.seq) == (before, 1)
    chain.check(LINES[1])


@pytest.mark.parametrize("line", [LINES[0], LINES[3], LINES[7]])
def test_every_bit_of_a_line_counts(line: bytes) -> None:
    for place in range(len(line)):
        for bit in range(8):
            bad = bytearray(line)
            bad[place] ^= 1 << bit
            assert own_fault(bytes(bad)) in {"trailer", "hash"}


@given(st.binary(max_size=400))
def test_any_line_has_a_fault_or_is_hashed(data: bytes) -> None:
    assert own_fault(data + b"\n") in {"trailer", "hash"}


@pytest.mark.parametrize("length", range(TRAILER_BYTES + 2))
def test_short_lines(length: int) -> None:
    assert own_fault(LINES[0][len(LINES[0]) - length :]) in {"trailer", "hash"}


def test_the_example_of_the_specification_is_the_vector() -> None:
    text = (SCHEMAS / "FORMAT.md").read_text("utf-8")
    tiny = (SCHEMAS / "vectors" / "ok_tiny.cassette.jsonl").read_text("utf-8")
    assert f"```\n{tiny}```\n" in text
    shown = re.search(r"sed -n (\d)p ok_tiny\S+ \| head -c -76\) \| sha256sum\n([0-9a-f]{64})  -\n", text)
    assert shown is not None
    line = tiny.encode().splitlines(keepends=True)[int(shown[1]) - 1]
    assert prev_and_hash(line)[1] == shown[2] == leaf_hash(line[:-76])


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="`head -c -76` is GNU's; the line above holds everywhere"
)
def test_by_hand(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(WHOLE)
    for number in range(1, len(BASE) + 1):
        command = f"(printf '\\0'; sed -n {number}p c | head -c -76) | sha256sum"
        done = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, capture_output=True, check=True)
        assert done.stdout.decode().split()[0] == prev_and_hash(LINES[number - 1])[1]
