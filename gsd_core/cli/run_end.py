"""The end of a run for people: what was built, how to try it, what it cost, what to do next."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from gsd_core.errors import GsdError
from gsd_core.sanitize import one_line, safe_text

from .commands import base_command, with_global_options
from .output import with_style, wrapped

if TYPE_CHECKING:
    from gsd_core.model.question import Asked
    from gsd_core.planning.model import Planning
    from gsd_core.planning.traceability import Trace
    from gsd_core.run import RunEnd
    from gsd_core.views.summary import RunSummary

    from .global_options import GlobalOptions
    from .project import ProjectState

MAX_TEXT = 300
MAX_LISTED = 5
MAX_LINES = 8


@attrs.frozen(kw_only=True)
class Finished:
    """The project after a run's process, with what the run did; *rows* are its requirements."""

    project: ProjectState
    summary: RunSummary
    planning: Planning
    rows: tuple[Trace, ...] = ()
    branch: str = ""


def read_finished(options: GlobalOptions) -> Finished | None:
    """Return the project as the run left it; ``None`` if it cannot be read: the run has ended anyway."""
    import asyncio

    from gsd_core.git import Git
    from gsd_core.journal.codec import structure
    from gsd_core.planning.survey import read_planning
    from gsd_core.run.tracing import trace_all
    from gsd_core.views.summary import summarize

    from .project import load

    async def git_facts(planning: Planning, root: Path) -> tuple[tuple[Trace, ...], str]:
        return await trace_all(root, planning), await Git(root).branch()

    try:
        project = load(options)
        planning = read_planning(project.root)
        rows, branch = asyncio.run(git_facts(planning, project.root))
        return Finished(
            project=project,
            summary=summarize(project.last_run.facts, structure),
            planning=planning,
            rows=rows,
            branch=branch,
        )
    except (GsdError, OSError):
        return None


def show_details(finished: Finished, end: RunEnd, options: GlobalOptions, budget: Decimal | None) -> None:
    """Print on stderr what comes before a run's last line."""
    for line in _details(finished, end, options, budget):
        click.echo(line, err=True)


def _details(
    finished: Finished, end: RunEnd, options: GlobalOptions, budget: Decimal | None
) -> Iterator[str]:
    yield ""
    yield from _done_so_far(finished, "built" if end.exit == 0 else "so far")
    where = f" (branch {finished.branch})" if finished.branch else ""
    yield from _line("where", f"{finished.project.root}{where}")
    if end.exit == 0:
        yield from _try_it(finished, options)
    yield from _figures(finished.summary)
    yield from _assumed(finished.summary)
    questions = _open_questions(finished)
    if questions:
        yield from _line("waits for", "an answer" if len(questions) == 1 else f"{len(questions)} answers")
    for asked in questions[:MAX_LISTED]:
        yield from _question(asked, base_command(options))
    if commands := _next_commands(finished, end, budget):
        label = "then:" if questions else "next:"
        yield from with_style([label], label)
        for command in commands:
            yield f"  {with_global_options(command, options)}"


def _done_so_far(finished: Finished, label: str) -> Iterator[str]:
    from gsd_core.views.amounts import counted
    from gsd_core.views.phases import phase_rows

    summary, planning = finished.summary, finished.planning
    rows = phase_rows(finished.project.state)
    tasks = sum(len(step.tasks) for step in summary.steps)
    parts = [f"{sum(row.status == 'completed' for row in rows)} of {counted(len(rows), 'phase')} complete"]
    parts += [counted(tasks, "task")] if tasks else []
    wanted = [row for row in finished.rows if row.phase]
    if wanted:
        verified = sum(row.status == "Complete" for row in wanted)
        parts.append(f"{verified} of {counted(len(wanted), 'requirement')} verified")
    yield from _line(
        label if tasks else "project", ": ".join(filter(None, [planning.name, ", ".join(parts)]))
    )


