"""Commits contain exactly what they are meant to contain."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from gsd_core.git import Git, GitError, GitUnavailable
from gsd_core.git.command import Command
from gsd_core.git.commit import commit as commit_now

Run = Callable[..., str]
TRAILERS = {"GSD-Run": "r-1", "GSD-Step": "1/execute/01-01"}

ODD_NAMES = (
    "with space",
    "-dash",
    "a*b?[c]",
    ":(top)x",
    "ünï/çødé",
    'quo"te\\',
    "line\nbreak",
    "tab\tx",
    "日本.txt",
)


def write(root: Path, path: str, text: str = "x\n") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def commit(root: Path, *paths: str, subject: str = "feat: x", verify: bool = False) -> str:
    return asyncio.run(Git(root).commit(paths, subject, trailers=TRAILERS, verify=verify))


def names(sh: Run, commit: str = "HEAD") -> set[str]:
    return set(filter(None, sh("show", "-z", "--format=", "--name-only", commit).split("\0")))


def test_the_first_commit_of_a_repository_can_be_made(root: Path, sh: Run) -> None:
    write(root, "a")

    sha = commit(root, "a")

    assert sha == sh("rev-parse", "HEAD")
    assert names(sh) == {"a"}


def test_a_message_consists_of_subject_body_and_trailers(root: Path, sh: Run) -> None:
    write(root, "a")
    git = Git(root)
    asyncio.run(
        git.commit(["a"], "feat: two\nlines", body="# why\n\nSee: this", trailers=TRAILERS, verify=False)
    )

    assert (
        sh("log", "-1", "--format=%B").strip()
        == "feat: two lines\n\n# why\n\nSee: this\n\nGSD-Run: r-1\nGSD-Step: 1/execute/01-01"
    )


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_path_is_literal_even_if_it_looks_like_a_pattern(root: Path, sh: Run, name: str) -> None:
    write(root, name)
    write(root, "aXbYc")
    write(root, "x")

    commit(root, name)

    assert names(sh) == {name}


def test_deletions_and_renames_are_committed(root: Path, sh: Run) -> None:
    for name in ("gone", "staged-gone", "old"):
        write(root, name)
    commit(root, ".")
    (root / "gone").unlink()
    sh("rm", "-q", "staged-gone")
    sh("mv", "old", "new")

    commit(root, "gone", "staged-gone", "old", "new")

    assert sh("ls-files") == "new"


def test_what_the_user_has_staged_stays_staged_and_uncommitted(root: Path, sh: Run) -> None:
    write(root, "theirs", "1\n")
    write(root, "ours", "1\n")
    commit(root, ".")
    write(root, "theirs", "staged\n")
    sh("add", "theirs")
    write(root, "theirs", "and edited further\n")
    write(root, "new-and-staged")
    sh("add", "new-and-staged")
    write(root, "ours", "2\n")

    commit(root, "ours")

    assert names(sh) == {"ours"}
    assert sh("status", "--porcelain").splitlines() == ["A  new-and-staged", "MM theirs"]
    assert sh("show", ":theirs") == "staged"


def test_a_folder_stands_for_everything_in_it(root: Path, sh: Run) -> None:
    write(root, "in/a")
    write(root, "in/deep/b")
    write(root, "inner")

    commit(root, "in/")

    assert names(sh) == {"in/a", "in/deep/b"}


def test_without_a_difference_there_is_no_commit(root: Path, sh: Run) -> None:
    write(root, "a")
    first = commit(root, "a")

    assert commit(root, "a", "never-there", "../outside") == ""
    assert sh("rev-parse", "HEAD") == first


def test_ignored_paths_are_skipped(root: Path, sh: Run) -> None:
    write(root, ".gitignore", "secret\n")
    write(root, "secret")

    commit(root, ".gitignore", "secret")

    assert names(sh) == {".gitignore"}


def test_a_repository_inside_is_not_committed_as_a_link(root: Path, sh: Run) -> None:
    write(root, "a")
    write(root, "inner/file")
    sh("init", "-q", "inner")

    commit(root, "a", "inner")

    assert names(sh) == {"a"}


@pytest.mark.parametrize("born", [True, False])
def test_an_empty_commit_leaves_what_is_staged(root: Path, sh: Run, born: bool) -> None:
    if born:
        write(root, "a")
        commit(root, "a")
    write(root, "theirs")
    sh("add", "theirs")

    sha = asyncio.run(Git(root).commit([], "docs: x", trailers=TRAILERS, verify=False, allow_empty=True))

    assert sha == sh("rev-parse", "HEAD")
    assert names(sh) == set()
    assert sh("status", "--porcelain") == "A  theirs"


@pytest.mark.slow
def test_many_paths_do_not_overflow_the_command_line(root: Path, sh: Run) -> None:
    paths = [f"{'long-' * 20}{number}" for number in range(3000)]
    for path in paths:
        write(root, path)

    commit(root, *paths)

    assert len(names(sh)) == 3000


def hook(root: Path, text: str, name: str = "pre-commit") -> None:
    path = root / ".git/hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_hook_that_fails_is_an_error_with_its_output(root: Path) -> None:
    hook(root, "echo 'line 1 is too long' >&2; exit 1")
    write(root, "a")

    with pytest.raises(GitError, match="line 1 is too long") as caught:
        commit(root, "a", verify=True)

    assert caught.value.output == "line 1 is too long"


def test_a_hook_may_change_what_is_committed(root: Path, sh: Run) -> None:
    hook(root, "echo fixed > a; git add a")
    write(root, "a")

    commit(root, "a", verify=True)

    assert sh("show", "HEAD:a") == "fixed"


def test_without_verify_no_hook_runs(root: Path, sh: Run) -> None:
    hook(root, "exit 1")
    write(root, "a")

    assert commit(root, "a", verify=False) == sh("rev-parse", "HEAD")


def test_a_missing_identity_is_an_error_with_a_hint(root: Path, sh: Run) -> None:
    sh("config", "--unset", "user.email")
    sh("config", "user.useConfigOnly", "true")
    write(root, "a")

    with pytest.raises(GitError) as caught:
        commit(root, "a")

    assert "git config --global user.email" in caught.value.hint


def test_a_commit_waits_for_another_git_that_holds_the_index(root: Path, sh: Run) -> None:
    write(root, "a")
    lock = root / ".git/index.lock"
    lock.touch()
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            lock.unlink()

    sha = commit_now(Command(root=root, sleep=sleep), ["a"], "x", trailers=TRAILERS, verify=False)

    assert sha == sh("rev-parse", "HEAD")
    assert len(waited) == 2


def test_another_git_that_keeps_the_index_is_an_error_with_a_hint(root: Path) -> None:
    write(root, "a")
    (root / ".git/index.lock").touch()

    with pytest.raises(GitError) as caught:
        commit_now(Command(root=root, sleep=lambda _: None), ["a"], "x", trailers=TRAILERS, verify=False)

    assert "another git" in caught.value.hint


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.005)


def test_a_commit_that_is_cancelled_is_finished_first(root: Path, sh: Run) -> None:
    begun = root.parent / "begun"
    hook(root, f"touch '{begun}'; sleep 0.3")
    write(root, "a")

    async def cancel_in_the_hook() -> None:
        task = asyncio.create_task(Git(root).commit(["a"], "x", trailers=TRAILERS, verify=True))
        await asyncio.to_thread(wait_for, begun)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert names(sh) == {"a"}

    asyncio.run(cancel_in_the_hook())


def test_the_variables_of_a_calling_git_are_ignored(
    root: Path, sh: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "0")
    write(root, "a")

    commit(root, "a")

    monkeypatch.delenv("GIT_INDEX_FILE")
    assert names(sh) == {"a"}


FORMAT = "sed -i.bak 's/  *$//' in/file; rm -f in/file.bak"


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("pre-commit", f"grep -q ' $' in/file || exit 0; {FORMAT}; echo formatted >&2; exit 1"),
        ("pre-commit", f"{FORMAT}; git add in/file"),
        ("pre-commit", FORMAT),
        ("post-commit", FORMAT),
    ],
    ids=["formats and refuses", "formats and adds", "formats", "formats after the commit"],
)
def test_what_a_hook_formats_is_committed_once_and_nothing_is_left(
    root: Path, sh: Run, name: str, script: str
) -> None:
    (root / "in").mkdir()
    (root / "in/file").write_text("first\n")
    (root / "other").write_text("1\n")
    sh("add", "-A")
    sh("commit", "-qm", "base")
    (root / "other").write_text("staged by the user\n")
    sh("add", "other")
    hook(root, script, name)
    (root / "in/file").write_text("text   \n")

    made = asyncio.run(Git(root).commit(["in/file"], "feat: x", trailers={"GSD-Run": "r"}, verify=True))

    assert made == sh("rev-parse", "HEAD")
    assert sh("log", "--format=%s") == "feat: x\nbase"
    assert (root / "in/file").read_text() == sh("show", "HEAD:in/file") + "\n" == "text\n"
    assert sh("status", "--porcelain") == "M  other"
    assert "GSD-Run: r" in sh("log", "-1", "--format=%B")


def test_a_hook_that_changes_other_files_leaves_them_uncommitted(root: Path, sh: Run) -> None:
    (root / "a").write_text("1\n")
    sh("add", "-A")
    sh("commit", "-qm", "base")
    hook(root, "date > generated; echo 2 > a")
    (root / "b").write_text("1\n")

    asyncio.run(Git(root).commit(["b"], "feat: b", trailers={}, verify=True))

    assert sh("show", "--name-only", "--format=", "HEAD") == "b"
    assert sh("status", "--porcelain").splitlines() == [" M a", "?? generated"]


def test_a_hook_that_refuses_and_changes_nothing_is_asked_once(root: Path, sh: Run) -> None:
    hook(root, "echo asked >> .git/asked; echo no >&2; exit 1")
    (root / "a").write_text("1\n")

    with pytest.raises(GitError) as caught:
        asyncio.run(Git(root).commit(["a"], "feat: a", trailers={}, verify=True))

    assert not isinstance(caught.value, GitUnavailable)
    assert (root / ".git/asked").read_text() == "asked\n"


def test_a_key_that_is_missing_is_not_the_commits_fault(root: Path, sh: Run) -> None:
    sh("config", "commit.gpgSign", "true")
    sh("config", "gpg.program", "false")
    (root / "a").write_text("1\n")

    with pytest.raises(GitUnavailable) as caught:
        asyncio.run(Git(root).commit(["a"], "feat: a", trailers={}, verify=True))

    assert "commit.gpgSign" in caught.value.hint


def test_a_hook_that_complains_about_permissions_is_not_taken_for_the_disk(root: Path, sh: Run) -> None:
    hook(root, "echo 'lint.lock: File exists: No space left on device'; exit 1")
    (root / "a").write_text("1\n")

    with pytest.raises(GitError) as caught:
        asyncio.run(Git(root).commit(["a"], "feat: a", trailers={}, verify=True))

    assert not isinstance(caught.value, GitUnavailable)


def in_namespace(root: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Commit the file ``a`` in a process with its own mounts, after *script*."""
    code = (
        "import asyncio; from pathlib import Path; from gsd_core.git import Git, GitUnavailable\n"
        "try: asyncio.run(Git(Path()).commit(['a'], 'feat: a', trailers={}, verify=True))\n"
        "except GitUnavailable as error: print(error, '|', error.hint)"
    )
    return subprocess.run(
        ["unshare", "-rm", "bash", "-c", f'{script} && exec "$@"', "bash", sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )


can_mount = (
    shutil.which("unshare") is not None
    and subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0
)
READ_ONLY = "mount --bind {0} {0} && mount -o remount,bind,ro {0}"


@pytest.mark.skipif(not can_mount, reason="needs mount namespaces for unprivileged users")
@pytest.mark.parametrize(
    ("script", "cause", "staged"),
    [
        (READ_ONLY.format(".git/objects"), "Read-only file system", False),
        # git writes only the tree, and exits with 1.
        (READ_ONLY.format(".git/objects"), "Read-only file system", True),
        (READ_ONLY.format(".git/refs"), "Read-only file system", True),
        ("mount -t tmpfs -o size=16k none .git/objects", "No space left", False),
        ("ulimit -f 8", "size of files", False),
        ("ulimit -n 9", "open files", True),
    ],
    ids=["objects", "trees", "refs", "full", "limit", "files"],
)
def test_what_the_machine_refuses_is_not_the_fault_of_what_is_committed(
    root: Path, sh: Run, script: str, cause: str, staged: bool
) -> None:
    (root / "a").write_bytes(os.urandom(40_000))
    if staged:
        sh("add", "a")

    done = in_namespace(root, script)

    assert cause.lower() in done.stdout.lower(), done.stderr
    assert done.stdout.strip().endswith("then run gsd resume")


def test_a_git_that_a_signal_ends_is_not_the_fault_of_what_is_committed(root: Path, sh: Run) -> None:
    hook(root, "kill -KILL $PPID")
    (root / "a").write_text("1\n")

    with pytest.raises(GitUnavailable):
        asyncio.run(Git(root).commit(["a"], "feat: a", trailers={}, verify=True))


def test_a_lock_that_another_program_holds_is_waited_for(root: Path, sh: Run) -> None:
    (root / "a").write_text("1\n")
    lock = root / ".git/index.lock"
    lock.touch()
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if sum(slept) > 3:
            lock.unlink(missing_ok=True)

    git = Git(root)
    git.command = attrs.evolve(git.command, sleep=sleep)

    assert asyncio.run(git.commit(["a"], "feat: a", trailers={}, verify=True))
    lock.touch()
    git.command = attrs.evolve(git.command, sleep=slept.append)
    (root / "a").write_text("2\n")
    with pytest.raises(GitUnavailable):
        asyncio.run(git.commit(["a"], "feat: a", trailers={}, verify=True))
