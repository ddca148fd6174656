"""What a session has to do with signatures: a replay that asks for one, and a recorder that makes one.

Rule: the bytes that are served are the bytes that were judged: the root is made of the very frames that are read. A
recorder signs only after it has published, and only what it wrote itself.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Final

from toolcassette.crypto import Checkpoint, FrameTree, Trust, read_signature, sign
from toolcassette.engine.publication import read
from toolcassette.errors import CassetteExists, SignatureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcassette.crypto import Signer
    from toolcassette.format import Cassette
    from toolcassette.stores import Store

__all__ = ["read_proven", "refuse_signature", "sign_published", "stale_note"]

_UNSIGNED_NOTE: Final = (
    "the cassette is encrypted, and no trusted key signed it: whoever knows the recipients could have made it; "
    "sign it, and name the key in trusted_keys"
)
_STALE_NOTE: Final = "the signature beside the cassette is of the one that was replaced: have the new one signed"


def read_proven(
    store: Store,
    name: str,
    *,
    calls_max: int,
    trust: Trust,
    expect_head: str | None,
    identities: Sequence[str] = (),
) -> Cassette:
    """The verified cassette, if it is the one that is wanted. Raises ``FormatError``, ``SignatureError``.

    Its signature is looked at where keys are trusted, or one is required. An encrypted one is opened as ``read`` does,
    and warned of where no trusted key signed it: whoever has the recipients' public keys could have made it.
    """
    judged = trust.required or bool(trust.keys)
    frames = FrameTree() if judged else None
    data = read_signature(store, name) if judged else None
    cassette = read(store, name, calls_max=calls_max, watch=frames, identities=identities)
    signers: tuple[str, ...] = ()
    try:
        if expect_head not in (None, cassette.head):
            raise SignatureError("head_differs")
        if frames is not None:
            tree = frames.tree
            signers = trust.judge(data, Checkpoint(cassette.header.cassette, tree.size, tree.root()))
        if cassette.encrypted and not signers:
            warnings.warn(_UNSIGNED_NOTE, stacklevel=2)
    except BaseException:
        cassette.close()
        raise
    return cassette


def refuse_signature(store: Store, name: str) -> None:
    """Raise ``CassetteExists`` where a signature stands without its cassette: the new one would seem to be its own."""
    if read_signature(store, name) is not None:
        raise CassetteExists("signature")


def sign_published(store: Store, name: str, signer: Signer, outcome: str, head: str | None = None) -> None:
    """Sign what was just published. ``outcome`` is that of ``publish``; ``head`` is the last hash that was written.

    A cassette that stayed as it was keeps a signature that is its own as it is. Raises as ``crypto.sign``.
    """
    unchanged = outcome == "unchanged"
    sign(store, name, signer, head=None if unchanged else head, replace=True, co_sign=not unchanged)


def stale_note(store: Store, name: str) -> list[str]:
    """What to say where a cassette was replaced and nobody signs the new one."""
    try:
        return [] if read_signature(store, name) is None else [_STALE_NOTE]
    except SignatureError:
        return [_STALE_NOTE]
