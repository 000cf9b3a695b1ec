"""The project's git repository: commits with trailers, uncommitted changes, recovery refs, stale locks.

The modules below have plain functions whose first argument is a :class:`~gsd_core.git.command.Command`.
:class:`Git` offers them to code that runs in an event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from . import commit, committed, history, merges, recovery, refs, repository, tags, worktrees
from .command import Command, GitError, GitUnavailable, check_version
from .committed import Uncommitted, digests
from .history import TrailedCommit
from .untrusted import LocalProgram

__all__ = [
    "Git",
    "GitError",
    "GitUnavailable",
    "TrailedCommit",
    "Uncommitted",
    "data_directory",
    "digests",
    "git_common_dir",
]

P = ParamSpec("P")
R = TypeVar("R")
Method: TypeAlias = "Callable[Concatenate[Git, P], Coroutine[Any, Any, R]]"


def git_common_dir(root: Path) -> Path | None:
    """Return the repository's common directory, shared by its worktrees; ``None`` if *root* is in none.

    Without an event loop, for commands that only read.
    """
    git = Command(root=root)
    return repository.common_dir(git) if repository.is_repository(git) else None


def data_directory(root: Path) -> Path | None:
    """Return the folder of the project's journal and lock; ``None`` if *root* is in no repository.

    Without an event loop. See :func:`gsd_core.git.repository.data_directory`.
    """
    git = Command(root=root)
    return repository.data_directory(git) if repository.is_repository(git) else None


def _in_thread(function: Callable[Concatenate[Command, P], R]) -> Method[P, R]:
    """Return *function* as an asynchronous method of :class:`Git`."""

    @wraps(function)
    async def method(self: Git, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.call(function, self.command, *args, **kwargs)

    return method


class Git:
    """git in the project's *root*: the top of a repository or worktree, or a folder inside one.

    Paths are POSIX text relative to *root*; only what is below *root* is seen and committed.
    *environment* is added to that of git's processes: ``GSD_RUN`` marks them as a run's. *trusted* are
    programs in the repository's own settings that may run.
    """

    def __init__(
        self,
        root: Path,
        *,
        environment: Mapping[str, str] | None = None,
        trusted: frozenset[LocalProgram] = frozenset(),
    ) -> None:
        self.root = root
        self.command = Command(root=root, environment=dict(environment or {}), trusted=trusted)
        self._lock = threading.Lock()

    def at(self, root: Path) -> Git:
        """Return git in another folder of the same repository."""
        there = Git(root)
        there.command = self.command.at(root)
        return there

    async def call(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call *function* in a thread, one at a time, and to its end even if this call is cancelled."""

        def alone() -> R:
            with self._lock:
                return function(*args, **kwargs)

        task = asyncio.ensure_future(asyncio.to_thread(alone))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # A thread cannot be cancelled, and half a commit would need a recovery.
            await asyncio.wait([task])
            raise

    check_version = _in_thread(check_version)
    is_repository = _in_thread(repository.is_repository)
    init = _in_thread(repository.init)
    common_dir = _in_thread(repository.common_dir)
    data_directory = _in_thread(repository.data_directory)
    top = _in_thread(repository.top)
    identity = _in_thread(repository.identity)
    check_identity = _in_thread(repository.check_identity)
    is_ignored = _in_thread(repository.is_ignored)
    ignoring_rules = _in_thread(repository.ignoring_rules)

    head = _in_thread(repository.head)
    branch = _in_thread(repository.branch)
    has_branch = _in_thread(repository.has_branch)
    operation = _in_thread(repository.operation)
    entries = _in_thread(repository.entries)
    dirty = _in_thread(repository.dirty)
    untracked = _in_thread(repository.untracked)
    changed = _in_thread(repository.changed)
    files = _in_thread(repository.files)
    full_message = _in_thread(commit.full_message)
    commit = _in_thread(commit.commit)
    tag = _in_thread(tags.tag)
    uncommitted = _in_thread(committed.uncommitted)
    ignored = _in_thread(committed.ignored)
    text_at = _in_thread(committed.text_at)
    tree_facts = _in_thread(committed.tree_facts)

    find = _in_thread(history.find)
    trailed = _in_thread(history.trailed)
    existing_commits = _in_thread(history.existing_commits)
    last_of = _in_thread(history.last_of)
    before = _in_thread(history.before)
    removed_since = _in_thread(history.removed_since)
    order = _in_thread(history.order)
    paths_of = _in_thread(history.paths_of)
    content_of = _in_thread(history.content_of)
    patch_of = _in_thread(history.patch_of)

    read_refs = _in_thread(refs.read_refs)
    is_ancestor = _in_thread(refs.is_ancestor)
    base_of = _in_thread(refs.base_of)
    is_branch_name = _in_thread(refs.is_branch_name)
    commit_of = _in_thread(refs.commit_of)
    start_branch = _in_thread(refs.start_branch)
    switch_branch = _in_thread(refs.switch_branch)
    fast_forward = _in_thread(refs.fast_forward)
    in_the_way = _in_thread(refs.in_the_way)
    merge = _in_thread(merges.merge)
    changed_by_both = _in_thread(merges.changed_by_both)
    store = _in_thread(repository.store)
    show_merged = _in_thread(merges.show_merged)
    with_conflict_markers = _in_thread(merges.with_conflict_markers)
    as_merge = _in_thread(merges.as_merge)
    enter_worktree = _in_thread(worktrees.enter_worktree)
    remove_worktrees = _in_thread(worktrees.remove_worktrees)

    save_recovery = _in_thread(recovery.save_recovery)
    take_back = _in_thread(recovery.take_back)
    sweep_locks = _in_thread(recovery.sweep_locks)
