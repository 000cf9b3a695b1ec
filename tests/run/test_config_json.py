"""GSD's config.json in a run: branches for phases and milestones, gates, what is committed, bad values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core.errors import ConfigError, ProjectError
from gsd_core.exit_codes import ExitCode
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.run.runtime import Effects, RunEnd

from . import harness as h


def project(tmp_path: Path, config: dict[str, Any]) -> Path:
    """Return a repository on branch main whose first commit has that config.json."""
    root = h.repository(tmp_path / "project")
    (root / ".planning").mkdir()
    (root / ".planning/config.json").write_text(json.dumps(config))
    h.git(root, "add", ".")
    h.git(root, "commit", "-q", "-m", "base")
    return root


def branches(root: Path) -> set[str]:
    """Return the local branches."""
    return set(h.git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads").split())


def steps_on(root: Path, revisions: str) -> set[str]:
    """Return the phases (``init`` for the project) whose steps have commits there."""
    form = "--format=%(trailers:key=GSD-Step,valueonly)"
    return {line.split("/")[0] for line in h.git(root, "log", form, revisions).split()}


@pytest.mark.slow
def test_each_role_is_told_the_skills_that_its_agent_has(tmp_path: Path) -> None:
    agents = {
        "codebase-mapper": "gsd-codebase-mapper",
        "roadmapper": "gsd-roadmapper",
        "discusser": "gsd-assumptions-analyzer",
        "researcher": "gsd-phase-researcher",
        "planner": "gsd-planner",
        "checker": "gsd-plan-checker",
        "executor": "gsd-executor",
        "verifier": "gsd-verifier",
        "debugger": "gsd-debugger",
    }
    skills = {name: f"skills/{name}" for name in agents.values()}
    root = project(tmp_path, {"depth": "comprehensive", "agent_skills": skills})
    for folder in skills.values():
        (root / folder).mkdir(parents=True)
        (root / folder / "SKILL.md").write_text("# How to\n")
    for name in ("app", "lists", "store", "report", "words"):
        (root / f"{name}.py").write_text("print('hello')\n")
    h.git(root, "add", ".")
    h.git(root, "commit", "-q", "-m", "code")

    async def doubt(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "verifier" or len(agent.of("verifier")) > 1:
            return None
        result = await agent.agent.run_agent(task, host)
        assert result is not None
        result.value["verdicts"][0] |= {"status": "fails", "reason": "the list is in any order"}
        return result

    # Its README lacks the usage, so that the gap round has something to do.
    agent = h.Watched(h.one_phase(gap=True), doubt)
    end = h.do(h.request(root, agent, given=h.idea(), run={"depth": "comprehensive"}))

    assert end.outcome == "done", end
    assert {task.role for task in agent.tasks} == set(agents)
    for role, name in agents.items():
        assigned = agent.of(role)[0].prompt.partition("Skills assigned to you")[2].partition("</")[0]
        named = {folder for folder in skills.values() if f"{folder}/SKILL.md" in assigned}
        assert named == {f"skills/{name}"}, role


PLANNED: dict[str, Any] = {"gates": {"confirm_plan": True}}
"""A config with which a run without --yes ends when the first phase is planned, which is quick."""


def plan(root: Path, *, new: bool = True) -> RunEnd:
    """Run, or resume, until the first phase is planned."""
    end = h.do(h.request(root, h.one_phase(), given=h.idea() if new else None, yes=False))
    assert (end.outcome, end.exit) == ("blocked", ExitCode.QUESTION), end
    return end


@pytest.mark.slow
def test_each_phase_has_a_branch_that_begins_with_the_work_before_it(tmp_path: Path) -> None:
    root = project(tmp_path, {"git": {"branching_strategy": "phase"}})

    end = h.do(h.request(root, h.one_phase(phases=2), given=h.idea()))

    assert end.outcome == "done", end
    first, second = sorted(branches(root) - {"main"})
    assert first.startswith("gsd/phase-01-")
    assert second.startswith("gsd/phase-02-")
    assert steps_on(root, "main") == {"init"}
    assert (steps_on(root, f"main..{first}"), steps_on(root, f"{first}..{second}")) == ({"1"}, {"2", "audit"})
    assert h.git(root, "branch", "--show-current").strip() == second
    assert any(second in note and "'main'" in note for note in end.notes)
    assert h.git(root, "status", "--porcelain") == ""


def test_a_milestone_has_a_branch(tmp_path: Path) -> None:
    template = {"milestone_branch_template": "work/{milestone}"}
    root = project(tmp_path, {**PLANNED, "branching_strategy": "milestone", "git": template})

    plan(root)

    assert branches(root) == {"main", "work/v1.0"}
    assert steps_on(root, "main") == {"init"}
    assert steps_on(root, "main..work/v1.0") == {"1"}


class Killed(BaseException):
    """The process ends."""


@pytest.mark.slow
@pytest.mark.parametrize("fact", ["branch.chosen", "branch.switched"])
@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_a_run_that_is_killed_while_it_switches_continues_on_the_branch(
    tmp_path: Path, fact: str, written: bool
) -> None:
    root = project(tmp_path, {**PLANNED, "git": {"branching_strategy": "phase"}})

    class Killing(Effects):
        def append(self, kind: str, *arguments: Any, **more: Any) -> Any:
            if kind != fact:
                return super().append(kind, *arguments, **more)
            if written:
                super().append(kind, *arguments, **more)
            raise Killed

    def killing(journal: Any, git: Any) -> Killing:
        return Killing(journal=journal, git=git)

    request = h.request(root, h.one_phase(), given=h.idea(), yes=False)
    with pytest.raises(Killed):
        h.do(evolve(request, effects=killing))

    plan(root, new=False)
    [branch] = branches(root) - {"main"}
    assert steps_on(root, "main") == {"init"}
    assert steps_on(root, f"main..{branch}") == {"1"}


def test_a_run_that_waits_on_a_phase_s_branch_is_resumed_there_and_nowhere_else(tmp_path: Path) -> None:
    root = project(tmp_path, {**PLANNED, "git": {"branching_strategy": "phase"}})
    plan(root)
    [branch] = branches(root) - {"main"}
    h.git(root, "switch", "-q", "main")

    with pytest.raises(ProjectError, match="the current branch is 'main'"):
        plan(root, new=False)

    h.git(root, "switch", "-q", branch)
    plan(root, new=False)
    assert steps_on(root, "main") == {"init"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("git", "expected"),
    [
        ({"phase_branch_template": "work"}, "expected {phase} or {slug} in it"),
        ({"phase_branch_template": "a..{phase}"}, "is not a name for a branch"),
        ({"phase_branch_template": "-{phase}"}, "is not a name for a branch"),
        ({"phase_branch_template": "r-{phase}", "protected_branches": ["r-01"]}, "protected branch"),
        ({"phase_branch_template": "main/{phase}"}, "cannot switch to branch 'main/01'"),
        ({"phase_branch_template": "taken-{phase}"}, "have different commits"),
    ],
)
def test_a_branch_that_cannot_be_is_an_error_and_nothing_is_lost(
    tmp_path: Path, git: dict[str, Any], expected: str
) -> None:
    root = project(tmp_path, {"git": {"branching_strategy": "phase", **git}})
    h.git(root, "switch", "-q", "-c", "taken-01")
    h.git(root, "commit", "-q", "--allow-empty", "-m", "theirs")
    h.git(root, "switch", "-q", "main")
    theirs = h.git(root, "rev-parse", "taken-01")

    end = h.do(h.request(root, h.one_phase(), given=h.idea()))

    assert (end.exit, end.outcome) == (2, "failed")
    assert expected in end.reason
    assert h.git(root, "branch", "--show-current").strip() == "main"
    assert h.git(root, "rev-parse", "taken-01") == theirs
    # With a template that works, the same run continues.
    config = {**PLANNED, "git": {"branching_strategy": "phase"}}
    (root / ".planning/config.json").write_text(json.dumps(config))
    h.git(root, "commit", "-q", "-a", "-m", "correct the template")
    plan(root, new=False)


def test_a_branch_begins_at_the_base_branch_once_that_has_all_the_work(tmp_path: Path) -> None:
    gates = {"confirm_roadmap": True, "confirm_plan": True}
    git = {"branching_strategy": "phase", "base_branch": "trunk"}
    root = project(tmp_path, {"gates": gates, "git": git})
    plan(root)
    # Before the first phase begins, the user merges the work so far; there is more on that branch.
    h.git(root, "switch", "-q", "-c", "trunk")
    h.git(root, "commit", "-q", "--allow-empty", "-m", "more")
    h.git(root, "switch", "-q", "main")
    h.answer(root, h.asked(root)[-1], "Continue")

    plan(root, new=False)

    [branch] = branches(root) - {"main", "trunk"}
    assert h.git(root, "merge-base", "trunk", branch) == h.git(root, "rev-parse", "trunk")
    assert steps_on(root, f"trunk..{branch}") == {"1"}


@pytest.mark.slow
def test_gates_are_questions_that_a_person_or_yes_answers(tmp_path: Path) -> None:
    gates = dict.fromkeys(("confirm_roadmap", "confirm_plan", "confirm_transition"), True)
    root = project(tmp_path, {"gates": gates})

    blocked = h.do(h.request(root, h.one_phase(), given=h.idea(), yes=False))
    again = h.do(h.request(root, h.one_phase(), yes=False))

    assert {blocked.exit, again.exit} == {ExitCode.QUESTION}
    [question] = set(h.asked(root))
    assert question in blocked.reason
    assert steps_on(root, "main") == {"init"}
    h.answer(root, question, "Stop")
    assert h.do(h.request(root, h.one_phase(), yes=False)).outcome == "stopped"
    assert steps_on(root, "main") == {"init"}
    # It is asked again, and with --yes it is answered by that policy.
    assert h.do(h.request(root, h.one_phase())).outcome == "done"
    reasons = [fact.data["inquiry"]["reason"].split()[0] for fact in h.facts(root, "question.asked")]
    assert [reason for reason in reasons if reason.startswith("gates.")] == [
        *["gates.confirm_roadmap"] * 2,
        "gates.confirm_plan",
        "gates.confirm_transition",
    ]
    hows = [fact.data["answer"]["how"] for fact in h.facts(root, "question.answered")]
    assert hows[1:] == ["policy"] * len(hows[1:])


@pytest.mark.slow
def test_what_the_run_itself_asks_is_no_decision_of_the_plan(tmp_path: Path) -> None:
    root = project(tmp_path, PLANNED)

    assert h.do(h.request(root, h.one_phase(question=True), given=h.idea())).outcome == "done"

    headers = {
        one["header"] for fact in h.facts(root, "question.asked") for one in fact.data["inquiry"]["questions"]
    }
    summaries = (root / ".planning/phases").glob("*/*-SUMMARY.md")
    asked = [line for path in summaries for line in path.read_text().splitlines() if "- [Asked]" in line]
    assert "Continue?" in headers
    assert len(asked) == 1
    assert "How should each greeting end?" in asked[0]


def test_the_files_of_one_phase_are_left_out_of_commits(tmp_path: Path) -> None:
    root = project(tmp_path, {**PLANNED, "phase_commit_docs": {"01": False}})

    plan(root)

    assert "ROADMAP.md" in h.git(root, "ls-files", ".planning")
    assert h.git(root, "ls-files", ".planning/phases") == ""
    assert list((root / ".planning/phases").glob("01-*/01-01-PLAN.md"))


def test_an_invalid_value_ends_the_run_before_anything_is_written(tmp_path: Path) -> None:
    root = project(tmp_path, {"git": {"branching_strategy": "trunk"}})

    with pytest.raises(ConfigError, match=r"config\.json: git\.branching_strategy: expected one of 'none'"):
        h.do(h.request(root, h.one_phase(), given=h.idea()))

    assert not h.journal(root).exists()


def test_unknown_keys_are_kept_and_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = project(tmp_path, {**PLANNED, "novel": {"x": 1}, "workflow": {"researches": True}})

    plan(root)

    said = [record.getMessage() for record in caplog.records if "unknown keys" in record.getMessage()]
    assert len(said) == 1
    assert "'workflow.researches' (did you mean 'workflow.research'?)" in said[0]
    assert json.loads((root / ".planning/config.json").read_text())["novel"] == {"x": 1}


def test_new_phase_folders_have_the_project_s_code(tmp_path: Path) -> None:
    root = project(tmp_path, {**PLANNED, "project_code": "CK"})

    plan(root)

    [folder] = (root / ".planning/phases").iterdir()
    assert folder.name.startswith("CK-01-")
    assert {path.name for path in folder.iterdir()} >= {"01-CONTEXT.md", "01-01-PLAN.md"}


@pytest.mark.slow
def test_a_phase_is_researched_before_its_questions_where_the_config_says_so(tmp_path: Path) -> None:
    workflow = {"research": True, "research_before_questions": True}
    root = project(tmp_path, {**PLANNED, "workflow": workflow})

    plan(root)

    done = [fact.step for fact in h.facts(root, "step.completed")]
    assert done == ["init", "1/early-research", "1/discuss", "1/plan"]


@pytest.mark.slow
def test_a_quick_task_has_the_branch_of_its_template(tmp_path: Path) -> None:
    root = project(tmp_path, {**PLANNED, "git": {"quick_branch_template": "quick/{num}-{slug}"}})
    h.do(h.request(root, h.one_phase(), given=h.idea(), options=Options(phases=())))

    asked = h.request(root, h.one_phase(), options=Options(only_asked=True))
    end = h.do(evolve(asked, asked={"quick/001-note-it": "Note it"}))

    assert end.exit == 0, end
    assert branches(root) == {"main", "quick/001-note-it"}
    assert steps_on(root, "main") == {"init"}
    assert steps_on(root, "main..quick/001-note-it") == {"quick"}
