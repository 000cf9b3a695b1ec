"""Workspaces: a plan is executed in a work tree of its own, and nobody's files in the project are touched."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from functools import cache
from pathlib import Path

from gsd_core import (
    Finding,
    RunInfo,
    StepRequest,
    implements,
    safe_text,
    why_no_work_tree,
    without_work_trees,
    work_tree,
)
from gsd_core.hookspecs import gsd_doctor, gsd_lifespan, gsd_workspace

log = logging.getLogger(__name__)


@implements(gsd_workspace)
async def own_work_tree(step: StepRequest) -> AbstractAsyncContextManager[Path] | None:
    """Return a work tree for a plan, if the project can have some."""
    if step.kind != "execute":
        return None
    if why := await asyncio.to_thread(why_no_work_tree, step.project):
        _say(step.project, why)
        return None
    is_repository = await asyncio.to_thread((step.project / ".git").exists)
    return work_tree(step) if is_repository else None


@cache
def _say(project: Path, why: str) -> None:
    """Say once why nothing is done side by side."""
    log.warning("plans are executed in %s itself, one at a time: %s", project, safe_text(why))


@implements(gsd_doctor)
def doctor() -> Iterable[Finding]:
    """Check whether plans can be executed in work trees."""
    why = why_no_work_tree(Path.cwd())
    message = f"plans are executed in the project's folder, one at a time: {why}" if why else "can be made"
    fix = 'to choose that: workspace = ["inplace"] under [run] in gsd.toml' if why else ""
    yield Finding(name="work trees", ok=not why, message=message, fix=fix)


@implements(gsd_lifespan)
def tidied(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    """Remove the work trees at the end of the run whose commits the project has."""
    yield without_work_trees(run.project)
