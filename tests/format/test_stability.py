"""Set in stone: one constant over a corpus. If it changes, the format has changed (FORMAT.md section 10).

Rule: while the format is a draft, a change is a line in CHANGELOG.md and a new constant here; after 1.0 there is none.
"""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import pathlib
import uuid
from typing import Any

from toolcassette.format import RecordedCall, encode_value, parse_cassette, write_cassette

STABLE = "0cb53f6be7f4bd96cfd6c18ca45e12bbb1dc7a24fe357bbacccb03abcb614971"

CORPUS: list[Any] = [
    None,
    True,
    [0, -1, 2**53 + 1, 10**999, 10**1000, -(10**5000)],
    [0.0, -0.0, 1.0, 0.1, 1e-5, 9.9e-6, 1e15, 1e16, 5e-324, 1.7976931348623157e308],
    [float("nan"), float("inf"), float("-inf"), complex(1, -0.0)],
    ["", '\0\b\t\n\f\r\x1f\x7f"\\/', "é漢😀", "\u202e\u2028\x9b\ufeff\U000e0041", "\ud800\\"],
    {"z": 1, "a": {"b": [], "": {}}, "\ue000": 1, "😀": 2},
    {1: "a", "1": "b", (1, "x"): {"$tc": "bytes"}},
    (1, [2, (3,)], {3, 1, 2}, frozenset({"b", "a"})),
    [b"\0\xff", bytearray(b"ab")],
    [dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC), dt.date(2026, 1, 2), dt.time(3, fold=1), dt.timedelta(-1, 5)],
    [decimal.Decimal("1.10"), uuid.UUID(int=7), pathlib.PurePosixPath("/a/b"), pathlib.PureWindowsPath("c:\\d")],
]


def corpus() -> bytes:
    """Every value of the corpus as arguments, as value, as chunk, as message, in a cassette of every shape."""
    calls = []
    for number, value in enumerate(CORPUS):
        args, plain = encode_value({"v": value, "a": number}, sort=True), encode_value(value)
        error = encode_value({"type": "builtins.ValueError", "message": f"no {number}", "args": [value]})
        base = RecordedCall("tool", args, path=("a", f"b:{number}"), started_at=number, ended_at=number + 1)
        calls += [
            base._replace(value=plain, effect="read", omitted=("ctx",)),
            base._replace(chunks=(plain, plain), boundary="model", contexts=b"[]", meta=b'{"k":1}'),
            base._replace(chunks=()),
            base._replace(outcome="error", error=error),
            base._replace(outcome="cancelled", phase="before_body"),
            base._replace(outcome="left_early", chunks=(plain,)),
        ]
    return write_cassette(calls, cassette="0" * 32, created="2026-01-02T03:04:05.678901Z", producer="stability")


def test_digest_is_stable() -> None:
    data = corpus()
    assert len(parse_cassette(data)) == 6 * len(CORPUS)
    assert hashlib.sha256(data).hexdigest() == STABLE
