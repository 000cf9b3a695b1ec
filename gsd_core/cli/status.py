"""``gsd status``: shows the state of the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from rich.text import Text

from gsd_core.model.question import answer_command
from gsd_core.sanitize import one_line
from gsd_core.views.phases import PhaseRow, percent
from gsd_core.views.status import RESUME, Status, cost_json, status_json, status_of, step_status

from .commands import base_command, with_global_options
from .global_options import GlobalOptions, global_options, global_options_of
from .help import Command
from .output import can_show, counted, json_flag, print_json, print_line, styled, warn
from .workstream import choose_workstream, workstream_option

SIGNS = {"completed": "✓", "in_progress": "▸", "failed": "✗", "skipped": "-", "pending": "·"}
ASCII_SIGNS = {"completed": "+", "in_progress": ">", "failed": "x", "skipped": "-", "pending": "."}
STYLES = {"completed": "green", "in_progress": "cyan", "failed": "red", "skipped": "dim", "pending": "dim"}


@click.command("status", cls=Command)
@global_options
@workstream_option
@json_flag
@click.pass_context
def command(ctx: click.Context, workstream: str, as_json: bool) -> None:
    """Show the run's phases, current step, open questions and cost.

    In a project with workstreams of gsd-core, also how far each of them is. A run is never in one of them.
    """
    from .project import load, notes_of

    options = global_options_of(ctx)
    project = load(options)
    name, _ = choose_workstream(project.root, workstream)
    warn(notes_of(project.root, name))
    streams = _workstreams(project.root, only=workstream.strip())
    status = status_of(project.state, project.history, project.holder, project.pending_answers)
    if as_json:
        listed = [
            {
                "name": one,
                "active": one == name,
                "phases": phases,
                "complete": complete,
                "error": error or None,
            }
            for one, phases, complete, error in streams
        ]
        print_json({**status_json(status, base_command(options)), "workstreams": listed})
        return
    for line in _lines(status, options):
        print_line(line)
    for one, phases, complete, error in streams:
        mark = " (active)" if one == name else ""
        state = one_line(error, 200) or f"{complete} of {counted(phases, 'phase')} complete"
        print_line(f"workstream {one}{mark}: {state}")


def _workstreams(root: Path, *, only: str) -> list[tuple[str, int, int, str]]:
    """Return each workstream with its number of phases, how many are complete, or why it cannot be read."""
    from gsd_core.errors import PlanningError
    from gsd_core.planning.survey import survey
    from gsd_core.planning.workstreams import planning_folder, workstreams

    found: list[tuple[str, int, int, str]] = []
    for name in [only] if only else workstreams(root):
        try:
            phases = survey(root, planning_folder(root, name)).phases()
        except PlanningError as error:
            found.append((name, 0, 0, str(error)))
        else:
            found.append((name, len(phases), sum(phase.complete for phase in phases), ""))
    return found


def _lines(status: Status, options: GlobalOptions) -> Iterator[str | Text]:
    if status.run_status == "none":
        yield with_global_options("no run yet in this project; start one with: gsd run IDEA", options)
        return
    idea = f" of {status.idea}" if status.idea else ""
    exit_code = "" if status.exit is None else f", exit code {status.exit}"
    about = f"  run {status.run}{idea}{exit_code}, {percent(status.phases)}% done"
    yield styled(status.run_status, "bold").append_text(styled(about))
    if status.reason:
        from gsd_core.run.notes import with_notes  # slow to import, and `--help` does not need it

        yield f"  {with_global_options(one_line(with_notes(status.reason, status.notes), 700), options)}"
    if status.holder:
        yield f"  active process: pid {status.holder.pid} on {status.holder.host} since {status.holder.since}"
    sandbox = status.sandbox or f"none ({one_line(status.unconfined, 200)})".removesuffix(" ()")
    yield f"  sandbox: {sandbox}"
    yield from _phase_lines(status)
    if step := status.current:
        until = f" until {step.until.isoformat(timespec='seconds')}" if step.until else ""
        yield f"step {step.id}: {step_status(status)}{until}, attempt {step.attempt}"
        if step.until and step.failure:
            yield f"  because of: {one_line(step.failure.message, 200)}"
    for step_id, assumed in status.assumed:
        yield f"assumed, nobody looked ({step_id}): {one_line(assumed.text, 120)}"
    for service in status.not_notified:
        times = counted(service.count, "notification")
        yield f"not notified: {one_line(service.service, 120)}: {one_line(service.reason, 200)} ({times})"
    for asked in status.questions:
        yield f"? {one_line(asked.question.text, 120)}"
        if asked.question.id in status.pending_answers:
            yield with_global_options(f"  answered; continue the run with: {RESUME}", options)
        else:
            yield f"  answer with: {answer_command(asked.question, base_command(options))}"
    yield _cost_line(status)
    if status.waits_for == RESUME:
        yield with_global_options(f"continue with: {RESUME}", options)
    elif status.waits_for:
        yield f"waiting for {status.waits_for}"


def _phase_lines(status: Status) -> Iterator[Text]:
    signs = SIGNS if can_show("".join(SIGNS.values())) else ASCII_SIGNS
    width = max((len(row.number) for row in status.phases), default=0)
    for row in status.phases:
        line = Text(f"  {signs[row.status]} ", style=STYLES[row.status])
        line.append_text(styled(f"{row.number:<{width}}  {one_line(row.name, 60)}"))
        line.append_text(styled(_details(row, signs), "dim"))
        yield line


def _details(row: PhaseRow, signs: dict[str, str]) -> str:
    if not row.wanted:
        return "  (not in range)"
    if row.status in ("completed", "pending"):
        return ""
    steps = " ".join(f"{name} {signs[status]}" for name, status in row.steps.items())
    plans = f", {row.plans_done}/{counted(row.plans, 'plan')}" if row.plans else ""
    rounds = f", gap round {row.gap_rounds}" if row.gap_rounds else ""
    return f"  ({steps}{plans}{rounds})"


def _cost_line(status: Status) -> str:
    cost = cost_json(status.usage, status.calls)
    dollars = f"${cost['dollars']}" if cost["dollars"] is not None else "unknown cost"
    return f"{dollars}, {counted(cost['tokens'], 'token')}, {counted(cost['calls'], 'agent call')}"
