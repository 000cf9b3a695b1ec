"""``gsd demo``: a rehearsal of the example idea in a folder of its own, with an account of what is real."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click

from gsd_core.errors import ConfigError, ProjectError

from .commands import base_command
from .global_options import global_options_of, gsd_command
from .output import print_line, wrapped

IDEA = "greeter.md"


@gsd_command("demo", "gsd demo", "gsd demo my-demo --yes", "gsd demo --parallel")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="take the recommended answer instead of asking")
@click.option("--parallel", is_flag=True, help="show one phase of six plans, which are executed side by side")
def command(ctx: click.Context, folder: Path | None, yes: bool, parallel: bool) -> None:
    """Try gsd in a new folder, without an account: a rehearsal with a scripted model.

    It builds a small program from an example idea, in DIR or in a new temporary folder, with a question, a
    gap that verification finds, and the plan that closes it. With --parallel, there is no gap: four plans are
    executed at once, one of them asks a question, and two pairs of plans conflict. DIR must be empty or not
    exist yet. At the end it prints how to try the program, and how to run an idea of your own.
    """
    from gsd_core.processes import refuse_agents

    from .plugin_loading import bound_settings, loaded_plugins

    options = global_options_of(ctx)
    if folder and options.directory_given:
        raise click.UsageError("DIR and -C name the same folder: pass only one of them", ctx)
    refuse_agents("start a demo")
    loaded = loaded_plugins(ctx)
    rehearsal: Any = loaded.manager.get_plugin("rehearsal")
    if rehearsal is None:
        message = "the demo needs the plugin 'rehearsal', which is not loaded"
        raise ConfigError(message, hint="leave out -p no:rehearsal")
    with bound_settings(loaded):
        account = [f"  {line}" for line in rehearsal.what_is_scripted()]
    given = options.directory if options.directory_given else folder
    root = _new_project(given, rehearsal.example_idea())
    options.directory, options.directory_given = root, True
    print_line(f"This is a demo in {root}. It takes a minute or two.")
    stop = "You can stop it at any time with Ctrl-C, and continue with the command that is printed then."
    for line in [*account, stop]:
        # Its words stay whole, and its rows begin below each other.
        for part in wrapped(line, sys.stdout, " " * 12 if line.startswith(" ") else ""):
            print_line(part)
    print_line()
    given_options = ["--yes"] if yes else []
    if parallel:
        given_options += ["--workspace", "worktree", "--max-parallel", "4", "--depth", "comprehensive"]
        given_options += ["--script", str(rehearsal.PARALLEL)]
    if code := _rehearse(ctx, root, given_options):
        print_line()
        print_line(f"The demo has not finished. It is in {root}; remove it with:")
        print_line(f"  rm -rf {shlex.quote(str(root))}", exact=True)
        ctx.exit(code)
    place, gsd = shlex.quote(str(root)), base_command(options)
    # The run's own last lines say how to try what was built.
    for line in (
        *(_side_by_side(root) if parallel else ()),
        "",
        "That was a demo. See how the program was built:",
        f"  git -C {place} log --oneline",
        f"  {gsd} requirements",
        "Run an idea of your own in a new folder (needs an account; see: gsd doctor):",
        "  gsd run IDEA.md -C NEW-FOLDER --max-budget-usd 20",
        "Remove the demo:",
        f"  rm -rf {place}",
    ):
        print_line(line, exact=line.startswith("  "))  # a command


def _new_project(given: Path | None, idea: str) -> Path:
    """Return the folder of the demo with its own repository, new or empty before; *idea* is written to it."""
    from .project import REHEARSAL_AGENTS, make_repository

    try:
        root = (given or Path(mkdtemp(prefix="gsd-demo-"))).resolve()
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            what = "contains files" if root.is_dir() else "is not a folder"
            raise ProjectError(f"{str(root)!r} {what}", hint="name a folder that is empty or does not exist")
        # A repository of its own, even inside another one: the demo commits nothing there.
        make_repository(root, REHEARSAL_AGENTS)
        (root / IDEA).write_text(idea, encoding="utf-8")
    except OSError as error:
        where = error.filename or given or "the temporary folder"
        message = f"cannot create the demo's folder: {where}: {error.strerror}"
        raise ProjectError(message, hint="name a folder: gsd demo DIR") from error
    return root


def _rehearse(ctx: click.Context, root: Path, options: Sequence[str]) -> int:
    """Run the rehearsal as ``gsd run`` with *options* would, and return its exit code."""
    from .project import REHEARSAL_AGENTS
    from .run import command as run

    arguments = [str(root / IDEA), "--agent", *REHEARSAL_AGENTS, *options]
    with run.make_context("run", arguments, parent=ctx.find_root()) as inner:
        try:
            run.invoke(inner)
        except click.exceptions.Exit as end:
            return end.exit_code
    return 0


def _side_by_side(root: Path) -> Iterator[str]:
    """Yield what happened to plans that were executed at the same time, as the journal has it."""
    from gsd_core.model.counts import counted
    from gsd_core.views.story import Narrator

    from .project import open_journal

    lines, active, most, meanwhile = list[str](), set[str](), 0, 0
    with open_journal(root) as journal:
        for record in journal.events(kinds=_SIDE_BY_SIDE):
            plan, entry, kind = record.step.partition("/execute/")[2], Narrator().entry(record), record.kind
            if kind == "attempt.started" and plan:
                active.add(plan)
                most = max(most, len(active))
            active -= {plan} if kind == "step.completed" else set()
            meanwhile = 0 if kind == "question.asked" else meanwhile + (kind == "task.committed")
            is_merge = kind == "task.committed" and record.data["name"].startswith("Merge with ")
            is_told = is_merge or kind in ("merge.failed", "question.asked", "question.answered")
            if plan and entry and is_told:
                went_on = f"; meanwhile, others committed {counted(meanwhile, 'task')}"
                is_late = kind == "question.answered" and meanwhile
                lines.append(f"  {plan}: {entry.text}{went_on if is_late else ''}")
    yield from ("", f"{most} plans were executed at once. What the journal has about them:", *lines)


_SIDE_BY_SIDE = (
    *("attempt.started", "step.completed", "task.committed", "merge.failed", "question.asked"),
    "question.answered",
)
