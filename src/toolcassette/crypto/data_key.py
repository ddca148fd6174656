"""The data key of an encrypted cassette: how it is sent to recipients, and what it seals (FORMAT.md section 14).

Theory. One data key, 32 random bytes, seals one cassette and nothing else. HPKE (RFC 9180) sends it to each recipient;
HKDF makes of it the AES-256-GCM key, a base for nonces, and a commitment that stands in the header. GCM alone would let
who makes a cassette give two recipients two keys under which one ciphertext has two meanings: a key that the header
does not commit to is refused before it opens anything. The nonce of a frame is the base XOR its number; what is
authenticated with it is the hash of the header and the frame's own clear prefix, so nothing sealed opens in another
place, behind another prefix, or in another cassette.

Rule: ``cryptography`` does all of it; what is ours is which bytes it is given. A key seals each number once, in
order, in one process: a nonce that is used twice gives both texts away. What is written anew gets a key of its own.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import secrets
from functools import partial
from typing import TYPE_CHECKING, Final

from toolcassette.crypto.recipients import Identity, Recipient, identities_of
from toolcassette.errors import EncryptionError, FormatError
from toolcassette.format import FORMAT, header_hash, sealed_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cryptography.hazmat.primitives.hpke import Suite

    from toolcassette.format import Header, Opener, Sealer

__all__ = ["DataKey", "SealingKey", "opener", "opening_with", "sealing_for"]

_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_SIZES: Final = (1, 2, 4, 8, 16)  # stanzas: their number tells no more than this of how many recipients there are
_NO_HEADER: Final = bytes(32)  # in the place of the header's hash, for what is sealed in the header itself


def _suite() -> Suite:
    """The one way in which data keys are sent."""
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

    return Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


def _info(cassette: str) -> bytes:
    return f"{FORMAT} data key\n{cassette}".encode("ascii")


class DataKey:
    """What the data key of one cassette is good for. ``header``: the hash of its header, once that is known."""

    __slots__ = ("_aead", "_base", "commitment", "header")

    def __init__(self, secret: bytes, cassette: str) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._aead = AESGCM(_expanded(secret, cassette, "aead", _KEY_BYTES))
        self._base = int.from_bytes(_expanded(secret, cassette, "nonce", _NONCE_BYTES), "big")
        self.commitment = _expanded(secret, cassette, "commit", _KEY_BYTES)
        self.header = _NO_HEADER

    def encrypt(self, seq: int, prefix: bytes, data: bytes) -> bytes:
        """Ciphertext and tag, as base64."""
        sealed = self._aead.encrypt(self._nonce(seq), data, self.header + prefix)
        return binascii.b2a_base64(sealed, newline=False)

    def open(self, seq: int, prefix: bytes, text: bytes) -> bytes:
        """See ``Opener``."""
        from cryptography.exceptions import InvalidTag

        try:
            sealed = binascii.a2b_base64(text, strict_mode=True)
        except binascii.Error:
            raise FormatError("bulk", frame=seq) from None
        if binascii.b2a_base64(sealed, newline=False) != text:
            raise FormatError("bulk", frame=seq)
        try:
            return self._aead.decrypt(self._nonce(seq), sealed, (self.header if seq else _NO_HEADER) + prefix)
        except (InvalidTag, ValueError):  # ValueError: shorter than a tag
            raise EncryptionError("forged", frame=seq) from None

    def _nonce(self, seq: int) -> bytes:
        return (self._base ^ seq).to_bytes(_NONCE_BYTES, "big")


def _expanded(secret: bytes, cassette: str, label: str, length: int) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    info = f"{FORMAT} {label}".encode("ascii")
    return HKDF(SHA256(), length, salt=bytes.fromhex(cassette), info=info).derive(secret)


class SealingKey:
    """A data key while its cassette is written. See ``Sealer``."""

    __slots__ = ("_key", "_next", "_pid", "_stanzas")

    def __init__(self, secret: bytes, cassette: str, stanzas: Sequence[bytes]) -> None:
        self._key = DataKey(secret, cassette)
        self._stanzas = list(stanzas)
        self._next = 0
        self._pid = os.getpid()

    @classmethod
    def fresh(cls, recipients: Sequence[Recipient], cassette: str) -> SealingKey:
        """A key that was never used, sent to these recipients in no order of theirs, among others for nobody."""
        secret = secrets.token_bytes(_KEY_BYTES)
        suite, info = _suite(), _info(cassette)
        stanzas = [suite.encrypt(secret, recipient.key(), info=info) for recipient in recipients]
        wanted = next(size for size in _SIZES if size >= len(stanzas))
        while len(stanzas) < wanted:
            stanzas.append(
                suite.encrypt(secrets.token_bytes(_KEY_BYTES), Identity.generate().recipient.key(), info=info)
            )
        secrets.SystemRandom().shuffle(stanzas)
        return cls(secret, cassette, stanzas)

    def envelope(self, prefix: bytes, private: bytes) -> bytes:
        """See ``Sealer``."""
        found = {
            "alg": "A256GCM",
            "commit": base64.b64encode(self._key.commitment).decode("ascii"),
            "to": [base64.b64encode(stanza).decode("ascii") for stanza in self._stanzas],
            "sealed": self.seal(0, prefix, private).decode("ascii"),
        }
        return json.dumps(found, separators=(",", ":")).encode("ascii")

    def bind(self, header_hash: bytes) -> None:
        """See ``Sealer``."""
        self._key.header = header_hash

    def seal(self, seq: int, prefix: bytes, data: bytes) -> bytes:
        """See ``Sealer``. Raises ``RuntimeError`` rather than use a nonce twice."""
        if seq < self._next or self._pid != os.getpid():
            raise RuntimeError("a key seals each frame once, in order, and in the process that made it")
        self._next = seq + 1
        return self._key.encrypt(seq, prefix, data)

    def open(self, seq: int, prefix: bytes, text: bytes) -> bytes:
        """See ``Sealer``."""
        return self._key.open(seq, prefix, text)


def sealing_for(recipients: Sequence[Recipient]) -> Callable[[str], Sealer] | None:
    """What a ``Writer`` seals with; None for no recipients: nothing is encrypted."""
    return partial(SealingKey.fresh, tuple(recipients)) if recipients else None


def opening_with(paths: Sequence[str] = ()) -> Callable[[Header], Opener]:
    """What opens an encrypted cassette by its header, with the identities in some files; without any, in those that
    the environment names. They are read when the first such cassette is met. It raises ``EncryptionError``.
    """
    return lambda header: opener(header, identities_of(paths))


def opener(header: Header, identities: Sequence[Identity]) -> Opener:
    """What opens a cassette by its header. Raises ``EncryptionError`` where no identity does."""
    from cryptography.exceptions import InvalidTag

    if not identities:
        raise EncryptionError("identity_missing")
    envelope, suite, info = sealed_in(header), _suite(), _info(header.cassette)
    refused: EncryptionError | None = None
    for stanza in map(base64.b64decode, envelope.to):
        for identity in identities:
            try:
                secret = suite.decrypt(stanza, identity.key, info=info)
            except (InvalidTag, ValueError):
                continue
            key = DataKey(secret, header.cassette)
            if base64.b64encode(key.commitment).decode("ascii") == envelope.commit:
                key.header = header_hash(header)
                return key
            refused = EncryptionError("commitment", frame=0)
    raise refused or EncryptionError("identity_wrong")
