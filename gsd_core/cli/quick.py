"""``gsd quick``: one small task outside of the roadmap, as one recorded step."""

from __future__ import annotations

import re
from typing import Any

import click

from .global_options import global_options, global_options_of
from .options import StartCommand
from .run import start, start_options

FULL = "--full "
"""What the words of a task that is to be verified begin with: a step has only its words."""


@click.command("quick", cls=StartCommand)
@click.argument("text", nargs=-1, required=True)
@click.option("--full", is_flag=True, help="verify the result, as that of a phase")
@global_options
@start_options
@click.pass_context
def command(ctx: click.Context, /, text: tuple[str, ...], full: bool, **given: Any) -> None:
    """Do a small task outside of the roadmap: plan it, execute it, commit it.

    Its files are in .planning/quick. An unfinished run stays where it is. After a crash or an answered
    question, the same command continues.
    """
    from pathlib import Path

    from gsd_core.errors import ProjectError, UserError
    from gsd_core.model.ids import StepId, slug

    from .project import load, planned_root

    words = " ".join(text).strip()
    if not words:
        raise UserError("the task is empty", hint='gsd quick "what to do"')
    options = global_options_of(ctx)
    root: Path = planned_root(options)
    if not (root / ".planning" / "ROADMAP.md").exists():
        raise ProjectError("a quick task needs a project with a roadmap", hint="start one with: gsd run IDEA")
    state = load(options).state
    wanted = f"{FULL}{words}" if full else words
    step = next((step for step, asked in state.asked.items() if asked == wanted), "")
    if not step.startswith("quick/"):
        folder = root / ".planning" / "quick"
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        names += [record.id.detail for record in state.steps.values() if record.id.kind == "quick"]
        names += [StepId.parse(other).detail for other in state.asked]
        # Later versions of GSD name them by date (260131-abc), which is no number of ours.
        numbers = [int(match[1]) for name in names if (match := re.match(r"(\d{1,5})-", name))]
        step = str(StepId(kind="quick", detail=f"{max([0, *numbers]) + 1:03d}-{slug(words)}"))
    start(ctx, None, resume=False, given=given, asked={step: wanted})
