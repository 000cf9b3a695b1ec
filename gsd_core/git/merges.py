"""Merges that touch no branch and no file until they are wanted."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from .command import Command, for_signing, signs
from .commit import FROM_STDIN, add, listed
from .refs import REAL_OBJECTS, is_ancestor
from .repository import one_writer

OLDEST = "2.38"
"""The oldest version of git that can merge without a work tree."""


def merge(
    git: Command, ours: str, theirs: str, text: str, instead: Mapping[str, str] | None = None
) -> tuple[str, tuple[str, ...]]:
    """Return a commit that merges *theirs* into *ours*, with the message *text*.

    *instead* has blobs, by path, for files that are not to be merged by line. If both changed the same lines
    of others, there is no commit, but their paths. Raises ``GitError`` if git is too old.
    """
    tree, paths = merged_tree(git, ours, theirs)
    paths = tuple(path for path in paths if path not in (instead or {}))
    if instead and not paths:
        with _index(git, tree) as index:
            entries = "".join(f"100644 {sha}\t{path}\0" for path, sha in instead.items())
            git("update-index", "-z", "--index-info", stdin=entries, environment=index)
            tree = git("write-tree", environment=index)
    return ("" if paths else _commit(git, tree, (ours, theirs), text)), paths


def changed_by_both(
    git: Command, ours: str, theirs: str, is_wanted: Callable[[str], object]
) -> dict[str, str]:
    """Return the files that both sides of a merge changed in different ways, with the blobs of *ours*.

    Only those for which *is_wanted* holds.
    """
    differ = {path for path in _changes(git, ours, theirs) if is_wanted(path)}
    if not differ:
        return {}
    base = git("merge-base", ours, theirs)
    here, there = _changes(git, base, ours), _changes(git, base, theirs)
    return {
        path: about.sha
        for path, about in here.items()
        if path in differ and path in there
        if about.sha != there[path].sha and "D" not in (about.status, there[path].status)
    }


def merged_tree(git: Command, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
    """Return the tree of a merge, and the paths in which both sides changed the same lines.

    Those have both sides between conflict markers there.
    """
    options = ("--write-tree", "--name-only", "--no-messages", "-z")
    code, out = git.run("merge-tree", *options, ours, theirs, ok=(0, 1), environment=REAL_OBJECTS)
    tree, *paths = out.split("\0")
    return tree, tuple(dict.fromkeys(path for path in paths if path)) if code else ()


def show_merged(git: Command, theirs: str, is_merged: Callable[[str], bool]) -> None:
    """Change the files as a merge with *theirs* would, and nothing else.

    Files that have uncommitted changes already stay as they are: some of them are merged then. So do those
    that are not merged by line: *is_merged* is false for them.
    """
    tree, _ = merged_tree(git, "HEAD", theirs)
    dirty = git("diff", "-z", "--name-only", "--no-renames", "HEAD").split("\0")
    paths = [path for path in _changes(git, "HEAD", tree) if path not in dirty and is_merged(path)]
    if paths:
        git("restore", f"--source={tree}", "--worktree", *FROM_STDIN, stdin=listed(paths))


def with_conflict_markers(git: Command, paths: Collection[str]) -> tuple[str, ...]:
    """Return those of *paths* whose uncommitted changes add conflict markers, as git recognizes them."""
    options = ("--name-only", "-z", r"-G^(<<<<<<<|>>>>>>>)( |$)", "HEAD")
    found = git("diff", *options).split("\0") if paths else ()
    return tuple(path for path in found if path in paths)


def as_merge(git: Command, commit: str, theirs: str, is_own: Callable[[str], bool]) -> str:
    """Replace *commit*, the last one, which resolves a merge with *theirs*, by that merge, and return it.

    Of what the merge changes, paths for which *is_own* holds are taken from the work tree: a file that is as
    it was before the merge is no change in *commit*. The others, which only the run may change, are merged.
    It can be repeated.
    """
    if is_ancestor(git, theirs, commit):
        return commit
    with one_writer(git):
        parent = git("rev-parse", "--verify", f"{commit}^")
        tree, _ = merged_tree(git, parent, theirs)
        merged = _changes(git, parent, tree)
        resolved = _changes(git, parent, commit)
        seen = [
            path
            for path, about in merged.items()
            if is_own(path) and path not in resolved
            # git adds no path that is neither in the index nor in the work tree.
            if about.status != "D" or os.path.lexists(git.root / path)
        ]
        with _index(git, tree) as index:
            entries = "".join(f"{about.mode} {about.sha}\t{path}\0" for path, about in resolved.items())
            git("update-index", "-z", "--index-info", stdin=entries, environment=index)
            add(git, seen, index, ignored=True)
            tree = git("write-tree", environment=index)
        text = git("log", "-1", "--format=%B", commit)
        made = _commit(git, tree, (parent, theirs), f"{text.strip()}\n")
        git("update-ref", "-m", "merge", "HEAD", made, commit)
        git("reset", "--quiet")
        return made


@contextmanager
def _index(git: Command, tree: str) -> Generator[dict[str, str]]:
    """Provide the environment in which git has an index of its own, with *tree*."""
    with tempfile.TemporaryDirectory(prefix="gsd-index-") as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        git("read-tree", tree, environment=index)
        yield index


@frozen
class _Change:
    """What became of a path: its new mode and object, and git's letter for it, such as ``D``."""

    mode: str
    sha: str
    status: str


def _changes(git: Command, old: str, new: str) -> dict[str, _Change]:
    """Return the paths that differ between two trees."""
    out = git("diff-tree", "-r", "-z", "--raw", "--no-renames", old, new).split("\0")
    # ":100644 100644 OLD NEW M", and the path after it.
    pairs = ((about.split(), path) for about, path in zip(out[::2], out[1::2], strict=False))
    return {path: _Change(mode, new_sha, status) for (_, mode, _, new_sha, status), path in pairs}


def _commit(git: Command, tree: str, parents: tuple[str, str], text: str) -> str:
    key = "commit.gpgSign"
    options = (*(("--gpg-sign",) if signs(git, key) else ()), "-p", parents[0], "-p", parents[1])
    return git("commit-tree", *options, tree, stdin=text, environment=for_signing(git, key))
