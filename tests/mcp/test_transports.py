"""The same server as a process on standard streams, and over HTTP on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal

import pytest
import uvicorn
from click.testing import CliRunner
from mcp import Client, StdioServerParameters, stdio_client
from starlette.applications import Starlette
from starlette.routing import Mount

from gsd_core import CommandOptions, UserError, bind_settings
from gsd_plugins.mcp import http_app, tools
from gsd_plugins.mcp.cli import mcp as command
from gsd_plugins.mcp.cli import server_command
from gsd_plugins.sessions.following import Harness
from gsd_plugins.sessions.registry import Registry
from tests.mcp.clients import SECONDS, data, error

NOISY = """
import os, warnings
print("printed at import")
warnings.warn("careful")
from gsd_core import implements
from gsd_core.hookspecs import gsd_settings, gsd_cli_commands

@implements(gsd_settings)
def settings():
    print("printed by settings")
    return ()

@implements(gsd_cli_commands)
def commands():
    print("printed by commands")
    return ()
"""
GARBAGE = (
    b"\n",
    b"hello\n",
    b"{}\n",
    b"[1]\n",
    b'{"jsonrpc": "2.0", "id": 1}\n',
    b"\xff\xfe\x00\n",
    b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": 5}}\n',
    b'{"jsonrpc": "2.0", "method": "notifications/none"}\n',
)


def request(number: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


HELLO = request(
    1,
    "initialize",
    protocolVersion="2025-06-18",
    capabilities={},
    clientInfo={"name": "tester", "version": "1"},
)
READY = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'


@pytest.mark.slow
def test_nothing_but_json_rpc_is_on_standard_output(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "noisy.py").write_text(NOISY)
    hostile = tmp_path / "project"
    hostile.mkdir()
    # A client starts the server in the folder of a project, whose modules must not be imported.
    for name in ("gsd_core", "click", "mcp", "sitecustomize"):
        (hostile / f"{name}.py").write_text("print('imported from the project'); raise SystemExit(9)")

    served = subprocess.Popen(
        [*server_command()[:-1], "--plugins-dir", str(tmp_path / "plugins"), "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=hostile,
    )
    assert served.stdin
    assert served.stdout
    given = {"project": str(hostile), "command": "x"}
    served.stdin.write(HELLO + READY + b"".join(GARBAGE))
    served.stdin.write(request(9, "tools/call", name="gsd_start_session", arguments=given))
    served.stdin.flush()
    answers: dict[Any, Any] = {}
    while 9 not in answers:
        line = json.loads(served.stdout.readline())
        assert line["jsonrpc"] == "2.0"
        answers[line.get("id")] = line

    out, err = served.communicate(timeout=SECONDS)
    assert out == b""
    assert answers[1]["result"]["serverInfo"]["name"] == "gsd"
    assert "error" in answers[7]
    assert "is not in a git repository" in str(answers[9]["result"])
    assert b"printed at import" in err
    assert b"printed by settings" in err
    assert served.returncode == 0


@pytest.mark.slow
def test_a_client_on_standard_streams_gets_tools_results_and_errors(tmp_path: Path) -> None:
    untrusted = tmp_path / "untrusted"
    (untrusted / ".gsd" / "plugins").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(untrusted)], check=True)
    planted = f"open({str(tmp_path / 'imported')!r}, 'w')"
    (untrusted / ".gsd" / "plugins" / "theirs.py").write_text(planted)

    async def used() -> None:
        first, *rest = server_command()
        # The client of the SDK passes few variables on, and so does Claude Code for none that are named.
        server = StdioServerParameters(command=first, args=rest, env=dict(os.environ), cwd=str(tmp_path))
        async with asyncio.timeout(SECONDS), Client(stdio_client(server)) as client:
            assert len((await client.list_tools()).tools) == len(tools())
            assert data(await client.call_tool("gsd_list_sessions", {"ended": True}))["sessions"] == []
            # The real command refuses: nothing was asked, nothing is left behind.
            new = {"project": str(tmp_path / "new"), "idea": "\0"}
            assert "binary" in error(await client.call_tool("gsd_start_session", new))
            here = {"project": str(tmp_path), "step": "plan", "phase": "2"}
            assert "no .planning folder" in error(await client.call_tool("gsd_start_session", here))
            assert not (tmp_path / "new").exists()
            # Only a person may trust a project, so no session is started that would ask for it.
            given = {"project": str(untrusted), "idea": "# Greeter\n\nIt greets.", "agent": "rehearsal"}
            said = error(await client.call_tool("gsd_start_session", given))
            assert "not trusted" in said
            assert "hint: for your user, in a terminal: " in said
            assert data(await client.call_tool("gsd_list_sessions", {"ended": True}))["sessions"] == []
        assert not (tmp_path / "imported").exists()
        [idea] = (Path(os.environ["GSD_STATE_DIR"]) / "ideas").glob("*/greeter.md")
        assert idea.stat().st_mode & 0o777 == 0o600

    asyncio.run(used())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_at_once(number: signal.Signals, tmp_path: Path) -> None:
    served = subprocess.Popen(
        server_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    assert served.stdin
    assert served.stdout
    served.stdin.write(HELLO)
    served.stdin.flush()
    assert b"serverInfo" in served.stdout.readline()

    served.send_signal(number)

    _, err = served.communicate(timeout=SECONDS)
    assert served.returncode == -number
    assert err == b""


@pytest.mark.parametrize("mounted", [False, True])
def test_several_clients_are_served_over_http(mounted: bool, tmp_path: Path) -> None:
    with Registry() as registry:
        session = registry.add(project=tmp_path, folder=tmp_path, command=("run", "a\x1b[31mb")).id

    async def used() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp/"
        async with asyncio.timeout(SECONDS), Harness() as harness:
            app = http_app(harness)
            # A mounted application gets no lifespan.
            served = Starlette(routes=[Mount("/mcp", app)]) if mounted else app
            config = uvicorn.Config(served, log_level="error", lifespan="on", timeout_graceful_shutdown=1)
            server = uvicorn.Server(config)
            task = asyncio.create_task(server.serve([listener]))
            async with Client(url) as first, Client(url, mode="legacy") as second:
                for client in (first, second):
                    assert len((await client.list_tools()).tools) == len(tools())
                    assert "no session" in error(await client.call_tool("gsd_get_state", {"session": "s99"}))
                told = asyncio.Event()

                async def report(progress: float, total: float | None, message: str | None) -> None:
                    told.set()

                after = data(await first.call_tool("gsd_list_sessions", {}))["change"]
                waiting = {"session": session, "after": after, "seconds": 100}
                wait = asyncio.create_task(
                    first.call_tool("gsd_wait_for_change", waiting, progress_callback=report)
                )
                await told.wait()
                # What happens while one client waits is seen by it, and by the other one.
                with Registry() as registry:
                    registry.end(session, "failed", exit_code=2, reason="bad \x1b[2Jnews")
                [change] = data(await wait)["changes"]
                assert (change["state"], change["about"]) == ("failed", "bad news")
                [listed] = data(await second.call_tool("gsd_list_sessions", {"ended": True}))["sessions"]
                assert listed["command"] == ["run", "ab"]
            server.should_exit = True
            await task
            await app.aclose()

    asyncio.run(used())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_call_that_waits_ends_with_an_error_when_the_server_ends(
    mode: Literal["auto", "legacy"], caplog: pytest.LogCaptureFixture
) -> None:
    async def used() -> float:
        listener = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp/"
        async with asyncio.timeout(SECONDS), Harness() as harness:
            app = http_app(harness)
            server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
            task = asyncio.create_task(server.serve([listener]))
            async with Client(url, mode=mode) as client:
                told = asyncio.Event()

                async def report(progress: float, total: float | None, message: str | None) -> None:
                    told.set()

                wait = client.call_tool("gsd_wait_for_change", {"seconds": 100}, progress_callback=report)
                waiting = asyncio.create_task(wait)
                await told.wait()
                began = time.monotonic()
                await app.aclose()
                took = time.monotonic() - began
                assert "the server was stopped" in error(await waiting)
            server.should_exit = True
            await task
            return took

    # The SDK waits a second for a request that it has to cancel itself.
    assert asyncio.run(used()) < 0.9
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.slow
def test_sessions_get_the_plugins_that_the_server_was_started_with(tmp_path: Path) -> None:
    async def used() -> None:
        first, *rest = server_command()
        plugins = ["--plugins-dir", "plugins", "-p", "gsd_plugins.rehearsal.fake"]
        (tmp_path / "plugins").mkdir()
        server = StdioServerParameters(
            command=first, args=[*rest, *plugins], env=dict(os.environ), cwd=str(tmp_path)
        )
        async with asyncio.timeout(SECONDS), Client(stdio_client(server)) as client:
            given = {"project": str(tmp_path / "new"), "idea": "# Greeter\n\nIt greets.", "agent": "fake"}
            started = data(await client.call_tool("gsd_start_session", given))["session"]
            folder = str(tmp_path / "plugins")
            assert started["command"][:4] == ["-p", plugins[-1], "--plugins-dir", folder]
            await client.call_tool("gsd_end_session", {"session": started["id"]})

    asyncio.run(used())


def test_the_command_for_claude_code_is_printed_or_needs_its_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    printed = CliRunner().invoke(command, ["install", "--print"])

    words = printed.stdout.split()
    assert words[:7] == ["claude", "mcp", "add", "--scope", "user", "gsd", "--"]
    assert Path(words[7]).is_absolute()
    assert words[-1] == "mcp"
    with bind_settings({CommandOptions: CommandOptions(plugin_options=("-p", "x"))}):
        assert CliRunner().invoke(command, ["install", "--print"]).stdout.endswith(" mcp -p x\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    refused = CliRunner().invoke(command, ["install"])
    assert isinstance(refused.exception, UserError)
    assert "claude mcp add" in refused.exception.hint
    (tmp_path / "claude").write_text(f'#!{sys.executable}\nimport sys; print(sys.argv[1:]); sys.exit("no")')
    (tmp_path / "claude").chmod(0o755)
    failed = subprocess.run(
        [sys.executable, "-P", "-m", "gsd_core", "mcp", "install", "--scope", "local"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "'--scope', 'local', 'gsd', '--'" in failed.stdout
    assert failed.returncode == 2
    assert "exit code 1" in failed.stderr
