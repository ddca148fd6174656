"""DSSE envelopes: the specification's example, and securesystemslib as the reader."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]

import toolcassette as tc
from tests.cli.helpers import run
from tests.proof.helpers import cassette_bytes
from toolcassette.crypto import survey_cassette
from toolcassette.crypto.dsse import pae


def reader_key(signer):
    """The key of a signer as securesystemslib has it."""
    key = signer.verifier
    public = Ed25519PublicKey.from_public_bytes(key.public)
    return SSlibKey.from_crypto(public, keyid=f"{key.name}+{key.id.hex()}")


@pytest.fixture
def attested(file, keys):
    file.write_bytes(cassette_bytes("sun", "rain"))
    return json.loads(tc.attest(file, keys.private("ci")))


def test_the_example_of_the_specification():
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_securesystemslib_verifies_it(attested, keys):
    envelope = Envelope.from_dict(attested)
    key = reader_key(keys.signer("ci"))
    assert list(envelope.verify([key], 1)) == [key.keyid]
    assert envelope.payload_type == "application/vnd.in-toto+json"


@pytest.mark.parametrize("change", ["payload", "payloadType", "sig", "key"])
def test_securesystemslib_refuses_what_was_changed(change, attested, keys):
    key = reader_key(keys.signer("ci"))
    if change == "payload":
        payload = base64.b64decode(attested["payload"]).replace(b'"calls":2', b'"calls":3')
        attested["payload"] = base64.b64encode(payload).decode()
    elif change == "payloadType":
        attested["payloadType"] = "application/json"
    elif change == "sig":
        attested["signatures"][0]["sig"] = base64.b64encode(bytes(64)).decode()
    else:
        key = SSlibKey.from_crypto(
            Ed25519PublicKey.from_public_bytes(keys.signer("eve").verifier.public), keyid=key.keyid
        )
    with pytest.raises(VerificationError):
        Envelope.from_dict(attested).verify([key], 1)


def test_what_it_states(file, attested):
    facts = survey_cassette(tc.FileStore(), str(file))
    assert json.loads(base64.b64decode(attested["payload"])) == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": file.name, "digest": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}}],
        "predicateType": "urn:toolcassette:cassette:1",
        "predicate": {
            "format": "toolcassette/1",
            "cassette": "ab" * 16,
            "created": "2026-01-02T03:04:05.000000Z",
            "producer": "test",
            "include": ["weather"],
            "calls": 2,
            "frames": 6,
            "head": tc.verify(file).head,
            "root": facts.checkpoint.root.hex(),
        },
    }


def test_the_command_line(tmp_path, file, keys):
    file.write_bytes(cassette_bytes("sun"))
    done = run(tmp_path, "attest", file.name, "--key", keys.private("ci"))
    assert done.returncode == 0
    assert done.stdout.encode() == tc.attest(file, keys.private("ci"))
    for name in ("gone", "a\udcffb"):
        done = run(tmp_path, "attest", name, "--key", keys.private("ci"))
        assert (done.returncode, done.stdout) == (2, "")
    assert run(tmp_path, "attest", file.name, "--key", "gone").returncode == 2
    file.write_bytes(cassette_bytes("sun")[:-1])
    done = run(tmp_path, "attest", file.name, "--key", keys.private("ci"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "(final_newline_missing)" in done.stderr
