"""What each kind of fact changes in the state of a run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gsd_core.codec import unstructure
from gsd_core.machine.facts import Record
from gsd_core.machine.fold import FACT_KINDS, fold
from gsd_core.machine.state import Allowance, Claims, Closing, Failure, Options, Queued, State
from gsd_core.model.question import Answer, Inquiry, Option, Question

from .test_decisions import PASSED, phase

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Given = tuple[str, str, Mapping[str, Any]]


def after(*facts: Given, run: str = "r", state: State | None = None) -> State:
    """Return the state after facts, each a kind, a step and data; the first has the number 1."""
    made = [
        Record(
            seq=number,
            v=1,
            run=run,
            epoch=1,
            at=NOON + timedelta(minutes=number),
            kind=kind,
            step=step,
            attempt=1,
            data=data,
        )
        for number, (kind, step, data) in enumerate(facts, start=1)
    ]
    return fold(state or State(), made)


def inquiry(step: str, *, kind: str = "decision") -> Inquiry:
    """Return one question of a step, ``q-1``."""
    labels = ("Retry", "Skip", "Abort") if kind == "escalation" else ("Yes", "No")
    question = Question(id="q-1", text="Which?", options=tuple(Option(label=label) for label in labels))
    return Inquiry(kind=kind, step=step, questions=(question,))  # type: ignore[arg-type]


def opened(**options: Any) -> Given:
    return ("run.opened", "", {"options": options})


def asked(step: str, *, kind: str = "decision") -> Given:
    return ("question.asked", "", {"inquiry": unstructure(inquiry(step, kind=kind)), "occasion": "o"})


def answered(label: str, question: str = "q-1") -> Given:
    return ("question.answered", "", {"answer": unstructure(Answer(question=question, chosen=(label,)))})


def seen(*phases: Any) -> Given:
    return ("project.observed", "", {"phases": [unstructure(one) for one in phases]})


STARTED: Given = ("run.started", "", {"idea": {"name": "idea.md", "text": "", "sha256": "x"}})
CLOSED: Given = ("run.closed", "", {"outcome": "done", "exit": 0, "reason": "complete", "notes": ["n"]})
QUEUED: Given = ("step.queued", "1/execute/01-01", {"why": "a slot", "hint": "stop one"})
BLOCKED: Given = ("run.closed", "", {"outcome": "blocked", "exit": 3})
ERROR = {"error": {"kind": "Permanent", "message": "no", "hint": "", "until": None}}
FAILURE = Failure(kind="Permanent", message="no")


def begun(step: str = "1/plan", **data: Any) -> Given:
    return ("attempt.started", step, data)


def lost(step: str = "1/plan", **data: Any) -> Given:
    return ("attempt.lost", step, {"why": "gone", **data})


def result(step: str = "1/plan", **data: Any) -> Given:
    return ("step.result", step, data)


def completed(step: str = "1/plan", **data: Any) -> Given:
    return ("step.completed", step, data)


DONE = (begun(), result(), completed())
FAILED = (begun(), ("step.failed", "1/plan", ERROR))
THREE_LOST = (begun(), lost(), begun(), lost(), begun(), lost())
VERIFIED = (begun("1/verify"), result("1/verify", gaps=["a"]), completed("1/verify"))
CHOICE = asked("1/verify", kind="escalation")

DEFERRED: Given = ("task.deferred", "1/plan", {"task": 1, "name": "a", "reason": "b", "plan": "01-01"})
RECORDS: Mapping[str, tuple[tuple[Given, ...], str, dict[str, Any]]] = {
    "an attempt": (
        (begun(for_gaps=True, base_commit="c", dirty_before=["a"]),),
        "1/plan",
        {
            "status": "running",
            "attempt": 1,
            "epoch": 1,
            "base": 1,
            "for_gaps": True,
            "base_commit": "c",
            "dirty_before": ("a",),
            "started_at": NOON + timedelta(minutes=1),
            "ended_at": None,
        },
    ),
    "an attempt of an old version": (
        (("attempt.started", "1/plan", {}),),
        "1/plan",
        {"base_commit": "", "dirty_before": (), "for_gaps": False},
    ),
    "a second attempt keeps where the step began": (
        (begun(base_commit="c"), lost(), begun(base_commit="d")),
        "1/plan",
        {"base": 1, "base_commit": "c", "started_at": NOON + timedelta(minutes=1), "generation": 0},
    ),
    "an attempt after completion": (
        (*DONE, begun(base_commit="d")),
        "1/plan",
        {"status": "running", "generation": 1, "base": 4, "base_commit": "d", "completed": 1, "result": 0},
    ),
    "an attempt after a skip": (
        (("step.skipped", "1/plan", {}), begun()),
        "1/plan",
        {"status": "running", "generation": 1, "base": 2},
    ),
    "a deferred task": ((begun(), DEFERRED, lost()), "1/plan", {"deferred": True}),
    "a deferred task, and a step that is begun again": (
        (begun(), DEFERRED, *DONE, begun()),
        "1/plan",
        {"deferred": False},
    ),
    "lost": ((begun(), lost()), "1/plan", {"status": "waiting", "lost": 1}),
    "lost three times, and the run was opened again": (
        (STARTED, opened(), begun(), *THREE_LOST, BLOCKED, opened()),
        "1/plan",
        {"status": "waiting", "lost": 0, "generation": 1, "base": 3},
    ),
    "failed, and the run was opened again": (
        (STARTED, opened(), *FAILED, BLOCKED, opened()),
        "1/plan",
        {"status": "waiting", "generation": 1, "base": 6},
    ),
    "its work could not be merged": (
        (begun(base_commit="c"), result(), ("merge.failed", "1/plan", {"ours": "a", "theirs": "b"})),
        "1/plan",
        {"status": "waiting", "generation": 1, "base": 3, "result": 0, "base_commit": ""},
    ),
    "stopped on request": ((begun(), lost(why="stopped")), "1/plan", {"status": "waiting", "lost": 0}),
    "it waits for an answer": (
        (begun(), lost(questions=["q-1"])),
        "1/plan",
        {"status": "parked", "lost": 0},
    ),
    "a task is progress": (
        (begun(), lost(), begun(), ("task.committed", "1/plan", {"task": "01-01/1"})),
        "1/plan",
        {"lost": 0},
    ),
    "a call that ended is progress": (
        (begun(), lost(), ("agent.closed", "1/plan", {"ended": "done"})),
        "1/plan",
        {"lost": 0},
    ),
    "a call that was lost is none": (
        (begun(), lost(), ("agent.closed", "1/plan", {"ended": "lost"})),
        "1/plan",
        {"lost": 1},
    ),
    "an attempt failed": (
        (begun(), lost(), begun(), ("attempt.failed", "1/plan", ERROR)),
        "1/plan",
        {"status": "waiting", "failure": FAILURE, "lost": 0},
    ),
    "a timer": (
        (begun(), ("timer.set", "1/plan", {"until": NOON.isoformat()})),
        "1/plan",
        {"status": "waiting", "until": NOON},
    ),
    "a timer before the first attempt": (
        (("timer.set", "1/plan", {"until": NOON.isoformat()}),),
        "1/plan",
        {"status": "waiting", "until": NOON, "attempt": 0},
    ),
    "its time has come": (
        (("timer.set", "1/plan", {"until": NOON.isoformat()}), ("timer.fired", "1/plan", {})),
        "1/plan",
        {"status": "waiting", "until": None},
    ),
    "a result": (
        (begun(), lost(), begun(), result()),
        "1/plan",
        {"status": "result", "result": 4, "lost": 0, "gaps": (), "failed_detectors": (), "passed": True},
    ),
    "a result with gaps": (
        (begun(), result(gaps=["a"])),
        "1/plan",
        {"gaps": ("a",), "passed": False},
    ),
    "a result without one detector": (
        (begun(), result(failed_detectors=["x"])),
        "1/plan",
        {"gaps": (), "failed_detectors": ("x",), "passed": False},
    ),
    "complete": (
        (begun(), ("attempt.failed", "1/plan", ERROR), *DONE),
        "1/plan",
        {"status": "completed", "completed": 1, "failure": None, "ended_at": NOON + timedelta(minutes=5)},
    ),
    "failed": (
        FAILED,
        "1/plan",
        {"status": "failed", "failure": FAILURE, "until": None, "ended_at": NOON + timedelta(minutes=2)},
    ),
    "failed before the first attempt": (FAILED[1:], "1/plan", {"status": "failed", "attempt": 0}),
    "opened again after a failure": (
        (STARTED, opened(), *FAILED, BLOCKED, opened()),
        "1/plan",
        {"status": "waiting", "generation": 1, "base": 6, "failure": None, "started_at": None},
    ),
    "opened again after three lost attempts": (
        (STARTED, opened(), *THREE_LOST, BLOCKED, opened()),
        "1/plan",
        {"status": "waiting", "generation": 1, "lost": 0},
    ),
    "opened again after two": (
        (STARTED, opened(), *THREE_LOST[:4], BLOCKED, opened()),
        "1/plan",
        {"status": "waiting", "generation": 0, "lost": 2},
    ),
    "killed after three lost attempts": (
        (STARTED, opened(), *THREE_LOST, opened()),
        "1/plan",
        {"status": "waiting", "generation": 0, "lost": 3},
    ),
    "opened again after a completion": (
        (STARTED, opened(), *DONE, CLOSED, opened()),
        "1/plan",
        {"status": "completed", "generation": 0},
    ),
    "retry": (
        (*FAILED, asked("1/plan", kind="escalation"), answered("Retry")),
        "1/plan",
        {"status": "waiting", "generation": 1, "base": 4, "failure": None},
    ),
    "retry after gaps": ((seen(PASSED), *VERIFIED, CHOICE, answered("Retry")), "1/verify", {"generation": 0}),
    "retry after a failed verification": (
        (begun("1/verify"), ("step.failed", "1/verify", ERROR), CHOICE, answered("Retry")),
        "1/verify",
        {"status": "waiting", "generation": 1},
    ),
    "skip": ((*VERIFIED, CHOICE, answered("Skip")), "1/verify", {"status": "skipped"}),
    "skip a step that was asked for": (
        (("step.asked", "1/verify", {"text": "t"}), *VERIFIED[:2], CHOICE, answered("skip, please")),
        "1/verify",
        {"status": "skipped"},
    ),
    "an answer to another question": (
        (*FAILED, asked("1/plan", kind="escalation"), answered("Retry", question="q-2")),
        "1/plan",
        {"status": "failed", "generation": 0},
    ),
    "an answer that decides nothing": (
        (*FAILED, asked("1/plan"), answered("Yes")),
        "1/plan",
        {"status": "failed"},
    ),
}

STATES: Mapping[str, tuple[tuple[Given, ...], dict[str, Any]]] = {
    "a run": (
        (
            (
                "run.started",
                "",
                {"idea": {"sha256": "x", "name": "i", "text": ""}, "milestone": "v2", "journal_lost": True},
            ),
        ),
        {"run": "r", "idea": "x", "idea_name": "i", "milestone": "v2", "journal_lost": True, "seq": 1},
    ),
    "a run without an idea": ((("run.started", "", {"idea": None}),), {"idea": "", "idea_name": ""}),
    "opened": (
        (STARTED, ("run.opened", "", {"claims": {"ticked": ["1"]}, "answered": ["map"]})),
        {
            "options": Options(),
            "lifecycle": Options(),
            "claims": Claims(ticked=("1",)),
            "answered": ("map",),
            "epoch": 1,
        },
    ),
    "opened by an old version": ((STARTED, opened()), {"claims": None, "answered": ()}),
    "opened for steps": (
        (STARTED, opened(gap_rounds=2), opened(only_asked=True)),
        {"options": Options(only_asked=True), "lifecycle": Options(gap_rounds=2)},
    ),
    "opened again": (
        (STARTED, opened(), ("control.asked", "", {"what": "stop"}), CLOSED, opened()),
        {"closed": None, "stop_asked": False, "reason": "", "notes": ()},
    ),
    "closed": (
        (STARTED, opened(), CLOSED),
        {"closed": "done", "exit": 0, "reason": "complete", "notes": ("n",), "asked_end": None},
    ),
    "steps only, before any run": (
        (STARTED, opened(only_asked=True), CLOSED),
        {"closed": "stopped", "asked_end": Closing(outcome="done", reason="complete", notes=("n",))},
    ),
    "steps only, after a run was closed": (
        (STARTED, opened(gap_rounds=2), BLOCKED, opened(only_asked=True), CLOSED),
        {
            "closed": "blocked",
            "exit": 3,
            "options": Options(gap_rounds=2),
            "lifecycle": Options(gap_rounds=2),
        },
    ),
    "steps only, twice": (
        (STARTED, opened(), BLOCKED, opened(only_asked=True), opened(only_asked=True), CLOSED),
        {"closed": "blocked", "exit": 3},
    ),
    "steps only, after a run was killed": (
        (STARTED, opened(), opened(only_asked=True), CLOSED),
        {"closed": "stopped", "closed_before": None},
    ),
    "a run after steps only": (
        (STARTED, opened(), BLOCKED, opened(only_asked=True), CLOSED, opened()),
        {"closed": None, "asked_end": None},
    ),
    "a plan for which no agent is free": (
        (STARTED, opened(), QUEUED),
        {
            "queued": {
                "1/execute/01-01": Queued(at=NOON + timedelta(minutes=3), why="a slot", hint="stop one")
            },
            "steps": {},
        },
    ),
    "its agent begins": ((STARTED, opened(), QUEUED, begun("1/execute/01-01")), {"queued": {}}),
    "it waits in a process that is gone": ((STARTED, opened(), QUEUED, opened()), {"queued": {}}),
    "stop": (
        (("control.asked", "", {"what": "stop"}),),
        {"stop_asked": True, "pause_asked": False},
    ),
    "pause, then stop": (
        (("control.asked", "", {"what": "pause"}), ("control.asked", "", {"what": "stop"})),
        {"stop_asked": True, "pause_asked": True},
    ),
    "asked for": (
        (("step.asked", "map", {"text": "t"}), ("step.asked", "1/plan", {})),
        {"asked": {"map": "t", "1/plan": ""}, "requested": ("map", "1/plan")},
    ),
    "asked for and withdrawn": (
        (("step.asked", "map", {}), ("step.asked", "1/plan", {}), ("step.withdrawn", "map", {})),
        {"asked": {"1/plan": ""}},
    ),
    "asked for and done": (
        (("step.asked", "1/plan", {}), ("step.asked", "map", {}), *DONE),
        {"asked": {"map": ""}, "answered": ("1/plan",)},
    ),
    "done without being asked for": (DONE, {"answered": ()}),
    "plans were written": (
        (*DONE[:2], completed(plans={"a": "1"}), *DONE[:2], completed(plans={"b": "2"})),
        {"plan_digests": {"a": "1", "b": "2"}},
    ),
    "a plan was edited twice": (
        (
            ("plan.edited", "", {"path": "a", "sha256": "2", "plan": "01-01"}),
            ("plan.edited", "", {"path": "a", "sha256": "3", "plan": "01-01"}),
        ),
        {"plan_digests": {"a": "3"}, "edited_plans": ("01-01",)},
    ),
    "a verification covers the plans with a summary": (
        (seen(phase("1", "01-01* 01-02")), *VERIFIED),
        {"verified": {"1": ("01-01",)}},
    ),
    "a verification of a phase that is gone": ((seen(phase("2")), *VERIFIED), {"verified": {"1": ()}}),
    "a verification, and nothing was seen": (VERIFIED, {"verified": {"1": ()}}),
    "another step covers nothing": ((seen(PASSED), *DONE), {"verified": {}}),
    "skipped with what depends on it": (
        (("step.skipped", "1/plan", {"dependents": ["2"]}), ("step.skipped", "1/verify", {})),
        {"skipped": ("1", "2")},
    ),
    "skip": (
        (
            seen(phase("1"), phase("2", depends_on=("1",)), phase("3")),
            *VERIFIED,
            CHOICE,
            answered("Skip"),
        ),
        {"skipped": ("1", "2"), "aborted": ""},
    ),
    "skip a step of no phase": (
        (begun("audit/v1"), asked("audit/v1", kind="escalation"), answered("Skip")),
        {"skipped": (), "aborted": "audit/v1"},
    ),
    "skip a step that was asked for": (
        (("step.asked", "1/verify", {}), *VERIFIED[:2], CHOICE, answered("Skip")),
        {"skipped": (), "asked": {}, "answered": ("1/verify",)},
    ),
    "abort": ((*VERIFIED, CHOICE, answered("abort")), {"aborted": "1/verify"}),
    "abort a step that nobody has begun": ((CHOICE, answered("abort")), {"aborted": ""}),
    "retry after gaps": (
        (
            seen(PASSED),
            begun("1/plan/r1", for_gaps=True),
            result("1/plan/r1"),
            completed("1/plan/r1"),
            *VERIFIED,
            CHOICE,
            answered("Retry"),
        ),
        {"allowances": {"1": Allowance(rounds=2, verifications=2)}},
    ),
    "retry after a failure": (
        (begun("1/verify"), ("step.failed", "1/verify", ERROR), CHOICE, answered("Retry")),
        {"allowances": {}},
    ),
    "a fact without a meaning": ((STARTED, ("agent.called", "", {})), {"seq": 1}),
}


@pytest.mark.parametrize("name", RECORDS)
def test_what_facts_change_in_a_step(name: str) -> None:
    facts, step, expected = RECORDS[name]
    found = after(*facts).steps[step]
    assert {key: getattr(found, key) for key in expected} == expected


@pytest.mark.parametrize("name", STATES)
def test_what_facts_change_in_a_run(name: str) -> None:
    facts, expected = STATES[name]
    found = after(*facts)
    assert {key: getattr(found, key) for key in expected} == expected


def test_facts_of_other_runs_are_skipped() -> None:
    state = after(STARTED, opened())
    assert after(begun(), run="other", state=state) == state
    assert after(begun(), state=state).steps.keys() == {"1/plan"}


def test_questions() -> None:
    [(key, record)] = after(asked("1/discuss")).inquiries.items()
    assert (key, record.key, record.open, record.at) == ("q-1", "o", True, NOON + timedelta(minutes=1))
    assert not after(asked("1/discuss"), answered("Yes")).inquiries["q-1"].open
    withdrawn = ("question.withdrawn", "", {"key": "q-1"})
    assert not after(asked("1/discuss"), withdrawn).inquiries["q-1"].open
    assert after(withdrawn).inquiries == {}


@pytest.mark.parametrize(
    ("facts", "is_open"),
    [
        ((STARTED, opened(), *FAILED, asked("1/plan", kind="escalation"), BLOCKED, opened()), False),
        ((STARTED, opened(), *THREE_LOST, asked("1/plan", kind="escalation"), BLOCKED, opened()), False),
        ((STARTED, opened(), begun(), lost(questions=["q-1"]), asked("1/plan"), BLOCKED, opened()), True),
        ((STARTED, opened(), asked("1/plan"), BLOCKED, opened()), True),
        ((STARTED, opened(), *FAILED, asked("1/plan"), answered("Yes"), BLOCKED, opened()), False),
    ],
)
def test_a_run_that_is_opened_again_asks_anew_about_what_was_given_up(
    facts: tuple[Given, ...], is_open: bool
) -> None:
    assert after(*facts).inquiries["q-1"].open is is_open


def test_each_kind_of_fact_has_a_row() -> None:
    rows = [row[0] for row in RECORDS.values()] + [row[0] for row in STATES.values()]
    assert {kind for facts in rows for kind, _, _ in facts} >= FACT_KINDS - {"question.withdrawn"}
