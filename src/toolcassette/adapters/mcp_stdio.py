"""A stdio proxy for MCP clients in any language: between a client and a server while recording, instead of one later.

Theory. One message a line, on our standard input and output. The end of input is the client's goodbye: what is under
way gets a moment to be answered, then the cassette is finished, and only then the server is sent home, since clients
wait two seconds and then send signals. A recording has ended well if the input ended, no signal came, the server was
there to the end and a tool was called: whoever ends a client early closes its pipes just as well.

Rule: what is no message of ours passes as it came, bytes and all. Nothing but messages is written to standard output.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

import anyio

from toolcassette.adapters._requests import Requests, refusal
from toolcassette.adapters._rpc import Relay
from toolcassette.errors import CassetteError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence

    from anyio.abc import Process

    from toolcassette.engine import Session

__all__ = ["Ended", "serve"]

_LAST_ANSWERS_SECONDS: Final = 1.0  # for what is under way when input ends; clients wait 2 in all
_SERVER_LEAVES_SECONDS: Final = 1.0  # for a server whose input has ended, and again for one that was asked to go
_BLOCK_BYTES: Final = 65_536
_INVALID: Final = -32600  # invalid request, in the words of JSON-RPC


class Ended:
    """How a conversation ended. ``why`` is empty for a clean end; ``signal`` is a number, or None."""

    def __init__(self) -> None:
        self.why = ""
        self.signal: int | None = None
        self.tool_calls = 0

    def badly(self, why: str) -> None:
        """Note the first thing that was wrong."""
        self.why = self.why or why


def serve(
    session: Session,
    command: Sequence[str],
    judge: Callable[[Ended], None],
    *,
    name: str = "mcp",
    check_output: bool = True,
) -> Ended:
    """Speak with the client on standard input and output until one side ends; ``session`` is open, and is closed.

    ``command`` starts the server; it is empty for a replay. ``judge`` is told at once, before the server is sent home.
    ``name`` and ``check_output`` as in ``Requests``. Raises ``OSError`` where the server cannot be started.
    """
    requests = Requests(name, check_output=check_output)

    async def main() -> Ended:
        return await _Proxy(session, command, requests, judge).run()

    return anyio.run(main)


async def _lines(blocks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Lines without their ends, of blocks that are cut anywhere."""
    rest = bytearray()
    async for block in blocks:
        seen = len(rest)
        rest += block
        while (end := rest.find(b"\n", seen)) >= 0:
            yield bytes(rest[:end])
            del rest[: end + 1]
            seen = 0
    if rest:
        yield bytes(rest)


async def _input() -> AsyncIterator[bytes]:
    """Blocks of standard input, read by a thread that nobody waits for: input may stay open when we go."""
    loop, blocks = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: we have gone
            while True:
                try:
                    block = os.read(0, _BLOCK_BYTES)
                except OSError:
                    block = b""
                loop.call_soon_threadsafe(blocks.put_nowait, block)
                if not block:
                    return

    threading.Thread(target=read, name="toolcassette-stdin", daemon=True).start()
    while block := await blocks.get():
        yield block


def _messages(line: bytes) -> list[dict[str, Any]] | None:
    """What a line holds, old clients send several in one; None where something in it is no message."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    several: list[Any] = found if isinstance(found, list) else [found]
    return several if several and all(map(_is_message, several)) else None


def _is_message(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and isinstance(found.get("id", 0), str | int)
        and isinstance(found.get("method", ""), str)
        and isinstance(found.get("params", {}), dict)
    )


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


class _Proxy:
    def __init__(
        self, session: Session, command: Sequence[str], requests: Requests, judge: Callable[[Ended], None]
    ) -> None:
        self._session = session
        self._command = list(command)
        self._requests = requests
        self._judge = judge
        self._ended = Ended()
        self._reading = anyio.CancelScope()  # of the client, until it has ended or there is no point any more

    async def run(self) -> Ended:
        server = None
        if self._command:
            server = await anyio.open_process(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None)
        async with anyio.create_task_group() as around:
            if os.name == "posix":
                around.start_soon(self._catch)
            try:
                await self._talk(server)
                self._session.close(RuntimeError(self._ended.why) if self._ended.why else None)
                self._judge(self._ended)
            finally:
                if server is not None:
                    await self._send_home(server)
            around.cancel_scope.cancel()
        return self._ended

    async def _catch(self) -> None:
        import signal

        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for number in signals:
                self._ended.signal = self._ended.signal or int(number)
                self._ended.badly(f"it was ended by {signal.Signals(number).name}")
                self._reading.cancel()

    async def _talk(self, server: Process | None) -> None:
        async with anyio.create_task_group() as group:
            stdin = None if server is None or server.stdin is None else server.stdin

            async def to_server(line: bytes) -> None:
                assert stdin is not None  # there is a server
                await stdin.send(line + b"\n")

            relay = Relay(self._requests, group, self._to_client, None if stdin is None else to_server)
            if server is not None and server.stdout is not None:
                group.start_soon(self._listen, server.stdout, relay)
            with self._reading:
                async with contextlib.aclosing(_lines(_input())) as lines:
                    async for line in lines:
                        await self._take(line, relay)
            if not self._ended.why:
                with anyio.move_on_after(_LAST_ANSWERS_SECONDS):
                    await relay.all_landed()
            if relay.flying and server is not None:
                self._ended.badly(f"{len(relay.flying)} of the requests had no answer when the client went")
            if server is not None and not self._ended.tool_calls:
                self._ended.badly("no tool was called")
            group.cancel_scope.cancel()

    async def _take(self, line: bytes, relay: Relay) -> None:
        """A line of the client."""
        if not line.strip():
            return
        messages = _messages(line)
        if messages is None:
            await self._to_client({"id": None, "error": {"code": _INVALID, "message": "this line is no message"}})
            return
        for message in messages:
            self._ended.tool_calls += message.get("method") == "tools/call"
            try:
                await relay.ask(message, line if len(messages) == 1 else _line(message))
            except CassetteError as error:
                await self._to_client({"id": message["id"], **refusal(message["method"], error)})

    async def _listen(self, stdout: AsyncIterator[bytes], relay: Relay) -> None:
        """Hand on what the server says, but for answers that go through the session."""
        async for line in _lines(stdout):
            messages = _messages(line)
            if messages is None:
                self._write(line)
                continue
            for message in messages:
                if await relay.hear(message):
                    self._write(line if len(messages) == 1 else _line(message))
        self._ended.badly("the server ended before the client")
        relay.hang_up()
        with anyio.move_on_after(_LAST_ANSWERS_SECONDS):
            await relay.all_landed()
        self._reading.cancel()

    async def _to_client(self, message: Mapping[str, Any]) -> None:
        self._write(_line(message))

    def _write(self, line: bytes) -> None:
        try:
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()
        except (BrokenPipeError, ValueError):
            self._ended.badly("the client stopped reading")
            self._reading.cancel()

    async def _send_home(self, server: Process) -> None:
        """The end of its input, then a signal, then one that cannot be missed."""
        with anyio.CancelScope(shield=True), contextlib.suppress(ProcessLookupError):
            if server.stdin is not None:
                await server.stdin.aclose()
            for insist in (server.terminate, server.kill):
                with anyio.move_on_after(_SERVER_LEAVES_SECONDS):
                    await server.wait()
                    break
                insist()
            await server.aclose()
