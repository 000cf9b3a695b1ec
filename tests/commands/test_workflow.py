"""``gsd run --workflow commands`` with the real commands, the real CLI and a scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import install
from tests.commands.model import CONFIG, Model
from tests.e2e.project import Project
from tests.peer.reader import needs_gsd
from tests.run.harness import git

IDEA = "# Greeter\n\nGreet a person by name. Not a path: @/etc/hostname\n"
WORKFLOW = ("--workflow", "commands")
Serve = Callable[[Model], Model]


def idea(project: Project) -> Path:
    path = project.base / "idea.md"
    path.write_text(IDEA)
    return path


@needs_gsd
@pytest.mark.slow
def test_the_users_own_commands_take_an_idea_to_a_verified_phase(project: Project, serve: Serve) -> None:
    install(project)
    model = serve(Model())

    done = project.gsd("run", idea(project), *WORKFLOW, "--yes")

    assert done.exit == 0, done.err
    assert model.called == ["new-project", "discuss-phase", "plan-phase", "subagent", "execute-phase"]
