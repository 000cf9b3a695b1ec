"""Uncommitted changes are found, whatever the files are called and wherever the project is."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gsd_core.errors import ProjectError
from gsd_core.git import Git, GitError, git_common_dir

Run = Callable[..., str]


@pytest.fixture
def base(root: Path, sh: Run) -> Path:
    """A repository with one commit of ``a`` and ``in/b``."""
    (root / "in").mkdir()
    (root / "a").write_text("1\n")
    (root / "in/b").write_text("1\n")
    sh("add", "-A")
    sh("commit", "-qm", "base")
    return root


def test_tracked_and_untracked_changes_are_distinguished(base: Path, sh: Run) -> None:
    (base / "a").unlink()
    (base / "in/b").write_text("2\n")
    (base / 'we"ird\nnäme').touch()
    (base / "new").touch()
    sh("add", "new")
    git = Git(base)

    assert asyncio.run(git.dirty()) == ("a", "in/b", "new")
    assert asyncio.run(git.untracked()) == ('we"ird\nnäme',)


def test_changes_do_not_include_what_was_dirty_at_the_start(base: Path) -> None:
    (base / "a").write_text("theirs\n")
    git = Git(base)
    before = asyncio.run(git.dirty())
    (base / "in/b").write_text("ours\n")
    (base / "c").touch()

    assert asyncio.run(git.changed(before)) == ("c", "in/b")


def test_a_clean_repository_has_no_changes(base: Path) -> None:
    assert asyncio.run(Git(base).changed()) == ()


def test_ignored_files_are_not_listed(base: Path) -> None:
    (base / ".gitignore").write_text("build/\n")
    (base / "build").mkdir()
    (base / "build/x").touch()
    git = Git(base)

    assert asyncio.run(git.changed()) == (".gitignore",)
    assert asyncio.run(git.is_ignored("build/x"))
    assert not asyncio.run(git.is_ignored("a"))
    assert not asyncio.run(git.is_ignored(":(glob)buil?/*"))
    assert not asyncio.run(git.is_ignored("buil?/x"))


def test_a_project_in_a_subfolder_sees_only_its_own_files(base: Path, sh: Run) -> None:
    (base / "a").write_text("outside\n")
    (base / "in/b").write_text("2\n")
    (base / "in/new").touch()
    git = Git(base / "in")

    assert asyncio.run(git.changed()) == ("b", "new")
    sha = asyncio.run(git.commit(["b", "new"], "x", trailers={"GSD-Run": "r"}, verify=False))
    assert asyncio.run(git.paths_of([sha])) == ("b", "new")
    assert asyncio.run(git.content_of(sha)).created == ("new",)
    assert asyncio.run(git.order(".")) == {"b": 2, "new": 2}
    assert sh("status", "--porcelain") == " M a"


def test_a_worktree_works_like_a_repository_and_shares_its_directory(base: Path, sh: Run) -> None:
    sh("worktree", "add", "-q", "../tree", "-b", "side")
    git = Git(base.parent / "tree")
    (base.parent / "tree/a").write_text("2\n")

    sha = asyncio.run(git.commit(["a"], "x", trailers={"GSD-Run": "r"}, verify=False))

    assert (base.parent / "tree/.git").is_file()
    assert sha == sh("rev-parse", "side")
    assert asyncio.run(git.common_dir()) == (base / ".git").resolve()
    assert git_common_dir(base.parent / "tree") == git_common_dir(base)


def test_a_folder_without_a_repository_is_recognized_and_can_become_one(tmp_path: Path) -> None:
    git = Git(tmp_path)

    assert not asyncio.run(git.is_repository())
    assert git_common_dir(tmp_path) is None
    asyncio.run(git.init())
    assert asyncio.run(git.is_repository())
    assert asyncio.run(git.head()) is None


def test_initializing_a_repository_twice_changes_nothing(base: Path, sh: Run) -> None:
    head = sh("rev-parse", "HEAD")

    asyncio.run(Git(base).init())

    assert asyncio.run(Git(base).head()) == head


def test_the_identity_is_the_configured_one(base: Path, sh: Run) -> None:
    assert asyncio.run(Git(base).identity()) == "Ada <ada@example.org>"
    sh("config", "--unset", "user.email")
    assert asyncio.run(Git(base).identity()) is None


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="nowhere"):
        asyncio.run(Git(tmp_path / "nowhere").head())


def test_a_missing_git_is_reported(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(base))

    with pytest.raises(ProjectError, match="git is not installed"):
        asyncio.run(Git(base).head())


def test_an_error_contains_the_output_of_git(base: Path) -> None:
    with pytest.raises(GitError, match="nonsense") as caught:
        asyncio.run(Git(base).content_of("nonsense"))

    assert caught.value.exit == 128


def test_the_processes_of_git_are_marked(base: Path) -> None:
    hook = base / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\nprintf %s "$GSD_RUN" > seen\n')
    hook.chmod(0o755)
    (base / "a").write_text("2\n")
    git = Git(base, environment={"GSD_RUN": "r-7"})

    asyncio.run(git.commit(["a"], "x", trailers={}, verify=True))

    assert (base / "seen").read_text() == "r-7"


def test_the_users_git_configuration_does_not_change_the_results(base: Path, sh: Run) -> None:
    for name, value in (
        ("status.showUntrackedFiles", "no"),
        ("status.relativePaths", "false"),
        ("core.quotePath", "true"),
        ("log.showSignature", "true"),
        ("trailer.separators", "#"),
        ("commit.cleanup", "strip"),
        ("commit.verbose", "true"),
        ("diff.external", "false"),
        ("color.ui", "always"),
        ("core.pager", "false"),
        ("core.editor", "false"),
    ):
        sh("config", name, value)
    (base / "ü").touch()
    git = Git(base)

    assert asyncio.run(git.changed()) == ("ü",)
    sha = asyncio.run(git.commit(["ü"], "# x", trailers={"GSD-Run": "r"}, verify=True))
    assert asyncio.run(git.find({"GSD-Run": "r"})) == sha
    assert [commit.subject for commit in asyncio.run(git.trailed("r"))] == ["# x"]
    assert asyncio.run(git.paths_of([sha])) == ("ü",)


def test_changes_inside_a_submodule_do_not_count(base: Path, sh: Run, tmp_path: Path) -> None:
    sub = tmp_path / "sub"
    subprocess.run(["git", "clone", "-q", str(base), str(sub)], check=True)
    sh("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(sub), "mod")
    sh("commit", "-qm", "with submodule")
    (base / "mod/a").write_text("dirt\n")

    assert asyncio.run(Git(base).changed()) == ()


def test_tracked_files_are_listed_below_the_project_in_order(base: Path, sh: Run) -> None:
    (base / 'in/we"ird\nnäme').touch()
    (base / "in/untracked").touch()
    sh("add", 'in/we"ird\nnäme')

    assert asyncio.run(Git(base).files(10)) == ("a", "in/b", 'in/we"ird\nnäme')
    assert asyncio.run(Git(base).files(1)) == ("a",)
    assert asyncio.run(Git(base / "in").files(10)) == ("b", 'we"ird\nnäme')


@pytest.mark.parametrize(
    ("commands", "operation"),
    [
        ([["merge", "-q", "side"]], "merge"),
        ([["rebase", "-q", "side"]], "rebase"),
        ([["rebase", "-q", "--apply", "side"]], "rebase"),
        ([["cherry-pick", "side"]], "cherry-pick"),
        ([["revert", "--no-edit", "HEAD~1"]], "revert"),
        ([["bisect", "start"]], "bisect"),
        ([["merge", "-q", "side"], ["merge", "--abort"]], ""),
        ([], ""),
    ],
)
def test_a_command_of_several_steps_is_noticed(
    base: Path, sh: Run, commands: list[list[str]], operation: str
) -> None:
    sh("checkout", "-q", "-b", "side")
    (base / "a").write_text("theirs\n")
    sh("commit", "-qam", "theirs")
    sh("checkout", "-q", "-")
    for text in ("ours\n", "ours again\n"):
        (base / "a").write_text(text)
        sh("commit", "-qam", text.strip())
    for command in commands:
        subprocess.run(["git", *command], cwd=base, check=False, capture_output=True)

    assert asyncio.run(Git(base).operation()) == operation
    assert any(entry.unmerged for entry in asyncio.run(Git(base).entries())) == (
        operation not in ("", "bisect")
    )


def test_the_branch_is_known_before_its_first_commit_and_on_a_detached_head(root: Path, sh: Run) -> None:
    sh("checkout", "-q", "-b", "topic/x")
    git = Git(root)
    assert asyncio.run(git.branch()) == "topic/x"
    assert not asyncio.run(git.has_branch("topic/x"))
    sh("commit", "-q", "--allow-empty", "-m", "base")
    assert asyncio.run(git.has_branch("topic/x"))
    sh("checkout", "-q", "--detach")
    assert asyncio.run(git.branch()) == ""


@pytest.mark.parametrize(
    "commands",
    [
        [["switch", "-qc", "topic/x-1.0+2"]],
        [["switch", "-qc", "thème"]],
        [["switch", "-q", "--detach"]],
        [["branch", "other"], ["pack-refs", "--all"]],
        [
            ["branch", "other"],
            ["symbolic-ref", "refs/heads/alias", "refs/heads/other"],
            ["switch", "-q", "alias"],
        ],
        [["switch", "-q", "--orphan", "empty"]],
        [["worktree", "add", "-q", "--detach", "../elsewhere"]],
    ],
)
def test_head_and_branch_are_those_that_git_names(base: Path, sh: Run, commands: list[list[str]]) -> None:
    git = Git(base)
    asyncio.run(git.head())
    for command in commands:
        sh(*command)
    for name in (base, base.parent / "elsewhere"):
        if name.exists():
            head, branch = (
                subprocess.run(
                    ["git", *command], cwd=name, capture_output=True, text=True, check=False
                ).stdout
                for command in (
                    ["rev-parse", "--verify", "-q", "HEAD"],
                    ["symbolic-ref", "-q", "--short", "HEAD"],
                )
            )
            there = git.at(name)
            assert asyncio.run(there.head()) == (head.strip() or None)
            assert asyncio.run(there.branch()) == branch.strip()


def test_a_head_that_is_a_link_to_a_branch_is_on_that_branch(base: Path, sh: Run) -> None:
    branch = sh("symbolic-ref", "HEAD")
    (base / ".git/HEAD").unlink()
    (base / ".git/HEAD").symlink_to(branch)

    assert f"refs/heads/{asyncio.run(Git(base).branch())}" == branch


def test_a_head_without_its_commit_is_not_taken_for_one(base: Path, sh: Run) -> None:
    sh("switch", "-q", "--detach")
    (base / ".git/HEAD").write_text("1" * 40 + "\n")
    git = Git(base)

    assert asyncio.run(git.head()) is None
    assert asyncio.run(git.read_refs()).head == ""
