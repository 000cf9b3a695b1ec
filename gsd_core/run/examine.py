"""Examine a phase without a run: is its verdict stale, and what do the detectors see?"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta

from attrs import define, evolve

from gsd_core.agent import Allow, Ask, Deny, Permission, ToolUse
from gsd_core.gap import GapReport
from gsd_core.git import Git, git_common_dir
from gsd_core.hooks import Hooks
from gsd_core.hookspecs import gsd_permit_tool
from gsd_core.planning.model import PhaseView
from gsd_core.settings import LimitSettings

from .commands import check_plans
from .gaps import find_gaps
from .observe import with_staleness
from .permission import LIMIT, shown, strictest


@define(kw_only=True)
class Desk:
    """The permission gate of a command that a human started: *confirm* asks where the policies do."""

    hooks: Hooks
    confirm: Callable[[str, str], bool]
    step: str
    limit: timedelta = LIMIT

    @property
    def mark(self) -> str:
        """Commands of no run bear no run's id."""
        return "desk"

    async def decide(self, use: ToolUse) -> Permission:
        """Permit, and confirm where the policies ask for it."""
        verdict = strictest(await self.hooks.fan_out(gsd_permit_tool, self.limit, use))
        if not isinstance(verdict, Ask):
            return verdict
        return Allow() if self.confirm(shown(use), verdict.reason) else Deny(reason=verdict.reason)


async def with_verdict(phase: PhaseView) -> PhaseView:
    """Return the phase with its verdict marked if a summary was committed after it."""
    if phase.verdict is None or git_common_dir(phase.project) is None:
        return phase
    return with_staleness(phase, await Git(phase.project).order(".planning"))


async def examine(
    hooks: Hooks, limits: LimitSettings, phase: PhaseView, desk: Desk | None
) -> tuple[GapReport, Collection[str]]:
    """Ask the detectors; with a *desk*, run the executed plans' commands before, as it allows.

    Returns what was found, and the commands that were refused.
    """
    if desk:
        phase = evolve(phase, checks=await check_plans(desk, phase, limits.check))
    refused = [c.result.command for c in phase.checks if c.result.exit is None]
    return await find_gaps(hooks, limits.detector, phase), dict.fromkeys(refused)
