"""``gsd serve`` with projects of adversaries, and one of its user: every route, every message, every tool."""

from __future__ import annotations

import base64
import http.client
import json
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import attrs
import psutil
import pytest

from gsd_plugins.mcp import tools
from gsd_plugins.sessions import host
from gsd_plugins.sessions.registry import Registry
from gsd_plugins.web.openapi import document
from gsd_plugins.web.routes import Route
from gsd_plugins.web.table import routes
from tests.hostile.projects import (
    ESCAPES,
    EVIL,
    FORBIDDEN,
    OWNERS,
    Owner,
    forge,
    make,
    opened,
    question,
    texts,
)
from tests.hostile.tricks import SECRET, Hostile
from tests.web.asgi import ended_session
from tests.web.test_serve import Server, serve

pytestmark = pytest.mark.slow

SECONDS = 15.0
"""How long an answer may take; it takes a second where nothing else runs."""
MEMORY = 700 << 20
OUTSIDE = (SECRET.encode(), b"root:x:0:0")

QUERIES: Mapping[str, tuple[str, ...]] = {
    "output": ("", "?cursor=-100&limit=7", "?cursor=99999999999"),
    "commits": ("", "?phase=../../x"),
    "search": ("?text=evil", f"?text={quote(EVIL[:30])}", "?text=x&end=3"),
    "events": ("", "?last=5000", "?name=question.asked&limit=1", "?after=99999999"),
    "cost": tuple(f"?by={by}" for by in ("phase", "step", "model", "day")),
    "lines": tuple(
        f"?path={quote(path)}"
        for path in (
            *("passwd", "zero", "pipe", "../outside", "/etc/passwd", ".git/config", ".planning/ROADMAP.md"),
            *(
                ".planning/IDEA.md",
                ".planning/PROJECT.md",
                ".planning/REQUIREMENTS.md",
                ".planning/config.json",
            ),
            *("gsd.toml", "big.txt", "loop", ".planning", "src/..", "a.py", "x" * 3000, "\x1b[2J"),
        )
    ),
}
"""The queries of routes whose answer depends on them."""
PATHS: Mapping[str, tuple[str, ...]] = {
    "phase": ("3", "1", "4", "3.1", "..x", "-x", "99999999999999999999"),
    "sha": ("0123456", "--upload-pack", "HEAD", "f" * 64, "COMMIT"),
    "question": ("q-1", "q-9", "..", "-x"),
    "path": ("index.html", "passwd", ".git/config"),
}
BODIES: Mapping[str, tuple[object, ...]] = {
    "start": tuple(
        {"project": "ROOT", **way}
        for way in ({"resume": True}, {"exec": f"say {EVIL}"}, {"step": "plan", "phase": "3"}, {"idea": EVIL})
    ),
    "stop": ({},),
    "answer": ({"words": "1"}, {"words": EVIL}, {"words": "99999"}),
}
ELSEWHERE = frozenset({"socket", "events-stream", "mcp", "remove"})
"""Routes that have tests of their own below."""


