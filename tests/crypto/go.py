"""What Go's ``golang.org/x/mod/sumdb`` made of the same keys, texts and leaves: ``data/go_notes.go`` wrote it down."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from toolcassette.crypto import Signer
from toolcassette.crypto.ed25519 import PrivateKey

GO: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "go_notes.json").read_text("utf-8"))


def signer(text: str) -> Signer:
    """The signer of a private key as Go writes it: ``PRIVATE+KEY+name+id+base64 of 0x01 and the seed``."""
    _, _, name, _, data = text.split("+", 4)
    return Signer(name, PrivateKey.from_seed(base64.b64decode(data)[1:]))


SIGNERS = [signer(text) for text in GO["skeys"]]
