"""What a return annotation promises: a value, a stream of items, or either.

Rule: an annotation that names an iterator promises a stream, one that names a value promises none, and without one the
tool may do either. What it promises for the items is what it says of the iterator's own parameter.
"""

from __future__ import annotations

import collections.abc
import contextlib
import inspect
import typing
from typing import TYPE_CHECKING, Any, Final

from toolcassette.contracts import Contract, Extensions, JsonSchema, ToolReturn, contract_for
from toolcassette.engine import ToolContract

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ABSENT", "annotations_of", "is_one_of", "promise"]

ABSENT: Final = inspect.Signature.empty  # no annotation, no override

_STREAMS: Final = (
    collections.abc.Iterator,
    collections.abc.Generator,
    collections.abc.AsyncIterator,
    collections.abc.AsyncGenerator,
    collections.abc.AsyncIterable,
)
_CONTEXTS: Final[dict[Any, str]] = {  # annotation -> shape of stream
    contextlib.AbstractContextManager: "context",
    contextlib.AbstractAsyncContextManager: "async_context",
}
_ANYTHING: Final = (ABSENT, Any, object)
_GENERATORS: Final = {"generator": "iterator", "async_generator": "async_iterator"}  # kind of tool -> shape of stream


def promise(
    returns: Any,
    errors: Sequence[type[Exception]],
    extensions: Extensions,
    schema: JsonSchema | None = None,
    *,
    kind: str = "",
) -> ToolContract:
    """The contract of a tool. ``schema``: what its values, or the items of its stream, must fit besides.

    A ``kind`` of ``generator`` or ``async_generator`` promises a stream whatever the annotation does not say.

    Raises ``UnrecordableValue`` for an annotation that nothing can encode.
    """

    def contract(annotation: Any = ABSENT) -> Contract:
        return contract_for(annotation, extensions=extensions, schema=schema)

    if _form(returns) is ToolReturn:  # what it says of its value
        returns = next(iter(typing.get_args(returns)), ABSENT)
    form = _form(returns)
    shape, contexts = _GENERATORS.get(kind), ""
    plain: Contract | None = None
    chunks: Contract | None = None
    if form is collections.abc.Iterable or any(returns is anything for anything in _ANYTHING):
        chunks = contract(_item(returns))
        plain = contract(returns) if shape is None else None  # a list is an Iterable, and so is a generator
    elif form in _STREAMS or form in tuple(_CONTEXTS):
        chunks, contexts = contract(_item(returns)), _CONTEXTS.get(form, "")
    else:
        plain = contract(returns)
    return ToolContract(plain, errors, chunks=chunks, contexts=contexts, shape=shape, extensions=extensions)


def _form(annotation: Any) -> Any:
    return typing.get_origin(annotation) or annotation


def _item(annotation: Any) -> Any:
    """The annotation of the items; of an iterator of iterators (contextlib's decorators), of the inner one's."""
    while _form(annotation) in (*_STREAMS, *_CONTEXTS, collections.abc.Iterable):
        annotation = next(iter(typing.get_args(annotation)), ABSENT)
    return annotation


def is_one_of(hint: Any, classes: tuple[type, ...]) -> bool:
    """Whether a hint names one of some classes, or something made of one."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return is_one_of(typing.get_args(hint)[0], classes)
    kind = hint if origin is None else origin
    return isinstance(kind, type) and issubclass(kind, classes)


def annotations_of(fn: Any) -> dict[str, Any]:
    """The annotations of a function; none where they cannot be had."""
    try:
        return dict(getattr(fn, "__annotations__", {}))
    except Exception:  # noqa: BLE001 - annotations may be evaluated on access (3.14) and raise anything
        return {}
