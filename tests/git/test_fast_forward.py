"""A branch and its files move forward, and nothing that is not committed is overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_core.git import GitError, refs
from gsd_core.git.command import Command
from tests.run import harness as h


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a project whose branch ``next`` has a changed file and a new one."""
    root = h.repository(tmp_path / "project")
    (root / "old.txt").write_text("old\n")
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", "Begin")
    h.git(root, "switch", "-qc", "next")
    (root / "old.txt").write_text("changed\n")
    (root / "new.txt").write_text("new\n")
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", "Go on")
    h.git(root, "switch", "-q", "main")
    return root


def tip(root: Path, name: str) -> str:
    return h.git(root, "rev-parse", name).strip()


def test_files_that_a_machine_which_died_has_written_already_are_not_in_the_way(root: Path) -> None:
    (root / "old.txt").write_text("changed\n")
    (root / "new.txt").write_text("new\n")
    git, commit = Command(root=root), tip(root, "next")

    assert refs.in_the_way(git, commit) == ()
    refs.fast_forward(git, commit)

    assert tip(root, "main") == commit
    assert h.git(root, "status", "--porcelain") == ""
    assert [(root / name).read_text() for name in ("old.txt", "new.txt")] == ["changed\n", "new\n"]


@pytest.mark.parametrize("name", ["old.txt", "new.txt"])
def test_what_a_person_wrote_is_in_the_way_and_nothing_is_changed(root: Path, name: str) -> None:
    (root / "old.txt").write_text("changed\n")
    (root / "new.txt").write_text("new\n")
    (root / name).write_text("mine\n")
    before = tip(root, "main"), h.git(root, "status", "--porcelain")
    git, commit = Command(root=root), tip(root, "next")

    assert refs.in_the_way(git, commit) == (name,)
    with pytest.raises(GitError):
        refs.fast_forward(git, commit)

    assert (tip(root, "main"), h.git(root, "status", "--porcelain")) == before
    assert (root / name).read_text() == "mine\n"


def test_a_branch_with_other_commits_keeps_its_files(root: Path) -> None:
    h.git(root, "commit", "-q", "--allow-empty", "-m", "Mine")
    (root / "new.txt").write_text("new\n")

    with pytest.raises(GitError):
        refs.fast_forward(Command(root=root), tip(root, "next"))

    assert (root / "new.txt").read_text() == "new\n"
