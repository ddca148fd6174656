"""The same work behind HTTP, for packages that record at that boundary: a server on the loopback interface.

Rule: it prints its port, then answers until whoever started it closes its standard input.
"""

from __future__ import annotations

import json
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.benchmarks.work import SHAPES

__all__ = ["url"]


def url(port: int, shape: str, arguments: dict[str, object]) -> str:
    """Where the result for these arguments is; different arguments have different addresses."""
    return f"http://127.0.0.1:{port}/{shape}?arguments={urllib.parse.quote(json.dumps(arguments))}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args: object) -> None:
        """Say nothing: a client that was ended in the middle of a request is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body leave in one packet
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        where = urllib.parse.urlsplit(self.path)
        arguments = json.loads(urllib.parse.parse_qs(where.query)["arguments"][0])
        body = json.dumps(SHAPES[where.path.lstrip("/")](**arguments)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def main() -> None:
    server = _Server(("127.0.0.1", 0), _Handler)
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
