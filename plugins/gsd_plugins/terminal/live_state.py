"""What the live view shows of a run, derived from its events and from the roadmap on disk.

Nothing here assumes that one step runs at a time: each running step has its own record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import attrs

from gsd_core import Event, PhaseView

from .activity import activity_text

PhaseState: TypeAlias = Literal["pending", "in_progress", "completed", "skipped"]
StepState: TypeAlias = Literal["pending", "in_progress", "completed"]
STEPS = ("discuss", "plan", "execute", "verify")
"""The steps of a phase on the board; others, such as the research, are shown while they run."""
_PHASE_STATES: Mapping[str, PhaseState] = {
    "phase.started": "in_progress",
    "phase.completed": "completed",
    "phase.skipped": "skipped",
}


@attrs.frozen(kw_only=True)
class PlanRow:
    """A plan on disk: the names of its tasks, and whether it is executed."""

    tasks: tuple[str, ...] = ()
    done: bool = False


@attrs.frozen(kw_only=True)
class PhaseRow:
    """One phase of the roadmap; *finished* are those of its :data:`STEPS` whose results are on disk."""

    number: str
    name: str = ""
    state: PhaseState = "pending"
    finished: frozenset[str] = frozenset()
    plans: Mapping[str, PlanRow] = attrs.field(factory=dict[str, PlanRow])


@attrs.frozen(kw_only=True)
class StepRow:
    """A step that runs or waits since *since*; *activity* is what its agent does, in words."""

    id: str
    kind: str = ""
    phase: str = ""
    plan: str = ""
    since: datetime | None = None
    activity: str = ""


@attrs.frozen(kw_only=True)
class LiveState:
    """What the view shows of a run.

    *command* is how the user calls gsd. *steps* are those in progress, the one that began first at the top.
    *tasks* are the finished tasks by step. *opened* is when the process began that works now, ``None`` if
    none does, and *worked* how long all processes before it worked. *dollars* is ``None`` while no cost is
    known, *cap* the most that the run may cost. *questions* are the open ones, their texts by id.
    *ended* says how the last process ended.
    """

    command: str = "gsd"
    phases: Mapping[str, PhaseRow] = attrs.field(factory=dict[str, PhaseRow])
    steps: Mapping[str, StepRow] = attrs.field(factory=dict[str, StepRow])
    tasks: Mapping[str, frozenset[str]] = attrs.field(factory=dict[str, frozenset[str]])
    opened: datetime | None = None
    worked: timedelta = timedelta(0)
    last: datetime | None = None
    model: str = ""
    dollars: Decimal | None = None
    cap: Decimal | None = None
    tokens: int = 0
    calls: int = 0
    questions: Mapping[str, str] = attrs.field(factory=dict[str, str])
    ended: str = ""

    def elapsed(self, now: datetime) -> timedelta:
        """Return how long the run has worked, in all its processes; pauses between them do not count."""
        return self.worked + (max(now - self.opened, timedelta(0)) if self.opened else timedelta(0))

    def step_state(self, phase: PhaseRow, kind: str) -> StepState:
        """Return how far the steps of that *kind* are in *phase*."""
        if any(step.phase == phase.number and step.kind == kind for step in self.steps.values()):
            return "in_progress"
        return "completed" if kind in phase.finished or phase.state == "completed" else "pending"

    def task_position(self, step: StepRow) -> tuple[int, int, str]:
        """Return the number of the task that *step* works on, how many there are, and its name.

        The number is larger than the last one's if all are done; without tasks, both are 0.
        """
        row = self.phases.get(step.phase)
        plan = row.plans.get(step.plan) if row else None
        if plan is None or not plan.tasks:
            return 0, 0, ""
        number, count = len(self.tasks.get(step.id, ())) + 1, len(plan.tasks)
        return number, count, plan.tasks[number - 1] if number <= count else ""


def after_event(state: LiveState, event: Event) -> LiveState:
    """Return the state after *event*."""
    return attrs.evolve(_after(state, event), last=event.at)


def _after(state: LiveState, event: Event) -> LiveState:
    data = event.data
    match event.name:
        case "run.started":
            # Of the run before it only the roadmap counts.
            return LiveState(command=state.command, cap=state.cap, phases=state.phases)
        case "run.opened":
            return _opened(state, event)
        case "run.closed":
            ended = f"{data.get('outcome') or ''}: {data.get('reason') or ''}".strip(": ")
            worked = state.elapsed(event.at)
            return attrs.evolve(state, steps={}, opened=None, worked=worked, ended=ended)
        case "phase.started" | "phase.completed" | "phase.skipped":
            number = str(data["number"])
            known = state.phases.get(number, PhaseRow(number=number))
            name = str(data.get("name") or known.name)
            row = attrs.evolve(known, name=name, state=_PHASE_STATES[event.name])
            return attrs.evolve(state, phases={**state.phases, number: row})
        case "step.started":
            kind, _, phase, plan = (str(data.get(key) or "") for key in ("kind", "attempt", "phase", "plan"))
            step = StepRow(id=event.step, kind=kind, phase=phase, plan=plan, since=event.at)
            return attrs.evolve(state, steps={**state.steps, event.step: step})
        case "step.waiting":
            # The view counts from now on, and the line above it says until when.
            return _with_activity(state, event, f"waiting: {data.get('why') or ''}", since=event.at)
        case "step.returned" if data.get("merges"):
            return _with_activity(state, event, "its commits are being merged")
        case "step.completed" | "step.failed" | "step.skipped":
            left = {key: step for key, step in state.steps.items() if key != event.step}
            return attrs.evolve(state, steps=left)
        case "task.committed":
            done = state.tasks.get(event.step, frozenset()) | {str(data.get("task"))}
            return attrs.evolve(state, tasks={**state.tasks, event.step: done})
        case "agent.activity":
            if data.get("kind") == "start" and data.get("text"):
                state = attrs.evolve(state, model=str(data["text"]))
            # What the agent does stays until it does something else: the result is for the agent.
            text = activity_text(event) if data.get("kind") != "result" else ""
            return _with_activity(state, event, text) if text else state
        case "cost.changed":
            dollars = _sum(state.dollars, data.get("dollars"))
            tokens = state.tokens + int(data.get("tokens") or 0)
            calls = state.calls + int(data.get("calls") or 0)
            return attrs.evolve(state, dollars=dollars, tokens=tokens, calls=calls)
        case "question.asked":
            # With one step in progress, there is no doubt who asks.
            who = f"{event.step}: " if len(state.steps) > 1 else ""
            questions = data["inquiry"]["questions"]
            asked = {str(q["id"]): f"{who}{q.get('header') or q['text']}" for q in questions}
            return attrs.evolve(state, questions={**state.questions, **asked})
        case "question.answered":
            return _without_questions(state, [data["question"]])
        case "question.withdrawn":
            return _without_questions(state, data["questions"])
        case _:
            return state


def _opened(state: LiveState, event: Event) -> LiveState:
    """A process begins; with *so_far*, it says itself what the processes before it did."""
    so_far: Mapping[str, Any] = event.data.get("so_far") or {}
    # A process that was killed has not closed the run: it worked until the last that is known of it.
    worked = state.elapsed(state.last or event.at)
    state = attrs.evolve(state, opened=event.at, worked=worked, steps={}, ended="")
    if not so_far:
        return state
    finished: Mapping[str, Iterable[str]] = so_far.get("tasks") or {}
    tasks = {step: frozenset(done) for step, done in finished.items()}
    return attrs.evolve(
        state,
        worked=timedelta(seconds=float(so_far.get("seconds") or 0)),
        dollars=_sum(None, so_far.get("dollars")),
        tokens=int(so_far.get("tokens") or 0),
        calls=int(so_far.get("calls") or 0),
        tasks=tasks,
    )


def _with_activity(state: LiveState, event: Event, text: str, *, since: datetime | None = None) -> LiveState:
    step = state.steps.get(event.step)
    if step is None:
        return state  # it has ended: agents report a little late
    step = attrs.evolve(step, activity=text, since=since or step.since)
    return attrs.evolve(state, steps={**state.steps, event.step: step})


def _without_questions(state: LiveState, ids: Iterable[str]) -> LiveState:
    gone = set(ids)
    left = {key: text for key, text in state.questions.items() if key not in gone}
    return attrs.evolve(state, questions=left)


def _sum(total: Decimal | None, more: object) -> Decimal | None:
    return total if more is None else (total or Decimal(0)) + Decimal(str(more))


def with_roadmap(state: LiveState, phases: Iterable[PhaseView]) -> LiveState:
    """Return the state with the phases of the roadmap; states known from events take precedence."""
    rows = {phase.number: _phase_row(phase, state.phases.get(phase.number)) for phase in phases}
    # An unreadable roadmap has no phases: what is known from events stays.
    return attrs.evolve(state, phases=rows) if rows else state


def _phase_row(phase: PhaseView, known: PhaseRow | None) -> PhaseRow:
    plans = {
        plan.id: PlanRow(tasks=tuple(task.name for task in plan.tasks), done=bool(plan.summary))
        for plan in phase.plans
    }
    planned = bool(plans) and set(phase.listed) <= set(plans)
    executed = planned and all(plan.done for plan in plans.values())
    verified = executed and phase.verdict is not None and phase.verdict.status == "passed"
    on_disk = {"discuss": bool(phase.context), "plan": planned, "execute": executed, "verify": verified}
    begun: PhaseState = "in_progress" if phase.context or plans else "pending"
    state: PhaseState = "completed" if phase.ticked else begun
    if known and known.state != "pending":
        state = known.state
    finished = frozenset(name for name, done in on_disk.items() if done)
    return PhaseRow(number=phase.number, name=phase.name, state=state, finished=finished, plans=plans)
