"""What is due: the most urgent thing that a run has to do, derived from its state alone.

A run is a loop: it reads the planning files, calls :func:`due`, does the first thing in the result and
records facts about it, which change the state. It does not work through a list of steps. A step is
due because its postcondition does not hold, so a run continues correctly after a crash, after edits by
hand, and in a project that other tools started.

In order of precedence:

1. Apply a recorded result. The agent's work is paid for, but its files are not written yet.
2. Settle an attempt whose process is gone, so that its usage is counted and its leftover files are saved.
3. End the run, if a human asked it to stop or chose to abort. Only after 1 and 2, so that no finished
   work is left unapplied.
4. Ask a human about a step that failed. No other step is started first; without an answer, the run
   ends with the exit code of the failure.
5. Start a step that the user asked for.
6. Start the step for the first postcondition that does not hold, in the first phase whose dependencies
   are complete; or wait for the time or the answer that this step needs. A step of a plugin's own kind that
   is due comes right before the step that its plugin named. Those of the milestone come when all phases
   are complete.
7. End the run: everything is done, or nothing more can be done.

The postconditions of a phase, in their order: its context is discussed, unless it has plans; every plan of
it exists; every plan is executed; a verification that covers all plans passed, or its gaps are closed by
further rounds of plan, execute and verify; the phase is marked complete.

Completion is a fact: this run did it. Files that say so are claims. Those that
were there when the run was opened are believed, with limits; a summary or a verdict that appears later
without the run is not; see :mod:`gsd_core.machine.claims`.

Every state of a run that is not closed has something due, and every question has an answer that
changes the state. So a run never stalls without a reason that it can show; ``tests/machine`` checks this
by walking through all states within a bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

import attrs
from attrs import evolve

from gsd_core.exit_codes import ExitCode, exit_code_of_kind
from gsd_core.model.counts import counted
from gsd_core.model.ids import COMPLETE, DISCUSS, EXECUTE, INIT, PLAN, VERIFY, StepId, phase_order
from gsd_core.model.question import Inquiry

from .claims import is_believed, is_executed, is_stale, is_verified, standing
from .obsolete import MILESTONE_STEPS, why_obsolete
from .state import (
    LOST_IN_A_ROW,
    Allowance,
    Failure,
    PhaseSnapshot,
    PlanSnapshot,
    RunOutcome,
    State,
    StepRecord,
    assumed_checks,
    gap_rounds,
)

END = "end"
"""Steps before this come when all phases of a milestone are complete."""

CLOSE = "close"
"""The kind of the step that archives a milestone; after it, a project without phases is as it should be."""

REPEATS = 3
"""If a step that was completed this often is due once more, a human is asked.

Its result keeps disappearing: someone undoes it by hand, or another program does.
"""

SPARE_VERIFICATIONS = 3
"""How many more verifications than plan steps a phase may have before a human is asked.

