"""The milestones of real projects are audited, closed and followed by another one, and GSD's tool reads them.

The projects are optional; see ``tests.planning.trees``.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core import Answer, Inquiry
from gsd_core.hookspecs import gsd_answer
from gsd_core.machine.state import Options
from gsd_core.planning.audit import read_audit
from gsd_core.planning.survey import read_planning, survey
from gsd_plugins.rehearsal import FakeAgent, Scenario
from tests.peer.reader import ask_gsd, needs_gsd
from tests.planning.trees import CORPUS_PROJECTS, NO_CORPUS
from tests.run import harness as h
from tests.run.test_crash import Crash, with_crash
from tests.run.test_milestones import crash_before

pytestmark = [pytest.mark.slow, needs_gsd]
IDEA = "# Greeter\n\nGreet people in French.\n"
FINISHED = "ProffsKontakt__autokalkyl"
BETWEEN = ("Prodro21__RackPro", "ProgressPlanner__markdown-alternate")


def copy(tmp_path: Path, name: str) -> Path:
    """Return a repository with the planning files of a real project."""
    found = next((path for path in CORPUS_PROJECTS if path.name == name), None)
    if found is None:
        pytest.skip(NO_CORPUS)
    root = h.repository(tmp_path / name)
    shutil.copytree(found / ".planning", root / ".planning")
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", "start")
    return root


def start_next(root: Path) -> None:
    """Start the next milestone, up to its first phase."""
    agent = FakeAgent(Scenario(IDEA, phases=1, question=False, gap=False, overloaded=False))
    given = h.request(root, agent, given=h.idea(IDEA))
    with pytest.raises(Crash):
        h.do(with_crash(given, crash_before("after step.completed init")))


def said_by_gsd(root: Path) -> dict[str, Any]:
    """Return GSD's analysis of the roadmap; its own checks have no error."""
    assert ask_gsd(root, "validate", "health")["errors"] == []
    assert ask_gsd(root, "validate", "consistency")["errors"] == []
    found: dict[str, Any] = ask_gsd(root, "roadmap", "analyze")
    h.git(root, "checkout", "-q", ".")  # the tool rewrites config.json in its own form
    return found


def archived(root: Path) -> set[str]:
    """Return the paths of the archived files."""
    folder = root / ".planning" / "milestones"
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def lines_of(text: str) -> list[str]:
    """Return the lines that are not blank."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def test_a_finished_milestone_is_closed_as_by_gsds_own_tool(tmp_path: Path) -> None:
    root, theirs = copy(tmp_path, FINISHED), copy(tmp_path / "theirs", FINISHED)
    asked: list[Inquiry] = []

    async def close(inquiry: Inquiry) -> list[Answer]:
        asked.append(inquiry)
        return [Answer(question=one.id, chosen=("Close it",), by="ada") for one in inquiry.questions]

    for step in ("audit/v1.1", "close/v1.1"):
        given = h.request(root, h.one_phase(), yes=False, person=h.plugin(gsd_answer, close))
        end = h.do(evolve(given, asked={step: "gsd milestone"}, options=Options(only_asked=True)))
        assert (end.outcome, end.exit) == ("done", 0), end.reason
        if step.startswith("audit"):
            # Its SUMMARYs are older than the key requirements-completed, which thus says nothing.
            head = read_audit(root, "v1.1")
            assert head.text("status") == "tech_debt"
            assert "requirements: 21/21" in (root / ".planning/v1.1-MILESTONE-AUDIT.md").read_text().replace(
                '"', ""
            )
    assert [inquiry.questions[0].text.splitlines()[0] for inquiry in asked] == ["v1.1 has open items:"]
    analysis = said_by_gsd(root)
    assert (analysis["phase_count"], analysis["missing_phase_details"]) == (0, None)

    requirements = (theirs / ".planning/REQUIREMENTS.md").read_text()
    report = ask_gsd(theirs, "milestone", "complete", "v1.1", "--name", "Fixed ROI Calculations", "--confirm")

    # The archive is the same, except that GSD's tool changes blank lines in what it archives.
    assert archived(root) - archived(theirs) == {"v1.1-MILESTONE-AUDIT.md"}
    assert archived(theirs) - archived(root) == set()
    same = ".planning/milestones/v1.1-ROADMAP.md"
    assert lines_of((root / same).read_text()) == lines_of((theirs / same).read_text())
    kept = (root / ".planning/milestones/v1.1-REQUIREMENTS.md").read_text()
    assert requirements in kept
    assert lines_of(kept) == lines_of((theirs / ".planning/milestones/v1.1-REQUIREMENTS.md").read_text())
    ours = (root / ".planning/MILESTONES.md").read_text()
    assert [one for one in report["accomplishments"] if f"- {one}\n" not in ours] == []
    for project in (root, theirs):
        entry = (project / ".planning/MILESTONES.md").read_text()
        assert entry.index("## v1.1 Fixed ROI Calculations (Shipped: ") < entry.index("## v1.0")
        assert "2 phases, 7 plans" in entry
        assert "Status: Awaiting next milestone" in (project / ".planning/STATE.md").read_text()
    # The rest is left to the model by GSD's tool, and done by code here.
    for name in ("REQUIREMENTS.md", "ROADMAP.md", "PROJECT.md"):
        assert (theirs / ".planning" / name).read_text() == h.git(theirs, "show", f"HEAD:.planning/{name}")
    assert not (root / ".planning/REQUIREMENTS.md").exists()
    assert "| Phase 7 | ✓ Good |" in (root / ".planning/PROJECT.md").read_text()

    start_next(root)

    analysis = said_by_gsd(root)
    assert [(one["number"], one["disk_status"]) for one in analysis["phases"]] == [("8", "no_directory")]
    assert read_planning(root).milestone == "v1.2"


@pytest.mark.parametrize("name", BETWEEN)
def test_an_idea_starts_the_next_milestone_of_a_project_between_two(tmp_path: Path, name: str) -> None:
    root = copy(tmp_path, name)
    before = [(one.version, one.shipped) for one in survey(root).milestones]
    assert read_planning(root).idle

    start_next(root)

    version, number = {"v1.1": ("v1.2", "9"), "v1.0": ("v1.1", "5")}[before[-1][0]]
    assert [(one.version, one.shipped) for one in survey(root).milestones] == [*before, (version, False)]
    analysis = said_by_gsd(root)
    assert [(one["version"]) for one in analysis["milestones"]] == [version]
    assert [(one["number"], one["disk_status"]) for one in analysis["phases"]] == [(number, "no_directory")]
