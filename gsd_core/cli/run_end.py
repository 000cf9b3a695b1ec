"""The end of a run, as text and as JSON: what was built, how to try it, what it cost, what to do next.

It is the result of the command, so it is printed on stdout. While the run works, lines go to stderr.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs
import click

from gsd_core.errors import GsdError
from gsd_core.exit_codes import ExitCode
from gsd_core.git import Git
from gsd_core.machine.facts import AgentClosed, RunOpened, StepCompleted
from gsd_core.model.counts import dollars_text
from gsd_core.model.ids import StepId
from gsd_core.model.question import Asked, answer_commands
from gsd_core.planning.model import Planning
from gsd_core.planning.survey import read_planning
from gsd_core.planning.traceability import Trace, count_verified
from gsd_core.run.notes import with_notes
from gsd_core.run.runtime import RunEnd
from gsd_core.run.tracing import trace_all
from gsd_core.sanitize import one_line, safe_text
from gsd_core.serializer import Serializer
from gsd_core.views.amounts import cost_text, duration_text, tokens_text
from gsd_core.views.cost import COSTS
from gsd_core.views.next import commands_after
from gsd_core.views.phases import phase_rows
from gsd_core.views.status import question_json
from gsd_core.views.summary import ASSUMED, RunSummary, summarize
from gsd_core.views.try_it import TryIt, how_to_try

from .commands import base_command, with_global_options
from .global_options import GlobalOptions
from .output import counted, print_json, print_labeled, with_style, wrapped
from .project import ProjectState, load, open_journal
from .single_steps import EXEC
from .step_results import result_lines
from .streams import BackgroundStream

if TYPE_CHECKING:
    from .launch import RunOptions

Output: TypeAlias = Literal["text", "json", "stream-json"]

MAX_TEXT = 300
MAX_LISTED = 5
MAX_LINES = 8
MAX_REASON = 400
DRAIN_SECONDS = 2.0
"""How long the result waits until the lines before it are on the screen."""
ENDED = Serializer(RunEnd, "run outcome exit reason notes dollars? commits")
HINTS = {
    "blocked": "list the open questions with `gsd questions`, answer them, then run `gsd resume`",
    "stopped": "continue with `gsd resume`",
    "failed": "see what happened with `gsd log`, then run `gsd resume`",
    "gaps": "see what is missing in the phase's VERIFICATION.md, then run `gsd resume`",
    "budget": "raise the limit, then run `gsd resume`",
}


def show_end(end: RunEnd, run: RunOptions, limits: Mapping[str, Any]) -> None:
    """Print on stdout how the *run* ended, in the form that it asks for; with ``--quiet`` only the last line.

    What an agent answered to ``gsd exec`` is the result, and everything else goes to stderr.
    """
    if run.output == "stream-json":
        return  # its last event has said it

    options, asked, in_full = run.global_options, run.asked, run.verbosity >= 0
    answers, results = _results(options, end, asked)
    finished = read_finished(options) if in_full or run.output == "json" else None
    hint = with_global_options(_hint(end, finished, asked), options)
    if run.output == "json":
        data = _end_json(end, finished, options, limits) | {"hint": hint}
        print_json(data | ({"answers": answers, "results": results} if asked else {}))
        return
    has_answer = any(StepId.parse(step).kind == EXEC for step in asked)
    if isinstance(sys.stderr, BackgroundStream):
        sys.stderr.drain(DRAIN_SECONDS)  # both may be one terminal
    # A step that was asked for alone has only questions to add.
    if finished and in_full and (not asked or end.exit):
        results += _details(finished, end, options, limits)
    for line in results:
        click.echo(line, err=has_answer)
    if has_answer and end.exit == 0:
        click.echo("\n".join(answers.values()))
    cost = f", {dollars_text(end.dollars)}" if end.dollars else ""
    reason = one_line(with_notes(one_line(end.reason, MAX_REASON), end.notes), 2 * MAX_REASON)
    about = f"{counted(end.commits, 'commit')}{cost}{end.run and f', run {end.run}'}"
    print_labeled(end.outcome, f"{with_global_options(reason, options)} ({about})", err=has_answer)
    if hint:
        print_labeled("hint", hint, err=has_answer)


def show_done_already(run: RunOptions) -> None:
    """Print that there is nothing left of what the *run* is asked for."""
    state = load(run.global_options).state
    reason = "it was done before, nothing is changed"
    end = RunEnd(outcome="done", exit=ExitCode.OK, reason=reason, run=state.run)
    show_end(end, attrs.evolve(run, output="text" if run.output == "text" else "json", verbosity=-1), {})


def _hint(end: RunEnd, finished: Finished | None, asked: Mapping[str, str]) -> str:
    if finished and (end.exit == ExitCode.QUESTION or end.outcome == "stopped") and not asked:
        return ""  # the commands that answer and resume have just been listed
    hint = HINTS.get(end.outcome, "")
    if end.outcome == "blocked" and end.exit != ExitCode.QUESTION:
        hint = "fix this, or choose other phases, then run `gsd resume`"
    seen = finished.project.state.seen if finished else None
    if seen and not any(phase.verdict == "gaps_found" for phase in seen.phases):
        hint = hint.replace("in the phase's VERIFICATION.md", "with `gsd requirements`")
    # `gsd resume` continues the lifecycle, which was left where it is.
    return hint.replace("run `gsd resume`", "repeat this command") if asked else hint


def _results(
    options: GlobalOptions, end: RunEnd, asked: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return what the steps that the user asked for gave: agents' last words by step, and files in short."""
    answers: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    root = options.directory.resolve()
    if asked:
        with open_journal(root) as journal:
            for fact in journal.facts(RunOpened, AgentClosed, StepCompleted, run=end.run):
                match fact.data:
                    case AgentClosed(value=value) if fact.step in asked and value:
                        answers[fact.step] = safe_text(str(value["text"]))
                    case RunOpened(answered=answered):
                        # An earlier process of the same command may have done some of them.
                        found = {step: found.get(step, []) for step in answered}
                    case StepCompleted(paths=paths, unchanged=unchanged) if fact.step in asked:
                        step = StepId.parse(fact.step)
                        lines = result_lines(root, step, paths, unchanged=bool(unchanged))
                        # Those that no file names.
                        gaps = () if paths else (fact.data.gaps or ())[:MAX_LINES]
                        named = [f"left open: {one_line(gap, MAX_TEXT)}" for gap in gaps]
                        found[fact.step] = [*map(safe_text, lines), *named]
                    case _:
                        pass
    return answers, [line for lines in found.values() for line in lines]


