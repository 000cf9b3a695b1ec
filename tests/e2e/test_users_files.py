"""The user's files and branch, seen through the command line: what is printed, and what stays."""

from __future__ import annotations

import pytest

from tests.e2e.project import EXAMPLE, FAKE, Project, defects, no_problems
from tests.run.harness import git

pytestmark = pytest.mark.slow

RUN = ("run", EXAMPLE, *FAKE, "--yes")


def test_the_copy_of_what_a_plan_may_overwrite_is_named_in_the_output(project: Project) -> None:
    project.create()
    project.environment = no_problems()
    (project.root / "greeter").mkdir()
    (project.root / "greeter" / "__init__.py").write_text("the user's text\n")

    done = project.gsd(*RUN, "--workspace", "inplace")

    assert done.exit == 0, done.err
    [kept] = project.facts("files.kept")
    assert f"{kept.data['ref']}: greeter/__init__.py" in done.out + done.err
    assert git(project.root, "show", f"{kept.data['ref']}:greeter/__init__.py") == "the user's text\n"
    assert list(defects(project)) == []


def test_another_branch_ends_a_run_before_anything_is_spent(project: Project) -> None:
    project.create()
    project.environment = no_problems(QUESTION="1")
    git(project.root, "commit", "-q", "--allow-empty", "-m", "base")
    first = project.gsd("run", EXAMPLE, *FAKE, "--no-input")
    assert first.exit == 3, first.err
    git(project.root, "switch", "-q", "-c", "other")
    before = len(project.facts())

    refused = project.gsd("resume", *FAKE[:2], "--yes")

    assert refused.exit == 2
    assert "git switch main" in refused.err
    assert len(project.facts()) == before
    accepted = project.gsd("resume", *FAKE[:2], "--yes", "--accept-branch")
    assert accepted.exit == 0, accepted.err
    assert list(defects(project)) == []


def test_a_lock_of_a_running_git_is_waited_for_and_never_removed(project: Project) -> None:
    project.create()
    project.environment = no_problems()
    lock = project.root / ".git" / "index.lock"
    lock.touch()

    with lock.open():
        held = project.gsd(*RUN)
        assert lock.exists()
    done = project.gsd(*RUN)

    assert held.exit == 2
    assert "index.lock" in held.out
    assert done.exit == 0, done.err
    assert len(project.facts("agent.opened")) == len(
        {f"{f.step} {f.data['key']}" for f in project.facts("agent.opened")}
    )
    assert list(defects(project)) == []
