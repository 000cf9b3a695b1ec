"""A step wrapper that logs a warning about slow attempts.

Wrappers are nested: `call_next(step)` runs one attempt, through the inner wrappers and then the step itself.
A wrapper may change what a step may use but not which step it is, and must not retry a cancelled attempt.

Settings in `gsd.toml`:

    [my_plugin]
    warn_after = "10m"
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import timedelta

import attrs
from gsd_core import RunStep, StepRequest, StepResult, implements, setting, settings_of
from gsd_core.hookspecs import gsd_settings, gsd_wrap_step

log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*warn_after*: how long an attempt may take before a warning is logged."""

    warn_after: timedelta = setting(timedelta(minutes=15))


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_wrap_step)
async def warn_if_slow(step: StepRequest, call_next: RunStep) -> StepResult:
    """Time the attempt; its result or exception passes through."""
    clock = asyncio.get_running_loop().time
    start = clock()
    try:
        return await call_next(step)
    finally:
        took = timedelta(seconds=clock() - start)
        if took > settings_of(MyPluginSettings).warn_after:
            log.warning("%s took %s", step.id, took)
