"""A response cache for models and tools: ``cache``, ``cached`` and ``memory_cache``. For development and tests.

Theory. Each entry is a cassette of one call, under a name that is made of the call's own content. It appears by the
same create-only publish as any cassette, whole or not at all, so any number of processes share one folder without
locks: where two ask the same at once, both ask for real, one of them publishes, and the other finds that done. A file
may be deleted at any time; the next call makes it again.

A cache is no session: a hit consumes nothing, and a consumer may stop reading a replayed stream where it likes. Where a
session selects the function that is cached, the session decides, and the cache steps aside.

Rule: an entry is a successful call whose stream, if it is one, was read to its end; and it is handed out only for the
very call that it holds. What a caller gets on a miss is the copy that a hit will give.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
import secrets
import time
import types
import warnings
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, overload

from toolcassette.cached_functions import WRAPPERS
from toolcassette.engine import Call, read, session_for
from toolcassette.errors import (
    CacheExpired,
    CacheMiss,
    CassetteError,
    CassetteExists,
    CassetteMismatch,
    ContractMismatch,
    FormatError,
    UnrecordableValue,
)
from toolcassette.format import RecordedCall, decode_value, encode_value, write_cassette
from toolcassette.session import PRODUCER
from toolcassette.stores import FileStore, MemoryStore
from toolcassette.tools import default_registry, description_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolcassette.describe import Description
    from toolcassette.engine import ToolContract
    from toolcassette.format import Cassette
    from toolcassette.stores import Store

__all__ = ["Cache", "cache", "cached", "memory_cache"]

_F = TypeVar("_F")

_DIR: Final = ".toolcassette-cache"
_MODES: Final = ("default", "record", "replay-only", "bypass")
_EXPIRED: Final = ("fail", "warn")
_KEY_HEX: Final = 40  # 160 bits
_NAME_CHARS: Final = 40  # enough to tell files apart by eye; with key and suffix below any file system's limit
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")


class Cache:
    """What ``cache`` makes: a decorator, and ``wrap``. ``name_of`` tells under which name a call is kept."""

    def __init__(
        self,
        folder: str,
        store: Store,
        *,
        mode: str,
        enabled: bool | Callable[[], bool],
        key: Callable[[Call], str] | None,
        max_age: float | None,
        expired: str,
    ) -> None:
        self._folder = folder
        self._store = store
        self._mode = mode
        self._enabled = enabled
        self._key = key
        self._max_age = max_age
        self._expired = expired

    def __repr__(self) -> str:
        return f"<Cache {self._mode}>"

    def __call__(self, fn: _F) -> _F:
        """As ``wrap``."""
        return self.wrap(fn)

    def wrap(self, fn: _F) -> _F:
        """The same function, answered from the cache where it can be; of the same kind and signature.

        Options that say what a call is (``omit``, ``identity``, ``rules``, ``returns``) are those of ``cassette_tool``
        and ``wrap_model``: wrap with one of these first. Raises as these do.
        """
        if isinstance(fn, (classmethod, staticmethod)):
            kind = type(fn)
            return cast("_F", kind(self.wrap(fn.__func__)))
        inner = description_of(fn.__func__ if isinstance(fn, types.MethodType) else fn)
        tool = inner if inner is not None and not isinstance(fn, types.MethodType) else _described(fn, inner)
        live = cast("Callable[..., Any]", fn)

        def ask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Question | None:
            return self._question(tool, args, kwargs, is_wrapped=inner is not None)

        wrapper = WRAPPERS[tool.kind](live, ask)
        tool.dress(wrapper)
        return cast("_F", wrapper)

    def name_of(self, call: Call) -> str:
        """The name of the entry of a call in the store. Raises ``TypeError`` where ``key`` gives no text."""
        if self._key is None:
            digest = hashlib.sha256(encode_value([call.boundary, call.tool, call.args], sort=True))
        else:
            key: object = self._key(call)
            if not isinstance(key, str) or not key:
                message = "key must return a text of at least one character"
                raise TypeError(message)
            digest = hashlib.sha256(encode_value([key], sort=True))
        words = _UNSAFE.sub("-", call.tool)[:_NAME_CHARS].strip("-") or "call"
        name = f"{words}-{digest.hexdigest()[:_KEY_HEX]}.cassette.jsonl"
        return os.path.join(self._folder, name) if self._folder else name  # noqa: PTH118 - a store's name is text

    def _question(
        self, tool: Description, args: tuple[Any, ...], kwargs: dict[str, Any], *, is_wrapped: bool
    ) -> Question | None:
        """What a call asks of the cache; None where it is to run as if there were none."""
        enabled = self._enabled() if callable(self._enabled) else self._enabled
        if self._mode == "bypass" or not enabled or (is_wrapped and _is_a_sessions(tool.name)):
            return None
        try:
            arguments, omitted = tool.arguments(args, kwargs)
            contract = tool.contract()
        except UnrecordableValue as error:
            raise error.of(tool.name) from None
        call = Call(tool.name, arguments, tool.boundary, omitted=omitted)
        return Question(self, call, contract, self.name_of(call))

    def find(self, question: Question) -> Cassette | None:
        """The entry that answers a question; None where the function must be asked.

        Raises ``CacheMiss``, ``CacheExpired``, ``FormatError`` for a damaged entry, ``CassetteMismatch`` for one that
        holds another call.
        """
        if self._mode == "record":
            return None
        call = question.call
        try:
            found = read(self._store, question.name)
        except FormatError as error:
            if error.reason != "absent":
                raise
            if self._mode == "replay-only":
                raise CacheMiss(call.tool) from None
            return None
        same = self._key is not None or (len(found) == 1 and found.is_call(0, call.tool, call.args, call.boundary))
        if not same or len(found) != 1 or found.complete.ok != 1:
            advice = "this entry of the cache holds another call: its file was renamed or put there; delete it"
            raise CassetteMismatch("arguments_differ", tool=call.tool, advice=advice)
        self._judge_age(found, call.tool)
        return found

    def _judge_age(self, found: Cassette, tool: str) -> None:
        """By the header, which is what the chain holds together; the time of a file says when it was copied."""
        if self._max_age is None:
            return
        created = dt.datetime.fromisoformat(found.header.created)
        age = (dt.datetime.now(dt.UTC) - created).total_seconds()
        if age <= self._max_age:
            return
        error = CacheExpired(tool, age=age, max_age=self._max_age)
        if self._expired == "fail":
            raise error
        warnings.warn(str(error), stacklevel=4)

    def publish(self, name: str, call: RecordedCall) -> None:
        """Keep an entry. Where another process was first, that is done already."""
        created = dt.datetime.now(dt.UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        cassette = secrets.token_hex(16)
        data = write_cassette([call], cassette=cassette, created=created, producer=PRODUCER)
        replace = self._mode == "record"
        try:
            spool = self._store.create(name, cassette_id=cassette, replace=replace, set_aside=True)
        except CassetteExists:
            return
        try:
            spool.append(data)
            spool.sync()
            if replace:
                spool.swap()
            else:
                spool.publish()
        except CassetteExists:
            spool.keep()
        finally:
            spool.keep()


class Question:
    """One call of a cached function: looked up, and if need be asked for real and kept."""

    def __init__(self, asked: Cache, call: Call, contract: ToolContract, name: str) -> None:
        self.call = call
        self.contract = contract
        self.name = name
        self._cache = asked
        self._began = time.monotonic_ns()

    def find(self) -> Answer | None:
        """The answer that is kept; None where the function must be asked. Raises as ``Cache.find``."""
        found = self._cache.find(self)
        return None if found is None else Answer(self, found)

    def keep(self, value: object) -> object:
        """Keep a plain value. Returns the copy that a hit will give. Raises ``UnrecordableValue``."""
        try:
            kept = self.contract.keep(value)
        except UnrecordableValue as error:
            raise error.of(self.call.tool) from None
        self._publish(value=kept.value, contexts=kept.contexts, meta=kept.meta)
        return kept.copy

    def item(self, value: object) -> tuple[bytes, object]:
        """The bytes of an item of a stream, and the copy that a hit will give. Raises ``UnrecordableValue``."""
        try:
            return self.contract.round_trip_chunk(value)
        except UnrecordableValue as error:
            raise error.of(self.call.tool) from None

    def keep_stream(self, shape: str, items: list[bytes]) -> None:
        """Keep a stream that was read to its end."""
        self._publish(chunks=tuple(items), meta=encode_value({"stream": shape}))

    def unfit(self, value: object) -> UnrecordableValue:
        """The error for a value that stands for a stream to come."""
        why = "is a context manager, which a cache does not keep; cache what is inside it"
        return UnrecordableValue(json_path="$", type_name=type(value).__qualname__, why=why, tool=self.call.tool)

    def _publish(self, **outcome: Any) -> None:
        call = self.call
        took = (time.monotonic_ns() - self._began) // 1000
        recorded = RecordedCall(
            tool=call.tool, args=call.args, boundary=call.boundary, omitted=call.omitted, ended_at=took, **outcome
        )
        self._cache.publish(self.name, recorded)


class Answer:
    """An entry, to be handed out."""

    def __init__(self, question: Question, found: Cassette) -> None:
        self._question = question
        self._found = found

    @property
    def shape(self) -> str | None:
        """How a stream was handed out; None of a plain value."""
        ended = self._found.outcome(0)
        meta: Any = None if ended.chunks is None else decode_value(ended.meta or b"null")
        return str(meta.get("stream")) if isinstance(meta, dict) else None

    def value(self) -> object:
        """A fresh value. Raises ``ContractMismatch`` where it does not fit today's annotation."""
        try:
            return self._question.contract.hand_out(self._found.outcome(0))
        except ContractMismatch as error:
            raise error.at(self._question.call.tool, (), 0) from None

    def items(self) -> Iterator[object]:
        """The items of a stream, fresh, one by one. Raises as ``value``."""
        for data in self._found.chunks(0):
            try:
                item = self._question.contract.decode_chunk(data)
            except ContractMismatch as error:
                raise error.at(self._question.call.tool, (), 0) from None
            yield item