Each round needs one. More are due only if VERIFICATION.md does not remain as it was written.
"""


@attrs.frozen(kw_only=True)
class ApplyResult:
    """Write what the step returned."""

    step: str


@attrs.frozen(kw_only=True)
class Settle:
    """Record that an attempt is lost, because its process is gone."""

    step: str
    attempt: int


@attrs.frozen(kw_only=True)
class AskAgain:
    """Ask, without any agent, the questions that a parked or lost step waits for."""

    step: str
    inquiry: Inquiry


@attrs.frozen(kw_only=True)
class Escalate:
    """Ask a human to retry, skip or abort. *generation* makes each repetition a new question."""

    step: str
    cause: Literal["failed", "lost", "gaps", "repeats"]
    failure: Failure | None = None
    gaps: tuple[str, ...] = ()
    generation: int = 0


@attrs.frozen(kw_only=True)
class Start:
    """Begin an attempt at a step; *for_gaps*: it plans the gaps of the last verdict."""

    step: StepId
    for_gaps: bool = False


@attrs.frozen(kw_only=True)
class Wait:
    """Wait until the step may continue; *why* says what for."""

    step: str
    until: datetime
    why: str = ""


@attrs.frozen(kw_only=True)
class End:
    """End the run."""

    outcome: RunOutcome
    exit: int
    reason: str


Next: TypeAlias = AskAgain | Escalate | Start | Wait
Due: TypeAlias = ApplyResult | Settle | Next | End


def due(
    state: State, *, live: Collection[str] = (), capacity: int = 1, parallel_phases: bool = False
) -> tuple[Due, ...]:
    """Return what is due, most urgent first; empty for a closed run, or one that waits for what is *live*.

    *live* are the steps that this process works on, or asks or waits about: a running attempt at any other
    step is lost. With a *capacity* of 1, the run does the first item and calls this again; the others are for
    the status display. With more, all of them may be done side by side; the steps that the user asked for
    come alone. They are of one phase, unless *parallel_phases*: then of all whose dependencies are complete.
    """
    if state.closed is not None:
        return ()
    steps = [(step, record) for step, record in state.steps.items() if step not in live]
    urgent: tuple[ApplyResult | Settle, ...] = (
        *(ApplyResult(step=step) for step, record in steps if record.status == "result"),
        *(Settle(step=step, attempt=record.attempt) for step, record in steps if record.status == "running"),
    )
    if urgent and (capacity == 1 or state.stop_asked):
        return urgent
    if state.stop_asked:
        return (End(outcome="stopped", exit=ExitCode.INTERRUPTED, reason="on request"),)
    if capacity == 1:
        return _one_by_one(state)
    taken = (*live, *(one.step for one in urgent))
    return (*urgent, *_side_by_side(state, taken, parallel_phases=parallel_phases))


def _side_by_side(state: State, live: Collection[str], *, parallel_phases: bool) -> tuple[Due, ...]:
    """Return all that can be done beside what is *live*; what failed holds up only what depends on it."""
    asked = any(_is_urgent(state, step) for step in state.asked)
    if asked or state.pause_asked or state.aborted or state.options.only_asked:
        return () if live else _one_by_one(state)
    failed = [*_failed(state)]
    held = {*live, *(one.step for one in failed)}
    found = [(str(item.step), item) for item in _next_steps(state, every=True)]
    # A roadmap that names no dependency at all says nothing about them.
    if found and not (parallel_phases and any(phase.depends_on for phase in state.phases)):
        number = StepId.parse(found[0][0]).phase
        found = [(step, item) for step, item in found if StepId.parse(step).phase == number]
    first = [item for step, item in found if step not in held]
    items = (*(one for one in failed if one.step not in live), *first)
    return items if items or live else (_end(state),)


def _one_by_one(state: State) -> tuple[Due, ...]:
    """Return what is due if nothing else is being done."""
    if state.pause_asked:
        return (End(outcome="stopped", exit=ExitCode.INTERRUPTED, reason="paused on request"),)
    if state.aborted:
        return (_end_aborted(state),)
    if failed := tuple(_failed(state)):
        return failed
    if asked := tuple(_begin(state, _asked(state, step)) for step in state.asked if _is_urgent(state, step)):
        return asked
    if state.options.only_asked:
        return (_end_asked(state),)
    return tuple(_next_steps(state)) or (_end(state),)


def _is_urgent(state: State, step: str) -> bool:
    """Whether a step that was asked for comes before the lifecycle.

    A process for single steps does its own ones only: somebody who asks for an audit does not expect that
    the milestone is closed. In a run, those for the whole milestone wait until its phases are complete; one
    that was interrupted may have archived the phases already.
    """
    if state.options.only_asked:
        return step in state.requested
    if StepId.parse(step).kind not in MILESTONE_STEPS:
        return True
    record = state.steps.get(step)
    idle = bool(state.seen and state.seen.idle and not state.phases)
    return idle and record is not None and record.attempt > 0 and record.status == "waiting"


def _failed(state: State) -> Iterator[Escalate]:
    for step, record in state.steps.items():
        if record.id.phase in state.skipped or (state.options.only_asked and step not in state.requested):
            continue
        if why_obsolete(state, step):
            continue
        if record.status == "failed":
            yield Escalate(step=step, cause="failed", failure=record.failure, generation=record.generation)
        elif record.status == "waiting" and record.lost >= LOST_IN_A_ROW:
            yield Escalate(step=step, cause="lost", generation=record.generation)


def _next_steps(state: State, *, every: bool = False) -> Iterator[Next]:
    """Yield what is next in each phase; *every*: all plans that can be executed side by side."""
    phases = state.phases
    # A project without phases must not be initialized: its files would be replaced.
    idle = state.seen.idle if state.seen else ""
    if not phases and (not idle or is_initializing(state) or starts_milestone(state)):
        yield _begin(state, _before(state, Start(step=StepId(kind=INIT))))
    waits, late = False, list[Next]()
    for phase in sorted(phases, key=lambda phase: phase_order(phase.number)):
        if not in_range(state, phase.number) or phase.number in state.skipped:
            continue
        if missing_dependencies(state, phase):
            continue
        match _next_in(state, phase):
            case Start() as start:
                start = _before(state, start, phase)
                # If others verified the phase, nothing depends on the check mark that it lacks.
                if start.step.kind == COMPLETE and standing(state, phase) == "claimed":
                    late.append(_begin(state, start))
                elif every and start.step.kind == EXECUTE:
                    for plan in side_by_side(_waiting_plans(state, phase)):
                        yield _begin(state, Start(step=evolve(start.step, detail=plan.id)))
                else:
                    yield _begin(state, start)
            case Escalate() as question:
                yield question
            case None:
                continue
        waits = True
    yield from late
    # Phases that are not complete, or were skipped, keep the milestone in progress.
    if any(p.number in state.skipped or standing(state, p) == "open" for p in phases):
        return
    if not waits and phases and state.options.phases is None:
        milestone = state.seen.milestone if state.seen else ""
        asked = [StepId.parse(step) for step in state.asked if not _is_urgent(state, step)]
        wanted = [*(one for one in asked if one.detail == milestone), *_due_at_the_end(state)]
        for step in dict.fromkeys(wanted):
            yield _begin(state, Start(step=step))


def _asked(state: State, step: str) -> Start:
    """Return the start of a step that the user asked for."""
    found = StepId.parse(step)
    phase = state.phase(found.phase)
    for_gaps = found.kind == PLAN and phase is not None and phase.verdict == "gaps_found" and bool(phase.gaps)
    return Start(step=found, for_gaps=for_gaps)


def _before(state: State, start: Start, phase: PhaseSnapshot | None = None) -> Start:
    """Return the step of a plugin's kind that is due before *start*; *start* itself if there is none."""
    steps = phase.due if phase else state.seen.due if state.seen else ()
    kind = next((step.kind for step in steps if step.before == start.step.kind), "")
    if not kind:
        return start
    if phase is None:
        return Start(step=StepId(kind=kind))
    number = start.step.round
    if start.step.kind == COMPLETE:
        # Each verification may be followed by such a step.
        number = max(0, sum(record.completed > 0 for record in state.of(VERIFY, phase.number)) - 1)
    return Start(step=StepId(kind=kind, phase=phase.number, round=number))


