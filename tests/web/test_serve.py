"""``gsd serve`` as a real process: its tokens, its port, its streams, its end."""

from __future__ import annotations

import base64
import getpass
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from gsd_core import SessionRequest
from gsd_plugins.sessions import SessionsSettings, host
from tests.e2e.project import EXAMPLE, FAKE, no_problems
from tests.web.contract import answer_schema, mistakes

pytestmark = pytest.mark.slow

PLUGIN = """
from gsd_core import Panel, implements
from gsd_core.hookspecs import gsd_panels

@implements(gsd_panels)
def panels(project):
    yield Panel(name="mine", title="Mine", text="of " + project.name)
"""
URL = re.compile(r"http://127\.0\.0\.1:(\d+)/#token=([\w-]{43})")
WAIT = 60.0


@attrs.define(kw_only=True)
class Server:
    """A server that runs; *errors* is the file with its standard error."""

    process: subprocess.Popen[str]
    port: int
    token: str
    errors: Path

    def request(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Send a request and return the status and the JSON data of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        sent = {"Authorization": f"Bearer {self.token}", **(headers or {})}
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, json.loads(data) if data else None

    def stream(self, **more: Any) -> ClientConnection:
        """Open a WebSocket."""
        protocols: Any = ["gsd.v1", f"gsd.token.{self.token}"]
        url = f"ws://127.0.0.1:{self.port}/api/v1/ws"
        # The stubs of the library do not know their own keyword arguments.
        opened: ClientConnection = cast("Any", connect)(url, subprotocols=protocols, compression=None, **more)
        return opened


@contextmanager
def serve(folder: Path, *arguments: str, **environment: str) -> Generator[Server]:
    """Start ``gsd serve`` and wait until it listens; end it afterwards."""
    errors = folder / f"serve-{time.monotonic_ns()}.err"
    command = [sys.executable, "-m", "gsd_core", "serve", *(arguments or ("--port", "0"))]
    with errors.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=file, text=True, env={**os.environ, **environment}
        )
    try:
        assert process.stdout
        line = process.stdout.readline()
        found = URL.fullmatch(line.strip())
        assert found, (line, errors.read_text())
        yield Server(process=process, port=int(found[1]), token=found[2], errors=errors)
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def until(socket_: ClientConnection, wanted: str) -> Any:
    """Return the content of the next message with the key *wanted*."""
    latest = time.monotonic() + WAIT
    while time.monotonic() < latest:
        message = json.loads(socket_.recv(timeout=WAIT))
        if wanted in message:
            assert mistakes("ServerMessage", message) == []
            return message[wanted]
    raise AssertionError(f"no message {wanted!r}")


def test_the_token_is_private_and_in_no_log_and_dies_with_the_server(tmp_path: Path, state: Path) -> None:
    with serve(tmp_path) as server:
        file = state / "serve" / f"{server.port}.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        kept = json.loads(file.read_text())
        assert kept["control"] == server.token
        assert server.request("GET", "/api/v1/server")[1]["scope"] == "control"
        watching = {"Authorization": f"Bearer {kept['read']}"}
        assert server.request("GET", "/api/v1/server", headers=watching)[1]["scope"] == "read"
        # Others on this machine see the arguments and the log, and pages on other ports send their cookies.
        command = Path(f"/proc/{server.process.pid}/cmdline")
        if command.exists():
            assert server.token.encode() not in command.read_bytes()
        assert server.request("GET", f"/api/v1/server?token={server.token}")[0] == 400
        cookie = {"Authorization": "", "Cookie": f"token={server.token}"}
        assert server.request("GET", "/api/v1/server", headers=cookie)[0] == 401
        assert server.request("GET", "/api/v1/server", headers={"Host": f"evil.test:{server.port}"})[0] == 421
        plain = {"Content-Type": "text/plain"}
        assert server.request("POST", "/api/v1/sessions", {"project": "/"}, plain)[0] == 415
        for origin in ("https://evil.test", f"http://127.0.0.1:{server.port + 1}"):
            with pytest.raises(InvalidStatus) as refused:
                server.stream(origin=origin)
            assert refused.value.response.status_code == 403
        second = ["--port", str(server.port)]
        with serve(tmp_path, *second) as other:
            # The next one that is free: other tests have servers too.
            assert server.port < other.port <= server.port + 10
            assert f"port {server.port} is taken" in other.errors.read_text()
            assert (
                other.request("GET", "/api/v1/server", headers={"Authorization": f"Bearer {server.token}"})[0]
                == 401
            )
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(10) == 0
        said = server.errors.read_text()
        assert server.token not in said
        assert "Traceback" not in said
        assert not file.exists()


