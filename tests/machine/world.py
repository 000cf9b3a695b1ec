"""A small world to walk the machine in: a disk, a journal of facts, and all that may happen next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from attrs import evolve, field, frozen

from gsd_core.journal.codec import structure, unstructure
from gsd_core.machine.due import ApplyResult, AskAgain, Due, End, Escalate, Settle, Start, Wait, due
from gsd_core.machine.fold import fold
from gsd_core.machine.state import PhaseSnapshot, PlanSnapshot, Snapshot, State
from gsd_core.model.ids import StepId, question_id
from gsd_core.model.question import Answer, Inquiry, Option, Question

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


@frozen(kw_only=True)
class Fact:
    """A fact as the journal would give it."""

    seq: int
    run: str = "r"
    epoch: int
    at: datetime
    kind: str
    step: str
    attempt: int
    data: Mapping[str, Any]


@frozen(kw_only=True)
class World:
    """A state, the disk under it, and how it came about."""

    state: State
    disk: Snapshot
    epoch: int = 1
    crashes: int = 0
    trouble: int = 0
    path: tuple[str, ...] = field(default=(), eq=False)

    def tell(self, kind: str, data: Mapping[str, Any], step: str = "", attempt: int = 0) -> World:
        """Return the world after one more fact."""
        fact = Fact(
            seq=self.state.seq + 1,
            epoch=self.epoch,
            at=BEGAN + timedelta(seconds=self.state.seq),
            kind=kind,
            step=step,
            attempt=attempt,
            data=data,
        )
        return evolve(self, state=fold(self.state, [fact], structure))

    def observed(self) -> World:
        """Return the world after the disk was looked at."""
        return self if self.state.seen == self.disk else self.tell("project.observed", unstructure(self.disk))

    def named(self, what: str) -> World:
        """Return the world with *what* noted in its path."""
        return evolve(self, path=(*self.path, what))


def new_world(phases: int = 0, *, depends: bool = True, options: Mapping[str, Any] | None = None) -> World:
    """Return a run that has just been opened on a project with so many empty phases."""
    world = World(state=State(), disk=Snapshot(phases=make_phases(phases, depends=depends)))
    world = world.tell("run.started", {"idea": {"name": "idea", "sha256": "x"}})
    return world.tell("run.opened", {"options": dict(options or {})}).observed()


def make_phases(count: int, *, depends: bool = True) -> tuple[PhaseSnapshot, ...]:
    """Return empty phases, each depending on the one before."""
    return tuple(
        PhaseSnapshot(number=str(n), depends_on=(str(n - 1),) if depends and n > 1 else ())
        for n in range(1, count + 1)
    )


def ways(world: World) -> Iterator[World]:
    """Yield every world that may come next."""
    item = due(world.state)[0]
    match item:
        case ApplyResult():
            yield landed(world, item)
            yield trouble(world).tell("step.failed", error("Permanent"), item.step).named("not landed")
        case Settle():
            yield world.tell("attempt.lost", {"why": "gone"}, item.step, item.attempt).named("settled")
        case Start():
            yield from started(world, item)
        case Escalate():
            yield from escalated(world, item)
        case AskAgain():
            yield answered(world, item.inquiry).named("answered")
            yield closed(world, 3).named("unanswered")
        case Wait():
            yield world.tell("timer.fired", {}, item.step).named("timer")
        case End():
            return


def started(world: World, item: Start) -> Iterator[World]:
    """Yield what may come of an attempt: each verdict, each failure, a question, a crash."""
    step, record = str(item.step), world.state.steps.get(str(item.step))
    attempt = record.attempt + 1 if record else 1
    data = {"phase": item.step.phase, "for_gaps": item.for_gaps}
    begun = world.tell("attempt.started", data, step, attempt).named(f"start {step}")
    for gaps in ((), ("a",), ("a", "b")) if item.step.kind == "verify" else ((),):
        result: dict[str, object] = {"gaps": list(gaps), "result": {}}
        yield begun.tell("step.result", result, step, attempt).named(f"result {len(gaps)}")
    yield crashed(begun)
    bad = trouble(begun)
    yield (
        bad.tell("attempt.failed", error("Permanent"), step, attempt)
        .tell("step.failed", error("Permanent"), step, attempt)
        .named("failed")
    )
    until = (BEGAN + timedelta(hours=1)).isoformat()
    yield bad.tell("timer.set", {"until": until}, step, attempt).named("limit")
    yield parked(bad, step, attempt)


def error(kind: str) -> dict[str, Any]:
    """Return an error as it stands in a fact."""
    return {"error": {"kind": kind, "message": "it broke", "hint": "mend it", "until": None}}


def parked(world: World, step: str, attempt: int) -> World:
    """Return the world with the step parked on a question, and the run closed for it."""
    inquiry = inquiry_of(step, "decision", f"? {attempt}")
    world = world.tell("question.asked", {"inquiry": unstructure(inquiry), "occasion": "x"}, step)
    ids = [question.id for question in inquiry.questions]
    world = world.tell("attempt.lost", {"why": "parked", "questions": ids}, step, attempt)
    return closed(world, 3).named("parked")


def inquiry_of(step: str, kind: Any, text: str) -> Inquiry:
    """Return an inquiry with one question."""
    options = (Option(label="Retry"), Option(label="Skip"), Option(label="Abort"))
    question = Question(id=question_id("r", step, kind, text, []), text=text, options=options)
    return Inquiry(kind=kind, step=step, questions=(question,))


def answered(world: World, inquiry: Inquiry, label: str = "Retry") -> World:
    """Return the world with every question of *inquiry* answered."""
    for question in inquiry.questions:
        answer = Answer(question=question.id, chosen=(label,))
        world = world.tell("question.answered", {"answer": unstructure(answer)})
    return world


def escalated(world: World, item: Escalate) -> Iterator[World]:
    """Yield each answer to an escalation, and a run that ends for want of one."""
    inquiry = inquiry_of(item.step, "escalation", f"{item.cause} {item.generation}")
    asked = trouble(world).tell("question.asked", {"inquiry": unstructure(inquiry)}, item.step)
    for label in ("Retry", "Skip", "Abort"):
        yield answered(asked, inquiry, label).named(label)
    yield closed(asked, 1).named("unanswered")


def closed(world: World, code: int) -> World:
    """Return the world after the run was closed and opened again by the user."""
    world = world.tell("run.closed", {"outcome": "blocked", "exit": code})
    return crashed(world)


def crashed(world: World) -> World:
    """Return the world as a new process finds it."""
    world = evolve(world, epoch=world.epoch + 1, crashes=world.crashes + 1)
    return world.tell("run.opened", {"options": unstructure(world.state.options)}).observed().named("again")


def trouble(world: World) -> World:
    """Count one more thing that went wrong."""
    return evolve(world, trouble=world.trouble + 1)


def landed(world: World, item: ApplyResult) -> World:
    """Return the world with what the step returned on disk."""
    record = world.state.steps[item.step]
    world = evolve(world, disk=written(world.disk, record.id, record.gaps)).observed()
    return world.tell("step.completed", {"commit": "c"}, item.step, record.attempt).named("landed")


def written(disk: Snapshot, step: StepId, gaps: tuple[str, ...]) -> Snapshot:
    """Return the disk after a step's files."""
    if step.kind == "init":
        return evolve(disk, phases=make_phases(2))
    return evolve(
        disk, phases=tuple(_written(p, step, gaps) if p.number == step.phase else p for p in disk.phases)
    )


def _written(phase: PhaseSnapshot, step: StepId, gaps: tuple[str, ...]) -> PhaseSnapshot:
    match step.kind:
        case "discuss":
            return evolve(phase, context=True)
        case "plan":
            number = f"0{step.phase}-0{len(phase.plans) + 1}"
            return evolve(phase, plans=(*phase.plans, PlanSnapshot(id=number)))
        case "execute":
            plans = (evolve(p, summary=True) if p.id == step.detail else p for p in phase.plans)
            return evolve(phase, plans=tuple(plans), stale=phase.verdict != "")
        case "verify":
            return evolve(phase, verdict="gaps_found" if gaps else "passed", gaps=gaps, stale=False)
        case "complete":
            return evolve(phase, ticked=True)
        case _:
            return phase


def carry_on(world: World, limit: int = 200) -> tuple[World, Due]:
    """Let all go well from here on, and return the end."""
    for _ in range(limit):
        item = due(world.state)[0]
        if isinstance(item, End):
            return world, item
        world = next(ways(world))
    raise AssertionError(f"no end after {limit} steps: {' > '.join(world.path[-30:])}")
