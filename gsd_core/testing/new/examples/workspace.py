"""A workspace: the project itself, provided its disk has enough free space.

Workspaces are asked in the order of the setting `run.workspace`.
To use this one, add `my_plugin` to that setting.
The hook returns an async context manager that yields the path of the tree; it is exited after the attempt.

Settings in `gsd.toml`:

    [my_plugin]
    megabytes = 500
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import attrs
from gsd_core import Permanent, StepRequest, implements, setting, settings_of
from gsd_core.hookspecs import gsd_settings, gsd_workspace


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*megabytes* that must be free before a step starts."""

    megabytes: int = setting(100)


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_workspace)
async def with_free_space(step: StepRequest) -> AbstractAsyncContextManager[Path] | None:
    """Work in the project itself; fail if the disk is nearly full."""
    required = settings_of(MyPluginSettings).megabytes
    usage = await asyncio.to_thread(shutil.disk_usage, step.project)
    if usage.free < required * 1_000_000:
        free = f"{usage.free // 1_000_000} MB free, {required} MB required"
        raise Permanent(
            f"not enough disk space for {step.id}: {free}",
            hint="free some space or lower my_plugin.megabytes",
        )
    return nullcontext(step.project)
