"""The engine around the user's commands: what they may change, what they have to reach, how they are found.

The commands are played by an agent in this process; :mod:`.test_workflow` has the real ones.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import define, field

from gsd_core import AgentHost, AgentResult, AgentTask, implements
from gsd_core.hookspecs import gsd_run_agent
from gsd_core.machine.state import Options
from gsd_core.run.runtime import RunEnd
from gsd_plugins import commands
from gsd_plugins.commands.checkpoints import find_checkpoint
from gsd_plugins.commands.installed import findings, invocation
from tests.commands import model as m
from tests.run import harness as h

CONFIG = ".planning/config.json"
GAPS = m.VERIFICATION.replace("status: passed", "status: gaps_found").replace(
    "score: 1/1 must-haves verified\n",
    'score: 0/1\ngaps:\n  - truth: "Running the program with a name prints a greeting"\n'
    '    status: failed\n    reason: "it prints nothing"\n',
)


@define(eq=False)
class Played:
    """Plays the commands in *root*; *acts* replaces some of them, by name."""

    root: Path
    acts: dict[str, Callable[[AgentTask], str]] = field(factory=dict[str, Callable[[AgentTask], str]])
    prompts: list[str] = field(factory=list[str], init=False)
    tasks: list[AgentTask] = field(factory=list[AgentTask], init=False)

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        """Do what the command says."""
        self.prompts.append(task.prompt.splitlines()[0])
        self.tasks.append(task)
        name = task.prompt.removeprefix("/gsd:").split()[0]
        act = self.acts.get(name) or getattr(self, name.replace("-", "_"))
        text = act(task)
        assert task.conversation is not None
        return AgentResult(text=text, conversation=task.conversation.id)

    def commit(self, subject: str, **texts: str) -> None:
        """Write *texts* to the files of the phase with these names, and commit them."""
        for name, text in texts.items():
            path = self.root / m.PHASE / f"01-{name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            h.git(self.root, "add", str(path))
        h.git(self.root, "commit", "-qm", subject, "--allow-empty")

    def discuss_phase(self, task: AgentTask) -> str:
        self.commit("docs(01): context", CONTEXT=m.CONTEXT)
        return "Context captured."

    def plan_phase(self, task: AgentTask) -> str:
        number = "02" if "--gaps" in task.prompt else "01"
        text = m.PLAN.replace("plan: 01", f"plan: {number}")
        if number == "02":
            text = text.replace("autonomous: true", "autonomous: true\ngap_closure: true")
        self.commit("docs(01): plan", **{f"{number}-PLAN": text})
        return "## PLANNING COMPLETE"

    def execute_phase(self, task: AgentTask) -> str:
        number = "02" if "--gaps-only" in task.prompt else "01"
        (self.root / "greeter.py").write_text(m.GREETER)
        h.git(self.root, "add", "greeter.py")
        self.commit("feat(01): write the greeter", **{f"{number}-SUMMARY": m.SUMMARY})
        self.commit("docs(01): verify", VERIFICATION=m.VERIFICATION)
        return "Phase complete."


def do(root: Path, played: Played, gap_rounds: int = 3, **more: object) -> RunEnd:
    """Run the project with the user's commands."""
    # Without the audit of the milestone, which :mod:`.test_milestones` has.
    settings = {"workflow": "commands", "skip_discuss": True, "audit": False}
    asked = h.request(
        root,
        played,
        run=settings,
        options=Options(skip_discuss=True, gap_rounds=gap_rounds),
        commands=commands,
        **more,  # type: ignore[arg-type]
    )
    return h.do(asked)


def test_gaps_are_planned_and_executed_with_the_flags_for_gaps(root: Path) -> None:
    played = Played(root)

    def with_gap(task: AgentTask) -> str:
        if "--gaps-only" in task.prompt:
            return played.execute_phase(task)
        said = played.execute_phase(task)
        played.commit("docs(01): verify", VERIFICATION=GAPS)
        return said

    played.acts["execute-phase"] = with_gap

    end = do(root, played)

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert played.prompts == [
        *("/gsd:discuss-phase 1 --auto", "/gsd:plan-phase 1", "/gsd:execute-phase 1"),
        *("/gsd:plan-phase 1 --gaps", "/gsd:execute-phase 1 --gaps-only"),
    ]
    assert json.loads((root / CONFIG).read_text()) == m.CONFIG
    assert h.git(root, "log", "--format=%s").count("feat(01): write the greeter") == 2


