"""``gsd run --workflow commands`` and ``gsd exec`` with the real CLI and the real commands."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import pytest

from gsd_plugins.rehearsal.api import Text
from tests.commands.conftest import install
from tests.commands.model import (
    AUDIT,
    CONFIG,
    CONTEXT,
    GREETER,
    PHASE,
    PLAN,
    PROJECT,
    QUESTION,
    REQUIREMENTS,
    ROADMAP,
    STATE,
    WITH_CHECKPOINT,
    Model,
)
from tests.e2e.project import Project
from tests.peer.reader import needs_gsd
from tests.run.harness import git

WORKFLOW = ("--workflow", "commands")
OWN_CONFIG = json.dumps(CONFIG, indent=4)
"""As its user has formatted it."""
Serve = Callable[[Model], Model]


def planned(project: Project, config: str = OWN_CONFIG) -> None:
    """Make the project one that was planned with GSD's commands."""
    texts = {
        ".planning/PROJECT.md": PROJECT,
        ".planning/REQUIREMENTS.md": REQUIREMENTS,
        ".planning/ROADMAP.md": ROADMAP,
        ".planning/STATE.md": STATE,
        ".planning/config.json": config,
        f"{PHASE}/01-CONTEXT.md": CONTEXT,
        f"{PHASE}/01-01-PLAN.md": PLAN,
    }
    for path, text in texts.items():
        file = project.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    git(project.root, "add", "-A")
    git(project.root, "commit", "-qm", "docs: plan")


@needs_gsd
@pytest.mark.slow
def test_the_users_own_commands_take_an_idea_to_a_verified_phase(project: Project, serve: Serve) -> None:
    install(project)
    model = serve(Model())
    secret = project.base / "secret.txt"
    secret.write_text("TOP-SECRET")
    idea = project.base / "idea.md"
    idea.write_text(f"# Greeter\n\nGreet a person by name.\n@{secret}\n")

    done = project.gsd("run", idea, *WORKFLOW, "--yes")

    assert done.exit == 0, done.err
    assert "sandbox: bubblewrap" in done.err or "no sandbox" in done.err
    phase = ["discuss-phase", "plan-phase", "subagent", "execute-phase"]
    assert model.called == ["new-project", *phase, "audit-milestone"]
    # The idea reaches the model as it is: no file that it names.
    assert "Greet a person by name" in model.systems[0]
    assert "TOP-SECRET" not in model.prompts[0]
    # The command's question was answered like any other.
    assert any("Coarse (Recommended)" in said for _, said in model.seen)
    # The overlay is there while a command works, and its user's own values are back.
    shown = [said for name, said in model.seen if name == "execute-phase" and '"mode"' in said]
    assert shown
    assert '"mode": "yolo"' in shown[0]
    assert '"issues_review": false' in shown[0]
    assert json.loads((project.root / ".planning" / "config.json").read_text()) == CONFIG
    # The commits are those of the commands, and the core's own about the verification.
    subjects = git(project.root, "log", "--format=%s").splitlines()
    assert {"docs: initialize project", "feat(01-01): write the greeter"} <= set(subjects)
    assert git(project.root, "log", "-1", "--format=%an") == "Tester\n"
    # The command has committed the overlay with all of .planning/, and the run what was there before.
    assert "chore: restore config.json" in subjects
    assert git(project.root, "status", "--porcelain") == ""
    assert "- [x] **Phase 1: Greeting**" in (project.root / ".planning" / "ROADMAP.md").read_text()
    assert "status: passed" in (project.root / PHASE / "01-VERIFICATION.md").read_text()
    assert (project.root / ".planning" / "v1.0-MILESTONE-AUDIT.md").is_file()
    assert not (project.root / AUDIT).exists()

    closed = project.gsd("milestone", "complete", *WORKFLOW, "--yes")

    assert closed.exit == 0, closed.err
    assert model.called[-1] == "complete-milestone"
    assert any("Yes (Recommended)" in said for name, said in model.seen if name == "complete-milestone")
    archive = project.root / ".planning" / "milestones"
    assert {path.name for path in archive.iterdir()} == {
        *(f"v1.0-{name}.md" for name in ("ROADMAP", "REQUIREMENTS", "MILESTONE-AUDIT")),
        "v1.0-phases",
    }
    # Its commits and its tag are its own.
    assert git(project.root, "cat-file", "-t", "v1.0").strip() == "tag"
    assert git(project.root, "log", "-1", "--format=%s").startswith("chore: ")
    assert git(project.root, "status", "--porcelain") == ""
    assert json.loads((project.root / ".planning" / "config.json").read_text()) == CONFIG
    again = project.gsd("milestone", "complete", *WORKFLOW, "--yes")
    assert again.exit == 0
    assert "it was done before, nothing is changed" in again.out


