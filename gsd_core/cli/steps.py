"""The commands that do one step, and leave the lifecycle where it is: one recorded step each."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from gsd_core.model.ids import normal_phase

from .global_options import global_options
from .help import examples
from .options import StepCommand
from .run import start, start_options
from .single_steps import (
    debug_step,
    discuss_step,
    exec_step,
    execute_steps,
    plan_steps,
    quick_step,
    survey_step,
    verify_step,
)


@click.command(
    "discuss", cls=StepCommand, epilog=examples("gsd discuss 2", "gsd discuss 2 'use SQLite, and no ORM'")
)
@click.argument("phase")
@click.argument("text", required=False, default="")
@global_options
@start_options
@click.pass_context
def discuss(ctx: click.Context, /, phase: str, text: str, **given: Any) -> None:
    """Ask what is open about PHASE, and record the decisions.

    TEXT says what you want to discuss. Decisions are added to those that the phase's CONTEXT.md has.
    """
    asked = partial(discuss_step, phase=phase, words=text)
    start(ctx, None, resume=False, given=given, asked=asked, words=(normal_phase(phase), text))


@click.command(
    "plan",
    cls=StepCommand,
    epilog=examples(
        "gsd plan 2", "# Plan how to close the gaps that the verification found.", "gsd plan 2 --gaps"
    ),
)
@click.argument("phase")
@click.option("--gaps", is_flag=True, help="plan how to close the gaps of the phase's last verification")
@global_options
@start_options
@click.pass_context
def plan(ctx: click.Context, /, phase: str, gaps: bool, **given: Any) -> None:
    """Plan PHASE, and do nothing else.

    An unfinished run stays where it is; 'gsd resume' continues it with these plans.
    """
    asked = partial(plan_steps, phase=phase, gaps=gaps)
    start(ctx, None, resume=False, given=given, asked=asked, words=(normal_phase(phase), gaps))


@click.command("execute", cls=StepCommand, epilog=examples("gsd execute 2", "gsd execute 2 --dry-run"))
@click.argument("phase")
@global_options
@start_options
@click.pass_context
def execute(ctx: click.Context, /, phase: str, **given: Any) -> None:
    """Execute the plans of PHASE that have no summary, and do nothing else.

    The phase is not verified. An unfinished run stays where it is; 'gsd resume' continues it.
    """
    start(
        ctx,
        None,
        resume=False,
        given=given,
        asked=partial(execute_steps, phase=phase),
        words=(normal_phase(phase),),
    )


@click.command(
    "verify", cls=StepCommand, epilog=examples("gsd verify 2", "gsd verify 2 --output-format json")
)
@click.argument("phase")
@global_options
@start_options
@click.pass_context
def verify(ctx: click.Context, /, phase: str, **given: Any) -> None:
    """Verify PHASE again, and do nothing else.

    What a person checked before and passed is not asked again. An unfinished run stays where it is.
    """
    start(
        ctx,
        None,
        resume=False,
        given=given,
        asked=partial(verify_step, phase=phase),
        words=(normal_phase(phase),),
    )


@click.command("debug", cls=StepCommand, epilog=examples("gsd debug 'the list is empty after a restart'"))
@click.argument("text")
@global_options
@start_options
@click.pass_context
def debug(ctx: click.Context, /, text: str, **given: Any) -> None:
    """Find the root cause of the problem that TEXT describes, and change nothing.

    The result is a file in .planning/debug/, with symptoms, evidence, root cause and a suggested fix.
    """
    start(ctx, None, resume=False, given=given, asked=partial(debug_step, words=text), words=(text,))


@click.command(
    "quick",
    cls=StepCommand,
    epilog=examples("gsd quick 'add a --version option'", "gsd quick --full 'add a --version option'"),
)
@click.argument("text", nargs=-1, required=True)
@click.option("--full", is_flag=True, help="verify the result, as that of a phase")
@global_options
@start_options
@click.pass_context
def quick(ctx: click.Context, /, text: tuple[str, ...], full: bool, **given: Any) -> None:
    """Do a small task outside of the roadmap: plan it, execute it, commit it.

    Its files are in .planning/quick. An unfinished run stays where it is. After a crash or an answered
    question, the same command continues.
    """
    words = " ".join(text)
    asked = partial(quick_step, words=words, full=full)
    start(ctx, None, resume=False, given=given, asked=asked, words=(words, full))


@click.command("map", cls=StepCommand, epilog=examples("gsd map"))
@global_options
@start_options
@click.pass_context
def map_(ctx: click.Context, /, **given: Any) -> None:
    """Describe the existing code in .planning/codebase, and do nothing else.

    An existing description is replaced. Later plans, executions and verifications get what it says about
    tests, conventions and modules.
    """
    start(ctx, None, resume=False, given=given, asked=survey_step)


@click.command(
    "exec",
    cls=StepCommand,
    epilog=examples(
        "gsd exec 'list the functions without tests'", "gsd exec '/security-review' --step review"
    ),
)
@click.argument("prompt")
@click.option(
    "--step", "name", metavar="NAME", help="name of the step in the journal (default: from the prompt)"
)
@global_options
@start_options
@click.pass_context
def exec_(ctx: click.Context, /, prompt: str, name: str | None, **given: Any) -> None:
    """Run PROMPT, any prompt or command of the agent, as one recorded step.

    The agent has your own settings, tools and commands, and may change the project, including .planning/ and
    commits. Its answer is printed. After a crash or an answered question, the same command continues.
    """
    asked = partial(exec_step, prompt=prompt, name=name)
    start(ctx, None, resume=False, given=given, asked=asked, words=(prompt, name))