def test_open_starts_the_browser_and_does_not_wait_for_it(tmp_path: Path) -> None:
    tools, opened = tmp_path / "tools", tmp_path / "opened"
    tools.mkdir()
    sailor = tools / "sailor"
    # It stays as long as the server, like a browser in the terminal.
    sailor.write_text(
        f"#!/bin/sh\necho \"$1\" > '{opened}.new'; mv '{opened}.new' '{opened}'\nexec sleep 20\n"
    )
    sailor.chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"

    with serve(tmp_path, "--port", "0", "--open", BROWSER="sailor", PATH=path) as server:
        end = time.monotonic() + 20
        while not opened.exists():
            assert time.monotonic() < end, server.errors.read_text()
            time.sleep(0.05)
        assert opened.read_text().strip() == f"http://127.0.0.1:{server.port}/#token={server.token}"
        assert server.request("GET", "/api/v1/server")[0] == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(10) == 0


def test_it_listens_on_this_machine_only(tmp_path: Path) -> None:
    with serve(tmp_path) as server, socket.socket() as other:
        other.settimeout(5)
        with pytest.raises(ConnectionRefusedError):
            # Another address of the same machine, which a server on all addresses would answer.
            other.connect(("127.0.0.2", server.port))
    command = [sys.executable, "-m", "gsd_core", "serve", "--host", "0.0.0.0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--public-url" in done.stderr


def seconds_to_stop(folder: Path) -> float:
    """Start a server, open 55 streams, and return how long it takes to end after SIGTERM."""
    with serve(folder) as server, ExitStack() as stack:
        streams = [stack.enter_context(server.stream()) for _ in range(40)]
        for stream in streams:
            assert "hello" in json.loads(stream.recv(timeout=WAIT))
            stream.send('{"subscribe": {"session": "*", "after": 0}}')
        token = {"Authorization": f"Bearer {server.token}"}
        wait = {"name": "gsd_wait_for_change", "arguments": {"seconds": 300}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": wait})
        accepted = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        for number in range(15):
            events = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT)
            stack.callback(events.close)
            if number < 10:
                events.request("GET", "/api/v1/events", headers=token)
            else:
                events.request("POST", "/mcp", body, {**token, **accepted})
            assert events.getresponse().status == 200
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
        took = time.monotonic() - began
        with pytest.raises(ConnectionClosed):
            until(streams[0], "nothing")
        # Nothing but what it says at its start.
        assert len(server.errors.read_text().splitlines()) == 1, server.errors.read_text()
        return took


def test_it_stops_within_three_seconds_with_streams_of_every_kind(tmp_path: Path) -> None:
    assert seconds_to_stop(tmp_path) < 3


def test_a_session_is_started_watched_answered_and_forgotten_from_the_page(tmp_path: Path) -> None:
    project = tmp_path / "demo"
    project.mkdir()
    more = {**no_problems(QUESTION="1"), "PYTHONDONTWRITEBYTECODE": "1"}
    with serve(tmp_path, **more) as server, server.stream() as stream:
        epoch = until(stream, "hello")["epoch"]
        stream.send(json.dumps({"subscribe": {"session": "*", "after": 0, "epoch": epoch}}))
        body = {
            "project": str(project),
            "idea": EXAMPLE.read_text(),
            "agent": "rehearsal",
            "phases": "1",
            "turns": "500",
        }
        status, started = server.request("POST", "/api/v1/sessions", body)
        assert (status, started["session"]["command"][0]) == (201, "run")
        assert mistakes(answer_schema("/api/v1/sessions", "post", 201), started) == []
        session = started["session"]["id"]
        stream.send(json.dumps({"terminal": {"session": session, "cursor": 0}}))
        stream.send(json.dumps({"resize": {"session": session, "columns": 91, "rows": 30}}))

        numbers: list[int] = []
        printed = b""
        asked: dict[str, Any] = {}
        names: list[str] = []
        ended: dict[str, Any] = {}
        latest = time.monotonic() + 240
        while not ended and time.monotonic() < latest:
            message = json.loads(stream.recv(timeout=120))
            assert mistakes("ServerMessage", message) == []
            if "terminal" in message:
                assert message["terminal"]["start"] == len(printed)
                printed += base64.b64decode(message["terminal"]["data"])
            for change in message.get("frame", ()):
                numbers.append(change["number"])
                names += [change["event"]["name"]] if "event" in change else []
                state: dict[str, Any] = change.get("state") or {}
                if state.get("checkpoint") and not asked:
                    path = f"/api/v1/sessions/{session}/questions"
                    asked = server.request("GET", path)[1]["questions"][0]
                    assert server.request("GET", "/api/v1/questions")[1]["questions"][0]["session"] == session
                    answer = f"{path}/{asked['id']}/answer"
                    assert server.request("PUT", answer, {"words": "99"})[0] in (200, 400)
                    status, given = server.request("PUT", answer, {"words": "1"})
                    assert (status, given["answer"]["question"]) == (200, asked["id"]), given
                    assert given["answer"]["by"] == f"{getpass.getuser()} through the dashboard"
                    assert mistakes("AnswerGiven", given) == []
                if state.get("state") in ("completed", "failed", "stopped"):
                    ended = state
        assert ended.get("state") == "completed", (ended, printed[-3000:].decode("utf-8", "replace"))
        assert numbers == list(range(1, len(numbers) + 1))
        assert {"question.asked", "question.answered", "task.committed", "phase.completed"} <= set(names)
        assert printed == host.output_of(session).data[: len(printed)]
        assert (
            server.request(
                "PUT", f"/api/v1/sessions/{session}/questions/{asked['id']}/answer", {"words": "2"}
            )[0]
            == 409
        )

        check_details(server, session, project)

        text = server.request("GET", f"/api/v1/sessions/{session}/output?cursor=0")[1]
        assert "\x1b" not in text["text"]
        assert text["ended"] is True
        assert server.request("DELETE", f"/api/v1/sessions/{session}")[0] == 204
        assert until(stream, "removed") == {"sessions": [session]}
        assert server.request("GET", f"/api/v1/sessions/{session}")[0] == 404


def check_details(server: Server, session: str, project: Path) -> None:
    """Check that every answer about the project is as the OpenAPI document says, and what it contains."""
    document = server.request("GET", "/api/v1/openapi.json")[1]
    commits = server.request("GET", f"/api/v1/sessions/{session}/commits")[1]["commits"]
    values = {"session": session, "phase": "1", "sha": commits[-1]["sha"], "question": "none"}
    queries = {"lines": "?path=README.md&first=1&last=3", "search": "?text=run"}
    seen: dict[str, Any] = {}
    for path, methods in document["paths"].items():
        operation = methods.get("get")
        if operation is None or operation["operationId"] in ("events-stream", "openapi"):
            continue
        name = operation["operationId"]
        status, data = server.request("GET", path.format(**values) + queries.get(name, ""))
        assert status == 200, (path, data)
        assert mistakes(answer_schema(path, "get"), data) == [], path
        seen[name] = data
    phase = seen["phase"]
    assert phase["status"] == "completed"
    assert phase["verification"]["status"] == "passed"
    assert phase["plans"][0]["tasks"][0]["commit"] in {commit["sha"] for commit in phase["commits"]}
    assert all(row["evidence"] for row in phase["requirements_traced"])
    assert seen["requirements"]["statements"]
    assert (
        "diff --git"
        in server.request("GET", f"/api/v1/sessions/{session}/commits/{commits[0]['sha']}")[1]["patch"]
    )
    assert seen["session-questions"]["answered"][0]["words"]
    assert seen["lines"]["lines"][0] == (project / "README.md").read_text().splitlines()[0]
    everything = seen["events"]["events"]
    first = server.request("GET", f"/api/v1/sessions/{session}/events?limit=7")[1]
    rest = server.request("GET", f"/api/v1/sessions/{session}/events?limit=5000&after={first['next']}")[1]
    assert first["events"] + rest["events"] == everything
    last = server.request("GET", f"/api/v1/sessions/{session}/events?last=3&name=task.committed")[1]["events"]
    assert [event["name"] for event in last] == ["task.committed"] * len(last) != []
    for path in ("../secret", "/etc/passwd", ".git/config", ".env", "none.txt"):
        status, data = server.request("GET", f"/api/v1/sessions/{session}/files?path={path}")
        assert status in (400, 404), data


def test_a_run_in_the_foreground_has_a_page_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gsd_core", "run", str(EXAMPLE), *FAKE, "-C", str(tmp_path / "demo")]
    environment = {**os.environ, **no_problems(QUESTION="1"), "GSD_WAIT_FOR_ANSWERS": "5m"}
    process = subprocess.Popen(
        [*command, "--web", "--web-port", "0", "--no-input"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stderr
        found = None
        while found is None:
            line = process.stderr.readline()
            assert line, "it ended without a page"
            found = URL.search(line)
        server = Server(process=process, port=int(found[1]), token=found[2], errors=tmp_path)
        with server.stream() as stream:
            stream.send('{"subscribe": {"session": "*", "after": 0}}')
            while not (asked := server.request("GET", "/api/v1/questions")[1]["questions"]):
                until(stream, "frame")
            path = f"/api/v1/sessions/run/questions/{asked[0]['id']}/answer"
            assert server.request("PUT", path, {"words": "1"})[0] == 200
            assert server.request("POST", "/api/v1/sessions", {"project": "/tmp", "resume": True})[0] == 400
            assert server.request("DELETE", "/api/v1/sessions/run")[0] == 409
        assert process.wait(120) == 0
    finally:
        process.kill()
        process.wait()
        if process.stderr:
            process.stderr.close()


def test_sessions_get_the_plugins_that_the_server_was_started_with(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "mine.py").write_text(PLUGIN)
    project = tmp_path / "demo"
    with (
        chdir(tmp_path),
        serve(tmp_path, "--port", "0", *FAKE[:2], "--plugins-dir", "plugins") as server,
    ):
        began = time.monotonic()
        assert "mine" in {one["name"] for one in server.request("GET", "/api/v1/plugins")[1]["plugins"]}
        first = time.monotonic() - began
        server.request("GET", "/api/v1/plugins")
        assert time.monotonic() - began - first < first
        body = {"project": str(project), "idea": EXAMPLE.read_text(), "agent": "fake", "phases": "1"}
        status, started = server.request("POST", "/api/v1/sessions", body)
        assert status == 201, started
        path = f"/api/v1/sessions/{started['session']['id']}/panels"
        status, panels = server.request("GET", path)
        assert status == 200, panels
        assert mistakes("PanelList", panels) == []
        assert [(one["plugin"], one["title"]) for one in panels["panels"]] == [("mine", "Mine")]
        command = started["session"]["command"]
        folder = str(tmp_path / "plugins")
        assert command[:4] == ["-p", "gsd_plugins.rehearsal.fake", "--plugins-dir", folder]
        assert command[-1].endswith("/greeter.md")
        # The same idea, and another run of it: the page gets what the command says.
        server.request("POST", f"/api/v1/sessions/{started['session']['id']}/stop", {})
        status, refused = server.request("POST", "/api/v1/sessions", {**body, "agent": "none"})
        assert (status, refused["error"]["code"]) == (400, "invalid")
        assert "unknown agent 'none'" in refused["error"]["message"]


def test_a_broken_sdk_is_named_and_a_missing_one_is_not_needed(tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "mcp"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("import a_library_that_is_not_there\n")
    with serve(tmp_path, PYTHONPATH=str(broken.parent)) as server:
        status, said = server.request("POST", "/mcp", {})
        assert status == 500
        assert "a_library_that_is_not_there" in said["error"]["message"]
        assert "pip install" in said["error"]["hint"]
        assert server.request("GET", "/api/v1/server")[0] == 200


def wait_for_terminal(session: str) -> None:
    """Wait until the session has a process, and so a terminal."""
    latest = time.monotonic() + WAIT
    while not host.find_session(session).pid:
        assert time.monotonic() < latest, host.find_session(session)


def test_a_session_that_runs_is_stopped_and_typed_to(tmp_path: Path) -> None:
    project = tmp_path / "p"
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    with serve(tmp_path) as server, server.stream() as stream:
        request = SessionRequest(arguments=("log", "--follow"), folder=project, project=project)
        session = host.start_session(request, SessionsSettings(slots=3)).id
        while server.request("GET", f"/api/v1/sessions/{session}")[0] == 404:
            pass
        wait_for_terminal(session)
        assert server.request("DELETE", f"/api/v1/sessions/{session}")[0] == 409
        typed = base64.b64encode("héllo".encode()).decode()
        stream.send(json.dumps({"subscribe": {"session": session, "after": 0, "output": True}}))
        stream.send(json.dumps({"input": {"session": session, "data": typed}}))
        printed, state, is_asked = "", "", False
        while state != "stopped":
            message = json.loads(stream.recv(timeout=WAIT))
            assert mistakes("ServerMessage", message) == []
            assert "error" not in message, message
            printed += message.get("output", {}).get("text", "")
            for change in message.get("frame", ()):
                state = change.get("state", {}).get("state", state)
            if "héllo" in printed and state == "running" and not is_asked:
                is_asked = True
                status, data = server.request("POST", f"/api/v1/sessions/{session}/stop", {})
                assert status == 200, data
        assert server.request("POST", f"/api/v1/sessions/{session}/stop", {})[0] == 409


def test_a_server_that_is_killed_and_started_again_knows_the_same(tmp_path: Path) -> None:
    project = tmp_path / "p"
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    with serve(tmp_path) as server:
        request = SessionRequest(arguments=("log", "--follow"), folder=project, project=project)
        session = host.start_session(request, SessionsSettings(slots=3)).id
        with server.stream() as stream:
            epoch = until(stream, "hello")["epoch"]
        server.process.kill()
        server.process.wait()
    with serve(tmp_path) as server, server.stream() as stream:
        assert until(stream, "hello")["epoch"] != epoch
        stream.send(json.dumps({"subscribe": {"session": "*", "after": 7, "epoch": epoch}}))
        assert until(stream, "resync") is True
        listed = server.request("GET", "/api/v1/sessions")[1]["sessions"]
        assert [(one["id"], one["state"]) for one in listed] == [(session, "running")]
        assert server.request("POST", f"/api/v1/sessions/{session}/stop", {})[0] == 200
        state: dict[str, Any] = {}
        while state.get("state") != "stopped":
            state = until(stream, "frame")[-1].get("state", {})