def test_a_command_that_does_not_reach_its_purpose_has_failed(root: Path) -> None:
    played = Played(root, acts={"plan-phase": lambda task: "I have planned everything!"})

    end = do(root, played)

    assert (end.outcome, end.exit) == ("failed", 1)
    assert "/gsd:plan-phase ended, but" in end.reason
    assert "PLAN.md" in end.reason or "01-01" in end.reason
    assert "I have planned everything!" in end.reason
    assert played.prompts == ["/gsd:discuss-phase 1 --auto", "/gsd:plan-phase 1"]


@pytest.mark.parametrize(
    "forbidden",
    ["files", "branch", "history"],
)
def test_what_a_command_must_not_change_is_undone_and_ends_the_attempt(root: Path, forbidden: str) -> None:
    played = Played(root)
    before = h.git(root, "rev-parse", "HEAD").strip()

    def interfere(task: AgentTask) -> str:
        said = played.plan_phase(task)
        match forbidden:
            case "files":
                (root / ".claude").mkdir()
                (root / ".claude" / "settings.json").write_text("{}")
                h.git(root, "config", "core.fsmonitor", "true")
                hook = root / ".git" / "hooks" / "post-commit"
                hook.parent.mkdir(exist_ok=True)
                hook.write_text("#!/bin/sh\n")
            case "branch":
                h.git(root, "switch", "-q", "-c", "other")
            case _:
                h.git(root, "commit", "-q", "--amend", "-m", "rewritten", "--allow-empty")
                h.git(root, "reset", "-q", "--soft", "HEAD~2")
                h.git(root, "commit", "-qm", "squashed", "--allow-empty")
        return said

    if forbidden == "history":
        h.git(root, "commit", "-qm", "docs: another one", "--allow-empty")
        before = h.git(root, "rev-parse", "HEAD").strip()
    played.acts["plan-phase"] = interfere

    end = do(root, played, without=("retry",))

    assert end.outcome == "failed"
    assert "only the run may do" in end.reason
    assert h.git(root, "symbolic-ref", "--short", "HEAD") == "main\n"
    assert h.git(root, "merge-base", before, "HEAD").strip() == before
    assert not (root / ".git" / "hooks" / "post-commit").exists()
    assert not (root / ".claude" / "settings.json").exists()
    assert "fsmonitor" not in (root / ".git" / "config").read_text()
    assert json.loads((root / CONFIG).read_text()) == m.CONFIG


def test_what_a_command_configures_or_leaves_uncommitted_stays_and_is_reported(root: Path) -> None:
    played = Played(root)

    def configure(task: AgentTask) -> str:
        config = json.loads((root / CONFIG).read_text())
        assert config["mode"] == "yolo"
        config["workflow"]["research"] = True
        (root / CONFIG).write_text(json.dumps(config))
        (root / "notes.txt").write_text("left")
        return played.plan_phase(task)

    played.acts["plan-phase"] = configure

    assert do(root, played).exit == 0

    expected = {**m.CONFIG, "workflow": {"research": True, "auto_advance": True}}
    assert json.loads((root / CONFIG).read_text()) == expected
    assert (root / "notes.txt").read_text() == "left"
    assert next(fact.data["paths"] for fact in h.facts(root, "files.left")) == ["notes.txt"]


@pytest.mark.parametrize(
    ("path", "called"),
    [
        ("commands/gsd/plan-phase.md", "/gsd:plan-phase"),
        ("commands/gsd-plan-phase.md", "/gsd-plan-phase"),
        ("skills/gsd-plan-phase/SKILL.md", "/gsd-plan-phase"),
    ],
)
def test_commands_are_found_in_every_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, called: str
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "none"))
    project = tmp_path / "project"
    assert invocation("plan-phase", project) == ""
    file = project / ".claude" / path
    file.parent.mkdir(parents=True)
    file.write_text("x")

    assert invocation("plan-phase", project) == called


