"""``gsd phase``: adds, inserts and removes phases of the roadmap."""

from __future__ import annotations

import asyncio
import getpass
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gsd_core.errors import Locked, ProjectError, UserError
from gsd_core.sanitize import one_line
from gsd_core.views.status import SCHEMA_VERSION

from .commands import with_global_options
from .global_options import GlobalOptions, global_options, global_options_of
from .help import Command, Group, examples
from .output import json_flag, print_json, print_line, warn

if TYPE_CHECKING:
    from collections.abc import Callable

    from gsd_core.machine.state import State
    from gsd_core.planning.phase_edit import PhaseEdit


@click.group(
    "phase",
    cls=Group,
    epilog=examples(
        "gsd phase add 'Export to CSV'", "gsd phase insert 2 'Fix the import'", "gsd phase remove 4"
    ),
)
def command() -> None:
    """Add, insert or remove a phase of the roadmap.

    The planning files are changed as GSD's own tools do it, and committed unless commit_docs is off.
    """


goal_option = click.option(
    "--goal", metavar="TEXT", default="", help="what is true when the phase is done (default: its name)"
)


@click.command("add", cls=Command)
@click.argument("name", nargs=-1, required=True)
@global_options
@goal_option
@json_flag
@click.pass_context
def add(ctx: click.Context, name: tuple[str, ...], goal: str, as_json: bool) -> None:
    """Add a phase at the end of the current milestone.

    While a run is active, the run adds it after its current step, and works on it when its turn comes.
    """
    _add(global_options_of(ctx), " ".join(name), after="", goal=goal, as_json=as_json)


@click.command("insert", cls=Command)
@click.argument("after")
@click.argument("name", nargs=-1, required=True)
@global_options
@goal_option
@json_flag
@click.pass_context
def insert(ctx: click.Context, after: str, name: tuple[str, ...], goal: str, as_json: bool) -> None:
    """Insert an urgent phase after phase AFTER: 2.1 after 2.

    No other phase gets another number. While a run is active, the run inserts it after its current step.
    """
    _add(global_options_of(ctx), " ".join(name), after=_number(after), goal=goal, as_json=as_json)


@click.command("remove", cls=Command)
@click.argument("phase")
@global_options
@click.option("--force", is_flag=True, help="also if it has executed work, or if later phases have")
@click.option("--keep-numbers", is_flag=True, help="leave the numbers of later phases as they are")
@json_flag
@click.pass_context
def remove(ctx: click.Context, phase: str, force: bool, keep_numbers: bool, as_json: bool) -> None:
    """Remove PHASE, and renumber the phases after it.

    What depends on it depends on its own dependencies then, and its requirements are unmapped. A copy of
    its folder is kept beside the journal. Not while a run is active.
    """
    from gsd_core.planning.phase_edit import plan_removal

    options = global_options_of(ctx)
    number = _number(phase)

    def plan(root: Path, state: State) -> PhaseEdit:
        from gsd_core.run.phase_edits import refuse_renumbering

        edit = plan_removal(root, number, force=force, keep_numbers=keep_numbers)
        refuse_renumbering(edit, state)
        return edit

    edit, commit, copy = _edit(options, plan)
    if as_json:
        print_json({**_json(edit, commit), "renumbered": edit.numbers, "copy": str(copy) if copy else None})
        return
    print_line(f"removed phase {edit.phase} {one_line(edit.name, 80)}".rstrip())
    if edit.numbers:
        print_line("renumbered: " + ", ".join(f"{old} → {new}" for old, new in edit.numbers.items()))
    if copy:
        print_line(f"a copy of its folder is in {copy}")
    if edit.mentions:
        lines = ", ".join(map(str, edit.mentions))
        warn([f".planning/ROADMAP.md names phases by number in its text; check line {lines}"])


for subcommand in (add, insert, remove):
    command.add_command(subcommand)


