"""A server on loopback that answers as the Messages API does: the proxy's, and that of a rehearsal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Server(ThreadingHTTPServer):
    """Listens on a free port, at the address *url*, until it is closed."""

    # Neither the end of a call or a run nor that of the process waits for a request in progress.
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    is_open = True

    def __init__(self, handler: type[Handler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def close(self) -> None:
        """Accept nothing more, and end what is in progress."""
        self.is_open = False
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error: Claude Code was ended in the middle of a request."""


class Handler(BaseHTTPRequestHandler):
    """Answers requests."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Print nothing."""

    def refuse(self, status: int, kind: str, message: str, **headers: str) -> None:
        """Answer with an error of the API."""
        error = {"type": "error", "error": {"type": kind, "message": message}}
        headers = {"content-type": "application/json", **headers}
        self.reply(status, headers, json.dumps(error).encode())

    def reply(self, status: int, headers: Mapping[str, str], body: bytes, length: int | None = None) -> None:
        """Answer with a *body*; it breaks off if its *length* is said to be more than it is."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
