"""The language in which vectors are written: frames as plain text, sealed by four lines of hashlib.

Rule: nothing of the library is used here, so that a vector says what the specification says and not what the code does.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

STATES = {
    None: "complete",
    "format_unknown": "unreadable",
    "requires_unknown": "unreadable",
    "empty": "torn",
    "torn": "torn",
    "tail_missing": "torn",
    "final_newline_missing": "torn",
    "zero_filled": "zero-filled",
    "not_published": "open",
}


class Vector(NamedTuple):
    """One file and what a reader must say of it; ``deep`` is what only deep reading finds, with its frame.

    ``identity`` is an X25519 private key in hex, and ``opening`` what opening an encrypted file with it finds.
    """

    name: str
    data: bytes
    comment: str
    reason: str | None = None
    frame: int | None = None
    deep: tuple[str, int] | None = None
    partial: bool = False
    limits: dict[str, int] | None = None
    identity: str | None = None
    opening: tuple[str, int | None] | None = None

    @property
    def file(self) -> str:
        return f"{self.name}.cassette.jsonl{'.partial' if self.partial else ''}"

    def row(self) -> dict[str, Any]:
        """The entry of ``vectors.json``."""
        row: dict[str, Any] = {"file": self.file, "reason": self.reason, "state": STATES.get(self.reason, "damaged")}
        row["frame"] = self.frame
        if self.deep:
            row["deep_reason"], row["deep_frame"] = self.deep
        if self.partial:
            row["partial"] = True
        if self.limits:
            row["limits"] = self.limits
        if self.identity:
            row["identity"] = self.identity
        if self.opening:
            row["open_reason"], row["open_frame"] = self.opening
        return row | {"comment": self.comment}


# Bodies are frames as text, without trailer and closing brace.


def seal(*bodies: str | bytes, lead: bytes = b"\0", genesis: str = "0" * 64) -> bytes:
    """The lines of some frames, chained anew."""
    prev, lines = genesis.encode(), []
    for body in bodies:
        covered = (body.encode() if isinstance(body, str) else body) + b',"prev":"' + prev + b'"'
        prev = hashlib.sha256(lead + covered).hexdigest().encode()
        lines.append(covered + b',"hash":"' + prev + b'"}\n')
    return b"".join(lines)


def header(**members: str) -> str:
    """Frame 0; ``members`` replace or, at the end, add members, as JSON text."""
    known = {
        "seq": "0",
        "kind": '"header"',
        "format": '"toolcassette/1"',
        "cassette": '"000102030405060708090a0b0c0d0e0f"',
        "created": '"2026-01-02T03:04:05.678901Z"',
        "producer": '"vectors"',
        "requires": "[]",
        "include": '["*"]',
        "order": '"strict"',
        "sync": '"frame"',
        "rules": "[]",
    }
    return "{" + ",".join(f'"{name}":{text}' for name, text in (known | members).items())


def start(
    seq: int, call: int = 0, args: str = "{}", tool: str = "t", path: str = "[]", more: str = "", boundary: str = "tool"
) -> str:
    return (
        f'{{"seq":{seq},"kind":"call/start","call":{call},"boundary":"{boundary}","path":{path},"tool":"{tool}"{more},'
        f'"at":{seq * 10},"args":{args}'
    )


def chunk(seq: int, number: int, value: str, call: int = 0) -> str:
    return f'{{"seq":{seq},"kind":"call/chunk","call":{call},"chunk":{number},"at":{seq * 10},"value":{value}'


def result(seq: int, bulk: str = ',"value":null', call: int = 0, outcome: str = "ok", how: str = "") -> str:
    """``how`` stands before ``at`` (phase, chunks), ``bulk`` after it."""
    return f'{{"seq":{seq},"kind":"call/result","call":{call},"outcome":"{outcome}"{how},"at":{seq * 10}{bulk}'


def complete(seq: int, ok: int = 0, error: int = 0, cancelled: int = 0, left_early: int = 0, rejected: int = 0) -> str:
    return (
        f'{{"seq":{seq},"kind":"complete","calls":{ok + error + cancelled + left_early},"frames":{seq + 1},"ok":{ok},'
        f'"error":{error},"cancelled":{cancelled},"left_early":{left_early},"rejected":{rejected}'
    )


def one(bulk: str = ',"value":null', args: str = "{}", outcome: str = "ok", how: str = "") -> bytes:
    """A cassette of one call."""
    return seal(header(), start(1, args=args), result(2, bulk, outcome=outcome, how=how), complete(3, **{outcome: 1}))


def lines_of(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


STREAM = ',"chunks":2'
BASE = (
    header(),
    start(1, args='{"city":"Wuhan"}', tool="weather"),
    chunk(2, 0, '"warm "'),
    chunk(3, 1, '"and wet"'),
    result(4, "", how=STREAM),
    start(5, 1, args='{"a":1,"b":[2.5,null]}', tool="sum"),
    result(6, ',"value":{"z":1,"a":2}', call=1),
    complete(7, ok=2),
)
WHOLE = seal(*BASE)
LINES = WHOLE.splitlines(keepends=True)


def edited(frame: int, old: str, new: str) -> bytes:
    """``BASE`` with a piece of text of one frame exchanged, sealed again."""
    assert BASE[frame].count(old) == 1, (frame, old)
    return seal(*BASE[:frame], BASE[frame].replace(old, new), *BASE[frame + 1 :])


def without(first: int, last: int) -> bytes:
    return b"".join(LINES[:first] + LINES[last:])
