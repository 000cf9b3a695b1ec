"""``gsd todo``: captures, lists and completes todos."""

from __future__ import annotations

import click

from gsd_core.errors import Locked
from gsd_core.sanitize import one_line

from .global_options import GlobalOptions, global_options_of, gsd_command
from .help import Group, examples
from .output import counted, json_flag, print_json, print_line, print_table


@click.group(
    "todo",
    cls=Group,
    epilog=examples("gsd todo add 'translate the error messages' --area ui", "gsd todo list"),
)
def command() -> None:
    """Capture, list and complete todos.

    They are in .planning/todos, in the format of GSD, and STATE.md lists the pending ones.
    """


@gsd_command("add", last=json_flag)
@click.argument("text", nargs=-1, required=True)
@click.option("--area", metavar="AREA", default="", help="such as api, ui or docs (default: general)")
def add(ctx: click.Context, text: tuple[str, ...], area: str, as_json: bool) -> None:
    """Capture TEXT as a todo for later.

    Its first line is the title. No run works on it: make it a phase with 'gsd phase add' for that.
    """
    asked = {"text": " ".join(text), "area": area}
    words = ("todo", "add", asked["text"], *(["--area", area] if area else []))
    _edit(global_options_of(ctx), asked, words, as_json=as_json)


@gsd_command("list", last=json_flag)
@click.option("--area", metavar="AREA", default="", help="only those of this area")
def list_command(ctx: click.Context, area: str, as_json: bool) -> None:
    """List the pending todos."""
    from gsd_core.planning.todos import TODO, pending_todos

    from .project import planned_root

    found = pending_todos(planned_root(global_options_of(ctx)))
    todos = [todo for todo in found if not area or todo.area == area]
    if as_json:
        print_json({"todos": [*map(TODO.dump, todos)]})
    elif todos:
        rows = [(todo.id, todo.area, todo.severity, one_line(todo.title, 100)) for todo in todos]
        print_table(("id", "area", "severity", "title"), rows, {})
    else:
        print_line("no pending todos" + (f" in area {area!r}" if area else ""))


@gsd_command("done", last=json_flag)
@click.argument("id_", metavar="ID")
def done(ctx: click.Context, id_: str, as_json: bool) -> None:
    """Complete a todo: move it to .planning/todos/completed.

    ID is its name in 'gsd todo list', or a part of its name or title that no other one has.
    """
    _edit(global_options_of(ctx), {"done": id_}, ("todo", "done", id_), as_json=as_json)


for subcommand in (add, list_command, done):
    command.add_command(subcommand)


def _edit(options: GlobalOptions, asked: dict[str, str], words: tuple[str, ...], *, as_json: bool) -> None:
    from gsd_core.planning.todos import plan_todo
    from gsd_core.planning.workstreams import refuse_workstream

    from .editing import ask_run, editing
    from .project import now, planned_root, refuse_agents_at

    root = planned_root(options)
    refuse_workstream(root)
    refuse_agents_at(root, "change the todos")
    try:
        with editing(root, words) as editor:
            done = editor.carry_out(lambda: plan_todo(root, asked, at=now()))
            about = done.edit.about
            if as_json:
                about = {**about, "commit": done.commit or None, "asked": False}
                print_json(about)
                return
            what = "completed" if "done" in asked else "added"
            pending = counted(about["pending"], "pending todo")
            print_line(f"{what} {about['id']}: {one_line(about['title'], 120)} ({pending})")
    except Locked:
        # Planning it finds bad input now, and which todo is meant.
        found = plan_todo(root, asked, at=now()).about["id"]
        asked = {"done": found} if "done" in asked else asked
        ask_run(options, root, "todo", asked, words, what="does it", as_json=as_json)
