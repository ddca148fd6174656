"""The hash chain: what a frame's own hash covers, and how a frame follows the one before (FORMAT.md section 3).

Rule: one object does both directions. ``link`` makes a line out of a body, ``check`` follows a line that was read.

A line is ``{"seq":N,...,"prev":"<64 hex>","hash":"<64 hex>"}`` and LF. ``hash`` is SHA-256 over one zero byte and all
up to and with the quote that closes ``prev``; so no JSON parser is needed to verify, each frame hashes alone, and a
frame hash is an RFC 6962 leaf hash. ``prev`` is the hash before it, 64 zeros in the header.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from toolcassette.errors import FormatError
from toolcassette.format.frames import GENESIS

__all__ = [
    "TRAILER_BYTES",
    "Chain",
    "frame_hash",
    "has_trailer",
    "leaf_hash",
    "linked_tails",
    "own_fault",
    "prev_and_hash",
]

_HASH_PART: Final = 76  # ,"hash":"<64>"} LF
_LINK_PART: Final = 73  # ,"prev":"<64>
TRAILER_BYTES: Final = 150  # ,"prev":"<64>" and the hash part

_TRAILER = re.compile(rb',"prev":"[0-9a-f]{64}","hash":"[0-9a-f]{64}"\}\n\Z')
_LEAF = hashlib.sha256(b"\0")


def leaf_hash(*covered: bytes | memoryview) -> str:
    """Lower-case hex of SHA-256 over 0x00 and the parts of ``covered`` (RFC 6962 section 2.1)."""
    digest = _LEAF.copy()
    for part in covered:
        digest.update(part)
    return digest.hexdigest()


def prev_and_hash(line: bytes) -> tuple[str, str]:
    """The trailer's two members, by position. The line's own bytes must have been checked."""
    return line[-141:-77].decode("ascii"), line[-67:-3].decode("ascii")


def has_trailer(line: bytes) -> bool:
    """True if a line, with its LF, or the end of one, ends as every line does."""
    return _TRAILER.match(line, max(len(line) - TRAILER_BYTES, 0)) is not None


def linked_tails(prev: str, hashes: list[str]) -> bytes:
    """The trailers, without LF, of lines that have these hashes and follow one another, the first one ``prev``."""
    links = [f'{digest}"}},"prev":"{digest}' for digest in hashes]
    return '","hash":"'.join([f',"prev":"{prev}', *links])[:-_LINK_PART].encode("ascii")


def own_fault(line: bytes) -> str | None:
    """What is wrong with a line's own bytes (``trailer`` or ``hash``), or None. ``line`` has its LF."""
    if not has_trailer(line):
        return "trailer"
    if leaf_hash(memoryview(line)[:-_HASH_PART]).encode("ascii") != line[-67:-3]:
        return "hash"
    return None


def frame_hash(line: bytes) -> bytes:
    """The hash of a line, 32 bytes. Raises ``FormatError`` ``trailer`` or ``hash`` where its own bytes are wrong."""
    fault = own_fault(line)
    if fault is not None:
        raise FormatError(fault)
    return bytes.fromhex(line[-67:-3].decode("ascii"))


class Chain:
    """Where the next frame goes: its ``seq`` and the ``head`` it must follow."""

    __slots__ = ("head", "seq")

    def __init__(self) -> None:
        self.seq = 0
        self.head = GENESIS

    def link(self, body: bytes) -> bytes:
        """The finished line of a frame body (JSON without its closing brace), and one step on."""
        covered = body + f',"prev":"{self.head}"'.encode("ascii")
        digest = _LEAF.copy()
        digest.update(covered)
        self.head = head = digest.hexdigest()
        self.seq += 1
        return covered + f',"hash":"{head}"}}\n'.encode("ascii")

    def check(self, line: bytes) -> None:
        """One step on over a line whose own bytes were checked. Raises ``FormatError`` ``link``; then nothing moved."""
        prev, head = prev_and_hash(line)
        if prev != self.head:
            raise FormatError("link", frame=self.seq)
        self.head = head
        self.seq += 1

    def jump(self, steps: int, head: str) -> None:
        """That many steps on, over lines that were checked to link; ``head`` is the hash of the last."""
        self.seq += steps
        self.head = head
