"""A Messages API on loopback: what the model would say is a function of what it is asked.

The server answers ``POST /v1/messages`` as a stream of server-sent events or as one JSON body,
whichever the request wants, and 404 to everything else. The Claude Code CLI needs no more.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, TypeAlias, assert_never, cast
from urllib.parse import urlsplit

from attrs import frozen

from .message import JSON, SSE, Blocks, Cut, Failure, Json, Reply, Text, ToolUseBlock, failed, stream, whole

__all__ = [
    "ApiRequest",
    "Blocks",
    "Cut",
    "Failure",
    "MessagesApi",
    "Reply",
    "Script",
    "Text",
    "ToolUseBlock",
    "text_of",
]


@frozen(kw_only=True)
class ApiRequest:
    """One request for a message: its *headers* (lower case), its JSON *body*, its *size* in bytes."""

    headers: Mapping[str, str]
    body: Mapping[str, Any]
    size: int = 0

    @property
    def messages(self) -> Sequence[Json]:
        """The conversation so far."""
        return cast("Sequence[Json]", self.body.get("messages", ()))

    @property
    def system(self) -> str:
        """The system prompt as one text."""
        return text_of(self.body.get("system"))

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that the model may use."""
        return tuple(tool["name"] for tool in self.body.get("tools", ()))

    @property
    def model(self) -> str:
        """The model that is asked."""
        return str(self.body.get("model", ""))

    @property
    def step(self) -> str:
        """Who is asking, from the header ``x-gsd-step``."""
        return self.headers.get("x-gsd-step", "")

    @property
    def prompt(self) -> str:
        """The text of the first message: what the work is about."""
        return text_of(self.messages[0]["content"]) if self.messages else ""

    @property
    def last(self) -> str:
        """The text of the user's last message, results of tools included."""
        said = [message for message in self.messages if message["role"] == "user"]
        return text_of(said[-1]["content"]) if said else ""

    @property
    def turn(self) -> int:
        """How many messages of the model the conversation holds: 0 at first."""
        return sum(message["role"] == "assistant" for message in self.messages)


def text_of(content: Any) -> str:
    """Return the text in a message's content, a system prompt or a tool's result, as one string."""
    if isinstance(content, str):
        return content
    blocks = cast("Sequence[Json]", content or ())
    return "\n".join(text_of(block.get("text", block.get("content", ""))) for block in blocks)


Script: TypeAlias = Callable[[ApiRequest], Reply]


class MessagesApi:
    """A server on 127.0.0.1 for as long as the context lasts; its address is *url*.

    *reply* is called in the thread of its request, several at a time; it may block.
    If it raises, the asker gets a 400 that says so, and *errors* has the exception.
    """

    def __init__(self, reply: Script) -> None:
        self._reply = reply
        self._lock = threading.Lock()
        self._requests: list[ApiRequest] = []
        self._errors: list[Exception] = []
        self._server = _Server(self.answer)

    @property
    def url(self) -> str:
        """The address for ``ANTHROPIC_BASE_URL``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def requests(self) -> tuple[ApiRequest, ...]:
        """Every request for a message so far, in their order."""
        with self._lock:
            return tuple(self._requests)

    @property
    def errors(self) -> tuple[Exception, ...]:
        """What *reply* raised."""
        with self._lock:
            return tuple(self._errors)

    def answer(self, request: ApiRequest) -> Reply:
        """Record *request* and say what the script answers."""
        with self._lock:
            self._requests.append(request)
        try:
            return self._reply(request)
        except Exception as error:
            with self._lock:
                self._errors.append(error)
            return Failure(400, "invalid_request_error", f"the script failed: {error!r}")

    def __enter__(self) -> MessagesApi:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        self._server.shutdown()
        self._server.server_close()
        return False


_NOT_FOUND = Failure(404, "not_found_error", "Not found")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, answer: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer a request for a message."""
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if urlsplit(self.path).path != "/v1/messages":
            self._send(*failed(_NOT_FOUND))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = ApiRequest(headers=headers, body=json.loads(raw), size=len(raw))
        answer = cast("_Server", self.server).answer(request)
        self._say(answer, streamed=bool(request.body.get("stream")), model=request.model)

    def do_GET(self) -> None:
        """Answer 404: there is nothing to look at."""
        self._send(*failed(_NOT_FOUND))

    do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_GET  # noqa: N815 - the names that http.server calls

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Say nothing: *requests* has it all."""

    def _say(self, reply: Reply, *, streamed: bool, model: str) -> None:
        match reply:
            case Failure():
                self._send(*failed(reply))
            case Blocks() if streamed:
                self._send(200, SSE, stream(reply, model))
            case Blocks():
                self._send(200, JSON, json.dumps(whole(reply, model)).encode())
            case Cut():
                body = stream(reply.said, model)
                self._send(200, SSE, body[: len(body) // 2], length=len(body))
                self.close_connection = True
            case _:
                assert_never(reply)

    def _send(self, status: int, headers: Mapping[str, str], body: bytes, length: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
