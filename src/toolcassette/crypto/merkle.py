"""RFC 6962 trees over hashes that are leaf hashes already: the root of many, and the proof that one is among them.

Rule: SHA-256 of ``hashlib`` and nothing else; a frame's hash is its leaf (FORMAT.md section 3), so nothing is hashed
twice. Memory does not grow with the tree: what is whole is kept as its root alone.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["HASH_BYTES", "Tree", "inclusion_proofs", "root_by_proof"]

HASH_BYTES: Final = 32
_BLOCK: Final = 1024  # leaves that become one node at once; a power of two
_sha256 = hashlib.sha256


def _node(left: bytes, right: bytes) -> bytes:
    return _sha256(b"\1" + left + right).digest()


def _root(hashes: Sequence[bytes]) -> bytes:
    """The root of the tree over some nodes of one level. Pairing level by level is what RFC 6962 splits into."""
    while len(hashes) > 1:
        hashes = _next(hashes)
    return hashes[0] if hashes else _sha256().digest()


def _next(hashes: Sequence[bytes]) -> list[bytes]:
    """The level above: nodes in pairs, and one without a partner as it is."""
    paired = [_sha256(b"\1" + a + b).digest() for a, b in zip(hashes[::2], hashes[1::2], strict=False)]
    return [*paired, hashes[-1]] if len(hashes) % 2 else paired


class Tree:
    """The tree of a log that grows. ``size``: leaves so far."""

    __slots__ = ("_blocks", "_peaks", "_rest", "size")

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self.size = 0
        self._rest: list[bytes] = []  # the last leaves, fewer than a block
        self._peaks: list[bytes] = []  # roots of the whole subtrees before them, the largest first
        self._blocks = 0
        self.extend(leaves)

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add leaves (32 bytes each) at the end."""
        before = len(self._rest)
        self._rest.extend(leaves)
        self.size += len(self._rest) - before
        while len(self._rest) >= _BLOCK:
            self._take_block(_root(self._rest[:_BLOCK]))
            del self._rest[:_BLOCK]

    def _take_block(self, node: bytes) -> None:
        """One block more: as in counting, two of a size become one of the next."""
        self._blocks += 1
        count = self._blocks
        while count % 2 == 0:
            node = _node(self._peaks.pop(), node)
            count //= 2
        self._peaks.append(node)

    def root(self) -> bytes:
        """The root of all leaves so far; of none, the hash of nothing."""
        peaks = [*self._peaks, _root(self._rest)] if self._rest or not self._peaks else list(self._peaks)
        node = peaks.pop()
        while peaks:
            node = _node(peaks.pop(), node)
        return node


def inclusion_proofs(leaves: Sequence[bytes], indexes: Iterable[int]) -> list[list[bytes]]:
    """For each leaf (0-based) the nodes that lead from it to the root, the lowest first (RFC 6962 section 2.1.1).

    Raises ``IndexError`` where there is no such leaf.
    """
    places = list(indexes)
    if not all(0 <= index < len(leaves) for index in places):
        raise IndexError("no leaf of this number")
    paths: list[list[bytes]] = [[] for _ in places]
    level: Sequence[bytes] = leaves
    while len(level) > 1:
        for path, index in zip(paths, places, strict=True):
            if index ^ 1 < len(level):
                path.append(level[index ^ 1])
        places = [index // 2 for index in places]
        level = _next(level)
    return paths


def root_by_proof(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root that a proof leads to, for a tree of ``size`` leaves; None where it has too many or too few nodes."""
    if not 0 <= index < size:
        return None
    node, left, last = leaf, list(path), size - 1
    while last:
        if index % 2 or index < last:
            if not left:
                return None
            beside = left.pop(0)
            node = _node(beside, node) if index % 2 else _node(node, beside)
        index, last = index // 2, last // 2
    return None if left else node
