"""Signatures: who vouches for a cassette. The front door, and the only door to ``cryptography``.

Rule: the algorithms are those of ``cryptography`` and ``hashlib``; what is ours is which bytes they are given.
``cryptography`` is loaded with the first key that is used, and not before.
"""

from __future__ import annotations

from toolcassette.crypto.checkpoint import Checkpoint, FrameTree
from toolcassette.crypto.data_key import DataKey, SealingKey, opening_with, sealing_for
from toolcassette.crypto.dsse import envelope, statement
from toolcassette.crypto.keys import Signer, VerifierKey, checked_key_name, looks_like_key
from toolcassette.crypto.merkle import Tree, inclusion_proofs, root_by_proof
from toolcassette.crypto.notes import NOTE_BYTES_MAX, SIGNATURES_MAX, Note, signed, signers_of
from toolcassette.crypto.proofs import PROOF_BYTES_MAX, CallProof, Proven, ProvenFrame, check_frames
from toolcassette.crypto.recipients import IDENTITY_VARIABLE, Identity, Recipient, identities_of, recipients_of
from toolcassette.crypto.sidecar import SIGNATURE_SUFFIX, Facts, read_signature, sign, survey_cassette
from toolcassette.crypto.trust import (
    KEYS_VARIABLE,
    REQUIRE_VARIABLE,
    Trust,
    keys_in,
    keys_of,
    read_signer,
    required_number,
    trust_of,
)

__all__ = [
    "IDENTITY_VARIABLE",
    "KEYS_VARIABLE",
    "NOTE_BYTES_MAX",
    "PROOF_BYTES_MAX",
    "REQUIRE_VARIABLE",
    "SIGNATURES_MAX",
    "SIGNATURE_SUFFIX",
    "CallProof",
    "Checkpoint",
    "DataKey",
    "Facts",
    "FrameTree",
    "Identity",
    "Note",
    "Proven",
    "ProvenFrame",
    "Recipient",
    "SealingKey",
    "Signer",
    "Tree",
    "Trust",
    "VerifierKey",
    "check_frames",
    "checked_key_name",
    "envelope",
    "identities_of",
    "inclusion_proofs",
    "keys_in",
    "keys_of",
    "looks_like_key",
    "opening_with",
    "read_signature",
    "read_signer",
    "recipients_of",
    "required_number",
    "root_by_proof",
    "sealing_for",
    "sign",
    "signed",
    "signers_of",
    "statement",
    "survey_cassette",
    "trust_of",
]
