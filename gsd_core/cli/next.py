"""``gsd next``: shows which step is due, why, and the command for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
import click
from rich.text import Text

from gsd_core.sanitize import one_line

from .commands import base_command
from .global_options import global_options_of, gsd_command
from .output import json_flag, print_json, print_line, styled, warn
from .workstream import choose_workstream, workstream_option

if TYPE_CHECKING:
    from gsd_core.planning.model import Planning
    from gsd_core.views.next import Next

    from .current import Current
    from .project import ProjectState

MAX_REASON = 400


@gsd_command("next", "gsd next", "gsd next --json", last=json_flag)
@workstream_option
def command(ctx: click.Context, workstream: str, as_json: bool) -> None:
    """Show which step is due, why, and the command for it.

    Works in every project with a .planning folder. If there is an unfinished run, its state counts, else
    the files alone. Nothing is written.
    """
    from gsd_core.planning.survey import flaws
    from gsd_core.views.next import next_json

    from .editing import interrupted
    from .project import load, notes_of, planned_root

    options = global_options_of(ctx)
    project = load(options)
    root = planned_root(options, run=project.state.run)
    name, _ = choose_workstream(root, workstream)
    warn(notes_of(options, name))
    found = interrupted(root, base_command(options))
    if found is None:
        planning, found = find_next(ctx, project, base_command(options), name)
        warn(flaws(planning.phases))
    if as_json:
        print_json(next_json(found))
        return
    for line in next_lines(found, base_command(options), label=""):
        print_line(line)
    if len(found.ready) > 1:
        print_line(f"ready: {', '.join(found.ready)}")


def find_next(
    ctx: click.Context, project: ProjectState, gsd: str, workstream: str = ""
) -> tuple[Planning, Next]:
    """Return the planning files and what is due; *gsd* is how to call gsd for the project.

    With a *workstream*, they are its own. The run is not: it is about ``.planning`` itself.
    """
    from gsd_core.planning.workstreams import planning_folder

    from .current import read_current

    current = read_current(ctx, project, planning_folder(project.root, workstream))
    warn(current.missing)
    return current.planning, next_in(current, project, gsd, workstream)


def next_in(current: Current, project: ProjectState, gsd: str, workstream: str = "") -> Next:
    """Return what is due in the *current* project."""
    from gsd_core.planning.workstreams import resume_command
    from gsd_core.views.next import next_of

    from .editing import interrupted

    if first := interrupted(project.root, gsd):
        return first
    found = next_of(
        current.state,
        current.planning,
        current.snapshot,
        holder=None if workstream else project.holder,
        pending_answers=project.pending_answers,
        gsd=gsd,
        added=current.added,
    )
    if not workstream:
        return found
    return attrs.evolve(found, command=resume_command(workstream) if found.step else "", finish="", begin="")


def next_lines(found: Next, gsd: str, label: str = "next: ") -> Iterator[Text]:
    """Yield what is due, why, and the command for it; *label* comes before the step."""
    if not found.step and found.command:
        yield styled(one_line(found.reason, MAX_REASON))
        yield styled(f"finish it with: {found.command}")
        return
    if not found.step:
        yield styled(f"nothing is due: {one_line(found.reason, MAX_REASON)}")
        if found.finish:
            yield styled(f"archive the milestone with: {found.finish}")
        elif found.begin:
            yield styled(f"start the next milestone with: {found.begin}")
        return
    about = styled(f": {one_line(found.reason, MAX_REASON)}")
    yield styled(label).append_text(styled(found.step, "bold")).append_text(about)
    if found.question and found.reason.endswith("…"):
        yield styled(f"read the whole question with: {gsd} questions")
    yield styled(f"continue with: {found.command}")
