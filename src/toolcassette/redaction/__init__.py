"""Redaction: what may not stand in a cassette, and what stands there in its place.

Rule: pure; bytes and rules in, bytes out. Recorder, replayer and scan use the same rules through this door.
"""

from __future__ import annotations

from toolcassette.redaction.chunks import HELD_MAX, ChunkRedactor, texts_of
from toolcassette.redaction.finding import Finding
from toolcassette.redaction.matching import (
    Abstract,
    Bindings,
    abstract,
    filled,
    handed_out,
    holes,
    masked,
    masked_text,
    may_hold,
)
from toolcassette.redaction.names import secret_name
from toolcassette.redaction.redactor import REPLAYED_FIRST, Redactor
from toolcassette.redaction.rules import (
    NEWEST,
    NORMALISERS,
    OFF,
    Redact,
    Rule,
    Rules,
    compiled,
    normalisers,
    recorded_set,
    rules_of,
)
from toolcassette.redaction.secrets import DECLARED_MIN, from_environment
from toolcassette.redaction.standins import Ref, legible
from toolcassette.redaction.views import text_of

__all__ = [
    "DECLARED_MIN",
    "HELD_MAX",
    "NEWEST",
    "NORMALISERS",
    "OFF",
    "REPLAYED_FIRST",
    "Abstract",
    "Bindings",
    "ChunkRedactor",
    "Finding",
    "Redact",
    "Redactor",
    "Ref",
    "Rule",
    "Rules",
    "abstract",
    "compiled",
    "filled",
    "from_environment",
    "handed_out",
    "holes",
    "legible",
    "masked",
    "masked_text",
    "may_hold",
    "normalisers",
    "recorded_set",
    "rules_of",
    "secret_name",
    "text_of",
    "texts_of",
]
