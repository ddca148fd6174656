"""Whom a signature must be from: the trusted keys, how many of them, and where that is said.

Theory. A signature that is there is judged, always: one of another cassette is a finding, with keys and without. One
that is not there is a finding only where it is required. What the tree under review says of itself proves nothing
against its author, so the environment outranks all that code and configuration files say: where it names keys, or
requires a signature, its keys alone count; and nothing loosens what it requires.

Rule: fail closed. A signature that is required and cannot be judged, for want of keys, is not there.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Final

from toolcassette.crypto.keys import Signer, VerifierKey, looks_like_key
from toolcassette.crypto.notes import NOTE_BYTES_MAX, SIGNATURES_MAX, Note, signers_of
from toolcassette.errors import SignatureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolcassette.crypto.checkpoint import Checkpoint

__all__ = [
    "KEYS_VARIABLE",
    "REQUIRE_VARIABLE",
    "Trust",
    "keys_in",
    "keys_of",
    "read_signer",
    "required_number",
    "trust_of",
]

KEYS_VARIABLE: Final = "TOOLCASSETTE_TRUSTED_KEYS"  # verifier keys, or files of them; white space or commas between
REQUIRE_VARIABLE: Final = "TOOLCASSETTE_REQUIRE_SIGNATURE"  # how many of them must have signed; 0: none need
_NUMBERS: Final = {"": 0, "false": 0, "no": 0, "off": 0, "true": 1, "yes": 1, "on": 1}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trust:
    """The trusted ``keys``, how many of them must have signed where one has, and whether one must have."""

    keys: tuple[VerifierKey, ...] = ()
    threshold: int = 1
    required: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.threshold <= SIGNATURES_MAX:
            raise ValueError(f"threshold is a number of keys, 1 to {SIGNATURES_MAX}")
        distinct = len({key.public for key in self.keys})
        if distinct < self.threshold and (self.required or distinct):
            raise SignatureError("key_missing")

    def judge(self, data: bytes | None, checkpoint: Checkpoint) -> tuple[str, ...]:
        """The names of the trusted keys that signed, sorted; none where there is no signature, or nobody is trusted.

        ``data`` is the signature file, None where there is none. Raises ``SignatureError``.
        """
        if data is None:
            self.require()
            return ()
        note = Note.parse(data)
        if note.text != checkpoint.text:
            raise SignatureError("signature_stale")
        return self.signers(note)

    def require(self) -> None:
        """Say that there is no signature. Raises ``SignatureError`` where one is required."""
        if self.required:
            raise SignatureError("signature_missing")

    def signers(self, note: Note) -> tuple[str, ...]:
        """As ``judge``, of a note whose text was looked at."""
        if not self.keys:
            return ()
        found = signers_of(note, self.keys)
        if not found:
            raise SignatureError("signature_unknown")
        if len(found) < self.threshold:
            raise SignatureError("signature_threshold")
        return tuple(sorted(found.values()))


def trust_of(
    keys: Iterable[str] = (),
    *,
    required: bool = False,
    threshold: int = 1,
    environ: Mapping[str, str] | None = None,
) -> Trust:
    """What code or configuration says, under what the environment says. A threshold above 1 requires a signature.

    ``keys`` are verifier keys or files of them. Raises ``SignatureError`` for a key that is none, or where fewer are
    trusted than must have signed; ``ValueError`` for a number that is none.
    """
    env = os.environ if environ is None else environ
    named, least = env.get(KEYS_VARIABLE, ""), required_number(env.get(REQUIRE_VARIABLE, ""))
    chosen = named.replace(",", " ").split() if named.strip() or least else keys
    return Trust(
        keys=keys_of(chosen),
        threshold=max(threshold, least, 1) if threshold >= 1 else threshold,
        required=required or threshold > 1 or least > 0,
    )


def required_number(text: str) -> int:
    """How many keys must have signed, in the words of a configuration: a number, yes or no. Raises ``ValueError``."""
    said = text.strip().lower()
    if said in _NUMBERS:
        return _NUMBERS[said]
    if not (said.isascii() and said.isdigit()):
        raise ValueError("whether a signature is required is told by a number of keys, or 0")
    return int(said)


def keys_of(entries: Iterable[str]) -> tuple[VerifierKey, ...]:
    """The keys of a configuration: each entry is one, or the path of a file of them. Raises ``SignatureError``."""
    return tuple(dict.fromkeys(key for entry in entries for key in _keys(entry)))


def _keys(entry: str) -> Iterator[VerifierKey]:
    if looks_like_key(entry):
        yield VerifierKey.parse(entry)
        return
    yield from keys_in(_read(entry))


def read_signer(path: str) -> Signer:
    """The private key in a file. Raises ``SignatureError``."""
    return Signer.parse(_read(path))


def _read(path: str) -> bytes:
    """A file of keys, as far as one can be long."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a path as it was given
            return file.read(NOTE_BYTES_MAX + 1)
    except (OSError, ValueError):
        raise SignatureError("key_unreadable") from None


def keys_in(data: bytes) -> Iterator[VerifierKey]:
    """The keys in a file, one a line; empty lines and those that begin with ``#`` do not count.

    Raises ``SignatureError`` ``key_junk`` for a line that is none, and for a file without one.
    """
    try:
        lines = [line.strip() for line in data.decode("utf-8").splitlines()]
    except UnicodeDecodeError:
        raise SignatureError("key_junk") from None
    found = [VerifierKey.parse(line) for line in lines if line and not line.startswith("#")]
    if not found or len(data) > NOTE_BYTES_MAX:
        raise SignatureError("key_junk")
    yield from found
