"""``mcp record``, ``mcp replay`` and ``check``: as the servers of a real client, and of one that speaks bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

import toolcassette as tc
from tests.adapters.mcp_kits import StdioServerParameters, client_of, stdio_client
from tests.adapters.test_mcp import SERVER, bodies, everything, stdio
from tests.cli.helpers import SRC
from toolcassette.adapters.mcp import cassette_transport

TC = (sys.executable, "-m", "toolcassette")

# The smallest server there is: no package, one message a line. $RAN is where its bodies leave a trace.
TINY = """
import json, os, sys
SCHEMA = {"type": "object", "properties": {"degrees": {"$ref": "#/$defs/D"}}, "required": ["degrees"],
          "$defs": {"D": {"type": "number"}}}
def say(ident, **rest): print(json.dumps({"jsonrpc": "2.0", "id": ident, **rest}, ensure_ascii=False), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, ident, params = message["method"], message.get("id"), message.get("params", {})
    if method == "initialize":
        say(ident, result={"protocolVersion": params["protocolVersion"], "capabilities": {}, "serverInfo": {}})
    elif method == "tools/list":
        say(ident, result={"tools": [{"name": "weather", "inputSchema": {}, "outputSchema": SCHEMA}]})
    elif method == "tools/call":
        open(os.environ["RAN"], "a").write(params["name"] + "\\n")
        if params["name"] == "exit": os._exit(3)
        if params["name"] == "weather":
            say(ident, result={"content": [], "structuredContent": {"degrees": params["arguments"].get("d", 20.5)}})
        elif params["name"] == "secret":
            say(ident, result={"content": [{"type": "text", "text": "sk-ant-api03-" + "Ab1" * 30}]})
        elif params["name"] == "talks":
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "so far"}}))
            token = params.get("_meta", {}).get("progressToken")
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress",
                              "params": {"progressToken": token, "progress": 1}}))
            say(ident, result={"content": []})
        elif params["name"] == "bad": say(ident, error={"code": -32602, "message": "no such tool", "data": [1]})
    elif ident is not None: say(ident, result={})