def _due_at_the_end(state: State) -> Iterator[StepId]:
    """Yield the steps of plugins' kinds that are due for the milestone, whose phases are all complete."""
    if state.seen is None:
        return
    milestone = state.seen.milestone
    for step in state.seen.due:
        if step.before != END:
            continue
        records = [r for r in state.steps.values() if r.id.kind == step.kind and r.id.detail == milestone]
        last = max(records, key=lambda record: record.id.round, default=None)
        number = last.id.round if last else 0
        # A phase was added and completed since: this is another round, and no repetition.
        if last and last.ended_at and last.status == "completed":
            completed = [r.ended_at for r in state.steps.values() if r.id.kind == COMPLETE and r.ended_at]
            number += any(at > last.ended_at for at in completed)
        yield StepId(kind=step.kind, detail=milestone, round=number)


def in_range(state: State, number: str) -> bool:
    """Whether the user wants the phase with that number done."""
    return state.options.phases is None or number in state.options.phases


def missing_dependencies(state: State, phase: PhaseSnapshot) -> list[str]:
    """Return the phase's dependencies that are not complete; one that does not exist is ignored.

    One that is marked as complete does not block others, even if there is more to do for it.
    """
    found = [state.phase(number) for number in phase.depends_on]
    return [one.number for one in found if one and not one.ticked and standing(state, one) == "open"]


