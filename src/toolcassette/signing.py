"""Signing a cassette that stands already: ``sign``; and saying what it is to tools of others: ``attest``.

Rule: the cassette never changes. Its signature stands beside it, and whoever signs later adds a line to it.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING

from toolcassette.crypto import envelope, read_signer, statement, survey_cassette
from toolcassette.crypto import sign as sign_in
from toolcassette.stores import FileStore

if TYPE_CHECKING:
    from toolcassette.stores import Store

__all__ = ["attest", "sign"]


def sign(
    file: str | os.PathLike[str],
    key: str | os.PathLike[str],
    *,
    replace: bool = False,
    store: Store | None = None,
) -> str:
    """Sign a whole cassette with the private key in the file ``key``, into ``<file>.sig``.

    Every value is looked at first, so nobody signs what two readers would read in two ways. Returns ``signed``;
    ``co-signed``, where others had signed it; ``unchanged``, where this key had; ``replaced``, where ``replace`` let a
    signature of other content go. Raises ``FormatError`` for any defect of the cassette; ``SignatureError`` for a key
    that cannot sign, and for a signature of other content (``signature_stale``, ``signature_junk``); ``StoreError``.
    """
    return sign_in(store or FileStore(), os.fspath(file), read_signer(os.fspath(key)), replace=replace)


def attest(file: str | os.PathLike[str], key: str | os.PathLike[str], *, store: Store | None = None) -> bytes:
    """A DSSE envelope with an in-toto statement on a whole cassette, signed with the private key in the file ``key``.

    Its subject is the file, by base name and SHA-256; it holds no argument and no result. One line of JSON. Every value
    is looked at first. Raises ``FormatError`` for any defect of the cassette, ``SignatureError`` for a key that cannot
    sign.
    """
    signer, name = read_signer(os.fspath(key)), os.fspath(file)
    facts = survey_cassette(store or FileStore(), name)
    return envelope(statement(PurePath(name).name, facts), signer)
