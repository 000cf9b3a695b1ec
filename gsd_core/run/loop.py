"""The loop: observe the project, do the most urgent thing that is due, and repeat until the run ends."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import assert_never

from gsd_core.errors import Parked
from gsd_core.exit_codes import ExitCode
from gsd_core.machine.claims import dependents
from gsd_core.machine.due import ApplyResult, AskAgain, End, Escalate, Settle, Start, Wait, due, exit_of
from gsd_core.machine.facts import TimerFired, TimerSet
from gsd_core.model.counts import some_of
from gsd_core.model.ids import StepId
from gsd_core.model.question import Inquiry, Option, Question, answer_command
from gsd_core.plugins.isolation import PluginFailure

from .apply import apply_result
from .branching import enter_branch
from .edits import consume_handoff, take_requests
from .gates import confirm
from .questions import POLL, ask, take_answers
from .recovery import settle
from .runtime import Run
from .snapshot import drop_obsolete, note_edited_plans, observe
from .step import run_step


async def loop(run: Run) -> End:
    """Do what is due until the run ends, or needs an answer that nobody can give now."""
    while True:
        take_answers(run)
        await take_requests(run)
        # The files are read again before every step: a human may edit them while the run works, and
        # the files on disk, not a remembered state, decide which postconditions hold.
        await observe(run)
        note_edited_plans(run)
        drop_obsolete(run)
        item = due(run.state)[0]
        end: End | None = None
        match item:
            case End():
                return item
            case ApplyResult():
                await apply_result(run, item.step)
                await consume_handoff(run, item.step)
            case Settle():
                await settle(run, item)
            case Escalate():
                end = await _escalate(run, item)
            case AskAgain():
                end = await _ask_again(run, item)
            case Wait():
                await _wait(run, item.step, item.until)
            case Start():
                if end := await confirm(run, item):
                    return end
                # On another branch, the files and what is due may differ.
                if not await enter_branch(run, item.step):
                    await run_step(run, item)
            case _:
                assert_never(item)
        if end is not None:
            return end


async def _escalate(run: Run, item: Escalate) -> End | None:
    """Ask a human whether to retry, skip or abort; without an answer, the cause ends the run."""
    step = StepId.parse(item.step)
    failed = item.failure
    reason = failed.hint if failed else ""
    match item.cause:
        case "gaps":
            text = f"Phase {step.phase} still has gaps:" + "".join(f"\n- {gap}" for gap in item.gaps)
            reason = reason or "no gap rounds are left, or the last one closed no gap"
        case "lost":
            text = f"Three attempts in a row at {item.step} were lost."
        case "repeats":
            text = f"Step {item.step} was {_repeated(run, item)}."
            if found := run.step_types.find(step.kind):
                error = f"{item.step} is always due"
                run.hooks.report(PluginFailure(plugin=found[0], hook="gsd_steps", error=error))
        case "failed":
            text = f"Step {item.step} failed: {failed.message if failed else ''}"
    retry = "one more gap round" if item.cause == "gaps" else "start the step again"
    options = (
        Option(label="Retry", description=retry),
        Option(label="Skip", description=_what_skipping_leaves(run, step)),
        Option(label="Abort", description="end the run here; it can be resumed"),
    )
    question = Question(text=f"{text}\nWhat now?", header="What now?", options=options, free_text=False)
    inquiry = Inquiry(kind="escalation", questions=(question,), reason=reason)
    try:
        await ask(run, inquiry, step=item.step, key=f"{item.cause} {item.generation}")
    except Parked:
        return _unanswered(run, item)
    return None


def _what_skipping_leaves(run: Run, step: StepId) -> str:
    if str(step) in run.state.asked:
        return "leave this step undone; nothing depends on it"
    if not step.phase:
        return "end the run here: nothing else can be done without this step"
    if not (others := dependents(run.state, step.phase)):
        return f"leave phase {step.phase} undone; no other open phase depends on it"
    plural = "phases" if len(others) > 1 else "phase"
    return f"leave phase {step.phase} undone, and with it what depends on it: {plural} {', '.join(others)}"


def _repeated(run: Run, item: Escalate) -> str:
    """Return what is wrong with a step that is due again and again."""
    if found := run.step_types.find(StepId.parse(item.step).kind):
        return (
            f"completed {item.generation} times, and plugin {found[0]!r}, which adds it, says each time that "
            f"it is due again; run with -p no:{found[0]} to continue without it"
        )
    return "completed, but its result keeps disappearing from the disk"


def _unanswered(run: Run, item: Escalate) -> End:
    if item.cause == "gaps":
        return End(outcome="gaps", exit=ExitCode.GAPS, reason=f"gaps remain: {some_of(item.gaps, 2)}")
    without_failure = {
        "lost": "three attempts in a row were lost because the process was killed",
        "repeats": _repeated(run, item),
        "failed": "failed",
    }
    code = exit_of(item.failure)
    message = item.failure.message if item.failure else without_failure[item.cause]
    if code == ExitCode.EXHAUSTED and item.failure and item.failure.hint:
        # Which limit to raise; who only reads the last line has no question about it.
        message += f" ({item.failure.hint})"
    return End(
        outcome="budget" if code == ExitCode.EXHAUSTED else "failed",
        exit=code,
        reason=f"{item.step}: {message}",
    )


async def _ask_again(run: Run, item: AskAgain) -> End | None:
    """Ask the questions of a parked step once more; without an answer, the run ends and can be resumed."""
    key = next(q.key for q in run.state.inquiries.values() if q.inquiry == item.inquiry)
    try:
        await ask(run, item.inquiry, step=item.step, key=key)
    except Parked:
        gsd = run.request.info.command
        # `gsd resume` would continue the lifecycle, which this process has left where it is.
        todo = "repeat this command" if run.state.options.only_asked else f"{gsd} resume"
        if unanswered := [
            question
            for record in run.state.inquiries.values()
            if record.open
            for question in record.inquiry.questions
            if question.id not in record.answers
        ]:
            todo = f"{answer_command(unanswered[0], gsd)}, then {todo}"
        reason = f"{item.step} is waiting for an answer: {todo}"
        return End(outcome="blocked", exit=ExitCode.QUESTION, reason=reason)
    return None


async def _wait(run: Run, step: str, until: datetime) -> None:
    """Sleep until *step* may continue or another process asks for a stop; keep taking answers."""
    set_at = [fact.at for fact in run.facts(TimerSet, step=step, after=run.step(step).base)]
    # The wait is never longer than it was meant to be when the timer was set: while it lasts, or between
    # two processes, the clock may be set back by hours.
    planned = until - set_at[-1] if set_at else until - run.now()
    loop = asyncio.get_running_loop()
    latest = loop.time() + planned.total_seconds()
    state = run.state
    while run.now() < until and loop.time() < latest and not (state.stop_asked or state.pause_asked):
        left = min((until - run.now()).total_seconds(), latest - loop.time())
        await asyncio.sleep(max(0.0, min(left, POLL.total_seconds())))
        take_answers(run)
        state = run.state
    if not (state.stop_asked or state.pause_asked):
        run.record(TimerFired(), step=step)
