"""Frames of calls as an encrypted cassette has them, and the seam at which they are sealed (FORMAT.md section 14).

    {"seq":1,"kind":"call/start","call":0,"boundary":"tool","path":[],"tool":"t","at":10,"args":{}     a body
    {"seq":1,"kind":"call/start","call":0,"enc":"<base64>"                                             the same, sealed

Theory. A body has a prefix that stays in the clear (number, kind, call, chunk, outcome) and the rest, which as a JSON
object of its own is what is encrypted. So whoever writes makes plain bodies and seals them last, whoever reads opens
lines first and goes on as with plain ones, and neither grammar nor codec knows of keys.

Rule: pure. Keys are behind ``Sealer`` and ``Opener``; here is only which bytes they are given. A sealed head has one
spelling, so a pattern reads it, and what the pattern does not take is refused.
"""

from __future__ import annotations

import binascii
import re
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import msgspec
from msgspec import UNSET, Raw

from toolcassette.errors import FormatError
from toolcassette.format.chain import TRAILER_BYTES
from toolcassette.format.frames import Envelope, SealedChunk, SealedResult, SealedStart

if TYPE_CHECKING:
    from toolcassette.format.frames import Frame

__all__ = [
    "RECIPIENTS_MAX",
    "Opener",
    "Sealer",
    "envelope_of",
    "is_sealed",
    "opened_body",
    "sealed_body",
    "sealed_frame",
    "sealed_head",
    "sealed_size",
]

RECIPIENTS_MAX: Final = 16  # a reader tries each of them
_STANZAS: Final = frozenset({1, 2, 4, 8, 16})  # how many there may be
_STANZA_BYTES: Final = 80  # 32 of the key that was made for it, 32 of the data key, 16 of the tag
_COMMIT_BYTES: Final = 32
_TAG_BYTES: Final = 16
_COUNT_MAX: Final = 2**53 - 1

_NUMBER: Final = rb"(0|[1-9][0-9]{0,15})"
_PREFIX: Final = re.compile(
    rb'\{"seq":%b,"kind":"call/(?:start","call":%b|chunk","call":%b,"chunk":%b|'
    rb'result","call":%b,"outcome":"(ok|error|cancelled|left_early)"(?:,"chunks":%b)?)(?=,)' % ((_NUMBER,) * 6)
)
_ENC: Final = b',"enc":"'


class Sealer(Protocol):
    """The key of one cassette that is being written. Each number of a frame is sealed once, and in their order."""

    def envelope(self, prefix: bytes, private: bytes) -> bytes:
        """What ``enc`` of the header holds, as JSON. ``prefix``: the header before it; ``private`` is sealed."""
        ...

    def bind(self, header_hash: bytes) -> None:
        """All that is sealed from now on belongs below this header."""
        ...

    def seal(self, seq: int, prefix: bytes, data: bytes) -> bytes:
        """``data`` encrypted, as base64; it opens only in the frame ``seq`` and behind this prefix."""
        ...

    def open(self, seq: int, prefix: bytes, text: bytes) -> bytes:
        """As ``Opener.open``, of what was sealed here."""
        ...


class Opener(Protocol):
    """The key of one cassette that is read."""

    def open(self, seq: int, prefix: bytes, text: bytes) -> bytes:
        """What some base64 was sealed from. Raises ``EncryptionError`` ``forged`` where it was not sealed here."""
        ...


def _prefix_end(line: bytes) -> int:
    """Where the prefix of a frame of a call ends; -1 of any other."""
    match = _PREFIX.match(line)
    return -1 if match is None else match.end()


def is_sealed(line: bytes) -> bool:
    """True if a line begins as a sealed frame does."""
    return line.startswith(_ENC, max(_prefix_end(line), 0))


