"""One call of a signed cassette, proven without the rest of it.

    {"format":"toolcassette-proof/1","checkpoint":"<the signed note>",
     "frames":[{"line":"<a frame>","path":["<base64>",...]},...]}

Theory. The frames of the call (start, chunks, result) are leaves of the tree whose root is signed. Each comes with the
nodes that lead from it to that root, and with nothing else of the cassette. That the cassette holds this call once,
with these chunks and this end, follows from what a signer looks at before it signs: the whole grammar, and every value.

Rule: nothing of a proof is believed before it hangs under a signed root; keys come from configuration. What is handed
out is decoded from the very bytes that were proven.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolcassette.crypto.checkpoint import Checkpoint
from toolcassette.crypto.keys import decoded
from toolcassette.crypto.merkle import HASH_BYTES, root_by_proof
from toolcassette.crypto.notes import Note
from toolcassette.errors import FormatError, SignatureError
from toolcassette.format import LINE_BYTES_CEILING, CallChunk, CallResult, CallStart, decode_any, frame_hash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcassette.crypto.trust import Trust

__all__ = ["PROOF_BYTES_MAX", "CallProof", "Proven", "ProvenFrame", "check_frames"]

PROOF_BYTES_MAX: Final = 4 * LINE_BYTES_CEILING  # a start and a result of the longest, with room for escapes
_FORMAT: Final = "toolcassette-proof/1"
_PATH_MAX: Final = 64  # nodes: no tree is higher


class ProvenFrame(NamedTuple):
    """One frame as its line (with LF), and the nodes that lead from its hash to the root, the lowest first."""

    line: bytes
    path: tuple[bytes, ...]


class CallProof(NamedTuple):
    """A proof that was read, of which nothing is known yet."""

    note: Note
    frames: tuple[ProvenFrame, ...]

    @classmethod
    def parse(cls, data: bytes) -> CallProof:
        """Raises ``SignatureError``: ``proof_junk`` for what is none, ``signature_junk`` for its checkpoint."""
        if len(data) > PROOF_BYTES_MAX:
            raise SignatureError("proof_junk")
        try:
            found = json.loads(data)
            if set(found) != {"format", "checkpoint", "frames"} or found["format"] != _FORMAT:
                raise ValueError
            frames = tuple(_frame(**item) for item in found["frames"])
            checkpoint = found["checkpoint"].encode("utf-8")
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            raise SignatureError("proof_junk") from None
        return cls(Note.parse(checkpoint), frames)

    def to_bytes(self) -> bytes:
        """The proof as it is handed on: one line of JSON, ASCII."""
        frames = [
            {
                "line": frame.line.decode("utf-8").removesuffix("\n"),
                "path": [base64.b64encode(node).decode("ascii") for node in frame.path],
            }
            for frame in self.frames
        ]
        found = {"format": _FORMAT, "checkpoint": self.note.to_bytes().decode("utf-8"), "frames": frames}
        return json.dumps(found, separators=(",", ":")).encode("ascii") + b"\n"


def _frame(*, line: str, path: Sequence[str]) -> ProvenFrame:
    """Raises ``ValueError`` or ``TypeError``."""
    nodes = [decoded(word) for word in path]
    whole = [node for node in nodes if node is not None and len(node) == HASH_BYTES]
    if len(whole) != len(nodes) or len(nodes) > _PATH_MAX or "\n" in line:
        raise ValueError
    return ProvenFrame(line.encode("utf-8") + b"\n", tuple(whole))


class Proven(NamedTuple):
    """What a proof comes to: the checkpoint, who signed it, the number of the call, its start, chunks and result."""

    checkpoint: Checkpoint
    signers: tuple[str, ...]
    number: int
    lines: tuple[bytes, ...]


def check_frames(proof: CallProof, trust: Trust) -> Proven:
    """What a proof proves to somebody who trusts these keys.

    Raises ``SignatureError``: those of a signature, ``key_missing`` where nobody is trusted, ``proof_path`` where a
    frame is not in the signed cassette, ``proof_frames`` where its frames are not one call, whole.
    """
    if not trust.keys:
        raise SignatureError("key_missing")
    checkpoint = Checkpoint.parse(proof.note.text)
    if checkpoint is None:
        raise SignatureError("signature_junk")
    signers = trust.signers(proof.note)
    try:
        digests = [frame_hash(frame.line) for frame in proof.frames]
        found = [decode_any(frame.line) for frame in proof.frames]
    except FormatError:
        raise SignatureError("proof_frames") from None
    for frame, digest, head in zip(proof.frames, digests, found, strict=True):
        if root_by_proof(digest, head.seq, checkpoint.frames, frame.path) != checkpoint.root:
            raise SignatureError("proof_path")
    return Proven(checkpoint, signers, _one_call(found), tuple(frame.line for frame in proof.frames))


def _one_call(found: Sequence[Any]) -> int:
    """The number of the call that some frames are, start to result. Raises ``SignatureError`` ``proof_frames``."""
    start, *chunks, end = found if len(found) > 1 else (None, None)
    if not isinstance(start, CallStart) or not isinstance(end, CallResult):
        raise SignatureError("proof_frames")
    numbered = all(isinstance(chunk, CallChunk) and chunk.chunk == number for number, chunk in enumerate(chunks))
    counted = end.chunks == len(chunks) if isinstance(end.chunks, int) else not chunks
    if not numbered or not counted or {frame.call for frame in found} != {start.call}:
        raise SignatureError("proof_frames")
    return start.call
