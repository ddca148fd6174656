"""JSON Schemas of the five kinds of frame, in the clear and sealed, generated from the structs (FORMAT.md section 2).

Rule: the structs are the source; the files under ``schemas/v1`` are kept in step by a test. A schema says which members
a frame may have and of what type; chain, spelling and grammar are beyond it.
"""

from __future__ import annotations

import inspect
from typing import Any, Final

import msgspec
from msgspec import UNSET

from toolcassette.format.frames import FORMAT, KINDS, SEALED, ErrorBody

__all__ = ["json_schemas"]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def json_schemas() -> dict[str, dict[str, Any]]:
    """File name -> JSON Schema (2020-12): one for the frame of any kind, one for what the member ``error`` holds."""
    types = (*KINDS.values(), *SEALED)
    _, parts = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    for cls in types:
        _tidy(parts[cls.__name__], cls)
    _dedent(parts)
    frame = {
        "$schema": _DIALECT,
        "$id": f"urn:{FORMAT.replace('/', ':')}:frame",
        "title": f"one frame (line) of a {FORMAT} cassette",
        "oneOf": [{"$ref": f"#/$defs/{cls.__name__}"} for cls in types],
        "$defs": parts,
    }
    _, errors = msgspec.json.schema_components((ErrorBody,), ref_template="#/$defs/{name}")
    _dedent(errors)
    error = {
        "$schema": _DIALECT,
        "$id": f"urn:{FORMAT.replace('/', ':')}:error",
        "$ref": "#/$defs/ErrorBody",
        "$defs": errors,
    }
    return {"frame.schema.json": frame, "error.schema.json": error}


def _dedent(parts: dict[str, Any]) -> None:
    """Descriptions without the indentation of a docstring, which older versions of msgspec leave in."""
    for part in parts.values():
        part["description"] = inspect.cleandoc(part["description"])


def _tidy(schema: dict[str, Any], cls: type[msgspec.Struct]) -> None:
    """Members are required unless absence is their default: kind, prev and hash only have defaults for the writer."""
    fields = msgspec.structs.fields(cls)
    sealed = cls in SEALED
    schema["required"] = [f.encode_name for f in fields if f.default is not UNSET or (sealed and f.name == "enc")]
    for field in fields:
        schema["properties"][field.encode_name].pop("default", None)
