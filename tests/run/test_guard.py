"""An agent that changes what only the run may change: it is undone, recorded, and the attempt fails."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from attrs import define, evolve, field

from gsd_core.machine.facts import Record
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.run.runtime import RunEnd
from tests.cli.bench import call

from . import harness as h
from .test_seal import USERS, sh, users_files

pytestmark = pytest.mark.slow

QUICK = {"retry": {"wait": "0s"}}


@define
class Script:
    """Runs a shell script in the project before the agent works, *times* times, for one role."""

    root: Path
    text: str
    role: str = "executor"
    times: int = 1
    prompts: list[str] = field(factory=list[str])

    async def __call__(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        """Run the script, as a program would that the agent wrote."""
        if task.role == self.role:
            self.prompts.append(task.prompt)
            if self.times > 0:
                self.times -= 1
                sh(self.root, self.text)
        return None


def project(root: Path) -> Path:
    """Make a repository with a commit, a second branch, and what the user has not committed."""
    h.repository(root)
    (root / "notes.txt").write_text("one\n")
    sh(root, "git add -A && git commit -qm start && git branch topic")
    for name, text in USERS.items():
        (root / name).write_text(text)
    sh(root, "git add staged.txt")
    return root


def run(root: Path, script: Script, *, yes: bool = True) -> RunEnd:
    agent = h.Watched(h.one_phase(), script)
    return h.do(h.request(root, agent, given=h.idea(), sections=QUICK, run={"allow_dirty": True}, yes=yes))


GRAVE = {
    "ticks the boxes": "sed -i 's/- \\[ \\] \\*\\*Phase/- [x] **Phase/' .planning/ROADMAP.md",
    "writes its own verdict": (
        "cd .planning/phases/01-*; printf -- '---\\nstatus: passed\\n---\\n' > 01-VERIFICATION.md"
    ),
    "switches the branch": "git switch -q -c other",
}
SLOWLY = ["ticks the boxes", *(pytest.param(name, marks=pytest.mark.slow) for name in list(GRAVE)[1:])]


@pytest.mark.parametrize("attack", SLOWLY)
def test_what_only_the_run_may_change_is_undone_and_the_next_attempt_is_told(
    tmp_path: Path, attack: str
) -> None:
    root = project(tmp_path / "project")
    script = Script(root, GRAVE[attack])

    end = run(root, script)

    assert (end.outcome, end.exit) == ("done", 0), end
    [found] = h.facts(root, "guard.found")
    [failed] = h.facts(root, "attempt.failed")
    assert failed.data["error"]["kind"] == "Interference"
    assert found.data["kept"] in failed.data["error"]["hint"]
    assert found.data["what"][0] not in script.prompts[0]
    assert found.data["what"][0] in script.prompts[1]
    assert not h.facts(root, "guard.undone")[0].data["problems"]
    assert users_files(root) == USERS
    assert h.git(root, "branch", "--format=%(refname:short)").split() == ["main", "topic"]
    assert [task for _, task in h.trailed(root) if task] == ["01-01/1", "01-01/2"]


@pytest.mark.parametrize("attack", SLOWLY)
def test_an_agent_that_does_it_again_and_again_does_not_reach_the_end(tmp_path: Path, attack: str) -> None:
    root = project(tmp_path / "project")

    end = run(root, Script(root, GRAVE[attack], times=99), yes=False)

    assert (end.outcome, end.exit) == ("failed", 1), end
    assert "only the run may" in end.reason
    assert users_files(root) == USERS


MILD = {
    "commits itself": "echo x > extra.txt; git add extra.txt; git commit -qm 'by me' extra.txt",
    "stashes": "git stash -q -u",
}


@pytest.mark.parametrize("mistake", ["commits itself", pytest.param("stashes", marks=pytest.mark.slow)])
def test_an_honest_mistake_is_undone_and_does_not_fail_the_attempt(tmp_path: Path, mistake: str) -> None:
    root = project(tmp_path / "project")

    end = run(root, Script(root, MILD[mistake]))

    assert (end.outcome, end.exit) == ("done", 0), end
    [found] = h.facts(root, "guard.found")
    assert found.data["mild"], found.data
    assert not h.facts(root, "attempt.failed")
    assert users_files(root) == USERS
    assert [task for _, task in h.trailed(root) if task] == ["01-01/1", "01-01/2"]


def test_an_agent_that_committed_its_work_itself_is_told_when_it_reports_the_task(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    replies: list[str] = []

    async def commits(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "executor" and not replies:
            scenario = h.one_phase().scenario
            assert scenario is not None
            for edit in scenario.tasks("01-01")[0].edits:
                path = task.tree / edit.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(edit.applied(None))
                sh(root, f"git add {edit.path}; git commit -qm 'I did it' {edit.path}")
            replies.append(await host.call("task_done", {"task": 1, "files": [], "note": "done"}))
        return None

    end = h.do(h.request(root, h.Watched(h.one_phase(), commits), given=h.idea(), run={"allow_dirty": True}))

    assert end.outcome == "done", end
    assert "is committed" in replies[0]
    assert "undone" in replies[0]
    assert "I did it" not in h.git(root, "log", "--format=%s")
    summary = next(root.glob(".planning/phases/01-*/01-01-SUMMARY.md")).read_text()
    assert h.facts(root, "guard.found")[0].data["what"][0] in summary
    assert [task for _, task in h.trailed(root) if task] == ["01-01/1", "01-01/2"]


def reword(root: Path, since: str) -> None:
    """Change the words of the commits after *since*, as a rebase of their author does."""
    words = ["filter-branch", "-f", "--msg-filter", "sed 1s/^/reworded:\\ /", f"{since}..HEAD"]
    subprocess.run(
        ["git", *words],
        cwd=root,
        check=True,
        capture_output=True,
        env={**os.environ, "FILTER_BRANCH_SQUELCH_WARNING": "1"},
    )


def test_commits_with_other_words_are_no_gap(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(), given=h.idea()))
    first = h.facts(root, "task.committed")[0].data["commit"]

    reword(root, first)

    shown = call("gaps", "1", "-C", root)
    assert "no such commit" not in shown.stdout, shown.stdout


def test_a_commit_that_is_amended_while_an_agent_works_stays_the_runs(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    done: list[str] = []

    def amend(_: object, record: Record) -> None:
        if record.kind == "task.committed" and not done:
            done.append(record.data["commit"])
            h.git(root, "commit", "--amend", "-q", "-m", "my words")

    end = h.do(evolve(h.request(root, h.one_phase(), given=h.idea()), observers=(amend,)))

    assert end.exit == 0, end.reason
    assert done[0] in h.git(root, "rev-list", "HEAD").split()
    assert not [fact for fact in h.facts(root, "step.completed") if "/verify/r" in fact.step]
