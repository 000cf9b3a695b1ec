"""The server beside a run, in the run's own process."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from gsd_core import RunInfo
from gsd_core.project import Project

from .server import serving
from .single import SingleRun

HOST = "127.0.0.1"


@asynccontextmanager
async def serve_run(run: RunInfo, port: int) -> AsyncGenerator[None]:
    """Serve the page about *run* as long as the context is entered."""
    async with (
        SingleRun(project=Project(run.project), run=run.id, pid=os.getpid()) as source,
        serving(source, host=HOST, port=port, mcp=False) as running,
    ):
        note = "" if running.port == port or not port else f" (port {port} is taken)"
        # Standard output may be for data, and the URL is for a person.
        print(f"page of this run{note}: {running.url}", file=sys.stderr, flush=True)
        yield