def _begin(state: State, start: Start) -> Next:
    """Return *start*, or what has to happen before the step can be started."""
    step = str(start.step)
    record = state.steps.get(step)
    if record is None:
        return start
    if record.status == "completed":
        # A user may ask for a step as often as they like.
        if record.completed >= REPEATS and step not in state.asked:
            return Escalate(step=step, cause="repeats", generation=record.completed)
    else:
        # The step's open questions come first. An agent that is started without the answers would ask again,
        # or decide for itself.
        asked = (one.inquiry for one in state.inquiries.values() if one.open and one.inquiry.step == step)
        if inquiry := next((one for one in asked if one.kind != "escalation"), None):
            return AskAgain(step=step, inquiry=inquiry)
    return start if record.until is None else Wait(step=step, until=record.until, why=record.why)


# The postconditions of a phase


def _next_in(state: State, phase: PhaseSnapshot) -> Start | Escalate | None:
    """Return the step for the first postcondition of *phase* that does not hold; ``None`` if all hold."""
    completed = any(record.completed for record in state.of(COMPLETE, phase.number))
    if phase.ticked and standing(state, phase) != "open" and (completed or not is_verified(state, phase)):
        return None
    has_plans = any(plan.on_disk for plan in phase.plans)
    if not phase.context and not has_plans:
        return Start(step=StepId(kind=DISCUSS, phase=phase.number))
    if not phase.plans or any(not plan.on_disk for plan in phase.plans):
        return Start(step=round_of(state, PLAN, phase.number))
    if waiting := _waiting_plans(state, phase):
        plan = startable_plans(waiting)[0]
        return Start(step=StepId(kind=EXECUTE, phase=phase.number, detail=plan.id))
    if state.options.skip_verify:
        return Start(step=StepId(kind=COMPLETE, phase=phase.number))
    done = [record for record in state.of(VERIFY, phase.number) if record.completed]
    allowed = _allowance(state, phase).verifications
    if is_stale(state, phase) or not is_believed(state, phase):
        # The verdict is missing, stale or has an unknown status.
        if len(done) >= max(allowed, len(state.of(PLAN, phase.number)) + SPARE_VERIFICATIONS):
            gap = "VERIFICATION.md does not stay as it was written"
            return _ask_about_gaps(state, phase, done[-1].id, [gap])
        return Start(step=round_of(state, VERIFY, phase.number))
    if phase.verdict == "passed":
        return Start(step=StepId(kind=COMPLETE, phase=phase.number))
    if phase.verdict == "human_needed" or not phase.gaps:
        # An incomplete verification is repeated; a human is asked if that did not help.
        if sum(record.completed for record in done) < max(1, allowed):
            return Start(step=round_of(state, VERIFY, phase.number))
        reasons = "; ".join(done[-1].failed_detectors)
        gap = f"verification is not complete: {reasons}" if reasons else "verification is not complete"
        return _ask_about_gaps(state, phase, done[-1].id, [gap])
    return _close_gaps(state, phase, done)


def _waiting_plans(state: State, phase: PhaseSnapshot) -> list[PlanSnapshot]:
    """Return the plans that can be executed now, in wave order.

    What builds on a plan with a deferred task waits for a verification, and for plans that close its gaps.
    """
    left = [plan for plan in phase.plans if not is_executed(state, phase, plan)]
    left.sort(key=lambda plan: (plan.wave, plan.id))
    lacking = {record.id.detail for record in state.of(EXECUTE, phase.number) if record.deferred}
    held = lacking = lacking - {plan.id for plan in left}
    for _ in left:
        on_held = (plan for plan in left if not held.isdisjoint(plan.depends_on))
        held = held | {plan.id for plan in on_held if not plan.gap_closure}
    free = [plan for plan in left if plan.id not in held]
    is_verified_since = lacking <= {*state.verified.get(phase.number, ())}
    has_gaps = bool(phase.gaps) and not is_stale(state, phase)
    waits = not free and not state.options.skip_verify and (not is_verified_since or has_gaps)
    return free if free or waits else left


