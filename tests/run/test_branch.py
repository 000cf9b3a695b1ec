"""The branch and the state of the repository decide whether a run may start, before anything is spent."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gsd_core.errors import GsdError, ProjectError
from gsd_core.journal.store import Journal
from gsd_core.machine.state import Options

from . import harness as h


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project whose run has done the first of two phases and waits for an answer in the second."""
    root = h.repository(tmp_path / "project")
    h.git(root, "commit", "-q", "--allow-empty", "-m", "base")
    end = h.do(h.request(root, h.one_phase(question=True), given=h.idea(), yes=False))
    assert end.outcome == "blocked"
    return root


def refused(root: Path) -> GsdError:
    """Return the error that refuses to resume, and check that no agent was called and no fact recorded."""
    agent, before = h.Watched(h.one_phase()), len(h.facts(root))
    with pytest.raises(ProjectError) as caught:
        h.do(h.request(root, agent))
    assert (agent.tasks, len(h.facts(root))) == ([], before)
    return caught.value


CHANGES: dict[str, tuple[list[list[str]], str, str]] = {
    "another branch": ([["switch", "-q", "-c", "other"]], "'other'", "git switch main"),
    "a detached head": ([["switch", "-q", "--detach"]], "detached", "git switch main"),
    "a renamed branch": ([["branch", "-m", "trunk"]], "'trunk'", "--accept-branch"),
    "a bisect": ([["bisect", "start"]], "bisect", "git bisect reset"),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_run_is_not_resumed_elsewhere(root: Path, change: str) -> None:
    commands, named, hint = CHANGES[change]
    for command in commands:
        h.git(root, *command)

    error = refused(root)

    assert named in str(error)
    assert hint in error.hint


@pytest.mark.slow
def test_another_branch_can_be_accepted_and_is_the_run_s_from_then_on(root: Path) -> None:
    h.git(root, "switch", "-q", "-c", "other")

    end = h.do(h.request(root, h.one_phase(), run={"accept_branch": True}, options=Options()))

    assert end.outcome == "done", end
    assert h.facts(root, "run.opened")[-1].data["branch"] == "other"
    assert h.git(root, "rev-parse", "main") != h.git(root, "rev-parse", "other")


@pytest.mark.slow
def test_a_run_may_begin_on_a_detached_head_and_stay_there(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.git(root, "commit", "-q", "--allow-empty", "-m", "base")
    h.git(root, "switch", "-q", "--detach")
    h.do(h.request(root, h.one_phase(question=True), given=h.idea(), yes=False))

    assert h.do(h.request(root, h.one_phase())).outcome == "done"


@pytest.mark.slow
def test_a_finished_run_does_not_bind_the_next_one_to_its_branch(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(), given=h.idea()))
    h.git(root, "switch", "-q", "-c", "next")

    assert h.do(h.request(root, h.one_phase())).outcome == "done"


@pytest.mark.slow
def test_a_journal_of_an_earlier_version_has_no_branch_and_is_resumed_as_before(root: Path) -> None:
    with closing(sqlite3.connect(h.journal(root))) as database:
        without = "UPDATE event SET data = json_remove(data, '$.branch') WHERE kind = 'run.opened'"
        assert database.execute(without).rowcount == 1
        database.execute("DROP TABLE kept")
        database.commit()
    h.git(root, "switch", "-q", "-c", "other")

    assert h.do(h.request(root, h.one_phase())).outcome == "done"


def test_a_new_run_does_not_begin_in_the_middle_of_a_merge(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.git(root, "commit", "-q", "--allow-empty", "-m", "base")
    (root / ".git/MERGE_HEAD").write_text(h.git(root, "rev-parse", "HEAD"))

    with pytest.raises(ProjectError) as caught:
        h.do(h.request(root, h.one_phase(), given=h.idea()))

    assert "git merge --abort" in caught.value.hint
    assert not (root / ".git/gsd").exists()


MISSING: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "one": (lambda root: (root / ".planning/ROADMAP.md").unlink(), [".planning/ROADMAP.md"]),
    "staged": (lambda root: h.git(root, "rm", "-q", ".planning/STATE.md"), [".planning/STATE.md"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("which", MISSING)
def test_planning_files_that_are_missing_are_not_made_again(root: Path, which: str) -> None:
    remove, paths = MISSING[which]
    remove(root)

    error = refused(root)

    assert all(path in str(error) for path in paths)
    command = error.hint.partition(";")[0].split()
    h.git(root, *command[1:])
    assert h.do(h.request(root, h.one_phase())).outcome == "done"


@pytest.mark.slow
def test_a_worktree_has_a_run_of_its_own(root: Path) -> None:
    h.git(root, "worktree", "add", "-q", "../tree", "-b", "side", "main~0")
    tree = root.parent / "tree"

    end = h.do(h.request(tree, h.one_phase(), given=None))

    assert end.outcome == "done", end
    own = root / ".git/worktrees/tree/gsd/journal.db"
    with Journal.open(own, clock=h.now, writable=False) as journal:
        assert {fact.run for fact in journal.events()} == {end.run}
    assert end.run not in {fact.run for fact in h.facts(root)}
    assert h.do(h.request(root, h.one_phase())).outcome == "done"
