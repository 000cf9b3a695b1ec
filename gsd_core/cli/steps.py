"""The commands that do one step, and leave the lifecycle where it is: one recorded step each."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from gsd_core.model.ids import normal_phase

from . import single_steps
from .run import start, step_command


@step_command("discuss", "gsd discuss 2", "gsd discuss 2 'use SQLite, and no ORM'")
@click.argument("phase")
@click.argument("text", required=False, default="")
def discuss(ctx: click.Context, /, phase: str, text: str, **given: Any) -> None:
    """Ask what is open about PHASE, and record the decisions.

    TEXT says what you want to discuss. Decisions are added to those that the phase's CONTEXT.md has.
    """
    asked = partial(single_steps.discuss_step, phase=phase, words=text)
    start(ctx, given, asked, (normal_phase(phase), text))


@step_command(
    "plan", "gsd plan 2", "# Plan how to close the gaps that the verification found.", "gsd plan 2 --gaps"
)
@click.argument("phase")
@click.option("--gaps", is_flag=True, help="plan how to close the gaps of the phase's last verification")
def plan(ctx: click.Context, /, phase: str, gaps: bool, **given: Any) -> None:
    """Plan PHASE, and do nothing else.

    An unfinished run stays where it is; 'gsd resume' continues it with these plans.
    """
    start(ctx, given, partial(single_steps.plan_steps, phase=phase, gaps=gaps), (normal_phase(phase), gaps))


@step_command("execute", "gsd execute 2", "gsd execute 2 --plan 02-01", "gsd execute 2 --dry-run")
@click.argument("phase")
@click.option("--plan", "only", metavar="PLAN", help="execute only this plan")
@click.option("--as-run", metavar="RUN", help="do it as a part of this run, as a dispatcher has it done")
def execute(ctx: click.Context, /, phase: str, only: str | None, as_run: str | None, **given: Any) -> None:
    """Execute the plans of PHASE that have no summary, and do nothing else.

    The phase is not verified. An unfinished run stays where it is; 'gsd resume' continues it.
    """
    words = (normal_phase(phase), *([only] if only else []))
    start(ctx, given, partial(single_steps.execute_steps, phase=phase, only=only), words, run=as_run or "")


@step_command("verify", "gsd verify 2", "gsd verify 2 --output-format json")
@click.argument("phase")
def verify(ctx: click.Context, /, phase: str, **given: Any) -> None:
    """Verify PHASE again, and do nothing else.

    What a person checked before and passed is not asked again. An unfinished run stays where it is.
    """
    start(ctx, given, partial(single_steps.verify_step, phase=phase), (normal_phase(phase),))


@step_command("debug", "gsd debug 'the list is empty after a restart'")
@click.argument("text")
def debug(ctx: click.Context, /, text: str, **given: Any) -> None:
    """Find the root cause of the problem that TEXT describes, and change nothing.

    The result is a file in .planning/debug/, with symptoms, evidence, root cause and a suggested fix.
    """
    start(ctx, given, partial(single_steps.debug_step, words=text), (text,))


@step_command("quick", "gsd quick 'add a --version option'", "gsd quick --full 'add a --version option'")
@click.argument("text", nargs=-1, required=True)
@click.option("--full", is_flag=True, help="verify the result, as that of a phase")
def quick(ctx: click.Context, /, text: tuple[str, ...], full: bool, **given: Any) -> None:
    """Do a small task outside of the roadmap: plan it, execute it, commit it.

    Its files are in .planning/quick. An unfinished run stays where it is. After a crash or an answered
    question, the same command continues.
    """
    words = " ".join(text)
    start(ctx, given, partial(single_steps.quick_step, words=words, full=full), (words, full))


@step_command("map", "gsd map")
def map_(ctx: click.Context, /, **given: Any) -> None:
    """Describe the existing code in .planning/codebase, and do nothing else.

    An existing description is replaced. Later plans, executions and verifications get what it says about
    tests, conventions and modules.
    """
    start(ctx, given, single_steps.survey_step)


@step_command(
    "exec", "gsd exec 'list the functions without tests'", "gsd exec '/security-review' --step review"
)
@click.argument("prompt")
@click.option(
    "--step", "name", metavar="NAME", help="name of the step in the journal (default: from the prompt)"
)
def exec_(ctx: click.Context, /, prompt: str, name: str | None, **given: Any) -> None:
    """Run PROMPT, any prompt or command of the agent, as one recorded step.

    The agent has your own settings, tools and commands, and may change the project, including .planning/ and
    commits. Its answer is printed. After a crash or an answered question, the same command continues.
    """
    start(ctx, given, partial(single_steps.exec_step, prompt=prompt, name=name), (prompt, name))
