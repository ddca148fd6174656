"""The vectors: on disk they are what the script makes, and a reader says of each what ``vectors.json`` says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import make_vectors
from toolcassette.crypto.data_key import opener
from toolcassette.crypto.recipients import Identity
from toolcassette.errors import FORMAT_REASONS, EncryptionError, FormatError
from toolcassette.format import (
    Cassette,
    Finding,
    Reader,
    Writer,
    decode_frame,
    decode_value,
    encode_value,
    parse_cassette,
    state_of,
)
from toolcassette.format.frames import KINDS

FOLDER = make_vectors.SCHEMAS / "vectors"
ROWS: dict[str, dict[str, Any]] = json.loads((FOLDER / "vectors.json").read_text("utf-8"))
SEALED = [name for name in ROWS if b'"requires":["encryption"]' in (FOLDER / ROWS[name]["file"]).read_bytes()]
ACCEPTED = [
    name for name, row in ROWS.items() if row["reason"] is None and "deep_reason" not in row and name not in SEALED
]
OPENED = [name for name in SEALED if "identity" in ROWS[name]]
NOT_IN_BYTES = {"absent", "unreadable", "not_a_file", "rules_unknown"}  # the last is for a replay to find


def content(name: str) -> bytes:
    return (FOLDER / ROWS[name]["file"]).read_bytes()


def found(name: str, *, deep: bool = False, block: int = 0) -> Finding | None:
    row, data = ROWS[name], content(name)
    blocks = [data[i : i + block] for i in range(0, len(data), block)] if block else [data]
    reader = Reader(deep=deep, **row.get("limits", {})).feed_all(blocks)
    return reader.finish(partial=row.get("partial", False))


def use_everything(cassette: Cassette) -> None:
    for _ in cassette:
        pass


def test_disk_is_what_the_script_makes() -> None:
    assert make_vectors.differences() == []


def test_every_reason_that_bytes_can_show_is_shown() -> None:
    shown = {row["reason"] for row in ROWS.values()} | {row.get("deep_reason") for row in ROWS.values()}
    assert shown - {None} == FORMAT_REASONS.keys() - NOT_IN_BYTES


@pytest.mark.parametrize("name", ROWS)
def test_reader_says_what_the_vector_says(name: str) -> None:
    row = ROWS[name]
    finding = found(name)
    assert (finding and finding.reason, finding and finding.frame) == (row["reason"], row["frame"])
    assert state_of(finding and finding.reason) == row["state"]
    deep = found(name, deep=True)
    wanted = row.get("deep_reason", row["reason"]), row.get("deep_frame", row["frame"])
    assert (deep and deep.reason, deep and deep.frame) == wanted
    assert [found(name, block=size) for size in (1, 7, 150)] == [finding] * 3


@pytest.mark.parametrize("name", ROWS)
def test_the_offset_is_where_the_frame_begins(name: str) -> None:
    finding = found(name)
    if finding is not None:
        lines = content(name).split(b"\n")
        assert finding.frame is not None
        assert finding.offset == sum(len(line) + 1 for line in lines[: finding.frame])


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if "deep_reason" in row and n not in SEALED])
def test_use_refuses_what_deep_reading_refuses(name: str) -> None:
    cassette = parse_cassette(content(name))
    with pytest.raises(FormatError) as caught:
        use_everything(cassette)
    assert caught.value.reason == ROWS[name]["deep_reason"]


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if row["reason"] and not row.get("partial")])
def test_half_a_cassette_is_never_returned(name: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_cassette(content(name), **ROWS[name].get("limits", {}))
    assert (caught.value.reason, caught.value.frame) == (ROWS[name]["reason"], ROWS[name]["frame"])


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_vectors_are_written_again_byte_for_byte(name: str) -> None:
    data, writer = content(name), Writer()
    lines = data.split(b"\n")[:-1]
    for line in lines:
        frame = decode_frame(line + b"\n", KINDS[json.loads(line)["kind"]])
        assert writer.line(frame) == line + b"\n"
    assert writer.head == parse_cassette(data).head


@pytest.mark.parametrize("name", ACCEPTED)
def test_values_of_accepted_vectors_are_values(name: str) -> None:
    for call in parse_cassette(content(name)):
        for sort, bulk in ((True, call.args), (False, call.value), *((False, item) for item in call.chunks or ())):
            if bulk is not None and b'"redacted"' not in bulk:  # a stand-in is never the value
                assert encode_value(decode_value(bulk, sort=sort), sort=sort) == bulk


def test_stand_ins_read_as_their_text_or_as_what_their_rule_wants_handed_out() -> None:
    [call] = parse_cassette(content("ok_stand_ins"))
    assert decode_value(call.value or b"")[:3] == ["⟦redacted:api-key:1⟧", "⟦redacted:token:2⟧".encode(), "0000"]


@pytest.mark.parametrize(
    "members",
    ['"n":0,"rule":"a"', '"n":true,"rule":"a"', '"n":1', '"rule":"a","n":1', '"n":1,"rule":""', '"n":1,"rule":"a b"',
     '"n":1,"of":"str","rule":"a"', '"n":1,"rule":"a","x":1'],
)  # fmt: skip
def test_a_stand_in_has_one_spelling(members: str) -> None:
    with pytest.raises(FormatError, match="bulk"):
        decode_value(f'{{"$tc":"redacted",{members}}}'.encode())


@pytest.mark.parametrize("name", ROWS)
def test_errors_never_show_bytes_of_the_file(name: str) -> None:
    finding = found(name, deep=True)
    if finding is not None:
        what, advice = FORMAT_REASONS[finding.reason]
        error = finding.as_error()
        assert str(error) == f"{what} at frame {finding.frame} ({finding.reason}); {advice}"
        assert error.__cause__ is None


def opened(name: str, key: str) -> Cassette:
    return parse_cassette(content(name), opens=lambda header: opener(header, [Identity.from_seed(bytes.fromhex(key))]))


@pytest.mark.parametrize("name", OPENED)
def test_an_encrypted_vector_opens_as_it_says(name: str) -> None:
    row = ROWS[name]
    with pytest.raises(EncryptionError, match="identity_missing"):
        parse_cassette(content(name))
    if "open_reason" not in row:
        assert opened(name, row["identity"]).content() == parse_cassette(content("ok_encrypted_plain")).content()
        return
    with pytest.raises(EncryptionError) as caught:
        opened(name, row["identity"])
    assert (caught.value.reason, caught.value.frame) == (row["open_reason"], row["open_frame"])


def test_an_encrypted_vector_does_not_open_with_another_key() -> None:
    with pytest.raises(EncryptionError, match="identity_wrong"):
        opened("ok_encrypted", "11" * 32)
