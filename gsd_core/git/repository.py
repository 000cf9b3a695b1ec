"""The repository as the rest of the core sees it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from . import commit, history, recovery, status
from .command import Command, GitError
from .history import DiffStat, TrailedCommit

P = ParamSpec("P")
R = TypeVar("R")


def git_common_dir(root: Path) -> Path | None:
    """Return the repository's common directory (shared by its worktrees); ``None`` if *root* is in none.

    Without an event loop, for commands that only read.
    """
    git = Command(root=root)
    return _common_dir(git) if _is_repository(git) else None


class Git:
    """git in the project's *root*, which may be a folder inside a repository or a worktree.

    Paths are POSIX text relative to *root*. *environment* marks the processes (``GSD_RUN``).
    A call that is cancelled first lets git finish: no commit is left half made.
    """

    def __init__(self, root: Path, *, environment: Mapping[str, str] | None = None) -> None:
        self.root = root
        self._command = Command(root=root, environment=dict(environment or {}))
        self._lock = threading.Lock()

    async def is_repository(self) -> bool:
        """Whether *root* is inside a work tree."""
        return await self._do(_is_repository)

    async def init(self) -> None:
        """Make *root* a repository; one that is there already stays as it is."""
        await self._do(_init)

    async def common_dir(self) -> Path:
        """Return the repository's common directory, shared by all its worktrees."""
        return await self._do(_common_dir)

    async def top(self) -> Path:
        """Return the top folder of the work tree."""
        return Path(await self._do(_top))

    async def identity(self) -> str | None:
        """Return ``Name <email>`` as git was told it; ``None`` if it was not."""
        return await self._do(_identity)

    async def identify(self, name: str, email: str) -> None:
        """Tell git who commits in this repository."""
        await self._do(_identify, name, email)

    async def head(self) -> str | None:
        """Return the id of the last commit; ``None`` if there is none yet."""
        return await self._do(history.head)

    async def dirty(self) -> tuple[str, ...]:
        """Return the tracked paths that differ from the last commit, staged or not."""
        return await self._do(status.dirty)

    async def untracked(self) -> tuple[str, ...]:
        """Return the paths that git neither knows nor ignores."""
        return await self._do(status.untracked)

    async def changed(self, since_dirty: Collection[str] = ()) -> tuple[str, ...]:
        """Return all uncommitted paths, tracked and untracked, except *since_dirty*."""
        return await self._do(status.changed, since_dirty)

    async def commit(
        self,
        paths: Collection[str],
        subject: str,
        *,
        body: str = "",
        trailers: Mapping[str, str],
        verify: bool,
        allow_empty: bool = False,
    ) -> str:
        """Commit exactly what differs at or below *paths*, deletions too, and return the commit's id.

        What else is staged stays staged. Ignored paths and those that do not differ are passed
        over; if none is left, return ``""`` (unless *allow_empty*). *verify*: run the user's hooks.
        Raise ``GitError`` if git or a hook refuses.
        """
        make = partial(commit.commit, body=body, trailers=trailers, verify=verify, allow_empty=allow_empty)
        return await self._do(make, paths, subject)

    async def find(self, trailers: Mapping[str, str], *, since: str = "") -> str | None:
        """Return the latest commit below HEAD whose ``GSD-`` trailers are exactly *trailers*.

        With *since*, a commit that *since* does not reach.
        """
        return await self._do(history.find, trailers, since)

    async def trailed(self, run: str | None = None) -> tuple[TrailedCommit, ...]:
        """Return the commits of *run*, or of all runs, that HEAD reaches, oldest first."""
        return await self._do(history.trailed, run)

    async def last_of(self, path: str) -> str:
        """Return the last commit below HEAD that changed *path*; ``""`` if none did."""
        return await self._do(history.last_of, path)

    async def order(self, directory: str) -> dict[str, int]:
        """Return for each file below *directory* when it was last committed: a larger number is later.

        Uncommitted and ignored files share the largest number. Compare within one answer only.
        """
        return await self._do(history.order, directory)

    async def paths_of(self, commit: str) -> tuple[str, ...]:
        """Return the paths that *commit* changed."""
        return await self._do(history.paths_of, commit)

    async def created_by(self, commit: str) -> tuple[str, ...]:
        """Return the paths that are new with *commit*."""
        return await self._do(history.created_by, commit)

    async def time_of(self, commit: str) -> datetime:
        """Return when *commit* was made, in UTC."""
        return await self._do(history.time_of, commit)

    async def diff_stat(self, since: str | None, until: str = "HEAD") -> DiffStat:
        """Return the size of the difference between two commits; *since* ``None`` is an empty tree."""
        return await self._do(history.diff_stat, since, until)

    async def is_ignored(self, path: str) -> bool:
        """Whether git ignores *path*; what it tracks it does not ignore."""
        return await self._do(_is_ignored, path)

    async def save_recovery(self, name: str) -> str:
        """Keep everything uncommitted under ``refs/gsd/recover/NAME`` and return the ref, or ``""``.

        Index and work tree are not touched; an earlier recovery of that name stays (``NAME-2``).
        """
        return await self._do(recovery.save_recovery, name)

    async def sweep_locks(self) -> tuple[str, ...]:
        """Remove the locks of a killed git and return them; only while holding the project's lock."""
        return await self._do(_sweep_locks)

    async def _do(self, call: Callable[Concatenate[Command, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run *call* in a thread, one at a time, to its end even if we are cancelled."""
        task = asyncio.ensure_future(
            asyncio.to_thread(self._alone, partial(call, self._command, *args, **kwargs))
        )
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise

    def _alone(self, call: Callable[[], R]) -> R:
        with self._lock:
            return call()


def _is_repository(git: Command) -> bool:
    try:
        return git("rev-parse", "--is-inside-work-tree") == "true"
    except GitError as error:
        if "not a git repository" in error.output:
            return False
        raise


def _init(git: Command) -> None:
    if not _is_repository(git) or Path(_top(git)).resolve() != git.root.resolve():
        git("-c", "advice.defaultBranchName=false", "init", "--quiet")


def _common_dir(git: Command) -> Path:
    return (git.root / git("rev-parse", "--git-common-dir")).resolve()


def _top(git: Command) -> str:
    return git("rev-parse", "--show-toplevel")


def _identity(git: Command) -> str | None:
    code, out = git.run("-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT", ok=(0, 128))
    return out.rsplit(" ", 2)[0] if code == 0 else None


def _identify(git: Command, name: str, email: str) -> None:
    git("config", "--local", "user.name", name)
    git("config", "--local", "user.email", email)


def _is_ignored(git: Command, path: str) -> bool:
    # This command knows no literal pathspecs; behind "./" there is no magic, and it expands no pattern.
    environment = {"GIT_LITERAL_PATHSPECS": "0"}
    arguments = ("check-ignore", "--quiet", "-z", "--stdin")
    return git.run(*arguments, stdin=f"./{path}\0", ok=(0, 1), environment=environment)[0] == 0


def _sweep_locks(git: Command) -> tuple[str, ...]:
    return recovery.sweep_locks(_common_dir(git))
