"""Nothing uncommitted is lost, and no lock file of a killed git remains."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from gsd_core.git import Git
from gsd_core.processes import is_git_at_work, processes

Run = Callable[..., str]
KILLS = 20


def state(root: Path, sh: Run) -> tuple[str, bytes]:
    return sh("status", "--porcelain"), (root / ".git/index").read_bytes()


def test_everything_uncommitted_is_kept_without_touching_anything(root: Path, sh: Run) -> None:
    for name in ("kept", "edited", "deleted", "staged"):
        (root / name).write_text("1\n")
    (root / ".gitignore").write_text("ignored\n")
    sh("add", "-A")
    sh("commit", "-qm", "base")
    (root / "edited").write_text("2\n")
    (root / "deleted").unlink()
    (root / "new :(x)").write_text("new\n")
    (root / "ignored").write_text("secret\n")
    (root / "staged").write_text("staged\n")
    sh("add", "staged")
    (root / "staged").write_text("and edited\n")
    before = state(root, sh)

    ref = asyncio.run(Git(root).save_recovery("r-1 / lost attempt"))

    assert ref == "refs/gsd/recover/r-1-lost-attempt"
    assert state(root, sh) == before
    assert sh("ls-tree", "--name-only", ref).splitlines() == [
        ".gitignore",
        "edited",
        "kept",
        "new :(x)",
        "staged",
    ]
    assert sh("show", f"{ref}:edited") == "2"
    assert sh("show", f"{ref}:staged") == "and edited"
    assert sh("show", f"{ref}^2:staged") == "staged"
    assert sh("rev-parse", f"{ref}^1") == sh("rev-parse", "HEAD")


def test_work_in_a_repository_without_a_commit_is_kept(root: Path, sh: Run) -> None:
    (root / "a").write_text("1\n")
    sh("config", "--unset", "user.name")

    ref = asyncio.run(Git(root).save_recovery("x"))

    assert sh("show", f"{ref}:a") == "1"
    assert sh("status", "--porcelain") == "?? a"


def test_without_changes_no_ref_is_created(root: Path, sh: Run) -> None:
    assert asyncio.run(Git(root).save_recovery("x")) == ""
    assert sh("for-each-ref") == ""


def test_a_second_recovery_of_the_same_name_leaves_the_first(root: Path, sh: Run) -> None:
    (root / "a").write_text("1\n")
    first = asyncio.run(Git(root).save_recovery("x"))
    (root / "a").write_text("2\n")
    second = asyncio.run(Git(root).save_recovery("x"))

    assert (first, second) == ("refs/gsd/recover/x", "refs/gsd/recover/x-2")
    assert (sh("show", f"{first}:a"), sh("show", f"{second}:a")) == ("1", "2")


def test_every_lock_file_of_git_is_removed_and_nothing_else(root: Path, sh: Run) -> None:
    sh("commit", "-q", "--allow-empty", "-m", "base")
    sh("worktree", "add", "-q", "../tree")
    common = root / ".git"
    left = (
        "HEAD.lock",
        "index.lock",
        "packed-refs.lock",
        "next-index-123.lock",
        "refs/heads/a/b.lock",
        "objects/info/commit-graph.lock",
        "worktrees/tree/index.lock",
    )
    kept = ("gsd/lock", "gsd/x.lock", "worktrees/tree/locked", "hooks/x.lock")
    for name in (*left, *kept):
        (common / name).parent.mkdir(parents=True, exist_ok=True)
        (common / name).touch()

    assert asyncio.run(Git(root.parent / "tree").sweep_locks()) == tuple(sorted(left))
    assert asyncio.run(Git(root).sweep_locks()) == ()
    assert all((common / name).exists() for name in kept)


def test_a_lock_that_may_be_in_use_stays(root: Path, sh: Run) -> None:
    sh("commit", "-q", "--allow-empty", "-m", "base")
    lock = root / ".git/index.lock"
    lock.touch()
    began = lock.stat().st_mtime
    git = Git(root)

    assert asyncio.run(git.sweep_locks(before=began - 1)) == ()
    assert asyncio.run(git.sweep_locks(in_use=lambda files, folders: lock in files and root in folders)) == ()
    assert asyncio.run(git.sweep_locks(before=began + 1, in_use=is_git_at_work)) == ("index.lock",)


def test_a_lock_from_the_future_is_old(root: Path) -> None:
    lock = root / ".git/index.lock"
    lock.touch()
    os.utime(lock, (time.time() + 7200, time.time() + 7200))

    assert asyncio.run(Git(root).sweep_locks(before=time.time())) == ("index.lock",)


def test_a_git_that_works_in_the_repository_is_noticed(root: Path, sh: Run, tmp_path: Path) -> None:
    lock = root / ".git/index.lock"
    lock.touch()
    with lock.open():
        assert is_git_at_work([lock], [])
    assert not is_git_at_work([lock], [root])
    with subprocess.Popen(["git", "cat-file", "--batch"], cwd=root, stdin=subprocess.PIPE) as process:
        assert is_git_at_work([lock], [root])
        assert not is_git_at_work([lock], [tmp_path / "other"])
        assert process.stdin is not None
        process.stdin.close()


def test_some_paths_are_kept_and_among_them_an_ignored_file(root: Path, sh: Run) -> None:
    (root / ".gitignore").write_text("*.db\n")
    (root / "a").write_text("1\n")
    sh("add", "-A")
    sh("commit", "-qm", "base")
    for name in ("a", "b", "c", "data.db"):
        (root / name).write_text("mine\n")
    before = state(root, sh)

    ref = asyncio.run(Git(root).save_recovery("x", ("a", "b", "data.db", "gone")))

    assert state(root, sh) == before
    assert sh("diff", "--name-only", "HEAD", ref).splitlines() == ["a", "b", "data.db"]
    assert sh("show", f"{ref}:data.db") == "mine"
    assert asyncio.run(Git(root).save_recovery("y", ("gone", ".gitignore"))) == ""


COMMITTER = """
import asyncio, sys
from pathlib import Path
from gsd_core.git import Git
from gsd_core.processes import processes

