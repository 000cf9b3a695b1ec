"""The parts of the agents' prompts: our own text from data files, all other material inside fences."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from gsd_core import PhaseView, Plan, StepRequest

from .paths import executed_plans


@cache
def prompt_text(name: str) -> str:
    """Return the text of ``prompts/NAME.md``."""
    return files("gsd_plugins.native").joinpath("prompts", f"{name}.md").read_text("utf-8").strip()


def system_prompt(name: str) -> str:
    """Return the system prompt of a role: its instructions, and the rules that all roles share."""
    return join(prompt_text(name), prompt_text("rules"))


def phase_section(step: StepRequest, phase: PhaseView) -> str:
    """Return the phase's goal, its success criteria, and its requirements with their texts."""
    texts = {requirement.id: requirement.text for requirement in step.planning.requirements}
    requirements = [f"{name}: {texts.get(name, '(not in REQUIREMENTS.md)')}" for name in phase.requirements]
    core_value = step.planning.core_value
    body = join(
        f"Name: {phase.name}",
        f"Goal: {phase.goal}",
        f"Success criteria:\n{bullets(phase.criteria)}" if phase.criteria else "",
        f"Requirements:\n{bullets(requirements)}" if requirements else "",
        f"Core value of the project: {core_value}" if core_value else "",
    )
    return section(f"Phase {phase.number}", fence("phase", body))


def decisions_section(phase: PhaseView) -> str:
    """Return the phase's decisions (CONTEXT.md) and research."""
    return join(
        section("Decisions to follow", fence("context", phase.context)),
        section("Research", fence("research", phase.research)),
    )


def existing_plans_section(step: StepRequest, phase: PhaseView) -> str:
    """Return the plans that were executed so far, with their files, and the phase's open plans."""
    executed = [plan for each in step.planning.phases for plan in executed_plans(each)]
    unexecuted = [plan for plan in phase.plans if not plan.summary]
    return join(
        section("Executed so far", fence("built", _outlines(executed))),
        section("Planned in this phase, not yet executed", fence("planned", _outlines(unexecuted))),
    )


def dependencies_section(step: StepRequest, phase: PhaseView, plan: Plan) -> str:
    """Return the executed plans that *plan* and its phase depend on, with the files they provide."""
    earlier_phases = [step.planning.phase(number) for number in phase.depends_on]
    earlier = [other for each in earlier_phases if each for other in executed_plans(each)]
    same_phase = [other for other in executed_plans(phase) if other.id in plan.depends_on]
    return section("What this plan builds on", fence("built", _outlines([*earlier, *same_phase])))


def conventions_section(step: StepRequest) -> str:
    """Return the project's own rules for agents, if it has a CLAUDE.md."""
    title = "Project conventions; follow them where they apply to your task"
    return section(title, fence("CLAUDE.md", step.planning.documents.get("CLAUDE.md", "")))


def _outlines(plans: Iterable[Plan]) -> str:
    lines: list[str] = []
    for plan in plans:
        summary = f" (see {plan.summary})" if plan.summary else ""
        title = plan.name or plan.objective.partition("\n")[0]
        lines.append(f"- {plan.id} {title}{summary}")
        for artifact in plan.must_haves.artifacts:
            exports = f" ({', '.join(artifact.exports)})" if artifact.exports else ""
            lines.append(f"  {artifact.path}: {artifact.provides}{exports}")
    return "\n".join(lines)


def join(*parts: str) -> str:
    """Return the parts that are not empty, separated by blank lines."""
    return "\n\n".join(part for part in parts if part.strip())


def section(title: str, body: str) -> str:
    """Return *body* under a heading; empty if there is no body."""
    return f"# {title}\n{body}" if body.strip() else ""


def bullets(items: Iterable[str]) -> str:
    """Return a list with one line per item."""
    return "\n".join(f"- {item}" for item in items)


def fence(name: str, text: str) -> str:
    """Return *text* as data: between tags that do not occur in it, so it cannot close them.

    The tag depends only on the text, so the same text always gives the same prompt.
    """
    if not text.strip():
        return ""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    tags = (f"data-{digest[:size]}" for size in range(8, len(digest) + 1))
    tag = next(tag for tag in tags if tag not in text)
    plain_name = re.sub(r"[^\w. -]+", "_", name)[:100]
    return f'<{tag} name="{plain_name}">\n{text.strip()}\n</{tag}>'
