"""Models of pydantic-ai: a ``WrapperModel`` whose requests are recorded and replayed.

Rule: what an agent sees is a response or a stream of events of pydantic-ai's own types, the same in both modes: those
that were written down. The wrapped model is not asked in a replay.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from typing import TYPE_CHECKING, Any, Final

from toolcassette.contracts import contract_for, encode_args
from toolcassette.engine import Call, ToolContract, session_for
from toolcassette.identity import identify

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from toolcassette.engine import Member, Pending
    from toolcassette.identity import Rule

__all__ = ["Package", "cassette_model", "package"]

_INSTALL: Final = "toolcassette.adapters.pydantic_ai needs pydantic-ai: pip install 'toolcassette[pydantic-ai]'"
_HEAD: Final = ("model_name", "provider_name", "provider_url")
_TOOLS: Final = {"function_tools": "tools", "output_tools": "output_tools"}


def cassette_model(model: Any, *, name: str | None = None, rules: Sequence[Rule] = ()) -> Any:
    """A model that asks ``model`` (an instance, or its name), and whose requests are calls at the boundary ``model``.

    Sessions select them by ``name``, which is the wrapped model's id (``openai:gpt-5``) if not given. ``rules`` as in
    ``wrap_model``. Raises ``ModuleNotFoundError`` without pydantic-ai.
    """
    return _kinds().model(model, name, tuple(rules))


class Package:
    """What is used of pydantic-ai, looked up once."""

    def __init__(self) -> None:
        try:
            import pydantic_ai.capabilities
            import pydantic_ai.exceptions
            import pydantic_ai.messages
            import pydantic_ai.models
            import pydantic_ai.models.wrapper
            import pydantic_ai.toolsets
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(_INSTALL, name=error.name) from None
        exceptions: Any = pydantic_ai.exceptions
        named = [getattr(exceptions, name) for name in exceptions.__all__]
        self.errors = [kind for kind in named if isinstance(kind, type) and issubclass(kind, exceptions.AgentRunError)]
        self.exceptions = exceptions
        self.capabilities: Any = pydantic_ai.capabilities
        self.toolsets: Any = pydantic_ai.toolsets
        self.messages: Any = pydantic_ai.messages
        self.streamed: Any = pydantic_ai.models.StreamedResponse
        self.wrapper: Any = pydantic_ai.models.wrapper.WrapperModel
        self.contract = ToolContract(contract_for(), self.errors, chunks=contract_for(), shape="async_iterator")
        self._history: Any = self.messages.ModelMessagesTypeAdapter
        self.events: Any = type(self._history)(self.messages.ModelResponseStreamEvent)

    def dump(self, messages: Any) -> Any:
        """Messages as JSON, without the times at which they were made."""
        return _timeless(self._history.dump_python(messages, mode="json"))

    def write(self, response: Any) -> Any:
        """A response as JSON."""
        return self._history.dump_python([response], mode="json")[0]

    def read(self, value: Any) -> Any:
        """A response, of JSON."""
        return self._history.validate_python([value])[0]

    def write_content(self, content: Any) -> Any:
        """What a user, or a tool beside its result, says to a model, as JSON."""
        part = self.messages.UserPromptPart(content)
        return self.write(self.messages.ModelRequest([part]))["parts"][0]["content"]

    def read_content(self, value: Any) -> Any:
        """That, of JSON."""
        return (
            self.read({"kind": "request", "parts": [{"part_kind": "user-prompt", "content": value}]}).parts[0].content
        )


class _Asking:
    """What the wrapper model does."""

    wrapped: Any

    def __init__(self, model: Any, name: str | None, rules: tuple[Rule, ...]) -> None:
        mixed_in: Any = super()
        mixed_in.__init__(model)
        self._name = name or self.wrapped.model_id
        self._rules = rules

    async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> Any:
        asked = (messages, model_settings, model_request_parameters)
        session = session_for(self._name)
        if session is None:
            return await self.wrapped.request(*asked)
        used = package()
        pending = self._begin(session, *asked, streams=False)
        async with pending:
            if pending.runs_body:
                pending.keep(used.write(await self.wrapped.request(*asked)))
        return used.read(pending.outcome())

    @contextlib.asynccontextmanager
    async def request_stream(
        self, messages: Any, model_settings: Any, model_request_parameters: Any, run_context: Any = None
    ) -> AsyncGenerator[Any]:
        asked = (messages, model_settings, model_request_parameters)
        session = session_for(self._name)
        async with contextlib.AsyncExitStack() as stack:
            if session is None:
                yield await stack.enter_async_context(self.wrapped.request_stream(*asked, run_context))
                return
            pending = self._begin(session, *asked, streams=True)
            async with pending:
                if pending.runs_body:
                    real = await stack.enter_async_context(self.wrapped.request_stream(*asked, run_context))
                    pending.keep(_items(real))
            stream: Any = pending.outcome()
            await stack.enter_async_context(contextlib.aclosing(stream))
            yield _kinds().stream(stream, await anext(stream), model_request_parameters)

    def _begin(self, session: Member, messages: Any, settings: Any, parameters: Any, *, streams: bool) -> Pending:
        session.meet(self._name, ("pydantic-ai", self._name))
        found = {field.name: getattr(parameters, field.name) for field in dataclasses.fields(parameters)}
        request = {
            "model": self.wrapped.model_id,
            "messages": package().dump(messages),
            "settings": {} if settings is None else dict(settings),
            **{key: [dataclasses.asdict(tool) for tool in found.pop(field)] for field, key in _TOOLS.items()},
            "parameters": {name: value for name, value in found.items() if not name.startswith("_")},
            "stream": streams,
        }
        args = identify(encode_args(request), self._rules)
        return session.begin(Call(self._name, args, "model", session.place().path), package().contract)


async def _items(real: Any) -> AsyncIterator[object]:
    """A stream of pydantic-ai as items to keep: who answers, each event, and the whole response at the end."""
    used = package()
    head = {name: getattr(real, name) for name in _HEAD}
    yield {**head, "timestamp": real.timestamp}
    async for event in real:
        yield {"event": package().events.dump_python(event, mode="json")}
    yield {"response": used.write(real.get())}


class _Answering:
    """A stream of events that a session hands out. What came so far is the response until the last item."""

    def __init__(self, stream: Any, head: Any, parameters: Any) -> None:
        mixed_in: Any = super()
        mixed_in.__init__(model_request_parameters=parameters)
        self._stream = stream
        self._head = head
        self._parts: dict[int, Any] = {}
        self._whole: Any = None
        self._reader: Any = None

    def __aiter__(self) -> Any:
        self._reader = self._reader or self._read()
        return self._reader

    async def _read(self) -> AsyncIterator[Any]:
        async for item in self._stream:
            if "response" in item:
                self._whole = package().read(item["response"])
                continue
            event = package().events.validate_python(item["event"])
            kind = event.event_kind
            if kind == "part_start":
                self._parts[event.index] = event.part
            elif kind == "part_delta":
                self._parts[event.index] = event.delta.apply(self._parts[event.index])
            elif kind == "final_result":
                self.final_result_event = event
            yield event

    async def _get_event_iterator(self) -> AsyncIterator[Any]:
        async for event in self:
            yield event

    def get(self) -> Any:
        if self._whole is not None:
            return self._whole
        parts = [self._parts[index] for index in sorted(self._parts)]
        return package().messages.ModelResponse(parts=parts, state="incomplete", **self._head)

    async def close_stream(self) -> None:
        await self._stream.aclose()

    @property
    def usage(self) -> Any:
        return self.get().usage

    @property
    def timestamp(self) -> Any:
        return self._head["timestamp"]

    @property
    def model_name(self) -> Any:
        return self._head["model_name"]

    @property
    def provider_name(self) -> Any:
        return self._head["provider_name"]

    @property
    def provider_url(self) -> Any:
        return self._head["provider_url"]


@functools.cache
def package() -> Package:
    """Raises ``ModuleNotFoundError`` without pydantic-ai."""
    return Package()


@functools.cache
def _kinds() -> Any:
    return _Kinds()


class _Kinds:
    """The classes above as classes of pydantic-ai."""

    def __init__(self) -> None:
        self.model: Any = type("CassetteModel", (_Asking, package().wrapper), {})
        self.stream: Any = type("CassetteStream", (_Answering, package().streamed), {})


def _timeless(value: Any) -> Any:
    """Messages and their parts without ``timestamp``, which no model is told; data within them stays as it is."""
    if isinstance(value, list):
        return [_timeless(item) for item in value]
    if isinstance(value, dict) and ("part_kind" in value or "kind" in value):
        return {
            key: _timeless(member) if key == "parts" else member for key, member in value.items() if key != "timestamp"
        }
    return value