async def main(root, first):
    git = Git(root, environment={"GSD_RUN": sys.argv[3]})
    print("ready", flush=True)
    for number in range(first, first + 1000):
        trailers = {"GSD-Run": "r-1", "GSD-Step": f"1/execute/{number}"}
        if await git.find(trailers) is None:
            (root / "file").write_text(f"{number}\\n")
            await git.commit(["file"], f"feat: {number}", trailers=trailers, verify=True)

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


@pytest.mark.slow
def test_after_a_killed_commit_sweeping_is_enough_to_continue(root: Path, sh: Run, tmp_path: Path) -> None:
    """Kill the committer and its git at random moments; then sweep the locks and continue where it was.

    The hooks widen the moments in which git holds the index and the refs.
    """
    dice = random.Random(7)
    mark = f"r-{tmp_path.name}-{os.getpid()}"
    git = Git(root)
    for hook in ("pre-commit", "reference-transaction"):
        (root / ".git/hooks" / hook).parent.mkdir(exist_ok=True)
        (root / ".git/hooks" / hook).write_text("#!/bin/sh\nexec sleep 0.02\n")
        (root / ".git/hooks" / hook).chmod(0o755)
    swept = 0
    steps: list[str] = []
    # On a busy machine, more kills come before git has begun.
    for kills in range(4 * KILLS):
        if kills >= KILLS and min(swept, len(steps)) > KILLS / 4:
            break
        done = len(asyncio.run(git.trailed("r-1")))
        kill_while_committing(root, max(done - 1, 0), mark, dice.uniform(0.05, 0.25))
        swept += len(asyncio.run(git.sweep_locks()))
        (root / "mine").write_text(f"{dice.random()}\n")
        assert asyncio.run(git.commit(["mine"], "mine", trailers={"GSD-Run": "mine"}, verify=False))

        steps = [commit.step for commit in asyncio.run(git.trailed("r-1"))]

    assert steps == [f"1/execute/{number}" for number in range(len(steps))]
    assert len(steps) > KILLS / 4
    assert sh("fsck", "--no-dangling", "--no-progress") == ""
    assert swept > KILLS / 4, "too few kills hit a commit, so the test shows nothing"


def kill_while_committing(root: Path, first: int, mark: str, seconds: float) -> None:
    """Kill the committer and its git, which is in a session of its own, by SIGKILL."""
    command = [sys.executable, "-c", COMMITTER, str(root), str(first), mark]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "GSD_RUN": mark}
    # Coverage would slow the committer down so much that few kills hit a commit.
    environment.pop("COVERAGE_PROCESS_START", None)
    environment.pop("COVERAGE_PROCESS_CONFIG", None)
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    while left := [each.pid for each in processes("GSD_RUN") if each.mark == mark]:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
