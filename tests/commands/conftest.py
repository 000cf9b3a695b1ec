"""A user's home with the real GSD commands, and Claude Code with a scripted model."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gsd_plugins.rehearsal.api import MessagesApi
from tests.commands import model as m
from tests.commands.model import Model
from tests.e2e.project import Project
from tests.peer.reader import DIRECTORY
from tests.run import harness as h

HOME = Path(DIRECTORY) / "home"
PHASE_COMMANDS = ("new-project", "discuss-phase", "plan-phase", "execute-phase", "verify-work")


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


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with a roadmap, and a home with commands."""
    home, found = tmp_path / "home" / ".claude", h.repository(tmp_path / "project")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    for name in (*PHASE_COMMANDS, "audit-milestone", "complete-milestone", "new-milestone"):
        file = home / "commands" / "gsd" / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("Do it.")
    texts = {"PROJECT.md": m.PROJECT, "REQUIREMENTS.md": m.REQUIREMENTS, "ROADMAP.md": m.ROADMAP}
    texts |= {"STATE.md": m.STATE, "config.json": json.dumps(m.CONFIG)}
    (found / ".planning").mkdir()
    for name, text in texts.items():
        (found / ".planning" / name).write_text(text)
    h.git(found, "add", "-A")
    h.git(found, "commit", "-qm", "docs: plan")
    return found
