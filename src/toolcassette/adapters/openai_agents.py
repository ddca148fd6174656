"""Agents of openai-agents: their tools, their models, and the agents that they hand over to.

    triage = cassette_agent(triage)
    Runner.run(triage, "hi", run_config=RunConfig(model_provider=cassette_provider()))

Theory. Of an agent a copy is made, and of every agent that it may hand over to. The seam of a tool is its invoker: what
the framework calls once its guardrails have let a call through, failures already turned into what the model is told. A
handoff leads to another agent of the same run, so what that agent calls lies below its name in the call path; an agent
that is another's tool is a composite call.

Rule: a copy differs from its agent in its seams alone; what the framework asks of a tool, it is told by the real one.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import typing
from typing import TYPE_CHECKING, Any, NamedTuple

from toolcassette.adapters._openai_agents import Named, package
from toolcassette.contracts import contract_for, encode_args
from toolcassette.describe import ABSENT, Description, describe
from toolcassette.engine import (
    Call,
    ToolContract,
    composite_label,
    pushed,
    scope_label,
    selecting,
    session_for,
)
from toolcassette.errors import UnrecordableValue
from toolcassette.tools import default_registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolcassette.engine import Member, Pending
    from toolcassette.identity import Rule

__all__ = ["cassette_agent", "cassette_provider"]


class _How(NamedTuple):
    """How the agents of one graph are recorded."""

    model: str | None
    rules: tuple[Rule, ...]
    errors: tuple[type[Exception], ...]
    composites: frozenset[str]


def cassette_agent(
    agent: Any,
    *,
    model_name: str | None = None,
    rules: Sequence[Rule] = (),
    errors: Iterable[type[Exception]] = (),
    agents: Iterable[str] = (),
) -> Any:
    """A copy of an ``Agent`` whose function tools sessions record and replay by name, and of all that it hands over to.

    A model that is an instance is recorded too, by ``model_name`` or its own name; for models that are named, see
    ``cassette_provider``. ``rules`` as in ``wrap_model``; ``errors`` are classes that a replayed tool raises as
    themselves; ``agents`` names tools that run other agents, as those of ``as_tool`` are without being named.
    Raises ``TypeError`` for what is no agent, ``ModuleNotFoundError`` without openai-agents.
    """
    if not isinstance(agent, package().agents.Agent):
        message = "cassette_agent takes an Agent"
        raise TypeError(message)
    names = frozenset([agents] if isinstance(agents, str) else agents)
    return _Graph(_How(model_name, tuple(rules), tuple(errors), names)).copy_of(agent, ())


def cassette_provider(provider: Any = None, *, model_name: str | None = None, rules: Sequence[Rule] = ()) -> Any:
    """A ``ModelProvider`` whose models sessions record and replay by ``model_name``, or by the name that is asked for.

    ``provider`` is the one that really answers, ``MultiProvider()`` if not given.
    """
    real = package().agents.MultiProvider() if provider is None else provider
    return package().provider(real, model_name, tuple(rules))


class _Graph:
    """Agents and their copies: handoffs may lead in circles."""

    def __init__(self, how: _How) -> None:
        self._how = how
        self._copies: dict[int, tuple[Any, Any]] = {}

    def copy_of(self, agent: Any, below: tuple[str, ...]) -> Any:
        if id(agent) in self._copies:
            return self._copies[id(agent)][1]
        done = copy.copy(agent)
        self._copies[id(agent)] = agent, done
        used = package()
        if isinstance(agent.model, used.agents.Model):
            done.model = used.model(agent.model, self._how.model or used.name_of(agent.model), self._how.rules, below)
        elif below:
            done.model = Named(agent.model, below)
        done.tools = [self._tool(tool, below) for tool in agent.tools]
        done.handoffs = [self._handoff(target) for target in agent.handoffs]

        async def tools_of_servers(context: Any) -> list[Any]:
            return [self._tool(tool, below) for tool in await agent.get_mcp_tools(context)]

        done.get_mcp_tools = tools_of_servers
        return done

    def _tool(self, tool: Any, below: tuple[str, ...]) -> Any:
        if not isinstance(tool, package().agents.FunctionTool):
            return tool
        done = copy.copy(tool)
        done.on_invoke_tool = _Invoker(done.on_invoke_tool, done, self._how, below)
        guards = tool.tool_input_guardrails
        if guards:
            done.tool_input_guardrails = [_guard(guard, done.qualified_name) for guard in guards]
        return done

    def _handoff(self, target: Any) -> Any:
        if not isinstance(target, package().agents.Handoff):
            return self.copy_of(target, (scope_label(target.name),))
        done = copy.copy(target)

        async def invoke(context: Any, arguments: str) -> Any:
            agent = await target.on_invoke_handoff(context, arguments)
            return self.copy_of(agent, (scope_label(agent.name),))

        done.on_invoke_handoff = invoke
        return done


def _guard(guard: Any, name: str) -> Any:
    """An input guardrail that tells the session of the calls that it rejects."""

    async def run(data: Any) -> Any:
        said = await guard.run(data)
        session, _ = selecting(name)
        if session is not None and said.behavior["type"] != "allow":
            session.rejected(name)
        return said

    return dataclasses.replace(guard, guardrail_function=run, name=guard.get_name())


class _Invoker:
    """The seam of a tool. To whoever looks at it, it is the tool's own invoker."""

    def __init__(self, real: Any, tool: Any, how: _How, below: tuple[str, ...]) -> None:
        self._real = real
        self._tool = tool
        self._how = how
        self._below = below
        self._described: Description | None = None

    def _class_of_real(self) -> Any:
        return type(self._real)

    __class__: Any = property(_class_of_real)  # the framework asks isinstance before it looks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __agents_bind_function_tool__(self, tool: Any) -> _Invoker:
        """Copies of a tool have invokers of their own."""
        bind = getattr(self._real, "__agents_bind_function_tool__", None)
        return _Invoker(self._real if bind is None else bind(tool), tool, self._how, self._below)

    async def __call__(self, context: Any, input: str) -> Any:  # noqa: A002 - the framework's word
        name = self._tool.qualified_name
        is_composite = self._tool._is_agent_tool or name in self._how.composites  # noqa: SLF001 - no public word
        session, matters = selecting(name) if is_composite else (session_for(name), False)
        try:
            args = json.loads(input or "{}")
        except ValueError:
            args = None
        if not isinstance(args, dict):  # the framework refuses it, and says so to the model
            if session is not None:
                session.rejected(name)
            return await self._real(context, input)
        if session is None:
            label = composite_label(name, encode_args(args)) if matters else ""
            with pushed(label, numbered=True) if matters else contextlib.nullcontext():
                return await self._real(context, input)
        pending = self._begin(session, name, args)
        async with pending:
            if pending.runs_body:
                pending.keep(await self._real(context, input))
        return pending.outcome()

    def _begin(self, session: Member, name: str, args: dict[str, Any]) -> Pending:
        path = (*session.place().path, *self._below)
        try:
            arguments = encode_args(args)
            contract, identity = self._promise(name)
        except UnrecordableValue as error:
            raise session.refuse(error.of(name), name) from None
        session.meet(name, identity)
        return session.begin(Call(name, arguments, "tool", path), contract)

    def _promise(self, name: str) -> tuple[ToolContract, object]:
        function, extensions = getattr(self._tool, "__wrapped__", None), default_registry.extensions
        if function is None:
            return ToolContract(contract_for(extensions=extensions), self._how.errors, extensions=extensions), name
        if self._described is None:
            self._described = describe(
                function,
                name=name,
                omit=(),
                errors=self._how.errors,
                returns=_returns(function),
                omit_types=(),
                extensions=extensions,
            )
        return self._described.contract(), self._described.identity


def _returns(function: Any) -> Any:
    """What a function returns, or the text that the model is told of a failure in its place."""
    try:
        hint = typing.get_type_hints(function, include_extras=True).get("return", ABSENT)
    except Exception:  # noqa: BLE001 - evaluating an annotation can raise anything; it then counts as absent
        return ABSENT
    return hint if hint is ABSENT or hint is Any else hint | str
