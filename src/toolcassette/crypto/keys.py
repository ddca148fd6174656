"""Keys with a name: the verifier key that others are given, and the signer that stays where it is (C2SP signed-note).

    verifier key    ci.example/recorder+d3453ce2+AbJ...        name + key id + base64 of 0x01 and the public key
    private key     a line `Name: ci.example/recorder`, then a PKCS8 PEM block

Rule: a key comes from configuration and never from a cassette or its signature. The id is a hint for finding a key
among those that are trusted; two keys are the same key only if their public bytes are.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Final, NamedTuple

from toolcassette.crypto.ed25519 import PUBLIC_BYTES, PrivateKey
from toolcassette.errors import SignatureError

__all__ = ["Signer", "VerifierKey", "checked_key_name", "decoded", "looks_like_key"]

_ED25519: Final = b"\1"  # the one type of signature that is read and written
_ID_BYTES: Final = 4
_NAME_CHARS_MAX: Final = 100
_NAME_LINE: Final = re.compile(rb"^Name: ([^\r\n]+?)\r?$", re.MULTILINE)
_VERIFIER_KEY: Final = re.compile(r"[^\s+]+\+[0-9a-fA-F]{8}\+[A-Za-z0-9+/=]+\Z")


def decoded(text: str) -> bytes | None:
    """The bytes of strict base64, the one spelling that they have; else None."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode("ascii") == text else None


def checked_key_name(name: str) -> str:
    """``name`` if a key may have it. Raises ``ValueError``: it must be printable, without white space and plus."""
    if not name or len(name) > _NAME_CHARS_MAX or "+" in name or not name.isprintable() or re.search(r"\s", name):
        raise ValueError("the name of a key is printable text without white space and plus, like ci.example/recorder")
    return name


def looks_like_key(text: str) -> bool:
    """True for what has the form of a verifier key, right or wrong; what has not is the name of a file."""
    return _VERIFIER_KEY.match(text) is not None


class VerifierKey(NamedTuple):
    """A public key and the name that its signatures carry."""

    name: str
    public: bytes

    @classmethod
    def parse(cls, text: str) -> VerifierKey:
        """The key of a verifier key's text. Raises ``SignatureError`` ``key_junk`` if it is none, or not Ed25519's."""
        parts = text.split("+", 2)
        data = decoded(parts[2]) if len(parts) == 3 else None
        if data is None or data[:1] != _ED25519 or len(data) != 1 + PUBLIC_BYTES:
            raise SignatureError("key_junk")
        try:
            key = cls(checked_key_name(parts[0]), data[1:])
        except ValueError:
            raise SignatureError("key_junk") from None
        if key.id.hex() != parts[1]:
            raise SignatureError("key_junk")
        return key

    @property
    def id(self) -> bytes:
        """Four bytes that a signature names the key by."""
        return hashlib.sha256(self.name.encode("utf-8") + b"\n" + _ED25519 + self.public).digest()[:_ID_BYTES]

    def __str__(self) -> str:
        data = base64.b64encode(_ED25519 + self.public).decode("ascii")
        return f"{self.name}+{self.id.hex()}+{data}"


class Signer:
    """A private key and its name."""

    __slots__ = ("_private", "verifier")

    def __init__(self, name: str, private: PrivateKey) -> None:
        self._private = private
        self.verifier = VerifierKey(checked_key_name(name), private.public)

    @classmethod
    def generate(cls, name: str) -> Signer:
        """A new key. Raises ``ValueError`` for a name that no key may have."""
        return cls(checked_key_name(name), PrivateKey.generate())

    @classmethod
    def parse(cls, data: bytes) -> Signer:
        """The signer in the bytes of a key file.

        Raises ``SignatureError``: ``key_unusable`` where there is no Ed25519 private key in it, or one that needs a
        password; ``key_unnamed`` where no line says ``Name:``.
        """
        private = PrivateKey.from_pem(data)
        found = _NAME_LINE.search(data)
        try:
            return cls(found[1].decode("utf-8") if found else "", private)
        except ValueError:  # of the name; a UnicodeDecodeError is one too
            raise SignatureError("key_unnamed") from None

    def to_bytes(self) -> bytes:
        """The content of a key file. Whoever reads it can sign."""
        return b"Name: %b\n%b" % (self.verifier.name.encode("utf-8"), self._private.to_pem())

    def sign(self, message: bytes) -> bytes:
        """The signature, 64 bytes."""
        return self._private.sign(message)

    def __repr__(self) -> str:
        return f"<Signer {self.verifier}>"
