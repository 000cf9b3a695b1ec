"""A stand-in for Slack on loopback: its Web API, its socket, and people who click and write.

It follows Slack's reference: tokens, unknown channels, the limits of Block Kit, one message per second in a
channel, addresses of sockets that work once, and envelopes that have to be acknowledged.
"""

from __future__ import annotations

import asyncio
import copy
import json
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from aiohttp import WSMsgType, web

T = TypeVar("T")
BOT, APP = "xoxb-1-stand-in-aBcDeFgHiJ", "xapp-1-stand-in-kLmNoPqRsT"
CHANNEL, ADA, EVE, BOT_ID = "C0123GSD", "U0ADA", "U0EVE", "B0GSD"
NAMES = {ADA: "ada", EVE: "eve"}


class SlackStandIn:
    """The stand-in; *messages* are those in the channel, *calls* the calls of the API."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.views: list[dict[str, Any]] = []
        self.told: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self.too_fast = 0
        self.pace = 1.0
        self.down = False
        self.lose_replies = 0
        self.errors: dict[str, list[str]] = {}
        self.url = ""
        self._sockets: list[web.WebSocketResponse] = []
        self._transports: dict[web.WebSocketResponse, asyncio.Transport] = {}
        self._tickets: set[str] = set()
        self._acks: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._count = 0
        self._last_post = 0.0
        self._loop = asyncio.new_event_loop()

    @contextmanager
    def serving(self) -> Generator[SlackStandIn]:
        """Serve in a thread until the block ends."""
        thread = threading.Thread(target=self._loop.run_forever, name="slack-stand-in", daemon=True)
        thread.start()
        runner = self._do(self._start())
        try:
            yield self
        finally:
            self._do(self._stop(runner))
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(5)
            self._loop.close()

    # People.

    def click(self, message: Mapping[str, Any], action: str, user: str = ADA, **chosen: Any) -> bool:
        """Press a button of *message*; return whether the click was acknowledged."""
        for block in message["blocks"]:
            for element in block.get("elements", ()):
                if element.get("action_id") == action:
                    body = {
                        "type": "block_actions",
                        "user": {"id": user, "username": NAMES[user], "team_id": "T0"},
                        "team": {"id": "T0"},
                        "channel": {"id": CHANNEL},
                        "container": {"message_ts": message["ts"]},
                        "trigger_id": f"trigger-{self._next()}",
                        "state": {"values": {"any": {"gsd_menu": chosen}} if chosen else {}},
                        "actions": [{**element, "block_id": block["block_id"], "action_ts": "1.1"}],
                    }
                    return self.send("interactive", body) is not None
        raise AssertionError(f"no button {action!r} in {message}")

    def submit(self, view: Mapping[str, Any], text: str, user: str = ADA) -> dict[str, Any] | None:
        """Submit a dialog; return the acknowledgment."""
        values = {"gsd_text": {"gsd_text": {"type": "plain_text_input", "value": text}}}
        body = {
            "type": "view_submission",
            "user": {"id": user, "username": NAMES[user], "team_id": "T0"},
            "team": {"id": "T0"},
            "view": {**view, "id": "V1", "state": {"values": values}},
        }
        return self.send("interactive", body)

    def reply(self, root: Mapping[str, Any], text: str, user: str = ADA) -> None:
        """Write *text* in a thread."""
        event = {
            "type": "message",
            "channel": CHANNEL,
            "user": user,
            "text": text,
            "ts": f"{time.time():.6f}",
            "thread_ts": root["ts"],
        }
        body = {"type": "event_callback", "team_id": "T0", "event": event, "event_id": f"Ev{self._next()}"}
        assert self.send("events_api", body) is not None

    def send(self, kind: str, payload: Mapping[str, Any]) -> dict[str, Any] | None:
        """Send an envelope to the newest socket; return its acknowledgment, ``None`` without one."""
        self.wait_for(lambda: self._sockets, "a socket")
        return self._do(self._send(kind, payload))

    def cut(self) -> None:
        """Cut all sockets, as a network does: without a closing handshake."""
        self._do(self._cut())

    # Looking.

    def wait_for(self, condition: Callable[[], T], what: str, seconds: float = 15) -> T:
        """Return the first true value of *condition*."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := condition():
                return found
            time.sleep(0.02)
        shown = "\n".join(text_of(message) for message in self.messages)
        raise AssertionError(f"{what} did not happen; messages:\n{shown}\ntold: {self.told}")

    def question(self, containing: str = "") -> dict[str, Any]:
        """Return the newest question with controls."""

        def find() -> dict[str, Any] | None:
            asked = [m for m in self.messages if kind_of(m) == "gsd_question" and is_open(m)]
            return next((m for m in reversed(asked) if containing in text_of(m)), None)

        found = self.wait_for(find, f"a question {containing!r}")
        assert found is not None
        return copy.deepcopy(found)  # what a person sees may be out of date

    def delete(self, message: Mapping[str, Any]) -> None:
        """Delete a message."""
        self.messages[:] = [known for known in self.messages if known["ts"] != message["ts"]]

    def roots(self) -> list[dict[str, Any]]:
        """Return the first messages of runs."""
        return [message for message in self.messages if kind_of(message) == "gsd_run"]

    def questions(self) -> list[dict[str, Any]]:
        """Return all questions, open or not."""
        return [message for message in self.messages if kind_of(message) == "gsd_question"]

    @property
    def connections(self) -> int:
        """The number of sockets that are open."""
        return len(self._sockets)

    # The server.

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    def _next(self) -> int:
        self._count += 1
        return self._count

    async def _start(self) -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/api/{method}", self._api)
        app.router.add_get("/socket/{ticket}", self._socket)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        [(_, port)] = [address[:2] for address in runner.addresses]
        self.url = f"http://127.0.0.1:{port}/api/"
        return runner

    async def _stop(self, runner: web.AppRunner) -> None:
        await self._cut()
        await runner.cleanup()

    async def _cut(self) -> None:
        sockets, self._sockets = self._sockets, []
        for socket in sockets:
            transport = self._transports.pop(socket, None)
            if transport is not None:
                transport.abort()

    async def _send(self, kind: str, payload: Mapping[str, Any]) -> dict[str, Any] | None:
        envelope = f"envelope-{self._next()}"
        self._acks[envelope] = ack = self._loop.create_future()
        data = {"envelope_id": envelope, "type": kind, "payload": payload, "accepts_response_payload": True}
        await self._sockets[-1].send_str(json.dumps(data))
        try:
            return await asyncio.wait_for(ack, 3)  # Slack's own limit
        except TimeoutError:
            return None

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        ticket = request.match_info["ticket"]
        if ticket not in self._tickets or self.down:
            return web.Response(status=403)
        self._tickets.remove(ticket)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._sockets.append(socket)
        assert request.transport is not None
        self._transports[socket] = request.transport
        await socket.send_str(json.dumps({"type": "hello", "num_connections": len(self._sockets)}))
        async for message in socket:
            if message.type == WSMsgType.TEXT:
                data = json.loads(message.data)
                ack = self._acks.pop(data["envelope_id"], None)
                if ack and not ack.done():
                    ack.set_result(data)
        if socket in self._sockets:
            self._sockets.remove(socket)
        return socket

    async def _api(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        if request.content_type == "application/json":
            arguments: dict[str, Any] = json.loads(await request.text() or "{}")
        else:
            arguments = {**request.query, **await request.post()}
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.calls.append((method, arguments))
        if self.down:
            return web.Response(status=503, text="down")
        wanted = APP if method == "apps.connections.open" else BOT
        if token != wanted:
            return web.json_response({"ok": False, "error": "invalid_auth"})
        if self.errors.get(method):
            return web.json_response({"ok": False, "error": self.errors[method].pop(0)})
        if "channel" in arguments and arguments["channel"] != CHANNEL:
            return web.json_response({"ok": False, "error": "channel_not_found"})
        if method == "chat.postMessage":
            now = time.monotonic()
            if now - self._last_post < self.pace:
                self.too_fast += 1
                return web.json_response(
                    {"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": "1"}
                )
            self._last_post = now
        data = self._answer(method, arguments)
        if method == "chat.postMessage" and self.lose_replies:
            # The message is there, but the caller never learns of it.
            self.lose_replies -= 1
            assert request.transport is not None
            request.transport.abort()
        return web.json_response({"ok": "error" not in data, **data})

    def _answer(self, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "auth.test":
                return {"user_id": "U0BOT", "bot_id": BOT_ID, "team_id": "T0", "url": "x", "user": "gsd"}
            case "apps.connections.open":
                ticket = f"ticket-{self._next()}"
                self._tickets.add(ticket)
                return {"url": self.url.replace("http:", "ws:").replace("/api/", f"/socket/{ticket}")}
            case "conversations.info":
                return {"channel": {"id": CHANNEL, "is_member": True}}
            case "users.info":
                known = arguments["user"] in NAMES
                return {"user": {"id": arguments["user"]}} if known else {"error": "user_not_found"}
            case "chat.postMessage" | "chat.update" | "views.open":
                view: dict[str, Any] = arguments.get("view") or {}
                blocks: list[dict[str, Any]] = arguments.get("blocks") or view.get("blocks") or []
                if problems := check_blocks(blocks):
                    self.problems += problems
                    return {"error": "invalid_blocks"}
                return self._write(method, arguments)
            case "chat.postEphemeral":
                self.told.append(arguments)
                return {}
            case "conversations.history":
                oldest = float(arguments.get("oldest") or 0)
                return {
                    "messages": [m for m in self.messages if not m["thread_ts"] and float(m["ts"]) >= oldest]
                }
            case "conversations.replies":
                ts = arguments["ts"]
                found = [m for m in self.messages if ts in (m["ts"], m["thread_ts"])]
                return {"messages": found} if found else {"error": "thread_not_found"}
            case _:
                return {"error": "unknown_method"}

    def _write(self, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if method == "views.open":
            self.views.append(arguments["view"])
            return {}
        if method == "chat.update":
            for message in self.messages:
                if message["ts"] == arguments["ts"]:
                    message.update({key: arguments.get(key) for key in ("text", "blocks", "metadata")})
                    message["edits"] += 1
                    return {"ts": message["ts"]}
            return {"error": "message_not_found"}
        ts = f"{time.time():.6f}"
        message = {key: arguments.get(key) for key in ("text", "blocks", "metadata")}
        thread = arguments.get("thread_ts") or ""
        self.messages.append({**message, "ts": ts, "thread_ts": thread, "bot_id": BOT_ID, "edits": 0})
        return {"ts": ts}


def kind_of(message: Mapping[str, Any]) -> str:
    """Return the type of a message's metadata."""
    metadata: Mapping[str, Any] = message.get("metadata") or {}
    return str(metadata.get("event_type", ""))


def is_open(message: Mapping[str, Any]) -> bool:
    """Whether a message has controls."""
    return any(block["type"] == "actions" for block in message["blocks"] or ())


def text_of(message: Mapping[str, Any]) -> str:
    """Return all text of a message's blocks."""
    found: list[str] = []
    left: list[Any] = list(message.get("blocks") or ())
    while left:
        value = left.pop(0)
        if isinstance(value, list):
            left = [*cast("list[Any]", value), *left]
        elif isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            found.extend([fields["text"]] if isinstance(fields.get("text"), str) else [])
            left = [*fields.values(), *left]
    return "\n".join(found)


def check_blocks(blocks: list[dict[str, Any]]) -> list[str]:
    """Return what Slack would refuse in *blocks*."""
    problems = [f"{len(blocks)} blocks"] if len(blocks) > 50 else []
    if len(json.dumps(blocks)) > 30_000:
        problems.append("blocks are too long")
    ids = [block["block_id"] for block in blocks if "block_id" in block]
    if len(ids) != len(set(ids)) or any(len(name) > 255 for name in ids):
        problems.append(f"block ids {ids}")
    for block in blocks:
        texts = [block["text"]["text"]] if "text" in block else []
        texts += [e["text"] for e in block.get("elements", ()) if block["type"] == "context"]
        problems += [f"text of {len(text)}" for text in texts if not 0 < len(text) <= 3000]
        controls = [block["accessory"]] if "accessory" in block else []
        if block["type"] == "actions":
            controls += block["elements"]
            problems += [f"{len(controls)} controls"] if not 0 < len(controls) <= 25 else []
            problems += [c["type"] for c in controls if c["type"] not in ("button", "static_select")]
        for control in controls:
            options = control.get("options", ())
            labels = [o["text"]["text"] for o in options]
            labels += [control["text"]["text"]] if "text" in control else []
            problems += [f"label of {len(label)}" for label in labels if not 0 < len(label) <= 75]
            problems += (
                [f"{len(options)} options"]
                if "select" in control["type"] and not 0 < len(options) <= 100
                else []
            )
    return problems
