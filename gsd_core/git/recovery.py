"""After a crash: nothing uncommitted is lost, and no lock of a dead git stays."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path

from .command import Command, GitError
from .commit import add
from .history import head
from .status import entries

REFS = "refs/gsd/recover"

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
"""Where git leaves locks below its common directory, the worktrees' among them."""


def save_recovery(git: Command, name: str) -> str:
    """Keep everything uncommitted in a commit under ``refs/gsd/recover/`` and return its ref.

    Index and work tree stay as they are. The commit's tree is the work tree; what was staged and
    differs from both is a second parent. Returns ``""`` if there is nothing to keep.
    """
    found = entries(git)
    if not found:
        return ""
    with tempfile.TemporaryDirectory(prefix="gsd-index-") as folder:
        environment = {"GIT_INDEX_FILE": _copy_index(git, Path(folder))}
        parents = [parent for parent in (head(git), _staged(git, name, environment)) if parent]
        add(git, [entry.path for entry in found if entry.unstaged != " "], environment)
        tree = git("write-tree", environment=environment)
    return _free_ref(git, name, _commit_tree(git, tree, parents, f"uncommitted work: {name}"))


def _copy_index(git: Command, folder: Path) -> str:
    index = git.root / git("rev-parse", "--git-path", "index")
    copy = folder / "index"
    if index.exists():
        shutil.copy2(index, copy)
    return str(copy)


def _staged(git: Command, name: str, environment: dict[str, str]) -> str:
    """Commit the index as it stands, if it differs from the last commit; unmerged paths have no tree."""
    try:
        tree = git("write-tree", environment=environment)
    except GitError:
        return ""
    last = head(git)
    if tree == (git("rev-parse", f"{last}^{{tree}}") if last else ""):
        return ""
    return _commit_tree(git, tree, [last] if last else [], f"staged work: {name}")


def _commit_tree(git: Command, tree: str, parents: list[str], subject: str) -> str:
    options = chain.from_iterable(("-p", parent) for parent in parents)
    return git("commit-tree", "--no-gpg-sign", *options, tree, stdin=f"{subject}\n", environment=AUTHOR)


def _free_ref(git: Command, name: str, commit: str) -> str:
    """Point a new ref at *commit*: an earlier recovery of the same name stays."""
    base = f"{REFS}/{re.sub(r'[^A-Za-z0-9_-]+', '-', name).strip('-') or 'work'}"
    for number in count(1):
        ref = base if number == 1 else f"{base}-{number}"
        if not git.succeeds("rev-parse", "--verify", "--quiet", ref):
            git("update-ref", ref, commit, "0" * len(commit))
            return ref
    raise AssertionError("unreachable")


def sweep_locks(common: Path) -> tuple[str, ...]:
    """Remove the locks that a killed git left below *common*, and return them.

    Only for one who holds the project's lock and has ended the processes of the last run.
    """
    return tuple(sorted(_swept(common)))


def _swept(common: Path) -> Iterator[str]:
    for path in {path for pattern in LOCKS for path in common.glob(pattern)}:
        path.unlink(missing_ok=True)
        yield path.relative_to(common).as_posix()
