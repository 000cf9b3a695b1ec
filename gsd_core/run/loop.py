"""The loop: observe the project, do the most urgent thing that is due, and repeat until the run ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias, assert_never

import attrs

from gsd_core.errors import Parked, PlanningError, ProjectError
from gsd_core.exit_codes import ExitCode
from gsd_core.machine import facts
from gsd_core.machine.claims import dependents
from gsd_core.machine.due import ApplyResult, AskAgain, End, Escalate, Next, Settle, Start, Wait, due, exit_of
from gsd_core.machine.schedule import Schedule, works_of
from gsd_core.machine.state import RunOutcome, State
from gsd_core.model.counts import some_of
from gsd_core.model.ids import EXECUTE, StepId
from gsd_core.model.question import Inquiry, Option, Question, answer_command
from gsd_core.planning.config import get, max_parallel, read_config
from gsd_core.planning.waves import plan_dependencies
from gsd_core.plugins.isolation import PluginFailure
from gsd_core.plugins.worktrees import why_no_work_tree
from gsd_core.sanitize import clip, safe_text
from gsd_core.settings import RunSettings, Settings, bind_settings

from .agent_call import agents_cap
from .branching import enter_branch
from .dispatch import dispatched, open_unit
from .edits import consume_handoff, take_requests
from .gates import IN_THE_WAY, apply, confirm
from .questions import POLL, ask, take_answers
from .recovery import settle
from .runtime import IN_PLACE, WORK_TREES, Run, workspaces_of
from .snapshot import drop_obsolete, note_edited_plans, observe
from .step import MAX_WHY, run_step

log = logging.getLogger(__name__)

Work: TypeAlias = ApplyResult | Settle | Next
ANSWERS = (facts.QuestionAnswered, facts.QuestionWithdrawn, facts.ControlAsked)
"""Facts after which what nobody could answer may be due again."""
SHORT = timedelta(seconds=2)
"""How often it is asked whether a plan may start that waits because of other runs."""


async def loop(run: Run) -> End:
    """Do what is due until the run ends, or needs an answer that nobody can give now."""
    about = run.request.settings, read_config(run.root), run.root
    capacity = await asyncio.to_thread(capacity_of, *about, is_confined=bool(run.sandbox.name))
    beside = allows_parallel_phases(run.settings, read_config(run.root))
    tasks = Tasks(run=run, capacity=capacity, parallel_phases=beside)
    if capacity > 1:
        run.listeners.append(tasks.listen)
    try:
        while True:
            take_answers(run)
            await take_requests(run)
            # The files are read again before every step: a human may edit them while the run works, and
            # the files on disk, not a remembered state, decide which postconditions hold.
            await observe(run)
            note_edited_plans(run)
            drop_obsolete(run)
            tasks.take_answered()
            items = due(run.state, live=tasks.live, capacity=capacity, parallel_phases=beside)
            if items and isinstance(items[0], End):
                return items[0]
            await tasks.start([item for item in items if not isinstance(item, End)])
            if (ended := await tasks.wait()) is not None:
                return ended
    finally:
        if capacity > 1:
            run.listeners.remove(tasks.listen)
        await tasks.cancel()


@attrs.define(kw_only=True)
class Tasks:
    """What a run does side by side: one task for each step that it works on, or asks or waits about.

    *works* are the items that they do. *unanswered* are those that need an answer which nobody can give now,
    with how the run ends if nothing else is left to do. *error* or *end* is what ended the first step that
    holds up everything: nothing more is started then; results are applied, unless there was an error. An
    error that is not about the project, such as a journal that belongs to another process by now, ends
    everything at once. *agents* is how many plans may be executed side by side now, as far as budget policies
    have a say; *is_short*: they let one wait. *woken* is set when something else may be due, *is_answered* if
    that is because of an answer.
    """

    run: Run
    capacity: int
    parallel_phases: bool
    agents: int = attrs.field(default=1, init=False)
    is_short: bool = attrs.field(default=False, init=False)
    works: dict[str, Work] = attrs.field(factory=dict[str, Work], init=False)
    live: dict[str, asyncio.Task[End | None]] = attrs.field(
        factory=dict[str, "asyncio.Task[End | None]"], init=False
    )
    unanswered: list[tuple[Work, End]] = attrs.field(factory=list[tuple[Work, End]], init=False)
    woken: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    is_answered: bool = attrs.field(default=False, init=False)
    error: ProjectError | PlanningError | None = attrs.field(default=None, init=False)
    end: End | None = attrs.field(default=None, init=False)

    def listen(self, _: State, fact: facts.Record) -> None:
        """Note a fact that was recorded, also while it is asked how many agents there may be."""
        self.is_answered = self.is_answered or fact.kind in map(facts.KIND_OF.get, ANSWERS)
        # A result whose step asks something lets others be applied.
        if self.is_answered or fact.kind == facts.KIND_OF[facts.QuestionAsked]:
            self.woken.set()

    def take_answered(self) -> None:
        """Take note of answers; call it right before it is decided what is due, so that none is lost."""
        if self.is_answered:
            # It is due as before, and the answer may be that nothing is in its way any more.
            self.unanswered = [one for one in self.unanswered if not isinstance(one[0], ApplyResult)]
        self.is_answered = False
        self.woken.clear()

    async def start(self, items: Sequence[Work]) -> None:
        """Start those of the *items* that can be done beside what is being done, the most urgent first."""
        self.unanswered = [(item, end) for item, end in self.unanswered if item in items]
        items = [item for item in items if all(item != other for other, _ in self.unanswered)]
        if self.error:
            items = []
        elif self.end or self.run.turns.leaving:
            items = self._to_apply(items)
        elif self.capacity == 1:
            items = items[:1]
        else:
            others = [item for item in items if not isinstance(item, ApplyResult | Start)]
            chosen = [*self._to_apply(items), *others, *self._startable(items)]
            # A run that neither works nor ends would wait for nothing.
            items = chosen if chosen or self.live else items[:1]
        for item in await self._permitted(items):
            step = str(item.step)
            self.works[step] = item
            self.live[step] = asyncio.create_task(_do(self.run, item), name=f"gsd:{step}")

    async def _permitted(self, items: Sequence[Work]) -> Sequence[Work]:
        """Return *items* without the plans that have to wait because of others, maybe of another run."""
        working = sum(isinstance(work, Start) for work in self.works.values())
        # The step in the project counts, but one that is about to start waits for nobody.
        starts = [item for item in items if isinstance(item, Start) and not _is_in_project(item)]
        wanted = max(1, working + len(starts))
        # It need not ask for one; when it needs only one again, it says so.
        if max(wanted, self.agents) == 1 and not self.is_short:
            return items
        step = next((str(item.step) for item in (*starts, *items, *self.works.values())), "")
        cap = await agents_cap(self.run, step, working=working, wanted=wanted)
        self.agents = wanted if cap.agents is None else max(1, working, min(cap.agents, wanted))
        late = starts[self.agents - working :]
        self.is_short = bool(late)
        for item in late:
            if str(item.step) not in self.run.state.queued:
                about = cap.reason or "a budget policy", cap.hint
                why, hint = (clip(safe_text(text), MAX_WHY) for text in about)
                self.run.record(facts.StepQueued(why=why, hint=hint), step=str(item.step))
        return [item for item in items if item not in late]

    def _to_apply(self, items: Sequence[Work]) -> list[ApplyResult]:
        """Return the result to apply now: one at a time, and none while a step works in the project."""
        works = self.works.values()
        is_busy = self.run.in_place.locked() or any(self._applies(w) or _is_in_project(w) for w in works)
        return [] if is_busy else [item for item in items if isinstance(item, ApplyResult)][:1]

    def _applies(self, work: Work) -> bool:
        """Whether *work* is a result that is being applied, and waits for nobody's answer."""
        if not isinstance(work, ApplyResult):
            return False
        records = self.run.state.inquiries.values()
        asked = [one for one in records if one.open and one.inquiry.step == work.step]
        return not any(one.key.startswith(IN_THE_WAY) for one in asked)

    def _startable(self, items: Sequence[Work]) -> list[Start]:
        """Return the steps that can start now: plans beside each other, and one other step at a time."""
        # Also while somebody is asked about the failure.
        works = [*items, *self.works.values()]
        if self.run.settings.fail_fast and any(isinstance(one, Escalate) for one in works):
            return []
        if any(isinstance(item, Settle) for item in items):
            return []
        starts = [item for item in items if isinstance(item, Start)]
        plans = {item.step.detail: item for item in starts if not _is_in_project(item)}
        working = [work for work in self.works.values() if isinstance(work, Start)]
        least = get(self.run.planning.config, "parallelization.min_plans_for_parallel", 1)
        slots = (self.capacity if len(starts) + len(working) >= least else 1) - len(working)
        # Its agent reads the project's folder, in which nothing may change during that.
        is_busy = any(map(self._applies, works))
        is_busy |= bool(self.live) if not self.parallel_phases else any(map(_is_in_project, working))
        others = [] if is_busy or slots < 1 else [item for item in starts if _is_in_project(item)][:1]
        phases = {work.step.phase for work in (*plans.values(), *working)}
        known = [plan for phase in self.run.planning.phases if phase.number in phases for plan in phase.plans]
        # What a plan waits for, `due` has decided; here, those of the longest chains come first.
        schedule = Schedule(works=works_of(known, plan_dependencies(known)))
        running = [work.step.detail for work in working]
        found = schedule.startable(only=plans, running=running, slots=slots - len(others))
        return [*others, *(plans[work.id] for work in found)]

    async def wait(self) -> End | None:
        """Wait until something has ended, or somebody has answered; return how the run ends, if it does."""
        if not (self.live or self.run.turns.leaving):
            return self._end or self.unanswered[0][1]
        waiting = asyncio.ensure_future(self.woken.wait())
        try:
            ends = [*self.live.values(), waiting]
            limit = SHORT.total_seconds() if self.is_short else None
            await asyncio.wait(ends, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        for step, task in [*self.live.items()]:
            if task.done():
                del self.live[step]
                self._ended(self.works.pop(step), task)
        return None if self.live or self.capacity > 1 else self._end

    @property
    def _end(self) -> End | None:
        """How the run ends now that nothing is being done, if something held up everything."""
        if self.error:
            raise self.error
        return self.end

    def _ended(self, item: Work, task: asyncio.Task[End | None]) -> None:
        try:
            end = task.result()
        except (ProjectError, PlanningError) as exc:
            if self.live:
                log.warning("%s; what is in progress is finished first", safe_text(str(exc), multiline=False))
            self.error = self.error or exc
            return
        if end is not None:
            self.unanswered.append((item, end))
            if self.capacity == 1 or end.outcome == "stopped" or self.run.settings.fail_fast:
                self.end = self.end or end

    async def cancel(self) -> None:
        """Cancel what is being done, and wait until it has recorded its end; raise what went wrong there."""
        for task in self.live.values():
            task.cancel()
        ended = await asyncio.gather(*self.live.values(), return_exceptions=True)
        self.live.clear()
        for one in ended:
            if isinstance(one, BaseException) and not isinstance(one, asyncio.CancelledError):
                raise one


def _is_in_project(work: Work) -> bool:
    """Whether *work* is a step whose agent works in the project's folder, as all do but those of plans."""
    return isinstance(work, Start) and work.step.kind != EXECUTE


def allows_parallel_phases(settings: RunSettings, config: Mapping[str, Any]) -> bool:
    """Whether phases may be worked on side by side: not if each has a branch, as a folder has only one."""
    return settings.parallel_phases and get(config, "git.branching_strategy", "none") != "phase"


def capacity_of(settings: Settings, config: Mapping[str, Any], root: Path, *, is_confined: bool) -> int:
    """Return how many plans may be executed side by side: in the project's own folder, only one.

    *is_confined*: there is a sandbox, which decides where plans are executed.
    """
    first, *_ = workspaces_of(settings, is_confined=is_confined)
    with bind_settings(settings.values):
        is_elsewhere = bool(settings.of(RunSettings).dispatch)
        if not is_elsewhere and (first == IN_PLACE or (first == WORK_TREES and why_no_work_tree(root))):
            return 1
    return max(0, settings.of(RunSettings).max_parallel) or max_parallel(config)


async def _do(run: Run, item: Work) -> End | None:
    """Do *item*; return how the run ends because of it, if it does."""
    match item:
        case ApplyResult():
            if end := await apply(run, item):
                return end
            await consume_handoff(run, item.step)
        case Settle():
            start = Start(step=StepId.parse(item.step))
            # Work elsewhere is not lost with the process that followed it.
            if not (open_unit(run, item.step) and await dispatched(run, start)):
                await settle(run, item)
        case Escalate():
            return await _escalate(run, item)
        case AskAgain():
            return await _ask_again(run, item)
        case Wait():
            await _wait(run, item.step, item.until)
        case Start():
            if end := await confirm(run, item):
                return end
            # On another branch, the files and what is due may differ.
            if not (await enter_branch(run, item.step) or await dispatched(run, item)):
                await run_step(run, item)
        case _:
            assert_never(item)
    return None


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
    outcome: RunOutcome = "budget" if code == ExitCode.EXHAUSTED else "failed"
    return End(outcome=outcome, exit=code, reason=f"{item.step}: {message}")


async def _ask_again(run: Run, item: AskAgain) -> End | None:
    """Ask the questions of a parked step once more; without an answer, the run ends and can be resumed."""
    key = next(q.key for q in run.state.inquiries.values() if q.inquiry == item.inquiry)
    try:
        await ask(run, item.inquiry, step=item.step, key=key)
    except Parked:
        gsd = run.request.info.command
        # `gsd resume` would continue the lifecycle, which this process has left where it is.
        todo = "repeat this command" if run.state.options.only_asked else f"{gsd} resume"
        asked = [record for record in run.state.inquiries.values() if record.open]
        if unanswered := [q for one in asked for q in one.inquiry.questions if q.id not in one.answers]:
            todo = f"{answer_command(unanswered[0], gsd)}, then {todo}"
        reason = f"{item.step} is waiting for an answer: {todo}"
        return End(outcome="blocked", exit=ExitCode.QUESTION, reason=reason)
    return None


async def _wait(run: Run, step: str, until: datetime) -> None:
    """Sleep until *step* may continue or another process asks for a stop; keep taking answers."""
    set_at = [fact.at for fact in run.facts(facts.TimerSet, step=step, after=run.step(step).base)]
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
        run.record(facts.TimerFired(), step=step)
