"""What is signed of a cassette: its id, the number of its frames, the root of the tree over their hashes.

    toolcassette/1/00112233445566778899aabbccddeeff        origin: this format, this cassette
    4                                                      frames
    Tmx...=                                                base64 of the RFC 6962 root; leaves are the frame hashes

A C2SP tlog checkpoint, and no extension line: every reader of such notes can check it, and witnesses can co-sign it.

Rule: one text for one cassette; whoever has the cassette can make the text and compare.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from toolcassette.crypto.keys import decoded
from toolcassette.crypto.merkle import HASH_BYTES, Tree
from toolcassette.format import FORMAT

if TYPE_CHECKING:
    from toolcassette.format import Survey

__all__ = ["Checkpoint", "FrameTree"]

_TEXT: Final = re.compile(rf"{re.escape(FORMAT)}/([0-9a-f]{{32}})\n([1-9][0-9]{{0,15}})\n([A-Za-z0-9+/=]+)\n\Z")


class Checkpoint(NamedTuple):
    """The id of a cassette (32 hex digits), its frames, and their root."""

    cassette: str
    frames: int
    root: bytes

    @property
    def text(self) -> str:
        """What is signed."""
        return f"{FORMAT}/{self.cassette}\n{self.frames}\n{base64.b64encode(self.root).decode('ascii')}\n"

    @classmethod
    def parse(cls, text: str) -> Checkpoint | None:
        """The checkpoint of a text; None for any other text."""
        found = _TEXT.match(text)
        root = decoded(found[3]) if found else None
        if found is None or root is None or len(root) != HASH_BYTES:
            return None
        return cls(found[1], int(found[2]), root)


class FrameTree:
    """The tree over the frames that a ``Reader`` takes; give it as ``runs``."""

    __slots__ = ("tree",)

    def __init__(self) -> None:
        self.tree = Tree()

    def take_run(self, found: Survey, accepted: int, offset: int) -> None:
        """Take the first frames of a survey (see ``RunIndex``)."""
        self.tree.extend(map(bytes.fromhex, found.hashes[:accepted]))
