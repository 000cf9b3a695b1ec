"""Projects in subfolders of a larger repository: each sees and changes only what is its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gsd_core.git import Git, GitError, data_directory
from gsd_core.git.command import Command
from gsd_core.git.commit import commit as commit_now
from gsd_core.git.repository import one_writer, top

Run = Callable[..., str]
STEP = {"GSD-Run": "r-a", "GSD-Step": "1/execute/01-01", "GSD-Task": "01-01/1"}


@pytest.fixture
def folders(root: Path, sh: Run) -> tuple[Path, Path]:
    """The folders of two projects in a repository with one commit."""
    found = (root / "packages" / "a", root / "packages" / "b")
    for folder in found:
        folder.mkdir(parents=True)
        (folder / "file").write_text("1\n")
    (root / "outside").write_text("1\n")
    sh("add", "-A")
    sh("commit", "-qm", "base")
    return found


def commit(folder: Path, text: str, **trailers: str) -> str:
    (folder / "file").write_text(text)
    named = STEP | {f"GSD-{name.title()}": value for name, value in trailers.items()}
    return asyncio.run(Git(folder).commit(["file"], "feat: x", trailers=named, verify=True))


def test_a_new_folder_inside_a_repository_can_become_a_repository_of_its_own(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    asyncio.run(Git(tmp_path).init())
    asyncio.run(Git(inner).init())

    assert top(Command(root=inner)).resolve() == inner.resolve()


def test_a_repository_that_exists_stays_as_it_is(tmp_path: Path) -> None:
    asyncio.run(Git(tmp_path).init())
    before = (tmp_path / ".git" / "config").read_bytes()
    asyncio.run(Git(tmp_path).init())

    assert (tmp_path / ".git" / "config").read_bytes() == before


def test_the_data_of_a_project_at_the_top_is_directly_in_gits_directory(root: Path) -> None:
    assert data_directory(root) == root / ".git" / "gsd"
    assert asyncio.run(Git(root).data_directory()) == root / ".git" / "gsd"


def test_each_project_has_a_readable_data_folder_of_its_own(root: Path) -> None:
    names = ("a/b", "a-b", "a/ü", "a/日本", "日本", "-x", ".hidden", "x" * 200, "with space/(1)")
    found: set[Path] = set()
    for name in names:
        (root / name).mkdir(parents=True)
        directory = data_directory(root / name)
        assert directory is not None
        assert directory.parent == root / ".git" / "gsd" / "projects"
        assert directory.name.isascii()
        assert len(directory.name) < 80
        found.add(directory)

    assert len(found) == len(names)
    assert any(directory.name.startswith("with-space-1-") for directory in found)


def test_a_worktree_has_data_of_its_own_which_goes_with_it(
    root: Path, sh: Run, folders: tuple[Path, Path]
) -> None:
    sh("worktree", "add", "-q", "../tree", "-b", "side")
    tree = root.parent / "tree"
    found = {data_directory(folder) for folder in (root, tree, folders[0], tree / "packages" / "a")}
    own = data_directory(tree)

    assert len(found) == 4
    assert own is not None
    own.mkdir()
    sh("worktree", "remove", "../tree")
    assert not own.exists()


def test_the_same_step_of_two_projects_is_told_apart(root: Path, sh: Run, folders: tuple[Path, Path]) -> None:
    a, b = folders
    mine, theirs = commit(a, "2\n"), commit(b, "2\n", run="r-b")
    at_the_top = commit(root, "2\n", run="r-top")

    for folder, sha, run in ((a, mine, "r-a"), (b, theirs, "r-b"), (root, at_the_top, "r-top")):
        git = Git(folder)
        assert [(c.sha, c.run, c.task) for c in asyncio.run(git.trailed())] == [(sha, run, "01-01/1")]
        assert asyncio.run(git.find(STEP | {"GSD-Run": run})) == sha
        assert asyncio.run(git.paths_of([sha])) == ("file",)
    assert asyncio.run(Git(a).find(STEP | {"GSD-Run": "r-b"})) is None
    assert "GSD-Project: packages/a\n" in sh("log", "-1", "--format=%B", mine) + "\n"
    assert "GSD-Project" not in sh("log", "-1", "--format=%B", at_the_top)


@pytest.mark.parametrize("name", ["with  two spaces", "ünï", "-dash", "#1", "a: b"])
def test_a_project_finds_its_commits_whatever_its_folder_is_called(root: Path, name: str) -> None:
    folder = root / name
    folder.mkdir()
    sha = commit(folder, "1\n")

    assert asyncio.run(Git(folder).find(STEP)) == sha
    assert asyncio.run(Git(root).find(STEP)) is None


def test_an_empty_commit_belongs_to_its_project(folders: tuple[Path, Path]) -> None:
    a, b = folders
    sha = asyncio.run(Git(a).commit([], "test: x", trailers=STEP, verify=True, allow_empty=True))

    assert asyncio.run(Git(a).find(STEP)) == sha
    assert asyncio.run(Git(b).trailed()) == ()


def test_an_ignored_project_is_known_as_such(root: Path, folders: tuple[Path, Path]) -> None:
    _, b = folders
    (root / ".gitignore").write_text("packages/new/\nbuild\n")
    (root / "packages" / "new").mkdir()

    assert asyncio.run(Git(root / "packages" / "new").is_ignored("."))
    assert not asyncio.run(Git(b).is_ignored("."))
    assert not asyncio.run(Git(root).is_ignored("."))
    assert asyncio.run(Git(b).is_ignored("build/x"))


def test_recovery_keeps_the_project_and_leaves_everything_else(
    root: Path, sh: Run, folders: tuple[Path, Path]
) -> None:
    a, b = folders
    (a / "file").write_text("lost\n")
    (b / "file").write_text("theirs\n")
    (root / "outside").write_text("staged\n")
    sh("add", "outside")
    before = sh("status", "--porcelain")

    ref = asyncio.run(Git(a).save_recovery("x"))

    assert sh("show", f"{ref}:packages/a/file") == "lost"
    assert sh("show", f"{ref}:packages/b/file") == "1"
    assert sh("show", f"{ref}^2:outside") == "staged"
    assert sh("status", "--porcelain") == before
    assert (b / "file").read_text() == "theirs\n"


def test_a_merge_conflict_elsewhere_does_not_hinder_recovery(
    root: Path, sh: Run, folders: tuple[Path, Path]
) -> None:
    for branch in ("one", "two"):
        sh("checkout", "-q", "-b", branch, "HEAD~0" if branch == "one" else "HEAD~1")
        (root / "outside").write_text(f"{branch}\n")
        sh("commit", "-qam", branch)
    with pytest.raises(Exception, match="merge"):
        sh("merge", "-q", "one")
    (folders[0] / "file").write_text("lost\n")
    before = sh("status", "--porcelain")

    ref = asyncio.run(Git(folders[0]).save_recovery("x"))

    assert sh("show", f"{ref}:packages/a/file") == "lost"
    assert "<<<<<<<" in sh("show", f"{ref}:outside")
    assert sh("status", "--porcelain") == before


@pytest.mark.slow
def test_two_projects_may_commit_at_the_same_time(root: Path, sh: Run, folders: tuple[Path, Path]) -> None:
    hook = root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nsleep 0.05\n")
    hook.chmod(0o755)
    made: dict[Path, list[str]] = {folder: [] for folder in folders}

    def work(folder: Path) -> None:
        for number in range(2, 12):
            made[folder].append(commit(folder, f"{number}\n", run=folder.name))

    threads = [threading.Thread(target=work, args=(folder,)) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for folder in folders:
        assert [c.sha for c in asyncio.run(Git(folder).trailed())] == made[folder]
        assert len(made[folder]) == 10
    assert sh("status", "--porcelain") == ""


def test_a_start_leaves_the_lock_of_another_projects_commit(root: Path, folders: tuple[Path, Path]) -> None:
    a, b = folders
    lock = root / ".git" / "index.lock"
    swept: list[str] = []
    sweeper = threading.Thread(target=lambda: swept.extend(asyncio.run(Git(b).sweep_locks())))
    with one_writer(Command(root=a)):
        lock.touch()
        sweeper.start()
        sweeper.join(0.3)
        assert lock.exists()
        lock.unlink()
    sweeper.join()

    assert swept == []


def test_a_commit_that_waits_for_another_run_too_long_is_an_error(folders: tuple[Path, Path]) -> None:
    a, b = folders
    (b / "file").write_text("2\n")
    impatient = Command(root=b, limit=Command(root=b).limit / 10_000)
    with one_writer(Command(root=a)), pytest.raises(GitError) as caught:
        commit_now(impatient, ["file"], "x", trailers=STEP, verify=False)

    assert "another run" in caught.value.hint


def test_a_commit_of_the_user_at_the_same_moment_is_not_lost(
    root: Path, sh: Run, folders: tuple[Path, Path]
) -> None:
    """The hook commits before git updates HEAD, as a user may do in another terminal."""
    hook = root / ".git/hooks/commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "#!/bin/sh\n"
        "test -e .git/seen && exit 0\n"
        "touch .git/seen\n"
        "new=$(env -u GIT_INDEX_FILE git commit-tree HEAD^{tree} -p HEAD -m theirs </dev/null)\n"
        "git update-ref HEAD $new\n"
    )
    hook.chmod(0o755)

    sha = commit(folders[0], "2\n")

    assert sh("log", "--format=%s").splitlines() == ["feat: x", "theirs", "base"]
    assert sha == sh("rev-parse", "HEAD")
