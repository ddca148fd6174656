"""Model calls: ``wrap_model`` makes a call of a function that asks a model, on the same cassette as the tools.

Rule: a model call is a call like any other, at the boundary ``model``. Everything that is passed is its key, but for
run-random ids (``identity`` tells which) and what a declared rule removes.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from toolcassette.contracts import encode_args
from toolcassette.describe import ABSENT
from toolcassette.errors import printable
from toolcassette.format import decode_tree, encode_tree
from toolcassette.identity import identify
from toolcassette.tools import Registry, default_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolcassette.describe import Description
    from toolcassette.identity import Rule

__all__ = ["wrap_model"]

_F = TypeVar("_F")


class _Models(Registry):
    """What wraps one function that asks a model."""

    def __init__(self, identity: Mapping[str, object], rules: Sequence[Rule]) -> None:
        super().__init__()
        self.extensions = default_registry.extensions
        self._identity = decode_tree(encode_args(identity), sort=True)
        self._rules = tuple(rules)

    def _admit(self, tool: Description) -> None:
        for name in sorted(tool.parameters & self._identity.keys()):
            message = f"identity of {printable(tool.name)} has {printable(name)}, which is one of its parameters"
            raise ValueError(message)
        tool.boundary = "model"
        tool.refine = self._refine

    def _refine(self, arguments: bytes) -> bytes:
        if self._identity:
            arguments = encode_tree(decode_tree(arguments, sort=True) | self._identity, sort=True)
        return identify(arguments, self._rules)


@overload
def wrap_model(fn: _F, /) -> _F: ...
@overload
def wrap_model(
    fn: _F,
    /,
    *,
    name: str | None = None,
    identity: Mapping[str, object] | None = None,
    rules: Sequence[Rule] = (),
    omit: Sequence[str] = (),
    errors: Sequence[type[Exception]] = (),
    returns: Any = ABSENT,
) -> _F: ...
@overload
def wrap_model(
    *,
    name: str | None = None,
    identity: Mapping[str, object] | None = None,
    rules: Sequence[Rule] = (),
    omit: Sequence[str] = (),
    errors: Sequence[type[Exception]] = (),
    returns: Any = ABSENT,
) -> Callable[[_F], _F]: ...
def wrap_model(fn: Any = None, /, **options: Any) -> Any:
    """Let sessions record and replay a function that asks a model; bare, with options, or as a decorator.

    ``identity``: what decides the answer and is not passed to the function, such as ``{"provider": "openai", "model":
    "gpt-5"}`` of a client that holds both. ``rules``: functions that take the request, as JSON by parameter name, and
    return what counts of it; ``normalize_tools`` is one. The other options are those of ``cassette_tool``. Raises
    ``ValueError`` for an identity that is a parameter, ``TypeError`` for a rule that is no function, and as
    ``Registry.wrap``.
    """
    return functools.partial(_wrapped, **options) if fn is None else _wrapped(fn, **options)


def _wrapped(
    fn: Any, *, identity: Mapping[str, object] | None = None, rules: Sequence[Rule] = (), **options: Any
) -> Any:
    if not all(map(callable, cast("Sequence[object]", rules))):
        message = "rules must list functions from a request to what counts of it"
        raise TypeError(message)
    return _Models(identity or {}, rules).wrap(fn, **options)
