"""The task of an agent in each role, and its model. Source: GSD's model profiles (planning format, 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from gsd_core import AgentFunction, AgentTask, Limits, Profile, Role, StepRequest

from .answers import schema_of

PROFILES: Mapping[Role, Mapping[Profile, str]] = {
    "planner": {"quality": "opus", "balanced": "opus", "budget": "sonnet", "adaptive": "opus"},
    "roadmapper": {"quality": "opus", "balanced": "sonnet", "budget": "sonnet", "adaptive": "opus"},
    "executor": {"quality": "opus", "balanced": "sonnet", "budget": "sonnet", "adaptive": "sonnet"},
    "discusser": {"quality": "opus", "balanced": "opus", "budget": "sonnet", "adaptive": "opus"},
    "debugger": {"quality": "opus", "balanced": "sonnet", "budget": "sonnet", "adaptive": "opus"},
    "codebase-mapper": {"quality": "sonnet", "balanced": "haiku", "budget": "haiku", "adaptive": "haiku"},
    "verifier": {"quality": "sonnet", "balanced": "sonnet", "budget": "haiku", "adaptive": "sonnet"},
    "phase-researcher": {"quality": "opus", "balanced": "sonnet", "budget": "haiku", "adaptive": "sonnet"},
    "plan-checker": {"quality": "sonnet", "balanced": "sonnet", "budget": "haiku", "adaptive": "haiku"},
}
"""``adaptive`` chooses by the tier of GSD's agent: heavy, standard or light. ``inherit`` chooses nothing."""


AGENTS: Mapping[Role, tuple[str, ...]] = {
    "phase-researcher": ("gsd-phase-researcher", "gsd-researcher"),
    # Its work in GSD: what a phase leaves open, with the likely answers.
    "discusser": ("gsd-assumptions-analyzer", "gsd-discusser"),
}
"""The names of GSD's agents in ``model_overrides`` and ``agent_skills``, if not ``gsd-ROLE``."""
STEPS: Mapping[Role, str] = {
    "planner": "planning",
    "roadmapper": "planning",
    "discusser": "discuss",
    "executor": "execution",
    "debugger": "execution",
    "verifier": "verification",
    "plan-checker": "verification",
    "phase-researcher": "research",
    "codebase-mapper": "research",
}
"""The key of ``models`` for each role, as in the agents' catalog of gsd-core 1.14."""


READING = ("Read", "Glob", "Grep")


def task_for(
    step: StepRequest,
    role: Role,
    *,
    agent: Role | None = None,
    system: str,
    prompt: str,
    answer: type,
    turns: int,
    tools: tuple[str, ...] = READING,
    functions: tuple[AgentFunction, ...] = (),
    writable: bool = False,
) -> AgentTask:
    """Return the task of *role* in *step*, to be answered with an *answer*.

    *agent* is the role under which its model is set, if another.
    """
    return AgentTask(
        step=step.id,
        run=step.run,
        role=role,
        system=system,
        prompt=prompt,
        tools=tools,
        functions=functions,
        schema=schema_of(answer),
        model=model_for(agent or role, step),
        tree=step.tree,
        writable=writable,
        limits=Limits(turns=turns),
    )


def model_for(role: Role, step: StepRequest) -> str:
    """Return the model for *role*, the first of these that is set.

    The run's own model, ``model_overrides`` and ``models`` of config.json, the model of the profile.
    An alias is replaced by what ``model_profile_overrides.claude`` gives for it. ``inherit`` gives the empty
    string: the agent's own default.
    """
    if step.model:
        return "" if step.model == "inherit" else step.model
    config = step.planning.config
    overrides = _strings(config.get("model_overrides"))
    named = [overrides[agent] for agent in agents_of(role) if agent in overrides]
    by_step = _strings(config.get("models")).get(STEPS.get(role, ""), "")
    chosen = next(iter(named), "") or by_step or PROFILES[role].get(step.profile, "inherit")
    if chosen == "inherit":
        return ""
    runtimes = config.get("model_profile_overrides")
    tiers = cast("Mapping[str, object]", runtimes).get("claude") if isinstance(runtimes, Mapping) else None
    return _strings(tiers).get(chosen) or chosen


def agents_of(role: Role) -> tuple[str, ...]:
    """Return the names of GSD's agents for *role* in config.json."""
    return AGENTS.get(role, (f"gsd-{role}",))


def _strings(value: object) -> dict[str, str]:
    """Return the texts of an object of config.json, by name; anything else is left out."""
    if not isinstance(value, Mapping):
        return {}
    items = cast("Mapping[str, object]", value).items()
    return {name: text for name, text in items if isinstance(text, str) and text}
