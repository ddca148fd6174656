"""A cassette for other recipients: ``rewrap``.

Theory. The data key of a cassette is known to all its recipients, for ever: none can be taken away, and a new one would
change the header that everything is bound to. So the calls go to a new file, with an id, a data key and a chain of its
own, whose header says ``from``: the id and the head of the old one. What signed the old one does not sign the new one.

Rule: the old file stays as it is, and nothing is overwritten.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Final

from toolcassette._version import __version__
from toolcassette.crypto import recipients_of, sealing_for
from toolcassette.engine import read
from toolcassette.format import LINE_BYTES_CEILING, Origin, Writer, rewrapped
from toolcassette.stores import FileStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcassette.stores import Store

__all__ = ["rewrap"]

_PRODUCER: Final = f"toolcassette {__version__}"


def rewrap(
    file: str | os.PathLike[str],
    into: str | os.PathLike[str],
    recipients: Iterable[str],
    *,
    identities: Iterable[str] = (),
    store: Store | None = None,
) -> str:
    """Encrypt the calls of a cassette, encrypted or not, for ``recipients`` in the new file ``into``. Returns its id.

    ``recipients`` and ``identities`` are as in ``Options``; without identities, those of the environment open an
    encrypted one. Have the new one signed. Raises ``FormatError`` for any defect, ``EncryptionError`` where it cannot
    be opened or a recipient is none, ``CassetteExists`` where ``into`` exists, ``StoreError``; ``ValueError`` without a
    recipient, or for too many.
    """
    place = store or FileStore()
    sealing = sealing_for(recipients_of(recipients))
    if sealing is None:
        raise ValueError("rewrap needs a recipient")
    cassette = read(place, os.fspath(file), identities=tuple(identities))
    identity = secrets.token_hex(16)
    try:
        origin = Origin(cassette=cassette.header.cassette, head=cassette.head, how="rewrap")
        writer = Writer(line_bytes_max=LINE_BYTES_CEILING, calls_max=max(len(cassette), 1), sealing=sealing)
        spool = place.create(os.fspath(into), cassette_id=identity)
        try:
            for line in rewrapped(cassette.all_lines(), writer, cassette=identity, producer=_PRODUCER, origin=origin):
                spool.append(line)
            spool.publish()
        except BaseException:
            spool.discard()
            raise
        finally:
            spool.keep()
    finally:
        cassette.close()
    return identity