@attrs.frozen(kw_only=True)
class World:
    """A server with the session of each hostile project by name, and *own*, that of an ordinary one."""

    server: Server
    projects: Mapping[str, Hostile]
    sessions: Mapping[str, str]
    own: str

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes, float]:
        """Return status, body and seconds of an answer; 0 is a server that did not answer in time."""
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=SECONDS)
        headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), time.monotonic() - began
        except TimeoutError:
            return 0, b"", time.monotonic() - began
        finally:
            connection.close()

    def post(self, path: str, body: object, more: Mapping[str, str]) -> tuple[int, str]:
        """Return status and text of the answer to a POST with *more* headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=SECONDS)
        headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(body), {**headers, **more})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def problems(self) -> Iterator[str]:
        """Yield what ran, what changed outside, and what the server had to say about its own code."""
        for name, at in self.projects.items():
            yield from ([f"{name}: ran: {at.ran[:200]}"] if at.ran else [])
        errors = self.server.errors.read_text()
        yield from ([errors[:3000]] if "Traceback" in errors or "error: " in errors else [])
        process = psutil.Process(self.server.process.pid)
        status = Path(f"/proc/{process.pid}/status").read_text()
        peak = next((int(line.split()[1]) << 10 for line in status.splitlines() if "VmHWM" in line), 0)
        yield from ([f"memory: {peak >> 20} MB"] if peak > MEMORY else [])


def wrong_texts(data: Any, at: str = "") -> Iterator[str]:
    """Yield where JSON data has a character that controls a terminal or hides text."""
    match data:
        case str():
            if found := FORBIDDEN & set(data):
                yield f"{at}: {sorted(map(ascii, found))}"
        case dict():
            for key, value in cast("dict[str, Any]", data).items():
                yield from wrong_texts(key, f"{at}.key")
                yield from wrong_texts(value, f"{at}.{key[:30]}")
        case list():
            for number, value in enumerate(cast("Sequence[Any]", data)):
                yield from wrong_texts(value, f"{at}[{number}]")
        case _:
            pass


def add_session(root: Path) -> str:
    """Add a session of the project at *root* that ended, with what a hostile agent printed."""
    session = ended_session(root, f"\x1b[31m{EVIL}\x1b[0m\r\n".encode() + b"\xff\xfe\x9b2J")
    with Registry() as registry:
        registry.update(session, checkpoint=f"q-1{ESCAPES}", reason=f"because {EVIL}")
    return session


PANEL = """
import subprocess
from gsd_core import Panel, implements
from gsd_core.hookspecs import gsd_panels

@implements(gsd_panels)
def names(project):
    log = ["git", "-C", str(project), "log", "--format=%s by %an"]
    said = subprocess.run(log, capture_output=True, text=True, errors="replace").stdout
    files = sorted(path.name for path in project.iterdir() if path.is_file())
    rows = tuple((name, said[:1000]) for name in files)
    yield Panel(name="names", title=said, text=said, figures={said: said}, columns=("file", said), rows=rows)
