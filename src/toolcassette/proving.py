"""One call of a signed cassette, shown without the rest: ``prove`` makes the proof, ``check_proof`` believes it or not.

Rule: what is proven is that the signers signed a cassette which holds this very call with this very end; not that the
tool said so, and nothing of the calls around it but how many frames there are.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from toolcassette.crypto import (
    CallProof,
    Checkpoint,
    Note,
    ProvenFrame,
    Tree,
    check_frames,
    inclusion_proofs,
    read_signature,
    trust_of,
)
from toolcassette.engine import read
from toolcassette.errors import EncryptionError, SignatureError
from toolcassette.format import frame_number, recorded_call
from toolcassette.stores import FileStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcassette.crypto import Trust
    from toolcassette.format import RecordedCall, Survey
    from toolcassette.stores import Store

__all__ = ["ProvenCall", "check_proof", "prove", "proven_call"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProvenCall:
    """A call that a proof has proven.

    ``call`` is the call, ``number`` its place in the cassette with the id ``cassette``, which has ``frames`` frames;
    ``signers`` are the names of the trusted keys that signed it.
    """

    call: RecordedCall
    number: int
    cassette: str
    frames: int
    signers: tuple[str, ...]


class _Leaves:
    """The hash of every frame, in order; 32 bytes each."""

    def __init__(self) -> None:
        self.hashes: list[bytes] = []

    def take_run(self, found: Survey, accepted: int, offset: int) -> None:
        self.hashes.extend(map(bytes.fromhex, found.hashes[:accepted]))


def prove(file: str | os.PathLike[str], call: int, *, store: Store | None = None) -> bytes:
    """A proof of the call of this number (0-based), for people who have neither the cassette nor a reason to trust us.

    It holds the call's own frames, values and all, and the signature of the cassette. Raises ``IndexError`` where there
    is no such call, ``FormatError`` for any defect, ``SignatureError`` where the signature is missing or not of this
    cassette (whose it is, is for ``check_proof`` to say), ``EncryptionError`` for an encrypted one.
    """
    place, name = store or FileStore(), os.fspath(file)
    data = read_signature(place, name)
    leaves = _Leaves()
    cassette = read(place, name, watch=leaves)
    try:
        if cassette.encrypted:
            raise EncryptionError("proof")
        if not 0 <= call < len(cassette):
            raise IndexError("no call of this number")
        if data is None:
            raise SignatureError("signature_missing")
        note = Note.parse(data)
        root = Tree(leaves.hashes).root()
        if note.text != Checkpoint(cassette.header.cassette, len(leaves.hashes), root).text:
            raise SignatureError("signature_stale")
        lines = cassette.lines(call)
        paths = inclusion_proofs(leaves.hashes, [frame_number(line) for line in lines])
        frames = tuple(ProvenFrame(line, tuple(path)) for line, path in zip(lines, paths, strict=True))
        return CallProof(note, frames).to_bytes()
    finally:
        cassette.close()


def check_proof(data: bytes, *, trusted_keys: Iterable[str] = (), threshold: int = 1) -> ProvenCall:
    """The call that a proof proves. Raises ``SignatureError`` where it proves none to who trusts these keys.

    ``trusted_keys`` are verifier keys, or files of them; where the environment names keys, those alone count.
    """
    return proven_call(data, trust_of(trusted_keys, required=True, threshold=threshold))


def proven_call(data: bytes, trust: Trust) -> ProvenCall:
    """As ``check_proof``, for a trust that was made already."""
    proven = check_frames(CallProof.parse(data), trust)
    start, *chunks, end = proven.lines
    return ProvenCall(
        call=recorded_call(start, chunks, end),
        number=proven.number,
        cassette=proven.checkpoint.cassette,
        frames=proven.checkpoint.frames,
        signers=proven.signers,
    )
