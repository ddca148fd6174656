"""Where cassettes live: stores of bytes under names, create-only and durable. Rule: no store knows what a frame is."""

from __future__ import annotations

from toolcassette.stores.base import BLOCK_BYTES, PARTIAL_SUFFIX, Source, Spool, Store, store_error
from toolcassette.stores.blobs import BlobStore
from toolcassette.stores.file import FileStore
from toolcassette.stores.memory import MemoryStore
from toolcassette.stores.ops import Directory, FileOps, Stat
from toolcassette.stores.readonly import ReadOnlyStore

__all__ = [
    "BLOCK_BYTES",
    "PARTIAL_SUFFIX",
    "BlobStore",
    "Directory",
    "FileOps",
    "FileStore",
    "MemoryStore",
    "ReadOnlyStore",
    "Source",
    "Spool",
    "Stat",
    "Store",
    "store_error",
]
