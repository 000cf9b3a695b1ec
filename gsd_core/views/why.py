"""Why nothing happens: for each thing that is neither running nor done, what it waits for, and each way out.

The machine decides what is due, the graph what plans wait for, and the checks of a start what is in its way;
here it is only put into words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Literal, TypeAlias

import attrs

from gsd_core.journal.lock import Owner
from gsd_core.machine.claims import standing
from gsd_core.machine.due import (
    AskAgain,
    Due,
    End,
    Escalate,
    Start,
    Wait,
    due,
    in_range,
    missing_dependencies,
)
from gsd_core.machine.history import History, limits_of
from gsd_core.machine.state import PhaseSnapshot, Snapshot, State
from gsd_core.model.ids import EXECUTE, PLAN, VERIFY, StepId
from gsd_core.model.question import Asked, answer_commands
from gsd_core.planning.model import Planning
from gsd_core.sanitize import first_line
from gsd_core.serializer import Serializer

from .next import MAX_QUESTION, Added, command_for, commands_after, describe_due, phase_command, state_now
from .plan_graph import Node, plan_graph
from .status import NO_ANSWERS, active_steps, open_questions

Cause: TypeAlias = Literal[
    "question",
    "timer",
    "failure",
    "plans",
    "files",
    "slot",
    "phases",
    "range",
    "turn",
    "run",
    "process",
    "obstacle",
]
PROJECT = "project"
"""What waits if nothing can begin at all."""
REASONS: Mapping[Cause, str] = {
    "plans": "it depends on plans that are not done",
    "files": "a plan that is running changes the same files",
    "slot": "all slots are taken (see --max-parallel)",
    "phases": "it depends on phases that are not complete",
    "turn": "others come first",
}


@attrs.frozen(kw_only=True)
class Way:
    """A way out: a *command* to paste, and what it is *about*; without a command, that says what to do."""

    command: str = ""
    about: str = ""


@attrs.frozen(kw_only=True)
class Waiting:
    """A thing that waits: a step by its id, ``phase 2``, ``session s3``, or ``project``.

    *waits_for* are the things that come first, if the *cause* is one of them. *since* is ``None`` if that is
    not recorded; *until* is the time at which it continues by itself. Without *ways*, so it does as well.
    """

    what: str
    cause: Cause
    reason: str
    waits_for: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    ways: tuple[Way, ...] = ()


@attrs.frozen(kw_only=True)
class Why:
    """What is *waiting*, *running* and *done*; if nothing waits, *nothing* says why."""

    waiting: tuple[Waiting, ...]
    running: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    nothing: str = ""


@attrs.frozen(kw_only=True, slots=False)
class Situation:
    """A project whose last run has *state* and *history*, and whose files are *planning* now.

    *holder* is the process that runs in the project, *capacity* how many plans it executes side by side,
    *parallel_phases* whether they may be of several phases, and *more_slots* the flags for more. *obstacles*
    are what refuses the next start, each with its hint; *gsd* is how to call gsd for the project, *added* are
    the kinds of steps that plugins add.
    """

    state: State
    history: History
    planning: Planning
    snapshot: Snapshot
    holder: Owner | None = None
    pending_answers: Mapping[str, str] = NO_ANSWERS
    capacity: int = 1
    parallel_phases: bool = False
    more_slots: str = ""
    obstacles: Iterable[tuple[str, str]] = ()
    gsd: str = "gsd"
    added: Added = ()

    @cached_property
    def works(self) -> bool:
        """Whether a process works on the run."""
        return self.holder is not None and self.state.closed is None

    @cached_property
    def now(self) -> State:
        """The state with the files as they are; without a process, as the next one would have it."""
        return state_now(self.state, self.snapshot, works=self.works)

    @cached_property
    def asked(self) -> Sequence[Asked]:
        """The questions that nobody has answered."""
        return [one for one in open_questions(self.state) if one.question.id not in self.pending_answers]

    @cached_property
    def live(self) -> Sequence[str]:
        """The steps with an agent at work, or one that waits for an answer."""
        active = [str(one.id) for one in active_steps(self.state)] if self.works else []
        return [step for step in active if self.state.steps[step].status == "running"]

    @cached_property
    def running(self) -> Sequence[str]:
        """The steps that are worked on."""
        return [step for step in self.live if step not in {one.step for one in self.asked}]

    @cached_property
    def items(self) -> Sequence[Due]:
        """What is due beside what is running; a question of a live step too."""
        asking = {*self.live} - {*self.running}
        inquiries = [one.inquiry for one in self.state.inquiries.values() if one.open]
        found = due(self.now, live=self.live, capacity=self.capacity, parallel_phases=self.parallel_phases)
        return [
            *(AskAgain(step=one.step, inquiry=one) for one in inquiries if one.step in asking),
            *(one for one in found if _name(one) not in self.live),
        ]

    @cached_property
    def nodes(self) -> Sequence[Node]:
        """The plans, and the phases without plans."""
        return plan_graph(self.planning.phases, self.state, is_running=self.works).nodes

    @cached_property
    def steps(self) -> Mapping[str, str]:
        """By the id of each node, the step that executes it; a phase without plans stands for itself."""
        phases = {one.id: f"phase {one.id}" for one in self.nodes if one.id == one.phase}
        plans = {one.id: str(StepId(kind=EXECUTE, phase=one.phase, detail=one.id)) for one in self.nodes}
        return plans | phases

    def why(self) -> Why:
        """Return what waits for what, and each way out."""
        found = {one.what: one for one in self._find()}
        end = next((one for one in self.items if isinstance(one, End)), None)
        first = [*self._about_project(end)]
        if not self.works and (found or first):
            about = [(reason, (Way(about=hint),) if hint else ()) for reason, hint in self.obstacles]
            first += [Waiting(what=PROJECT, cause="obstacle", reason=one, ways=ways) for one, ways in about]
        with_ways = [attrs.evolve(one, ways=_ways(one.what, found, ())) for one in found.values()]
        done = [self.steps[node.id] for node in self.nodes if node.state == "done"]
        done += [str(one.id) for one in self.now.steps.values() if one.status in ("completed", "skipped")]
        return Why(
            waiting=(*first, *with_ways),
            running=tuple(self.running),
            done=tuple(dict.fromkeys(one for one in done if one not in {*found, *self.running})),
            nothing="" if first or found else end.reason if end else "all that is due is running",
        )

    def _about_project(self, end: End | None) -> Iterator[Waiting]:
        """Yield why nothing at all happens, if so."""
        state, holder, ways = self.state, self.holder, list[Way]()
        if holder and not self.works:
            reason = f"process {holder.pid} on {holder.host} holds the project since {holder.since}"
            ways = [Way(command=f"{self.gsd} stop", about="ask it to stop, or wait until it ends")]
            yield Waiting(what=PROJECT, cause="process", reason=reason, ways=tuple(ways))
        elif end and end.outcome != "done":
            if end.outcome == "blocked":
                ways = [Way(about="change the roadmap or the range of phases")]
            yield Waiting(what=PROJECT, cause="run", reason=end.reason, since=state.last_at, ways=tuple(ways))
        elif not self.works and not end:
            outcome = state.closed or "interrupted"
            commands = commands_after(outcome, self.now.seen, state.reason, limits_of(self.history))
            reason = f"{outcome}: {state.reason}" if state.reason else "interrupted: its process is gone"
            if not (state.run and state.unfinished):
                reason, commands = "no run is in progress", [command_for(self.state, self.items[0])]
            ways = [Way(command=one.replace("gsd", self.gsd, 1)) for one in commands]
            yield Waiting(what=PROJECT, cause="run", reason=reason, since=state.last_at, ways=tuple(ways))

    def _find(self) -> Iterator[Waiting]:
        """Yield the steps that are due, then the plans and phases that are not yet."""
        by_step = {self.steps[node.id]: node for node in self.nodes}
        for one in self.items:
            if not isinstance(one, End):
                yield self._due(one, by_step.get(str(one.step)))
        begun = {StepId.parse(name).phase for name in (*self.running, *map(_name, self.items)) if name}
        for phase in self.now.seen.phases if self.now.seen else ():
            number, what = phase.number, f"phase {phase.number}"
            if number in self.now.skipped:
                yield Waiting(what=what, cause="range", reason="a person chose to skip it")
            elif in_range(self.now, number):
                own = [node for node in self.nodes if node.phase == number and node.state != "done"]
                yield from self._later(phase, own, is_begun=number in begun)
            elif standing(self.now, phase) == "open":
                ways = (Way(command=phase_command(self.state, number, self.gsd)),)
                reason = "it is not in the range of the run"
                yield Waiting(what=what, cause="range", reason=reason, ways=ways)

    def _due(self, work: Due, node: Node | None) -> Waiting:
        """Return what a step waits for that is due: a person, a time, or its turn."""
        step = _name(work)
        number = StepId.parse(step).phase
        record = self.state.steps.get(step)
        resume = Way(command=command_for(self.state, work, self.gsd))
        asked = [one for one in self.asked if one.step == step]
        why = describe_due(work, self.now, self.planning, before=self.state, added=self.added)
        failed = [error.at for error in self.history.errors if error.step == step]
        since = failed[-1] if failed else self._planned_at(number)
        waiting = Waiting(what=step, cause="run", reason=why, since=since, ways=(resume,))
        if self.works:
            about = REASONS["turn"] if self.running else "it begins next"
            before = tuple(self.running)
            waiting = attrs.evolve(waiting, cause="turn", reason=about, waits_for=before, ways=())
        if asked:
            ways = [
                Way(command=command, about=first_line(label, MAX_QUESTION))
                for one in asked
                for command, label in answer_commands(one.question, self.gsd)
            ]
            ways += [] if self.works else [attrs.evolve(resume, about="afterwards")]
            reason = f"it waits for an answer: {first_line(asked[0].question.text, MAX_QUESTION)}"
            return attrs.evolve(waiting, cause="question", reason=reason, since=asked[0].at, ways=tuple(ways))
        if isinstance(work, Wait):
            message = f": {record.failure.message}" if record and record.failure else ""
            reason = f"it is tried again later{message}"
            return attrs.evolve(waiting, cause="timer", reason=reason, until=work.until)
        if isinstance(work, Escalate) or (record and record.failure):
            return attrs.evolve(waiting, cause="failure", reason=why)
        return self._of_plan(waiting, node) if node and isinstance(work, Start) else waiting

    def _of_plan(self, waiting: Waiting, node: Node) -> Waiting:
        """Return what the plan of *node* waits for in particular, if anything: plans, files, a slot."""
        names, ways = tuple(self.steps[name] for name in node.waits_for), waiting.ways
        if not names and self.works and (queued := self.state.queued.get(waiting.what)):
            about, hints = f"it waits for {queued.why}", (Way(about=queued.hint),) if queued.hint else ()
            since = queued.at
            return attrs.evolve(waiting, cause="slot", reason=about, waits_for=(), since=since, ways=hints)
        if not {*node.waits_for}.isdisjoint(node.depends_on):
            cause: Cause = "plans"
        elif names:
            cause = "files"
        elif self.works and len(self.live) >= self.capacity:
            cause = "slot"
            more = f"{self.gsd} resume {self.more_slots}"
            names, ways = waiting.waits_for, (Way(command=more, about=f"after {self.gsd} pause"),)
        else:
            return waiting
        return attrs.evolve(waiting, cause=cause, reason=REASONS[cause], waits_for=names, ways=ways)

    def _later(self, phase: PhaseSnapshot, nodes: Sequence[Node], *, is_begun: bool) -> Iterator[Waiting]:
        """Yield the plans of *phase* that are not due yet, or the phase itself, and its verification."""
        missing = tuple(f"phase {one}" for one in missing_dependencies(self.now, phase))
        before = missing or tuple(self.running) or tuple(filter(None, map(_name, self.items[:1])))
        cause: Cause = "phases" if missing else "turn"
        since = self._planned_at(phase.number)
        left = [node for node in nodes if node.id != phase.number]
        for node in left if is_begun else nodes:
            step = self.steps[node.id]
            if step not in {*self.running, *map(_name, self.items)}:
                one = Waiting(what=step, cause=cause, reason=REASONS[cause], waits_for=before, since=since)
                yield self._of_plan(one, node) if is_begun and not missing else one
        if left and standing(self.now, phase) == "open" and not self.now.options.skip_verify:
            verify = str(StepId(kind=VERIFY, phase=phase.number))
            plans = tuple(self.steps[node.id] for node in left)
            reason = "it comes after the phase's plans"
            yield Waiting(what=verify, cause="plans", reason=reason, waits_for=plans, since=since)

    def _planned_at(self, phase: str) -> datetime | None:
        """Return when the phase's plans were there."""
        return max((one.ended_at for one in self.now.of(PLAN, phase) if one.ended_at), default=None)


def _name(work: Due) -> str:
    return "" if isinstance(work, End) else str(work.step)


def names_of(what: str) -> tuple[str, ...]:
    """Return how a thing that waits can be called: by its own name, its phase, and its plan."""
    phase, *_, detail = what.removeprefix("phase ").split("/") * 2
    return what, f"phase {phase}", phase, detail


def _ways(what: str, found: Mapping[str, Waiting], seen: Sequence[str]) -> tuple[Way, ...]:
    """Return the ways out of *what*: its own, or else those of what it waits for."""
    ways: list[Way] = []
    for one in [one for one in found.values() if what in names_of(one.what)[:2]]:
        ways += one.ways
        if not one.ways and one.what not in seen:
            ways += [way for name in one.waits_for for way in _ways(name, found, (*seen, one.what))]
    return tuple(dict.fromkeys(ways))


WHY = Serializer(
    Why,
    "waiting running done nothing?",
    waiting=Serializer(Waiting, "what cause reason waits_for since until ways"),
)
