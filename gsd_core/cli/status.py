"""``gsd status``: shows the state of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click
from rich.text import Text

from gsd_core.errors import GsdError, PlanningError
from gsd_core.exit_codes import ExitCode
from gsd_core.model.question import answer_command
from gsd_core.planning.survey import measure_of, survey
from gsd_core.planning.workstreams import planning_folder, workstreams
from gsd_core.sanitize import first_line, one_line
from gsd_core.views.amounts import cost_text, tokens_text
from gsd_core.views.phases import PhaseRow
from gsd_core.views.status import RESUME, Status, status_json, status_of, step_status

from .commands import base_command, with_global_options
from .global_options import GlobalOptions, global_options_of, gsd_command
from .next import next_in, next_lines
from .output import counted, json_flag, print_json, print_line, shown_signs, styled, warn
from .workstream import choose_workstream, workstream_option

if TYPE_CHECKING:
    from gsd_core.views.next import Next

    from .project import ProjectState

SIGNS = {"completed": "✓", "in_progress": "▸", "failed": "✗", "skipped": "-", "pending": "·"}
WORDS = {"parked": "waits for an answer", "result": "its result is being committed", "waiting": "waits"}
STYLES = {"completed": "green", "in_progress": "cyan", "failed": "red", "skipped": "dim", "pending": "dim"}


@gsd_command("status", "gsd status", "gsd status -C my-app --json", last=json_flag)
@workstream_option
def command(ctx: click.Context, workstream: str, as_json: bool) -> None:
    """Show the run's phases, current step, open questions and cost.

    Also what is due now. The phases are shown as their files are now.
    In a project with workstreams of gsd-core, also how far each of them is. A run is never in one of them.
    """
    from gsd_core.views.next import next_json

    from .project import load, notes_of

    options = global_options_of(ctx)
    project = load(options)
    name, _ = choose_workstream(project.root, workstream)
    warn(notes_of(options, name))
    streams = _workstreams(project.root, only=workstream.strip(), active=name)
    status, due = _current(ctx, project, options)
    if as_json:
        found = {"next": next_json(due) if due else None, "workstreams": [*map(attrs.asdict, streams)]}
        print_json({**status_json(status, base_command(options)), **found})
        return
    for line in _lines(status, due, options):
        print_line(line)
    for one in streams:
        mark = " (active)" if one.active else ""
        state = one_line(one.error or "", 200) or f"{one.complete} of {counted(one.phases, 'phase')} complete"
        print_line(f"workstream {one.name}{mark}: {state}")


def _current(ctx: click.Context, project: ProjectState, options: GlobalOptions) -> tuple[Status, Next | None]:
    """Return the status, and what is due; if the files cannot be read, the status as the run saw them."""
    from .editing import interrupted

    about = (project.state, project.history, project.holder, project.pending_answers)
    if not (project.root / ".planning").is_dir():
        return status_of(*about), interrupted(project.root, base_command(options))

    from .current import read_current

    try:
        current = read_current(ctx, project)
        measure = measure_of(survey(project.root).phases())
        due = next_in(current, project, base_command(options))
    except GsdError as error:
        warn([f"what is due cannot be found out: {error}" + (f" ({error.hint})" if error.hint else "")])
        return status_of(*about), interrupted(project.root, base_command(options))
    warn(current.missing)
    state = project.state
    if state.lifecycle is None:
        state = attrs.evolve(state, options=current.state.options)
    status = status_of(state, *about[1:], snapshot=current.snapshot, measure=measure)
    return status, due


@attrs.frozen
class _Workstream:
    """A workstream, with its number of phases and how many are complete, or why it cannot be read."""

    name: str
    active: bool
    phases: int = 0
    complete: int = 0
    error: str | None = None


def _workstreams(root: Path, *, only: str, active: str) -> list[_Workstream]:

    found: list[_Workstream] = []
    for name in [only] if only else workstreams(root):
        try:
            phases = survey(root, planning_folder(root, name)).phases()
        except PlanningError as error:
            found.append(_Workstream(name, name == active, error=str(error)))
        else:
            complete = sum(phase.complete for phase in phases)
            found.append(_Workstream(name, name == active, len(phases), complete))
    return found


def _lines(status: Status, due: Next | None, options: GlobalOptions) -> Iterator[str | Text]:
    if status.run_status == "none":
        start = "" if due else "; start one with: gsd run IDEA"
        yield with_global_options(f"no run yet in this project{start}", options)
    else:
        yield from _run_lines(status, options)
    if status.single:
        about = one_line(status.single.reason, 200)
        yield f"  last single step: {status.single.outcome}, exit code {status.single.exit}: {about}"
    if status.holder:
        yield f"  active process: pid {status.holder.pid} on {status.holder.host} since {status.holder.since}"
    if status.run_status != "none":
        sandbox = status.sandbox or f"none ({one_line(status.unconfined, 200)})".removesuffix(" ()")
        yield f"  sandbox: {sandbox}"
    if status.idle:
        yield f"  {one_line(status.idle, 200)}"
    if status.measure.phases:
        yield f"  {status.measure}"
    signs = shown_signs(SIGNS)
    width = max((len(row.number) for row in status.phases), default=0)
    for row in status.phases:
        line = Text(f"  {signs[row.status]} ", style=STYLES[row.status])
        line.append_text(styled(f"{row.number:<{width}}  {one_line(row.name, 60)}"))
        line.append_text(styled(_details(row, signs), "dim"))
        yield line
    for step in status.active:
        until = f" until {step.until.isoformat(timespec='seconds')}" if step.until else ""
        now = step_status(step, interrupted=status.interrupted)
        yield f"step {step.id}: {WORDS.get(now, now)}{until}, attempt {step.attempt}"
        if step.until and step.why:
            yield f"  because of: {one_line(step.why, 200)}"
    for step_id, assumed in status.assumed:
        yield f"assumed, nobody looked ({step_id}): {first_line(assumed.text, 120)}"
    for service in status.not_notified:
        times = counted(service.count, "notification")
        yield f"not notified: {one_line(service.service, 120)}: {one_line(service.reason, 200)} ({times})"
    yield from _question_lines(status, options)
    if status.run:
        parts = [cost_text(status.usage), tokens_text(status.usage), counted(status.calls, "agent call")]
        yield ", ".join(filter(None, parts))

    if status.waits_for and (status.waits_for != RESUME or due is None):
        resume = with_global_options(f"continue with: {RESUME}", options)
        why = f"waiting for {status.waits_for} (all that waits: {base_command(options)} why)"
        yield resume if status.waits_for == RESUME else why
    elif due and not status.holder:
        yield from next_lines(due, base_command(options))


def _run_lines(status: Status, options: GlobalOptions) -> Iterator[str | Text]:
    idea = f" of {status.idea}" if status.idea else ""
    exit_code = "" if status.exit is None else f", exit code {status.exit}"
    yield styled(status.run_status, "bold").append_text(styled(f"  run {status.run}{idea}{exit_code}"))
    if not status.reason:
        return
    from gsd_core.run.notes import with_notes  # slow to import, and `--help` does not need it

    reason = status.reason
    if status.exit == ExitCode.QUESTION:
        # The commands that follow in it are those for another folder, or another question.
        reason = reason.partition(": ")[0]
    yield f"  {with_global_options(one_line(with_notes(reason, status.notes), 700), options)}"


def _question_lines(status: Status, options: GlobalOptions) -> Iterator[str]:
    for asked in status.questions:
        text = first_line(asked.question.text, 120)
        yield f"? {text}" if asked.step in text else f"? {asked.step}: {text}"
        if text.endswith("…"):
            yield f"  read all of it with: {base_command(options)} questions"
        if asked.question.id in status.pending_answers:
            yield with_global_options(f"  answered; continue the run with: {RESUME}", options)
        else:
            yield f"  answer with: {answer_command(asked.question, base_command(options))}"


def _details(row: PhaseRow, signs: Mapping[str, str]) -> str:
    if not row.wanted:
        return "  (not in range)"
    if row.status in ("completed", "pending"):
        return ""
    doubted = ", marked as complete in ROADMAP.md" if row.doubted else ""
    steps = " ".join(f"{name} {signs[status]}" for name, status in row.steps.items())
    plans = f", {row.plans_done}/{counted(row.plans, 'plan')}" if row.plans else ""
    rounds = f", gap round {row.gap_rounds}" if row.gap_rounds else ""
    return f"  ({steps}{plans}{rounds}{doubted})"
