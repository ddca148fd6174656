"""Where two argument trees differ, in JSON paths; fingerprints; never a value."""

from __future__ import annotations

import pytest

import toolcassette as tc
from toolcassette.engine import differences
from toolcassette.engine.mismatch import fingerprint

TABLE = [
    ({"a": 1}, {"a": 1}, []),
    ({"a": 1}, {"a": 1.0}, [("$.a", "changed")]),
    ({"a": 1}, {"a": True}, [("$.a", "changed")]),
    ({"a": 0}, {"a": False}, [("$.a", "changed")]),
    ({"a": 0.0}, {"a": -0.0}, [("$.a", "changed")]),
    ({"a": "1"}, {"a": 1}, [("$.a", "changed")]),
    ({"a": None}, {}, [("$.a", "added")]),
    ({}, {"a": None}, [("$.a", "removed")]),
    ({"a": [1, 2]}, {"a": [1, 3]}, [("$.a[1]", "changed")]),
    ({"a": [1, 2]}, {"a": [2, 1]}, [("$.a[0]", "changed"), ("$.a[1]", "changed")]),
    ({"a": [1, 2]}, {"a": [1, 2, 3]}, [("$.a", "changed")]),
    ({"a": []}, {"a": {}}, [("$.a", "changed")]),
    ({"a": {"b c": 1}}, {"a": {"b c": 2}}, [('$.a["b c"]', "changed")]),
    ({"a": {"$tc": "bytes", "v": "AA=="}}, {"a": {"$tc": "bytes", "v": "AQ=="}}, [("$.a", "changed")]),  # a leaf
    ({"a": {"$tc": "bytes", "v": "AA=="}}, {"a": {"v": "AA=="}}, [("$.a", "changed")]),
    ({"a": {"$tc": "tuple", "v": [1]}}, {"a": {"$tc": "tuple", "v": [True]}}, [("$.a", "changed")]),
    (1, 1, []),
    (1, "1", [("$", "changed")]),
]


@pytest.mark.parametrize(("live", "recorded", "expected"), TABLE)
def test_differences(live, recorded, expected):
    assert sorted(differences(live, recorded)) == expected


def test_a_report_stays_readable_however_much_differs(tmp_path):
    tools = tc.Registry()
    many = tools.wrap(lambda rows: len(rows), name="many")
    file = tmp_path / "x.cassette.jsonl"
    with tc.record(file, ["many"]):
        many(list(range(100)))
    with pytest.raises(tc.CassetteMismatch) as caught, tc.replay(file):
        many(list(range(1, 101)))
    assert caught.value.reason == "arguments_differ"
    assert caught.value.differs == tuple(sorted(f"$.rows[{n}]" for n in range(100)))[:8]
    assert len(str(caught.value)) < 1000


def test_a_fingerprint_tells_equal_from_different_under_one_key_only():
    key, other = b"k" * 32, b"o" * 32
    assert fingerprint(key, "t", b"{}") == fingerprint(key, "t", b"{}")
    assert fingerprint(key, "t", b"{}") != fingerprint(key, "t", b'{"a":1}')
    assert fingerprint(key, "t", b"{}") != fingerprint(key, "u", b"{}")
    assert fingerprint(key, "t", b"{}") != fingerprint(other, "t", b"{}")
    assert len(fingerprint(key, "t", b"{}")) == 16
