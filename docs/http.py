"""The page about the interface of ``gsd serve``: its requests come from the route table."""

# ruff: noqa: E501 - the text has one sentence per line

from __future__ import annotations

from collections.abc import Iterator

from gsd_plugins.web.routes import Route
from gsd_plugins.web.table import routes

BEFORE = """\
This is version 1 of the interface, below `/api/v1`.
[openapi.json](openapi.json) describes all requests and answers as OpenAPI 3.1; a server returns it at `GET /api/v1/openapi.json`.
All bodies are JSON in UTF-8.
Times are ISO 8601 with an offset.
Money is text (`"1.20"`), or null if the price is not known.
Ignore fields that you do not know: new ones are added without a new version.

## Token

The URL that `gsd serve` prints is `http://127.0.0.1:3333/#token=TOKEN`.
The page reads the token from the fragment, keeps it in `sessionStorage` (and the last one in `localStorage`, for links that open in a new tab) and removes it from the address bar.

- HTTP: `Authorization: Bearer TOKEN`.
- WebSocket: subprotocols `["gsd.v1", "gsd.token.TOKEN"]`; the server selects `gsd.v1`.
- Never in a cookie, never in a query.

There are two tokens: `control` for everything, and `read` for watching only.
With `read`, everything but GET is refused with 403, and so are terminal input and resizing; so is `/mcp`.
Both are in a file that only you can read, `serve/PORT.json` in the state folder, as long as the server runs.
Requests with POST or PUT need `Content-Type: application/json`; bodies are at most 1 MiB.

The server answers only to the hosts and origins that it knows: those of the address on which it listens, and those of `--public-url`.
It sends no CORS headers.

## Errors

`{"error": {"code": "not_found", "message": "no session 's9'", "hint": "list the sessions with: gsd ps --all"}}`

| status | code | when |
|---|---|---|
| 400 | `invalid` | body, parameter or answer is invalid |
| 401 | `unauthorized` | the token is missing or wrong (without `--keep-token`, it changes with each start of the server) |
| 403 | `forbidden` | wrong origin, or the token may only read |
| 404 | `not_found` | |
| 405 | `method_not_allowed` | |
| 409 | `conflict` | the session's state does not allow it; the question is already answered (the message says by whom) |
| 413, 415, 421 | `too_large`, `content_type`, `host` | |
| 500 | `internal` | a defect; what `gsd serve` printed has details |
"""

AFTER = """\
`POST /api/v1/sessions` takes `{"project": "/absolute/path", …}` and exactly one of

- `"idea": "text"`, or `"idea_file": "/path/idea.md"`: `gsd run`; with `"phases": "1-3"` optionally
- `"resume": true`: `gsd resume`; with `"phases"` optionally
- `"step": "discuss"|"plan"|"execute"|"verify"` with `"phase": "2"`
- `"exec": "/gsd:progress"`: one command of the user's installation, as `gsd exec`

and optionally `"agent"`, `"depth"`, `"model"` and `"budget": "5"` (dollars).
Other fields are refused: consent (trust, no sandbox, yes to all) is given at a terminal only.
The text of an idea is stored in a private file in the state folder.

The shapes are those in [openapi.json](openapi.json) (`components.schemas`).
Several steps and phases may be in progress at a time: `Summary.steps` and `Phase.active` are lists.
Texts are sanitized: no escape sequences, control characters or invisible characters, and no secrets that GSD recognizes.
Only the raw bytes for a terminal are not.

## WebSocket

Messages are text frames with JSON objects, in both directions; `ServerMessage` and `ClientMessage` in [openapi.json](openapi.json) describe them.
A message of the client has at most 64 KiB.

The server begins with `{"hello": {"epoch", "number", "scope", "version"}}`.
`number` counts all changes; it restarts when `epoch` changes, because the server was started again.

Client → server:

- `{"subscribe": {"session": "s1"|"*", "after": N|null, "epoch": "…", "output": false}}`: replaces the subscription of this session.
  `after`: null for from now on, 0 for all that is kept.
  With another `epoch` than the server's, a resync follows.
  `output`: also the text of what the session prints (not with `*`), from `"cursor"` on, which is the last 64 KiB by default.
- `{"unsubscribe": {"session": "s1"|"*"}}`
- `{"terminal": {"session": "s1", "cursor": N}}`: raw bytes from cursor N (negative: from the end); `{"terminal": {"session": "s1", "close": true}}` ends it.
- `{"input": {"session": "s1", "data": "base64"}}`, `{"resize": {"session": "s1", "columns": 120, "rows": 40}}`: scope control.
- `{"ping": anything}` → `{"pong": anything}`.

Server → client:

- `{"frame": [Change, …], "number": N}`: at most 256 changes, in order.
  A change is `{"number", "session": "s1", "state": Session}` for a session that is new or has changed, or `{"number", "session": "s1", "event": GsdEvent}`.
  A subscriber of `*` sees every number.
  A change is sent once, even if several subscriptions cover it; after a new subscription with an earlier `after`, changes may come again.
- `{"resync": true, "number": N}`: changes were skipped because the reader was too slow or came back too late, or the server is another one.
  Read what you show again by REST; frames continue after N.
- `{"removed": {"sessions": ["s1"]}}`: sessions that were forgotten. This message has no number.
- `{"output": {"session", "start", "end", "dropped", "ended", "text"}}`
- `{"terminal": {"session", "start", "end", "dropped", "ended": bool, "data": "base64"}}`
- `{"error": {"code", "message", "hint"}}`: for a message that could not be obeyed; the connection stays open.
  A message that is not a JSON object, or is too large, closes it (1007, 1009).

With a wrong token the handshake is refused (401), which a browser shows as 1006.
The close codes 1001 and 1012 mean that the server stops.
A reader that is slow delays neither the runs nor other readers.

## SSE

`GET /api/v1/events?session=s1` (without `session`: all of them) needs the token in the header `Authorization`, so it is for scripts and not for `EventSource`.
Each event has `id: EPOCH-N`, `event: change` or `event: resync`, and `data: CHANGE`.
The header `Last-Event-ID` continues after an event; without it, the stream begins now.
A comment every 15 seconds keeps the connection open.
"""


def page() -> Iterator[str]:
    """Yield the lines of the page below its title."""
    yield BEFORE
    yield "## Requests"
    yield ""
    yield "The column *token* says which token a request needs; `control` may do everything."
    yield ""
    yield "| request | token | what it does or returns |"
    yield "|---|---|---|"
    for route in routes():
        if route.policy != "public":
            yield f"| `{_request(route)}` | `{route.policy}` | {route.about} |"
    yield ""
    yield "Parameters of queries:"
    yield ""
    yield "| request | parameter | meaning |"
    yield "|---|---|---|"
    for route in routes():
        for one in route.query:
            need = " (required)" if one.required else " (may be repeated)" if one.repeated else ""
            yield f"| `{_request(route)}` | `{one.name}` | {one.about}{need} |"
    yield ""
    yield AFTER


def _request(route: Route) -> str:
    method = {"WEBSOCKET": "GET", "*": "POST"}.get(route.method, route.method)
    return f"{method} {route.path}"
