"""How errors are answered: by their class, and never by their words."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from gsd_core import Conflict, GsdError, NotFound, PlanningError, UserError
from gsd_plugins.sessions import harness
from gsd_plugins.web import server
from gsd_plugins.web.errors import refused_by
from tests.mcp.clients import in_memory
from tests.web.asgi import ended_session, serving


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (
            UserError("no session may already be no longer open"),
            400,
            "invalid",
        ),
        (NotFound("s7: never heard of it"), 404, "not_found"),
        (Conflict("somebody was quicker"), 409, "conflict"),
        (PlanningError("no phase 7", path="ROADMAP.md"), 409, "conflict"),
        (type("FromAPlugin", (NotFound,), {})("gone"), 404, "not_found"),
    ],
)
def test_the_class_of_an_error_is_its_status(error: GsdError, status: int, code: str) -> None:
    refused = refused_by(error)

    assert (refused.status, refused.as_json()["error"]["code"]) == (status, code)


def test_what_does_not_exist_is_404_and_what_is_too_late_is_409(tmp_path: Path) -> None:
    session = ended_session(tmp_path / "project")
    base = f"/api/v1/sessions/{session}"
    cases: tuple[tuple[str, str, Any, int], ...] = (
        ("GET", "/api/v1/sessions/s99", None, 404),
        ("GET", "/api/v1/sessions/nonsense", None, 404),
        ("GET", f"{base}/phases/7", None, 404),
        ("GET", f"{base}/files?path=none.txt", None, 404),
        ("GET", f"{base}/commits/0123456", None, 404),
        ("PUT", f"{base}/questions/q-1/answer", {"words": "1"}, 404),
        ("POST", f"{base}/stop", {}, 409),
        ("GET", f"{base}/cost?by=weather", None, 400),
    )

    async def asked() -> list[tuple[str, int]]:
        async with serving() as client:
            return [
                (path, (await client.request(method, path, body=body)).status)
                for method, path, body, _ in cases
            ]

    assert asyncio.run(asked()) == [(path, status) for _, path, _, status in cases]


def test_a_document_that_does_not_exist_has_another_code_than_one_that_is_refused(tmp_path: Path) -> None:
    project = tmp_path / "project"
    session = ended_session(project)

    async def codes() -> list[int]:
        found: list[int] = []
        async with in_memory() as (client, _):
            for is_hostile in (False, True):
                if is_hostile:
                    (project / ".planning").mkdir()
                    (project / ".planning" / "ROADMAP.md").symlink_to("/etc/passwd")
                with pytest.raises(MCPError) as caught:
                    await client.read_resource(f"gsd://sessions/{session}/roadmap")
                found.append(caught.value.error.code)
        return found

    assert asyncio.run(codes()) == [-32602, -32603]


@pytest.mark.parametrize(
    "page", ["panels", "phases", "phases/1", "requirements", "commits", "events", "cost"]
)
def test_what_is_in_a_project_that_is_gone_is_refused_and_not_empty(page: str, tmp_path: Path) -> None:
    session = ended_session(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    async def asked() -> tuple[int, str]:
        async with serving() as client:
            found = await client.get(f"/api/v1/sessions/{session}/{page}")
            return found.status, found.data["error"]["message"]

    assert asyncio.run(asked()) == (409, f"the folder of the project is gone: {str(tmp_path / 'gone')!r}")


def test_a_server_that_ends_by_itself_says_why(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(counter: int) -> bool:
        raise OSError(f"too many open files at {counter}")

    async def ended() -> None:
        async with (
            harness() as source,
            server.serving(source, host="127.0.0.1", port=0) as running,
        ):
            running.server.on_tick = broken  # type: ignore[method-assign]
            await asyncio.wait({running.task})

    asyncio.run(ended())

    assert "the dashboard has ended: OSError: too many open files at" in caplog.text