def test_a_program_that_the_commands_need_is_missing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workflows = Path(os.environ["CLAUDE_CONFIG_DIR"]) / "get-shit-done" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "plan-phase.md").write_text("gsd-sdk query init.plan-phase")
    monkeypatch.setenv("PATH", str(root))

    found = [finding for finding in findings(["plan-phase"], root) if not finding.ok]

    assert [finding.name for finding in found] == ["gsd-sdk"]


@pytest.mark.parametrize(
    ("text", "kind", "part"),
    [
        (m.BANNER, "verify", "How to verify"),
        (m.BANNER.replace("Verification", "Action"), "action", "Run python3"),
        (
            "## CHECKPOINT REACHED\n\n**Type:** decision\n\n1. flat - One file\n2. deep - Many",
            "decision",
            "flat",
        ),
        ("Done so far.\n\n## Checkpoint: human-action\n\nRun `vercel login`.", "action", "vercel login"),
    ],
)
def test_a_checkpoint_is_recognized(text: str, kind: str, part: str) -> None:
    found = find_checkpoint(text)

    assert found is not None
    assert found.kind == kind
    assert part in found.text


def test_a_decision_has_its_options_and_other_text_is_no_checkpoint() -> None:
    text = (
        "║  CHECKPOINT: Decision Required    ║\n\nOptions:\n  1. supabase - Built-in\n  2. clerk - Pretty\n"
    )
    checkpoint = find_checkpoint(text)

    assert checkpoint is not None
    [question] = checkpoint.inquiry("1/execute/01-01", "/gsd:execute-phase", 0).questions
    assert [option.label for option in question.options] == ["supabase", "clerk"]
    assert find_checkpoint("Phase complete. No checkpoint: reached the end.") is None
    assert find_checkpoint("The plan has a `CHECKPOINT: Verification` task") is None


UAT = """---
status: complete
phase: 01-greeting
---

## Tests

### 1. Greeting
expected: A greeting appears
result: RESULT

## Gaps

LISTED
"""


@pytest.mark.parametrize("works", [True, False])
def test_without_a_verification_a_person_tests_the_phase_with_verify_work(root: Path, works: bool) -> None:
    """The checkpoint of the test is answered in the session; what fails is a gap."""
    played = Played(root)
    gap = '- truth: "A greeting appears"\n  status: failed\n  reason: "nothing appears"\n  test: 1'

    def execute(task: AgentTask) -> str:
        (root / "greeter.py").write_text(m.GREETER)
        h.git(root, "add", "greeter.py")
        played.commit("feat(01): write the greeter", **{"01-SUMMARY": m.SUMMARY})
        return "Executed."

    def verify(task: AgentTask) -> str:
        return m.BANNER

    def answered(task: AgentTask) -> str:
        result, listed = ("pass", "[none]") if works else ("issue", gap)
        played.commit("test(01): UAT", UAT=UAT.replace("RESULT", result).replace("LISTED", listed))
        return "UAT complete."

    played.acts |= {"execute-phase": execute, "verify-work": verify, "approved": answered}

    end = do(root, played, gap_rounds=0)

    assert played.prompts[:5] == [
        *("/gsd:discuss-phase 1 --auto", "/gsd:plan-phase 1", "/gsd:execute-phase 1"),
        *("/gsd:verify-work 1", "approved"),
    ]
    assert played.tasks[4].conversation is not None
    assert played.tasks[3].conversation is not None
    assert played.tasks[4].conversation.id == played.tasks[3].conversation.id
    verification = (root / m.PHASE / "01-VERIFICATION.md").read_text()
    if works:
        assert (end.outcome, end.exit) == ("done", 0), end.reason
        assert "1 check assumed" in end.reason
    else:
        assert end.outcome == "gaps"
        assert "nothing appears" in verification


def test_a_config_that_a_command_breaks_is_a_failure_and_no_crash(root: Path) -> None:
    played = Played(root)

    def destroy(task: AgentTask) -> str:
        (root / CONFIG).write_bytes(b"\xff{")
        return played.plan_phase(task)

    played.acts["plan-phase"] = destroy

    end = do(root, played)

    assert (end.outcome, end.exit) == ("failed", 2), end.reason
    assert "config.json" in end.reason
    assert h.facts(root, "config.restored")
