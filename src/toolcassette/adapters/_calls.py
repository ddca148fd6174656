"""What adapters share whose tools are plain functions of one input: a call of one, recorded or replayed.

Rule: a tool that a session selects is one call. One that runs an agent, and that nothing selects, runs in both modes,
and its calls lie below it in the call path.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any

from toolcassette.contracts import encode_args
from toolcassette.engine import Call, composite_label, pushed, selecting, session_for
from toolcassette.errors import UnrecordableValue

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from toolcassette.engine import Member, Pending, ToolContract

__all__ = ["Calls", "below"]


@contextlib.contextmanager
def below(name: str, args: Mapping[str, Any]) -> Generator[None]:
    """Around the body of a tool that runs an agent. Raises ``UnrecordableValue`` for arguments without a form."""
    try:
        label = composite_label(name, encode_args(args))
    except UnrecordableValue as error:
        raise error.of(name) from None
    with pushed(label, numbered=True):
        yield


class Calls:
    """Tools of one framework. ``contract``: what each promises; ``agents``: the names of those that run agents.

    ``arguments`` makes a mapping by parameter name of a tool's input, ``value`` a value to keep of what it returns.
    """

    def __init__(
        self,
        contract: ToolContract,
        agents: Iterable[str] = (),
        *,
        arguments: Callable[[Any], Mapping[str, Any]],
        value: Callable[[Any], object],
    ) -> None:
        self._contract = contract
        self._agents = frozenset([agents] if isinstance(agents, str) else agents)
        self._arguments = arguments
        self._value = value

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """``call``, which takes one input first, as a tool of this name. Options besides the input are handed on."""
        return functools.wraps(call)((self._async if inspect.iscoroutinefunction(call) else self._sync)(name, call))

    def _sync(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(given: Any, *rest: Any, **options: Any) -> Any:
            if self._is_composite(name):
                with below(name, self._arguments(given)):
                    return call(given, *rest, **options)
            session = session_for(name)
            if session is None:
                return call(given, *rest, **options)
            pending = self._begin(session, name, given)
            with pending:
                if pending.runs_body:
                    pending.keep(self._value(call(given, *rest, **options)))
            return pending.outcome()

        return wrapper

    def _async(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        async def wrapper(given: Any, *rest: Any, **options: Any) -> Any:
            if self._is_composite(name):
                with below(name, self._arguments(given)):
                    return await call(given, *rest, **options)
            session = session_for(name)
            if session is None:
                return await call(given, *rest, **options)
            pending = self._begin(session, name, given)
            async with pending:
                if pending.runs_body:
                    pending.keep(self._value(await call(given, *rest, **options)))
            return pending.outcome()

        return wrapper

    def _is_composite(self, name: str) -> bool:
        return name in self._agents and selecting(name)[0] is None

    def _begin(self, session: Member, name: str, given: Any) -> Pending:
        session.meet(name, ("adapter", name))
        try:
            args = encode_args(self._arguments(given))
        except UnrecordableValue as error:
            raise session.refuse(error.of(name), name) from None
        return session.begin(Call(name, args, "tool", session.place().path), self._contract)
