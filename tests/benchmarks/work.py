"""The work that every figure is about: a tool's arguments of about 200 bytes and its result of about 1 KB.

Rule: standard library only, since the interpreters of other packages run it too.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["SHAPES", "arguments", "lines_of", "rows", "text", "write_synced"]

_SKUS = [hashlib.sha256(str(k).encode()).hexdigest() for k in range(12)]
_TEXT = "".join(_SKUS * 2)[:1000]


def arguments(number: int) -> dict[str, Any]:
    """About 213 bytes of JSON."""
    return {
        "query": f"find orders for customer number {number:08d} in the warehouse index",
        "limit": 25,
        "filters": {"region": "eu-west", "status": ["open", "late"], "page": number, "tag": "x" * 40},
    }


def rows(query: str, limit: int, filters: dict[str, Any]) -> dict[str, Any]:
    """Ten nested rows, about 1 KB of JSON."""
    page = filters["page"]
    found = [{"id": page * 100 + k, "sku": _SKUS[k], "qty": k} for k in range(10)]
    return {"ok": True, "page": page, "total": 12, "rows": found}


def text(query: str, limit: int, filters: dict[str, Any]) -> str:
    """One flat string of 1 KB."""
    return _TEXT


SHAPES: dict[str, Callable[..., Any]] = {"rows": rows, "text": text}


def lines_of(file: Path) -> list[bytes]:
    """The lines of a finished cassette, with their ends."""
    return [line + b"\n" for line in file.read_bytes().split(b"\n")[:-1]]


def write_synced(file: Path, lines: list[bytes], sync: Callable[[int], object]) -> float:
    """Seconds to write lines to a new file, one at a time, with ``sync(descriptor)`` after each."""
    file.unlink(missing_ok=True)
    began = time.perf_counter()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    for line in lines:
        os.write(descriptor, line)
        sync(descriptor)
    os.close(descriptor)
    return time.perf_counter() - began
