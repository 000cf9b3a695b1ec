"""``gsd exec``: any prompt, or a command of the agent such as ``/gsd:plan-phase 3``, as one recorded step."""

from __future__ import annotations

from typing import Any

import click

from .global_options import global_options, global_options_of
from .help import examples
from .options import StepCommand
from .run import start, start_options


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
def command(ctx: click.Context, /, prompt: str, name: str | None, **given: Any) -> None:
    """Run PROMPT, any prompt or command of the agent, as one recorded step.

    The agent has your own settings, tools and commands, and may change the project, including .planning/ and
    commits. Its answer is printed. After a crash or an answered question, the same command continues.
    """
    from .single_steps import exec_step

    asked = exec_step(global_options_of(ctx), prompt, name)
    start(ctx, None, resume=False, given=given, asked=asked)