@attrs.frozen(kw_only=True)
class Finished:
    """The project as a run's process left it, with what the run did.

    *phases* and *requirements* are how many there are and how many of them are complete or verified; only
    requirements that have a phase count. *try_it* is how to try what was built, if its files say so.
    """

    project: ProjectState
    summary: RunSummary
    planning: Planning
    branch: str
    phases: tuple[int, int]
    requirements: tuple[int, int]
    try_it: TryIt | None

    @property
    def tasks(self) -> int:
        """How many tasks the run has done."""
        return sum(len(step.tasks) for step in self.summary.steps)


def read_finished(options: GlobalOptions) -> Finished | None:
    """Return the project as the run left it; ``None`` if it cannot be read: the run has ended anyway."""

    async def git_facts(planning: Planning, root: Path) -> tuple[tuple[Trace, ...], str]:
        return await trace_all(root, planning), await Git(root).branch()

    try:
        project = load(options)
        planning = read_planning(project.root)
        rows, branch = asyncio.run(git_facts(planning, project.root))
        phases = phase_rows(project.state)
        wanted = [row for row in rows if row.phase]
        checks = [check for row in rows for check in row.checks]
        passed = {one.command for one in checks if one.result and one.result.status == "holds"}
        with open_journal(project.root) as journal:
            summary = summarize(journal.events(run=project.last_run.id, facts_only=True))
        return Finished(
            project=project,
            summary=summary,
            planning=planning,
            branch=branch,
            phases=(len(phases), sum(row.status == "completed" for row in phases)),
            requirements=(len(wanted), count_verified(wanted)),
            try_it=how_to_try(project.root, passed),
        )
    except (GsdError, OSError):
        return None