def _close_gaps(state: State, phase: PhaseSnapshot, done: Sequence[StepRecord]) -> Start | Escalate:
    """Plan the gaps, unless no rounds are left or the last one closed no gap; *done* are verifications."""
    plan = round_of(state, PLAN, phase.number)
    rounds = len(gap_rounds(state, phase.number))
    under_way = any(r.for_gaps and not r.completed for r in state.of(PLAN, phase.number))
    allowed = under_way or rounds < _allowance(state, phase).rounds
    last = [set(record.gaps) for record in done[-2:]]
    # Without gaps before, it was another step that found those which were planned for.
    closed_none = len(last) == 2 and bool(last[0]) and last[0] <= last[1]
    exhausted = rounds >= state.options.gap_rounds or (rounds > 0 and closed_none)
    if exhausted and not allowed:
        step = done[-1].id if done else round_of(state, VERIFY, phase.number)
        return _ask_about_gaps(state, phase, step, phase.gaps)
    # Round 0 is the plan step of the phase itself, even if other tools made the plans.
    return Start(step=evolve(plan, round=max(plan.round, 1)), for_gaps=True)


def _ask_about_gaps(state: State, phase: PhaseSnapshot, step: StepId, gaps: Sequence[str]) -> Escalate:
    # The allowance grows with each "Retry", so the next question is a new one.
    generation = _allowance(state, phase).verifications
    return Escalate(step=str(step), cause="gaps", gaps=tuple(gaps), generation=generation)


def _allowance(state: State, phase: PhaseSnapshot) -> Allowance:
    return state.allowances.get(phase.number, Allowance())


# The end


def _end_aborted(state: State) -> End:
    record = state.steps[state.aborted]
    reason = f"aborted at {state.aborted}"
    if record.id.kind == VERIFY and not record.failure:
        return End(outcome="gaps", exit=ExitCode.GAPS, reason=reason)
    return End(outcome="failed", exit=exit_of(record.failure), reason=reason)


def _end_asked(state: State) -> End:
    """Return how a process ends that only did what the user asked for."""
    names = ", ".join(state.answered) or "nothing to do"
    records = [state.steps[step] for step in state.answered if step in state.steps]
    gaps = [gap for record in records for gap in record.gaps]
    failed = [name for record in records for name in record.failed_detectors]
    if gaps or failed:
        # What a detector that failed would have found is not known.
        counts = ((gaps, "gap"), (failed, "failed detector"))
        found = " and ".join(counted(len(some), what) for some, what in counts if some)
        return End(outcome="gaps", exit=ExitCode.GAPS, reason=f"{names}: {found}")
    if skipped := [str(record.id) for record in records if record.status == "skipped"]:
        return End(outcome="gaps", exit=ExitCode.GAPS, reason=f"skipped, not done: {', '.join(skipped)}")
    return End(outcome="done", exit=ExitCode.OK, reason=f"{names} complete" if state.answered else names)


def exit_of(failure: Failure | None) -> int:
    """Return the exit code of a run that ends because the question about *failure* is not answered."""
    if failure is None:
        return ExitCode.FAILED
    return exit_code_of_kind(failure.kind, limited=failure.until is not None)


