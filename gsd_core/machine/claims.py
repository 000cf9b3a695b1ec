"""What is believed: the run's own facts always, and the claims of the planning files within limits.

Anybody can set a check mark or write a file that says *passed*: another tool, a person, or a script of an
agent. So completion is a fact of this run, and the files are claims:

- What was there when the run was opened is believed: a project that was started with other tools, a
  teammate's phases, a run whose journal is lost. The last line of the run counts such phases.
- A summary or a verdict that appears while the run works does not count: the step is done again.
- A check mark that appears while the run works does not count either: a process that an agent left behind
  may have set it. One that appears between two processes of the run is a person's decision to leave the
  phase as it is: it is a claim.
- A check mark over a plan that is on disk and not executed does not count: whoever planned more did not see
  the end of the phase. Only if it appears between two processes, a person decided to leave the plan.
- Gaps are always believed, with or without a check mark.
"""

from __future__ import annotations

from typing import Literal

from gsd_core.model.ids import COMPLETE, EXECUTE, VERIFY, StepId

from .state import Claims, PhaseSnapshot, PlanSnapshot, Snapshot, State


def standing(state: State, phase: PhaseSnapshot) -> Literal["done", "claimed", "open"]:
    """Return whether a phase is complete: done by this run, complete according to its files, or open.

    A passed verdict that covers all plans is believed with or without a check mark. A check mark without
    one is believed too, unless the user asked for the phase although it had one.
    """
    if phase.verdict == "gaps_found" and not state.options.skip_verify:
        return "open"
    completed = any(record.completed for record in state.of(COMPLETE, phase.number))
    has_more = any(map(is_open, phase.plans)) or (is_stale(state, phase) and not state.options.skip_verify)
    if phase.ticked and completed and not has_more:
        return "done"
    executed = phase.plans and all(is_executed(state, phase, plan) for plan in phase.plans)
    if executed and phase.verdict == "passed" and is_believed(state, phase) and not is_stale(state, phase):
        return "done" if is_verified(state, phase) else "claimed"
    asked_for = phase.number in (state.options.phases or ())
    was_ticked = state.claims is None or phase.number in state.claims.ticked
    return "claimed" if phase.ticked and was_ticked and not asked_for else "open"


def is_open(plan: PlanSnapshot) -> bool:
    """Whether a plan is on disk and has no summary."""
    return plan.on_disk and not plan.summary


def dependents(state: State, phase: str) -> tuple[str, ...]:
    """Return the phases that cannot be done without *phase*, directly or through others.

    One that is complete is not among them, nor what depends only on it.
    """
    found = [phase]
    # Each pass adds the phases that depend directly on those found so far.
    for _ in state.phases:
        left = [p for p in state.phases if p.number not in found and set(p.depends_on) & set(found)]
        found += [p.number for p in left if standing(state, p) == "open"]
    return tuple(p.number for p in state.phases if p.number in found[1:])


def is_executed(state: State, phase: PhaseSnapshot, plan: PlanSnapshot) -> bool:
    """Whether a plan has a summary that this run wrote, or that was there when it was opened."""
    record = state.steps.get(str(StepId(kind=EXECUTE, phase=phase.number, detail=plan.id)))
    own = record is not None and record.completed > 0
    return plan.summary and (own or state.claims is None or plan.id in state.claims.summaries)


def is_verified(state: State, phase: PhaseSnapshot) -> bool:
    """Whether the last verification by this run found no gap."""
    done = [record for record in state.of(VERIFY, phase.number) if record.completed]
    return bool(done) and done[-1].passed


def is_believed(state: State, phase: PhaseSnapshot) -> bool:
    """Whether the verdict in VERIFICATION.md counts; one that says *passed* needs a verification that did."""
    if phase.verdict != "passed":
        return phase.verdict in ("gaps_found", "human_needed")
    return state.claims is None or phase.number in state.claims.passed or is_verified(state, phase)


def is_stale(state: State, phase: PhaseSnapshot) -> bool:
    """Whether a plan was executed after the verdict.

    The record of a run is preferred to the order of commits in the snapshot: applying one result may
    commit a summary and a verdict together.
    """
    covered = state.verified.get(phase.number)
    if covered is None:
        return phase.stale
    return any(plan.summary and plan.id not in covered for plan in phase.plans)


def claims_of(snapshot: Snapshot) -> Claims:
    """Return everything that planning files claim."""
    phases = snapshot.phases
    return Claims(
        ticked=tuple(phase.number for phase in phases if phase.ticked),
        passed=tuple(phase.number for phase in phases if phase.verdict == "passed"),
        summaries=tuple(plan.id for phase in phases for plan in phase.plans if plan.summary),
    )


def claims_at_opening(state: State, now: Snapshot, *, interrupted: bool) -> Claims:
    """Return the claims that a run believes when it is opened with the planning files as they are *now*.

    A new run believes all of them. A resumed run believes those from before and those that appeared since
    it last observed the files, because a person or their tools made them between two processes. If the
    last process was *interrupted*, that is killed in an attempt, the new ones may be the agent's and do not
    count.
    """
    found = claims_of(now)
    known = {plan.id for phase in state.phases for plan in phase.plans}
    undone = {p.number for p in now.phases if any(is_open(one) and one.id not in known for one in p.plans)}
    seen = claims_of(state.seen or now)
    before = state.claims or seen
    is_new = not state.run or state.seen is None

    def believed(now: tuple[str, ...], before: tuple[str, ...], seen: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(one for one in now if is_new or one in before or (one not in seen and not interrupted))

    ticked = believed(found.ticked, before.ticked, seen.ticked)
    return Claims(
        ticked=tuple(number for number in ticked if number not in undone),
        passed=believed(found.passed, before.passed, seen.passed),
        summaries=believed(found.summaries, before.summaries, seen.summaries),
    )


def unverified(state: State) -> tuple[str, ...]:
    """Return the phases in range that are complete by their files only."""
    numbers = state.options.phases
    wanted = [phase for phase in state.phases if numbers is None or phase.number in numbers]
    complete = [p for p in wanted if p.number not in state.skipped and standing(state, p) != "open"]
    return tuple(phase.number for phase in complete if not is_verified(state, phase))
