"""Between an MCP client and its server: what the transport wrapper and the stdio proxy share.

Theory. Each request that a session selects flies on its own: it is sent on only if its body must run, and the answer
that the server gives is that body's value. What a server sends beside its answers stands with the request that it
belongs to (progress), or with the one that began last, and is sent again before its answer. What a server asks of its
client passes, and is not recorded.

Rule: a request gets its place before the next one is looked at, so start order is the order on the wire, also where a
scheduler shuffles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio

from toolcassette.adapters._requests import Requests, refusal
from toolcassette.contracts import ToolFailure, ToolReturn
from toolcassette.errors import CassetteError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from anyio.abc import TaskGroup

    from toolcassette.engine import Pending

__all__ = ["Relay"]

_PROGRESS: Final = "notifications/progress"
_GONE: Final = -32000  # connection closed, in those of the protocol's own kits
# A request has its place when it has begun. One whose record was cancelled waits within, for its client to give up:
# the client must get to its own timer.
_PLACE_WITHIN_SECONDS: Final = 0.25


class _Flight:
    """A request that is under way."""

    def __init__(self, ident: object, method: str, params: Mapping[str, Any], original: object) -> None:
        self.ident = ident
        self.method = method
        self.token = (params.get("_meta") or {}).get("progressToken")
        self.original = original
        self.notes: list[Any] = []
        self.scope = anyio.CancelScope()
        self.placed = anyio.Event()
        self.waited_for = True  # whoever made it still waits for its place, and is told what is wrong with it
        self.error: CassetteError | None = None
        self.answered = anyio.Event()
        self.landed = anyio.Event()
        self.answer: Mapping[str, Any] = {}

    def takes(self, note: Mapping[str, Any]) -> bool:
        """True for progress of this request."""
        return self.token is not None and (note.get("params") or {}).get("progressToken") == self.token


class Relay:
    """Between a client and its server. ``to_server`` takes messages as they came, ``to_client`` fresh ones as dicts.

    ``group`` runs the requests; cancelling it ends those that are under way as cancelled. ``to_server`` None: there is
    no server, and what reaches for it fails.
    """

    def __init__(
        self,
        requests: Requests,
        group: TaskGroup,
        to_client: Callable[[Mapping[str, Any]], Awaitable[None]],
        to_server: Callable[[Any], Awaitable[None]] | None,
    ) -> None:
        self._requests = requests
        self._group = group
        self._to_client = to_client
        self._to_server = to_server
        self.flying: dict[object, _Flight] = {}
        self._passing: dict[object, str] = {}  # id -> method of what goes by unrecorded
        self._between: list[Any] = []  # notes that came while nothing was under way

    async def ask(self, message: Mapping[str, Any], original: object) -> None:
        """Take a message of the client. Raises ``CassetteError`` for a request that gets no place."""
        method, ident, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method is None or ident is None:
            if method == "notifications/cancelled" and params.get("requestId") in self.flying:
                self.flying[params["requestId"]].scope.cancel()
            if self._to_server is not None:
                await self._to_server(original)
            return
        if method == "ping" and self._to_server is None:
            await self._to_client({"id": ident, "result": {}})
            return
        session = None if method == "ping" else self._requests.session(method, params)
        if session is None:
            self._passing[ident] = method
            try:
                await self._send(original)
            except ToolFailure as failure:
                await self._to_client({"id": ident, **_failed(failure)})
            return
        await self._begin(_Flight(ident, method, params, original), self._requests.begin(session, method, params))

    async def _begin(self, flight: _Flight, pending: Pending) -> None:
        flight.notes, self._between = self._between, []
        self.flying[flight.ident] = flight
        self._group.start_soon(self._fly, flight, pending)
        try:
            with anyio.move_on_after(_PLACE_WITHIN_SECONDS):
                await flight.placed.wait()
        except BaseException:
            flight.scope.cancel()
            raise
        flight.waited_for = False
        if flight.error is not None:
            raise flight.error

    async def _fly(self, flight: _Flight, pending: Pending) -> None:
        try:
            with flight.scope:
                await self._to_client({"id": flight.ident, **await self._ended(flight, pending)})
        except CassetteError as error:
            if not flight.waited_for or flight.placed.is_set():
                await self._to_client({"id": flight.ident, **refusal(flight.method, error)})
            else:
                flight.error = error
        finally:
            flight.placed.set()
            self.flying.pop(flight.ident, None)
            flight.landed.set()

    async def _ended(self, flight: _Flight, pending: Pending) -> Mapping[str, Any]:
        """The answer to a request, from the server or from the session."""
        try:
            async with pending:
                flight.placed.set()
                live = pending.runs_body
                if live:
                    await self._send(flight.original)
                    await flight.answered.wait()
                    pending.keep(_value(flight))
            value = pending.outcome()
        except ToolFailure as failure:
            return _failed(failure)
        notes = value.contexts if isinstance(value, ToolReturn) else []
        result: Any = value.value if isinstance(value, ToolReturn) else value
        if not live:
            for note in notes:
                await self._replay_note(flight, note)
        self._requests.learn(flight.method, result)
        return {"result": result}

    async def _replay_note(self, flight: _Flight, note: Any) -> None:
        if note["method"] == _PROGRESS:
            if flight.token is None:
                return
            note = {**note, "params": {**note["params"], "progressToken": flight.token}}
        await self._to_client(note)

    async def _send(self, original: object) -> None:
        if self._to_server is None:
            message = "there is no server in a replay; let the session select every method, with include=['mcp*']"
            raise ToolFailure(message, code=_GONE)
        try:
            await self._to_server(original)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            message = "Connection closed"
            raise ToolFailure(message, code=_GONE) from None

    async def hear(self, message: Mapping[str, Any]) -> bool:
        """Take a message of the server. True if it goes on to the client as it came."""
        method, ident = message.get("method"), message.get("id")
        if method is not None:
            if ident is None and method != "notifications/cancelled":
                self._keep_note({"method": method, **({"params": message["params"]} if message.get("params") else {})})
            return True
        listed = self._passing.pop(ident, None)
        if listed is not None:
            self._requests.learn(listed, message.get("result"))
            return True
        flight = self.flying.get(ident)
        if flight is not None and not flight.answered.is_set():
            flight.answer = message
            flight.answered.set()
        return False  # nor does what comes after its request was cancelled

    def _keep_note(self, note: dict[str, Any]) -> None:
        under_way = [flight for flight in self.flying.values() if not flight.answered.is_set()]
        if note["method"] == _PROGRESS:
            under_way = [flight for flight in under_way if flight.takes(note)]
            if under_way:
                params = {name: part for name, part in note["params"].items() if name != "progressToken"}
                under_way[-1].notes.append({**note, "params": params})
        else:
            (under_way[-1].notes if under_way else self._between).append(note)

    async def all_landed(self) -> None:
        """Wait until no request is under way."""
        while self.flying:
            await next(iter(self.flying.values())).landed.wait()

    def hang_up(self) -> None:
        """The server is gone: what is under way ends as it does for the client."""
        for flight in self.flying.values():
            flight.answer = flight.answer or {"error": {"code": _GONE, "message": "Connection closed"}}
            flight.answered.set()


def _value(flight: _Flight) -> Any:
    """What a server answered, and what it sent before. Raises ``ToolFailure`` for an error."""
    error = flight.answer.get("error")
    if error is not None:
        raise ToolFailure(str(error.get("message", "")), code=error.get("code"), data=error.get("data"))
    result = flight.answer.get("result")
    return ToolReturn(result, flight.notes) if flight.notes else result


def _failed(failure: ToolFailure) -> dict[str, Any]:
    data = {} if failure.data is None else {"data": failure.data}
    return {"error": {"code": failure.code, "message": failure.message, **data}}
