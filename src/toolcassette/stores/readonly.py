"""A store that can be read and not written: cassettes that a test may replay and never record.

Rule: whatever would change the store beneath is refused before it is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcassette.errors import StoreError

if TYPE_CHECKING:
    from toolcassette.stores.base import Source, Spool, Store

__all__ = ["ReadOnlyStore"]


class ReadOnlyStore:
    """Another store without its ``create`` and ``adopt``, which raise ``StoreError``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def resolve(self, name: str) -> str:
        """See ``Store.resolve``."""
        return self._store.resolve(name)

    def create(self, name: str, *, cassette_id: str, replace: bool = False, set_aside: bool = False) -> Spool:
        """Refuse. Raises ``StoreError``."""
        raise StoreError("create the partial", advice="this store is read-only")

    def open(self, name: str) -> Source:
        """See ``Store.open``."""
        return self._store.open(name)

    def adopt(self, name: str) -> Spool:
        """Refuse. Raises ``StoreError``."""
        raise StoreError("take over the partial", advice="this store is read-only")

    def has_partial(self, name: str) -> bool:
        """See ``Store.has_partial``."""
        return self._store.has_partial(name)
