"""``gsd phase``: adds, inserts and removes phases of the roadmap."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from gsd_core.errors import Locked, PlanningError, ProjectError, UserError
from gsd_core.sanitize import one_line

from .commands import with_global_options
from .global_options import GlobalOptions, global_options_of, gsd_command
from .help import Group, examples
from .output import json_flag, print_json, print_line, warn

if TYPE_CHECKING:
    from gsd_core.machine.state import State
    from gsd_core.planning.edits import Edit
    from gsd_core.run.edits import StoredEdit


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


@gsd_command("add", last=json_flag)
@click.argument("name", nargs=-1, required=True)
@goal_option
def add(ctx: click.Context, name: tuple[str, ...], goal: str, as_json: bool) -> None:
    """Add a phase at the end of the current milestone.

    While a run is active, the run adds it after its current step, and works on it when its turn comes.
    """
    _add(global_options_of(ctx), " ".join(name), after="", goal=goal, as_json=as_json)


@gsd_command("insert", last=json_flag)
@click.argument("after")
@click.argument("name", nargs=-1, required=True)
@goal_option
def insert(ctx: click.Context, after: str, name: tuple[str, ...], goal: str, as_json: bool) -> None:
    """Insert an urgent phase after phase AFTER: 2.1 after 2.

    No other phase gets another number. While a run is active, the run inserts it after its current step.
    """
    _add(global_options_of(ctx), " ".join(name), after=_number(after), goal=goal, as_json=as_json)


@gsd_command("remove", last=json_flag)
@click.argument("phase")
@click.option("--force", is_flag=True, help="also if it has executed work, or if later phases have")
@click.option("--keep-numbers", is_flag=True, help="leave the numbers of later phases as they are")
def remove(ctx: click.Context, phase: str, force: bool, keep_numbers: bool, as_json: bool) -> None:
    """Remove PHASE, and renumber the phases after it.

    What depends on it depends on its own dependencies then, and its requirements are unmapped. A copy of
    its folder is kept beside the journal. Not while a run is active.
    """
    from gsd_core.planning.phase_edit import plan_removal
    from gsd_core.processes import refuse_agents
    from gsd_core.run.edits import refuse_renumbering

    from .editing import editing
    from .project import load, now, planned_root

    options = global_options_of(ctx)
    number = _number(phase)
    root = planned_root(options)
    refuse_agents("change the phases")

    def plan() -> Edit:
        state = load(options).state
        with _milestone_named(state):
            edit = plan_removal(root, number, at=now(), force=force, keep_numbers=keep_numbers)
        refuse_renumbering(edit, state)
        return edit

    flags = (*(["--force"] if force else []), *(["--keep-numbers"] if keep_numbers else []))
    with editing(root, ("phase", "remove", number, *flags)) as editor:
        done = editor.carry_out(plan)
        about = done.edit.about
        copy = str(editor.directory / about["copy"]) if about["copy"] else None
        if as_json:
            print_json({**_json(done), "renumbered": about["renumbered"], "copy": copy})
            return
        print_line(f"removed phase {about['phase']} {one_line(about['name'], 80)}".rstrip())
        if about["renumbered"]:
            pairs = [f"{old} → {new}" for old, new in about["renumbered"].items()]
            print_line("renumbered: " + ", ".join(pairs))
        if copy:
            print_line(f"a copy of its folder is in {copy}")
        if about["mentions"]:
            lines = ", ".join(map(str, about["mentions"]))
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


@contextmanager
def _milestone_named(state: State) -> Generator[None]:
    """If the roadmap has no such phases, name the completion of a milestone that was interrupted, if any."""
    try:
        yield
    except PlanningError as error:
        if not any(step.startswith("close/") for step in state.asked):
            raise
        raise ProjectError(
            "the completion of the milestone was interrupted", hint="finish it with: gsd milestone complete"
        ) from error


def _add(options: GlobalOptions, name: str, *, after: str, goal: str, as_json: bool) -> None:
    from gsd_core.planning.phase_edit import plan_addition
    from gsd_core.run.edits import worked_on

    from .editing import ask_run, editing
    from .project import load, planned_root, refuse_agents_at

    root = planned_root(options)
    refuse_agents_at(root, "change the phases")
    asked = {"name": name, "after": after, "goal": goal}

    def plan() -> Edit:
        state = load(options).state
        with _milestone_named(state):
            return plan_addition(root, **asked, used=worked_on(state))

    words = ("phase", *(["insert", after] if after else ["add"]), name, *(["--goal", goal] if goal else []))
    try:
        with editing(root, words) as editor:
            done = editor.carry_out(plan)
            if as_json:
                print_json({**_json(done), "asked": False})
                return
            about = done.edit.about
            print_line(f"added phase {about['phase']}: {one_line(about['name'], 120)}")
            print_line(f"  folder: {about['folder']}")
            what_next = "describe it in .planning/ROADMAP.md, commit that, then: gsd next"
            print_line(with_global_options(what_next, options))
    except Locked:
        # Planning it finds bad input now, and not when the run gets to it.
        plan_addition(root, **asked)
        ask_run(options, root, "phase", asked, words, what="adds the phase", as_json=as_json)


def _json(done: StoredEdit) -> dict[str, Any]:
    about = {key: done.edit.about[key] for key in ("phase", "name", "folder")}
    return {**about, "commit": done.commit or None}
