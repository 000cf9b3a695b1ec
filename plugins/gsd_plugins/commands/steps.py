"""Which command executes which step, and what it has to reach."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import attrs

from gsd_core import AgentResult, Permanent, PhaseView, StepHost, StepRequest, StepResult
from gsd_core.planning.model import Planning
from gsd_core.planning.survey import read_planning

from .installed import INSTALL, invocation
from .session import run_session

INIT, NEXT = "new-project", "new-milestone"
MAX_WORDS = 500
"""Characters of a command's last words that the error about it quotes."""


@attrs.frozen(kw_only=True)
class Command:
    """A command of GSD: its *name*, its *arguments* for a step, and what is *missing* after it, in words."""

    name: str
    arguments: Callable[[StepRequest], str]
    missing: Callable[[StepRequest, Planning], str]


async def execute_command(step: StepRequest, host: StepHost, command: Command) -> StepResult:
    """Run the command of *step*, unless what it is for is there already.

    An earlier command may have done it: ``execute-phase`` executes all plans of a phase.
    """
    if not command.missing(step, step.planning):
        return StepResult(subject="nothing to do: an earlier command has done it")
    await run_command(step, host, command)
    # Not a commit's subject, because there is nothing to commit; it is shown.
    return StepResult(subject=f"done by {invocation(command.name, step.tree)}")


async def run_command(step: StepRequest, host: StepHost, command: Command, *, more: str = "") -> Planning:
    """Run *command* and return the planning files after it; *more* is added to the system prompt.

    Raises ``Permanent`` if the command is not installed, or ended without what the step is for.
    """
    called = invocation(command.name, step.tree)
    if not called:
        raise Permanent(f"the command /gsd:{command.name} is not installed", hint=INSTALL)
    prompt = f"{called} {command.arguments(step)}".rstrip()
    more = _idea(step) if step.kind == "init" else more
    result = await run_session(step, host, prompt, name=called, more=more)
    planning = await asyncio.to_thread(read_planning, step.project)
    if missing := command.missing(step, planning):
        hint = f"see what {called} needs by running it in Claude Code, then resume"
        raise Permanent(f"{called} ended, but {missing}{last_words(result)}", hint=hint)
    return planning


def last_words(result: AgentResult) -> str:
    """Return the end of the agent's text for an error message."""
    text = " ".join(result.text.split())
    return f"; it said: {'…' if len(text) > MAX_WORDS else ''}{text[-MAX_WORDS:]}" if text else ""


def _number(step: StepRequest) -> str:
    return step.phase.number if step.phase else ""


def _in_phase(missing: Callable[[StepRequest, PhaseView], str]) -> Callable[[StepRequest, Planning], str]:
    """Return what is *missing* in the phase of a step, or that the phase is gone."""

    def missing_in(step: StepRequest, planning: Planning) -> str:
        phase = planning.phase(_number(step))
        return missing(step, phase) if phase else f"phase {_number(step)} is not in ROADMAP.md any more"

    return missing_in


# init


MAX_IDEA = 100_000
"""Bytes of an idea: it is part of a command line, where Linux allows 128 KiB for one argument."""
IDEA = "(the idea document is in your system prompt, between <idea> and </idea>)"


def _idea(step: StepRequest) -> str:
    """Return the idea for the system prompt.

    Not for the prompt: there, Claude Code adds the content of each file that an ``@path`` names, and an idea
    may come from somebody else.
    """
    if step.idea is None:
        raise Permanent("no idea given", hint="gsd run IDEA.md")
    if (size := len(step.idea.text.encode())) > MAX_IDEA:
        hint = f"shorten it, or create the project with {INIT} in Claude Code and then use gsd run"
        raise Permanent(f"the idea has {size} bytes, and a command takes {MAX_IDEA}", hint=hint)
    return f"The user's idea document, {step.idea.name}:\n<idea>\n{step.idea.text}\n</idea>"


def command_of(step: StepRequest) -> Command | None:
    """Return the command of *step*; a project whose milestones have shipped gets another one."""
    if step.kind == "init" and step.planning.idle:
        # It has no --auto: its first question is what to build next, which the idea answers.
        return Command(name=NEXT, arguments=lambda step: IDEA, missing=_no_roadmap)
    return COMMANDS.get(step.kind)


def _no_roadmap(step: StepRequest, planning: Planning) -> str:
    return "" if planning.phases else "there is no .planning/ROADMAP.md with phases that are not shipped"


# discuss


def _no_context(step: StepRequest, phase: PhaseView) -> str:
    return "" if phase.context or phase.plans else f"phase {phase.number} has no CONTEXT.md"


# plan


def _plan_arguments(step: StepRequest) -> str:
    return f"{_number(step)} --gaps" if step.report and step.report.gaps else _number(step)


def _no_plans(step: StepRequest, phase: PhaseView) -> str:
    if unreadable := [plan.path for plan in phase.plans if plan.unreadable]:
        return f"these plans cannot be read: {', '.join(unreadable)}"
    there = {plan.id for plan in phase.plans}
    if absent := [plan for plan in phase.listed if plan not in there]:
        return f"the roadmap lists plans that do not exist: {', '.join(absent)}"
    if not phase.plans:
        return f"phase {phase.number} has no PLAN.md"
    if step.report and step.report.gaps and all(plan.summary for plan in phase.plans):
        return f"phase {phase.number} has no new PLAN.md for its gaps"
    return ""


# execute


def _execute_arguments(step: StepRequest) -> str:
    return f"{_number(step)} --gaps-only" if step.plan and step.plan.gap_closure else _number(step)


def _no_summary(step: StepRequest, phase: PhaseView) -> str:
    name = step.plan.id if step.plan else ""
    plan = next((one for one in phase.plans if one.id == name), None)
    if plan is None:
        return f"plan {name} does not exist any more"
    return "" if plan.summary else f"plan {name} has no SUMMARY.md"


COMMANDS: Mapping[str, Command] = {
    "init": Command(name=INIT, arguments=lambda step: f"--auto {IDEA}", missing=_no_roadmap),
    "discuss": Command(
        name="discuss-phase", arguments=lambda step: f"{_number(step)} --auto", missing=_in_phase(_no_context)
    ),
    "plan": Command(name="plan-phase", arguments=_plan_arguments, missing=_in_phase(_no_plans)),
    "execute": Command(name="execute-phase", arguments=_execute_arguments, missing=_in_phase(_no_summary)),
}
"""The commands by the kind of step.

*verify* is in :mod:`.verify`, *audit* and *close* are in :mod:`.milestone`; *complete* is a part of execute.
"""
