"""Work trees of the repository, which are made for plans and removed once the project has their commits."""

from __future__ import annotations

import fcntl
import logging
import os
import uuid
from contextlib import suppress
from pathlib import Path

from .command import Command, is_older
from .committed import GITLINK
from .errors import GitError, UntrustedFilter
from .ignored import bring_ignored
from .merges import OLDEST
from .refs import is_ancestor
from .repository import changed, git_dir, head, is_ignored, one_writer, read_head
from .untrusted import refuse_filters

log = logging.getLogger(__name__)

_READY = "gsd-ready"
"""A file in git's folder of a work tree, once everything is there."""


def reason_against(git: Command) -> str:
    """Return why the project cannot have work trees for its plans; empty if it can."""
    if git.layout() is None:
        return ""
    if not (git.root / ".git").exists():
        return "the project is in a subfolder of its repository"
    if is_older(git, OLDEST):
        return f"merging needs git {OLDEST}"
    staged = f"\0{git('ls-files', '--stage', '-z')}"
    # git ignores no file that it tracks.
    if "\t.planning/STATE.md\0" not in staged and is_ignored(git, ".planning/STATE.md"):
        return "git ignores .planning, and agents read it"
    if f"\0{GITLINK}" in staged:
        return "it has submodules, and git fills them in one work tree only"
    if git.run("config", "--type=bool", "--get", "core.sparseCheckout", ok=(0, 1))[1] == "true":
        return "it is a sparse checkout"
    try:
        refuse_filters(git)
    except UntrustedFilter as error:
        return str(error)
    return ""


def enter_worktree(git: Command, path: Path) -> int:
    """Return a descriptor of the work tree at *path*, outside of the project, which keeps it from removal.

    If there is none, it is made at the project's last commit, and on no branch, and gets the dependencies
    that are installed in the project: see :func:`bring_ignored`.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with one_writer(git):
        if not path.exists():
            # By force, if one was there before, and somebody removed its folder.
            git("worktree", "add", "--force", "--quiet", "--detach", str(path), "HEAD")
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    try:
        ready = git_dir(git.at(path)) / _READY
        if not ready.exists():
            bring_ignored(git, path)
            ready.touch()
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def remove_worktrees(git: Command, folder: Path) -> None:
    """Remove the work trees in *folder* in which nobody works, if the project has all that is in them."""
    with one_writer(git):
        for path in sorted(folder.glob("*")):
            # What git refuses to remove has something that is nowhere else.
            with suppress(GitError, OSError):
                _remove(git, path)
    with suppress(OSError):
        folder.rmdir()


def _remove(git: Command, path: Path) -> None:
    tree = git.at(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        pointer = path / ".git"
        if pointer.is_file() and not (path / pointer.read_text().removeprefix("gitdir:").strip()).is_dir():
            # The project's folder was moved or removed, and there is a new repository at its place.
            kept = path.rename(f"{path.parent}-{uuid.uuid4().hex[:8]}")
            log.warning("a work tree of a repository that was here before is kept in %s", kept)
            return
        here = read_head(tree)
        last = here[1] if here else head(tree)
        if is_ancestor(git, last or "", head(git) or "") and not changed(tree):
            git("worktree", "remove", str(path))
    finally:
        os.close(descriptor)
