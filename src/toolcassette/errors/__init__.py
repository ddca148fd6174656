"""The one error tree: what went wrong, where, and what to do next.

Rule: an error holds data (fields, a stable ``code``, an ``exit_status``) and its text is derived from them. No
argument, result, raw line or absolute path is ever a field or a word of the text. Codes and reasons never change
inside a major version.

    CassetteError
    |- FormatError              the bytes are no cassette of this format, or not a whole one
    |- StoreError               the bytes could not be kept
    |  `- CassetteExists        a cassette or a partial stands in the way
    |- NotPublished             a recording ended and was kept as a partial
    |  `- NestedSelection       a selected call ran inside another selected call
    |- SignatureError           an intact cassette is not proven to be the one that is wanted
    |- EncryptionError          an encrypted cassette cannot be opened or made
    |- IncludeUnused            a pattern of include selected nothing
    |- RedactionError           a rule of redaction cannot do its work
    |- UnrecordableValue        a value that would not come back as it went
    |- CassetteMismatch         the run and the cassette part here
    |  |- CassettePoisoned      ... and parted earlier
    |  `- ContractMismatch      the recorded outcome no longer fits the tool's contract
    |- UnconsumedCalls          recorded calls that were never made
    |- AmbiguousScope           two equal scopes are open at once
    |- SecretFound              secrets stand in a cassette
    |- NotSelected              a wrapped tool that the replay does not know
    |- NoSession                no session to put the call in, and it may not run for real
    |- SessionClosed            the session of this call is over
    |- CacheMiss                replay-only, and the cache has no entry
    |- CacheExpired             the entry of the cache is older than max_age
    |- RecordedToolError        stands in for a tool's own exception on replay
    `- ToolCancelled            a recorded cancellation that the program did not repeat

Misuse is ``RuntimeError`` or ``ValueError`` and not in this tree: it never looks like bad data.
"""

from __future__ import annotations

from toolcassette.errors.base import CassetteError, CassetteExists, FormatError, StoreError
from toolcassette.errors.caching import CacheExpired, CacheMiss
from toolcassette.errors.encryption import EncryptionError
from toolcassette.errors.recording import (
    IncludeUnused,
    NestedSelection,
    NotPublished,
    RedactionError,
    UnrecordableValue,
)
from toolcassette.errors.replaying import (
    AmbiguousScope,
    CassetteMismatch,
    CassettePoisoned,
    ContractMismatch,
    LeftOver,
    NoSession,
    NotSelected,
    RecordedToolError,
    SecretFound,
    SessionClosed,
    ToolCancelled,
    UnconsumedCalls,
)
from toolcassette.errors.signing import SignatureError
from toolcassette.reasons import ENCRYPTION_REASONS, FORMAT_REASONS, MISMATCH_REASONS, SIGNATURE_REASONS, printable

__all__ = [
    "ENCRYPTION_REASONS",
    "FORMAT_REASONS",
    "MISMATCH_REASONS",
    "SIGNATURE_REASONS",
    "AmbiguousScope",
    "CacheExpired",
    "CacheMiss",
    "CassetteError",
    "CassetteExists",
    "CassetteMismatch",
    "CassettePoisoned",
    "ContractMismatch",
    "EncryptionError",
    "FormatError",
    "IncludeUnused",
    "LeftOver",
    "NestedSelection",
    "NoSession",
    "NotPublished",
    "NotSelected",
    "RecordedToolError",
    "RedactionError",
    "SecretFound",
    "SessionClosed",
    "SignatureError",
    "StoreError",
    "ToolCancelled",
    "UnconsumedCalls",
    "UnrecordableValue",
    "printable",
]
