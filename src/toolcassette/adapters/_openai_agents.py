"""Models of openai-agents: proxies whose requests are recorded and replayed, and a provider that gives them.

Rule: what an agent sees is a response or a stream of events of the framework's own types, the same in both modes: those
that were written down. The real model is not asked in a replay.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from typing import TYPE_CHECKING, Any, Final

from toolcassette.contracts import contract_for, encode_args
from toolcassette.engine import Call, ToolContract, session_for
from toolcassette.errors import UnrecordableValue
from toolcassette.identity import identify

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from toolcassette.engine import Member, Pending
    from toolcassette.identity import Rule

__all__ = ["Named", "Package", "package"]

_INSTALL: Final = "toolcassette.adapters.openai_agents needs openai-agents: pip install 'toolcassette[openai-agents]'"
_ASKED: Final = ("system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs", "tracing")
_MADE_UP: Final = "agents-sdk:"  # the prompt cache keys that a run makes up for itself


class Package:
    """What is used of openai-agents, looked up once."""

    def __init__(self) -> None:
        try:
            import agents
            import agents.items
            import agents.models.default_models
            import agents.tool
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(_INSTALL, name=error.name) from None
        adapter: Any = type(agents.tool.ValidToolOutputPydanticModelsTypeAdapter)
        self.agents: Any = agents
        self.default_model: Any = agents.models.default_models.get_default_model
        self.plain = adapter(Any)
        self.response = adapter(agents.items.ModelResponse)
        self.event = adapter(agents.items.TResponseStreamEvent)
        self.contract = ToolContract(contract_for(), chunks=contract_for(), shape="async_iterator")
        self.model: Any = type("CassetteModel", (_Asking, agents.Model), {})
        self.provider: Any = type("CassetteProvider", (_Providing, agents.ModelProvider), {})

    def name_of(self, model: Any) -> str:
        """What calls of a model are called: the name it was made with, else its class's."""
        name = getattr(model, "model", None)
        return str(name) if isinstance(name, str) and name else type(model).__name__


class Named(str):
    """The name of a model, or of the default one, and the path below which the agent lies that asks it."""

    __slots__ = ("below", "given")
    below: tuple[str, ...]
    given: str | None

    def __new__(cls, given: str | None, below: tuple[str, ...]) -> Named:  # noqa: PYI034 - it is final
        made = super().__new__(cls, given or package().default_model())
        made.given, made.below = given, below
        return made


class _Providing:
    """What the provider does."""

    def __init__(self, real: Any, name: str | None, rules: tuple[Rule, ...]) -> None:
        self._real = real
        self._name = name
        self._rules = rules

    def get_model(self, model_name: str | None) -> Any:
        asked: Any = model_name
        below: tuple[str, ...] = ()
        if isinstance(asked, Named):
            model_name, below = asked.given, asked.below
        real = self._real.get_model(model_name)
        return package().model(real, self._name or model_name or package().name_of(real), self._rules, below)

    async def aclose(self) -> None:
        await self._real.aclose()


class _Asking:
    """What the model does. ``below``: the path of the agent that asks it, within its run."""

    def __init__(self, real: Any, name: str, rules: tuple[Rule, ...], below: tuple[str, ...]) -> None:
        self._real = real
        self._name = name
        self._rules = rules
        self._below = below

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def close(self) -> None:
        await self._real.close()

    def get_retry_advice(self, request: Any) -> Any:
        return self._real.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._real._cleanup_on_run_end(owner)  # noqa: SLF001 - the framework asks it of every model

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        session = session_for(self._name)
        if session is None:
            return await self._real.get_response(*args, **kwargs)
        pending = self._begin(session, args, kwargs, streams=False)
        async with pending:
            if pending.runs_body:
                answer = await self._real.get_response(*args, **kwargs)
                pending.keep(package().response.dump_python(answer, mode="json", exclude_unset=True))
        return package().response.validate_python(pending.outcome())

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        session = session_for(self._name)
        if session is None:
            async with contextlib.aclosing(self._real.stream_response(*args, **kwargs)) as real:
                async for event in real:
                    yield event
            return
        pending = self._begin(session, args, kwargs, streams=True)
        async with pending:
            if pending.runs_body:
                pending.keep(_items(self._real.stream_response(*args, **kwargs)))
        stream: Any = pending.outcome()
        async with contextlib.aclosing(stream):
            async for item in stream:
                yield package().event.validate_python(item)

    def _begin(self, session: Member, args: tuple[Any, ...], kwargs: dict[str, Any], *, streams: bool) -> Pending:
        session.meet(self._name, ("openai-agents", self._name))
        asked = {**dict(zip(_ASKED, args, strict=False)), **kwargs}
        asked.pop("tracing", None)
        try:
            request = encode_args({"model": self._name, **_told(asked), "stream": streams})
        except UnrecordableValue as error:
            raise session.refuse(error.of(self._name), self._name) from None
        path = (*session.place().path, *self._below)
        call = Call(self._name, identify(request, self._rules), "model", path)
        return session.begin(call, package().contract)


async def _items(real: Any) -> AsyncIterator[Any]:
    """Events of a stream, as JSON to keep."""
    async with contextlib.aclosing(real):
        async for event in real:
            yield event.model_dump(mode="json", exclude_unset=True)


def _told(asked: dict[str, Any]) -> dict[str, Any]:
    """A request as JSON, by the names of the parameters: what the provider is told."""
    settings, output = asked["model_settings"].to_json_dict(), asked["output_schema"]
    extra = settings.get("extra_args") or {}
    if str(extra.get("prompt_cache_key", "")).startswith(_MADE_UP):
        settings["extra_args"] = {key: value for key, value in extra.items() if key != "prompt_cache_key"} or None
    schema = None if output is None or output.is_plain_text() else output.json_schema()
    rest = {name: part for name, part in asked.items() if name not in ("model_settings", "tools", "handoffs")}
    return {
        **package().plain.dump_python({**rest, "output_schema": schema}, mode="json"),
        "model_settings": settings,
        "tools": [_tool(tool) for tool in asked["tools"]],
        "handoffs": [
            {"name": to.tool_name, "description": to.tool_description, "parameters": to.input_json_schema}
            for to in asked["handoffs"]
        ],
    }


def _tool(tool: Any) -> dict[str, Any]:
    """What a model is told of a tool; of a hosted one, whatever it is set to that is a value."""
    if isinstance(tool, package().agents.FunctionTool):
        return {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
    found: dict[str, Any] = {"name": tool.name}
    for field in dataclasses.fields(tool):
        with contextlib.suppress(Exception):  # a function or a live object is nothing that a model is told
            found[field.name] = package().plain.dump_python(getattr(tool, field.name), mode="json")
    return found


@functools.cache
def package() -> Package:
    """Raises ``ModuleNotFoundError`` without openai-agents."""
    return Package()
