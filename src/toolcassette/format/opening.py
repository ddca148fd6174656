"""An encrypted cassette, opened: its lines as they would be in the clear (FORMAT.md section 14).

Theory. What was verified is the ciphertext. Opened, a line has the body that was sealed and the trailer that it has in
the file, so its hash is that of what is stored, and all that is done with lines in the clear can be done with it.

Rule: before the first line is handed out every one of them was opened, and what only the clear heads can show was
looked at. What cannot be opened by the key that the header commits to was not sealed by the recorder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw

from toolcassette.errors import FormatError
from toolcassette.format.canonical import decode_tree, encode_tree
from toolcassette.format.chain import TRAILER_BYTES, leaf_hash
from toolcassette.format.codec import decode_head, encode_body
from toolcassette.format.frames import ENCRYPTION, GENESIS, CallStart, Header
from toolcassette.format.grammar import Grammar
from toolcassette.format.sealing import envelope_of, opened_body, sealed_head

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcassette.format.frames import Envelope
    from toolcassette.format.index import CassetteIndex, Lines
    from toolcassette.format.sealing import Opener, Sealer

__all__ = [
    "OpenedLines",
    "header_hash",
    "open_line",
    "opened",
    "seal_header",
    "sealed_in",
]


def sealed_in(header: Header) -> Envelope:
    """What ``enc`` of an encrypted header holds. Raises ``FormatError`` ``members`` for any other header."""
    found = envelope_of(bytes(header.enc)) if isinstance(header.enc, Raw) else None
    if found is None:
        raise FormatError("members", frame=0)
    return found


def _header_prefix(header: Header) -> bytes:
    """What of an encrypted header stands before ``enc``: it is what its sealed members are bound to."""
    return encode_body(msgspec.structs.replace(header, enc=UNSET, origin=UNSET))


def header_hash(header: Header) -> bytes:
    """The hash of the header's frame, 32 bytes."""
    return bytes.fromhex(leaf_hash(encode_body(header), f',"prev":"{GENESIS}"'.encode("ascii")))


def seal_header(header: Header, sealer: Sealer) -> Header:
    """The header with what names tools and rules sealed."""
    private = encode_tree({"include": list(header.include), "rules": list(header.rules)}, sort=False)
    clear = msgspec.structs.replace(header, requires=[ENCRYPTION], include=[], rules=[])
    return msgspec.structs.replace(clear, enc=Raw(sealer.envelope(_header_prefix(clear), private)))


def _open_header(header: Header, opener: Opener) -> Header:
    """The header as it would be in the clear. Raises ``EncryptionError`` ``forged``, ``FormatError`` ``bulk``."""
    private: Any = decode_tree(opener.open(0, _header_prefix(header), sealed_in(header).sealed.encode("ascii")))
    texts = list(private.values()) if type(private) is dict else []
    fits = list(private) == ["include", "rules"] if texts else False
    if not fits or not all(type(text) is list and all(type(item) is str and item for item in text) for text in texts):
        raise FormatError("bulk", frame=0)
    return msgspec.structs.replace(header, requires=[], include=private["include"], rules=private["rules"], enc=UNSET)


def open_line(line: bytes, opener: Opener) -> bytes:
    """A line as it would be in the clear, with the trailer that it has. Raises as ``opened``."""
    if sealed_head(line) is None:
        head = decode_head(line)
        if not isinstance(head, Header):
            return line
        return encode_body(_open_header(head, opener)) + line[-TRAILER_BYTES:]
    return opened_body(line, opener) + line[-TRAILER_BYTES:]


class OpenedLines:
    """Lines that are opened when they are used."""

    __slots__ = ("_lines", "_opener")

    def __init__(self, lines: Lines, opener: Opener) -> None:
        self._lines = lines
        self._opener = opener

    def start(self, call: int) -> bytes:
        """See ``Lines``."""
        return open_line(self._lines.start(call), self._opener)

    def end(self, call: int) -> bytes:
        """See ``Lines``."""
        return open_line(self._lines.end(call), self._opener)

    def chunk(self, call: int, chunk: int) -> bytes:
        """See ``Lines``."""
        return open_line(self._lines.chunk(call, chunk), self._opener)

    def whole(self) -> bytes:
        """See ``Lines``."""
        stored = self._lines.whole().split(b"\n")[:-1]
        return b"".join([open_line(line + b"\n", self._opener) for line in stored])


def opened(lines: Lines, index: CassetteIndex, header: Header, opener: Opener) -> tuple[OpenedLines, Header]:
    """The lines of a verified cassette and its header, opened; ``index`` learns which call is of which tool.

    Raises ``EncryptionError`` ``forged`` for a frame that was not sealed under this header by this key; ``FormatError``
    ``head``, ``members``, ``nested`` for one whose clear head would be refused.
    """
    found, clear = OpenedLines(lines, opener), _open_header(header, opener)
    grammar = Grammar(calls_max=len(index.starts))
    grammar.step(clear)
    for call in range(len(index.starts)):
        for line in _lines_of(found, index, call):
            frame = decode_head(line)
            if isinstance(frame, CallStart):
                try:
                    grammar.begin(frame.path, frame.tool)
                except FormatError as error:
                    raise FormatError(error.reason, frame=frame.seq) from None
                index.name_call((tuple(frame.path), frame.tool, frame.boundary), call)
    return found, clear


def _lines_of(lines: OpenedLines, index: CassetteIndex, call: int) -> Iterator[bytes]:
    yield lines.start(call)
    yield from (lines.chunk(call, chunk) for chunk in range(len(index.chunks.get(call, ()))))
    yield lines.end(call)