@needs_gsd
@pytest.mark.slow
def test_a_checkpoint_is_answered_in_its_session_and_a_kill_loses_nothing(
    project: Project, serve: Serve
) -> None:
    install(project, hooks=False)
    # The run creates the phase's branch before its first step, with the name that the command computes.
    own = {**CONFIG, "git": {"branching_strategy": "phase"}}
    planned(project, json.dumps(own))
    reached, go_on = threading.Event(), threading.Event()

    def hold(command: str, turn: int) -> None:
        if command == "execute-phase" and turn == 1:
            reached.set()
            go_on.wait(60)

    model = serve(Model(turns={"execute-phase": WITH_CHECKPOINT}, before=hold))
    config = project.root / ".planning" / "config.json"

    started = project.start("run", *WORKFLOW)
    assert started.until(reached.is_set), started.output
    assert json.loads(config.read_text())["mode"] == "yolo"
    started.kill()
    go_on.set()
    assert json.loads(config.read_text())["mode"] == "yolo"
    parked = project.gsd("resume", "--no-input")

    assert parked.exit == 3, parked.err
    assert json.loads(config.read_text()) == own
    [asked] = project.facts("question.asked")
    [question] = asked.data["inquiry"]["questions"]
    assert "Built: the greeter" in question["text"]
    assert project.gsd("answer", question["id"], "approved").exit == 0
    done = project.gsd("resume", "--no-input")

    assert done.exit == 0, done.err
    assert any("approved" in said for name, said in model.seen if name == "execute-phase")
    # One conversation from the beginning to the end: nothing was done twice.
    assert model.called == ["execute-phase", "audit-milestone"]
    assert git(project.root, "branch", "--show-current").strip() == "gsd/phase-01-greeting"
    assert git(project.root, "rev-list", "--count", "main").strip() == "1"
    assert (project.root / "greeter.py").read_text().strip() == GREETER.strip()
    subjects = git(project.root, "log", "--format=%s").splitlines()
    assert subjects.count("feat(01-01): write the greeter") == 1
    assert json.loads(config.read_text()) == own


@pytest.mark.slow
def test_exec_is_one_recorded_step_with_questions(project: Project, serve: Serve) -> None:
    model = serve(Model(turns={"prompt": ((QUESTION,), (Text("It is tidy."),))}))

    done = project.gsd("exec", "Tidy up", "--step", "tidy", "--yes")

    assert (done.exit, done.out) == (0, "It is tidy.\n"), done.err
    assert model.called == ["prompt"]
    assert [fact.step for fact in project.facts("step.completed")] == ["exec/tidy"]
    assert [fact.data["answer"]["by"] for fact in project.facts("question.answered")] == ["--yes"]
    assert project.json("status")["run"]


def test_missing_commands_are_reported_before_the_start(project: Project) -> None:
    fake = ("-p", "gsd_plugins.rehearsal.fake", "--agent", "fake")
    idea = project.base / "idea.md"
    idea.write_text("# Greeter\n")

    refused = project.gsd("run", idea, *WORKFLOW, *fake)

    assert refused.exit == 4
    assert "/gsd:new-project" in refused.err
    assert "npx get-shit-done-cc" in refused.err
    assert not project.journal_file.exists()
    assert not (project.root / ".planning").exists()


def test_a_project_needs_trust_to_choose_the_workflow_or_to_configure_its_agent(project: Project) -> None:
    (project.root / "gsd.toml").write_text('[run]\nworkflow = "commands"\n')
    (project.root / ".claude").mkdir()
    (project.root / ".claude" / "settings.json").write_text('{"hooks": {}}')
    idea = project.base / "idea.md"
    idea.write_text("# Greeter\n")

    refused = project.gsd("run", idea, *WORKFLOW, "--no-input")

    assert refused.exit == 2
    assert "run.workflow" in refused.err
    assert ".claude/" in refused.err
