"""Writes the vectors and schemas of the format: ``python -m tests.make_vectors [--check]``.

Rule: what is on disk is what the rows in ``tests/format/vectors_*.py`` say, byte for byte, and nothing else.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.format import vectors_accepted, vectors_encrypted, vectors_refused
from toolcassette.format import json_schemas

if TYPE_CHECKING:
    from tests.format.vector_language import Vector

SCHEMAS = Path(__file__).resolve().parent.parent / "schemas" / "v1"


def vectors() -> list[Vector]:
    """All of them, in the order of ``vectors.json``."""
    encrypted = vectors_encrypted.accepted(), vectors_encrypted.opened(), vectors_encrypted.refused()
    made = [v for group in (*vectors_accepted.groups(), *vectors_refused.groups(), *encrypted) for v in group]
    assert len({v.name for v in made}) == len(made), "two vectors of one name"
    return made


def tree() -> dict[str, bytes]:
    """Path below ``schemas/v1`` -> content, of everything that is made."""
    made = vectors()
    texts = json_schemas() | {"vectors/vectors.json": {v.name: v.row() for v in made}}
    out = {name: (json.dumps(text, indent=2) + "\n").encode() for name, text in texts.items()}
    return out | {f"vectors/{v.file}": v.data for v in made}


def differences() -> list[str]:
    """What on disk is not what would be written, one path an entry."""
    made = tree()
    there = {p.relative_to(SCHEMAS).as_posix() for p in SCHEMAS.rglob("*") if p.is_file()} - {"FORMAT.md"}
    return sorted(
        {name for name, data in made.items() if name not in there or (SCHEMAS / name).read_bytes() != data}
        | (there - made.keys())
    )


def main(arguments: list[str]) -> int:
    """Write, or with ``--check`` compare. Exit status 1 if something differs."""
    different = differences()
    if arguments == ["--check"]:
        for name in different:
            print(f"differs: {name}")
        return 1 if different else 0
    (SCHEMAS / "vectors").mkdir(parents=True, exist_ok=True)
    made = tree()
    for name in different:
        if name in made:
            (SCHEMAS / name).write_bytes(made[name])
        else:
            (SCHEMAS / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
