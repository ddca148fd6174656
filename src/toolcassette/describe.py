"""What a function is, as far as a call of it is concerned: name, kind, parameters, promise.

Rule: everything that can be wrong with a tool is said when it is wrapped; hints are resolved at its first call, when
the names that they mention exist, and one that cannot be resolved counts as absent.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import typing
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Final

from toolcassette.contracts import JsonSchema, encode_args
from toolcassette.engine import EFFECTS, differences
from toolcassette.errors import UnrecordableValue, printable
from toolcassette.format import decode_tree, encode_tree, may_hold_tags
from toolcassette.promise import ABSENT, annotations_of, is_one_of, promise
from toolcassette.redaction import compiled
from toolcassette.snapshots import are_frozen, marshalled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolcassette.contracts import Extensions
    from toolcassette.engine import Member, ToolContract
    from toolcassette.redaction import Rule

__all__ = ["ABSENT", "Description", "describe"]

_AWAITABLES = (collections.abc.Awaitable, collections.abc.Coroutine)
_PATHS_MAX: Final = 5  # a message, not a report
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


_KINDS: Final = (
    ("async", inspect.iscoroutinefunction),
    ("generator", inspect.isgeneratorfunction),
    ("async_generator", inspect.isasyncgenfunction),
)


class Description:
    """One tool. ``fn`` is what runs; ``kind`` is ``sync``, ``async``, ``shell`` (a plain function that returns an
    awaitable), ``generator`` or ``async_generator``. ``refine`` makes of canonical arguments what calls are matched by.
    """

    boundary = "tool"
    refine: Callable[[bytes], bytes] | None = None

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str,
        kind: str,
        errors: tuple[type[Exception], ...],
        returns: Any,
        target: Callable[..., Any],
        signature: inspect.Signature,
        bound: tuple[tuple[Any, ...], dict[str, Any]],
        omit: frozenset[str],
        omit_types: tuple[type, ...],
        extensions: Extensions,
        schema: JsonSchema | None,
        rules: tuple[Rule, ...],
        effect: str | None,
    ) -> None:
        self.rules = rules  # that its calls are redacted by besides the session's
        self.effect = effect
        self.fn = fn
        self.name = name
        self.kind = kind
        self._errors = errors
        self._returns = returns
        self._target = target  # the function that carries hints: a partial's, a callable object's __call__
        self._signature = signature  # of what a call is bound to: a partial's bound arguments are part of its calls
        self._bound_args, self._bound_kwargs = bound
        self._omit = omit
        self._omit_types = omit_types
        self._extensions = extensions
        self._schema = schema
        self._version = -1  # of the extensions that the contract was compiled with
        self._contract: ToolContract | None = None
        self._left_out: frozenset[str] | None = None
        self._plain = _plain_names(signature)
        self._names = frozenset(signature.parameters)
        self._defaults = {
            name: p.default for name, p in signature.parameters.items() if p.default is not inspect.Parameter.empty
        }
        self._told: weakref.WeakSet[Member] = weakref.WeakSet()  # sessions that were told of changed arguments
        others = [*self._defaults.values(), *bound[0], *bound[1].values()]
        self._others = None if are_frozen(others) else others  # what a body could change besides what it is passed

    @property
    def parameters(self) -> frozenset[str]:
        """The names of its parameters."""
        return self._names

    @functools.cached_property
    def identity(self) -> object:
        """What makes two functions of one name the same tool: their module and code, else the object itself."""
        function = inspect.unwrap(self._target)
        code = getattr(function, "__code__", None)
        return self._target if code is None else (function.__module__, code)

    def dress(self, wrapper: Any) -> None:
        """Make a wrapper look like the tool."""
        functools.update_wrapper(wrapper, self._target)
        if self.fn is not self._target:  # a partial or a callable object: hints come from elsewhere than the signature
            shown = inspect.signature(self.fn)
            wrapper.__signature__ = shown
            hints = annotations_of(self._target)
            wrapper.__annotations__ = {k: v for k, v in hints.items() if k == "return" or k in shown.parameters}
            wrapper.__name__ = wrapper.__qualname__ = self.name
            doc = None if isinstance(self.fn, functools.partial) else type(self.fn).__doc__
            wrapper.__doc__ = doc or self._target.__doc__

    def contract(self) -> ToolContract:
        """What the tool promises. Raises ``UnrecordableValue`` for an annotation that nothing can encode."""
        if self._contract is None or self._version != self._extensions.version:
            self._version = self._extensions.version
            returns = self._hint("return") if self._returns is ABSENT else self._returns
            if self.kind == "shell" and typing.get_origin(returns) in _AWAITABLES:
                returns = next(reversed(typing.get_args(returns)), ABSENT)  # a bare Awaitable says nothing
            self._contract = promise(returns, self._errors, self._extensions, self._schema, kind=self.kind)
        return self._contract

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bytes, tuple[str, ...]]:
        """Canonical arguments of a call, and the names of the parameters left out.

        Raises ``TypeError`` for arguments that do not fit the signature, ``UnrecordableValue`` before the body could
        run.
        """
        arguments = self._bind(args, kwargs)
        left_out = self._left_out_names()
        omitted = tuple(name for name in arguments if name in left_out) if left_out else ()
        for name in omitted:
            del arguments[name]
        try:
            return self._key(arguments), omitted
        except UnrecordableValue:
            sentinels = [name for name, value in arguments.items() if self._is_sentinel(name, value)]
            if not sentinels:
                raise
        for name in sentinels:
            del arguments[name]
        return self._key(arguments), (*omitted, *sentinels)

    def watch(
        self, session: Member, before: bytes, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Callable[[], None] | None:
        """What tells, after a body ran, whether it changed its arguments; None where nothing in them can change.

        ``before``: their canonical bytes. The wrapper calls it last of all, as warnings may be errors.
        """
        if self._others is None and are_frozen(args) and are_frozen(kwargs.values()):
            return None
        if (
            self._plain is not None and self.refine is None and not may_hold_tags(before)
        ):  # most calls: what is written says it all

            def tell() -> None:
                if self._text(args, kwargs) != before:
                    self._tell_changes(session, before, args, kwargs)

            return tell
        parts = (args, kwargs, self._others)
        snapshot = marshalled(parts)

        def tell_by_snapshot() -> None:
            if snapshot is None or snapshot != marshalled(parts):
                self._tell_changes(session, before, args, kwargs)

        return tell_by_snapshot

    def _text(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """What ``arguments`` says of JSON values, without its proof: a list that became an equal tuple looks the same.

        Of other values, anything.
        """
        arguments = self._bind(args, kwargs)
        for name in self._left_out_names():
            arguments.pop(name, None)
        try:
            return encode_tree(arguments, sort=True)
        except (TypeError, ValueError, RecursionError):
            return b""

    def _tell_changes(self, session: Member, before: bytes, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Warn, once a session, that the body changed arguments in place."""
        if session in self._told:
            return
        paths = self._changed(before, args, kwargs)
        if paths:
            self._told.add(session)
            where = ", ".join(printable(path) for path in paths)
            warnings.warn(
                f"the body of {printable(self.name)} changed its arguments in place at {where}; a replay runs no body "
                "and will not: return what changed instead",
                stacklevel=3,
            )

    def _changed(self, before: bytes, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        """JSON paths, the first few, at which the arguments of a call are not what ``before`` holds any more."""
        try:
            after, _ = self.arguments(args, kwargs)
        except UnrecordableValue as error:
            return [error.json_path]
        if after == before:
            return []
        rows = differences(decode_tree(before, sort=True), decode_tree(after, sort=True))
        return sorted({path for path, _ in rows})[:_PATHS_MAX]

    def _key(self, arguments: Mapping[str, object]) -> bytes:
        data = self._encode(arguments)
        return data if self.refine is None else self.refine(data)

    def _encode(self, arguments: Mapping[str, object]) -> bytes:
        return encode_args(arguments, extensions=self._extensions)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if self._bound_args or self._bound_kwargs:
            args, kwargs = (*self._bound_args, *args), {**self._bound_kwargs, **kwargs}
        names = self._plain
        if names is not None and len(args) <= len(names):
            # The quick way, ten times cheaper than Signature.bind; whatever does not fit goes the other way.
            placed = dict(zip(names, args, strict=False)) if args else {}
            arguments = {**self._defaults, **placed, **kwargs}
            passed_twice = args and kwargs and not kwargs.keys().isdisjoint(placed)
            if arguments.keys() == self._names and not passed_twice:
                return arguments
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return {name: list(v) if type(v) is tuple and self._is_rest(name) else v for name, v in bound.arguments.items()}

    def _is_rest(self, name: str) -> bool:
        return self._signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL

    def _is_sentinel(self, name: str, value: Any) -> bool:
        """A default that cannot be written, passed as itself, says nothing: it is left out."""
        if name not in self._defaults or value is not self._defaults[name]:
            return False
        try:
            self._encode({name: value})
        except UnrecordableValue:
            return True
        return False

    def _left_out_names(self) -> frozenset[str]:
        if self._left_out is None:
            by_type = {
                name
                for name in self._signature.parameters
                if self._omit_types and is_one_of(self._hint(name), self._omit_types)
            }
            self._left_out = self._omit | by_type
        return self._left_out

    def _hint(self, name: str) -> Any:
        """One resolved hint; ``ABSENT`` where there is none, or where it cannot be resolved."""
        annotation = annotations_of(self._target).get(name, ABSENT)
        if annotation is ABSENT:
            return ABSENT

        def shim() -> None: ...

        shim.__annotations__ = {name: annotation}
        holder = inspect.unwrap(self._target)
        try:
            return typing.get_type_hints(shim, getattr(holder, "__globals__", {}), include_extras=True)[name]
        except Exception:  # noqa: BLE001 - evaluating a string annotation can raise anything; it then counts as absent
            return ABSENT


def describe(
    fn: Callable[..., Any],
    *,
    name: str | None,
    omit: Sequence[str],
    errors: Sequence[type[Exception]],
    returns: Any,
    omit_types: tuple[type, ...],
    extensions: Extensions,
    output_schema: Mapping[str, object] | None = None,
    redact: Sequence[object] = (),
    effect: str | None = None,
) -> Description:
    """Look at a function once. Raises ``TypeError`` for what cannot be a tool, ``ValueError`` for bad options.

    ``output_schema`` without jsonschema is ``ModuleNotFoundError``.
    """
    if not callable(fn) or isinstance(fn, type):
        message = "a tool is a function, a method, a partial or a callable object"
        raise TypeError(message)
    inner, bound = _unbound(fn)
    target = _carrier(inner)
    own_name = name if name is not None else _name_of(inner)
    _check_name(own_name)
    _check_errors(errors, own_name)
    if effect not in (None, *EFFECTS):
        message = f"effect of {printable(own_name)} must be one of {', '.join(EFFECTS)}"
        raise ValueError(message)
    signature = _signature(inner, own_name)
    left_out = frozenset([omit] if isinstance(omit, str) else omit)
    for stranger in sorted(left_out - signature.parameters.keys()):
        message = f"omit of {printable(own_name)} must list its parameters, and {printable(stranger)} is none of them"
        raise ValueError(message)
    return Description(
        fn=fn,
        name=own_name,
        kind=_kind(target),
        errors=tuple(errors),
        returns=returns,
        target=target,
        signature=signature,
        bound=bound,
        omit=left_out | _receiver(inner, signature),
        omit_types=omit_types,
        extensions=extensions,
        schema=None if output_schema is None else JsonSchema(output_schema),
        rules=compiled([redact] if isinstance(redact, str) else redact),
        effect=effect,
    )


def _unbound(fn: Callable[..., Any]) -> tuple[Callable[..., Any], tuple[tuple[Any, ...], dict[str, Any]]]:
    """What a partial calls, and what it binds."""
    if isinstance(fn, functools.partial):
        return fn.func, (fn.args, dict(fn.keywords))
    return fn, ((), {})


def _carrier(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Where hints and kind are found: the function itself, or a callable object's ``__call__``."""
    return fn if inspect.isroutine(fn) else type(fn).__call__


def _name_of(fn: Callable[..., Any]) -> str:
    return fn.__name__ if inspect.isroutine(fn) else type(fn).__name__


def _check_name(name: str) -> None:
    try:
        fine = bool(name) and name == name.encode("utf-8").decode("utf-8")
    except (UnicodeEncodeError, AttributeError):
        fine = False
    if not fine:
        message = "the name of a tool must be text of at least one character, without lone surrogates"
        raise ValueError(message)


def _check_errors(errors: Sequence[type[Exception]], name: str) -> None:
    for error in errors:
        if not (isinstance(error, type) and issubclass(error, Exception)):
            message = f"errors of {printable(name)} must list exception classes"
            raise TypeError(message)


def _signature(fn: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        return inspect.signature(fn)
    except ValueError:
        message = f"{printable(name)} has no signature to bind its arguments to; wrap a Python function around it"
        raise TypeError(message) from None


def _receiver(fn: Callable[..., Any], signature: inspect.Signature) -> frozenset[str]:
    """``self`` or ``cls`` of a function that is defined in a class."""
    first = next(iter(signature.parameters), None)
    owner = getattr(fn, "__qualname__", "").rpartition(".")[0]
    in_class = bool(owner) and not owner.endswith("<locals>")
    return frozenset({first}) if first in ("self", "cls") and in_class else frozenset()


def _kind(target: Callable[..., Any]) -> str:
    for kind, is_kind in _KINDS:
        if is_kind(target):
            return kind
    if inspect.iscoroutinefunction(inspect.unwrap(target)):
        return "shell"
    returns = annotations_of(target).get("return")
    named = returns.partition("[")[0].rpartition(".")[2] if isinstance(returns, str) else typing.get_origin(returns)
    return "shell" if named in (*_AWAITABLES, "Awaitable", "Coroutine") else "sync"


def _plain_names(signature: inspect.Signature) -> tuple[str, ...] | None:
    """Parameters that may be passed by place, in order; None where only ``Signature.bind`` knows how."""
    parameters = signature.parameters.values()
    if any(p.kind in (*_VARIADIC, inspect.Parameter.POSITIONAL_ONLY) for p in parameters):
        return None
    return tuple(p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD)
