"""The official client on three transports, and sessions to use it on."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.types import CallToolResult, TextContent

from gsd_core import Session, SessionRequest
from gsd_plugins.mcp.server import make_server
from gsd_plugins.sessions import SessionsSettings, host
from gsd_plugins.sessions.following import Harness

FAKE = ("-p", "gsd_plugins.rehearsal.fake", "--agent", "fake")
EXAMPLE = Path(__file__).parents[2] / "examples" / "greeter.md"
SECONDS = 120.0


@asynccontextmanager
async def in_memory() -> AsyncGenerator[tuple[Client, Harness]]:
    """Provide a client of a server in this process, and the harness of the server."""
    async with asyncio.timeout(SECONDS), Harness() as harness, Client(make_server(harness)) as client:
        yield client, harness


def begin(folder: Path, *arguments: str) -> Session:
    folder.mkdir(exist_ok=True)
    request = SessionRequest(arguments=arguments, folder=folder, project=folder)
    return host.start_session(request, SessionsSettings(slots=3))


def begin_following(folder: Path) -> Session:
    """Start a session that runs until it is stopped."""
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return until(begin(folder, "log", "--follow").id, lambda one: one.pid)


def until(session: str, condition: Callable[[Session], object]) -> Session:
    latest = time.monotonic() + SECONDS
    while not condition(found := host.find_session(session)):
        assert time.monotonic() < latest, f"{found}\n{host.output_of(session).data.decode()}"
        time.sleep(0.02)
    return found


def data(result: CallToolResult) -> dict[str, Any]:
    """Return the structured result of a call that succeeded."""
    assert not result.is_error, result.content
    found: dict[str, Any] = result.structured_content
    return found


def error(result: CallToolResult) -> str:
    """Return the message and the hint of a call that failed."""
    assert result.is_error, result.structured_content
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text
