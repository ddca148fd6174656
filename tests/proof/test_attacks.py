"""Whoever can write the file and holds no key: what is found of it unsigned, and signed.

Rule: each forgery is the best that can be made without a key: hashes, links, numbers and counts are made anew, so that
the file is whole. Of an unsigned cassette that is not found, which SECURITY.md says; of a signed one, always.
"""

from __future__ import annotations

import pytest

import toolcassette as tc
from tests.proof.helpers import cassette_bytes, judged, note_over, put, rehashed, sidecar
from toolcassette.crypto import Note, Signer, VerifierKey, signed

DATA = cassette_bytes("sun", "rain", "fog")
OTHER = cassette_bytes("storm", "hail", cassette="cd" * 16)


def lines_of(data):
    return data.splitlines(keepends=True)


def complete(lines):
    """The last frame, with counts that fit."""
    calls = sum(b'"kind":"call/start"' in line for line in lines)
    counts = b'{"seq":%d,"kind":"complete","calls":%d,"frames":%d,"ok":%d' % (len(lines), calls, len(lines) + 1, calls)
    return counts + b',"error":0,"cancelled":0,"left_early":0,"rejected":0,"prev":"'


def changed(data):
    """One result is another."""
    return rehashed(lines_of(data.replace(b'"value":"rain"', b'"value":"hail"')))


def cut(data):
    """The last call is gone, and the tail is made anew."""
    kept = lines_of(data)[:-3]
    return rehashed([*kept, complete(kept)])


def emptied(data):
    return rehashed([lines_of(data)[0], complete(lines_of(data)[:1])])


def spliced(data):
    """The last call is that of another cassette."""
    foreign = lines_of(OTHER)[3:5]
    moved = [
        line.replace(b'"seq":%d' % (seq - 2), b'"seq":%d' % seq).replace(b'"call":1', b'"call":2')
        for seq, line in enumerate(foreign, 5)
    ]
    kept = [*lines_of(data)[:5], *moved]
    return rehashed([*kept, complete(kept)])


def reordered(data):
    """Two results are exchanged."""
    return rehashed(lines_of(data.replace(b'"sun"', b'"?"').replace(b'"fog"', b'"sun"').replace(b'"?"', b'"fog"')))


def new_header(data):
    """Another include, under the old id."""
    return rehashed(lines_of(data.replace(b'"include":["weather"]', b'"include":["*"]')))


def swapped_header(data):
    """The header of another cassette over the calls of this one."""
    return rehashed([lines_of(OTHER)[0], *lines_of(data)[1:]])


def other_order(data):
    return rehashed(lines_of(data.replace(b'"order":"strict"', b'"order":"any"')))


def renamed_tool(data):
    return rehashed(lines_of(data.replace(b'"tool":"weather"', b'"tool":"weather2"')))


def whole_other(data):
    return OTHER


FORGERIES = [
    changed,
    cut,
    emptied,
    spliced,
    reordered,
    new_header,
    swapped_header,
    other_order,
    renamed_tool,
    whole_other,
]
forgeries = pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)


@forgeries
def test_unsigned_a_forgery_is_not_found_and_not_called_more_than_intact(forge, file):
    forged = forge(DATA)
    assert forged != DATA
    file.write_bytes(forged)
    assert tc.verify(file, deep=True).message == "intact, unsigned"


@forgeries
def test_signed_it_is_found(forge, file, keys):
    put(file, DATA, keys.signer("ci"))
    file.write_bytes(forge(DATA))
    trusted = keys.vkey("ci")
    assert judged(file, trusted, require_signature=True) == "signature_stale"
    assert judged(file, trusted) == "signature_stale"
    assert judged(file) == "signature_stale"  # also where nobody is trusted
    with pytest.raises(tc.SignatureError), tc.replay(file, trusted_keys=[trusted]):
        pytest.fail("a forgery was served")


@forgeries
def test_signed_and_the_signature_is_taken_away(forge, file, keys):
    file.write_bytes(forge(DATA))
    assert judged(file, keys.vkey("ci"), require_signature=True) == "signature_missing"


@forgeries
def test_signed_and_the_attacker_signs_with_a_key_of_his_own(forge, file, keys):
    """His key has the name of ours, too."""
    eve = Signer.generate(keys.signer("ci").verifier.name)
    put(file, forge(DATA), eve)
    assert judged(file, keys.vkey("ci")) == "signature_unknown"
    assert judged(file) == "unchecked"


@forgeries
def test_signed_and_the_line_of_our_key_is_carried_over(forge, file, keys):
    """The text is that of the forgery, the line that of the signature we made: the key is ours, the text is not."""
    forged = forge(DATA)
    ours = Note.parse(note_over(DATA, keys.signer("ci")))
    theirs = Note.parse(note_over(forged, keys.signer("eve")))
    file.write_bytes(forged)
    for lines in (ours.lines, (*ours.lines, *theirs.lines), (*theirs.lines, *ours.lines)):
        sidecar(file).write_bytes(Note(theirs.text, lines).to_bytes())
        assert judged(file, keys.vkey("ci")) == "signature_wrong"
        assert judged(file, keys.vkey("ci"), keys.vkey("bob"), threshold=2) == "signature_wrong"


