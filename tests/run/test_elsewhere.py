"""A plan that is executed in another work tree: the project gets its commits, and nobody's files change."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gsd_core import AgentHost, AgentResult, AgentTask, Answer, Inquiry, implements
from gsd_core.hookspecs import gsd_answer
from gsd_core.run.loop import capacity_of
from gsd_core.run.runtime import RunRequest
from tests.run.test_crash import Crash, Fuse, with_crash

from . import harness as h

ELSEWHERE = {"workspace": ["worktree", "inplace"]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return h.repository(tmp_path / "project")


def request(root: Path, agent: object, *, new: bool = True, **run: Any) -> RunRequest:
    return h.request(root, agent, given=h.idea() if new else None, run={**ELSEWHERE, **run})


def trees(root: Path) -> list[str]:
    """Return the work trees of the repository besides the project."""
    lines = h.git(root, "worktree", "list", "--porcelain").splitlines()
    return [line for line in lines if line.startswith("worktree ")][1:]


def write_a_readme(project: Path) -> None:
    """Commit a README, as a person does."""
    (project / "README.md").write_text("# A person's\n")
    h.git(project, "add", "README.md")
    h.git(project, "commit", "-qm", "Write a README")


def at_work(root: Path, act: Callable[[Path], object]) -> h.Watched:
    """Return an agent beside which a person does something in the project, once a plan is executed."""
    done: list[str] = []

    async def before(task: AgentTask, _: AgentHost) -> AgentResult | None:
        if task.role == "executor" and not done:
            done.append(task.step)
            act(root)
        return None

    return h.Watched(h.one_phase(), before)


@pytest.mark.slow
def test_the_project_gets_the_commits_of_a_plan_that_was_executed_in_another_work_tree(root: Path) -> None:
    agent = h.Watched(h.one_phase())
    end = h.do(request(root, agent))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    [tree] = {task.tree for task in agent.of("executor")}
    assert not tree.is_relative_to(root)
    assert {task.tree for task in agent.of("planner")} == {root}
    commits = [fact.data["commit"] for fact in h.facts(root, "task.committed")]
    history = h.git(root, "log", "--format=%H").split()
    assert len(commits) == 2
    assert {*commits} <= {*history}
    assert h.git(root, "status", "--porcelain") == ""
    assert [fact.data["tree"] for fact in h.facts(root, "attempt.started") if "tree" in fact.data] == [
        str(tree)
    ]
    assert (trees(root), tree.exists()) == ([], False)


def slots(root: Path, *, is_confined: bool = True, **run: Any) -> int:
    settings = h.request(root, h.one_phase(), run=run).settings
    return capacity_of(settings, {}, root, is_confined=is_confined)


def test_plans_run_side_by_side_only_where_they_have_work_trees(root: Path) -> None:
    (root / "package").mkdir()

    assert (slots(root), slots(root, max_parallel=5)) == (3, 5)
    assert slots(root, workspace=["inplace"]) == 1
    assert slots(root / "package") == 1
    assert slots(root, workflow="commands") == 1
    assert slots(root, commit_docs=False) == 1
    assert slots(root, is_confined=False) == 1
    assert slots(root, is_confined=False, workspace=["worktree"]) == 3


@pytest.mark.slow
def test_in_the_projects_own_folder_nothing_is_recorded_about_a_tree(root: Path) -> None:
    h.do(h.request(root, h.one_phase(), given=h.idea()))

    assert [fact for fact in h.facts(root, "attempt.started") if "tree" in fact.data] == []


@pytest.mark.slow
def test_what_a_person_edits_meanwhile_stays_as_it_is_and_is_in_no_commit(root: Path) -> None:
    def edit(project: Path) -> None:
        (project / "notes.txt").write_text("mine\n")

    end = h.do(request(root, at_work(root, edit)))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert (root / "notes.txt").read_text() == "mine\n"
    assert h.git(root, "status", "--porcelain").split() == ["??", "notes.txt"]
    assert "notes.txt" not in h.git(root, "log", "--name-only", "--format=")


@pytest.mark.slow
def test_a_file_in_the_way_stays_and_the_work_is_taken_over_once_it_is_gone(root: Path) -> None:
    def in_the_way(project: Path) -> None:
        (project / "README.md").write_text("a person's\n")

    agent = at_work(root, in_the_way)
    end = h.do(request(root, agent))

    assert (end.outcome, end.exit) == ("blocked", 3), end.reason
    [asked] = h.facts(root, "question.asked")
    assert "README.md" in str(asked.data)
    assert (root / "README.md").read_text() == "a person's\n"
    paid = len(agent.tasks)
    (root / "README.md").unlink()
    end = h.do(request(root, agent, new=False))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert [task.role for task in agent.tasks[paid:]].count("executor") == 0
    assert (root / "README.md").read_text() != "a person's\n"
    assert len(h.facts(root, "question.withdrawn")) == 1


@pytest.mark.slow
def test_a_file_that_git_ignores_is_not_overwritten(root: Path) -> None:
    def in_the_way(project: Path) -> None:
        (project / ".gitignore").write_text("README.md\n.gitignore\n")
        (project / "README.md").write_text("a person's\n")

    end = h.do(request(root, at_work(root, in_the_way)))

    assert (end.outcome, end.exit) == ("blocked", 3), end.reason
    assert (root / "README.md").read_text() == "a person's\n"


@pytest.mark.slow
def test_the_question_about_a_file_in_the_way_can_be_answered_while_the_run_waits(root: Path) -> None:
    def in_the_way(project: Path) -> None:
        (project / "README.md").write_text("a person's\n")

    class Person:
        """Commits the file, and says so."""

        @implements(gsd_answer)
        async def answer(self, inquiry: Inquiry) -> tuple[Answer, ...] | None:
            [question] = inquiry.questions
            if question.header != "In the way":
                return None
            h.git(root, "add", "README.md")
            h.git(root, "commit", "-qm", "Write a README")
            return (Answer(question=question.id, chosen=("Go on",)),)

    asked = h.request(root, at_work(root, in_the_way), given=h.idea(), run=ELSEWHERE, person=Person())
    end = h.do(asked)

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert "Write a README" in h.git(root, "log", "--format=%s")
    assert (h.git(root, "status", "--porcelain"), trees(root)) == ("", [])


@pytest.mark.slow
def test_a_branch_that_a_person_switches_to_meanwhile_is_not_moved(root: Path) -> None:
    h.git(root, "commit", "-q", "--allow-empty", "-m", "Begin")
    agent = at_work(root, lambda project: h.git(project, "switch", "-qc", "other"))
    end = h.do(request(root, agent))

    assert end.exit != 0
    assert "git switch main" in end.reason
    assert h.git(root, "rev-parse", "other") == h.git(root, "rev-parse", "main")
    paid = len(agent.tasks)
    h.git(root, "switch", "-q", "main")
    end = h.do(request(root, agent, new=False))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert [task.role for task in agent.tasks[paid:]].count("executor") == 0


@pytest.mark.slow
def test_a_plan_builds_on_what_a_person_lets_it_commit_first(root: Path) -> None:
    (root / "README.md").write_text("# A person's\n")
    seen: list[str] = []

    async def look(task: AgentTask, _: AgentHost) -> AgentResult | None:
        if task.role == "executor" and not seen:
            seen.append((task.tree / "README.md").read_text())
        return None

    end = h.do(request(root, h.Watched(h.one_phase(), look), allow_dirty=True))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert seen == ["# A person's\n"]
    assert "01-01/before" in [task for _, task in h.trailed(root)]
    assert h.git(root, "status", "--porcelain") == ""


@pytest.mark.slow
def test_a_work_tree_is_set_up_and_has_what_git_ignores(root: Path) -> None:
    (root / ".git/info/exclude").write_text(".env*\nnode_modules/\n")
    (root / ".env").write_text("DATABASE=test\n")
    (root / "node_modules/left").mkdir(parents=True)
    seen: list[list[str]] = []

    async def look(task: AgentTask, _: AgentHost) -> AgentResult | None:
        if task.role == "executor":
            texts = [(task.tree / name).read_text() for name in (".env", ".env.local")]
            seen.append([*texts, *(path.name for path in (task.tree / "node_modules").iterdir())])
        return None

    setup = "echo port 300$GSD_SLOT >> .env.local"  # nobody is asked: it is the user's own command
    end = h.do(request(root, h.Watched(h.one_phase(), look), workspace_setup=setup))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert seen
    assert all(one == ["DATABASE=test\n", "port 3001\n", "left"] for one in seen)
    assert not (root / ".env.local").exists()
    assert trees(root) == []


@pytest.mark.slow
def test_nothing_is_paid_for_a_work_tree_that_cannot_be_set_up(root: Path) -> None:
    agent = h.Watched(h.one_phase())
    end = h.do(request(root, agent, workspace_setup="echo no network; exit 3"))

    assert (end.outcome, end.exit) == ("failed", 1), end.reason
    assert "which sets up a work tree, failed: exit code 3: no network" in end.reason
    assert agent.of("executor") == []


@pytest.mark.slow
def test_a_commit_of_a_person_meanwhile_is_merged(root: Path) -> None:
    def commit(project: Path) -> None:
        (project / "notes.txt").write_text("mine\n")
        h.git(project, "add", "notes.txt")
        h.git(project, "commit", "-qm", "Add notes")

    agent = at_work(root, commit)
    end = h.do(request(root, agent))
    commits = [fact.data["commit"] for fact in h.facts(root, "task.committed")]

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    shown = "--format=%P %(trailers:key=GSD-Task,valueonly)"
    merge = h.git(root, "log", "--merges", shown).splitlines()[0]
    assert merge.split()[1:] == [commits[-1], "01-01/merge"]
    assert "Add notes" in h.git(root, "log", "--format=%s", merge.split()[0])
    assert (root / "notes.txt").read_text() == "mine\n"
    assert h.git(root, "status", "--porcelain") == ""
    assert trees(root) == []


@pytest.mark.slow
def test_a_person_who_changed_the_same_lines_gets_the_work_merged_by_one_more_task(root: Path) -> None:
    agent = at_work(root, write_a_readme)
    end = h.do(request(root, agent))

    [failed] = h.facts(root, "merge.failed")
    assert failed.data["paths"] == ["README.md"]
    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert "Write a README" in h.git(root, "log", "--format=%s")
    assert "<<<<<<<" not in (root / "README.md").read_text()
    assert (h.git(root, "status", "--porcelain"), trees(root)) == ("", [])


def manifest(**dependencies: str) -> str:
    """Return a package.json in which two of the sections can be changed without a conflict."""
    sections: dict[str, Any] = {
        "dependencies": {},
        "name": "shop",
        "version": "1.0.0",
        "private": True,
        "devDependencies": {},
    }
    for name, section in dependencies.items():
        sections[section] = {name: f"file:libs/{name}"}
    return json.dumps(sections, indent=2)


def lock(tree: Path) -> str:
    """Make the lock file anew, and return it."""
    command = ["npm", "install", "--package-lock-only", "--ignore-scripts", "--offline"]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    return (tree / "package-lock.json").read_text()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("npm"), reason="npm is not installed")
def test_a_lock_file_that_both_changed_is_made_anew_and_not_merged_by_line(root: Path) -> None:
    for name in ("left", "right"):
        (root / "libs" / name).mkdir(parents=True)
        (root / "libs" / name / "package.json").write_text(f'{{"name": "{name}", "version": "1.0.0"}}')
    (root / "package.json").write_text(manifest())
    lock(root)
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", "Begin")
    done: list[str] = []

    async def both(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "executor" and not done:
            done.append(task.step)
            (root / "package.json").write_text(manifest(left="dependencies"))
            lock(root)
            h.git(root, "commit", "-qam", "Use left")
            await h.write(task, host, "package.json", manifest(right="devDependencies"))
            await h.write(task, host, "package-lock.json", lock(task.tree))
        return None

    agent = h.Watched(h.one_phase(), both)
    end = h.do(request(root, agent))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert h.facts(root, "merge.failed") == []
    merged = json.loads((root / "package-lock.json").read_text())["packages"]
    assert {"node_modules/left", "node_modules/right"} <= {*merged}
    assert len(agent.of("executor")) == 1
    assert (h.git(root, "status", "--porcelain"), trees(root)) == ("", [])


@pytest.mark.slow
@pytest.mark.parametrize("then", ["in place", "in a new tree"])
def test_a_task_that_was_committed_in_a_tree_counts_only_where_its_commit_is(root: Path, then: str) -> None:
    fuse = Fuse()
    with pytest.raises(Crash):
        h.do(with_crash(request(root, h.one_phase()), Fuse(limit=after_first_task(root.parent, fuse))))
    [tree] = trees(root)
    if then == "in a new tree":
        shutil.rmtree(tree.removeprefix("worktree "))
    again = request(root, h.one_phase(), new=False)
    end = h.do(again if then == "in a new tree" else h.request(root, h.one_phase()))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    commits = [fact.data["commit"] for fact in h.facts(root, "task.committed")]
    assert len(commits) == 2
    assert {*commits} <= {*h.git(root, "log", "--format=%H").split()}


def after_first_task(base: Path, fuse: Fuse) -> int:
    """Return the number of the effect after which the first task is recorded as committed."""
    h.do(with_crash(request(h.repository(base / "reference"), h.one_phase()), fuse))
    return next(number for number, point in enumerate(fuse.points) if "task.committed" in point) + 1


@pytest.mark.slow
def test_a_crash_at_some_points_ends_with_each_task_committed_once(tmp_path: Path) -> None:
    fuse = Fuse()
    reference = h.repository(tmp_path / "reference")
    h.do(with_crash(request(reference, h.one_phase()), fuse))
    expected = h.trailed(reference)
    in_step = [number for number, point in enumerate(fuse.points) if "1/execute" in point]
    moves = [number for number, point in enumerate(fuse.points) if "fast-forward" in point]
    assert len(moves) == 2  # before and after

    for number in [*in_step[1::4], *moves]:
        project = h.repository(tmp_path / str(number))
        with pytest.raises(Crash):
            h.do(with_crash(request(project, h.one_phase()), Fuse(limit=number)))
        end = h.do(request(project, h.one_phase(), new=False))

        assert (end.outcome, end.exit) == ("done", 0), (fuse.points[number], end.reason)
        assert h.trailed(project) == expected, fuse.points[number]
        assert (h.git(project, "status", "--porcelain"), trees(project)) == ("", [])


@pytest.mark.slow
def test_a_file_that_no_task_names_is_kept_in_a_ref_and_the_work_tree_is_removed(root: Path) -> None:
    async def litter(task: AgentTask, _: AgentHost) -> AgentResult | None:
        if task.role == "executor":
            (task.tree / "scratch.txt").write_text("a trial\n")
        return None

    end = h.do(request(root, h.Watched(h.one_phase(), litter)))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    [left] = h.facts(root, "files.left")
    assert left.data["paths"] == ["scratch.txt"]
    assert h.git(root, "show", f"{left.data['kept']}:scratch.txt") == "a trial\n"
    assert not (root / "scratch.txt").exists()
    assert trees(root) == []


@pytest.mark.slow
def test_a_file_with_a_secret_that_no_task_names_stays_in_the_work_tree_and_in_no_ref(root: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2

    async def litter(task: AgentTask, _: AgentHost) -> AgentResult | None:
        if task.role == "executor":
            (task.tree / "trial.txt").write_text(f"TOKEN={secret}\n")
        return None

    end = h.do(request(root, h.Watched(h.one_phase(), litter)))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    [tree] = [Path(line.removeprefix("worktree ")) for line in trees(root)]
    assert secret in (tree / "trial.txt").read_text()
    objects = h.git(root, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    blobs = [line.split()[0] for line in objects.splitlines() if line.endswith("blob")]
    assert not [blob for blob in blobs if secret in h.git(root, "cat-file", "blob", blob)]


@pytest.mark.slow
def test_a_crash_at_any_point_of_a_merge_with_a_conflict_ends_with_the_same_commits(tmp_path: Path) -> None:
    fuse = Fuse()
    reference = h.repository(tmp_path / "reference")
    h.do(with_crash(request(reference, at_work(reference, write_a_readme)), fuse))
    expected = h.trailed(reference)
    first = next(number for number, point in enumerate(fuse.points) if "merge.failed" in point)
    last = next(
        number for number, point in enumerate(fuse.points) if "after step.completed 1/execute" in point
    )
    assert "before merge" in fuse.points[first:last]

    for number in range(first, last, 6):
        project = h.repository(tmp_path / str(number))
        agent = at_work(project, write_a_readme)
        with pytest.raises(Crash):
            h.do(with_crash(request(project, agent), Fuse(limit=number)))
        end = h.do(request(project, agent, new=False))

        assert (end.outcome, end.exit) == ("done", 0), (fuse.points[number], end.reason)
        assert sorted(h.trailed(project)) == sorted(expected), fuse.points[number]
        assert (h.git(project, "status", "--porcelain"), trees(project)) == ("", []), fuse.points[number]
        assert len(h.facts(project, "merge.failed")) == 1
