"""Which projects can have work trees for their plans."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gsd_core.git import worktrees
from gsd_core.git.command import Command
from gsd_core.git.refs import branches_elsewhere
from tests.run import harness as h


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = h.repository(tmp_path / "project")
    (root / "a.txt").write_text("a\n")
    h.git(root, "add", "a.txt")
    h.git(root, "commit", "-qm", "Begin")
    return root


def reason(root: Path) -> str:
    return worktrees.reason_against(Command(root=root))


def submodule(root: Path) -> None:
    h.git(root, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},library")


def own_filter(root: Path) -> None:
    h.git(root, "config", "filter.upper.smudge", "tr a-z A-Z")
    (root / ".gitattributes").write_text("*.txt filter=upper\n")


REASONS: dict[str, Callable[[Path], object]] = {
    "git ignores .planning": lambda root: (root / ".gitignore").write_text(".planning/\n"),
    "it has submodules": submodule,
    "it is a sparse checkout": lambda root: h.git(root, "sparse-checkout", "set", "src"),
    "a.txt goes through a program": own_filter,
}


@pytest.mark.parametrize("expected", REASONS)
def test_a_project_that_would_miss_something_there_has_none(root: Path, expected: str) -> None:
    REASONS[expected](root)

    assert expected in reason(root)


def test_a_subfolder_has_none(root: Path) -> None:
    (root / "packages").mkdir()

    assert reason(root / "packages") == "the project is in a subfolder of its repository"


def test_git_has_to_merge_without_a_work_tree(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worktrees, "OLDEST", "99.0")

    assert reason(root) == "merging needs git 99.0"


def test_others_can_have_some(root: Path, tmp_path: Path) -> None:
    h.git(tmp_path, "clone", "-q", "--depth=1", f"file://{root}", "shallow")
    h.git(root, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))

    assert [reason(tmp_path / name) for name in ("project", "shallow", "linked")] == ["", "", ""]


def test_line_ends_are_those_of_the_project_s_settings(root: Path, tmp_path: Path) -> None:
    (root / ".gitattributes").write_text("* text=auto eol=crlf\n")
    (root / "b.txt").write_bytes(b"b\r\n")
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", "Use other line ends")
    tree = tmp_path / "trees" / "one"
    worktrees.enter_worktree(Command(root=root), tree)

    assert (tree / "b.txt").read_bytes() == b"b\r\n"
    assert h.git(tree, "status", "--porcelain") == ""


def test_a_work_tree_whose_folder_somebody_removed_is_made_again(root: Path, tmp_path: Path) -> None:
    tree = tmp_path / "trees" / "one"
    os.close(worktrees.enter_worktree(Command(root=root), tree))
    shutil.rmtree(tree)
    os.close(worktrees.enter_worktree(Command(root=root), tree))

    assert h.git(tree, "status", "--porcelain") == ""


def test_a_work_tree_of_a_repository_that_was_there_before_is_put_aside(root: Path, tmp_path: Path) -> None:
    tree = tmp_path / "trees" / "one"
    os.close(worktrees.enter_worktree(Command(root=root), tree))
    (tree / "half-done.txt").write_text("x\n")
    root.rename(tmp_path / "before")
    new = h.repository(root)
    h.git(new, "commit", "-q", "--allow-empty", "-m", "Begin again")

    worktrees.remove_worktrees(Command(root=new), tree.parent)
    os.close(worktrees.enter_worktree(Command(root=new), tree))

    assert (h.git(tree, "log", "--format=%s"), [*tree.glob("*.txt")]) == ("Begin again\n", [])
    [kept] = tmp_path.glob("trees-*")
    assert (kept / "half-done.txt").read_text() == "x\n"


def test_a_work_tree_that_another_git_is_making_is_waited_for(root: Path, tmp_path: Path) -> None:
    h.git(root, "worktree", "add", "-q", "--detach", str(tmp_path / "other"))
    common = root / ".git/worktrees/other/commondir"
    content = common.read_text()
    # As git leaves it for a moment.
    common.write_text("")
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        common.write_text(content)

    assert branches_elsewhere(Command(root=root, sleep=sleep)) == frozenset()
    assert len(waited) == 1
