"""A milestone that the user's own commands audit and close, and the next one.

As in :mod:`.test_steps`, an agent in this process plays the commands.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import define, evolve

from gsd_core import AgentTask
from gsd_core.exit_codes import ExitCode
from gsd_core.machine.state import Options
from gsd_core.planning.audit import read_audit
from gsd_core.planning.survey import read_planning, survey
from gsd_core.run.runtime import RunEnd
from gsd_plugins import commands
from tests.commands import model as m
from tests.run import harness as h

from .test_steps import Played

pytestmark = pytest.mark.slow

AUDIT = ".planning/v1.0-MILESTONE-AUDIT.md"
WITH_GAPS = m.AUDIT_FILE.replace("status: passed", "status: gaps_found").replace(
    "  requirements: []\n  integration: []",
    '  requirements:\n    - id: "GREET-01"\n      status: unsatisfied\n      evidence: "greets nobody"\n'
    '  integration:\n    - from: greeter\n      to: readme\n      issue: "the usage is not documented"',
)
IDEA_2 = "# Greeter two\n\nGreet people in French too.\n"
Act = Callable[[AgentTask], str]


@define(eq=False)
class Milestones(Played):
    """Plays the commands for phases of any number; *audits* are the texts of the audits, in order."""

    audits: tuple[str, ...] = (m.AUDIT_FILE,)
    name: str = ""

    def plan_phase(self, task: AgentTask) -> str:
        number = task.prompt.split()[1]
        folder = self.folder(number)
        text = m.PLAN.replace("01-greeting", folder.name)
        self.put(f"docs({number}): plan", folder / f"{folder.name[:2]}-01-PLAN.md", text)
        return "## PLANNING COMPLETE"

    def discuss_phase(self, task: AgentTask) -> str:
        folder = self.folder(task.prompt.split()[1])
        self.put("docs: context", folder / f"{folder.name[:2]}-CONTEXT.md", m.CONTEXT)
        return "Context captured."

    def execute_phase(self, task: AgentTask) -> str:
        folder = self.folder(task.prompt.split()[1])
        (self.root / "greeter.py").write_text(f"{m.GREETER}# {folder.name}\n")
        h.git(self.root, "add", "greeter.py")
        number = folder.name[:2]
        self.put(f"feat({number}): greet", folder / f"{number}-01-SUMMARY.md", m.SUMMARY)
        self.put("docs: verify", folder / f"{number}-VERIFICATION.md", m.VERIFICATION)
        return "Phase complete."

    def audit_milestone(self, task: AgentTask) -> str:
        done = sum("audit-milestone" in prompt for prompt in self.prompts)
        name = self.name or f".planning/{task.prompt.split()[1]}-MILESTONE-AUDIT.md"
        (self.root / name).write_text(self.audits[min(done, len(self.audits)) - 1])
        return "## Milestone audit"

    def folder(self, number: str) -> Path:
        [phase] = [one for one in read_planning(self.root).phases if one.number == number]
        if phase.directory:
            return self.root / phase.directory
        name = "-".join(phase.name.lower().replace(".", " ").split())
        return self.root / ".planning" / "phases" / f"{int(number):02d}-{name}"

    def put(self, subject: str, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        h.git(self.root, "add", str(path))
        h.git(self.root, "commit", "-qm", subject, "--allow-empty")


def do(project: Path, played: Played, *, yes: bool = True, asked: str = "", idea: str = "") -> RunEnd:
    given = h.request(
        project,
        played,
        run={"workflow": "commands", "skip_discuss": True},
        options=Options(skip_discuss=True, only_asked=bool(asked)),
        commands=commands,
        yes=yes,
        **({"given": h.idea(idea)} if idea else {}),  # type: ignore[arg-type]
    )
    return h.do(evolve(given, asked={asked: "gsd milestone"}) if asked else given)


def test_gaps_of_the_commands_audit_become_one_phase_and_then_a_question(root: Path) -> None:
    """The command finds them in the code, where the comparison of the planning files sees nothing."""
    played = Milestones(root, audits=(WITH_GAPS, m.AUDIT_FILE))

    end = do(root, played)

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    first, second = (
        [
            f"/gsd:discuss-phase {number} --auto",
            f"/gsd:plan-phase {number}",
            f"/gsd:execute-phase {number}",
            "/gsd:audit-milestone v1.0",
        ]
        for number in (1, 2)
    )
    assert played.prompts == [*first, *second]
    [phase] = [one for one in read_planning(root).phases if one.number == "2"]
    assert (phase.requirements, phase.ticked) == (("GREET-01",), True)
    assert any("the usage is not documented" in one for one in phase.criteria)
    head = read_audit(root, "v1.0")
    assert (head.text("status"), head.texts("gap_phases")) == ("passed", ("2",))
    assert "All requirements covered." in head.body, "the text of the command stays"
    assert h.git(root, "status", "--porcelain") == ""

    # The same gaps once more: nobody decides for a person that they stay, and no phase follows the other.
    played.audits = (WITH_GAPS,)
    (root / ".planning/REQUIREMENTS.md").write_text(
        (root / ".planning/REQUIREMENTS.md").read_text().replace("by name", "by their name")
    )
    (root / AUDIT).write_text((root / AUDIT).read_text().replace("inputs: ", "inputs: x"))
    h.git(root, "commit", "-qam", "change a requirement")
    end = do(root, played)
    assert (end.outcome, end.exit) == ("gaps", ExitCode.GAPS)
    assert [one.number for one in read_planning(root).phases] == ["1", "2"]


def test_code_contradicts_an_audit_that_overlooks_a_requirement(root: Path) -> None:
    text = (root / ".planning/REQUIREMENTS.md").read_text()
    orphan = "by name\n- [ ] **GREET-02**: The program greets a group\n"
    (root / ".planning/REQUIREMENTS.md").write_text(text.replace("by name\n", orphan))
    h.git(root, "commit", "-qam", "one more requirement")
    played = Milestones(root, name=".planning/v1.0-v1.0-MILESTONE-AUDIT.md")

    do(root, played)

    assert [one.requirements for one in read_planning(root).phases] == [("GREET-01",), ("GREET-02",)]
    assert not (root / played.name).exists(), "the name in the workflow's text is corrected"
    assert "phase 2" in (root / AUDIT).read_text()


@pytest.mark.parametrize("careless", ["nothing", "half"])
def test_a_command_that_does_not_close_the_milestone_has_failed(root: Path, careless: str) -> None:
    played = Milestones(root)
    assert do(root, played).outcome == "done"

    def close(task: AgentTask) -> str:
        if careless == "half":
            archive = root / ".planning/milestones"
            archive.mkdir()
            (archive / "v1.0-ROADMAP.md").write_text((root / ".planning/ROADMAP.md").read_text())
            h.git(root, "add", "-A")
            h.git(root, "commit", "-qm", "chore: archive")
        return "Milestone complete!"

    played.acts["complete-milestone"] = close

    end = do(root, played, asked="close/v1.0")

    assert end.outcome == "failed"
    expected = "ROADMAP.md still has phase 1 of v1.0" if careless == "half" else "v1.0-ROADMAP.md"
    assert expected in end.reason
    assert "Milestone complete!" in end.reason


def test_a_milestone_with_open_items_is_kept_open_before_its_command_begins(root: Path) -> None:
    played = Milestones(root)
    assert do(root, played).outcome == "done"
    (root / ".planning/todos/pending").mkdir(parents=True)
    (root / ".planning/todos/pending/2026-01-01-docs.md").write_text("---\ntitle: Write the docs\n---\n")
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", "a todo")
    before = len(played.prompts)
    assert do(root, played, asked="close/v1.0", yes=False).exit == ExitCode.QUESTION
    h.answer(root, h.asked(root)[-1], "Keep it open")

    end = do(root, played, asked="close/v1.0", yes=False)

    assert (end.outcome, end.exit) == ("gaps", ExitCode.GAPS)
    assert len(played.prompts) == before
    assert read_planning(root).phases


def test_a_milestone_with_gaps_is_kept_open_before_its_command_begins(root: Path) -> None:
    played = Milestones(root)
    assert do(root, played).outcome == "done"
    (root / m.PHASE / "01-VERIFICATION.md").unlink()
    h.git(root, "commit", "-qam", "no verification")
    before = len(played.prompts)

    end = do(root, played, asked="close/v1.0")

    assert (end.outcome, end.exit) == ("gaps", ExitCode.GAPS)
    assert len(played.prompts) == before
    assert not any(one.shipped for one in survey(root).milestones)


def test_another_idea_is_given_to_the_command_for_the_next_milestone(root: Path) -> None:
    played = Milestones(root)
    assert do(root, played).outcome == "done"

    def close(task: AgentTask) -> str:
        planning = root / ".planning"
        (planning / "milestones").mkdir()
        for name in ("ROADMAP", "REQUIREMENTS"):
            text = (planning / f"{name}.md").read_text()
            (planning / "milestones" / f"v1.0-{name}.md").write_text(text)
        (planning / "ROADMAP.md").write_text(m.COLLAPSED)
        (planning / "REQUIREMENTS.md").unlink()
        h.git(root, "add", "-A")
        h.git(root, "commit", "-qm", "chore: complete v1.0")
        h.git(root, "tag", "v1.0")
        return "Milestone complete!"

    def begin(task: AgentTask) -> str:
        planning, phase = root / ".planning", m.ROADMAP[m.ROADMAP.index("- [ ] **Phase 1") :]
        added = (
            phase.replace("Phase 1", "Phase 2").replace("01-01", "02-01").replace("1. Greeting", "2. French")
        )
        text = f"{m.COLLAPSED}\n### 🚧 v1.1 French (In Progress)\n\n{added}"
        (planning / "ROADMAP.md").write_text(text.replace("Greeting**", "French**"))
        (planning / "REQUIREMENTS.md").write_text(m.REQUIREMENTS.replace("Phase 1", "Phase 2"))
        h.git(root, "add", "-A")
        h.git(root, "commit", "-qm", "docs: start milestone v1.1")
        return "Milestone initialized."

    played.acts |= {"complete-milestone": close, "new-milestone": begin}
    before = len(played.prompts)

    end = do(root, played, idea=IDEA_2)

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    said = played.prompts[before:]
    assert [prompt.split()[0] for prompt in said] == [
        f"/gsd:{name}"
        for name in (
            *("complete-milestone", "new-milestone", "discuss-phase", "plan-phase"),
            *("execute-phase", "audit-milestone"),
        )
    ]
    assert "Greet people in French too." in played.tasks[before + 1].system
    assert [(one.version, one.shipped) for one in survey(root).milestones] == [
        ("v1.0", True),
        ("v1.1", False),
    ]
