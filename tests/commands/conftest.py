"""A user's home with the real GSD commands, and Claude Code with a scripted model."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gsd_plugins.rehearsal.api import MessagesApi
from tests.commands.model import Model
from tests.e2e.project import Project
from tests.peer.reader import DIRECTORY

HOME = Path(DIRECTORY) / "home"


def install(project: Project, *, hooks: bool = True) -> None:
    """Copy the installed commands into the project's user's home; their *hooks* start several processes."""
    source = HOME / ".claude"
    if not source.is_dir():
        pytest.fail(f"GSD_PEER_DIR is set to {DIRECTORY!r}, but get-shit-done-cc is not installed there")
    target = project.base / "home" / ".claude"
    shutil.copytree(source, target)
    settings = target / "settings.json"
    found = json.loads(settings.read_text().replace(str(source), str(target)))
    # Those around tools are left out: they would start three processes for each use.
    kept = {"hooks": {"SessionStart": found["hooks"]["SessionStart"]}} if hooks else {}
    settings.write_text(json.dumps(kept))
    project.environment["PATH"] = (
        f"{Path(DIRECTORY) / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
    )


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    found = Project(tmp_path)
    found.create()
    yield found
    assert not found.clear()


@pytest.fixture
def serve(project: Project) -> Iterator[Callable[[Model], Model]]:
    """Return a function that starts a scripted model for the project's user."""
    servers: list[MessagesApi] = []

    def start(model: Model) -> Model:
        server = MessagesApi(model).__enter__()
        servers.append(server)
        project.environment |= {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "sk-test",
            "IS_SANDBOX": "1",
            "NO_PROXY": "127.0.0.1",
        }
        return model

    yield start
    for server in servers:
        server.__exit__(None, None, None)
        assert not server.errors
