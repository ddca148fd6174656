"""Ed25519 keys, by way of ``cryptography`` alone, which is loaded when the first key is used.

Rule: no primitive of our own, and one algorithm: there is nothing to negotiate, and so nothing to downgrade. A private
key is never part of a repr, a message or an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from toolcassette.errors import SignatureError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["PUBLIC_BYTES", "SIGNATURE_BYTES", "PrivateKey", "is_signed_by"]

PUBLIC_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
_PEM: Final = re.compile(rb"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----\n?", re.DOTALL)


class PrivateKey:
    """An Ed25519 key that signs."""

    __slots__ = ("_key",)

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def generate(cls) -> PrivateKey:
        """A new key, from the system's randomness."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_seed(cls, seed: bytes) -> PrivateKey:
        """The key of 32 secret bytes."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def from_pem(cls, data: bytes) -> PrivateKey:
        """The key in a PKCS8 PEM block; text around the block is left alone.

        Raises ``SignatureError`` ``key_unusable`` for anything else: no PEM, a password, another kind of key.
        """
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        block = _PEM.search(data)
        try:
            key = load_pem_private_key(block[0] if block else b"", password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: it asks for a password
            raise SignatureError("key_unusable") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise SignatureError("key_unusable")
        return cls(key)

    def to_pem(self) -> bytes:
        """PKCS8, not encrypted: whoever reads it can sign."""
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """The signature, 64 bytes; always the same for the same message."""
        return self._key.sign(message)


def is_signed_by(public: bytes, signature: bytes, message: bytes) -> bool:
    """True if the signature is that of the key, over exactly this message."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
