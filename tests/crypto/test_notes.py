"""Signed notes: the specification's own example, byte for byte what Go writes, and every way to be none."""

from __future__ import annotations

import base64

import pytest

import toolcassette as tc
from tests.crypto.go import GO, SIGNERS
from toolcassette.crypto import NOTE_BYTES_MAX, SIGNATURES_MAX, Note, Signer, VerifierKey, signed, signers_of

# C2SP signed-note, "Example".
SPEC_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
SPEC_NOTE = (
    "This is an example message.\n\n\u2014 example.com/foo "
    "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
).encode()
TEXT = GO["text"]
ANN, BOB = SIGNERS


def reason_of(make, *args):
    with pytest.raises(tc.SignatureError) as caught:
        make(*args)
    return caught.value.reason


def test_the_example_of_the_specification():
    key = VerifierKey.parse(SPEC_KEY)
    note = Note.parse(SPEC_NOTE)
    assert note.text == "This is an example message.\n"
    assert signers_of(note, [key]) == {key.public: "example.com/foo"}
    assert note.to_bytes() == SPEC_NOTE
    assert str(key) == SPEC_KEY


def test_byte_for_byte_what_go_signs():
    assert [str(signer.verifier) for signer in SIGNERS] == GO["vkeys"]
    one = signed(Note(TEXT, ()), ANN)
    assert one.to_bytes().decode() == GO["one"]
    assert signed(one, BOB).to_bytes().decode() == GO["two"]


def test_what_go_signed_is_read():
    keys = [VerifierKey.parse(text) for text in GO["vkeys"]]
    assert list(signers_of(Note.parse(GO["two"].encode()), keys).values()) == [key.name for key in keys]
    assert list(signers_of(Note.parse(GO["one"].encode()), keys).values()) == [keys[0].name]


def test_signing_twice_is_signing_once():
    one = signed(Note(TEXT, ()), ANN)
    assert signed(one, ANN) is one


def test_a_wrong_line_in_the_signers_name_is_replaced():
    one = signed(Note(TEXT, ()), ANN)
    wrong = Note(TEXT, (one.lines[0]._replace(signature=bytes(64)),))
    assert signed(wrong, ANN) == one


def test_no_more_signatures_than_every_reader_takes():
    note = Note(TEXT, ())
    for number in range(SIGNATURES_MAX):
        note = signed(note, Signer.generate(f"k{number}"))
    assert len(signers_of(Note.parse(note.to_bytes()), [ANN.verifier])) == 0
    assert reason_of(signed, note, ANN) == "signature_full"
    more = Note(TEXT, (*note.lines, *signed(Note(TEXT, ()), ANN).lines))
    assert reason_of(Note.parse, more.to_bytes()) == "signature_junk"


def test_a_text_may_have_empty_lines():
    note = signed(Note("a\n\nb\n", ()), ANN)
    assert Note.parse(note.to_bytes()) == note


GOOD = GO["one"]
LINE = GOOD.split("\n\n")[1]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"no signature\n",
        b"text\n\n",
        ("\n" + LINE).encode(),
        GOOD.encode()[:-1],
        GOOD.replace("\n\n", "\n").encode(),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace("toolcassette", "tool\0cassette").encode(),
        GOOD.replace("toolcassette", "tool\tcassette").encode(),
        GOOD.replace("\u2014", "-").encode(),
        GOOD.replace("\u2014 ", "\u2014").encode(),
        (GOOD + "\n").encode(),
        (GOOD + "trailing\n").encode(),
        (TEXT + "\n\u2014 name\n").encode(),
        (TEXT + "\n\u2014 name !!!\n").encode(),
        (TEXT + "\n\u2014 name AAAA\n").encode(),
        (TEXT + "\n\u2014 na+me cxnMZbTd\n").encode(),
        (TEXT + "\n\u2014  cxnMZbTd\n").encode(),
        (TEXT + "\n" + LINE.rstrip("\n") + "=\n").encode(),
        b"\xff" + GOOD.encode(),
        ("x" * NOTE_BYTES_MAX + "\n\n" + LINE).encode(),
    ],
    ids=range(22),
)
def test_what_is_no_note(data):
    assert reason_of(Note.parse, data) == "signature_junk"


def test_base64_has_one_spelling():
    """The last character of base64 has bits that decode to nothing: another spelling must not be the same line."""
    data = LINE.split(" ")[2].rstrip("\n")
    other = data[:-2] + chr(ord(data[-2]) + 1) + "="
    assert base64.b64decode(other) == base64.b64decode(data)
    assert reason_of(Note.parse, GOOD.replace(data, other).encode()) == "signature_junk"


def test_lines_of_unknown_keys_are_ignored():
    assert signers_of(Note.parse(GO["two"].encode()), [BOB.verifier]) == {BOB.verifier.public: BOB.verifier.name}
    assert signers_of(Note.parse(GO["one"].encode()), [BOB.verifier]) == {}
    other_type = (
        TEXT + "\n\u2014 " + ANN.verifier.name + " " + base64.b64encode(b"\4xyz" * 20).decode() + "\n"
    ).encode()
    assert signers_of(Note.parse(other_type), [ANN.verifier]) == {}


def test_a_line_that_a_trusted_key_did_not_make_refuses_the_note():
    note = Note.parse(GO["two"].encode())
    ann, bob = note.lines
    for wrong in (
        ann._replace(signature=bytes(64)),
        ann._replace(signature=bob.signature),
        ann._replace(signature=ann.signature[:-1]),
        ann._replace(signature=ann.signature + b"\0"),
    ):
        bad = Note(TEXT, (wrong, bob))
        assert reason_of(signers_of, bad, [ANN.verifier, BOB.verifier]) == "signature_wrong"
        assert list(signers_of(bad, [BOB.verifier]).values()) == [BOB.verifier.name]  # who does not know ann
    assert reason_of(signers_of, Note(TEXT + "x\n", note.lines), [ANN.verifier]) == "signature_wrong"


def test_a_key_id_is_a_hint_and_never_trust():
    """Two trusted keys of one name and one id: the signature decides. And an id alone counts for nothing."""
    note = Note.parse(GO["one"].encode())

    class Collides(VerifierKey):
        __slots__ = ()
        id = ANN.verifier.id

    twin = Collides(ANN.verifier.name, BOB.verifier.public)
    assert list(signers_of(note, [twin, ANN.verifier])) == [ANN.verifier.public]
    assert reason_of(signers_of, note, [twin]) == "signature_wrong"


def test_one_key_counts_once_whatever_its_names():
    alias = Signer("ann-again", ANN._private)
    note = signed(signed(Note(TEXT, ()), ANN), alias)
    assert len(note.lines) == 2
    assert len(signers_of(note, [ANN.verifier, alias.verifier])) == 1
