"""``kill -9`` while the user's own commands audit and close a milestone, with the real CLI and commands."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import pytest

from tests.commands.conftest import install
from tests.commands.model import CONFIG, Model
from tests.e2e.project import Project
from tests.peer.reader import needs_gsd
from tests.run.harness import git

from .test_workflow import WORKFLOW, planned

Serve = Callable[[Model], Model]


@needs_gsd
@pytest.mark.slow
def test_kills_during_the_audit_and_the_closing_lose_nothing_and_repeat_nothing(
    project: Project, serve: Serve
) -> None:
    install(project, hooks=False)
    planned(project)
    # Each is held where half of its work is on disk: the audit is written, but not recorded; the archive is
    # committed, but the tag is missing.
    places = {("audit-milestone", 1), ("complete-milestone", 3)}
    held = {place: (threading.Event(), threading.Event()) for place in places}

    def hold(command: str, turn: int) -> None:
        if (events := held.get((command, turn))) and not events[0].is_set():
            events[0].set()
            events[1].wait(60)

    model = serve(Model(before=hold))

    def kill_at(command: str, turn: int, *arguments: str) -> None:
        reached, go_on = held[command, turn]
        started = project.start(*arguments)
        assert started.until(reached.is_set), started.output
        started.kill()
        go_on.set()

    kill_at("audit-milestone", 1, "run", *WORKFLOW, "--yes")
    assert list((project.root / ".planning").glob("*-MILESTONE-AUDIT.md"))
    audited = project.gsd("resume", "--yes")

    assert audited.exit == 0, audited.err
    assert model.called == ["execute-phase", "audit-milestone"]
    audits = list((project.root / ".planning").glob("*-MILESTONE-AUDIT.md"))
    assert [path.name for path in audits] == ["v1.0-MILESTONE-AUDIT.md"]
    assert "All requirements covered." in audits[0].read_text()
    assert git(project.root, "status", "--porcelain") == ""

    kill_at("complete-milestone", 3, "milestone", "complete", *WORKFLOW, "--yes")
    assert git(project.root, "tag") == ""
    closed = project.gsd("resume", "--yes")

    assert closed.exit == 0, closed.err
    assert model.called == ["execute-phase", "audit-milestone", "complete-milestone"]
    assert git(project.root, "tag").split() == ["v1.0"]
    archive = project.root / ".planning" / "milestones"
    assert (archive / "v1.0-ROADMAP.md").is_file()
    assert (archive / "v1.0-phases" / "01-greeting" / "01-01-PLAN.md").is_file()
    assert not (project.root / ".planning" / "REQUIREMENTS.md").exists()
    subjects = git(project.root, "log", "--format=%s").splitlines()
    for subject in ("archive v1.0 milestone files", "remove REQUIREMENTS.md for v1.0 milestone"):
        assert subjects.count(f"chore: {subject}") == 1, subjects
    assert (project.root / ".planning" / "MILESTONES.md").read_text().count("## v1.0") == 1
    assert git(project.root, "status", "--porcelain") == ""
    assert json.loads((project.root / ".planning" / "config.json").read_text()) == CONFIG
    again = project.gsd("milestone", "complete", *WORKFLOW, "--yes")
    assert again.exit == 0, again.err
    assert "it was done before, nothing is changed" in again.out
