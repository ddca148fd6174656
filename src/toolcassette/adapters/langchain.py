"""langchain and langgraph: agents, tool nodes and chat models, recorded and replayed.

    agent = create_agent(model, tools, middleware=[cassette_middleware()])

Theory. The middleware stands around each tool call, and puts a stand-in for the model into each model request: a model
of the same class whose ``_generate`` and ``_stream`` are recorded, so tokens are streamed as they were. Put it last in
the list: then it is the innermost, and what the others decide is told apart. An answer to a call of a selected tool
that never came here was another one's: ``status="error"`` rejected the call, anything else answered in its place.

Rule: what an agent sees is langchain's own message, the same in both modes: the one that was written down.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from toolcassette.adapters import _langchain_models
from toolcassette.adapters._langchain import ANSWERED, begin, below, middleware_class, package, rebound
from toolcassette.contracts import Extensions, JsonSchema, contract_for, encode_args
from toolcassette.engine import ToolContract, selecting, session_for
from toolcassette.errors import UnrecordableValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolcassette.engine import Member, Pending
    from toolcassette.identity import Rule

__all__ = ["cassette_middleware", "cassette_model", "tool_wrappers"]


def cassette_middleware(
    *,
    agents: Iterable[str] = (),
    errors: Sequence[type[Exception]] = (),
    output_schemas: Mapping[str, Mapping[str, object]] | None = None,
    model_name: str | None = None,
    rules: Sequence[Rule] = (),
) -> Any:
    """A middleware for ``create_agent``: its tools by name, its model by ``model_name`` or as ``cassette_model``.

    ``agents``: tools whose body runs an agent; unless a session selects one itself, it runs in both modes and its calls
    lie below it in the call path. ``errors`` are classes of exceptions that a replay raises as themselves.
    ``output_schemas``: by tool, a JSON Schema that what it answers must fit, in both modes; it needs the extra
    ``jsonschema``. ``rules`` as in ``wrap_model``. Raises ``ModuleNotFoundError`` without langchain.
    """
    kind = middleware_class(_Standing)
    return kind(_Tools(agents, errors, output_schemas or {}), model_name, tuple(rules))


def tool_wrappers(
    *,
    agents: Iterable[str] = (),
    errors: Sequence[type[Exception]] = (),
    output_schemas: Mapping[str, Mapping[str, object]] | None = None,
) -> dict[str, Any]:
    """What a ``ToolNode`` of a graph of one's own takes: ``ToolNode(tools, **tool_wrappers())``.

    The options are those of ``cassette_middleware``. Raises ``ModuleNotFoundError`` without langchain.
    """
    package("tool_wrappers")
    tools = _Tools(agents, errors, output_schemas or {})
    return {"wrap_tool_call": tools.run, "awrap_tool_call": tools.arun}


def cassette_model(model: Any, *, name: str | None = None, rules: Sequence[Rule] = ()) -> Any:
    """A chat model like ``model`` whose requests are calls at the boundary ``model``, for agents, graphs and chains.

    Sessions select them by ``name``, by default provider and model (``openai:gpt-5``). ``rules`` as in ``wrap_model``.
    The cache of langchain is not asked. Raises ``TypeError`` for what is no chat model, ``ModuleNotFoundError`` without
    langchain.
    """
    return _langchain_models.cassette_model(model, name, tuple(rules))


class _Tools:
    """What stands around tool calls."""

    def __init__(
        self,
        agents: Iterable[str],
        errors: Sequence[type[Exception]],
        output_schemas: Mapping[str, Mapping[str, object]],
    ) -> None:
        self._found = found = package()
        self._agents = frozenset([agents] if isinstance(agents, str) else agents)
        self._errors = (found.tools.ToolException, *errors)
        self._contract = self._promise(found.extensions())
        self._contracts = {
            name: self._promise(found.extensions(JsonSchema(schema))) for name, schema in output_schemas.items()
        }
        self.answers = _Answers()

    def _promise(self, extensions: Extensions) -> ToolContract:
        return ToolContract(contract_for(extensions=extensions), self._errors, extensions=extensions)

    def run(self, request: Any, handler: Any) -> Any:
        """One tool call, answered by ``handler`` or by a cassette."""
        call = request.tool_call
        self.answers.reached(call["id"])
        if self._is_composite(call["name"]):
            with below(self._found, call["name"], call["args"]):
                return handler(request)
        session = self._session(request)
        if session is None:
            return handler(request)
        pending = self._begin(session, call)
        with pending:
            if pending.runs_body:
                pending.keep(self._kept(session, call, handler(request)))
        return rebound(pending.outcome(), ANSWERED, call["id"])

    async def arun(self, request: Any, handler: Any) -> Any:
        """As ``run``."""
        call = request.tool_call
        self.answers.reached(call["id"])
        if self._is_composite(call["name"]):
            with below(self._found, call["name"], call["args"]):
                return await handler(request)
        session = self._session(request)
        if session is None:
            return await handler(request)
        pending = self._begin(session, call)
        async with pending:
            if pending.runs_body:
                pending.keep(self._kept(session, call, await handler(request)))
        return rebound(pending.outcome(), ANSWERED, call["id"])

    def _is_composite(self, name: str) -> bool:
        return name in self._agents and selecting(name)[0] is None

    @staticmethod
    def _session(request: Any) -> Member | None:
        """The session of a call; none for a name that a model made up: there is no body, langchain answers itself."""
        return None if request.tool is None else session_for(request.tool_call["name"])

    def _begin(self, session: Member, call: Any) -> Pending:
        contract = self._contracts.get(call["name"], self._contract)
        return begin(self._found, session, call["name"], lambda: encode_args(call["args"]), contract)

    def _kept(self, session: Member, call: Any, answer: Any) -> Any:
        """An answer as the value to keep. Raises ``UnrecordableValue`` for one that is no answer of this call alone."""
        commands = answer if isinstance(answer, list) else [answer]
        if any(getattr(each, "resume", None) is not None for each in commands):
            why = "resumes a graph with a value, which no cassette can do in another run"
            refused = UnrecordableValue(json_path="$.resume", type_name="Command", why=why, tool=call["name"])
            raise session.refuse(refused, call["name"])
        return rebound(answer, call["id"], ANSWERED)


class _Answers:
    """Which tool calls a model asked for that did not come to us, and who answered them."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[Member, str]] = {}  # id -> the session of the call, the tool's name

    def asked(self, messages: Iterable[Any], tools: Iterable[Any]) -> None:
        """Note the calls in a model's answer that a session selects; forget those of runs that broke off.

        ``tools``: what the model was offered. An answer in a given form comes as a call of a tool that is none.
        """
        names = {tool.name for tool in tools if isinstance(tool, package().tools.BaseTool)}
        for call_id, (session, _) in list(self._asked.items()):
            if not session.is_open:
                self._asked.pop(call_id, None)
        for message in messages:
            for call in getattr(message, "tool_calls", ()):
                owner = selecting(call["name"])[0] if call["name"] in names else None
                if owner is not None and call["id"]:
                    self._asked[call["id"]] = (owner, call["name"])

    def reached(self, call_id: str) -> None:
        """A call came to us, whatever becomes of it."""
        self._asked.pop(call_id, None)

    def check(self, messages: Iterable[Any]) -> None:
        """Tell sessions of the calls that were answered elsewhere."""
        for message in messages:
            session, name = self._asked.pop(getattr(message, "tool_call_id", ""), (None, ""))
            if session is not None and session.is_open:
                (session.rejected if message.status == "error" else session.bypassed)(name)


class _Standing:
    """What the middleware does. The order of its hooks is that of a turn: model, tools, the end."""

    def __init__(self, tools: _Tools, model_name: str | None, rules: tuple[Rule, ...]) -> None:
        mixed_in: Any = super()
        mixed_in.__init__()
        self._tools = tools
        self._model = functools.partial(_langchain_models.cassette_model, name=model_name, rules=rules)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return self._tools.run(request, handler)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await self._tools.arun(request, handler)

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self._tools.answers.check(request.state["messages"])
        response = handler(request.override(model=self._model(request.model)))
        self._tools.answers.asked(response.result, request.tools)
        return response

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        self._tools.answers.check(request.state["messages"])
        response = await handler(request.override(model=self._model(request.model)))
        self._tools.answers.asked(response.result, request.tools)
        return response

    def after_agent(self, state: Any, runtime: Any) -> None:
        self._tools.answers.check(state["messages"])

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        self._tools.answers.check(state["messages"])
