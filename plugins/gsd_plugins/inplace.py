"""Workspaces: the project itself, without a copy."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

from gsd_core import StepRequest, implements
from gsd_core.hookspecs import gsd_workspace


@implements(gsd_workspace)
async def project_itself(step: StepRequest) -> AbstractAsyncContextManager[Path] | None:
    """Work where the project lies."""
    return nullcontext(step.project)
