"""Decision tables: one row for each kind of state, and what is due in it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from attrs import evolve

from gsd_core.exit_codes import ExitCode
from gsd_core.machine.due import (
    ApplyResult,
    AskAgain,
    Due,
    End,
    Escalate,
    Settle,
    Start,
    Wait,
    due,
    exit_of,
)
from gsd_core.machine.obsolete import why_obsolete
from gsd_core.machine.state import (
    Allowance,
    Claims,
    DueStep,
    Failure,
    Options,
    PhaseSnapshot,
    PlanSnapshot,
    QuestionRecord,
    Snapshot,
    State,
    StepRecord,
)
from gsd_core.model.ids import StepId
from gsd_core.model.question import Answer, Inquiry, Option, Question

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 13, tzinfo=UTC)
Steps = dict[str, StepRecord]


def phase(number: str, plans: str = "", **more: Any) -> PhaseSnapshot:
    """Return a phase; *plans* are ids, ``*``: executed, ``?``: not on disk, ``!``: closes gaps."""
    after: dict[str, tuple[str, ...]] = more.pop("after", {})
    made = [
        PlanSnapshot(
            id=(name := word.rstrip("*?!")),
            summary="*" in word,
            on_disk="?" not in word,
            gap_closure="!" in word,
            depends_on=after.get(name, ()),
            wave=1 + (name in after),
        )
        for word in plans.split()
    ]
    return PhaseSnapshot(number=number, plans=tuple(made), **more)


def record(step: str, status: str = "completed", **more: Any) -> Steps:
    """Return the record of a step; one that is completed was so once."""
    times = {"completed": 1, "ended_at": NOON} if status == "completed" else {}
    return {step: StepRecord(id=StepId.parse(step), status=status, **{**times, **more})}  # type: ignore[arg-type]


def state(*phases: PhaseSnapshot, steps: Steps | None = None, **more: Any) -> State:
    """Return the state of an open run that has seen these phases; it believes what the files say."""
    seen = more.pop("seen", Snapshot(phases=phases))
    options = Options(**more.pop("options", {}))
    return State(run="r", seen=seen, steps=steps or {}, options=options, **more)


def inquiry(step: str, *, kind: str = "decision", answered: bool = False, withdrawn: bool = False) -> Any:
    """Return the inquiries of a state: one question of a step."""
    options = (Option(label="Yes"), Option(label="No"))
    question = Question(id="q-1", header="H", text="Which?", options=options)
    asked = Inquiry(kind=kind, step=step, questions=(question,))  # type: ignore[arg-type]
    given = {"q-1": Answer(question="q-1", chosen=("Yes",))} if answered else {}
    return {"q-1": QuestionRecord(inquiry=asked, at=NOON, answers=given, withdrawn=withdrawn)}


def words(item: Due) -> str:
    """Return what is due in a few words."""
    match item:
        case Start(step=step, for_gaps=for_gaps):
            return f"start {step}{' for gaps' if for_gaps else ''}"
        case ApplyResult(step=step):
            return f"apply {step}"
        case Settle(step=step, attempt=attempt):
            return f"settle {step} {attempt}"
        case AskAgain(step=step):
            return f"ask {step}"
        case Wait(step=step, until=until):
            return f"wait {step} {until:%H}"
        case Escalate(step=step, cause=cause, gaps=gaps, generation=generation):
            return " ".join(["escalate", step, cause, *gaps, f"#{generation}"])
        case End(outcome=outcome, exit=code, reason=reason):
            return f"end {outcome} {int(code)}: {reason}"


def joined(given: State) -> list[str]:
    """Return everything that is due, most urgent first."""
    return [words(item) for item in due(given)]


READY = phase("1", context=True)
PLANNED = phase("1", "01-01 01-02", context=True)
UPON = phase("1", "01-01* 01-02", context=True, after={"01-02": ("01-01",)})
UPON_OPEN = phase("1", "01-01 01-02", context=True, after={"01-02": ("01-01",)})
LACKING = record("1/execute/01-01", deferred=True)
EXECUTED = phase("1", "01-01* 01-02*", context=True)
PASSED = evolve(EXECUTED, verdict="passed")
TICKED = evolve(PASSED, ticked=True)
GAPS = evolve(EXECUTED, verdict="gaps_found", gaps=("a",))
VERIFIED = record("1/verify", passed=True)
DONE = {**VERIFIED, **record("1/complete")}
FAILED = {"failure": Failure(kind="Permanent", message="no")}
OWN = Claims()
REVIEW = (DueStep(kind="review", before="complete"),)
AUDIT = (DueStep(kind="audit", before="end"),)
LAST = evolve(TICKED, number="1")


def ended(*, phases: tuple[PhaseSnapshot, ...] = (TICKED,), milestone: str = "v1.0", **more: Any) -> Snapshot:
    """Return a snapshot of a milestone whose phases are complete."""
    return Snapshot(phases=phases, milestone=milestone, **more)


PHASES: Mapping[str, tuple[State, str]] = {
    "nothing is there": (state(phase("1")), "start 1/discuss"),
    "a context": (state(READY), "start 1/plan"),
    "a plan and no context": (state(phase("1", "01-01")), "start 1/execute/01-01"),
    "a plan that only the roadmap lists": (state(phase("1", "01-01?")), "start 1/discuss"),
    "one plan of two is on disk": (state(phase("1", "01-01* 01-02?")), "start 1/plan"),
    "plans": (state(PLANNED), "start 1/execute/01-01"),
    "one is executed": (state(phase("1", "01-01* 01-02")), "start 1/execute/01-02"),
    "the first depends on the second": (
        state(phase("1", "01-01 01-02", after={"01-01": ("01-02",)})),
        "start 1/execute/01-02",
    ),
    "it depends on one that is executed": (
        state(phase("1", "01-01* 01-02", after={"01-02": ("01-01",)})),
        "start 1/execute/01-02",
    ),
    "they depend on each other": (
        state(phase("1", "01-01 01-02", after={"01-01": ("01-02",), "01-02": ("01-01",)})),
        "start 1/execute/01-01",
    ),
    "all are executed": (state(EXECUTED), "start 1/verify"),
    "a summary appeared that the run did not write": (
        state(EXECUTED, claims=Claims(summaries=("01-01",))),
        "start 1/execute/01-02",
    ),
    "the run wrote it": (
        state(
            EXECUTED,
            claims=Claims(summaries=("01-01",)),
            steps=record("1/execute/01-02"),
        ),
        "start 1/verify",
    ),
    "what builds on a plan with a deferred task": (state(UPON, steps=LACKING), "start 1/verify"),
    "what builds on it, and its gaps are not planned": (
        state(evolve(UPON, verdict="gaps_found", gaps=("a",)), steps=LACKING, verified={"1": ("01-01",)}),
        "start 1/plan/r1 for gaps",
    ),
    "what builds on it, and a plan that closes its gaps": (
        state(
            phase(
                "1", "01-01* 01-02 01-03!", context=True, after=dict.fromkeys(("01-02", "01-03"), ("01-01",))
            ),
            steps=LACKING,
            verified={"1": ("01-01",)},
        ),
        "start 1/execute/01-03",
    ),
    "what builds on it, after the plan that closes its gaps": (
        state(
            phase("1", "01-01* 01-02 01-03*", context=True, after={"01-02": ("01-01",)}, gaps=("a",)),
            steps=LACKING,
            verified={"1": ("01-01",)},
        ),
        "start 1/execute/01-02",
    ),
    "what builds on it, and nothing is missing": (
        state(evolve(UPON, verdict="passed"), steps=LACKING, verified={"1": ("01-01",)}),
        "start 1/execute/01-02",
    ),
    "a plan with a deferred task is interrupted": (
        state(UPON_OPEN, steps=record("1/execute/01-01", "waiting", deferred=True)),
        "start 1/execute/01-01",
    ),
    "a summary is gone": (
        state(PLANNED, steps={**record("1/execute/01-01"), **record("1/execute/01-02")}),
        "start 1/execute/01-01",
    ),
    "passed": (state(PASSED), "start 1/complete"),
    "passed, in a file that appeared": (
        state(PASSED, claims=Claims(summaries=("01-01", "01-02"))),
        "start 1/verify",
    ),
    "passed in this run": (
        state(PASSED, claims=Claims(summaries=("01-01", "01-02")), steps=VERIFIED),
        "start 1/complete",
    ),
    "it did not pass in this run": (
        state(PASSED, claims=Claims(summaries=("01-01", "01-02")), steps=record("1/verify", gaps=("a",))),
        "start 1/verify/r1",
    ),
    "passed, then a plan was executed": (state(evolve(PASSED, stale=True)), "start 1/verify"),
    "passed, over all plans": (state(PASSED, verified={"1": ("01-01", "01-02")}), "start 1/complete"),
    "passed, over one plan": (state(PASSED, verified={"1": ("01-01",)}), "start 1/verify"),
    "stale by commits, and not by the run": (
        state(evolve(PASSED, stale=True), verified={"1": ("01-01", "01-02")}),
        "start 1/complete",
    ),
    "the verification is skipped": (state(EXECUTED, options={"skip_verify": True}), "start 1/complete"),
    "gaps, and the verification is skipped": (
        state(GAPS, options={"skip_verify": True}),
        "start 1/complete",
    ),
    "gaps": (state(GAPS), "start 1/plan/r1 for gaps"),
    "gaps after a plan step": (
        state(GAPS, steps={**record("1/plan"), **record("1/verify", gaps=("a",))}),
        "start 1/plan/r1 for gaps",
    ),
    "gaps, and their planning is under way": (
        state(
            GAPS,
            options={"gap_rounds": 0},
            steps=record("1/plan/r1", "waiting", for_gaps=True),
        ),
        "start 1/plan/r1 for gaps",
    ),
    "gaps, and no round is allowed": (
        state(GAPS, options={"gap_rounds": 0}, steps=record("1/verify", gaps=("a",))),
        "escalate 1/verify gaps a #0",
    ),
    "gaps, no round is allowed, and another program verified": (
        state(GAPS, options={"gap_rounds": 0}),
        "escalate 1/verify gaps a #0",
    ),
    "a round closed one of two gaps": (
        state(
            GAPS,
            steps={
                **record("1/plan/r1", for_gaps=True),
                **record("1/verify", gaps=("a", "b")),
                **record("1/verify/r1", gaps=("a",)),
            },
        ),
        "start 1/plan/r2 for gaps",
    ),
    "a round closed no gap": (
        state(
            GAPS,
            steps={
                **record("1/plan/r1", for_gaps=True),
                **record("1/verify", gaps=("a",)),
                **record("1/verify/r1", gaps=("a", "b")),
            },
        ),
        "escalate 1/verify/r1 gaps a #0",
    ),
    "a round closed the gap that it was for, and another step found one": (
        state(
            GAPS,
            steps={
                **record("1/plan/r1", for_gaps=True),
                **record("1/verify"),
                **record("1/verify/r1", gaps=("a",)),
            },
        ),
        "start 1/plan/r2 for gaps",
    ),
    "two verifications with the same gap, and no round between": (
        state(GAPS, steps={**record("1/verify", gaps=("a",)), **record("1/verify/r1", gaps=("a",))}),
        "start 1/plan/r1 for gaps",
    ),
    "a person allowed one more round": (
        state(
            GAPS,
            options={"gap_rounds": 0},
            steps=record("1/verify", gaps=("a",)),
            allowances={"1": Allowance(rounds=1, verifications=2)},
        ),
        "start 1/plan/r1 for gaps",
    ),
    "that round is used up": (
        state(
            GAPS,
            options={"gap_rounds": 0},
            steps={**record("1/plan/r1", for_gaps=True), **record("1/verify", gaps=("a",))},
            allowances={"1": Allowance(rounds=1, verifications=2)},
        ),
        "escalate 1/verify gaps a #2",
    ),
    "gaps without a key": (state(evolve(GAPS, gaps=())), "start 1/verify"),
    "a human is needed": (state(evolve(GAPS, verdict="human_needed")), "start 1/verify"),
    "a human is needed, and was asked": (
        state(
            evolve(GAPS, verdict="human_needed"),
            steps=record("1/verify", failed_detectors=("x broke", "y broke")),
        ),
        "escalate 1/verify gaps verification is not complete: x broke; y broke #0",
    ),
    "it is not complete, without a reason": (
        state(evolve(GAPS, gaps=()), steps=record("1/verify")),
        "escalate 1/verify gaps verification is not complete #0",
    ),
    "a person allowed another verification": (
        state(
            evolve(GAPS, gaps=()),
            steps=record("1/verify"),
            allowances={"1": Allowance(verifications=2)},
        ),
        "start 1/verify/r1",
    ),
    "an unknown verdict": (state(evolve(EXECUTED, verdict="fine")), "start 1/verify"),
    "the verdict disappears again and again": (
        state(
            EXECUTED,
            steps={**record("1/verify"), **record("1/verify/r1"), **record("1/verify/r2")},
        ),
        "escalate 1/verify/r2 gaps VERIFICATION.md does not stay as it was written #0",
    ),
    "each round has its own verification": (
        state(
            EXECUTED,
            steps={
                **record("1/plan/r1", for_gaps=True),
                **record("1/verify"),
                **record("1/verify/r1"),
                **record("1/verify/r2"),
            },
        ),
        "start 1/verify/r3",
    ),
    "a person allowed more verifications": (
        state(
            EXECUTED,
            steps={**record("1/verify"), **record("1/verify/r1"), **record("1/verify/r2")},
            allowances={"1": Allowance(verifications=4)},
        ),
        "start 1/verify/r3",
    ),
    "a round that was interrupted": (
        state(EXECUTED, steps={**record("1/verify"), **record("1/verify/r1", "waiting")}),
        "start 1/verify/r1",
    ),
    "a round that was skipped": (
        state(EXECUTED, steps=record("1/verify", "skipped")),
        "start 1/verify/r1",
    ),
    "ticked": (state(TICKED), "end done 0: 1 phase complete"),
    "ticked while the run works": (state(TICKED, claims=OWN), "start 1/execute/01-01"),
    "ticked, with a plan that is not executed": (
        state(evolve(PLANNED, ticked=True), claims=OWN),
        "start 1/execute/01-01",
    ),
    "ticked, and asked for": (
        state(evolve(EXECUTED, ticked=True), options={"phases": ("1",)}),
        "start 1/verify",
    ),
    "ticked and never verified": (state(evolve(EXECUTED, ticked=True)), "end done 0: 1 phase complete"),
    "ticked, with gaps": (state(evolve(GAPS, ticked=True)), "start 1/plan/r1 for gaps"),
    "ticked, with gaps, and the verification is skipped": (
        state(evolve(GAPS, ticked=True), options={"skip_verify": True}),
        "end done 0: 1 phase complete (verification skipped)",
    ),
    "complete": (state(TICKED, steps=DONE), "end done 0: 1 phase complete"),
    "complete in the run, by a tick that the run set": (
        state(
            TICKED,
            claims=OWN,
            steps={**DONE, **record("1/execute/01-01"), **record("1/execute/01-02")},
        ),
        "end done 0: 1 phase complete",
    ),
    "verified, ticked, and not by the run": (state(TICKED, steps=VERIFIED), "start 1/complete"),
    "complete, and its tick is gone": (state(PASSED, steps=DONE), "start 1/complete"),
    "complete, and another plan was executed": (
        state(TICKED, steps=DONE, verified={"1": ("01-01",)}, claims=Claims(summaries=("01-01", "01-02"))),
        "start 1/verify/r1",
    ),
    "that, and the verification is skipped": (
        state(TICKED, steps=DONE, verified={"1": ("01-01",)}, options={"skip_verify": True}),
        "end done 0: 1 phase complete (verification skipped)",
    ),
}

TWO = (phase("2", depends_on=("1",)), phase("1"))
FREE = (phase("1"), phase("2"))
ORDER: Mapping[str, tuple[State, list[str]]] = {
    "closed": (evolve(state(phase("1")), closed="done"), []),
    "no project": (State(run="r"), ["start init"]),
    "its files are not there yet": (state(), ["start init"]),
    "a project without phases": (
        state(seen=Snapshot(idle="all shipped")),
        ["end blocked 2: all shipped"],
    ),
    "the next milestone of it": (
        state(seen=Snapshot(idle="all shipped"), milestone="v1.1"),
        ["start init"],
    ),
    "that was made, and its phases are gone": (
        state(seen=Snapshot(idle="none"), milestone="v1.1", steps=record("init")),
        ["end blocked 2: none"],
    ),
    "init was interrupted": (
        state(seen=Snapshot(idle="only STATE.md"), steps=record("init", "waiting")),
        ["start init"],
    ),
    "init is complete": (
        state(seen=Snapshot(idle="all shipped"), steps=record("init")),
        ["end blocked 2: all shipped"],
    ),
    "a plugin's step comes before init": (
        state(seen=Snapshot(due=(DueStep(kind="survey", before="init"),))),
        ["start survey"],
    ),
    "phases in their order": (state(*TWO[1:], phase("1.1")), ["start 1/discuss", "start 1.1/discuss"]),
    "one depends on another": (state(*TWO), ["start 1/discuss"]),
    "it depends on one that is complete": (state(TICKED, TWO[0]), ["start 2/discuss"]),
    "it depends on one that is ticked and has gaps": (
        state(evolve(GAPS, ticked=True), TWO[0]),
        ["start 1/plan/r1 for gaps", "start 2/discuss"],
    ),
    "it depends on one that does not exist": (
        state(phase("2", depends_on=("7",))),
        ["start 2/discuss"],
    ),
    "a range": (state(*FREE, options={"phases": ("2",)}), ["start 2/discuss"]),
    "the range lacks what it depends on": (
        state(*TWO, options={"phases": ("2",)}),
        ["end blocked 2: phase 2 depends on 1: not complete, and not in range or in a cycle"],
    ),
    "a cycle": (
        state(phase("1", depends_on=("2",)), phase("2", depends_on=("1",))),
        [
            "end blocked 2: phase 1 depends on 2; phase 2 depends on 1: "
            "not complete, and not in range or in a cycle"
        ],
    ),
    "no phase is in the range": (
        state(*FREE, options={"phases": ("7",)}),
        ["end blocked 2: no phase is in the requested range; the roadmap has 1, 2"],
    ),
    "a phase that was skipped": (state(*FREE, skipped=("1",)), ["start 2/discuss"]),
    "only that one is left": (
        state(phase("1"), evolve(TICKED, number="2"), skipped=("1",)),
        ["end gaps 6: skipped, not done: phase 1"],
    ),
    "a tick that is missing comes after real work": (
        state(evolve(PASSED, number="1"), phase("2")),
        ["start 2/discuss", "start 1/complete"],
    ),
    "that of the run's own work does not": (
        state(PASSED, phase("2"), steps=VERIFIED),
        ["start 1/complete", "start 2/discuss"],
    ),
    "a result": (
        state(*FREE, steps=record("1/discuss", "result"), stop_asked=True),
        ["apply 1/discuss"],
    ),
    "a result and an attempt": (
        state(
            *FREE,
            steps={**record("2/discuss", "running", attempt=3), **record("1/discuss", "result")},
        ),
        ["apply 1/discuss", "settle 2/discuss 3"],
    ),
    "an attempt": (
        state(*FREE, steps=record("2/discuss", "running", attempt=1), aborted="2/discuss"),
        ["settle 2/discuss 1"],
    ),
    "stop": (state(*FREE, stop_asked=True, pause_asked=True), ["end stopped 130: on request"]),
    "pause": (
        state(*FREE, pause_asked=True, steps=record("1/discuss", "failed")),
        ["end stopped 130: paused on request"],
    ),
    "abort after a failure": (
        state(*FREE, steps=record("1/plan", "failed", **FAILED), aborted="1/plan"),
        ["end failed 1: aborted at 1/plan"],
    ),
    "abort after gaps": (
        state(*FREE, steps=record("1/verify", gaps=("a",)), aborted="1/verify"),
        ["end gaps 6: aborted at 1/verify"],
    ),
    "abort after lost attempts": (
        state(*FREE, steps=record("1/plan", "waiting", lost=3), aborted="1/plan"),
        ["end failed 1: aborted at 1/plan"],
    ),
    "a failure": (
        state(*FREE, steps=record("2/plan", "failed", generation=2, **FAILED)),
        ["escalate 2/plan failed #2"],
    ),
    "three lost attempts": (
        state(*FREE, steps=record("1/plan", "waiting", lost=3, generation=1)),
        ["escalate 1/plan lost #1"],
    ),
    "two lost attempts": (
        state(READY, steps=record("1/plan", "waiting", lost=2)),
        ["start 1/plan"],
    ),
    "a failure in a phase that was skipped": (
        state(*FREE, steps=record("1/plan", "failed", **FAILED), skipped=("1",)),
        ["start 2/discuss"],
    ),
    "a failure in a phase that is gone": (
        state(phase("1"), steps=record("2/review", "failed", **FAILED)),
        ["start 1/discuss"],
    ),
    "a timer": (
        state(*FREE, steps=record("1/discuss", "waiting", until=LATER)),
        ["wait 1/discuss 13", "start 2/discuss"],
    ),
    "an open question": (
        state(*FREE, steps=record("1/discuss", "parked"), inquiries=inquiry("1/discuss")),
        ["ask 1/discuss", "start 2/discuss"],
    ),
    "a question that is answered": (
        state(*FREE, steps=record("1/discuss", "parked"), inquiries=inquiry("1/discuss", answered=True)),
        ["start 1/discuss", "start 2/discuss"],
    ),
    "a question that was withdrawn": (
        state(*FREE, steps=record("1/discuss", "parked"), inquiries=inquiry("1/discuss", withdrawn=True)),
        ["start 1/discuss", "start 2/discuss"],
    ),
    "a question of another step": (
        state(*FREE, steps=record("1/discuss", "waiting"), inquiries=inquiry("2/discuss")),
        ["start 1/discuss", "start 2/discuss"],
    ),
    "a question about a failure": (
        state(
            *FREE,
            steps=record("1/discuss", "waiting"),
            inquiries=inquiry("1/discuss", kind="escalation"),
        ),
        ["start 1/discuss", "start 2/discuss"],
    ),
    "a result that disappears": (
        state(*FREE, steps=record("1/discuss", completed=3)),
        ["escalate 1/discuss repeats #3", "start 2/discuss"],
    ),
    "a result that disappeared twice": (
        state(*FREE, steps=record("1/discuss", completed=2)),
        ["start 1/discuss", "start 2/discuss"],
    ),
    "a step that was asked for": (
        state(*FREE, asked={"2/plan": "gsd plan 2"}),
        ["start 2/plan"],
    ),
    "one that was done three times": (
        state(*FREE, asked={"1/verify": "again"}, steps=record("1/verify", completed=3)),
        ["start 1/verify"],
    ),
    "a plan step for gaps": (
        state(GAPS, asked={"1/plan/r1": "gsd plan 1"}),
        ["start 1/plan/r1 for gaps"],
    ),
    "a plan step, and gaps without a key": (
        state(evolve(GAPS, gaps=()), asked={"1/plan/r1": "gsd plan 1"}),
        ["start 1/plan/r1"],
    ),
    "a plan step, and no gaps": (
        state(evolve(PASSED, gaps=("a",)), asked={"1/plan/r1": "gsd plan 1"}),
        ["start 1/plan/r1"],
    ),
    "another step, and gaps": (
        state(GAPS, asked={"1/discuss": "gsd discuss 1"}),
        ["start 1/discuss"],
    ),
    "only steps that were asked for": (
        state(
            *FREE,
            options={"only_asked": True},
            asked={"2/plan": "mine", "1/plan": "of a process before"},
            requested=("2/plan",),
            steps=record("1/discuss", "failed", **FAILED),
        ),
        ["start 2/plan"],
    ),
    "one of those failed": (
        state(
            *FREE,
            options={"only_asked": True},
            asked={"2/plan": ""},
            requested=("2/plan",),
            steps=record("2/plan", "failed", **FAILED),
        ),
        ["escalate 2/plan failed #0"],
    ),
    "they are done": (
        state(
            *FREE,
            options={"only_asked": True},
            answered=("2/plan",),
            requested=("2/plan",),
            steps=record("2/plan"),
        ),
        ["end done 0: 2/plan complete"],
    ),
    "a verification that was asked for, with a detector that failed": (
        state(
            *FREE,
            options={"only_asked": True},
            answered=("1/verify",),
            requested=("1/verify",),
            steps=record("1/verify", gaps=("a",), failed_detectors=("x broke", "y broke")),
        ),
        ["end gaps 6: 1/verify: 1 gap and 2 failed detectors"],
    ),
    "a verification that was asked for, with nothing but a detector that failed": (
        state(
            *FREE,
            options={"only_asked": True},
            answered=("1/verify",),
            requested=("1/verify",),
            steps=record("1/verify", failed_detectors=("x broke",)),
        ),
        ["end gaps 6: 1/verify: 1 failed detector"],
    ),
    "there are none": (
        state(*FREE, options={"only_asked": True}),
        ["end done 0: nothing to do"],
    ),
    "one found gaps": (
        state(
            *FREE,
            options={"only_asked": True},
            answered=("1/verify",),
            steps=record("1/verify", gaps=("a", "b")),
        ),
        ["end gaps 6: 1/verify: 2 gaps"],
    ),
    "one was skipped": (
        state(
            *FREE,
            options={"only_asked": True},
            answered=("1/verify",),
            steps=record("1/verify", "skipped"),
        ),
        ["end gaps 6: skipped, not done: 1/verify"],
    ),
    "a plugin's step comes before a step": (
        state(evolve(PASSED, due=REVIEW), steps=VERIFIED),
        ["start 1/review"],
    ),
    "after the second verification, too": (
        state(
            evolve(PASSED, due=REVIEW),
            steps={**record("1/verify", gaps=("a",)), **record("1/verify/r1", passed=True)},
        ),
        ["start 1/review/r1"],
    ),
    "a verification that is not complete does not count": (
        state(
            evolve(PASSED, due=REVIEW),
            steps={**VERIFIED, **record("2/verify")},
        ),
        ["start 1/review"],
    ),
    "it comes before another step": (
        state(evolve(READY, due=REVIEW)),
        ["start 1/plan"],
    ),
    "one before a later plan step": (
        state(evolve(GAPS, due=(DueStep(kind="research", before="plan"),))),
        ["start 1/research/r1"],
    ),
    "the audit at the end": (state(seen=ended(due=AUDIT)), ["start audit/v1.0"]),
    "a step for the end, and a phase is left": (
        state(seen=ended(due=AUDIT, phases=(TICKED, phase("2")))),
        ["start 2/discuss"],
    ),
    "a step for the end, and a range": (
        state(seen=ended(due=AUDIT), options={"phases": ("1",)}, steps=DONE),
        ["end done 0: 1 phase complete"],
    ),
    "a step for the end, and a phase that was skipped": (
        state(seen=ended(due=AUDIT), skipped=("1",)),
        ["end gaps 6: skipped, not done: phase 1"],
    ),
    "the audit, and a phase was completed since": (
        state(
            seen=ended(due=AUDIT),
            steps={**record("audit/v1.0"), **record("1/complete", ended_at=LATER)},
        ),
        ["start audit/v1.0/r1"],
    ),
    "the audit, and none was completed since": (
        state(
            seen=ended(due=AUDIT),
            steps={**record("audit/v1.0", ended_at=LATER), **record("1/complete")},
        ),
        ["start audit/v1.0"],
    ),
    "the audit, and another step ended since": (
        state(seen=ended(due=AUDIT), steps={**record("audit/v1.0"), **record("1/verify", ended_at=LATER)}),
        ["start audit/v1.0"],
    ),
    "the audit was interrupted": (
        state(
            seen=ended(due=AUDIT),
            steps={**record("audit/v1.0/r1", "waiting"), **record("1/complete", ended_at=LATER)},
        ),
        ["start audit/v1.0/r1"],
    ),
    "the audit of another milestone": (
        state(
            seen=ended(due=AUDIT),
            steps={**record("audit/v0.9/r4"), **record("close/v1.0/r7")},
        ),
        ["start audit/v1.0"],
    ),
    "a step that comes before another is none of the end": (
        state(seen=ended(due=(DueStep(kind="survey", before="init"),))),
        ["end done 0: 1 phase complete"],
    ),
    "the close that was asked for waits for the phases": (
        state(seen=ended(phases=(phase("1"),)), asked={"close/v1.0": "yes"}),
        ["start 1/discuss"],
    ),
    "the close at the end": (
        state(seen=ended(due=AUDIT), asked={"close/v1.0": "yes"}),
        ["start close/v1.0", "start audit/v1.0"],
    ),
    "the close of another milestone": (
        state(seen=ended(), asked={"close/v0.9": "yes"}),
        ["end done 0: 1 phase complete"],
    ),
    "the close was interrupted after it moved the phases": (
        state(
            seen=Snapshot(idle="all shipped"),
            asked={"close/v1.0": "yes"},
            steps=record("close/v1.0", "waiting", attempt=1),
        ),
        ["start close/v1.0"],
    ),
    "the close was never begun, and there are no phases": (
        state(
            seen=Snapshot(idle="all shipped"),
            asked={"close/v1.0": "yes"},
            steps=record("close/v1.0", "waiting"),
        ),
        ["end blocked 2: all shipped"],
    ),
    "the close was interrupted, and the phases are there": (
        state(
            seen=ended(phases=(phase("1"),), idle="odd"),
            asked={"close/v1.0": "yes"},
            steps=record("close/v1.0", "waiting", attempt=1),
        ),
        ["start 1/discuss"],
    ),
    "the close is parked, and there are no phases": (
        state(
            seen=Snapshot(idle="all shipped"),
            asked={"close/v1.0": "yes"},
            steps=record("close/v1.0", "parked", attempt=1),
        ),
        ["end blocked 2: all shipped"],
    ),
    "the close is done": (
        state(seen=Snapshot(idle="all shipped"), steps=record("close/v1.0")),
        ["end done 0: milestone v1.0 complete"],
    ),
    "a close, and phases": (
        state(seen=ended(), steps=record("close/v1.0")),
        ["end done 0: 1 phase complete"],
    ),
    "the milestone has gaps": (
        state(seen=ended(), steps=record("audit/v1.0", gaps=("a",))),
        ["end gaps 6: audit/v1.0 found 1 gap"],
    ),
    "the last audit found none": (
        state(
            seen=ended(),
            steps={**record("audit/v1.0/r1"), **record("audit/v1.0", gaps=("a",))},
        ),
        ["end done 0: 1 phase complete"],
    ),
    "another milestone has gaps": (
        state(seen=ended(), steps=record("audit/v0.9", gaps=("a",))),
        ["end done 0: 1 phase complete"],
    ),
    "an audit that did not end": (
        state(seen=ended(), steps=record("audit/v1.0", "parked", gaps=("a",))),
        ["end done 0: 1 phase complete"],
    ),
    "checks were assumed": (
        state(
            TICKED,
            inquiries={
                "q": evolve(
                    (one := inquiry("1/verify", answered=True)["q-1"]),
                    inquiry=evolve(
                        one.inquiry,
                        questions=(evolve(one.inquiry.questions[0], inspection=True),),
                    ),
                    answers={"q-1": Answer(question="q-1", chosen=("Yes",), how="policy")},
                )
            },
        ),
        ["end done 0: 1 phase complete (1 check assumed, nobody looked)"],
    ),
}

CLOSE, AT_END = "close/v1.0", ended(due=AUDIT)
EMPTY = Snapshot(idle="all shipped")
OBSOLETE: Mapping[str, tuple[State, str, str]] = {
    "no step": (state(phase("1")), "", ""),
    "nothing was seen": (State(run="r"), "2/review", ""),
    "one of the core": (state(phase("1")), "2/plan", ""),
    "it is due": (state(phase("1", due=REVIEW)), "1/review", ""),
    "it is no longer due": (state(phase("1")), "1/review", "review is no longer due"),
    "it works": (state(phase("1"), steps=record("1/review", "running")), "1/review", ""),
    "its result is not applied": (state(phase("1"), steps=record("1/review", "result")), "1/review", ""),
    "it waits": (
        state(phase("1"), steps=record("1/review", "waiting")),
        "1/review",
        "review is no longer due",
    ),
    "its phase is gone": (state(phase("1", due=REVIEW)), "2/review", "phase 2 no longer exists"),
    "its phase is gone, and it was asked for": (state(phase("1"), asked={"2/review": ""}), "2/review", ""),
    "the audit": (state(seen=AT_END), "audit/v1.0", ""),
    "the audit of a milestone before": (
        state(seen=AT_END),
        "audit/v0.9",
        "milestone v0.9 is no longer in progress",
    ),
    "nobody asked for the close": (state(seen=AT_END), CLOSE, "close is no longer due"),
    "the close was asked for": (state(seen=AT_END, asked={CLOSE: ""}), CLOSE, ""),
    "the milestone is closed": (
        state(seen=EMPTY, asked={CLOSE: ""}),
        CLOSE,
        "milestone v1.0 is no longer in progress",
    ),
    "the files cannot be read": (state(seen=Snapshot(), asked={CLOSE: ""}), CLOSE, ""),
    "the close has begun": (
        state(seen=EMPTY, asked={CLOSE: ""}, steps=record(CLOSE, "waiting", attempt=1)),
        CLOSE,
        "",
    ),
    "the close has failed": (
        state(seen=EMPTY, asked={CLOSE: ""}, steps=record(CLOSE, "failed", attempt=1)),
        CLOSE,
        "",
    ),
    "the close was only put off": (
        state(seen=EMPTY, asked={CLOSE: ""}, steps=record(CLOSE, "waiting")),
        CLOSE,
        "milestone v1.0 is no longer in progress",
    ),
    "the close is done": (
        state(seen=EMPTY, asked={CLOSE: ""}, steps=record(CLOSE, attempt=1)),
        CLOSE,
        "milestone v1.0 is no longer in progress",
    ),
    "another step of a milestone before": (
        state(seen=ended(due=(DueStep(kind="notes", before="end"),))),
        "notes/v0.9",
        "",
    ),
}
EXITS: tuple[tuple[Failure | None, ExitCode], ...] = (
    (None, ExitCode.FAILED),
    (Failure(kind="Permanent", message="no"), ExitCode.FAILED),
    (Failure(kind="Transient", message="limit", until=LATER), ExitCode.EXHAUSTED),
    (Failure(kind="Transient", message="limit"), ExitCode.TRANSIENT),
)


@pytest.mark.parametrize("name", OBSOLETE)
def test_what_can_no_longer_become_due(name: str) -> None:
    given, step, expected = OBSOLETE[name]
    assert why_obsolete(given, step) == expected


@pytest.mark.parametrize(("failure", "code"), EXITS)
def test_how_a_run_ends_whose_failure_nobody_decides_about(failure: Failure | None, code: ExitCode) -> None:
    assert exit_of(failure) == code


@pytest.mark.parametrize("name", PHASES)
def test_what_is_due_in_a_phase(name: str) -> None:
    given, expected = PHASES[name]
    assert joined(given) == [expected]


@pytest.mark.parametrize("name", ORDER)
def test_what_is_due_in_a_run(name: str) -> None:
    given, expected = ORDER[name]
    assert joined(given) == expected


DIAMOND = phase("1", "01-01* 01-02 01-03 01-04", after={"01-04": ("01-02", "01-03")})
LEFT, RIGHT = "1/execute/01-02", "1/execute/01-03"
NEXT = phase("2", "02-01", context=True)
SIDE_BY_SIDE: Mapping[str, tuple[State, tuple[str, ...], list[str]]] = {
    "nothing runs yet": (state(DIAMOND, NEXT), (), [f"start {LEFT}", f"start {RIGHT}"]),
    "one runs": (state(DIAMOND, steps=record(LEFT, "running")), (LEFT,), [f"start {RIGHT}"]),
    "both run": (
        state(DIAMOND, steps={**record(LEFT, "running"), **record(RIGHT, "running")}),
        (LEFT, RIGHT),
        [],
    ),
    "one was lost with its process": (
        state(DIAMOND, steps=record(LEFT, "running", attempt=2)),
        (),
        [f"settle {LEFT} 2", f"start {RIGHT}"],
    ),
    "one has a result": (
        state(DIAMOND, steps=record(LEFT, "result")),
        (),
        [f"apply {LEFT}", f"start {RIGHT}"],
    ),
    "the result is being applied": (
        state(DIAMOND, steps=record(LEFT, "result")),
        (LEFT,),
        [f"start {RIGHT}"],
    ),
    "one failed": (
        state(DIAMOND, NEXT, steps=record(LEFT, "failed", **FAILED)),
        (),
        [f"escalate {LEFT} failed #0", f"start {RIGHT}"],
    ),
    "a person is being asked about it": (
        state(DIAMOND, NEXT, steps=record(LEFT, "failed", **FAILED)),
        (LEFT,),
        [f"start {RIGHT}"],
    ),
    "only what depends on it is left": (
        state(evolve(DIAMOND, plans=DIAMOND.plans[:2]), NEXT, steps=record(LEFT, "failed", **FAILED)),
        (LEFT,),
        [],
    ),
    "one waits": (
        state(DIAMOND, steps=record(LEFT, "waiting", until=LATER)),
        (),
        [f"wait {LEFT} 13", f"start {RIGHT}"],
    ),
    "one has a question": (
        state(DIAMOND, steps=record(LEFT, "parked"), inquiries=inquiry(LEFT)),
        (),
        [f"ask {LEFT}", f"start {RIGHT}"],
    ),
    "one says only that it is of a later wave": (
        state(phase("1", "01-01 01-02", after={"01-02": ()})),
        (),
        ["start 1/execute/01-01"],
    ),
    "one depends on a plan that does not exist": (
        state(phase("1", "01-01 01-02", after={"01-02": ("00-09",)})),
        (),
        ["start 1/execute/01-01", f"start {LEFT}"],
    ),
    "a pause is asked for": (state(DIAMOND, pause_asked=True), (LEFT,), []),
    "a pause is asked for, and nothing runs": (
        state(DIAMOND, pause_asked=True),
        (),
        ["end stopped 130: paused on request"],
    ),
    "a stop is asked for": (state(DIAMOND, stop_asked=True), (LEFT,), ["end stopped 130: on request"]),
    "a stop is asked for, and one has a result": (
        state(DIAMOND, stop_asked=True, steps=record(LEFT, "result")),
        (RIGHT,),
        [f"apply {LEFT}"],
    ),
    "somebody asks for a step": (state(DIAMOND, asked={"1/discuss": ""}), (LEFT,), []),
    "somebody asks for a step, and nothing runs": (
        state(DIAMOND, asked={"1/discuss": ""}),
        (),
        ["start 1/discuss"],
    ),
    "the phase is complete": (state(TICKED, NEXT, steps=DONE), (), ["start 2/execute/02-01"]),
    "everything is done": (state(TICKED, steps=DONE), (), ["end done 0: 1 phase complete"]),
}


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_what_is_due_beside_what_is_being_done(name: str) -> None:
    given, live, expected = SIDE_BY_SIDE[name]
    assert [words(item) for item in due(given, live=live, capacity=3)] == expected


BASE = evolve(LAST, plans=DIAMOND.plans[:1])
OTHERS = (
    evolve(DIAMOND, number="2", depends_on=("1",)),
    phase("3", "03-01", depends_on=("1",), context=True),
    phase("4", depends_on=("3",)),
    phase("5", depends_on=("1",)),
)
IN_PHASES: Mapping[str, tuple[State, tuple[str, ...], list[str]]] = {
    "plans of both, and the first step of another": (
        state(BASE, *OTHERS, steps=DONE),
        (),
        ["start 2/execute/01-02", "start 2/execute/01-03", "start 3/execute/03-01", "start 5/discuss"],
    ),
    "one is worked on": (
        state(BASE, *OTHERS[1:], steps=DONE | record("3/execute/03-01", "running")),
        ("3/execute/03-01",),
        ["start 5/discuss"],
    ),
    "one failed": (
        state(BASE, *OTHERS[1:], steps=DONE | record("3/execute/03-01", "failed", **FAILED)),
        (),
        ["escalate 3/execute/03-01 failed #0", "start 5/discuss"],
    ),
    "the base is not complete": (
        state(evolve(DIAMOND, number="1"), *OTHERS[1:]),
        (),
        [f"start {LEFT}", f"start {RIGHT}"],
    ),
    "no phase names what it depends on": (
        state(DIAMOND, NEXT),
        (),
        [f"start {LEFT}", f"start {RIGHT}"],
    ),
}


@pytest.mark.parametrize("name", IN_PHASES)
def test_what_is_due_in_phases_side_by_side(name: str) -> None:
    given, live, expected = IN_PHASES[name]
    found = due(given, live=live, capacity=3, parallel_phases=True)
    assert [words(item) for item in found] == expected
