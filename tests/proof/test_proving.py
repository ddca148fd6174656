"""One call proven without the rest: what a proof shows, and every way in which it must not be believed."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolcassette as tc
from tests.cli.helpers import run
from tests.proof.helpers import cassette_bytes, note_over, put, rehashed, sidecar
from toolcassette import RecordedCall, write_cassette
from toolcassette.crypto import Note, signed

CALLS = [
    RecordedCall(tool="weather", args=b'{"city":"Wuhan"}', value=b'"sun"'),
    RecordedCall(tool="ticker", args=b"{}", chunks=(b"1", b"2", b"3"), meta=b'{"stream":"iterator"}'),
    RecordedCall(tool="clock", args=b"{}", outcome="error", error=b'{"type":"ValueError","message":"late"}'),
    RecordedCall(tool="weather", args=b'{"city":"Oslo"}', path=("team",), value=b'"rain"'),
    RecordedCall(tool="ticker", args=b"{}", chunks=(), meta=b'{"stream":"iterator"}'),
]
DATA = write_cassette(CALLS, cassette="ab" * 16, created="2026-01-02T03:04:05.000000Z", producer="test")


@pytest.fixture
def proof(file, keys):
    """A proof of a call of a signed cassette, as JSON."""
    put(file, DATA, keys.signer("ci"))
    return lambda call: json.loads(tc.prove(file, call))


def check(proof, *keys, **options):
    data = proof if isinstance(proof, bytes) else json.dumps(proof).encode()
    return tc.check_proof(data, trusted_keys=keys, **options)


def reason_of(proof, *keys, **options):
    with pytest.raises(tc.SignatureError) as caught:
        check(proof, *keys, **options)
    return caught.value.reason


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_each_call_is_proven_as_it_is(number, proof, keys):
    found = check(proof(number), keys.vkey("ci"))
    assert found.call == tc.parse_cassette(DATA).call(number)
    assert found.call.tool == CALLS[number].tool
    assert (found.number, found.cassette, found.signers) == (number, "ab" * 16, ("ci.example/key",))
    assert found.frames == DATA.count(b"\n")


def test_nothing_of_another_call_is_in_it(proof):
    text = json.dumps(proof(3))
    assert "Oslo" in text
    assert "Wuhan" not in text
    assert "ticker" not in text


def test_a_large_cassette_too(file, keys, monkeypatch):
    monkeypatch.setattr("toolcassette.engine.publication.HELD_BYTES", 1)
    put(file, cassette_bytes(*["sun"] * 1500), keys.signer("ci"))
    assert check(tc.prove(file, 1234), keys.vkey("ci")).number == 1234


@pytest.mark.parametrize("call", [-1, 5, 10**9])
def test_there_is_no_such_call(file, keys, call):
    put(file, DATA, keys.signer("ci"))
    with pytest.raises(IndexError):
        tc.prove(file, call)


def test_only_what_is_signed_can_be_proven(file, keys):
    file.write_bytes(DATA)
    for reason in ("signature_missing", "signature_stale", "signature_junk"):
        if reason == "signature_stale":
            sidecar(file).write_bytes(note_over(cassette_bytes("sun"), keys.signer("ci")))
        if reason == "signature_junk":
            sidecar(file).write_bytes(b"junk")
        with pytest.raises(tc.SignatureError) as caught:
            tc.prove(file, 0)
        assert caught.value.reason == reason
    file.write_bytes(DATA[:-1])
    with pytest.raises(tc.FormatError):
        tc.prove(file, 0)


def test_whose_signature_it_must_be(proof, keys):
    good = proof(0)
    assert reason_of(good) == "key_missing"
    assert reason_of(good, keys.vkey("ann")) == "signature_unknown"
    assert reason_of(good, keys.vkey("ci"), keys.vkey("ann"), threshold=2) == "signature_threshold"


def test_the_environment_goes_before_who_checks(proof, keys, monkeypatch):
    good = proof(0)
    monkeypatch.setenv("TOOLCASSETTE_TRUSTED_KEYS", keys.vkey("ann"))
    assert reason_of(good, keys.vkey("ci")) == "signature_unknown"


# -- forgeries ---------------------------------------------------------------------------------------------------------


def relined(frame, old, new):
    """The frame with other content, and a hash of its own that fits it."""
    covered = frame["line"].replace(old, new)[:-75]
    assert old in frame["line"]
    digest = hashlib.sha256(b"\0" + covered.encode()).hexdigest()
    return {**frame, "line": f'{covered},"hash":"{digest}"}}'}


FORGERIES = {
    "another value": (lambda p, o: [p[0], {**p[1], "line": p[1]["line"].replace("sun", "fog")}], "proof_frames"),
    "another value, hash made anew": (lambda p, o: [p[0], relined(p[1], "sun", "fog")], "proof_path"),
    "other arguments, hash made anew": (lambda p, o: [relined(p[0], "Wuhan", "Wuhen"), p[1]], "proof_path"),
    "another number, hash made anew": (lambda p, o: [relined(p[0], '"seq":1', '"seq":2'), p[1]], "proof_path"),
    "the result of another call": (lambda p, o: [p[0], o[1]], "proof_frames"),
    "the start of another call": (lambda p, o: [o[0], p[1]], "proof_frames"),
    "no result": (lambda p, o: [p[0]], "proof_frames"),
    "no start": (lambda p, o: [p[1]], "proof_frames"),
    "nothing": (lambda p, o: [], "proof_frames"),
    "the wrong way round": (lambda p, o: [p[1], p[0]], "proof_frames"),
    "two starts": (lambda p, o: [p[0], *p], "proof_frames"),
    "two results": (lambda p, o: [*p, p[1]], "proof_frames"),
    "the path of the other frame": (lambda p, o: [{**p[0], "path": p[1]["path"]}, p[1]], "proof_path"),
    "a path too short": (lambda p, o: [{**p[0], "path": p[0]["path"][:-1]}, p[1]], "proof_path"),
    "a path too long": (lambda p, o: [{**p[0], "path": [*p[0]["path"], p[0]["path"][0]]}, p[1]], "proof_path"),
    "no path": (lambda p, o: [{**p[0], "path": []}, p[1]], "proof_path"),
}


@pytest.mark.parametrize(("forge", "reason"), FORGERIES.values(), ids=FORGERIES)
def test_a_forged_proof_is_not_believed(forge, reason, proof, keys):
    good, other = proof(0), proof(3)
    assert reason_of({**good, "frames": forge(good["frames"], other["frames"])}, keys.vkey("ci")) == reason


STREAMS = {
    "a chunk is left out": lambda p: [p[0], *p[2:]],
    "the last chunk is left out": lambda p: [*p[:3], p[4]],
    "chunks the wrong way round": lambda p: [p[0], p[2], p[1], *p[3:]],
    "a chunk twice": lambda p: [p[0], p[1], *p[1:]],
    "no chunks": lambda p: [p[0], p[-1]],
}


@pytest.mark.parametrize("forge", STREAMS.values(), ids=STREAMS)
def test_a_stream_is_proven_whole(forge, proof, keys):
    good = proof(1)
    assert len(good["frames"]) == 5
    assert reason_of({**good, "frames": forge(good["frames"])}, keys.vkey("ci")) == "proof_frames"


def test_the_checkpoint_of_another_cassette_does_not_do(proof, keys):
    other = note_over(cassette_bytes("sun"), keys.signer("ci")).decode()
    assert reason_of({**proof(0), "checkpoint": other}, keys.vkey("ci")) == "proof_path"


def test_a_frame_that_two_readers_would_read_in_two_ways(file, keys):
    """Signed by somebody who did not look: the check does."""
    lines = cassette_bytes("sun").splitlines(keepends=True)
    lines[1] = lines[1].replace(b'{"city":"c0"}', b'{"city":"c0","city":"c1"}')
    put(file, rehashed(lines), keys.signer("ci"))
    assert reason_of(tc.prove(file, 0), keys.vkey("ci")) == "proof_frames"


@pytest.mark.parametrize(
    "text",
    ["toolcassette/1/x\n1\nAAAA\n", "other\n", "toolcassette/1/" + "ab" * 16 + "\n04\n" + "A" * 43 + "=\n", "\n"],
)
def test_a_signed_text_that_is_no_checkpoint(text, proof, keys):
    note = signed(Note(text, ()), keys.signer("ci")).to_bytes().decode()
    assert reason_of({**proof(0), "checkpoint": note}, keys.vkey("ci")) == "signature_junk"


JUNK = [
    b"",
    b"{}",
    b"[]",
    b"null",
    b'["format","checkpoint","frames"]',
    b"[" * 100_000,
    b"\xff",
    b'{"format":"toolcassette-proof/2","checkpoint":"","frames":[]}',
    b'{"format":"toolcassette-proof/1","checkpoint":5,"frames":[]}',
    b'{"format":"toolcassette-proof/1","checkpoint":"","frames":5}',
    b'{"format":"toolcassette-proof/1","checkpoint":"","frames":[{}]}',
    b'{"format":"toolcassette-proof/1","checkpoint":"","frames":["line"]}',
    b'{"format":"toolcassette-proof/1","checkpoint":"","frames":[{"line":5,"path":[]}]}',
    b'{"format":"toolcassette-proof/1","checkpoint":"","frames":[{"line":"a\\nb","path":[]}]}',
    b'{"format":"toolcassette-proof/1","checkpoint":"","frames":[{"line":"\\ud800","path":[]}]}',
    b'{"format":"toolcassette-proof/1","checkpoint":"","frames":[{"line":"","path":["AAAA"]}]}',
    b'{"format":"toolcassette-proof/1","checkpoint":"","frames":[{"line":"","path":[5]}]}',
    b'{"format":"toolcassette-proof/1","checkpoint":"\\ud800","frames":[]}',
    b'{"format":"toolcassette-proof/1","checkpoint":"","frames":[],"more":1}',
    json.dumps(
        {
            "format": "toolcassette-proof/1",
            "checkpoint": "",
            "frames": [{"line": "", "path": [base64.b64encode(bytes(32)).decode()] * 65}],
        }
    ).encode(),
]


@pytest.mark.parametrize("data", JUNK, ids=range(len(JUNK)))
def test_what_is_no_proof(data, keys):
    assert reason_of(data, keys.vkey("ci")) == "proof_junk"


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_changed_byte_is_found_or_changes_nothing(data, proof, keys):
    good = json.dumps(proof(0)).encode()
    wanted = check(good, keys.vkey("ci"))
    at = data.draw(st.integers(0, len(good) - 1))
    bad = good[:at] + bytes([data.draw(st.integers(0, 255))]) + good[at + 1 :]
    with contextlib.suppress(tc.SignatureError):
        assert check(bad, keys.vkey("ci")) == wanted


# -- the command line --------------------------------------------------------------------------------------------------


def test_prove_and_check(tmp_path, file, keys):
    put(file, DATA, keys.signer("ci"))
    done = run(tmp_path, "prove", file.name, "0")
    assert done.returncode == 0
    assert done.stdout.encode() == tc.prove(file, 0)
    checked = run(tmp_path, "check-proof", "-", "--key", keys.vkey("ci"), stdin=done.stdout)
    assert checked.returncode == 0
    assert checked.stdout.startswith("-: proven, signed by ci.example/key\n  cassette  " + "ab" * 16)
    assert "Wuhan" not in checked.stdout
    (tmp_path / "p").write_text(done.stdout, "utf-8")
    checked = run(tmp_path, "check-proof", "p", "--key", keys.public("ci"), "--format", "json", "--show-values")
    assert json.loads(checked.stdout)["values"] == {"args": {"city": "Wuhan"}, "value": "sun"}
    checked = run(tmp_path, "check-proof", "p", "--show-values", TOOLCASSETTE_TRUSTED_KEYS=keys.vkey("ci"))
    assert '  value     "sun"\n' in checked.stdout
    assert run(tmp_path, "check-proof", "p", "--key", keys.vkey("ann")).returncode == 1
    assert run(tmp_path, "check-proof", "p").returncode == 2
    assert run(tmp_path, "check-proof", "gone", "--key", keys.vkey("ci")).returncode == 2
    done = run(tmp_path, "prove", file.name, "1")
    checked = run(tmp_path, "check-proof", "-", "--key", keys.vkey("ci"), "--show-values", stdin=done.stdout)
    assert "  chunks    [1, 2, 3]\n" in checked.stdout


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        (["gone", "0"], 2, "(absent)"),
        (["weather.cassette.jsonl", "9"], 2, "there is no call 9"),
        (["weather.cassette.jsonl", "-1"], 2, "toolcassette prove --help"),
        (["weather.cassette.jsonl", "0"], 1, "(signature_missing)"),
    ],
)
def test_prove_says_what_is_wrong(tmp_path, file, args, status, said):
    file.write_bytes(DATA)
    done = run(tmp_path, "prove", *args)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr
