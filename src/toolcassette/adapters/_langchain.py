"""What the seams of langchain share: its messages and commands as values, a place in its graphs as a path.

Theory. Messages are kept as their own classes, each under a tag of its own, with the members that are not at their
defaults. In a key a message stands as a model sees it: without its ``id``, its artifact, and what a provider told about
the answer that it was.
A tool's answer names the call that it answers; that id is the run's, so it is taken out before the answer is kept, and
the id of today's call is put in when it is handed out.

A graph that is a node of another one, or that runs within a tool, has a namespace of node names and random task ids.
The names of the nodes around a graph are its path, below those of scopes.

Rule: exactly the classes listed here are kept; an instance of any other is refused by name.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from toolcassette.adapters._calls import below as around
from toolcassette.contracts import Extensions
from toolcassette.engine import Call
from toolcassette.errors import UnrecordableValue

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from toolcassette.contracts import JsonSchema
    from toolcassette.engine import Member, Pending, ToolContract

__all__ = ["ANSWERED", "Package", "begin", "below", "middleware_class", "package", "rebound", "written"]

ANSWERED: Final = ""  # what stands for the id of the call that a kept answer answers

_INSTALL: Final = "{} needs langchain: pip install 'toolcassette[langchain]'"
_MESSAGES: Final = (
    "AIMessage", "AIMessageChunk", "ChatMessage", "FunctionMessage", "HumanMessage", "RemoveMessage", "SystemMessage",
    "ToolMessage",
)  # fmt: skip
_UNASKED: Final = ("artifact", "id", "response_metadata", "usage_metadata")  # members of a message that no model sees

_depth: contextvars.ContextVar[int] = contextvars.ContextVar("toolcassette_langchain_depth", default=0)


class Package:
    """What is used of langchain, looked up once."""

    def __init__(self) -> None:
        from langchain_core import documents, messages, outputs, tools
        from langchain_core.language_models.chat_models import BaseChatModel
        from langchain_core.runnables.config import var_child_runnable_config
        from langchain_core.utils.function_calling import convert_to_openai_tool
        from langgraph import types
        from langgraph.errors import GraphInterrupt

        self.types: Any = types
        self.interrupt: Any = GraphInterrupt
        self.chat_model: Any = BaseChatModel
        self.outputs: Any = outputs
        self.tools: Any = tools
        self.as_tool: Any = convert_to_openai_tool
        self.tool_message: Any = messages.ToolMessage
        self._config: Any = var_child_runnable_config
        self._models: tuple[Any, ...] = (*(getattr(messages, name) for name in _MESSAGES), documents.Document)

    def extensions(self, schema: JsonSchema | None = None) -> Extensions:
        """How the classes of langchain are kept; with ``schema``, tools' answers only if they fit it."""
        found = Extensions()
        for cls in self._models:
            read: Any = cls.model_validate
            if schema is not None and cls is self.tool_message:
                read = functools.partial(_answer, cls, schema)
            found.register_type(cls, _members, read, f"langchain/{cls.__name__}")
        for cls in (self.types.Command, self.types.Send):
            found.register_type(cls, _attributes, functools.partial(_made, cls), f"langgraph/{cls.__name__}")
        found.register_error(self.interrupt, _asked, self._interrupted)
        return found

    def _interrupted(self, asked: Any) -> Any:
        """An interrupt again, with the id that this place in this run gives it."""
        make = self.types.Interrupt.from_ns
        return self.interrupt([make(each["value"], self.namespace(), response_schema=each["schema"]) for each in asked])

    def namespace(self) -> str:
        """Node names and task ids around here, as langgraph writes them; empty outside of a graph."""
        config = self._config.get() or {}
        return str(config.get("configurable", {}).get("checkpoint_ns", ""))

    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes that this graph runs in, those within the innermost sub-agent."""
        parts = [part for part in self.namespace().split("|") if not part.isdigit()]
        return tuple(quote(part.partition(":")[0], safe=" ") for part in parts[_depth.get() : -1])

    @contextlib.contextmanager
    def deeper(self) -> Generator[None]:
        """Around a tool that runs an agent: the graphs around it are its own path's affair, not those of the agent."""
        token = _depth.set(len([part for part in self.namespace().split("|") if part and not part.isdigit()]))
        try:
            yield
        finally:
            _depth.reset(token)


