"""A resource that lives as long as a run: a file that exists while the run is active.

Each context manager that `gsd_lifespan` yields is entered before the first step and exited after the last,
in reverse order.
Keep clients, sockets and screens here and not in module variables: two runs may share a process.

Settings in `gsd.toml`:

    [my_plugin]
    path = "~/.gsd-is-running"
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import attrs
from gsd_core import RunInfo, implements, setting, settings_of
from gsd_core.hookspecs import gsd_lifespan, gsd_settings


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*path* of the file; if empty, none is written."""

    path: str = setting("")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_lifespan)
def run_marker(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    """Keep the file in place for the duration of the run."""
    if path := settings_of(MyPluginSettings).path:
        yield _marker_file(Path(path).expanduser(), run.id)


@asynccontextmanager
async def _marker_file(path: Path, run: str) -> AsyncGenerator[Path]:
    await asyncio.to_thread(path.write_text, f"{run}\n", encoding="utf-8")
    try:
        yield path
    finally:
        await asyncio.to_thread(path.unlink, missing_ok=True)