def _end(state: State) -> End:
    """Return how a run ends that has no step due."""
    phases = state.phases
    closed = [r.id.detail for r in state.steps.values() if r.id.kind == CLOSE and r.completed]
    if not phases and closed:
        return End(outcome="done", exit=ExitCode.OK, reason=f"milestone {closed[-1]} complete")
    if state.seen and not phases:
        return End(outcome="blocked", exit=ExitCode.USAGE, reason=state.seen.idle)
    wanted = [phase for phase in phases if in_range(state, phase.number)]
    if skipped := [phase.number for phase in wanted if phase.number in state.skipped]:
        reason = f"skipped, not done: phase {', '.join(skipped)}"
        return End(outcome="gaps", exit=ExitCode.GAPS, reason=reason)
    if left := [phase for phase in wanted if standing(state, phase) == "open"]:
        missing = {phase.number: ", ".join(missing_dependencies(state, phase)) for phase in left}
        needs = [f"phase {number} depends on {others}" for number, others in missing.items()]
        reason = f"{'; '.join(needs)}: not complete, and not in range or in a cycle"
        return End(outcome="blocked", exit=ExitCode.USAGE, reason=reason)
    if not wanted:
        reason = f"no phase is in the requested range; the roadmap has {', '.join(p.number for p in phases)}"
        return End(outcome="blocked", exit=ExitCode.USAGE, reason=reason)
    if found := _milestone_gaps(state):
        step, gaps = found
        return End(outcome="gaps", exit=ExitCode.GAPS, reason=f"{step} found {counted(len(gaps), 'gap')}")
    unverified = " (verification skipped)" if state.options.skip_verify else ""
    number = len(assumed_checks(state))
    assumed = f" ({counted(number, 'check')} assumed, nobody looked)" if number else ""
    reason = f"{counted(len(wanted), 'phase')} complete{unverified}{assumed}"
    return End(outcome="done", exit=ExitCode.OK, reason=reason)


def _milestone_gaps(state: State) -> tuple[str, tuple[str, ...]] | None:
    """Return the gaps that a step for the milestone found when it was done last, with the step's id."""
    milestone = state.seen.milestone if state.seen else ""
    last: dict[str, StepRecord] = {}
    for record in state.steps.values():
        same = not record.id.phase and record.id.detail == milestone and record.completed
        if same and record.id.round >= (last[record.id.kind].id.round if record.id.kind in last else 0):
            last[record.id.kind] = record
    kept_open = last.get(CLOSE)
    ended = [record.ended_at for record in state.steps.values() if record.completed and record.ended_at]
    if kept_open and kept_open.ended_at and any(at > kept_open.ended_at for at in ended):
        # What keeps a milestone open may be done since; what is not is known to the other steps.
        del last[CLOSE]
    return next(((str(record.id), record.gaps) for record in last.values() if record.gaps), None)


# What else the interfaces ask


def startable_plans(waiting: Sequence[PlanSnapshot]) -> list[PlanSnapshot]:
    """Return those of the plans *waiting* for execution that depend on none of the others."""
    names = {plan.id for plan in waiting}
    free = [plan for plan in waiting if not names & set(plan.depends_on)]
    # Plans that depend on each other in a cycle are executed anyway, in wave order.
    return free or list(waiting[:1])


def side_by_side(waiting: Sequence[PlanSnapshot]) -> list[PlanSnapshot]:
    """Return those of the plans *waiting* for execution that can be executed at the same time.

    A plan that says only its wave comes after those of earlier waves.
    """
    first = min((plan.wave for plan in waiting), default=0)
    return [plan for plan in startable_plans(waiting) if plan.depends_on or plan.wave <= first]


def starts_milestone(state: State) -> bool:
    """Whether the run was started for another milestone of its project, whose phases it has yet to make."""
    record = state.steps.get(str(StepId(kind=INIT)))
    return bool(state.milestone) and (record is None or record.status not in ("completed", "skipped"))


def round_of(state: State, kind: str, phase: str) -> StepId:
    """Return the phase's step of *kind* that is in progress, or that of its next round."""
    records = state.of(kind, phase)
    running = [record.id.round for record in records if record.status not in ("completed", "skipped")]
    finished = [record.id.round + 1 for record in records]
    return StepId(kind=kind, phase=phase, round=min(running) if running else max([0, *finished]))


def is_initializing(state: State) -> bool:
    """Whether the run has begun its init step and not completed it: some of the files may exist already."""
    record = state.steps.get(str(StepId(kind=INIT)))
    return record is not None and record.status not in ("completed", "skipped")
