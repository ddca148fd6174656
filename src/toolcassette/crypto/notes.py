"""C2SP signed notes: a text, and below it lines that sign it.

    toolcassette/1/00112233445566778899aabbccddeeff
    4
    Tmx...=
    <empty line>
    — ci.example/recorder cxnMZb...=              an em dash, a name, base64 of key id and signature

Rule: what is signed is the text, byte for byte, with its last LF. Lines of unknown keys are ignored; a line of a
trusted key that does not verify refuses the whole note; a note that nobody trusted has signed is refused. What is
counted is keys, not lines.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final, NamedTuple

from toolcassette.crypto.ed25519 import SIGNATURE_BYTES, is_signed_by
from toolcassette.crypto.keys import decoded
from toolcassette.errors import SignatureError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcassette.crypto.keys import Signer, VerifierKey

__all__ = ["NOTE_BYTES_MAX", "SIGNATURES_MAX", "Note", "signed", "signers_of"]

NOTE_BYTES_MAX: Final = 64 * 1024  # some hundred times what a note of ours needs
SIGNATURES_MAX: Final = 16  # what every reader of such notes takes
_SPLIT: Final = "\n\n"
_MARK: Final = "\u2014 "
_ID_BYTES: Final = 4


class Line(NamedTuple):
    """One signature: whose it says it is, and its bytes."""

    name: str
    key_id: bytes
    signature: bytes

    def __str__(self) -> str:
        return f"{_MARK}{self.name} {base64.b64encode(self.key_id + self.signature).decode('ascii')}\n"


class Note(NamedTuple):
    """A text with its signatures, none of which has been verified. ``text`` ends in LF."""

    text: str
    lines: tuple[Line, ...]

    @classmethod
    def parse(cls, data: bytes) -> Note:
        """The note in some bytes. Raises ``SignatureError`` ``signature_junk`` for what is none."""
        try:
            whole = data.decode("utf-8")
        except UnicodeDecodeError:
            raise SignatureError("signature_junk") from None
        text, split, below = whole.rpartition(_SPLIT)
        lines = below.split("\n")
        control = any(c < " " and c != "\n" for c in whole)
        if len(data) > NOTE_BYTES_MAX or control or not split or not text or lines.pop() or not lines:
            raise SignatureError("signature_junk")
        if len(lines) > SIGNATURES_MAX:
            raise SignatureError("signature_junk")
        return cls(text + "\n", tuple(map(_line, lines)))

    def to_bytes(self) -> bytes:
        """The note as it is stored."""
        return (self.text + "\n" + "".join(map(str, self.lines))).encode("utf-8")


def _line(text: str) -> Line:
    name, _, rest = text.removeprefix(_MARK).partition(" ")
    data = decoded(rest)
    if not text.startswith(_MARK) or not name or "+" in name or data is None or len(data) <= _ID_BYTES:
        raise SignatureError("signature_junk")
    return Line(name, data[:_ID_BYTES], data[_ID_BYTES:])


def signed(note: Note, signer: Signer) -> Note:
    """The note with a line of this signer, in the place of a wrong one in its name; the same note if it has that line.

    Raises ``SignatureError`` ``signature_full`` where no more lines fit.
    """
    key = signer.verifier
    line = Line(key.name, key.id, signer.sign(note.text.encode("utf-8")))
    if line in note.lines:
        return note
    others = tuple(other for other in note.lines if (other.name, other.key_id) != (line.name, line.key_id))
    if len(others) == SIGNATURES_MAX:
        raise SignatureError("signature_full")
    return Note(note.text, (*others, line))


def signers_of(note: Note, trusted: Iterable[VerifierKey]) -> dict[bytes, str]:
    """The trusted keys that signed a note: names by public key, so that one key counts once, whatever its names.

    Raises ``SignatureError`` ``signature_wrong`` where a line that names a trusted key was not made by it.
    """
    found: dict[bytes, str] = {}
    message = note.text.encode("utf-8")
    known = list(trusted)
    for line in note.lines:
        named = [key for key in known if (key.name, key.id) == (line.name, line.key_id)]
        made = [key for key in named if _is_by(key, line, message)]
        if named and not made:
            raise SignatureError("signature_wrong", key=line.name)
        for key in made:
            found.setdefault(key.public, key.name)
    return found


def _is_by(key: VerifierKey, line: Line, message: bytes) -> bool:
    return len(line.signature) == SIGNATURE_BYTES and is_signed_by(key.public, line.signature, message)
