"""The door to JSON Schema: what a tool's ``output_schema`` asks of its values.

Rule: a value is held against the schema as it is written, so that recording and replay judge the same bytes; what is
tagged there counts as the JSON that it would be without: tuples and sets as arrays, dates and bytes as text. A schema
never reaches for another document. Messages of the validator are not shown: they quote the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcassette.contracts.unfit import Unfit
from toolcassette.format import TAG, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcassette.format import Tree

__all__ = ["JsonSchema"]

_INSTALL = "output_schema needs jsonschema: pip install 'toolcassette[jsonschema]'"


class JsonSchema:
    """A JSON Schema (draft 2020-12 unless its ``$schema`` says otherwise), checked once.

    Raises ``ModuleNotFoundError`` where jsonschema is not installed, ``TypeError`` for what is no schema,
    ``ValueError`` for one that is none by its own draft.
    """

    def __init__(self, schema: Mapping[str, object] | bool) -> None:
        try:
            import jsonschema
            import jsonschema.exceptions
            import jsonschema.validators
            import referencing
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(_INSTALL, name=error.name) from None
        if not isinstance(schema, dict | bool):
            message = "output_schema must be a JSON Schema: a dict"
            raise TypeError(message)
        kind: Any = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        try:
            kind.check_schema(schema)
        except jsonschema.SchemaError as error:
            message = f"output_schema is no valid JSON Schema at {_pointer(error.absolute_path)}"
            raise ValueError(message) from None
        self._validator: Any = kind(schema, registry=referencing.Registry())
        self._best = jsonschema.exceptions.best_match

    def admit(self, tree: Tree) -> None:
        """Raise ``Refused`` for a value that breaks the schema, while its tool is at hand."""
        found = self._first(tree)
        if found is not None:
            path, keyword, here = found
            why = f"breaks {keyword} of the tool's output_schema; mend the tool or the schema"
            refused = Refused(type(here).__name__, why)
            refused.segments.extend(reversed(path))
            raise refused

    def check(self, tree: Tree) -> None:
        """Raise ``Unfit`` for a recorded value that breaks the schema of today."""
        found = self._first(tree)
        if found is not None:
            path, keyword, _ = found
            raise Unfit(f"what {keyword} of output_schema asks for", reversed(path))

    def _first(self, tree: Tree) -> tuple[list[str | int], str, object] | None:
        """Path of the value, pointer to the keyword, and the value of the worst error."""
        try:
            error = self._best(self._validator.iter_errors(_bare(tree)))
        except Exception:  # noqa: BLE001 - a reference that leads nowhere, a pattern that is none
            return [], "a reference or pattern that cannot be followed", tree
        if error is None:
            return None
        return list(error.absolute_path), _pointer(error.absolute_schema_path), error.instance


def _bare(tree: Tree) -> Tree:
    """A tree without its tags."""
    if type(tree) is list:
        return [_bare(item) for item in tree]
    if type(tree) is not dict:
        return tree
    if TAG not in tree:
        return {name: _bare(part) for name, part in tree.items()}
    inner = _bare(tree.get("v"))
    if tree[TAG] == "int" and type(inner) is str:
        return int(inner, 16)
    if tree[TAG] not in ("counter", "defaultdict", "map", "ordered") or type(inner) is not list:
        return inner
    pairs = {pair[0]: pair[1] for pair in inner if type(pair) is list and len(pair) == 2 and type(pair[0]) is str}
    return pairs if len(pairs) == len(inner) else inner


def _pointer(path: Any) -> str:
    """``/properties/degrees/type``."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path) or "/"
