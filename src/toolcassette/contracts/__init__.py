"""What a tool promises to return: the front door of the contracts floor.

Rule: an outcome is encoded, decoded and held against today's annotation, and what would not come back the same in type
and value is refused while recording. Classes come from annotations and declarations in code, never from a file.
"""

from __future__ import annotations

from toolcassette.contracts.arguments import encode_args
from toolcassette.contracts.contract import Contract, contract_for
from toolcassette.contracts.extensions import NO_EXTENSIONS, Extensions
from toolcassette.contracts.failures import decode_error, encode_error
from toolcassette.contracts.json_schema import JsonSchema
from toolcassette.contracts.names import qualified_name
from toolcassette.contracts.returns import ToolReturn
from toolcassette.contracts.sameness import same
from toolcassette.contracts.tool_failure import ToolFailure

__all__ = [
    "NO_EXTENSIONS",
    "Contract",
    "Extensions",
    "JsonSchema",
    "ToolFailure",
    "ToolReturn",
    "contract_for",
    "decode_error",
    "encode_args",
    "encode_error",
    "qualified_name",
    "same",
]
