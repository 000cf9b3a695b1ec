"""A model of the world around the machine: planning files, facts, and everything that may happen next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from attrs import evolve, field, frozen

from gsd_core.codec import unstructure
from gsd_core.machine.claims import claims_at_opening
from gsd_core.machine.due import ApplyResult, AskAgain, Due, End, Escalate, Settle, Start, Wait, due
from gsd_core.machine.facts import Record
from gsd_core.machine.fold import fold
from gsd_core.machine.state import Claims, DueStep, PhaseSnapshot, PlanSnapshot, Snapshot, State
from gsd_core.model.ids import StepId, question_id
from gsd_core.model.question import Answer, Inquiry, Option, Question

STARTED = datetime(2026, 1, 1, tzinfo=UTC)
SURVEY = DueStep(kind="survey", before="init")
REVIEW = DueStep(kind="review", before="complete")
AUDIT = DueStep(kind="audit", before="end")


@frozen(kw_only=True)
class World:
    """A state, the planning files, and what happened so far (*path*).

    *own*: plugins add steps: a survey, a review after each verification, and an audit at the end.
    """

    state: State
    disk: Snapshot
    own: bool = False
    epoch: int = 1
    crashes: int = 0
    problems: int = 0
    path: tuple[str, ...] = field(default=(), eq=False)

    def record(self, kind: str, data: Mapping[str, Any], step: str = "", attempt: int = 0) -> World:
        """Return the world after one more fact."""
        fact = Record(
            seq=self.state.seq + 1,
            run="r",
            v=1,
            epoch=self.epoch,
            at=STARTED + timedelta(seconds=self.state.seq),
            kind=kind,
            step=step,
            attempt=attempt,
            data=data,
        )
        return evolve(self, state=fold(self.state, [fact]))

    def observed(self) -> World:
        """Return the world after the planning files were read."""
        if self.state.seen == self.disk:
            return self
        return self.record("project.observed", unstructure(self.disk))

    def named(self, what: str) -> World:
        """Return the world with *what* noted in its path."""
        return evolve(self, path=(*self.path, what))


def new_world(
    phases: int = 0,
    *,
    depends: bool = True,
    options: Mapping[str, Any] | None = None,
    disk: Snapshot | None = None,
    own: bool = False,
) -> World:
    """Return a run that was just opened, in a project with that many empty phases, or with *disk*."""
    disk = disk or Snapshot(phases=make_phases(phases, depends=depends))
    if own:
        disk = evolve(disk, milestone="v1.0", due=(SURVEY, AUDIT))
    world = World(state=State(), disk=disk, own=own)
    claims = claims_at_opening(world.state, disk, interrupted=False)
    world = world.record("run.started", {"idea": {"name": "idea", "text": "", "sha256": "x"}})
    return world.record("run.opened", opened(dict(options or {}), claims)).observed()


def opened(options: Mapping[str, Any], claims: Claims) -> dict[str, Any]:
    """Return the data of the fact that opens a run."""
    return {"options": options, "claims": unstructure(claims)}


def make_phases(count: int, *, depends: bool = True) -> tuple[PhaseSnapshot, ...]:
    """Return empty phases, each depending on the one before."""
    return tuple(
        PhaseSnapshot(number=str(n), depends_on=(str(n - 1),) if depends and n > 1 else ())
        for n in range(1, count + 1)
    )


def successors(world: World) -> Iterator[World]:
    """Yield every world that may come next, the one without problems first."""
    item = due(world.state)[0]
    match item:
        case ApplyResult():
            yield applied(world, item)
            yield (
                with_problem(world).record("step.failed", error("Permanent"), item.step).named("not applied")
            )
        case Settle():
            yield world.record("attempt.lost", {"why": "gone"}, item.step, item.attempt).named("settled")
        case Start():
            yield from started(world, item)
            yield from edited(world, item.step.phase)
        case Escalate():
            yield from escalated(world, item)
        case AskAgain():
            yield answered(world, item.inquiry).named("answered")
            yield closed(world, 3).named("unanswered")
        case Wait():
            yield world.record("timer.fired", {}, item.step).named("timer")
        case End():
            return


def started(world: World, item: Start) -> Iterator[World]:
    """Yield the possible ends of an attempt: each verdict, each failure, a question, a crash."""
    step, record = str(item.step), world.state.steps.get(str(item.step))
    attempt = record.attempt + 1 if record else 1
    data = {"phase": item.step.phase, "for_gaps": item.for_gaps}
    begun = world.record("attempt.started", data, step, attempt).named(f"start {step}")
    possible = {"verify": ((), ("a",), ("a", "b")), "review": ((), ("c",))}
    for gaps in possible.get(item.step.kind, ((),)):
        result: dict[str, object] = {"gaps": list(gaps), "result": {}}
        yield begun.record("step.result", result, step, attempt).named(f"result {len(gaps)}")
    yield crashed(begun)
    bad = with_problem(begun)
    yield (
        bad.record("attempt.failed", error("Permanent"), step, attempt)
        .record("step.failed", error("Permanent"), step, attempt)
        .named("failed")
    )
    until = (STARTED + timedelta(hours=1)).isoformat()
    yield bad.record("timer.set", {"until": until}, step, attempt).named("limit")
    yield parked(bad, step, attempt)


def error(kind: str) -> dict[str, Any]:
    """Return the data of a fact about an error."""
    return {"error": {"kind": kind, "message": "it broke", "hint": "fix it", "until": None}}


def parked(world: World, step: str, attempt: int) -> World:
    """Return the world with the step parked on a question, and the run closed for it."""
    inquiry = inquiry_of(step, "decision", f"? {attempt}")
    world = world.record("question.asked", {"inquiry": unstructure(inquiry), "occasion": "x"}, step)
    ids = [question.id for question in inquiry.questions]
    world = world.record("attempt.lost", {"why": "parked", "questions": ids}, step, attempt)
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
        world = world.record("question.answered", {"answer": unstructure(answer)})
    return world


def escalated(world: World, item: Escalate) -> Iterator[World]:
    """Yield each answer to an escalation, and a run that ends because there is none."""
    inquiry = inquiry_of(item.step, "escalation", f"{item.cause} {item.generation}")
    asked = with_problem(world).record("question.asked", {"inquiry": unstructure(inquiry)}, item.step)
    for label in ("Retry", "Skip", "Abort"):
        yield answered(asked, inquiry, label).named(label)
    yield closed(asked, 1).named("unanswered")


def closed(world: World, code: int) -> World:
    """Return the world after the run was closed and opened again by the user."""
    world = world.record("run.closed", {"outcome": "blocked", "exit": code})
    return crashed(world)


def crashed(world: World) -> World:
    """Return the world as a new process finds it."""
    world = evolve(world, epoch=world.epoch + 1, crashes=world.crashes + 1)
    interrupted = any(record.status == "running" for record in world.state.steps.values())
    claims = claims_at_opening(world.state, world.disk, interrupted=interrupted)
    data = opened(unstructure(world.state.options), claims)
    return world.record("run.opened", data).observed().named("again")


def edited(world: World, number: str) -> Iterator[World]:
    """Yield the worlds where somebody changed the planning files of a phase while no agent worked."""
    for phase in world.disk.phases:
        plans = tuple(evolve(plan, summary=True) for plan in phase.plans)
        forged = [evolve(phase, ticked=not phase.ticked)]
        if phase.number == number:
            forged += [evolve(phase, plans=plans), evolve(phase, ticked=True, plans=plans, verdict="passed")]
            forged += [evolve(phase, verdict=verdict) for verdict in ("", "passed", "gaps_found")]
        for change in forged:
            if change != phase:
                others = (change if p.number == phase.number else p for p in world.disk.phases)
                disk = evolve(world.disk, phases=tuple(others))
                # Counts as a problem and a crash, which keeps the number of walks within bounds.
                crashes = world.crashes + 1
                after = evolve(with_problem(world), crashes=crashes, disk=disk).observed()
                yield after.named(f"edited {phase.number}")


def with_problem(world: World) -> World:
    """Return the world with one more problem counted."""
    return evolve(world, problems=world.problems + 1)


def applied(world: World, item: ApplyResult) -> World:
    """Return the world after the step's result is applied."""
    record = world.state.steps[item.step]
    world = evolve(world, disk=with_files(world.disk, record.id, record.gaps, own=world.own)).observed()
    return world.record("step.completed", {"commit": "c"}, item.step, record.attempt).named("applied")


