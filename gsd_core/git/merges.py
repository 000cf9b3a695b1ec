"""Merges that touch no branch and no file until they are wanted; they need git 2.38."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path

from .command import Command, for_signing
from .commit import FROM_STDIN, listed
from .refs import REAL_OBJECTS, is_ancestor
from .repository import one_writer


def merge(git: Command, ours: str, theirs: str, text: str) -> tuple[str, tuple[str, ...]]:
    """Return a commit that merges *theirs* into *ours*, with the message *text*.

    If both changed the same lines, there is none, but the paths. Raises ``GitError`` if git is too old.
    """
    tree, paths = merged_tree(git, ours, theirs)
    return ("" if paths else _commit(git, tree, (ours, theirs), text)), paths


def merged_tree(git: Command, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
    """Return the tree of a merge, and the paths in which both sides changed the same lines.

    Those have both sides between conflict markers there.
    """
    options = ("--write-tree", "--name-only", "--no-messages", "-z")
    code, out = git.run("merge-tree", *options, ours, theirs, ok=(0, 1), environment=REAL_OBJECTS)
    tree, *paths = out.split("\0")
    return tree, tuple(dict.fromkeys(path for path in paths if path)) if code else ()


def show_merged(git: Command, theirs: str) -> tuple[str, ...]:
    """Change the files as a merge with *theirs* would, and nothing else; return the paths in conflict.

    Files that have uncommitted changes already stay as they are: some of them are merged then.
    """
    tree, conflicts = merged_tree(git, "HEAD", theirs)
    changed = git("diff-tree", "-r", "-z", "--name-only", "--no-renames", "HEAD", tree).split("\0")
    dirty = git("diff", "-z", "--name-only", "--no-renames", "HEAD").split("\0")
    paths = [path for path in changed if path and path not in dirty]
    if paths:
        git("restore", f"--source={tree}", "--worktree", *FROM_STDIN, stdin=listed(paths))
    return conflicts


def with_conflict_markers(git: Command, paths: Collection[str]) -> tuple[str, ...]:
    """Return those of *paths* whose uncommitted changes add conflict markers, as git recognizes them."""
    options = ("--name-only", "-z", r"-G^(<<<<<<<|>>>>>>>)( |$)", "HEAD")
    found = git("diff", *options).split("\0") if paths else ()
    return tuple(path for path in found if path in paths)


def as_merge(git: Command, commit: str, theirs: str) -> str:
    """Replace *commit*, the last one, which resolves a merge with *theirs*, by that merge, and return it.

    What the commit does not contain, such as files that only the run may change, is merged too. It can be
    repeated.
    """
    if is_ancestor(git, theirs, commit):
        return commit
    with one_writer(git):
        parent = git("rev-parse", "--verify", f"{commit}^")
        tree, _ = merged_tree(git, parent, theirs)
        resolved = git("diff-tree", "-r", "-z", "--raw", "--no-renames", parent, commit).split("\0")
        with tempfile.TemporaryDirectory(prefix="gsd-index-") as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            git("read-tree", tree, environment=index)
            # ":100644 100644 OLD NEW M", and the path after it.
            entries = [
                f"{about.split()[1]} {about.split()[3]}\t{path}\0"
                for about, path in zip(resolved[::2], resolved[1::2], strict=False)
            ]
            git("update-index", "-z", "--index-info", stdin="".join(entries), environment=index)
            tree = git("write-tree", environment=index)
        text = git("log", "-1", "--format=%B", commit)
        made = _commit(git, tree, (parent, theirs), f"{text.strip()}\n")
        git("update-ref", "-m", "merge", "HEAD", made, commit)
        git("reset", "--quiet")
        return made


def _commit(git: Command, tree: str, parents: tuple[str, str], text: str) -> str:
    key = "commit.gpgSign"
    signs = git.run("config", "--type=bool", "--get", key, ok=(0, 1, 128))[1] == "true"
    options = (*(("--gpg-sign",) if signs else ()), "-p", parents[0], "-p", parents[1])
    return git("commit-tree", *options, tree, stdin=text, environment=for_signing(git, key))