"""
"""A plugin of the user that repeats what others wrote."""


@pytest.fixture
def world(owner: Owner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[World]:
    monkeypatch.setenv("GSD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("GSD_CONFIG", str(tmp_path / "no-config.toml"))
    at = make(tmp_path / owner.__name__, tmp_path / "outside")
    owner(at)
    (at.outside / "ran").unlink(missing_ok=True)  # planting some tricks runs them
    own = make(tmp_path / "own", tmp_path / "own-outside").root
    forge(own, *opened(), ("question.asked", "", question("q-own", "Which one?")))
    sessions = {owner.__name__: add_session(at.root)}
    session = add_session(own)
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "names.py").write_text(PANEL)
    with serve(tmp_path, "--port", "0", "--plugins-dir", str(plugins)) as server:
        yield World(server=server, projects={owner.__name__: at}, sessions=sessions, own=session)


def requests_of(route: Route, session: str, at: Hostile) -> Iterator[tuple[str, str, object]]:
    """Yield method, path and body of each request to a route, about one project."""
    # What depends on the request is tried on two of them; the others are about what is read.
    most = None if at.root.name in ("texts", "links") else 1
    filled = [route.path.replace("{session}", session)]
    for name, values in PATHS.items():
        shown = [value.replace("COMMIT", head_of(at)) for value in values[:most]]
        filled = [
            path.replace(f"{{{name}}}", value)
            for path in filled
            for value in (shown if f"{{{name}}}" in path else [""])
        ]
    assert not [path for path in filled if "{" in path], f"no values for the path of {route.name}"
    assert route.body is None or route.name in BODIES, f"no bodies for {route.name}"
    for path in filled:
        for query in QUERIES.get(route.name, ("",))[:most]:
            for body in (BODIES.get(route.name, (None,)) if route.body is not None else (None,))[:most]:
                text = json.loads(json.dumps(body).replace("ROOT", str(at.root)))
                yield route.method, path + query, text


def head_of(at: Hostile) -> str:
    file = at.root / ".git" / "refs" / "heads" / "main"
    return file.read_text().strip() if file.is_file() else "0" * 40


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__name__)
def test_no_route_is_harmed_by_a_hostile_project(world: World) -> None:
    wrong: list[str] = []
    late: list[float] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.3):
            status, body, seconds = world.ask("GET", f"/api/v1/sessions/{world.own}/questions")
            late.append(seconds)
            if status != 200 or b"q-own" not in body:
                wrong.append(f"the user's own project: {status} {body[:300]!r}")

    watching = threading.Thread(target=watch)
    watching.start()
    answered: set[str] = set()
    try:
        for route in routes():
            if route.name in ELSEWHERE:
                continue
            for name, at in world.projects.items():
                for method, path, body in requests_of(route, world.sessions[name], at):
                    status, data, seconds = world.ask(method, path, body)
                    answered.add(route.name)
                    where = f"{name} {seconds:.1f} s: {method} {path[:200]}"
                    if status == 0 or status >= 500:
                        wrong.append(f"{where}: {status} {data[:300]!r}")
                    if any(secret in data for secret in OUTSIDE) or b"Traceback" in data:
                        wrong.append(f"{where}: {data[:300]!r}")
                    if route.name not in ("page", "file"):
                        wrong += [
                            f"{where}: {one}" for one in wrong_texts(json.loads(data) if data else None)
                        ][:1]
    finally:
        done.set()
        watching.join()

    assert answered == {route.name for route in routes()} - ELSEWHERE
    assert wrong == [], "\n".join(wrong)
    assert max(late) < SECONDS
    assert list(world.problems()) == []


@pytest.mark.parametrize("owner", [texts])
def test_panels_file_names_and_commit_messages_have_no_control_characters(world: World) -> None:
    base = f"/api/v1/sessions/{world.sessions['texts']}"
    (world.projects["texts"].root / "gsd.toml").unlink()  # with it, no command gets as far as the panels
    paths = ("/panels", "/commits", f"/commits/{head_of(world.projects['texts'])}")
    panels, commits, patch = (world.server.request("GET", base + path)[1] for path in paths)

    [panel] = panels["panels"]
    assert any("<script>" in name for name, _ in panel["rows"])
    assert "<script>" in panel["title"]
    assert any("<script>" in one["subject"] for one in commits["commits"])
    assert "<script>" in patch["patch"] + patch["subject"]
    assert [*wrong_texts([panels, commits, patch])] == []
    assert list(world.problems()) == []


def arguments(session: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a call of each tool, about a session."""
    about: dict[str, dict[str, Any]] = {
        "gsd_start_session": {"project": "/proc/self/nowhere", "phases": "1"},
        "gsd_wait_for_change": {"session": session, "after": 0, "seconds": 1},
        "gsd_list_sessions": {"ended": True},
        "gsd_respond_checkpoint": {"session": session, "answer": EVIL, "question": f"q-9{EVIL}"},
        "gsd_mark_verified": {"session": session, "passed": True},
        "gsd_send_input": {"session": session, "text": "y"},
    }
    for tool in tools():
        yield tool.name, about.get(tool.name, {"session": session})


def received(socket: Any, last: str, seconds: float = SECONDS) -> Iterator[dict[str, Any]]:
    """Yield the messages up to the first one with the key *last*."""
    latest = time.monotonic() + seconds
    while True:
        message: dict[str, Any] = json.loads(socket.recv(timeout=max(latest - time.monotonic(), 0.01)))
        yield message
        if last in message:
            return


