"""``<file>.sig``: the signature of a cassette, in the store beside it.

Rule: a signature is made of what is read back, deep: so nobody signs what two readers would read in two ways. It is
written whole or not at all; a signature of other content is never overwritten unless that is asked for, and what others
signed of the same content stays.
"""

from __future__ import annotations

import functools
import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from toolcassette.crypto.checkpoint import Checkpoint, FrameTree
from toolcassette.crypto.notes import NOTE_BYTES_MAX, Note, signed
from toolcassette.errors import FormatError, SignatureError, StoreError
from toolcassette.format import LINE_BYTES_CEILING, Reader

if TYPE_CHECKING:
    from toolcassette.crypto.keys import Signer
    from toolcassette.format import Header
    from toolcassette.stores import Store

__all__ = ["SIGNATURE_SUFFIX", "Facts", "read_signature", "sign", "survey_cassette"]

SIGNATURE_SUFFIX: Final = ".sig"
_BLOCK_BYTES: Final = 256 * 1024  # one read: it stays in a core's own cache until it is hashed


class Facts(NamedTuple):
    """What there is to say of a whole cassette whose every value was looked at. ``sha256`` is that of the file."""

    checkpoint: Checkpoint
    header: Header
    head: str
    calls: int
    sha256: str


def survey_cassette(store: Store, name: str) -> Facts:
    """Read a cassette, deep, and say what it is. Raises ``FormatError`` on any defect."""
    frames = FrameTree()
    digest = hashlib.sha256()
    reader = Reader(runs=frames, deep=True, line_bytes_max=LINE_BYTES_CEILING)
    with store.open(name) as source:
        for block in source.blocks(_BLOCK_BYTES):
            digest.update(block)
            reader.feed(block)
        finding = reader.finish(partial=source.partial or source.live)
    if finding is not None:
        raise finding.as_error()
    header, grammar = reader.header, reader.grammar
    assert header is not None  # the grammar lets nothing else be whole
    checkpoint = Checkpoint(header.cassette, frames.tree.size, frames.tree.root())
    return Facts(checkpoint, header, reader.head, grammar.calls, digest.hexdigest())


def read_signature(store: Store, name: str) -> bytes | None:
    """The signature file of a cassette; None where there is none. Raises ``SignatureError``."""
    try:
        with store.open(name + SIGNATURE_SUFFIX) as source:
            if source.size > NOTE_BYTES_MAX:
                raise SignatureError("signature_junk")
            return b"".join(source.blocks())
    except FormatError as error:
        if error.reason == "absent":
            return None
        raise SignatureError("signature_unreadable") from None


def sign(
    store: Store,
    name: str,
    signer: Signer,
    *,
    head: str | None = None,
    replace: bool = False,
    co_sign: bool = True,
) -> str:
    """Sign a cassette. Returns ``signed``, ``co-signed``, ``unchanged`` (that key had signed it) or ``replaced``.

    ``head``: the last hash that it must have, where that is known. ``replace``: a signature of other content goes.
    Without ``co_sign``, one of this content stays as it is, whoever made it.

    Raises ``FormatError`` on any defect of the cassette; ``SignatureError``: ``head_differs``, and ``signature_stale``
    or ``signature_junk`` where there is such a signature and it is not to be replaced; ``StoreError``.
    """
    facts = survey_cassette(store, name)
    if head not in (None, facts.head):
        raise SignatureError("head_differs")
    add = functools.partial(_added, store, name, signer, text=facts.checkpoint.text, replace=replace, co_sign=co_sign)
    if add()[0] == "unchanged":
        return "unchanged"
    # Begun before it is read again: of two who sign at once, one is refused, and no line is lost.
    spool = store.create(name + SIGNATURE_SUFFIX, cassette_id=facts.checkpoint.cassette, replace=True, set_aside=True)
    try:
        done, note = add()
        if done == "unchanged":
            spool.discard()
        else:
            spool.append(note.to_bytes())
            spool.swap()
        return done
    except BaseException:
        with suppress(StoreError):
            spool.discard()
        raise
    finally:
        spool.keep()


def _added(store: Store, name: str, signer: Signer, *, text: str, replace: bool, co_sign: bool) -> tuple[str, Note]:
    """The signature file with a line of the signer, and what that does to the one that stands there."""
    before = read_signature(store, name)
    base = Note(text, ())
    done = "signed"
    if before is not None:
        try:
            base, done = _fitting(before, text), "co-signed"
        except SignatureError:
            if not replace:
                raise
            done = "replaced"
    note = signed(base, signer) if co_sign or not base.lines else base
    return ("unchanged" if note == base else done), note


def _fitting(data: bytes, text: str) -> Note:
    note = Note.parse(data)
    if note.text != text:
        raise SignatureError("signature_stale")
    return note
