"""Why nothing happens: for each thing that is neither running nor done, what it waits for, and each way out.

The machine decides what is due, the graph what plans wait for, and the checks of a start what is in its way;
here it is only put into words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
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
from gsd_core.machine.history import History, budget_of
from gsd_core.machine.state import PhaseSnapshot, Snapshot, State
from gsd_core.model.ids import EXECUTE, PLAN, VERIFY, StepId
from gsd_core.model.question import Asked, answer_commands
from gsd_core.planning.model import Planning
from gsd_core.sanitize import first_line
from gsd_core.serializer import Serializer

from .next import MAX_QUESTION, Added, command_for, commands_after, describe_due, state_now
from .plan_graph import Node, plan_graph
from .status import NO_ANSWERS, active_steps, open_questions

Cause: TypeAlias = Literal[
    "question", "timer", "failure", "plans", "files", "slot", "phases", "turn", "run", "process", "obstacle"
]
PROJECT = "project"
"""What waits if nothing can begin at all."""


@attrs.frozen(kw_only=True)
class Way:
    """A way out: a *command* to paste, and what it is *about*; without a command, that says what to do."""

    command: str = ""
    about: str = ""


@attrs.frozen(kw_only=True)
class Waiting:
    """A thing that waits: a step by its id, ``phase 2``, or ``project``.

    *waits_for* are the things that come first, if the *cause* is one of them. *since* is ``None`` if that is
    not recorded; *until* is the time at which it continues by itself. Without *ways*, so it does as well.
    """

    what: str
    phase: str = ""
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


def why(
    state: State,
    history: History,
    planning: Planning,
    snapshot: Snapshot,
    *,
    holder: Owner | None = None,
    pending_answers: Mapping[str, str] = NO_ANSWERS,
    capacity: int = 1,
    more_slots: str = "",
    obstacles: Iterable[tuple[str, str]] = (),
    gsd: str = "gsd",
    added: Added = (),
) -> Why:
    """Return what waits in a project whose last run has *state*, and whose files are *planning* now.

    *holder* is the process that runs in the project, *capacity* how many plans it executes side by side, and
    *more_slots* the flags for more. *obstacles* are what refuses the next start, each with its hint; *gsd* is
    how to call gsd for the project, *added* are the kinds of steps that plugins add.
    """
    works = holder is not None and state.closed is None
    now = state_now(state, snapshot, works=works)
    live = [str(one.id) for one in active_steps(state) if works and one.status == "running"]
    asked = [one for one in open_questions(state) if one.question.id not in pending_answers]
    asking = {one.step for one in asked} & {*live}
    running = [step for step in live if step not in asking]
    inquiries = [one.inquiry for one in state.inquiries.values() if one.open and one.inquiry.step in asking]
    items = [
        *(AskAgain(step=one.step, inquiry=one) for one in inquiries),
        *(one for one in due(now, live=live, capacity=capacity) if _name(one) not in live),
    ]
    finder = _Finder(
        before=state,
        now=now,
        history=history,
        planning=planning,
        works=works,
        items=items,
        running=running,
        asked=asked,
        is_full=works and len(live) >= capacity,
        more_slots=more_slots,
        gsd=gsd,
        added=added,
    )
    graph = plan_graph(planning.phases, state, is_running=works)
    found = {one.what: one for one in finder.find(graph.nodes)}
    end = next((one for one in items if isinstance(one, End)), None)
    first = [*finder.about_project(holder, end)]
    if not works and (found or first):
        about = [(reason, (Way(about=hint),) if hint else ()) for reason, hint in obstacles]
        first += [Waiting(what=PROJECT, cause="obstacle", reason=one, ways=ways) for one, ways in about]
    with_ways = [attrs.evolve(one, ways=_ways(one.what, found, ())) for one in found.values()]
    done = [_step_of(node) for node in graph.nodes if node.state == "done"]
    done += [name for name, record in now.steps.items() if record.status in ("completed", "skipped")]
    return Why(
        waiting=(*first, *with_ways),
        running=tuple(running),
        done=tuple(dict.fromkeys(one for one in done if one not in {*found, *running})),
        nothing="" if first or found else end.reason if end else "all that is due is running",
    )


def _name(work: Due) -> str:
    return "" if isinstance(work, End) else str(work.step)


def _step_of(node: Node) -> str:
    """Return the step that executes the plan of *node*; a phase without plans stands for itself."""
    is_plan = node.id != node.phase
    return str(StepId(kind=EXECUTE, phase=node.phase, detail=node.id)) if is_plan else f"phase {node.phase}"


def _ways(what: str, found: Mapping[str, Waiting], seen: Sequence[str]) -> tuple[Way, ...]:
    """Return the ways out of *what*: its own, or else those of what it waits for."""
    about = (
        [found[what]] if what in found else [one for one in found.values() if f"phase {one.phase}" == what]
    )
    ways: list[Way] = []
    for one in about:
        ways += one.ways
        if not one.ways and one.what not in seen:
            ways += [way for name in one.waits_for for way in _ways(name, found, (*seen, one.what))]
    return tuple(dict.fromkeys(ways))


@attrs.frozen(kw_only=True)
class _Finder:
    """Puts into words what waits; see :func:`why`. *asked* are the questions that nobody has answered."""

    before: State
    now: State
    history: History
    planning: Planning
    works: bool
    items: Sequence[Due]
    running: Sequence[str]
    asked: Sequence[Asked]
    is_full: bool
    more_slots: str
    gsd: str
    added: Added

    def about_project(self, holder: Owner | None, end: End | None) -> Iterator[Waiting]:
        """Yield why nothing at all happens, if so."""
        state, ways = self.before, list[Way]()
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
            commands = commands_after(outcome, self.now.seen, state.reason, budget_of(self.history))
            reason = f"{outcome}: {state.reason}" if state.reason else "interrupted: its process is gone"
            if not (state.run and state.unfinished):
                reason, commands = "no run is in progress", [command_for(self.before, self.items[0])]
            ways = [Way(command=one.replace("gsd", self.gsd, 1)) for one in commands]
            yield Waiting(what=PROJECT, cause="run", reason=reason, since=state.last_at, ways=tuple(ways))

    def find(self, nodes: Sequence[Node]) -> Iterator[Waiting]:
        """Yield the steps that are due, then the plans and phases that are not yet."""
        by_step = {_step_of(node): node for node in nodes}
        for one in self.items:
            if not isinstance(one, End):
                yield self._due(one, by_step.get(str(one.step)))
        begun = {StepId.parse(name).phase for name in (*self.running, *map(_name, self.items)) if name}
        for phase in self.now.seen.phases if self.now.seen else ():
            if in_range(self.now, phase.number) and phase.number not in self.now.skipped:
                own = [node for node in nodes if node.phase == phase.number and node.state != "done"]
                yield from self._later(phase, own, is_begun=phase.number in begun)

    def _due(self, work: Due, node: Node | None) -> Waiting:
        """Return what a step waits for that is due: a person, a time, or its turn."""
        step = _name(work)
        number = StepId.parse(step).phase
        record = self.before.steps.get(step)
        resume = Way(command=command_for(self.before, work, self.gsd))
        asked = [one for one in self.asked if one.step == step]
        about = describe_due(work, self.now, self.planning, before=self.before, added=self.added)
        failed = [error.at for error in self.history.errors if error.step == step]
        since = failed[-1] if failed else self._planned_at(number)
        waiting = Waiting(what=step, phase=number, cause="run", reason=about, since=since, ways=(resume,))
        if self.works:
            waiting = attrs.evolve(
                waiting,
                cause="turn",
                reason="what is running is done first" if self.running else "it begins next",
                waits_for=tuple(self.running),
                ways=(),
            )
        if asked:
            commands = [found for one in asked for found in answer_commands(one.question, self.gsd)]
            ways = [
                Way(command=command, about=first_line(label, MAX_QUESTION)) for command, label in commands
            ]
            ways += [] if self.works else [attrs.evolve(resume, about="afterwards")]
            reason = f"it waits for an answer: {first_line(asked[0].question.text, MAX_QUESTION)}"
            return attrs.evolve(waiting, cause="question", reason=reason, since=asked[0].at, ways=tuple(ways))
        if isinstance(work, Wait):
            message = f": {record.failure.message}" if record and record.failure else ""
            return attrs.evolve(
                waiting, cause="timer", reason=f"it is tried again later{message}", until=work.until
            )
        if isinstance(work, Escalate) or (record and record.failure):
            return attrs.evolve(waiting, cause="failure", reason=about)
        return self._of_plan(waiting, node) if node and isinstance(work, Start) else waiting

    def _of_plan(self, waiting: Waiting, node: Node) -> Waiting:
        """Return what the plan of *node* waits for in particular, if anything: plans, files, a slot."""
        names = tuple(f"{node.phase}/{EXECUTE}/{name}" for name in node.waits_for)
        if not {*node.waits_for}.isdisjoint(node.depends_on):
            reason = "it depends on plans that are not done"
            return attrs.evolve(waiting, cause="plans", reason=reason, waits_for=names)
        if names:
            reason = "a plan that is running changes the same files"
            return attrs.evolve(waiting, cause="files", reason=reason, waits_for=names)
        if self.is_full:
            reason = "all slots are taken (see --max-parallel)"
            way = Way(command=f"{self.gsd} resume {self.more_slots}", about=f"after {self.gsd} pause")
            return attrs.evolve(waiting, cause="slot", reason=reason, ways=(way,))
        return waiting

    def _later(self, phase: PhaseSnapshot, nodes: Sequence[Node], *, is_begun: bool) -> Iterator[Waiting]:
        """Yield the plans of *phase* that are not due yet, or the phase itself, and its verification."""
        known = {*self.running, *map(_name, self.items)}
        since = self._planned_at(phase.number)
        first = tuple(self.running) or tuple(filter(None, map(_name, self.items[:1])))
        if missing := missing_dependencies(self.now, phase):
            about = Waiting(
                what="",
                cause="phases",
                reason="it depends on phases that are not complete",
                waits_for=tuple(f"phase {one}" for one in missing),
            )
        else:
            about = Waiting(what="", cause="turn", reason="others come first", waits_for=first)
        for node in nodes:
            step = _step_of(node)
            if step in known or (node.id == phase.number and is_begun):
                continue
            one = attrs.evolve(about, what=step, phase=phase.number, since=since)
            yield self._of_plan(one, node) if is_begun and not missing else one
        verify = str(StepId(kind=VERIFY, phase=phase.number))
        left = tuple(_step_of(node) for node in nodes if node.id != phase.number)
        if left and standing(self.now, phase) == "open" and not self.now.options.skip_verify:
            reason = "it comes after the phase's plans"
            yield Waiting(
                what=verify, phase=phase.number, cause="plans", reason=reason, waits_for=left, since=since
            )

    def _planned_at(self, phase: str) -> datetime | None:
        """Return when the phase's plans were there."""
        return max((one.ended_at for one in self.now.of(PLAN, phase) if one.ended_at), default=None)


WHY = Serializer(
    Why,
    "waiting running done nothing?",
    waiting=Serializer(Waiting, "what phase? cause reason waits_for since until ways"),
)
