"""Workspaces: a plan is executed in a work tree of its own, and nobody's files in the project are touched."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from gsd_core import RunInfo, StepRequest, implements, without_work_trees, work_tree
from gsd_core.hookspecs import gsd_lifespan, gsd_workspace


@implements(gsd_workspace)
async def own_work_tree(step: StepRequest) -> AbstractAsyncContextManager[Path] | None:
    """Return a work tree for a plan; not for a project in a subfolder of its repository."""
    is_top = await asyncio.to_thread((step.project / ".git").exists)
    return work_tree(step) if step.kind == "execute" and is_top else None


@implements(gsd_lifespan)
def tidied(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    """Remove the work trees at the end of the run whose commits the project has."""
    yield without_work_trees(run.project)
