"""Vectors of encrypted cassettes: read without a key, and opened with one.

Rule: as in ``vector_language``, nothing of the library is used here. Keys are fixed and the data key is no secret. What
HPKE makes is random, so the stanzas were made once and stand here.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tests.format.vector_language import Vector, chunk, complete, header, result, seal, start

if TYPE_CHECKING:
    from collections.abc import Iterator

CASSETTE = "000102030405060708090a0b0c0d0e0f"
IDENTITY = bytes(range(32)).hex()  # an X25519 private key
DATA_KEY = bytes(range(100, 132))
# The data key for that identity; a random key for nobody; another data key for that identity.
MINE = "EUBhnY+vUbGcbiykpBtMlyxQ7SW+o4HWbD9i5oHBBVC/uM/paB4MIHreCtHXY3rs8EXowCf2p0c+qfjiDn53h0RvSjrLsNoApdNmIPD/YdQ="
NOBODY = "H5Tn4SySIvdIP1P9PP8VsSV+WqOGn216jMe3GN/Mb0VyqGC/dYwvzhx4FGVJqMgr1NaNtw1tLYTNopMQyNF5mkH20auUgv/uju8xTd8D+3c="
OTHER_KEY = (
    "pk3SuNXTWauLNjr2TXB5qGET4gXaARMo0IzkmL0Aj31A0Nl7SQZLUXfwKbhPiz1sdiKngc1FyudGP89xvgNBJsU1pOJrAAttOdIwxHxez74="
)

# What stays in the clear of a body, by kind: the text of its members up to the one that is named.
_CLEAR_UNTIL = {"call/start": ',"boundary":', "call/chunk": ',"at":', "call/result": ',"at":'}


def expanded(label: str, length: int) -> bytes:
    info = f"toolcassette/1 {label}".encode()
    return HKDF(SHA256(), length, salt=bytes.fromhex(CASSETTE), info=info).derive(DATA_KEY)


COMMIT = base64.b64encode(expanded("commit", 32)).decode()


def encrypted(seq: int, header_hash: bytes, prefix: str, text: str) -> str:
    """What stands in the place of ``text``."""
    base = int.from_bytes(expanded("nonce", 12), "big")
    nonce = (base ^ seq).to_bytes(12, "big")
    sealed = AESGCM(expanded("aead", 32)).encrypt(nonce, text.encode(), header_hash + prefix.encode())
    return base64.b64encode(sealed).decode()


def sealed_header(to: tuple[str, ...] = (MINE, NOBODY), commit: str = COMMIT, include: str = '["*"]') -> str:
    clear = header(requires='["encryption"]', include="[]")
    sealed = encrypted(0, bytes(32), clear, f'{{"include":{include},"rules":[]}}')
    envelope = {"alg": "A256GCM", "commit": commit, "to": list(to), "sealed": sealed}
    return f'{clear},"enc":{json.dumps(envelope, separators=(",", ":"))}'


def hash_of(body: str) -> bytes:
    return hashlib.sha256(b"\0" + body.encode() + b',"prev":"' + b"0" * 64 + b'"').digest()


def sealed(body: str, seq: int, head: str | None = None, prefix: str | None = None) -> str:
    """A body of a call, sealed under the header ``head``; ``prefix`` is another one than its own."""
    kind = body.split('"kind":"')[1].split('"', maxsplit=1)[0]
    cut = ',"phase":' if ',"phase":' in body else _CLEAR_UNTIL[kind]
    end = body.index(cut)
    text = "{" + body[end + 1 :] + "}"
    enc = encrypted(seq, hash_of(sealed_header() if head is None else head), prefix or body[:end], text)
    return f'{body[:end]},"enc":"{enc}"'


BODIES = (
    start(1, args='{"city":"Wuhan"}', tool="weather", path='["a"]'),
    chunk(2, 0, '"warm"'),
    result(3, ',"meta":{"stream":"iterator"}', how=',"chunks":1'),
    start(4, 1, tool="sum"),
    result(5, ',"value":{"z":1,"a":2}', call=1),
    start(6, 2, tool="sum"),
    result(7, "", call=2, outcome="cancelled", how=',"phase":"before_body"'),
    start(8, 3, tool="sum"),
    result(9, ',"error":{"type":"builtins.OSError","message":""}', call=3, outcome="error"),
)
TAIL = complete(10, ok=2, error=1, cancelled=1)
PLAIN = seal(header(), *BODIES, TAIL)  # what it says
FRAMES = (sealed_header(), *(sealed(body, seq) for seq, body in enumerate(BODIES, 1)), TAIL)
ENCRYPTED = seal(*FRAMES)


def edited(frame: int, body: str) -> bytes:
    """One frame is another, and the hashes are made anew."""
    return seal(*FRAMES[:frame], body, *FRAMES[frame + 1 :])


def accepted() -> Iterator[Vector]:
    yield Vector(
        "ok_encrypted",
        ENCRYPTED,
        "encrypted for one, and for nobody; it says what ok_encrypted_plain says",
        identity=IDENTITY,
    )
    yield Vector("ok_encrypted_plain", PLAIN, "what ok_encrypted says")


def opened() -> Iterator[Vector]:
    """Whole for all who have no key."""
    other = sealed_header((NOBODY,))
    yield Vector(
        "encrypted_not_for_us",
        seal(other, *(sealed(body, seq, other) for seq, body in enumerate(BODIES, 1)), TAIL),
        "the identity is that of no recipient",
        identity=IDENTITY,
        opening=("identity_wrong", None),
    )
    other = sealed_header((OTHER_KEY,))
    yield Vector(
        "encrypted_commitment",
        seal(other, *(sealed(body, seq, other) for seq, body in enumerate(BODIES, 1)), TAIL),
        "the key that was sent is not the one that the header commits to",
        identity=IDENTITY,
        opening=("commitment", 0),
    )
    failed = complete(10, ok=1, error=2, cancelled=1)
    for name, data, frame, comment in (
        ("flipped", edited(5, FRAMES[5].replace('"enc":"', '"enc":"AAAA')), 5, "a ciphertext that was changed"),
        ("outcome", seal(*FRAMES[:5], FRAMES[5].replace('"ok"', '"error"'), *FRAMES[6:10], failed), 5,
         "another outcome in the clear"),
        ("moved", edited(4, FRAMES[4].replace(FRAMES[4].split('"enc":')[1], FRAMES[6].split('"enc":')[1])), 4,
         "the ciphertext of another frame"),
        ("number", edited(4, sealed(BODIES[3], 6)), 4, "sealed as another frame"),
        ("header", seal(FRAMES[0].replace('"order":"strict"', '"order":"any"'), *FRAMES[1:]), 0, "another header"),
        ("recipients", seal(sealed_header((NOBODY, MINE)), *FRAMES[1:]), 1, "the same recipients in another order"),
    ):  # fmt: skip
        yield Vector(f"encrypted_forged_{name}", data, comment, identity=IDENTITY, opening=("forged", frame))


def refused() -> Iterator[Vector]:
    """Refused by every reader, without a key."""
    yield Vector("members_plain_in_sealed", edited(4, BODIES[3]), "a frame in the clear", "members", 4)
    yield Vector(
        "members_sealed_in_plain",
        seal(header(), *BODIES[:4], sealed(BODIES[4], 5), *BODIES[5:], TAIL),
        "a sealed frame under a header that requires nothing",
        "members",
        5,
    )
    yield Vector(
        "members_sealed_header",
        seal(header(requires='["encryption"]', include="[]"), *FRAMES[1:]),
        "a header that requires encryption has enc",
        "members",
        0,
    )
    for name, old, new, comment in (
        ("stanzas", f'["{MINE}","{NOBODY}"]', f'["{MINE}","{NOBODY}","{NOBODY}"]', "recipients are 1, 2, 4, 8 or 16"),
        ("alg", '"A256GCM"', '"NONE"', "there is one algorithm"),
        ("commit", COMMIT, COMMIT[:-4], "a commitment is 32 bytes"),
        ("unknown", '"alg"', '"x":1,"alg"', "no other member"),
    ):
        data = edited(0, FRAMES[0].replace(old, new))
        yield Vector(f"members_envelope_{name}", data, comment, "members", 0)
    at = FRAMES[4].replace(',"enc"', ',"at":40,"enc"')
    yield Vector("head_sealed_member", edited(4, at), "a sealed head holds no other member", "head", 4)
    for name, old, new, comment in (
        (
            "padding",
            FRAMES[4].split('"enc":"')[1],
            FRAMES[4].split('"enc":"')[1].replace("=", ""),
            "base64 without its padding",
        ),
        ("space", '"enc":"', '"enc":" ', "white space in base64"),
        ("short", FRAMES[4].split('"enc":"')[1], 'AAAA"', "shorter than a tag"),
    ):
        yield Vector(f"bulk_sealed_{name}", edited(4, FRAMES[4].replace(old, new)), comment, deep=("bulk", 4))
