"""A result that cannot be written or committed now is kept, and applied by the next start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, frozen

from gsd_core.git import Git
from gsd_core.journal.store import Journal
from gsd_core.machine.facts import Record
from gsd_core.run.runtime import Effects, RunRequest

from . import harness as h

pytestmark = pytest.mark.slow

Act = Callable[[Path], object]


def unsigned(root: Path) -> None:
    h.git(root, "config", "commit.gpgSign", "true")
    h.git(root, "config", "gpg.program", "false")


def signable(root: Path) -> None:
    h.git(root, "config", "commit.gpgSign", "false")


def locked(root: Path) -> None:
    (root / ".git/index.lock").touch()


def unlocked(root: Path) -> None:
    (root / ".git/index.lock").unlink()


def switched(root: Path) -> None:
    h.git(root, "switch", "-q", "-c", "elsewhere")


def back(root: Path) -> None:
    h.git(root, "switch", "-q", "main")


CAUSES: dict[str, tuple[Act, Act, str]] = {
    "a missing key": (unsigned, signable, "sign"),
    "a lock": (locked, unlocked, "index.lock"),
    "another branch": (switched, back, "git switch main"),
}


@define
class Disturbance:
    """Something happens to the project right before the first fact of that *kind* about *step* is recorded.

    Not during a call of an agent: what happens then is undone.
    """

    step: str
    kind: str
    act: Act
    happened: bool = False

    def on(self, request: RunRequest) -> RunRequest:
        """Return the request of a run where it happens."""

        def effects(journal: Journal, git: Git) -> Effects:
            return Disturbed(self, journal=journal, git=git)

        return evolve(request, effects=effects)


@frozen
class Disturbed(Effects):
    """The effects of a run with a disturbance."""

    disturbance: Disturbance

    def append(self, kind: str, data: Mapping[str, Any], *, step: str, **more: Any) -> Record:
        """Record a fact."""
        cause = self.disturbance
        if (step, kind) == (cause.step, cause.kind) and not cause.happened:
            cause.happened = True
            cause.act(self.git.root)
        return super().append(kind, data, step=step, **more)


@pytest.mark.parametrize("cause", CAUSES)
def test_a_plan_that_cannot_be_committed_is_not_planned_again(tmp_path: Path, cause: str) -> None:
    root = h.repository(tmp_path / "project")
    act, undo, words = CAUSES[cause]
    agent = h.Watched(h.one_phase())

    first = h.do(Disturbance("1/plan", "step.result", act).on(h.request(root, agent, given=h.idea())))
    undo(root)
    second = h.do(h.request(root, agent))

    assert (first.outcome, first.exit) == ("failed", 2)
    assert words in first.reason
    assert "gsd resume" in first.reason
    assert second.outcome == "done", second
    assert len(agent.of("planner")) == 1
    assert h.facts(root, "step.failed") == []
    assert len(h.facts(root, "landing.failed")) == 1
    assert h.git(root, "status", "--porcelain") == ""


def test_a_task_that_cannot_be_committed_goes_on_in_the_same_conversation(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    act, undo, words = CAUSES["a missing key"]
    agent = h.Watched(h.one_phase())

    cause = Disturbance("1/execute/01-01", "task.committing", act)
    first = h.do(cause.on(h.request(root, agent, given=h.idea())))
    undo(root)
    second = h.do(h.request(root, agent))

    assert (first.outcome, first.exit) == ("failed", 2)
    assert words in first.reason
    assert second.outcome == "done", second
    conversations = {task.conversation.id for task in agent.of("executor") if task.conversation}
    assert len(conversations) == 1
    assert h.facts(root, "step.failed") == []
    assert h.git(root, "status", "--porcelain") == ""


def test_a_file_that_cannot_be_written_ends_the_run_naming_it(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    agent = h.Watched(h.one_phase())

    cause = Disturbance("init", "step.result", lambda root: (root / ".planning").write_text("in the way"))
    first = h.do(cause.on(h.request(root, agent, given=h.idea())))
    (root / ".planning").unlink()
    second = h.do(h.request(root, agent))

    assert first.exit == 2
    assert ".planning" in first.reason
    assert second.outcome == "done", second
    assert len(agent.of("roadmapper")) == 1


def test_a_result_that_never_fits_leads_to_the_question_about_a_failed_step(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    roadmap = root / ".planning/ROADMAP.md"
    agent = h.Watched(h.one_phase())

    def renumber(root: Path) -> None:
        roadmap.write_text(roadmap.read_text().replace("Phase 1", "Phase 7"))

    ends = [h.do(Disturbance("1/plan", "step.result", renumber).on(h.request(root, agent, given=h.idea())))]
    ends += [h.do(h.request(root, agent)) for _ in range(2)]

    assert [end.exit for end in ends] == [2, 2, 2], ends
    assert len(agent.of("planner")) == 1
    assert [len(h.facts(root, kind)) for kind in ("landing.failed", "step.failed")] == [2, 1]
    assert h.facts(root, "question.asked")[-1].data["inquiry"]["kind"] == "escalation"