def _described(fn: Any, inner: Description | None) -> Description:
    tool = description_of(default_registry.wrap(fn))
    assert tool is not None  # it was wrapped right now
    if inner is not None:
        tool.boundary, tool.refine = inner.boundary, inner.refine
    return tool


def _is_a_sessions(tool: str) -> bool:
    """True where a session has a say in calls of this tool: it answers, or refuses."""
    try:
        return session_for(tool) is not None
    except CassetteError:
        return True


def cache(
    dir: str | os.PathLike[str] | None = None,  # noqa: A002 - the word that its users use
    *,
    mode: str = "default",
    enabled: bool | Callable[[], bool] = True,
    key: Callable[[Call], str] | None = None,
    store: Store | None = None,
    max_age: float | dt.timedelta | None = None,
    expired: str = "fail",
) -> Cache:
    """A response cache: ``@tc.cache()`` over a function, or ``tc.cache().wrap(fn)``.

    ``dir``: where its files are, ``.toolcassette-cache`` if not given; with a ``store`` the front of its names.
    ``mode``: ``default`` (a hit is handed out, a miss is asked for and kept), ``record`` (always asks; an entry is
    swapped when the new one is whole), ``replay-only`` (a miss is ``CacheMiss``), ``bypass`` (as if there were none).
    ``enabled`` is looked at, or called, at each call. ``key`` takes the ``Call`` and gives a text instead of all that
    was passed. ``max_age``, in seconds or as a timedelta: an older entry is ``CacheExpired``, or with
    ``expired="warn"`` a warning; never a silent call. Raises ``ValueError`` for other values.
    """
    if mode not in _MODES:
        message = f"mode must be one of {', '.join(_MODES)}"
        raise ValueError(message)
    if expired not in _EXPIRED:
        message = f"expired must be one of {', '.join(_EXPIRED)}"
        raise ValueError(message)
    seconds = max_age.total_seconds() if isinstance(max_age, dt.timedelta) else max_age
    if seconds is not None and not seconds >= 0:
        message = "max_age must be a number of seconds, 0 or more"
        raise ValueError(message)
    folder = os.fspath(dir) if dir is not None else _DIR if store is None else ""
    return Cache(
        folder,
        FileStore() if store is None else store,
        mode=mode,
        enabled=enabled,
        key=key,
        max_age=seconds,
        expired=expired,
    )


@overload
def cached(fn: _F, /) -> _F: ...
@overload
def cached(**options: Any) -> Callable[[_F], _F]: ...
def cached(fn: Any = None, /, **options: Any) -> Any:
    """``cache(**options)`` as a decorator; bare, with all options at their defaults."""
    return cache(**options) if fn is None else cache(**options).wrap(fn)


def memory_cache(**options: Any) -> Cache:
    """A ``cache`` of its own in memory, for tests; the other options are those of ``cache``."""
    return cache(store=MemoryStore(), **options)