def _try_it(finished: Finished, options: GlobalOptions) -> Iterator[str]:
    """Yield the commands that the project's own files name, and say which of them were run."""
    from gsd_core.views.try_it import how_to_try

    rows = finished.rows
    passed = {
        check.command
        for row in rows
        for check in row.checks
        if check.result and check.result.status == "holds"
    }
    found = how_to_try(finished.project.root, passed)
    if found is None:
        return
    checked = sum(command in found.checked for command in found.commands)
    how = "the plans' checks ran this" if checked == len(found.commands) else "not run by the verification"
    if 0 < checked < len(found.commands):
        how = f"the plans' checks ran {checked} of these"
    yield from with_style([f"try it (from {one_line(found.source, 80)}; {how}):"], "try it")
    if options.directory_given:
        yield f"  cd {shlex.quote(str(options.directory))}"
    for command in found.commands:
        yield f"  {safe_text(command, multiline=False)}"


def _figures(summary: RunSummary) -> Iterator[str]:
    from gsd_core.views.amounts import cost_text, counted, duration_text, tokens_text

    costs = summary.costs
    processes = f", in {summary.processes} processes" if summary.processes > 1 else ""
    yield from _line("time", f"{duration_text(summary.worked)}{processes}")
    if costs.calls:
        unknown = f", {counted(costs.unknown, 'call')} of unknown cost" if costs.unknown else ""
        parts = [cost_text(costs.usage), tokens_text(costs.usage), counted(costs.calls, "agent call")]
        yield from _line("cost", f"{', '.join(filter(None, parts))}{unknown}")


def _assumed(summary: RunSummary) -> Iterator[str]:
    from gsd_core.views.amounts import counted

    assumed = summary.assumed
    if not assumed:
        return
    yield from _line("assumed", f"{counted(len(assumed), 'answer')} that no person gave")
    for one in assumed[:MAX_LISTED]:
        assert one.answer is not None
        words = f"{one.text} → {one.answer.words} ({one.answer.by or one.answer.via or one.answer.how})"
        yield from wrapped(f"  - {one_line(words, MAX_TEXT)}", sys.stderr)
    if len(assumed) > MAX_LISTED:
        yield f"  - and {len(assumed) - MAX_LISTED} more"


def _open_questions(finished: Finished) -> Sequence[Asked]:
    from gsd_core.views.status import open_questions

    project = finished.project
    return [one for one in open_questions(project.state) if one.question.id not in project.pending_answers]


def _question(asked: Asked, gsd: str) -> Iterator[str]:
    """Yield a question with a command for each answer, each on a line that can be pasted as it is."""
    question = asked.question
    # With its lines, as it is asked at a terminal.
    lines = [one_line(line, MAX_TEXT) for line in question.text.splitlines() if line.strip()]
    yield from wrapped(f"  ? {lines[0] if lines else ''}", sys.stderr)
    for line in lines[1:MAX_LINES]:
        yield from wrapped(f"    {line}", sys.stderr)
    if len(lines) > MAX_LINES:
        yield f"    … read all of it with: {gsd} questions"
    for number, option in enumerate(question.options, 1):
        yield from wrapped(f"    {one_line(option.label, MAX_TEXT)}{option.recommended_note}:", sys.stderr)
        yield f"      {gsd} answer {question.id} {number}"
    if question.free_text:
        yield "    in your own words:" if question.options else "    answer with:"
        yield f"      {gsd} answer {question.id} 'YOUR ANSWER'"


def _next_commands(finished: Finished, end: RunEnd, budget: Decimal | None) -> list[str]:
    from gsd_core.views.next import finish_command

    seen = finished.project.state.seen
    phases = seen.phases if seen else ()
    match end.outcome:
        case "done":
            return list(filter(None, ["gsd report --open", finish_command(seen)]))
        case "gaps":
            gaps = [f"gsd gaps {phase.number}" for phase in phases if phase.verdict == "gaps_found"]
            return [*gaps[:MAX_LISTED], "gsd resume"]
        case "failed":
            return ["gsd log --kind failure", "gsd resume"]
        case "budget":
            more = f" --max-budget-usd {2 * budget}" if budget and "--max-budget-usd" in end.reason else ""
            return ["gsd cost --by step", f"gsd resume{more}"]
        case "blocked" | "stopped":
            return ["gsd resume"]


def _line(label: str, value: str) -> Iterator[str]:
    yield from with_style(wrapped(f"{label}: {one_line(value, MAX_TEXT)}", sys.stderr), f"{label}:")