def with_files(disk: Snapshot, step: StepId, gaps: tuple[str, ...], *, own: bool = False) -> Snapshot:
    """Return the planning files after a step wrote its own."""
    if step.kind == "init":
        return evolve(disk, phases=make_phases(2))
    if not step.phase:
        return evolve(disk, due=tuple(one for one in disk.due if one.kind != step.kind))
    phases = (_with_files(p, step, gaps, own=own) if p.number == step.phase else p for p in disk.phases)
    return evolve(disk, phases=tuple(phases))


def _with_files(phase: PhaseSnapshot, step: StepId, gaps: tuple[str, ...], *, own: bool) -> PhaseSnapshot:
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
            verdict = "gaps_found" if gaps else "passed"
            return evolve(phase, verdict=verdict, gaps=gaps, stale=False, due=(REVIEW,) if own else ())
        case "review":
            verdict = "gaps_found" if gaps else phase.verdict
            return evolve(phase, verdict=verdict, gaps=(*phase.gaps, *gaps), due=())
        case "complete":
            return evolve(phase, ticked=True)
        case _:
            return phase


def run_to_the_end(world: World, limit: int = 200) -> tuple[World, Due]:
    """Let everything go well from here on, and return the last world and its end."""
    for _ in range(limit):
        item = due(world.state)[0]
        if isinstance(item, End):
            return world, item
        world = next(successors(world))
    raise AssertionError(f"no end after {limit} steps: {' > '.join(world.path[-30:])}")
