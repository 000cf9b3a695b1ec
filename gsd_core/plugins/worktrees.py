"""The folder of a step that executes a plan: a work tree of its own, so that nobody's files are touched."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from gsd_core.git import Git
from gsd_core.git.command import Command
from gsd_core.git.worktrees import reason_against
from gsd_core.model.step import StepRequest
from gsd_core.settings import RunSettings, settings_of, state_folder


def why_no_work_tree(project: Path) -> str:
    """Return why plans have to be executed in the project's own folder; empty if they can have work trees.

    A folder in no repository is not judged: a run makes one there.
    """
    if not settings_of(RunSettings).commit_docs:
        return "commit_docs is false, and agents read .planning"
    return reason_against(Command(root=project))


@asynccontextmanager
async def work_tree(step: StepRequest) -> AsyncGenerator[Path]:
    """Provide a work tree of the project's repository, at the project's last commit, for a ``gsd_workspace``.

    It is in the user's own folder for gsd, and stays when the attempt has ended: the next attempt at the step
    continues in it. Those in which nobody works and whose commits the project has got are removed when
    another one begins, and by :func:`without_work_trees`. Raises ``GitError`` if git cannot make one.
    """
    git, folder = Git(step.project), _folder(step.project)
    await git.remove_worktrees(folder)
    path = folder / step.id.replace("/", "-")
    descriptor = await git.enter_worktree(path)
    try:
        yield path
    finally:
        os.close(descriptor)


@asynccontextmanager
async def without_work_trees(project: Path) -> AsyncGenerator[None]:
    """On leaving, remove the work trees whose commits the project has, for a ``gsd_lifespan``."""
    try:
        yield
    finally:
        if await asyncio.to_thread(_folder(project).is_dir):
            await Git(project).remove_worktrees(_folder(project))


def _folder(project: Path) -> Path:
    path = project.resolve()
    return state_folder() / "worktrees" / f"{path.name}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}"
