"""Agents of pydantic-ai: a capability that lets sessions record and replay every tool of an agent, and its model.

    agent = Agent("openai:gpt-5", capabilities=[cassette()])

Theory. The capability stands at both ends of a call. Outermost, with the hooks of all other capabilities within, it
sees what becomes of a call; at the inner end, as a toolset around the tools, it is the seam: what reaches it is
recorded or replayed. A call that ends without having come to the seam was refused (it raises: a guard, an argument
check, a deferral) or answered by something else (it gives a value), and the session is told so.

Rule: what comes back is of the type that the tool's function promises today, and an error of the tool is its own again.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import typing
from typing import TYPE_CHECKING, Any, Final

from toolcassette.adapters._pydantic_ai import cassette_model, package
from toolcassette.contracts import ToolReturn, contract_for, encode_args
from toolcassette.describe import ABSENT, Description, describe
from toolcassette.engine import Call, ToolContract, composite_label, pushed, selecting, session_for
from toolcassette.errors import CassetteError, UnrecordableValue
from toolcassette.tools import default_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolcassette.engine import Member, Pending
    from toolcassette.identity import Rule

__all__ = ["cassette", "cassette_model"]

# What a call has come to, set at the outer end: a list that is no longer empty once the seam was reached.
_trail: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("toolcassette_pydantic_ai", default=None)
_CONTROL: Final = ("ModelRetry", "ToolFailed", "CallDeferred", "ApprovalRequired")


def cassette(
    *,
    model_name: str | None = None,
    rules: Sequence[Rule] = (),
    errors: Iterable[type[Exception]] = (),
    agents: Iterable[str] = (),
) -> Any:
    """A capability: ``Agent(..., capabilities=[cassette()])``. One serves any number of agents and sessions.

    Tools are selected by their names, the model by ``model_name``, which is its id (``openai:gpt-5``) if not given;
    ``rules`` as in ``wrap_model``. ``errors`` are classes that a replayed tool raises as themselves. ``agents``
    names the tools that run other agents: their bodies run in a replay too, and calls within lie below them in the
    call path. Raises ``ModuleNotFoundError`` without pydantic-ai.
    """
    names = frozenset([agents] if isinstance(agents, str) else agents)
    return _kinds().capability(model_name, tuple(rules), tuple(errors), names)


class _Around:
    """What the capability does."""

    def __init__(
        self,
        model: str | None,
        rules: tuple[Rule, ...],
        errors: tuple[type[Exception], ...],
        composites: frozenset[str],
    ) -> None:
        self._model = model
        self._rules = rules
        self.composites = composites
        self.promises = _Promises(errors)

    def get_ordering(self) -> Any:
        return _kinds().ordering(position="outermost")

    def get_wrapper_model(self, model: Any) -> Any:
        return cassette_model(model, name=self._model, rules=self._rules)

    def get_wrapper_toolset(self, toolset: Any) -> Any:
        return _kinds().toolset(toolset, self)

    async def wrap_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        """Arguments that are refused are a call that was rejected."""
        try:
            return await handler(args)
        except _kinds().skip_validation:
            raise
        except Exception as error:
            self._rejected(tool_def.name, error)
            raise

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        trail: list[str] = []
        token = _trail.set(trail)
        try:
            result = await handler(args)
        except _kinds().skip_execution:
            self._bypassed(tool_def.name, trail)
            raise
        except Exception as error:
            if not trail:
                self._rejected(tool_def.name, error)
            raise
        finally:
            _trail.reset(token)
        self._bypassed(tool_def.name, trail)
        return result

    def _rejected(self, name: str, error: Exception) -> None:
        session, _ = selecting(name)
        if session is not None and not isinstance(error, CassetteError):
            session.rejected(name)

    def _bypassed(self, name: str, trail: list[str]) -> None:
        session, _ = selecting(name)
        if session is not None and not trail:
            session.bypassed(name)


class _Seam:
    """What the toolset does: it is around the real tools, and within all hooks."""

    wrapped: Any
    around: _Around

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        trail = _trail.get()
        if trail is not None:
            trail.append(name)
        if name in self.around.composites:
            session, matters = selecting(name)
            if session is None:
                with _below(name, tool_args) if matters else contextlib.nullcontext():
                    return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        else:
            session = session_for(name)
        if session is None:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        pending = self.around.promises.begin(session, name, tool_args, tool)
        async with pending:
            if pending.runs_body:
                pending.keep(_kept(await self.wrapped.call_tool(name, tool_args, ctx, tool)))
        return _handed_out(pending.outcome())


def _below(name: str, args: dict[str, Any]) -> contextlib.AbstractContextManager[None]:
    try:
        return pushed(composite_label(name, encode_args(args)), numbered=True)
    except UnrecordableValue as error:
        raise error.of(name) from None


class _Promises:
    """What the tools of an agent promise, by the functions that they are made of."""

    def __init__(self, errors: tuple[type[Exception], ...]) -> None:
        self._errors = errors
        self._known: dict[tuple[str, int], tuple[object, Description]] = {}

    def begin(self, session: Member, name: str, args: dict[str, Any], tool: Any) -> Pending:
        """One call, not yet begun. Raises what the session makes of one that cannot be described."""
        try:
            arguments = encode_args(args, extensions=default_registry.extensions)
            contract, identity = self._of(name, _function_of(tool))
        except UnrecordableValue as error:
            raise session.refuse(error.of(name), name) from None
        session.meet(name, identity)
        return session.begin(Call(name, arguments, "tool", session.place().path), contract)

    def _of(self, name: str, function: Callable[..., Any] | None) -> tuple[ToolContract, object]:
        extensions, errors = default_registry.extensions, (*_kinds().control, *self._errors)
        if function is None:  # of a server, or of a toolset of one's own: values of builtin types
            return ToolContract(contract_for(extensions=extensions), errors, extensions=extensions), name
        key = name, id(function)
        if key not in self._known:
            returns = _returns(function)
            tool = describe(
                function, name=name, omit=(), errors=errors, returns=returns, omit_types=(), extensions=extensions
            )
            self._known[key] = function, tool  # with the function, so that its id stays its own
        tool = self._known[key][1]
        return tool.contract(), tool.identity


def _function_of(tool: Any) -> Callable[..., Any] | None:
    """The function that a tool was made of, under whatever wraps, renames or combines it; None where there is none."""
    while hasattr(tool, "source_tool"):
        tool = tool.source_tool
    toolset = tool.toolset
    while hasattr(toolset, "wrapped"):
        toolset = toolset.wrapped
    held = getattr(toolset, "tools", None)
    name = getattr(tool, "original_name", None) or tool.tool_def.name
    return getattr(held.get(name), "function", None) if isinstance(held, dict) else None


def _returns(function: Callable[..., Any]) -> Any:
    """The annotation of what the model is told, where a function says that more comes with it; else ``ABSENT``."""
    try:
        hint = typing.get_type_hints(function, include_extras=True).get("return")
    except Exception:  # noqa: BLE001 - evaluating an annotation can raise anything; who describes the tool judges it
        return ABSENT
    if hint is _kinds().tool_return:
        return Any
    return typing.get_args(hint)[0] if typing.get_origin(hint) is _kinds().tool_return else ABSENT


def _kept(result: Any) -> Any:
    """What a tool gave, to be kept: a ``ToolReturn`` of pydantic-ai as one of ours."""
    if not isinstance(result, _kinds().tool_return):
        return result
    beside = {"metadata": result.metadata, "tools": result.tools}
    content = None if result.content is None else package().write_content(result.content)
    return ToolReturn(result.return_value, meta={"content": content, **beside})


def _handed_out(value: Any) -> Any:
    if not isinstance(value, ToolReturn):
        return value
    meta = dict(value.meta or {})
    content = meta.pop("content", None)
    return _kinds().tool_return(
        value.value, content=None if content is None else package().read_content(content), **meta
    )


@functools.cache
def _kinds() -> Any:
    return _Kinds()


class _Kinds:
    """The classes above as classes of pydantic-ai, and those of its own that are asked for."""

    def __init__(self) -> None:
        used = package()
        exceptions: Any = used.exceptions
        self.control = tuple(getattr(exceptions, name) for name in _CONTROL)
        self.skip_validation = exceptions.SkipToolValidation
        self.skip_execution = exceptions.SkipToolExecution
        self.ordering: Any = used.capabilities.CapabilityOrdering
        self.tool_return: Any = used.messages.ToolReturn
        self.capability: Any = type("CassetteCapability", (_Around, used.capabilities.AbstractCapability), {})
        members = {"__annotations__": {"around": Any}}
        self.toolset: Any = dataclasses.dataclass(
            type("CassetteToolset", (_Seam, used.toolsets.WrapperToolset), members)
        )
