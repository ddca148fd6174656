"""X25519 keys: the recipient that others are given, and the identity that opens what was sealed for it.

    recipient       x25519+d3453ce2+AbJ...        algorithm + check digits + base64 of the public key
    identity        a PKCS8 PEM block; a file may hold several

Rule: keys come from configuration. A cassette names none: who its recipients are is not for its readers to know.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from toolcassette.crypto.keys import decoded
from toolcassette.crypto.notes import NOTE_BYTES_MAX
from toolcassette.errors import EncryptionError
from toolcassette.format import RECIPIENTS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

__all__ = [
    "IDENTITY_VARIABLE",
    "Identity",
    "Recipient",
    "identities_of",
    "recipients_of",
]

IDENTITY_VARIABLE: Final = "TOOLCASSETTE_IDENTITY"  # files of identities, separated as in PATH
_RECIPIENT: Final = re.compile(r"x25519\+([0-9a-f]{8})\+([A-Za-z0-9+/]{43}=)\Z")
_PEM: Final = re.compile(rb"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----\n?", re.DOTALL)
_PUBLIC_BYTES: Final = 32


class Recipient(NamedTuple):
    """Somebody who can open what is sealed for him: a public key, 32 bytes."""

    public: bytes

    @classmethod
    def parse(cls, text: str) -> Recipient:
        """The recipient of a text. Raises ``EncryptionError`` ``recipient_junk`` if it is none."""
        found = _RECIPIENT.match(text)
        public = decoded(found[2]) if found else None
        if found is None or public is None or len(public) != _PUBLIC_BYTES or cls(public).check != found[1]:
            raise EncryptionError("recipient_junk")
        try:
            cls(public).key()
        except ValueError:
            raise EncryptionError("recipient_junk") from None
        return cls(public)

    @property
    def check(self) -> str:
        """Digits that tell a slip of the hand."""
        return hashlib.sha256(b"toolcassette/1 recipient\n" + self.public).hexdigest()[:8]

    def key(self) -> X25519PublicKey:
        """The key as ``cryptography`` has it."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        return X25519PublicKey.from_public_bytes(self.public)

    def __str__(self) -> str:
        import base64

        return f"x25519+{self.check}+{base64.b64encode(self.public).decode('ascii')}"


class Identity:
    """A private key that opens what was sealed for its recipient."""

    __slots__ = ("key", "recipient")

    def __init__(self, key: X25519PrivateKey) -> None:
        self.key = key
        self.recipient = Recipient(key.public_key().public_bytes_raw())

    @classmethod
    def generate(cls) -> Identity:
        """A new one, from the system's randomness."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        return cls(X25519PrivateKey.generate())

    @classmethod
    def from_seed(cls, seed: bytes) -> Identity:
        """The identity of 32 secret bytes."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        return cls(X25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def parse_all(cls, data: bytes) -> list[Identity]:
        """The identities in the bytes of a file; text around the blocks is left alone.

        Raises ``EncryptionError`` ``identity_unusable`` where there is none, or a block that is something else.
        """
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            keys = [load_pem_private_key(block, password=None) for block in _PEM.findall(data)]
        except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: it asks for a password
            raise EncryptionError("identity_unusable") from None
        found = [Identity(key) for key in keys if isinstance(key, X25519PrivateKey)]
        if not found or len(found) < len(keys):
            raise EncryptionError("identity_unusable")
        return found

    def to_bytes(self) -> bytes:
        """The content of an identity file. Whoever reads it can open what was sealed for its recipient."""
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        pem = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return b"Recipient: %b\n%b" % (str(self.recipient).encode("ascii"), pem)

    def __repr__(self) -> str:
        return f"<Identity of {self.recipient}>"


def recipients_of(entries: Iterable[str]) -> tuple[Recipient, ...]:
    """The recipients of a configuration: each entry is one, or the path of a file of them.

    Raises ``EncryptionError`` for what is none, ``ValueError`` for more than there may be.
    """
    found = tuple(dict.fromkeys(recipient for entry in entries for recipient in _recipients(entry)))
    if len(found) > RECIPIENTS_MAX:
        message = f"recipients are at most {RECIPIENTS_MAX}: a reader tries each of them"
        raise ValueError(message)
    return found


def _recipients(entry: str) -> Iterator[Recipient]:
    if entry.startswith("x25519+"):
        yield Recipient.parse(entry)
        return
    data = _read(entry, "recipient_unreadable")
    try:
        lines = [line.strip() for line in data.decode("utf-8").splitlines()]
    except UnicodeDecodeError:
        raise EncryptionError("recipient_junk") from None
    found = [Recipient.parse(line) for line in lines if line and not line.startswith("#")]
    if not found:
        raise EncryptionError("recipient_junk")
    yield from found


def identities_of(paths: Iterable[str] = (), environ: Mapping[str, str] | None = None) -> tuple[Identity, ...]:
    """The identities in some files; without any, in those that the environment names. Raises ``EncryptionError``."""
    env = os.environ if environ is None else environ
    named = tuple(paths) or tuple(filter(None, env.get(IDENTITY_VARIABLE, "").split(os.pathsep)))
    return tuple(identity for path in named for identity in Identity.parse_all(_read(path, "identity_unreadable")))


def _read(path: str, reason: str) -> bytes:
    """A file of keys, as far as one can be long."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a path as it was given
            return file.read(NOTE_BYTES_MAX)
    except (OSError, ValueError):
        raise EncryptionError(reason) from None
