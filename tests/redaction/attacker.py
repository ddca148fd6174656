"""What somebody finds who has the file and wants the secret: every decoding of every piece, and of what comes of it.

Rule: nothing of the library under test is used here, so that the two are not wrong together.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH = 6
_RUN = re.compile(rb"[A-Za-z0-9+/_-]{8,}={0,2}")
_PIECES = re.compile(rb"[A-Za-z0-9+_-]{8,}={0,2}")  # a step of a path
_ESCAPE = re.compile(rb"\\u[0-9a-fA-F]{4}|\\[nrt\"\\/bf]")


def readings(data: bytes) -> Iterator[bytes]:
    """``data``, and all that it can be decoded to, in up to ``DEPTH`` steps."""
    seen = {data}
    todo = [(data, 0)]
    while todo:
        text, depth = todo.pop()
        yield text
        if depth < DEPTH:
            for found in _decoded(text):
                if found not in seen:
                    seen.add(found)
                    todo.append((found, depth + 1))


def holds(data: bytes, secret: bytes) -> bool:
    """Whether a file gives a secret away: in a piece, or in the joined pieces of a stream."""
    escaped = json.dumps(secret.decode("utf-8", "replace")).strip('"').encode()
    streams = [part for joined in _joined(data).values() for part in joined]
    return any(needle in text for whole in (data, *streams) for text in readings(whole) for needle in {secret, escaped})


def _decoded(text: bytes) -> Iterator[bytes]:
    for line in {text, *text.splitlines()}:
        yield from _strings(line)
    if b"%" in text:
        yield unquote_to_bytes(text)
    if b"\\" in text:
        yield _ESCAPE.sub(lambda m: json.loads(b'"' + m.group() + b'"').encode("utf-8", "surrogatepass"), text)
    for pattern in (_RUN, _PIECES):
        for match in pattern.finditer(text):
            yield from _base64(match.group())


def _strings(text: bytes) -> Iterator[bytes]:
    try:
        tree = json.loads(text.removeprefix(b"data:"))
    except (ValueError, RecursionError):
        return
    todo: list[Any] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            yield node.encode("utf-8", "surrogatepass")
        elif isinstance(node, list):
            todo += node
        elif isinstance(node, dict):
            todo += [*node, *node.values()]


def _base64(run: bytes) -> Iterator[bytes]:
    bare = run.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    for skip in range(4):
        part = bare[skip:]
        part = part[: len(part) - 1] if len(part) % 4 == 1 else part
        try:
            yield base64.b64decode(part + b"=" * (-len(part) % 4))
        except binascii.Error:
            continue


def _joined(data: bytes) -> dict[int, list[bytes]]:
    """The texts of each stream, joined by the place at which they stand in an item."""
    found: dict[int, dict[tuple[Any, ...], list[bytes]]] = {}
    for line in data.splitlines():
        frame = json.loads(line)
        if frame["kind"] == "call/chunk":
            _collect(frame["value"], (), found.setdefault(frame["call"], {}))
    return {call: [b"".join(parts) for parts in places.values()] for call, places in found.items()}


def _collect(node: Any, path: tuple[Any, ...], places: dict[tuple[Any, ...], list[bytes]]) -> None:
    if isinstance(node, str):
        places.setdefault(path, []).append(node.encode("utf-8", "surrogatepass"))
    elif isinstance(node, list):
        for index, item in enumerate(node):
            _collect(item, (*path, index), places)
    elif isinstance(node, dict) and node.get("$tc") in ("bytes", "bytearray"):
        places.setdefault(path, []).append(base64.b64decode(node["v"]))
    elif isinstance(node, dict):
        for key, item in node.items():
            _collect(item, (*path, key), places)