def _end_json(
    end: RunEnd, finished: Finished | None, options: GlobalOptions, limits: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all that the text says; without a project that can be read only how the run ended."""
    data = ENDED.dump(end) | {"project": None}
    if finished is None:
        return data
    summary, try_it = finished.summary, finished.try_it
    commands = commands_after(end.outcome, finished.project.state.seen, end.reason, limits)
    phases, phases_complete = finished.phases
    requirements, verified = finished.requirements
    return data | {
        "project": {
            "name": finished.planning.name,
            "path": str(finished.project.root),
            "branch": finished.branch or None,
            "phases": phases,
            "phases_complete": phases_complete,
            "tasks": finished.tasks,
            "requirements": requirements,
            "requirements_verified": verified,
        },
        "try_it": try_it
        and {"source": try_it.source, "commands": list(try_it.commands), "checked": sorted(try_it.checked)},
        "worked_seconds": summary.worked.total_seconds(),
        "processes": summary.processes,
        "cost": COSTS.dump(summary.costs),
        "assumed": [*map(ASSUMED.dump, summary.assumed)],
        "questions": [question_json(one, gsd=base_command(options)) for one in finished.project.unanswered],
        "next": [with_global_options(line, options) for line in commands],
    }


def _details(
    finished: Finished, end: RunEnd, options: GlobalOptions, limits: Mapping[str, Any]
) -> Iterator[str]:
    if sys.stdout.isatty():
        yield ""  # below what the run showed
    phases, complete = finished.phases
    parts = [f"{complete} of {counted(phases, 'phase')} complete"]
    parts += [counted(finished.tasks, "task")] if finished.tasks else []
    requirements, verified = finished.requirements
    parts += [f"{verified} of {counted(requirements, 'requirement')} verified"] if requirements else []
    words = ": ".join(filter(None, [finished.planning.name, ", ".join(parts)]))
    label = "built" if end.exit == 0 else "so far"
    yield from _line(label if finished.tasks else "project", words)
    where = f" (branch {finished.branch})" if finished.branch else ""
    yield from _line("where", f"{finished.project.root}{where}")
    if end.exit == 0 and finished.try_it:
        found = finished.try_it
        checked = sum(command in found.checked for command in found.commands)
        how = "not run by the verification"
        if checked == len(found.commands):
            how = "the plans' checks ran this"
        elif checked:
            how = f"the plans' checks ran {checked} of these"
        yield from with_style([f"try it (from {one_line(found.source, 80)}; {how}):"], "try it", sys.stdout)
        if options.directory_given:
            yield f"  cd {shlex.quote(str(options.directory))}"
        for command in found.commands:
            yield f"  {safe_text(command, multiline=False)}"
    summary = finished.summary
    costs = summary.costs
    processes = f", in {summary.processes} processes" if summary.processes > 1 else ""
    yield from _line("time", f"{duration_text(summary.worked)}{processes}")
    if costs.calls:
        unknown = f", {counted(costs.unknown, 'call')} of unknown cost" if costs.unknown else ""
        parts = [cost_text(costs.usage), tokens_text(costs.usage), counted(costs.calls, "agent call")]
        yield from _line("cost", f"{', '.join(filter(None, parts))}{unknown}")
    yield from _assumed(finished.summary)
    questions = finished.project.unanswered
    if questions:
        yield from _line("waits for", "an answer" if len(questions) == 1 else f"{len(questions)} answers")
    for asked in questions[:MAX_LISTED]:
        yield from _question(asked, base_command(options))
    if commands := commands_after(end.outcome, finished.project.state.seen, end.reason, limits):
        label = "then:" if questions else "next:"
        yield from with_style([label], label, sys.stdout)
        for command in commands:
            yield f"  {with_global_options(command, options)}"


def _assumed(summary: RunSummary) -> Iterator[str]:
    if not (assumed := summary.assumed):
        return
    yield from _line("assumed", f"{counted(len(assumed), 'answer')} that no person gave")
    for one in assumed[:MAX_LISTED]:
        assert one.answer is not None
        words = f"{one.text} → {one.answer.words} ({one.answer.who})"
        yield from wrapped(f"  - {one_line(words, MAX_TEXT)}", sys.stdout)
    if len(assumed) > MAX_LISTED:
        yield f"  - and {len(assumed) - MAX_LISTED} more"


def _question(asked: Asked, gsd: str) -> Iterator[str]:
    """Yield a question with a command for each answer, each on a line that can be pasted as it is."""
    question = asked.question
    # With its lines, as it is asked at a terminal.
    lines = [one_line(line, MAX_TEXT) for line in question.text.splitlines() if line.strip()]
    yield from wrapped(f"  ? {lines[0] if lines else ''}", sys.stdout)
    for line in lines[1:MAX_LINES]:
        yield from wrapped(f"    {line}", sys.stdout)
    if len(lines) > MAX_LINES:
        yield f"    … read all of it with: {gsd} questions"
    for command, label in answer_commands(question, gsd):
        yield from wrapped(f"    {one_line(label, MAX_TEXT)}:", sys.stdout)
        yield f"      {command}"


def _line(label: str, value: str) -> Iterator[str]:
    rows = wrapped(f"{label}: {one_line(value, MAX_TEXT)}", sys.stdout)
    yield from with_style(rows, f"{label}:", sys.stdout)