@pytest.mark.parametrize("owner", [texts], ids=lambda owner: owner.__name__)
def test_every_message_of_a_socket_is_answered_without_control_characters(world: World) -> None:
    [session] = world.sessions.values()
    messages: Mapping[str, tuple[object, ...]] = {
        "subscribe": (
            {"session": "*", "after": 0, "output": True},
            {"session": session, "after": 0, "output": True, "cursor": 0},
            {"session": f"../{EVIL}"},
        ),
        "unsubscribe": ({"session": session}, {"session": EVIL}),
        "input": ({"session": session, "data": "eA=="}, {"session": session, "data": EVIL}),
        "resize": ({"session": session, "columns": 80, "rows": 24}, {"session": session, "columns": EVIL}),
        # Last: only this one sends bytes as they are.
        "terminal": ({"session": session, "cursor": 0}, {"session": EVIL}),
        "ping": (1,),
    }
    known = document(routes(), "1")["components"]["schemas"]["ClientMessage"]["properties"]
    assert set(messages) == set(known)
    found: list[dict[str, Any]] = []
    with world.server.stream() as socket:
        for name, bodies in messages.items():
            for body in bodies:
                socket.send(json.dumps({name: body, "ping": name}))
                found += received(socket, "pong")
            # What is subscribed to comes by itself, perhaps after the answer.
            if name == "subscribe" and not any("output" in one for one in found):
                found += received(socket, "output")
        found += received(socket, "terminal") if not any("terminal" in one for one in found) else ()

    replayed = b"".join(base64.b64decode(one["terminal"]["data"]) for one in found if "terminal" in one)
    texts_sent = [one for one in found if "terminal" not in one]
    assert [*wrong_texts(texts_sent)] == []
    # The bytes of the agent, as a terminal needs them, and nothing of the project besides.
    assert replayed == host.output_of(session).data
    assert {"question.asked", "agent.activity"} <= {
        change["event"]["name"] for one in found for change in one.get("frame", ()) if "event" in change
    }
    assert any("evil" in one["output"]["text"] for one in found if "output" in one)
    assert sum("error" in one for one in found) >= 5
    for secret in OUTSIDE:
        assert secret not in json.dumps(found).encode() + replayed
    assert list(world.problems()) == []


@pytest.mark.parametrize("owner", [texts], ids=lambda owner: owner.__name__)
def test_streamed_events_and_mcp_over_http_have_no_control_characters(world: World) -> None:
    [session] = world.sessions.values()
    _, data, _ = world.ask("GET", "/api/v1/server")
    about = json.loads(data)
    connection = http.client.HTTPConnection("127.0.0.1", world.server.port, timeout=SECONDS)
    headers = {"Authorization": f"Bearer {world.server.token}", "Last-Event-ID": f"{about['epoch']}-0"}
    connection.request("GET", "/api/v1/events", None, headers)
    answer = connection.getresponse()
    lines: list[str] = []
    while not any('"question.asked"' in line for line in lines):
        lines.append(answer.readline().decode())
    connection.close()
    changes = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert [*wrong_texts(changes)] == []
    assert FORBIDDEN.isdisjoint("".join(lines))

    accepted = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    for number, (name, given) in enumerate(arguments(session)):
        call = {"name": name, "arguments": given}
        body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
        status, text = world.post("/mcp", body, accepted)
        assert status == 200, (name, text)
        lines = [line.removeprefix("data: ") for line in text.splitlines()]
        [answered] = [json.loads(line) for line in lines if line.startswith("{") and '"result"' in line]
        assert [*wrong_texts(answered["result"])] == [], name
        assert not any(secret.decode() in text for secret in OUTSIDE)
    assert list(world.problems()) == []


@pytest.mark.parametrize("owner", [texts], ids=lambda owner: owner.__name__)
def test_a_session_of_a_hostile_project_is_removed_and_its_project_is_left_alone(world: World) -> None:
    [(name, session)] = world.sessions.items()
    before = sorted(str(path) for path in world.projects[name].root.rglob("*"))

    for wrong in ("..", "%2e%2e%2fx", "-x", "s1/../s2", quote(EVIL, safe="")):
        assert world.ask("DELETE", f"/api/v1/sessions/{wrong}")[0] in (400, 404, 405)
    assert world.ask("DELETE", f"/api/v1/sessions/{session}")[0] == 204

    _, data, _ = world.ask("GET", "/api/v1/sessions")
    assert [one["id"] for one in json.loads(data)["sessions"]] == [world.own]
    assert sorted(str(path) for path in world.projects[name].root.rglob("*")) == before
    assert list(world.problems()) == []
