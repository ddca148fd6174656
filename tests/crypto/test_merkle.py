"""RFC 6962 trees against published vectors, against Go's own, and against the recursion of the RFC itself."""

from __future__ import annotations

import hashlib
from base64 import b64decode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.crypto.go import GO
from toolcassette.crypto import Tree, inclusion_proofs, root_by_proof

# The leaves of the reference implementation's tests, and the roots of the trees over the first n of them.
INPUTS = [
    b"",
    b"\x00",
    b"\x10",
    b"\x20\x21",
    b"\x30\x31",
    b"\x40\x41\x42\x43",
    bytes(range(0x50, 0x58)),
    bytes(range(0x60, 0x70)),
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def leaf(data: bytes) -> bytes:
    return hashlib.sha256(b"\0" + data).digest()


def numbered(count: int) -> list[bytes]:
    return [leaf(str(n).encode()) for n in range(count)]


def by_the_rfc(leaves: list[bytes]) -> bytes:
    """RFC 6962 section 2.1, word for word."""
    if len(leaves) <= 1:
        return leaves[0] if leaves else hashlib.sha256().digest()
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + by_the_rfc(leaves[:k]) + by_the_rfc(leaves[k:])).digest()


def path_by_the_rfc(index: int, leaves: list[bytes]) -> list[bytes]:
    """RFC 6962 section 2.1.1, word for word."""
    if len(leaves) == 1:
        return []
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    if index < k:
        return [*path_by_the_rfc(index, leaves[:k]), by_the_rfc(leaves[k:])]
    return [*path_by_the_rfc(index - k, leaves[k:]), by_the_rfc(leaves[:k])]


def test_the_empty_tree_is_the_hash_of_nothing():
    assert Tree().root().hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize("size", range(1, 9))
def test_published_roots(size):
    assert Tree(map(leaf, INPUTS[:size])).root().hex() == ROOTS[size - 1]


def test_a_published_path():
    leaves = list(map(leaf, INPUTS))
    assert [node.hex() for node in inclusion_proofs(leaves, [0])[0]] == [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ]


@pytest.mark.parametrize("size", range(1, 71))
def test_roots_of_go(size):
    assert Tree(numbered(size)).root() == b64decode(GO["roots"][size - 1])


def test_proofs_of_go():
    assert len(GO["proofs"]) > 200
    for place, words in GO["proofs"].items():
        index, size = map(int, place.split("/"))
        path = [b64decode(word) for word in words]
        assert inclusion_proofs(numbered(size), [index])[0] == path
        assert root_by_proof(numbered(size)[index], index, size, path) == b64decode(GO["roots"][size - 1])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 5000), st.lists(st.integers(1, 1500), max_size=4))
def test_a_root_does_not_depend_on_how_the_leaves_come(size, cuts):
    leaves = numbered(size)
    tree, start = Tree(), 0
    for cut in cuts:
        tree.extend(leaves[start : start + cut])
        start += cut
    tree.extend(leaves[start:])
    assert tree.size == size
    assert tree.root() == tree.root() == by_the_rfc(leaves)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_proof_leads_to_the_root_and_no_other_does(data):
    size = data.draw(st.integers(1, 200))
    index = data.draw(st.integers(0, size - 1))
    leaves = numbered(size)
    root, path = Tree(leaves).root(), inclusion_proofs(leaves, [index])[0]
    assert path == path_by_the_rfc(index, leaves)
    assert root_by_proof(leaves[index], index, size, path) == root
    assert root_by_proof(leaf(b"other"), index, size, path) != root
    assert root_by_proof(leaves[index], index, size, [*path, root]) is None
    for gone in range(len(path)):
        assert root_by_proof(leaves[index], index, size, path[:gone] + path[gone + 1 :]) is None
        forged = [*path[:gone], leaf(b"other"), *path[gone + 1 :]]
        assert root_by_proof(leaves[index], index, size, forged) != root
    for other in range(size):
        assert other == index or root_by_proof(leaves[index], other, size, path) != root


def test_a_node_does_not_pass_for_a_leaf():
    """The second preimage that the two prefixes are there for: a tree of two whose leaves are a tree's nodes."""
    four = numbered(4)
    nodes = [hashlib.sha256(b"\x01" + four[i] + four[i + 1]).digest() for i in (0, 2)]
    assert leaf(four[0] + four[1]) != nodes[0]
    assert Tree(nodes).root() == Tree(four).root()  # so the number of leaves is signed too


@pytest.mark.parametrize(("index", "size"), [(-1, 1), (1, 1), (0, 0), (7, 5)])
def test_there_is_no_such_leaf(index, size):
    assert root_by_proof(bytes(32), index, size, []) is None
    with pytest.raises(IndexError):
        inclusion_proofs(numbered(size), [index])[0]
