"""``gsd exec``: any prompt, or a command of the agent such as ``/gsd:plan-phase 3``, as one recorded step."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import click

from gsd_core.errors import ConfigError
from gsd_core.machine.state import State
from gsd_core.model.ids import StepId, is_kind, slug

from .global_options import global_options, global_options_of
from .options import StartCommand
from .project import load
from .run import start, start_options

KIND = "exec"
"""The kind of the step; the plugin ``commands`` executes it."""


@click.command(KIND, cls=StartCommand)
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
    if not prompt.strip():
        raise ConfigError("the prompt is empty", hint='gsd exec "PROMPT or /command"')
    # "r2" would be the second round of a step without a name.
    if name is not None and (not is_kind(name) or re.fullmatch(r"r\d+", name)):
        raise ConfigError(
            f"{name!r} cannot name a step", hint="use lower-case letters, digits and hyphens, at most 40"
        )
    options = global_options_of(ctx)
    state = load(options).state if options.directory.resolve().is_dir() else State()
    start(ctx, None, resume=False, given=given, asked={str(_step(state, prompt, name)): prompt})


def _step(state: State, prompt: str, name: str | None) -> StepId:
    """Return the step that this prompt continues, or a new one: a round for each time that it was done."""
    digest = hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()[:8]
    detail = name or f"{slug(prompt)[:24].rstrip('-')}-{digest}"
    rounds = {record.id.round: record for record in state.of(KIND, "") if record.id.detail == detail}
    number = 0
    while number in rounds and rounds[number].status in ("completed", "skipped"):
        number += 1
    return StepId(kind=KIND, detail=detail, round=number)
