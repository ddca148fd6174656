"""A provider on loopback: answers the three requests of chat models, plainly or in events, and fails when it is told.

What the messages say decides: ``fail midway`` cuts the connection after two events, ``retry N`` answers the first N
requests with 500; anything else is answered, with an id of its own.
"""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections import Counter
from contextlib import contextmanager
from typing import Any

WORDS = ("he", "l", "lo ☂")
SECRET = "sk-s3cret"


class Provider(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.failed: Counter[str] = Counter()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Provider

    def log_message(self, *args):
        """Silence."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(
            {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "body": body}
        )
        said = json.dumps(body.get("messages") or body.get("input"))
        number = len(self.server.requests)
        retry = re.search(r"retry (\d)", said)
        if retry and self.server.failed[said] < int(retry[1]):
            self.server.failed[said] += 1
            self.answer(500, {"error": {"type": "server_error", "message": "try again"}}, {"retry-after-ms": "1"})
        elif body.get("stream"):
            self.stream(EVENTS[self.path.partition("?")[0]](body, number), midway="fail midway" in said)
        else:
            self.answer(200, ANSWERS[self.path.partition("?")[0]](body, number), {})

    def answer(self, status, value, headers):
        data = json.dumps(value, indent=1).encode()
        self.send_response(status)
        for name, text in {"content-type": "application/json", "set-cookie": f"k={SECRET}", **headers}.items():
            self.send_header(name, text)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events, *, midway):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for at, event in enumerate(events):
            if midway and at == 2:
                self.close_connection = True  # without the last chunk: the peer sees a connection that was cut
                return
            name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
            text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
            data = f"{name}data: {text}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


def chat(body, number):
    message = {"role": "assistant", "content": f"answer {number}"}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"id": f"c{number}", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice]}


def chat_events(body, number):
    def chunk(delta, reason=None):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        known = {"id": f"c{number}", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        return {**known, "choices": [choice]}

    return [*(chunk({"role": "assistant", "content": word}) for word in WORDS), chunk({}, "stop"), "[DONE]"]


def response(body, number, status="completed", text="hello") -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": status, "content": [part]}
    return {
        "id": f"resp_{number}", "object": "response", "created_at": 1, "model": body["model"], "status": status,
        "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None,
        "incomplete_details": None, "instructions": None, "metadata": {},
    }  # fmt: skip


def response_events(body, number):
    whole = response(body, number)
    item: dict[str, Any] = {**whole["output"][0], "status": "in_progress", "content": []}
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **place, "part": part},
        *({"type": "response.output_text.delta", **place, "delta": word, "logprobs": []} for word in WORDS),
        {"type": "response.completed", "response": whole},
    ]
    return [{**event, "sequence_number": at} for at, event in enumerate(events)]


def message(body, number):
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"],
        "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [{"type": "text", "text": f"answer {number}"}],
    }  # fmt: skip


def message_events(body, number):
    deltas = [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": w}} for w in WORDS]
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    return [
        {"type": "message_start", "message": {**message(body, number), "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]


ANSWERS = {"/v1/chat/completions": chat, "/v1/responses": response, "/v1/messages": message}
EVENTS = {
    "/v1/chat/completions": chat_events,
    "/v1/responses": response_events,
    "/v1/messages": message_events,
}


@contextmanager
def provider():
    """A running provider. ``stop`` it before a replay: then nothing is left that could answer."""
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()

    def stop():
        server.shutdown()
        thread.join()
        server.server_close()

    server.stop = stop  # type: ignore[attr-defined] # for tests
    try:
        yield server
    finally:
        if thread.is_alive():
            stop()