"""


@pytest.fixture
def trace(tmp_path, monkeypatch):
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    monkeypatch.setenv("PYTHONPATH", str(SRC))
    return tmp_path / "ran"


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.py"
    path.write_text(TINY, "utf-8")
    return path


def check(*paths):
    return subprocess.run([*TC, "check", *map(str, paths)], capture_output=True, text=True, check=False)


def request(ident, method, **params):
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


HELLO = request(0, "initialize", protocolVersion="2025-06-18", capabilities={})
LIST = request(1, "tools/list")


def called(ident, name, **arguments):
    return request(ident, "tools/call", name=name, arguments=arguments)


class Client:
    """One that speaks bytes: messages to a proxy, one at a time."""

    def __init__(self, *args):
        self.process: Any = subprocess.Popen(
            [*TC, "mcp", *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def send(self, message):
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, message):
        self.send(message)
        return json.loads(self.process.stdout.readline())

    def end(self):
        """Close its input. Returns the status, what it said, and how many seconds it took."""
        began = time.monotonic()
        out, err = self.process.communicate(timeout=30)
        assert out == b""
        return self.process.returncode, err.decode(), time.monotonic() - began


def record(file, server, *options):
    return Client("record", *options, file, "--", sys.executable, server)


def replay(file, *options):
    return Client("replay", *options, file)


def talk(client, *messages):
    return [client.ask(message) for message in messages]


TALK = (HELLO, LIST, called(2, "weather", city="武汉"), called(3, "bad"), called("a", "weather", city="Oslo"))


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_real_client_and_a_real_server_and_then_none(file, tmp_path, trace):
    def proxy(*args):
        words = ["-m", "toolcassette", "mcp", *map(str, args)]
        return stdio_client(StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ)))

    recorded, replayed = tmp_path / "recorded", tmp_path / "replayed"
    async with client_of(proxy("record", file, "--status", recorded, "--", sys.executable, SERVER)) as client:
        said = await everything(client)
    assert bodies(trace) == ["weather-fast", "weather-slow", "fails", "picture", "steps"]
    async with client_of(proxy("replay", file, "--status", replayed)) as client:
        assert await everything(client) == said
    assert bodies(trace) == []
    assert check(recorded, replayed).returncode == 0

    # The same cassette, in the process of the client; and back.
    async with tc.replay(file), client_of(cassette_transport(stdio())) as client:
        assert await everything(client) == said
    assert bodies(trace) == []


def test_a_client_that_speaks_bytes(file, tmp_path, tiny, trace):
    client = record(file, tiny, "--status", tmp_path / "one")
    said = talk(client, *TALK)
    status, err, seconds = client.end()
    assert (status, seconds < 2) == (0, True), err
    assert "(5 calls, 3 of tools)" in err
    assert bodies(trace) == ["weather", "bad", "weather"]
    assert said[3]["error"] == {"code": -32602, "message": "no such tool", "data": [1]}
    assert said[4]["id"] == "a"
    assert tc.verify(file).ok

    client = replay(file, "--status", tmp_path / "two")
    again = [{**message, "id": message["id"]} for message in TALK]
    assert talk(client, *again) == said
    status, err, seconds = client.end()
    assert (status, seconds < 2) == (0, True), err
    assert bodies(trace) == []
    assert check(tmp_path / "one", tmp_path / "two").returncode == 0


def test_drift_is_an_error_to_the_client_and_a_finding_to_check(file, tmp_path, tiny, trace):
    client = record(file, tiny)
    talk(client, *TALK)
    client.end()
    client = replay(file, "--status", tmp_path / "status")
    *_, first, second = talk(client, *TALK[:2], called(2, "weather", city="Paris"), called(3, "bad"))
    assert first["result"]["isError"]
    assert "arguments_differ" in first["result"]["content"][0]["text"]
    assert second["result"]["isError"]
    assert client.end()[0] == 1
    done = check(tmp_path / "status")
    assert done.returncode == 1
    assert "arguments_differ" in done.stdout
    assert "Paris" not in done.stdout


def test_what_was_not_called_is_a_finding(file, tmp_path, tiny, trace):
    client = record(file, tiny)
    talk(client, *TALK)
    client.end()
    client = replay(file, "--status", tmp_path / "status")
    talk(client, *TALK[:4])
    status, err, _ = client.end()
    assert status == 1
    assert "mcp/weather" in err
    assert check(tmp_path / "status").returncode == 1


def unpublished(file, client, status_file):
    status, err, _ = client.end()
    assert not file.exists()
    assert file.with_name(file.name + ".partial").exists()
    assert "nothing was published" in err
    assert check(status_file).returncode == 1
    return status, err


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
@pytest.mark.parametrize(("number", "status"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_is_no_clean_end(file, tmp_path, tiny, trace, number, status):
    client = record(file, tiny, "--status", tmp_path / "status")
    talk(client, *TALK)
    client.process.send_signal(getattr(signal, number))
    client.process.wait(timeout=30)
    found, err = unpublished(file, client, tmp_path / "status")
    assert found == status
    assert number in err


def test_a_client_that_called_no_tool_published_nothing(file, tmp_path, tiny, trace):
    client = record(file, tiny, "--status", tmp_path / "status")
    talk(client, HELLO, LIST)
    status, err = unpublished(file, client, tmp_path / "status")
    assert status == 1
    assert "no tool was called" in err


def test_a_request_without_an_answer_published_nothing(file, tmp_path, tiny, trace):
    client = record(file, tiny, "--status", tmp_path / "status")
    talk(client, HELLO)
    client.send(called(9, "hangs"))
    status, err = unpublished(file, client, tmp_path / "status")
    assert status == 1
    assert "1 of the requests had no answer" in err


def test_a_server_that_goes_first_published_nothing(file, tmp_path, tiny, trace):
    client = record(file, tiny, "--status", tmp_path / "status")
    talk(client, HELLO)
    assert client.ask(called(9, "exit"))["error"]["message"] == "Connection closed"
    status, err = unpublished(file, client, tmp_path / "status")
    assert status == 1
    assert "the server ended before the client" in err


def test_a_request_that_is_under_way_when_input_ends_is_still_answered(file, tiny, trace):
    lines = b"".join(json.dumps(message).encode() + b"\n" for message in TALK)
    done = subprocess.run(
        [*TC, "mcp", "record", file, "--", sys.executable, tiny], input=lines, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(TALK)
    done = subprocess.run([*TC, "mcp", "replay", file], input=lines, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {json.loads(line)["id"] for line in done.stdout.splitlines()} == {0, 1, 2, 3, "a"}


def test_a_result_that_breaks_the_listed_schema_is_not_recorded(file, tmp_path, tiny, trace):
    client = record(file, tiny, "--status", tmp_path / "status")
    *_, answer = talk(client, HELLO, LIST, called(2, "weather", d="hot"))
    assert answer["result"]["isError"]
    status, err = unpublished_by_us(file, client)
    assert status != 0
    assert "output_schema" in err
    assert check(tmp_path / "status").returncode != 0


def unpublished_by_us(file, client):
    status, err, _ = client.end()
    assert not file.exists()
    return status, err


def test_a_call_that_the_client_cancels_is_cancelled_again(file, tiny, trace):
    def cancelled(client):
        talk(client, HELLO)
        client.send(called(7, "hangs"))
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
        assert client.ask(called(8, "weather"))["id"] == 8
        return client.end()

    status, err, _ = cancelled(record(file, tiny))
    assert status == 0, err
    outcomes = {call.tool: call.outcome for call in tc.read_cassette(file)}
    assert outcomes == {"mcp:initialize": "ok", "mcp/hangs": "cancelled", "mcp/weather": "ok"}
    status, err, seconds = cancelled(replay(file))
    assert (status, seconds < 2) == (0, True), err
    assert bodies(trace) == ["hangs", "weather"]


def test_notifications_come_again_with_the_token_of_today(file, tiny, trace):
    def told(client, token):
        message = called(2, "talks")
        message["params"]["_meta"] = {"progressToken": token}
        talk(client, HELLO)
        client.send(message)
        lines = [json.loads(client.process.stdout.readline()) for _ in range(3)]
        assert client.end()[0] == 0
        return lines

    said = told(record(file, tiny), "then")
    assert [line.get("method") for line in said] == ["notifications/message", "notifications/progress", None]
    assert said[1]["params"] == {"progressToken": "then", "progress": 1}
    again = told(replay(file), 99)
    assert again[1]["params"] == {"progressToken": 99, "progress": 1}
    assert [again[0], again[2]] == [said[0], said[2]]
    assert b"then" not in file.read_bytes()


def test_a_secret_does_not_reach_the_cassette(file, tiny, trace):
    client = record(file, tiny)
    *_, answer = talk(client, HELLO, called(2, "secret"))
    assert "sk-ant-api03-" in answer["result"]["content"][0]["text"], "the client gets what the server said"
    assert client.end()[0] == 0
    assert b"Ab1Ab1" not in file.read_bytes()


def test_what_is_no_message_is_answered_and_hurts_nobody(file, tiny, trace):
    client = record(file, tiny)
    assert client.ask(b"{nonsense")["error"]["code"] == -32600
    assert client.ask(b'{"jsonrpc": "2.0", "id": {}, "method": "x"}')["error"]["code"] == -32600
    talk(client, HELLO, called(1, "weather"))
    assert client.end()[0] == 0


def test_a_status_of_an_earlier_run_is_refused(file, tmp_path, tiny, trace):
    (tmp_path / "status").write_text("{}", "utf-8")
    client = record(file, tiny, "--status", tmp_path / "status")
    status, err, _ = client.end()
    assert status == 2
    assert "remove it before each run" in err
    assert not file.exists()


def test_a_cassette_that_is_there_is_not_overwritten(file, tmp_path, tiny, trace):
    file.write_text("mine", "utf-8")
    client = record(file, tiny, "--status", tmp_path / "status")
    assert client.end()[0] == 2
    assert file.read_text("utf-8") == "mine"
    assert check(tmp_path / "status").returncode == 2


def test_a_server_that_cannot_be_started_is_named(file, tmp_path, trace):
    client = Client("record", file, "--", "no-such-server")
    status, err, _ = client.end()
    assert status == 2
    assert "could not run no-such-server" in err


def test_check_without_a_status_is_a_finding(tmp_path):
    done = check(tmp_path / "none")
    assert done.returncode == 1
    assert "no session began" in done.stdout


def test_check_of_a_proxy_that_was_killed_is_a_finding(file, tmp_path, tiny, trace):
    client = record(file, tiny, "--status", tmp_path / "status")
    talk(client, HELLO)
    client.process.kill()
    client.process.communicate()
    done = check(tmp_path / "status")
    assert done.returncode == 1
    assert "never came to its end" in done.stdout
