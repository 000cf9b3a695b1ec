"""Which model does which work. Source: GSD's model profiles (planning format, 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from gsd_core import Profile, Role, StepRequest

PROFILES: Mapping[Role, Mapping[Profile, str]] = {
    "planner": {"quality": "opus", "balanced": "opus", "budget": "sonnet"},
    "roadmapper": {"quality": "opus", "balanced": "sonnet", "budget": "sonnet"},
    "executor": {"quality": "opus", "balanced": "sonnet", "budget": "sonnet"},
    "verifier": {"quality": "sonnet", "balanced": "sonnet", "budget": "haiku"},
}


def model_for(role: Role, step: StepRequest) -> str:
    """Return the model of the step, else the project's override for the role, else the profile's.

    ``inherit`` is the agent's own default.
    """
    chosen = step.model or _override(role, step.planning.config) or PROFILES[role][step.profile]
    return "" if chosen == "inherit" else chosen


def _override(role: Role, config: Mapping[str, Any]) -> str:
    overrides = config.get("model_overrides")
    if not isinstance(overrides, Mapping):
        return ""
    chosen = cast("Mapping[str, object]", overrides).get(f"gsd-{role}", "")
    return chosen if isinstance(chosen, str) else ""
