"""Workspaces: work in the project's own folder, without a copy."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

from gsd_core import StepRequest, implements
from gsd_core.hookspecs import gsd_workspace


@implements(gsd_workspace)
async def project_folder(step: StepRequest) -> AbstractAsyncContextManager[Path] | None:
    """Return the project's folder as the workspace."""
    return nullcontext(step.project)
