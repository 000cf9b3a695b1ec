"""The model for each role. Source: GSD's model profiles (planning format, 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from gsd_core import Profile, Role, StepRequest

PROFILES: Mapping[Role, Mapping[Profile, str]] = {
    "planner": {"quality": "opus", "balanced": "opus", "budget": "sonnet", "adaptive": "opus"},
    "roadmapper": {"quality": "opus", "balanced": "sonnet", "budget": "sonnet", "adaptive": "opus"},
    "executor": {"quality": "opus", "balanced": "sonnet", "budget": "sonnet", "adaptive": "sonnet"},
    "codebase-mapper": {"quality": "sonnet", "balanced": "haiku", "budget": "haiku", "adaptive": "haiku"},
    "verifier": {"quality": "sonnet", "balanced": "sonnet", "budget": "haiku", "adaptive": "sonnet"},
}
"""``adaptive`` chooses by the tier of GSD's agent: heavy, standard or light. ``inherit`` chooses nothing."""


def model_for(role: Role, step: StepRequest) -> str:
    """Return the run's model, else the override in config.json, else the profile's model for *role*.

    ``inherit`` gives the empty string: the agent's own default.
    """
    overrides = step.planning.config.get("model_overrides")
    override = (
        cast("Mapping[str, object]", overrides).get(f"gsd-{role}") if isinstance(overrides, Mapping) else None
    )
    configured = override if isinstance(override, str) else ""
    chosen = step.model or configured or PROFILES[role].get(step.profile, "inherit")
    return "" if chosen == "inherit" else chosen
