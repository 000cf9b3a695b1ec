"""Starting sessions from the page: what the command refuses is an answer, and ideas are cleaned up."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from gsd_plugins.sessions import host, store_idea
from gsd_plugins.sessions.registry import Registry
from tests.web.asgi import Response, serving


def refused(body: dict[str, Any]) -> Response:
    """Ask for a session that must not start."""

    async def asked() -> Response:
        async with serving() as client:
            return await client.request("POST", "/api/v1/sessions", body=body)

    found = asyncio.run(asked())
    assert host.list_sessions() == []
    return found


def test_what_the_command_refuses_is_an_error_with_its_hint(tmp_path: Path) -> None:
    untrusted = tmp_path / "untrusted"
    (untrusted / ".gsd" / "plugins").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(untrusted)], check=True)
    (untrusted / ".gsd" / "plugins" / "theirs.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")

    found = refused({"project": str(untrusted), "idea": "# Greeter\n\nIt greets.", "agent": "rehearsal"})

    error = found.data["error"]
    assert (found.status, error["code"]) == (400, "invalid")
    assert "not trusted" in error["message"]
    assert " trust` at a terminal" in error["hint"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"idea": "\0", "agent": "rehearsal"}, "binary"),
        ({"idea_file": "/nowhere/idea.md"}, "/nowhere/idea.md"),
        ({"step": "plan", "phase": "2"}, "no .planning folder"),
        ({"resume": True}, "nothing to resume"),
        ({"resume": True, "tokens": "0"}, "tokens"),
        ({"idea": "\ud800"}, "not valid Unicode"),
    ],
)
def test_nothing_is_started_that_cannot_work(body: dict[str, Any], words: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)

    found = refused({"project": str(project), **body})

    assert found.status == 400
    assert words in found.data["error"]["message"]


@pytest.mark.parametrize("folder", ["/etc/new-project", "/usr/share/new-project", "/"])
def test_no_project_is_made_in_a_folder_of_the_system(folder: str) -> None:
    found = refused({"project": folder, "idea": "# Greeter\n\nIt greets.", "agent": "rehearsal"})

    assert (found.status, not Path("/etc/new-project").exists()) == (400, True)
    assert "belongs to the system" in found.data["error"]["message"]


def test_ideas_are_private_and_kept_only_as_long_as_a_session_needs_them(tmp_path: Path) -> None:
    needed = store_idea("# Needed\n", ())
    old = store_idea("# Old\n", ())
    with Registry() as registry:
        session = registry.add(project=tmp_path, folder=tmp_path, command=["run", "--", str(needed)])
    hours_ago = time.time() - 7200
    for path in (needed, old):
        os.utime(path, (hours_ago, hours_ago))

    new = store_idea("# New: \u202egnp\n", [session])
    same = store_idea("# New: \u202egnp\n", [session])

    assert new == same
    assert (needed.exists(), old.exists(), old.parent.exists(), new.exists()) == (True, False, False, True)
    assert new.name.isascii()
    assert new.stat().st_mode & 0o777 == 0o600
    assert new.parent.stat().st_mode & 0o777 == 0o700