_looked_up = functools.cache(Package)


def package(use: str = "cassette_model") -> Package:
    """The package, for ``use``. Raises ``ModuleNotFoundError`` that says what to install."""
    try:
        return _looked_up()
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(_INSTALL.format(use), name=error.name) from None


_middleware_classes: dict[type, Any] = {}


def middleware_class(standing: type) -> Any:
    """``standing`` as a middleware of langchain. Raises as ``package``."""
    package("cassette_middleware")
    try:
        from langchain.agents.middleware import AgentMiddleware
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(_INSTALL.format("cassette_middleware"), name=error.name) from None
    if standing not in _middleware_classes:
        _middleware_classes[standing] = type("CassetteMiddleware", (standing, AgentMiddleware), {})
    return _middleware_classes[standing]


def begin(
    found: Package,
    session: Member,
    name: str,
    args: Callable[[], bytes],
    contract: ToolContract,
    boundary: str = "tool",
) -> Pending:
    """One call, not yet begun. ``args`` makes canonical arguments. Raises what the session makes of bad ones."""
    session.meet(name, ("langchain", name))
    try:
        encoded = args()
    except UnrecordableValue as error:
        raise session.refuse(error.of(name), name) from None
    return session.begin(Call(name, encoded, boundary, (*session.place().path, *found.nodes())), contract)


@contextlib.contextmanager
def below(found: Package, name: str, args: dict[str, Any]) -> Generator[None]:
    """Around the body of a tool that runs an agent: its calls lie below it in the call path."""
    with around(name, args), found.deeper():
        yield


def written(message: Any) -> dict[str, Any]:
    """A message as it stands in a key."""
    members = _members(message)
    return {"type": message.type, **{name: value for name, value in members.items() if name not in _UNASKED}}


def _members(model: Any) -> dict[str, Any]:
    """The members of a message or a document that are not at their defaults."""
    fields = type(model).model_fields
    own = {name: getattr(model, name) for name in fields}
    kept = {name: value for name, value in own.items() if not _is_default(fields[name], value)}
    return {**kept, **(model.model_extra or {})}


def _answer(cls: Any, schema: JsonSchema, members: dict[str, Any]) -> Any:
    """A tool's answer, if what it says fits the schema: as JSON where it is that, else as text. Raises if not."""
    message = cls.model_validate(members)
    if message.status == "success":
        try:
            said = json.loads(message.content)
        except (TypeError, ValueError):
            said = message.content
        schema.admit(said)
    return message


def _is_default(field: Any, value: Any) -> bool:
    if field.is_required():
        return False
    default = field.get_default(call_default_factory=True)
    return type(default) is type(value) and bool(default == value)


def _attributes(value: Any) -> dict[str, Any]:
    """The members of a ``Command`` or a ``Send`` that are not at their defaults."""
    if dataclasses.is_dataclass(value):
        found = {field.name: (getattr(value, field.name), field.default) for field in dataclasses.fields(value)}
        return {name: member for name, (member, default) in found.items() if member != default}
    send: Any = value
    timeout = getattr(send, "timeout", None)
    return {"node": send.node, "arg": send.arg, **({} if timeout is None else {"timeout": timeout})}


def _made(cls: Any, members: dict[str, Any]) -> Any:
    return cls(**members)


def _asked(error: Any) -> list[dict[str, Any]]:
    """What an interrupt asks for. Its id is the run's."""
    return [{"value": each.value, "schema": each.response_schema} for each in error.args[0]]


def rebound(answer: Any, old: str, new: str) -> Any:
    """What a tool's call was answered with, where the answers to the call ``old`` are answers to ``new``."""
    found = package()
    if isinstance(answer, found.tool_message):
        return answer.model_copy(update={"tool_call_id": new}) if answer.tool_call_id == old else answer
    if isinstance(answer, found.types.Command):
        return dataclasses.replace(answer, update=rebound(answer.update, old, new))
    if type(answer) in (list, tuple):
        return type(answer)(rebound(each, old, new) for each in answer)
    if type(answer) is dict:
        return {name: rebound(each, old, new) for name, each in answer.items()}
    return answer
