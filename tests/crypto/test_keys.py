"""Keys: what is one, where it is said whom to trust, and that nothing in the tree under review can loosen that."""

from __future__ import annotations

import base64
import os
import pickle

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

import toolcassette as tc
from tests.crypto.go import SIGNERS
from toolcassette.crypto import Signer, Trust, VerifierKey, keys_of, looks_like_key, read_signer, trust_of

ANN, BOB = (signer.verifier for signer in SIGNERS)
PEM, PKCS8, PLAIN = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()


def reason_of(make, *args, **options):
    with pytest.raises(tc.SignatureError) as caught:
        make(*args, **options)
    return caught.value.reason


def vkey(name=ANN.name, kind=1, public=ANN.public):
    key = VerifierKey(name, public)
    return f"{name}+{key.id.hex()}+{base64.b64encode(bytes([kind]) + public).decode()}"


def test_a_key_comes_back():
    assert VerifierKey.parse(str(ANN)) == ANN
    assert vkey() == str(ANN)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ann",
        "ann+",
        "ann++",
        "ann+00000000+",
        str(ANN)[:-4],
        str(ANN) + "=",
        str(ANN).replace("ci.example", "ci.exmaple"),
        f"{ANN.name}+{BOB.id.hex()}+{str(ANN).split('+', 2)[2]}",
        vkey(kind=4),
        vkey(public=ANN.public[:-1]),
        vkey(public=ANN.public + b"\0"),
        "a b+" + vkey().split("+", 1)[1],
        "\u200bann+" + vkey().split("+", 1)[1],
        str(ANN).replace(ANN.id.hex(), ANN.id.hex().upper()),
    ],
)
def test_a_junk_key_is_told(text):
    assert reason_of(VerifierKey.parse, text) == "key_junk"


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\n", "a\x1b", "\u202eann", "x" * 101])
def test_names_that_no_key_may_have(name):
    with pytest.raises(ValueError, match="printable"):
        Signer.generate(name)


def test_a_private_key_comes_back_and_is_shown_nowhere():
    signer = Signer.generate("ci.example/recorder")
    data = signer.to_bytes()
    again = Signer.parse(data)
    assert again.verifier == signer.verifier
    assert again.sign(b"x") == signer.sign(b"x")
    assert repr(signer) == f"<Signer {signer.verifier}>"
    secret = base64.b64encode(ed25519_seed(data))
    assert secret.decode() not in repr(signer) + str(vars(type(signer)))
    with pytest.raises((TypeError, pickle.PicklingError)):
        pickle.dumps(signer)


def ed25519_seed(data):
    key = serialization.load_pem_private_key(data[data.index(b"-----") :], None)
    assert isinstance(key, ed25519.Ed25519PrivateKey)
    return key.private_bytes_raw()


def test_a_key_of_openssl_with_a_name_before_it():
    private = ed25519.Ed25519PrivateKey.generate()
    pem = private.private_bytes(PEM, PKCS8, PLAIN)
    signer = Signer.parse(b"# made elsewhere\nName: ann\r\n" + pem)
    assert signer.verifier == VerifierKey("ann", private.public_key().public_bytes_raw())
    assert reason_of(Signer.parse, pem) == "key_unnamed"
    assert reason_of(Signer.parse, b"Name: a b\n" + pem) == "key_unnamed"
    assert reason_of(Signer.parse, b"Name: \xff\n" + pem) == "key_unnamed"


def foreign(private, how=PLAIN):
    return b"Name: ann\n" + private.private_bytes(PEM, PKCS8, how)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"Name: ann\n",
        b"Name: ann\n-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        foreign(ec.generate_private_key(ec.SECP256R1())),
        foreign(rsa.generate_private_key(65537, 2048)),
        foreign(ed25519.Ed25519PrivateKey.generate(), serialization.BestAvailableEncryption(b"word")),
        str(ANN).encode(),
    ],
    ids=["empty", "no block", "junk", "p256", "rsa", "password", "a verifier key"],
)
def test_what_cannot_sign(data):
    assert reason_of(Signer.parse, data) == "key_unusable"


# -- whom to trust ----------------------------------------------------------------------------------------------------


def test_files_of_keys(tmp_path):
    file = tmp_path / "keys"
    file.write_text(f"# who may sign\n\n  {ANN}\n{BOB}\r\n", "utf-8")
    assert keys_of([str(file)]) == (ANN, BOB)
    assert keys_of([str(BOB), str(file), str(ANN)]) == (BOB, ANN)


