"""After a crash: keep uncommitted work, and remove the lock files of a git that was killed."""

from __future__ import annotations

import re
import shutil
import tempfile
from itertools import chain, count
from pathlib import Path

from attrs import evolve

from .command import Command, GitError
from .commit import add
from .repository import common_dir, entries, head, one_writer, top

REFS = "refs/gsd/recover"

# A recovery must not fail because git has no identity.
AUTHOR = {
    "GIT_AUTHOR_NAME": "gsd",
    "GIT_AUTHOR_EMAIL": "gsd@localhost",
    "GIT_COMMITTER_NAME": "gsd",
    "GIT_COMMITTER_EMAIL": "gsd@localhost",
}

LOCKS = (
    "*.lock",
    "refs/**/*.lock",
    "objects/*.lock",
    "objects/info/**/*.lock",
    "reftable/*.lock",
    "worktrees/*/*.lock",
    "worktrees/*/refs/**/*.lock",
)
"""Where git leaves lock files below its common directory, including those of the worktrees."""


def save_recovery(git: Command, name: str) -> str:
    """Keep everything uncommitted in a commit under ``refs/gsd/recover/NAME`` and return its ref.

    Index and work tree are not touched. The commit's tree is the project's work tree; what was staged
    and differs from it is a second parent. Return ``""`` if there is nothing to keep. An earlier
    recovery of the same name stays: the new one is ``NAME-2``.
    """
    found = entries(git)
    if not found:
        return ""
    with tempfile.TemporaryDirectory(prefix="gsd-index-") as folder:
        # git writes to a copy of the index, so that what the user has staged stays staged.
        copy = Path(folder) / "index"
        index = git.root / git("rev-parse", "--git-path", "index")
        if index.exists():
            shutil.copy2(index, copy)
        environment = {"GIT_INDEX_FILE": str(copy)}
        parents = [parent for parent in (head(git), _staged(git, name, environment)) if parent]
        add(git, [entry.path for entry in found if entry.unstaged != " "], environment)
        _add_conflicts(git, environment)
        tree = git("write-tree", environment=environment)
    return _free_ref(git, name, _commit_tree(git, tree, parents, f"uncommitted work: {name}"))


def _staged(git: Command, name: str, environment: dict[str, str]) -> str:
    """Commit the index if it differs from the last commit; with merge conflicts it cannot be committed."""
    try:
        tree = git("write-tree", environment=environment)
    except GitError:
        return ""
    last = head(git)
    if tree == (git("rev-parse", f"{last}^{{tree}}") if last else ""):
        return ""
    return _commit_tree(git, tree, [last] if last else [], f"staged work: {name}")


def _add_conflicts(git: Command, environment: dict[str, str]) -> None:
    """Add the files with merge conflicts outside the project: git writes no tree while there are any."""
    whole = evolve(git, root=top(git))
    lines = whole("ls-files", "-z", "--unmerged", environment=environment).split("\0")
    if paths := {line.split("\t", 1)[1] for line in lines if line}:
        add(whole, paths, environment)


def _commit_tree(git: Command, tree: str, parents: list[str], subject: str) -> str:
    options = chain.from_iterable(("-p", parent) for parent in parents)
    return git("commit-tree", "--no-gpg-sign", *options, tree, stdin=f"{subject}\n", environment=AUTHOR)


def _free_ref(git: Command, name: str, commit: str) -> str:
    """Point a new ref at *commit*."""
    base = f"{REFS}/{re.sub(r'[^A-Za-z0-9_-]+', '-', name).strip('-') or 'work'}"
    for number in count(1):
        ref = base if number == 1 else f"{base}-{number}"
        if not git.succeeds("rev-parse", "--verify", "--quiet", ref):
            git("update-ref", ref, commit, "0" * len(commit))
            return ref
    raise AssertionError("unreachable")


def sweep_locks(git: Command) -> tuple[str, ...]:
    """Remove the lock files that a killed git left in the repository, and return their paths.

    A ``git commit`` whose process group is killed leaves HEAD.lock in about a third of the cases, so
    removing index.lock is not enough. Without this, the next git would fail until someone removes
    the file. Call it only with the project's lock held and the processes of its last run ended.
    """
    common = common_dir(git)
    # Another project of this repository may be committing right now.
    with one_writer(git):
        found = {path for pattern in LOCKS for path in common.glob(pattern)}
        for path in found:
            path.unlink(missing_ok=True)
    return tuple(sorted(path.relative_to(common).as_posix() for path in found))
