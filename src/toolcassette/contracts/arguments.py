"""Arguments as canonical JSON: what calls are matched by.

Rule: different arguments never have the same bytes, any spelling of the same arguments has the same. Instances of
structured classes and Enum members are written with the name of their class, so that look-alikes stay apart. They are
for matching only: nothing here is ever read back into a class, and nothing is consumed or called to be written.
"""

from __future__ import annotations

import enum
import functools
from typing import TYPE_CHECKING

from toolcassette.contracts.advice import how_to_keep, is_foreign
from toolcassette.contracts.doors import parts_of
from toolcassette.contracts.extensions import NO_EXTENSIONS
from toolcassette.contracts.names import qualified_name
from toolcassette.format import TAG, Encoder, Refused, plain_copy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcassette.contracts.extensions import Extensions
    from toolcassette.format import Tree

__all__ = ["encode_args"]


def encode_args(arguments: Mapping[str, object], *, extensions: Extensions = NO_EXTENSIONS) -> bytes:
    """Canonical JSON of arguments by parameter name, keys sorted at every level.

    Raises ``UnrecordableValue`` with a path like ``$.conn`` for a value that has no lossless form.
    """
    plain = plain_copy(arguments, sort=True)
    if plain is not None:
        return plain[0]
    try:
        return Encoder(sort=True, hook=functools.partial(_argument, extensions)).bytes(dict(arguments))
    except Refused as refused:
        raise refused.as_error() from None


def _argument(extensions: Extensions, encoder: Encoder, value: object) -> Tree:
    cls = type(value)
    if extensions.type_for(cls) is not None:
        return extensions.hook(encoder, value)
    if isinstance(value, enum.Enum):
        # A combination of flags has no name, or one that newer Pythons spell in another way.
        member: Tree = encoder.tree(value.value) if isinstance(value, enum.Flag) else value.name
        return {TAG: "enum", "type": qualified_name(cls), "v": member}
    parts = parts_of(value)
    if parts is None:
        why = "has no lossless form; leave it out with omit=[...], or its type with omit_types"
        raise Refused(cls.__qualname__, how_to_keep(cls) if is_foreign(cls) else why)
    return {TAG: "object", "type": qualified_name(cls), "v": encoder.members(parts.items())}