@pytest.mark.parametrize("text", ["", "# nobody\n", "junk\n", "\x00", f"{ANN}\n<<<<<<< ours\n"])
def test_a_file_without_keys_is_junk(tmp_path, text):
    file = tmp_path / "keys"
    file.write_text(text, "utf-8")
    assert reason_of(keys_of, [str(file)]) == "key_junk"


def test_other_files(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "long").write_text(f"{ANN}\n" * 2000, "utf-8")
    assert reason_of(keys_of, [str(tmp_path / "binary")]) == "key_junk"
    assert reason_of(keys_of, [str(tmp_path / "long")]) == "key_junk"
    assert reason_of(keys_of, [str(tmp_path)]) == "key_unreadable"
    assert reason_of(keys_of, [str(tmp_path / "gone")]) == "key_unreadable"
    assert reason_of(keys_of, ["a\0b"]) == "key_unreadable"
    assert reason_of(read_signer, str(tmp_path / "gone")) == "key_unreadable"


def test_a_key_with_a_slip_is_no_file_name():
    assert looks_like_key(str(ANN)[:-5])
    assert not looks_like_key("keys/ci.pub")


@pytest.mark.parametrize(
    ("code", "env", "wanted"),
    [
        ((), {}, ((), False, 1)),
        ((ANN,), {}, ((ANN,), False, 1)),
        ((ANN,), {"KEYS": str(BOB)}, ((BOB,), False, 1)),
        ((ANN,), {"KEYS": f"{BOB},{ANN}\n{ANN}"}, ((BOB, ANN), False, 1)),
        ((ANN,), {"KEYS": str(BOB), "REQUIRE": "1"}, ((BOB,), True, 1)),
        ((), {"KEYS": f"{BOB} {ANN}", "REQUIRE": "2"}, ((BOB, ANN), True, 2)),
        ((ANN,), {"KEYS": " ", "REQUIRE": "0"}, ((ANN,), False, 1)),
        ((ANN,), {"REQUIRE": "no"}, ((ANN,), False, 1)),
    ],
)
def test_the_environment_goes_before_code(code, env, wanted):
    environ = {f"TOOLCASSETTE_{'TRUSTED_KEYS' if k == 'KEYS' else 'REQUIRE_SIGNATURE'}": v for k, v in env.items()}
    trust = trust_of(map(str, code), environ=environ)
    assert (trust.keys, trust.required, trust.threshold) == wanted


def test_keys_of_the_tree_do_not_count_where_the_environment_requires_a_signature():
    """Else an empty variable, a secret that was not set, would let the tree under review name its own keys."""
    environ = {"TOOLCASSETTE_REQUIRE_SIGNATURE": "1", "TOOLCASSETTE_TRUSTED_KEYS": ""}
    assert reason_of(trust_of, [str(ANN)], environ=environ) == "key_missing"


def test_code_cannot_loosen_what_the_environment_requires():
    environ = {"TOOLCASSETTE_REQUIRE_SIGNATURE": "2", "TOOLCASSETTE_TRUSTED_KEYS": f"{ANN} {BOB}"}
    trust = trust_of((), required=False, threshold=1, environ=environ)
    assert (trust.required, trust.threshold) == (True, 2)


def test_fewer_keys_than_must_sign_can_never_be_enough():
    assert reason_of(Trust, required=True) == "key_missing"
    assert reason_of(Trust, keys=(ANN,), threshold=2) == "key_missing"
    alias = VerifierKey("ann-again", ANN.public)
    assert reason_of(Trust, keys=(ANN, alias), threshold=2) == "key_missing"
    assert reason_of(trust_of, [str(ANN)], threshold=2, environ={}) == "key_missing"


@pytest.mark.parametrize("number", [0, -1, 17])
def test_numbers_of_keys_that_cannot_be(number):
    with pytest.raises(ValueError, match="threshold"):
        trust_of([str(ANN)], threshold=number, environ={})


@pytest.mark.parametrize("word", ["maybe", "-1", "1.5", "\u0661", "17"])
def test_words_in_the_environment_that_are_no_number(word):
    with pytest.raises(ValueError):
        trust_of([str(ANN)], environ={"TOOLCASSETTE_REQUIRE_SIGNATURE": word, "TOOLCASSETTE_TRUSTED_KEYS": str(ANN)})


def test_the_process_has_the_environment_by_default(monkeypatch):
    monkeypatch.setitem(os.environ, "TOOLCASSETTE_TRUSTED_KEYS", str(ANN))
    assert trust_of([str(BOB)]).keys == (ANN,)
