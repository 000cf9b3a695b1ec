"""``gsd run`` turns an idea into verified, committed code; ``gsd resume`` continues the unfinished run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from gsd_core.errors import ConfigError

from .global_options import GlobalOptions, global_options_of, gsd_command, with_options
from .options import StartCommand, StepCommand, classes_of, typed_settings
from .plugin_loading import loaded_plugins
from .streams import is_at_terminal
from .workstream import refuse_run, workstream_option

OUTPUTS = click.Choice(["text", "json", "stream-json"])


def start_options(command: Any) -> Any:
    """Add the options of a command that starts a run, as far as they are not settings."""
    return workstream_option(verbosity_options(with_options(command, _OPTIONS)))


def verbosity_options(command: Any) -> Any:
    """Add ``-v`` and ``-q`` to a command that shows a run."""
    return with_options(command, _VERBOSITY)


def verbosity_of(given: Mapping[str, Any]) -> int:
    """Return how much more to show than usual; -1 for less. Raises ``ConfigError`` if both are asked for."""
    if given["quiet"] and given["verbose"]:
        raise ConfigError("--quiet and --verbose cannot be combined", hint="pass only one of them")
    return -1 if given["quiet"] else int(given["verbose"])


_OPTIONS = (
    click.option(
        "--trust", is_flag=True, help="trust the project's own plugins, settings and commands as they are now"
    ),
    click.option("--no-input", is_flag=True, help="never ask at this terminal"),
    click.option(
        "-n", "--dry-run", is_flag=True, help="say what would happen, a sentence per step; write nothing"
    ),
    click.option(
        "--seed", type=int, default=None, metavar="N", help="random seed, for agents that support one"
    ),
    click.option("--output-format", type=OUTPUTS, default="text", help="format of stdout (default: text)"),
    click.option("--bg", is_flag=True, help="run in the background, as a session (see gsd ps)"),
)

_VERBOSITY = (
    click.option(
        "-v", "--verbose", count=True, help="also show what agents do; -vv: all tool calls and texts"
    ),
    click.option("-q", "--quiet", is_flag=True, help="show only questions, errors and the last line"),
)

step_command = partial(gsd_command, last=start_options, cls=StepCommand)
"""Make a command of a function, as :func:`gsd_command` does, that starts a run for one step."""


@gsd_command(
    "run",
    "# Turn the idea in a file into a project in a new folder.",
    "gsd run idea.md -C my-app",
    "# Leave it alone for hours: no questions, at most 20 dollars, and a notification.",
    "gsd run idea.md --no-input --max-budget-usd 20 --notify desktop",
    "# See first what it would do.",
    "gsd run idea.md --dry-run",
    "# In the background.",
    "gsd run idea.md --bg",
    last=start_options,
    cls=StartCommand,
)
@click.argument("idea", required=False, type=click.Path(path_type=Path, allow_dash=True))
def command(ctx: click.Context, /, idea: Path | None, **given: Any) -> None:
    """Turn IDEA (a text file, or - for stdin) into verified, committed code.

    Resumes the project's unfinished run if there is one. IDEA is required only for a project without a
    roadmap.

    A budget ends the run before it is exceeded. At most the turns in progress are overspent, when a limit is
    reached or gsd is killed, because what a turn uses is known only when it is over; with an agent that
    reports nothing before its call ends, that is the whole call.
    """
    typed = [name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    # Whoever types an option wants to be asked for none.
    if idea is None and is_at_terminal() and not typed:
        from .guide import has_project, lead_on

        if not has_project(global_options_of(ctx)):
            lead_on(ctx)
            return
    start(ctx, given, idea=idea)


@gsd_command(
    "resume",
    "gsd resume",
    "gsd resume --max-budget-usd 40",
    "gsd resume -C my-app --dry-run",
    last=start_options,
    cls=StartCommand,
)
def resume_command(ctx: click.Context, /, **given: Any) -> None:
    """Resume the unfinished run.

    It keeps its agent, its phases and its other options, unless you pass new ones. A handoff of
    'gsd pause' or of GSD's pause-work is shown, and the next plan or execution gets it as context.
    """
    from .output import warn
    from .project import notes_of

    warn(notes_of(global_options_of(ctx)))
    start(ctx, given, resume=True)


def start(
    ctx: click.Context,
    given: Mapping[str, Any],
    asked: Callable[[GlobalOptions], Mapping[str, str]] | None = None,
    words: Sequence[object] = (),
    *,
    idea: Path | None = None,
    resume: bool = False,
    run: str = "",
) -> None:
    """Start or resume a run as the command line asks, and exit with the run's code.

    With *asked*, do only the steps that it returns; the keys are their ids, the values the user's words. They
    are those that are left if the same command, in the same *words*, was interrupted. If there are none, all
    is done already.
    """
    from .launch import RunOptions, execute_run
    from .run_end import show_done_already
    from .single_steps import NotYet, interrupted_steps

    command, steps = (str(ctx.command.name), *map(str, words)), dict[str, str]()
    not_yet: NotYet | None = None
    global_options = global_options_of(ctx)
    if asked:
        try:
            steps = interrupted_steps(global_options, command) or dict(asked(global_options))
        except NotYet as error:
            # A session may wait for another one.
            if not given["bg"] or given["dry_run"]:
                raise
            steps, not_yet = dict(error.steps), error
    refuse_run(given["workstream"])
    loaded = loaded_plugins(ctx)
    options = RunOptions(
        global_options=global_options,
        flags=typed_settings(ctx, classes_of(loaded)),
        idea=idea,
        resume=resume,
        trust=given["trust"],
        no_input=given["no_input"],
        output=given["output_format"],
        verbosity=verbosity_of(given),
        seed=given["seed"],
        dry_run=given["dry_run"],
        background=given["bg"],
        asked=steps,
        command=command,
        run=run,
        not_yet=not_yet,
    )
    if asked and not steps:
        show_done_already(options)
    else:
        ctx.exit(execute_run(options, loaded))