def _number(text: str) -> str:
    from gsd_core.model.ids import normal_phase
    from gsd_core.planning.numbers import TOKEN

    number = normal_phase(text)
    if not re.fullmatch(TOKEN, number):
        raise UserError(f"not a phase number: {text!r}", hint="a phase number is like 3 or 2.1: gsd phases")
    return number


def _add(options: GlobalOptions, name: str, *, after: str, goal: str, as_json: bool) -> None:
    from gsd_core.planning.phase_edit import plan_addition
    from gsd_core.processes import refuse_agents

    from .project import holder_of, journal_path, planned_root

    root = planned_root(options)
    holder = holder_of(root)
    refuse_agents("change the phases", run_pid=holder.pid if holder else None)

    def plan(root: Path, state: State) -> PhaseEdit:
        from gsd_core.run.phase_edits import worked_on

        return plan_addition(root, name, after=after, goal=goal, used=worked_on(state))

    try:
        edit, commit, _ = _edit(options, plan)
    except Locked:
        from gsd_core.journal.inbox import put

        holder = holder_of(root)
        if holder is None or not journal_path(root).exists():
            raise
        # Planning it finds bad input now, and not when the run gets to it.
        plan_addition(root, name, after=after, goal=goal)
        asked = {"name": name, "after": after, "goal": goal}
        put(journal_path(root), "phase", asked, by=getpass.getuser())
        if as_json:
            print_json({"schema_version": SCHEMA_VERSION, "asked": True, "pid": holder.pid})
            return
        print_line(f"the active run (pid {holder.pid}) adds the phase after its current step")
        print_line(with_global_options("follow it with: gsd log --follow", options))
        return
    if as_json:
        print_json({**_json(edit, commit), "asked": False})
        return
    print_line(f"added phase {edit.phase}: {one_line(edit.name, 120)}")
    print_line(f"  folder: {edit.folder}")
    print_line(
        with_global_options("describe it in .planning/ROADMAP.md, commit that, then: gsd next", options)
    )


def _json(edit: PhaseEdit, commit: str) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "phase": edit.phase,
        "name": edit.name,
        "folder": edit.folder or None,
        "commit": commit or None,
    }


def _edit(
    options: GlobalOptions, plan: Callable[[Path, State], PhaseEdit]
) -> tuple[PhaseEdit, str, Path | None]:
    """Carry out what *plan* returns, with the project's lock; return the edit, the commit, and the copy.

    An edit in which an earlier process was killed is finished first.
    """
    from gsd_core.git import Git
    from gsd_core.journal.lock import ProjectLock
    from gsd_core.planning.config import read_config
    from gsd_core.processes import refuse_agents
    from gsd_core.run import phase_edits

    from .project import core_folder, load, now, planned_root
    from .project_settings import run_settings

    root = planned_root(options)
    refuse_agents("change the phases")
    directory = core_folder(root)
    if directory is None:
        raise ProjectError(f"{str(root)!r} is in no git repository", hint="make one: git init")
    with ProjectLock(directory):
        docs = run_settings(root, read_config(root)).commit_docs
        git = Git(root)
        if unfinished := phase_edits.stored_edit(directory):
            asyncio.run(phase_edits.edit_phases(root, directory, unfinished, git=git, docs=docs))
            warn([f"finished first: {unfinished.subject.removeprefix('docs: ')}, which was interrupted"])
            # The request of a run stays stored: the next run settles it.
            if unfinished.request:
                raise ProjectError("a run was killed while it added a phase", hint="resume it: gsd resume")
            phase_edits.forget(directory)
        edit = plan(root, load(options).state)
        copy = None
        if edit.what == "remove" and edit.folder:
            copy = phase_edits.keep_copy(root, directory, edit.folder, now())
        commit = asyncio.run(phase_edits.edit_phases(root, directory, edit, git=git, docs=docs))
        phase_edits.forget(directory)
    return edit, commit, copy