@forgeries
def test_a_pinned_head_finds_it_without_any_key(forge, file):
    file.write_bytes(DATA)
    head = tc.verify(file).head
    file.write_bytes(forge(DATA))
    with pytest.raises(tc.SignatureError) as caught, tc.replay(file, expect_head=head):
        pytest.fail("a forgery was served")
    assert caught.value.reason == "head_differs"


@pytest.mark.parametrize("at", range(0, len(DATA), 97))
def test_one_flipped_bit_is_found_either_way(at, file, keys):
    put(file, DATA, keys.signer("ci"))
    file.write_bytes(DATA[:at] + bytes([DATA[at] ^ 1]) + DATA[at + 1 :])
    assert tc.verify(file, trusted_keys=[keys.vkey("ci")]).state != "complete"


# -- the signature itself ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "junk",
    [b"", b"junk", b"\x00" * 100, b"\n\n", b"x" * 70_000, b"toolcassette/1/x\n1\nx\n\n\xe2\x80\x94 a b\n"],
    ids=range(6),
)
def test_a_junk_signature_is_a_finding_and_never_unsigned(junk, file, keys):
    file.write_bytes(DATA)
    sidecar(file).write_bytes(junk)
    assert judged(file) == judged(file, keys.vkey("ci"), require_signature=True) == "signature_junk"


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_not_read(make, file, keys):
    file.write_bytes(DATA)
    make(sidecar(file))
    report = tc.verify(file, trusted_keys=[keys.vkey("ci")])
    assert (report.reason, report.exit_status) == ("signature_unreadable", 2)


@pytest.mark.parametrize("at", range(0, 200, 3))
def test_a_change_of_any_byte_of_the_signature_is_found(at, file, keys):
    put(file, DATA, keys.signer("ci"))
    data = sidecar(file).read_bytes()
    at %= len(data)
    sidecar(file).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    assert judged(file, keys.vkey("ci")) in {
        "signature_junk",
        "signature_stale",
        "signature_unknown",
        "signature_wrong",
    }


@pytest.mark.parametrize(
    "text",
    [
        "toolcassette/2/" + "ab" * 16,
        "toolcassette.dev/v1/" + "ab" * 16,
        "go.sum database tree",
        "toolcassette/1/" + "cd" * 16,
        "toolcassette/1/" + "AB" * 16,
    ],
)
def test_a_signature_of_another_protocol_or_log_does_not_count(text, file, keys):
    """The same key may sign other logs: the first line says of what."""
    put(file, DATA, keys.signer("ci"))
    whole = Note.parse(sidecar(file).read_bytes()).text
    other = text + "\n" + whole.split("\n", 1)[1]
    sidecar(file).write_bytes(signed(Note(other, ()), keys.signer("ci")).to_bytes())
    assert judged(file, keys.vkey("ci")) == "signature_stale"


def test_more_lines_of_text_than_ours_do_not_count(file, keys):
    put(file, DATA, keys.signer("ci"))
    text = Note.parse(sidecar(file).read_bytes()).text
    sidecar(file).write_bytes(signed(Note(text + "extension\n", ()), keys.signer("ci")).to_bytes())
    assert judged(file, keys.vkey("ci")) == "signature_stale"


def test_unknown_signers_neither_help_nor_hinder(file, keys):
    put(file, DATA, keys.signer("eve"), keys.signer("ci"), keys.signer("bob"))
    assert judged(file, keys.vkey("ci")) == "signed"
    assert judged(file, keys.vkey("ci"), keys.vkey("ann"), threshold=2) == "signature_threshold"


def test_one_key_under_two_names_is_one_key(file, keys):
    """The threshold counts distinct keys: a second name, a second line, a second entry add nothing."""
    ci = keys.signer("ci")
    alias = Signer("alias.example/key", ci._private)
    put(file, DATA, ci, alias)
    trusted = (keys.vkey("ci"), str(alias.verifier), keys.vkey("ann"))
    assert judged(file, *trusted, threshold=2) == "signature_threshold"
    tc.sign(file, keys.private("ann"))
    assert judged(file, *trusted, threshold=2) == "signed"


def test_a_key_of_another_name_and_the_same_bytes_is_not_the_named_one(file, keys):
    put(file, DATA, keys.signer("ci"))
    other = VerifierKey("other.example/key", keys.signer("ci").verifier.public)
    assert judged(file, str(other)) == "signature_unknown"


# -- rollback ----------------------------------------------------------------------------------------------------------


def test_rollback_passes_a_signature_and_no_pinned_head(file, keys):
    """An older cassette, signed as well as the newer one: only who knows the head can tell."""
    put(file, DATA, keys.signer("ci"))
    old = file.read_bytes(), sidecar(file).read_bytes()
    put(file, cassette_bytes("sun", "rain", "snow", cassette="ef" * 16), keys.signer("ci"))
    head = tc.verify(file).head
    file.write_bytes(old[0])
    assert judged(file, keys.vkey("ci")) == "signature_stale"  # half a rollback
    sidecar(file).write_bytes(old[1])
    assert judged(file, keys.vkey("ci"), require_signature=True) == "signed"
    with pytest.raises(tc.SignatureError) as caught, tc.replay(file, trusted_keys=[keys.vkey("ci")], expect_head=head):
        pytest.fail("an older cassette was served")
    assert caught.value.reason == "head_differs"