def sealed_head(line: bytes) -> Frame | None:
    """The frame of a sealed line without ``enc``; None for any other line."""
    match = _PREFIX.match(line)
    if match is None or not line.startswith(_ENC, match.end()):
        return None
    seq, started, chunked, chunk, ended, outcome, chunks = match.groups()
    if any(len(number) > 15 and int(number) > _COUNT_MAX for number in match.groups() if number and number.isdigit()):
        return None
    if started is not None:
        return SealedStart(seq=int(seq), call=int(started))
    if chunk is not None:
        return SealedChunk(seq=int(seq), call=int(chunked), chunk=int(chunk))
    return SealedResult(
        seq=int(seq),
        call=int(ended),
        outcome=cast("Any", outcome.decode("ascii")),
        chunks=UNSET if chunks is None else int(chunks),
    )


def sealed_frame(line: bytes) -> Frame:
    """The whole frame of a sealed line. Raises ``FormatError`` ``bulk`` where ``enc`` is no canonical base64."""
    frame = sealed_head(line)
    if frame is None:
        raise FormatError("head")
    text = _text(line, _prefix_end(line))
    if _bytes(text, _TAG_BYTES + 2) is None:
        raise FormatError("bulk")
    return msgspec.structs.replace(frame, enc=Raw(b'"%b"' % text))


def _text(line: bytes, prefix_end: int) -> bytes:
    """What stands in ``enc`` of a sealed line. Raises ``FormatError`` ``bulk`` where it is not one string alone."""
    end = len(line) - TRAILER_BYTES - 1
    text = line[prefix_end + len(_ENC) : end]
    if line[end : end + 1] != b'"' or b'"' in text:
        raise FormatError("bulk")
    return text


def _bytes(text: bytes, at_least: int, at_most: int | None = None) -> bytes | None:
    """The bytes of strict base64, the one spelling that they have; None for any other text."""
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        return None
    fits = at_least <= len(data) and (at_most is None or len(data) <= at_most)
    return data if fits and binascii.b2a_base64(data, newline=False) == text else None


def sealed_size(body: bytes) -> int:
    """How long a body will be once it is sealed."""
    prefix = _prefix_end(body)
    return prefix + len(_ENC) + 4 * ((len(body) - prefix + 1 + _TAG_BYTES + 2) // 3) + 1


def sealed_body(body: bytes, seq: int, sealer: Sealer) -> bytes:
    """The body of a frame of a call, sealed. A frame of any other kind stays as it is."""
    match = _PREFIX.match(body)
    if match is None:
        return body
    prefix = match[0]
    return b'%b,"enc":"%b"' % (prefix, sealer.seal(seq, prefix, b"{%b}" % body[match.end() + 1 :]))


def opened_body(line: bytes, opener: Opener) -> bytes:
    """The body that a sealed line was made of; of a line that is not sealed, what stands before its trailer.

    It is as its writer made it, and proven to be canonical only where it is decoded. Raises ``EncryptionError``
    ``forged``, ``FormatError`` ``bulk``.
    """
    match = _PREFIX.match(line)
    if match is None or not line.startswith(_ENC, match.end()):
        return line[:-TRAILER_BYTES]
    prefix = line[: match.end()]
    data = opener.open(int(match[1]), prefix, _text(line, match.end()))
    if data[:1] != b"{" or data[-1:] != b"}" or b"\n" in data:
        raise FormatError("bulk")
    return b"%b,%b" % (prefix, data[1:-1])


_decode_envelope = msgspec.json.Decoder(Envelope).decode
_encode = msgspec.json.Encoder().encode


def envelope_of(data: bytes) -> Envelope | None:
    """The envelope that the JSON of a header's ``enc`` is, if it is one in its one spelling; else None."""
    try:
        found = _decode_envelope(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    sizes = (
        (found.commit, _COMMIT_BYTES, _COMMIT_BYTES),
        (found.sealed, _TAG_BYTES + 2, None),
        *((text, _STANZA_BYTES, _STANZA_BYTES) for text in found.to),
    )
    whole = all(text.isascii() and _bytes(text.encode("ascii"), low, high) is not None for text, low, high in sizes)
    return found if whole and len(found.to) in _STANZAS and _encode(found) == data else None
