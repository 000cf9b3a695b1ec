"""Dispatcher: each plan is executed in a clone and a process of its own, on this machine."""

from __future__ import annotations

from gsd_core import Dispatcher, UnitProcesses, implements, state_folder
from gsd_core.hookspecs import gsd_dispatch


@implements(gsd_dispatch)
async def processes() -> Dispatcher:
    """Return the place on this machine."""
    return UnitProcesses(folder=state_folder() / "units")
