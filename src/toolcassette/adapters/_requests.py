"""Requests of the Model Context Protocol as calls: what all its adapters share.

Theory. A request of a client is a call, whatever its method, so that a replay needs no server: ``tools/call`` under the
tool's own name and arguments, any other under its method. An error of JSON-RPC is an error, a result with ``isError`` a
value. The output schema that a server lists for a tool is its promise: results are held against it in both modes.

Rule: ids and ``_meta`` are in no key.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from toolcassette.contracts import JsonSchema, contract_for, encode_args
from toolcassette.engine import Call, ToolContract, session_for
from toolcassette.errors import UnrecordableValue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolcassette.engine import Member, Pending
    from toolcassette.errors import CassetteError

__all__ = ["Requests", "refusal"]

_CALL: Final = "tools/call"
_REFUSED: Final = -32603  # internal error, in the words of JSON-RPC
_WHOLE: Final = "$params"  # of a call that says more than a tool's arguments
_LEFT_OUT: Final = ("_meta", "clientInfo")  # tokens of progress and tracing; which client it is
_OUTPUT: Final = "urn:toolcassette:output-schema"  # references of a schema lead into itself, not into what is around it


class Requests:
    """The requests to one server, as calls below one name: ``mcp/weather`` of a tool, ``mcp:tools/list`` of the rest.

    ``check_output`` False: output schemas that a server lists are not looked at. ``errors``: exception classes that
    come back as themselves.
    """

    def __init__(self, name: str, *, check_output: bool = True, errors: Sequence[type[Exception]] = ()) -> None:
        self._name = name
        self._check_output = check_output
        self._errors = tuple(errors)
        self._plain = ToolContract(contract_for(), self._errors)
        self._contracts: dict[str, ToolContract] = {}
        self._promised: dict[str, Any] = {}

    def name_of(self, method: str, params: Mapping[str, Any]) -> str:
        """What sessions select the request by."""
        return f"{self._name}/{params.get('name')}" if method == _CALL else f"{self._name}:{method}"

    def session(self, method: str, params: Mapping[str, Any]) -> Member | None:
        """The session that answers or records a request made here; None where it goes to the server."""
        name = self.name_of(method, params)
        session = session_for(name)
        if session is not None:
            session.meet(name, ("mcp", name))
        return session

    def begin(self, session: Member, method: str, params: Mapping[str, Any]) -> Pending:
        """One request, not yet begun."""
        name = self.name_of(method, params)
        left_out = tuple(key for key in _LEFT_OUT if key in params)
        asked = {key: value for key, value in params.items() if key not in _LEFT_OUT}
        if method == _CALL:
            arguments = asked.get("arguments") or {}
            alone = asked.keys() <= {"name", "arguments"} and isinstance(arguments, dict) and _WHOLE not in arguments
            asked = arguments if alone else {_WHOLE: asked}
        try:
            args = encode_args(asked)
        except UnrecordableValue as error:
            raise session.refuse(error.of(name), name) from None
        call = Call(name, args, path=session.place().path, omitted=left_out)
        return session.begin(call, self._contracts.get(name, self._plain))

    def learn(self, method: str, result: Any) -> None:
        """Note the output schemas of a list of tools, which results are held against from then on."""
        if method != "tools/list" or not self._check_output or not isinstance(result, dict):
            return
        for tool in result.get("tools") or ():
            if isinstance(tool, dict):
                self.promise(str(tool.get("name")), tool.get("outputSchema"))

    def promise(self, tool: str, schema: Any) -> None:
        """Hold the results of a tool against a schema, None for none; one that its own draft refuses asks nothing."""
        name = f"{self._name}/{tool}"
        if name in self._contracts and self._promised[name] == schema:
            return
        self._contracts[name], self._promised[name] = self._plain, schema
        if not isinstance(schema, dict):
            return
        with contextlib.suppress(ValueError):
            whole = JsonSchema({
                "if": {"properties": {"isError": {"const": True}}, "required": ["isError"]},
                "else": {
                    "required": ["structuredContent"],
                    "properties": {"structuredContent": {"$id": _OUTPUT, **schema}},
                },
            })  # fmt: skip
            self._contracts[name] = ToolContract(contract_for(schema=whole), self._errors)


def refusal(method: str, error: CassetteError) -> dict[str, Any]:
    """An error of ours as an answer, for a client that takes no exceptions: the session's end decides."""
    if method == _CALL:
        content = [{"type": "text", "text": str(error)}]
        return {"result": {"content": content, "isError": True, "resultType": "complete"}}
    return {"error": {"code": _REFUSED, "message": str(error), "data": {"code": error.code}}}
