"""DSSE envelopes with an in-toto statement: what a cassette is, in the form that supply-chain tools read.

Rule: what is signed is the payload byte for byte, behind its type and both lengths (``PAE`` of DSSE v1), so that the
bytes that were verified are the bytes that are used.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from toolcassette.crypto.keys import Signer
    from toolcassette.crypto.sidecar import Facts

__all__ = ["PREDICATE_TYPE", "envelope", "statement"]

_PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
_STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:toolcassette:cassette:1"


def statement(name: str, facts: Facts) -> dict[str, Any]:
    """The in-toto statement on a cassette: its file name and SHA-256, and what ``verify --deep`` found in it."""
    header, checkpoint = facts.header, facts.checkpoint
    return {
        "_type": _STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": facts.sha256}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "format": header.format,
            "cassette": header.cassette,
            "created": header.created,
            "producer": header.producer,
            "include": list(header.include),
            "calls": facts.calls,
            "frames": checkpoint.frames,
            "head": facts.head,
            "root": checkpoint.root.hex(),
        },
    }


def pae(payload_type: str, payload: bytes) -> bytes:
    """What DSSE signs."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def envelope(said: dict[str, Any], signer: Signer) -> bytes:
    """A signed envelope: one line of JSON, ASCII. The ``keyid`` is a hint: name and id of the key."""
    payload = json.dumps(said, separators=(",", ":")).encode("ascii")
    key = signer.verifier
    found = {
        "payload": base64.b64encode(payload).decode("ascii"),
        "payloadType": _PAYLOAD_TYPE,
        "signatures": [
            {
                "keyid": f"{key.name}+{key.id.hex()}",
                "sig": base64.b64encode(signer.sign(pae(_PAYLOAD_TYPE, payload))).decode("ascii"),
            }
        ],
    }
    return json.dumps(found, separators=(",", ":")).encode("ascii") + b"\n"
