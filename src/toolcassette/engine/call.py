"""One call and what its tool promises: what a session is asked with.

Rule: arguments are bytes before anybody sees the call, so nothing that runs later can change what was asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from toolcassette.contracts import NO_EXTENSIONS, Extensions, ToolReturn, contract_for, decode_error, encode_error
from toolcassette.errors import CassetteError, ContractMismatch, UnrecordableValue

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from toolcassette.contracts import Contract
    from toolcassette.format import RecordedOutcome
    from toolcassette.redaction import Ref, Rule

__all__ = ["Call", "Kept", "Pending", "Place", "ToolContract", "call_key"]


class Call(NamedTuple):
    """A tool (or model), its canonical arguments and its call path.

    ``omitted`` names the parameters left out; ``rules`` are those that the tool is redacted by besides the session's.
    Replaying, ``args`` are what is compared: without secrets and without their numbers, which are ``refs``;
    ``redacted`` are the arguments with them.
    """

    tool: str
    args: bytes
    boundary: str = "tool"
    path: tuple[str, ...] = ()
    effect: str | None = None
    omitted: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    redacted: bytes = b""
    refs: tuple[Ref, ...] = ()

    def changed(self, **parts: Any) -> Self:
        """The same call with other parts."""
        return self._replace(**parts)

    def __repr__(self) -> str:
        return f"<Call of {self.tool}, {len(self.args)} bytes>"  # a traceback with locals must show no arguments


class Place:
    """Where a call stands for one session: its path, and whether a frame of it has ended already."""

    __slots__ = ("late", "path")

    def __init__(self, path: tuple[str, ...], late: str | None) -> None:
        self.path = path
        self.late = late  # the segment that ended, None for none


def call_key(call: Call) -> tuple[tuple[str, ...], str, bytes]:
    """What two calls must share to be one and the same: path, tool and canonical arguments."""
    return call.path, call.tool, call.args


def _round_trip(contract: Contract, value: object) -> tuple[bytes, object]:
    """As ``Contract.round_trip``. The value's own code may do anything; what it raises is not what the tool raised."""
    try:
        return contract.round_trip(value)
    except CassetteError:
        raise
    except Exception as error:  # noqa: BLE001 - see above
        why = f"cannot be read: its own code raises {type(error).__qualname__}"
        raise UnrecordableValue(json_path="$", type_name=type(value).__qualname__, why=why) from None


class Kept(NamedTuple):
    """What became of a tool's value: the copy to hand out, and its parts as canonical bytes."""

    copy: object
    value: bytes
    contexts: bytes | None = None
    meta: bytes | None = None

    def __repr__(self) -> str:
        return f"<Kept {type(self.copy).__qualname__}, {len(self.value)} bytes>"


class ToolContract:
    """What a tool promises: the contract of its value, of a stream's items, and the exception classes it declares.

    ``returns`` is None for a tool whose annotation says that it always returns a stream, ``chunks`` for one whose
    annotation says that it never does. ``contexts``: the kind of context manager that the
    annotation says gives the stream, or empty.
    ``shape``: the only one of ``SHAPES`` that the tool's wrapper can hand out, or None.
    """

    __slots__ = ("_chunks", "_errors", "_extensions", "_returns", "contexts", "shape")

    def __init__(
        self,
        returns: Contract | None,
        errors: Sequence[type[Exception]] = (),
        *,
        chunks: Contract | None = None,
        contexts: str = "",
        shape: str | None = None,
        extensions: Extensions = NO_EXTENSIONS,
    ) -> None:
        self._returns = returns
        self._errors = tuple(errors)
        self._extensions = extensions
        self._chunks = chunks
        self.contexts = contexts
        self.shape = shape

    @property
    def may_stream(self) -> bool:
        """True unless the annotation says that the tool returns a plain value."""
        return self._chunks is not None

    def round_trip(self, value: object) -> tuple[bytes, object]:
        """Canonical bytes of a value, and the copy that a replay will hand out. Raises ``UnrecordableValue``."""
        if self._returns is None:
            why = "is no stream, which the annotation promises"
            raise UnrecordableValue(json_path="$", type_name=type(value).__qualname__, why=why)
        return _round_trip(self._returns, value)

    def keep(self, value: object) -> Kept:
        """A tool's value, and of a ``ToolReturn`` what came beside it. Raises ``UnrecordableValue``."""
        if not isinstance(value, ToolReturn):
            data, copy = self.round_trip(value)
            return Kept(copy, data)
        data, copy = self.round_trip(value.value)
        contexts, contexts_copy = self._beside("contexts", value.contexts)
        if value.meta is None:
            return Kept(ToolReturn(copy, contexts_copy), data, contexts)
        meta, meta_copy = self._beside("meta", value.meta)
        return Kept(ToolReturn(copy, contexts_copy, meta_copy), data, contexts, meta)

    def _beside(self, member: str, part: object) -> tuple[bytes, Any]:
        """What stands beside a value is held against no annotation."""
        try:
            return _round_trip(contract_for(extensions=self._extensions), part)
        except UnrecordableValue as error:
            raise error.below(member) from None

    def hand_out(self, ended: RecordedOutcome) -> object:
        """The value of a recorded outcome, with what came beside it. Raises as ``decode``."""
        value = self.decode(ended.value or b"")
        if ended.contexts is None:
            return value
        beside = contract_for(extensions=self._extensions)
        contexts: Any = beside.decode(ended.contexts)
        meta: Any = None if ended.meta is None else beside.decode(ended.meta)
        return ToolReturn(value, contexts, meta)

    def round_trip_chunk(self, item: object) -> tuple[bytes, object]:
        """As ``round_trip``, for an item of a stream."""
        assert self._chunks is not None  # may_stream was asked
        return _round_trip(self._chunks, item)

    def decode(self, data: bytes) -> object:
        """A fresh value. Raises ``ContractMismatch`` where it does not fit today's annotation, or ``FormatError``."""
        if self._returns is None:
            raise ContractMismatch(json_path="$", wanted="a stream")
        return self._returns.decode(data)

    def decode_chunk(self, data: bytes) -> object:
        """As ``decode``, for an item of a stream."""
        if self._chunks is None:
            raise ContractMismatch(json_path="$", wanted="a value, and no stream")
        return self._chunks.decode(data)

    def encode_error(self, error: Exception) -> tuple[bytes, bool]:
        """Canonical bytes of an exception, and whether a replay will raise its own class.

        Raises ``UnrecordableValue`` where it can be neither: a ``ToolFailure`` that holds what has no lossless form, a
        registered exception that its own functions cannot write.
        """
        return encode_error(error, self._errors, extensions=self._extensions)

    def decode_error(self, data: bytes) -> Exception:
        """The exception to raise: its own class where builtin or declared, else ``RecordedToolError``."""
        return decode_error(data, self._errors, extensions=self._extensions)


class Pending(Protocol):
    """One call from start to outcome; the same object for ``with`` and ``async with``.

    Entering takes the call's place, leaving settles its outcome. ``keep`` the body's value if ``runs_body``; an
    exception that leaves the block is kept as the outcome and goes on. ``outcome`` gives the decoded value, or raises.
    """

    @property
    def runs_body(self) -> bool:
        """True if the caller must run the body and ``keep`` its value."""
        ...

    def keep(self, value: object) -> None:
        """Take the body's value. Raises ``UnrecordableValue`` where a replay could not hand it out again."""
        ...

    def outcome(self) -> object:
        """What the caller gets. Raises what the call raises."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
