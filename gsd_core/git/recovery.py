"""After a crash: keep uncommitted work, and remove the lock files of a git that was killed."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterable
from itertools import chain, count
from pathlib import Path

from attrs import evolve

from .command import Command, GitError, GitUnavailable
from .commit import FROM_STDIN, add, listed
from .committed import ignored
from .repository import common_dir, entries, head, one_writer, paths_file, top, unmerged, worktrees

REFS = "refs/gsd/recover"

# A recovery must not fail because git has no identity.
AUTHOR = {
    "GIT_AUTHOR_NAME": "gsd",
    "GIT_AUTHOR_EMAIL": "gsd@localhost",
    "GIT_COMMITTER_NAME": "gsd",
    "GIT_COMMITTER_EMAIL": "gsd@localhost",
}

LOCKS = (
    *("*.lock", "refs/**/*.lock", "objects/*.lock", "objects/info/**/*.lock"),
    *("reftable/*.lock", "worktrees/*/*.lock", "worktrees/*/refs/**/*.lock"),
)
"""Where git leaves lock files below its common directory, including those of the worktrees."""


def save_recovery(git: Command, name: str, paths: Collection[str] | None = None) -> str:
    """Keep everything uncommitted in a commit under ``refs/gsd/recover/NAME`` and return its ref.

    Index and work tree are not touched. The commit's tree is the project's work tree; what was staged
    and differs from it is a second parent. With *paths*, only these files are kept, also if git ignores
    them. Return ``""`` if there is nothing to keep. An earlier recovery of the same name stays: the new one
    is ``NAME-2``.
    """
    found = entries(git)
    changed = [entry.path for entry in found if entry.unstaged != " "]
    forced: list[str] = []
    if paths is not None:
        uncommitted = {entry.path for entry in found}
        files = [path for path in paths if (git.root / path).is_file()]
        forced = list(ignored(git, [path for path in files if path not in uncommitted]))
        changed = [path for path in changed if path in set(paths)] + forced
        found = tuple(entry for entry in found if entry.path in set(paths))
    if not found and not forced:
        return ""
    with tempfile.TemporaryDirectory(prefix="gsd-index-") as folder:
        # git writes to a copy of the index, so that what the user has staged stays staged.
        copy = Path(folder) / "index"
        index = git.root / git("rev-parse", "--git-path", "index")
        if index.exists():
            shutil.copy2(index, copy)
        environment = {"GIT_INDEX_FILE": str(copy)}
        parents = [parent for parent in (head(git), _staged(git, name, environment)) if parent]
        add(git, changed, environment, ignored=paths is not None)
        # Also those outside the project: git writes no tree while there are files with merge conflicts.
        whole = evolve(git, root=top(git))
        add(whole, unmerged(whole, environment), environment)
        tree = git("write-tree", environment=environment)
    return commit_ref(git, name, commit_tree(git, tree, parents, f"uncommitted work: {name}"))


def take_back(git: Command, paths: Collection[str]) -> tuple[str, ...]:
    """Make *paths* what they are in the last commit; return those that are not in it, for the caller."""
    if not paths:
        return ()
    found = git("ls-tree", "-r", "-z", "--name-only", "HEAD", "--", *paths) if head(git) else ""
    known = set(found.split("\0"))
    if there := [path for path in sorted(paths) if path in known]:
        with one_writer(git):
            git("restore", "--source=HEAD", "--staged", "--worktree", *FROM_STDIN, stdin=listed(there))
    return tuple(path for path in sorted(paths) if path not in known)


def _staged(git: Command, name: str, environment: dict[str, str]) -> str:
    """Commit the index if it differs from the last commit; with merge conflicts it cannot be committed."""
    try:
        tree = git("write-tree", environment=environment)
    except GitUnavailable:
        raise
    except GitError:
        return ""
    last = head(git)
    if tree == (git("rev-parse", f"{last}^{{tree}}") if last else ""):
        return ""
    return commit_tree(git, tree, [last] if last else [], f"staged work: {name}")


def commit_tree(git: Command, tree: str, parents: Iterable[str], subject: str) -> str:
    """Commit a *tree* in the name of gsd, on no branch, and return the commit."""
    options = chain.from_iterable(("-p", parent) for parent in parents)
    return git("commit-tree", "--no-gpg-sign", *options, tree, stdin=f"{subject}\n", environment=AUTHOR)


def commit_ref(git: Command, name: str, commit: str) -> str:
    """Point a new ref below ``refs/gsd/recover`` at *commit* and return its name."""
    base = f"{REFS}/{re.sub(r'[^A-Za-z0-9_-]+', '-', name).strip('-') or 'work'}"
    refs = (base if number == 1 else f"{base}-{number}" for number in count(1))
    ref = next(ref for ref in refs if not git.succeeds("rev-parse", "--verify", "--quiet", ref))
    git("update-ref", ref, commit, "0" * len(commit))
    return ref


def sweep_locks(
    git: Command,
    *,
    before: float | None = None,
    in_use: Callable[[Collection[Path], Collection[Path]], bool] | None = None,
) -> tuple[str, ...]:
    """Remove the lock files that a killed git left in the repository, and return their paths.

    A ``git commit`` whose process group is killed leaves HEAD.lock in about a third of the cases, so
    removing index.lock is not enough. Without this, the next git would fail until someone removes
    the file. Call it only with the project's lock held and the processes of its last run ended.

    A lock belongs to a git that may still work if it was made after *before* (seconds since the epoch), or
    if *in_use* says so of the locks and the repository's folders; then none is removed. A time in the future
    counts as old: the clock was set back, and a running git is found by *in_use*.
    """
    common = common_dir(git)
    # Another project of this repository may be committing right now.
    with one_writer(git):
        paths_file(git).unlink(missing_ok=True)
        found = lock_files(git)
        if found and in_use and in_use(found, worktrees(git)):
            return ()
        now = time.time()
        stale = {path for path in found if before is None or not before <= _modified(path, now + 1) <= now}
        for path in stale:
            path.unlink(missing_ok=True)
    return tuple(sorted(path.relative_to(common).as_posix() for path in stale))


def lock_files(git: Command) -> set[Path]:
    """Return the lock files of git in the repository, stale or not."""
    common = common_dir(git)
    return {path for pattern in LOCKS for path in common.glob(pattern)}


def _modified(path: Path, otherwise: float) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return otherwise
