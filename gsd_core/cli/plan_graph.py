"""``gsd plan-graph``: shows what plans depend on, what may start, and what the rest waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click
from rich.text import Text

from gsd_core.sanitize import one_line

from .global_options import global_options_of, gsd_command
from .output import can_show, counted, json_flag, print_json, print_line, shown_signs, styled, warn

if TYPE_CHECKING:
    from gsd_core.planning.model import PhaseView
    from gsd_core.views.plan_graph import Node, PlanGraph

LOOKS = {
    "done": ("✓", "green"),
    "running": ("▸", "cyan"),
    "merging": ("▸", "cyan"),
    "failed": ("✗", "red"),
    "skipped": ("-", "dim"),
    "parked": ("?", "yellow"),
    "delayed": ("…", "yellow"),
    "ready": ("▹", ""),
    "waiting": ("·", "dim"),
}
"""The sign of each state of a plan, and its style."""


@gsd_command("plan-graph", "gsd plan-graph", "gsd plan-graph 2 --mermaid", last=json_flag)
@click.argument("phase", required=False)
@click.option("--mermaid", is_flag=True, help="print a flowchart in the language of Mermaid")
def command(ctx: click.Context, phase: str | None, mermaid: bool, as_json: bool) -> None:
    """Show what the plans of PHASE depend on, which may start, and what the rest waits for.

    Without PHASE, those of all phases of the milestone; a phase without plans stands for itself. The critical
    path is the longest chain of tasks that is left: the work cannot be done sooner than it.
    """
    from gsd_core.planning.survey import flaws, survey
    from gsd_core.views.plan_graph import GRAPH, graph_mermaid, plan_graph

    from .project import load, planned_root

    options = global_options_of(ctx)
    if mermaid and as_json:
        raise click.UsageError("--mermaid and --json exclude each other", ctx)
    # Before the files: a plan that is done by the time that they are read has its SUMMARY then.
    project = load(options)
    found = survey(planned_root(options))
    numbers = [phase] if phase else [one.number for one in found.phases()]
    views = [found.view(number) for number in numbers]
    warn(flaws(views))
    graph = plan_graph(views, project.state, is_running=project.holder is not None)
    if as_json:
        print_json(GRAPH.dump(graph))
        return
    names = {view.number: view.name for view in views}
    for line in graph_mermaid(graph, names) if mermaid else _lines(graph, views):
        print_line(line, exact=mermaid)


def _lines(graph: PlanGraph, views: list[PhaseView]) -> Iterator[str | Text]:
    if not graph.nodes:
        yield "no phases in the current milestone"
        return
    signs = shown_signs({state: sign for state, (sign, _) in LOOKS.items()})
    width = max(len(node.id) for node in graph.nodes)
    for view in views:
        yield styled(f"phase {view.number} {one_line(view.name, 60)}".rstrip(), "bold")
        for node in graph.nodes:
            if node.phase == view.number:
                yield _line(node, signs, width)
    if left := [node for node in graph.nodes if node.id in graph.critical_path]:
        path = (" → " if can_show("→") else " -> ").join(graph.critical_path)
        tasks = sum(node.tasks for node in left)
        yield f"critical path: {path}" + (f" ({counted(tasks, 'task')} left)" if tasks else "")


def _line(node: Node, signs: Mapping[str, str], width: int) -> Text:
    from gsd_core.views.plan_graph import STATE_WORDS

    line = Text(f"  {signs.get(node.state, signs['failed'])} ")
    line.stylize(LOOKS[node.state][1] if node.state in LOOKS else "")
    unplanned = "" if node.state == "done" else "not planned"
    name = unplanned if node.id == node.phase else one_line(node.name, 50)
    line.append_text(styled(f"{node.id:<{width}}  {name}".rstrip()))
    about = [] if node.state in ("done", "waiting") else [STATE_WORDS.get(node.state, node.state)]
    about += [f"waits for {', '.join(node.waits_for)}"] if node.waits_for else []
    about += [counted(node.tasks, "task")] if node.tasks else []
    return line.append_text(styled(f"  ({'; '.join(about)})", "dim")) if about else line
