"""``gsd todo``: captures, lists and completes todos."""

from __future__ import annotations

import asyncio
import getpass
from typing import TYPE_CHECKING, Any

import click

from gsd_core.errors import Locked, ProjectError
from gsd_core.sanitize import one_line
from gsd_core.views.status import SCHEMA_VERSION

from .global_options import GlobalOptions, global_options, global_options_of
from .help import Command, Group, examples
from .output import counted, json_flag, print_json, print_line, print_table

if TYPE_CHECKING:
    from gsd_core.planning.todos import Todo


@click.group(
    "todo",
    cls=Group,
    epilog=examples("gsd todo add 'translate the error messages' --area ui", "gsd todo list"),
)
def command() -> None:
    """Capture, list and complete todos.

    They are in .planning/todos, in the format of GSD, and STATE.md lists the pending ones.
    """


@click.command("add", cls=Command)
@click.argument("text", nargs=-1, required=True)
@global_options
@click.option("--area", metavar="AREA", default="", help="such as api, ui or docs (default: general)")
@json_flag
@click.pass_context
def add(ctx: click.Context, text: tuple[str, ...], area: str, as_json: bool) -> None:
    """Capture TEXT as a todo for later.

    Its first line is the title. No run works on it: make it a phase with 'gsd phase add' for that.
    """
    _edit(global_options_of(ctx), {"text": " ".join(text), "area": area}, "added", as_json=as_json)


@click.command("list", cls=Command)
@global_options
@click.option("--area", metavar="AREA", default="", help="only those of this area")
@json_flag
@click.pass_context
def list_command(ctx: click.Context, area: str, as_json: bool) -> None:
    """List the pending todos."""
    from gsd_core.planning.todos import pending_todos

    from .project import planned_root

    found = pending_todos(planned_root(global_options_of(ctx)))
    todos = [todo for todo in found if not area or todo.area == area]
    if as_json:
        print_json({"schema_version": SCHEMA_VERSION, "todos": [todo_json(todo) for todo in todos]})
    elif todos:
        rows = [(todo.id, todo.area, todo.severity, one_line(todo.title, 100)) for todo in todos]
        print_table(("id", "area", "severity", "title"), rows, {})
    else:
        print_line("no pending todos" + (f" in area {area!r}" if area else ""))


@click.command("done", cls=Command)
@click.argument("id_", metavar="ID")
@global_options
@json_flag
@click.pass_context
def done(ctx: click.Context, id_: str, as_json: bool) -> None:
    """Complete a todo: move it to .planning/todos/completed.

    ID is its name in 'gsd todo list', or a part of its name or title that no other one has.
    """
    from gsd_core.planning.todos import find_todo

    from .project import planned_root

    options = global_options_of(ctx)
    todo = find_todo(planned_root(options), id_)
    _edit(options, {"done": todo.id}, "completed", as_json=as_json)


for subcommand in (add, list_command, done):
    command.add_command(subcommand)


def todo_json(todo: Todo) -> dict[str, Any]:
    """Return a todo as JSON data."""
    return {
        "id": todo.id,
        "title": todo.title,
        "area": todo.area,
        "severity": todo.severity or None,
        "created": todo.created or None,
        "path": todo.path,
    }


def _edit(options: GlobalOptions, asked: dict[str, str], what: str, *, as_json: bool) -> None:
    from gsd_core.git import Git
    from gsd_core.journal.inbox import put
    from gsd_core.journal.lock import ProjectLock
    from gsd_core.planning.config import read_config
    from gsd_core.planning.todos import new_todo, pending_todos
    from gsd_core.planning.workstreams import refuse_workstream
    from gsd_core.processes import refuse_agents
    from gsd_core.run.todo_edits import edit_todos

    from .project import core_folder, holder_of, journal_path, now, planned_root
    from .project_settings import run_settings

    root = planned_root(options)
    refuse_workstream(root)
    directory = core_folder(root)
    if directory is None:
        raise ProjectError(f"{str(root)!r} is in no git repository", hint="make one: git init")
    holder = holder_of(root)
    refuse_agents("change the todos", run_pid=holder.pid if holder else None)
    if "text" in asked:
        new_todo(root, asked["text"], area=asked["area"], at=now())  # finds bad input before anything else
    try:
        with ProjectLock(directory):
            docs = run_settings(root, read_config(root)).commit_docs
            work = edit_todos(root, asked, at=now(), git=Git(root), docs=docs)
            todo, commit = asyncio.run(work)
    except Locked:
        # While an agent works, a change in .planning could be taken for the agent's own.
        holder = holder_of(root)
        if holder is None or not journal_path(root).exists():
            raise
        put(journal_path(root), "todo", asked, by=getpass.getuser())
        if as_json:
            print_json({"schema_version": SCHEMA_VERSION, "asked": True, "pid": holder.pid})
        else:
            print_line(f"the active run (pid {holder.pid}) does it after its current step")
        return
    pending = len(pending_todos(root))
    if as_json:
        about = {**todo_json(todo), "commit": commit or None, "pending": pending, "asked": False}
        print_json({"schema_version": SCHEMA_VERSION, **about})
    else:
        print_line(f"{what} {todo.id}: {one_line(todo.title, 120)} ({counted(pending, 'pending todo')})")
