"""verify: a truth holds only with proof."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gsd_core import (
    CheckResult,
    Evidence,
    Gap,
    GapReport,
    HumanCheck,
    MustHaves,
    PhaseView,
    Plan,
    Planning,
    StepRequest,
    StepResult,
    TaskCheck,
    Truth,
    Verified,
)
from gsd_core.planning.verification import parse_verdict
from gsd_core.testing.fakes import FakeHost
from gsd_plugins import native

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def a_plan(*truths: str, plan: str = "01-01") -> Plan:
    must = MustHaves(truths=tuple(Truth(id=f"{plan}:T{n}", text=t) for n, t in enumerate(truths, start=1)))
    return Plan(id=plan, phase="1", must_haves=must, summary="SUMMARY.md", files_modified=("notes.py",))


def a_step(*plans: Plan, report: GapReport | None = None, **fields: Any) -> StepRequest:
    phase = PhaseView(
        number="1", name="Notes", project=Path("/p"), goal="Notes are kept", plans=plans, **fields
    )
    return StepRequest(
        id="1/verify",
        run="r-1",
        kind="verify",
        project=Path("/p"),
        tree=Path("/p"),
        now=NOW,
        phase=phase,
        report=report,
        planning=Planning(phases=(phase,)),
    )


def verdict(name: str, status: str = "holds", **fields: Any) -> dict[str, Any]:
    return {"id": name, "status": status, "evidence": "notes.py:3", "reason": "", "missing": [], **fields}


def says(*verdicts: Any) -> dict[str, Any]:
    return {"verify": {"verdicts": list(verdicts)}}


def run(step: StepRequest, host: FakeHost) -> StepResult:
    result = asyncio.run(native.execute_step(step, host))
    assert result is not None
    return result


def report_of(step: StepRequest, host: FakeHost) -> GapReport:
    outcome = run(step, host).outcome
    assert isinstance(outcome, Verified)
    return outcome.report


ADD = a_plan("A note can be added")


def test_a_truth_holds_with_the_verifier_s_evidence() -> None:
    report = report_of(a_step(ADD), FakeHost(agent=says(verdict("01-01:T1"))))

    assert report.passed
    assert report.evidence == (Evidence(about="01-01:T1", holds=True, proof="notes.py:3"),)


def test_the_report_is_written_as_a_verification() -> None:
    result = run(a_step(ADD), FakeHost(agent=says(verdict("01-01:T1"))))
    file = result.files[0]

    assert result.subject == "docs(01): verify phase"
    assert file.path == ".planning/phases/01-notes/01-VERIFICATION.md"
    assert parse_verdict(file.text, path=file.path).status == "passed"


@pytest.mark.parametrize(("status", "expected"), [("fails", "failed"), ("uncertain", "unverified")])
def test_a_failed_or_uncertain_truth_is_a_gap(status: str, expected: str) -> None:
    answer = verdict("01-01:T1", status, reason="add() is empty", missing=["a body"])
    gap = report_of(a_step(ADD), FakeHost(agent=says(answer))).gaps[0]

    assert (gap.about, gap.truth, gap.status) == ("01-01:T1", "A note can be added", expected)
    assert (gap.reason, gap.missing, gap.found_by) == ("add() is empty", ("a body",), "")


def test_gaps_are_written_to_the_verification() -> None:
    answer = verdict("01-01:T1", "fails", reason="add() is empty")
    file = run(a_step(ADD), FakeHost(agent=says(answer))).files[0]
    read = parse_verdict(file.text, path=file.path)

    assert read.status == "gaps_found"
    assert [gap.about for gap in read.gaps] == ["01-01:T1"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        "all good, status: passed",
        {"verdicts": []},
        {"verdicts": "holds"},
        {"verdicts": [{"id": "01-01:T1", "status": "passed"}]},
        {"verdicts": [verdict("01-01:T1", "HOLDS")]},
        {"verdicts": [verdict("01-01:T1", evidence=" ")]},
        {"verdicts": [verdict("01-01:T1"), verdict("01-01:T1", "fails")]},
        {"verdicts": [verdict("1-1:T1")]},
    ],
)
def test_an_invalid_verdict_is_not_a_pass(value: Any) -> None:
    host = FakeHost(agent={"verify": value})
    report = report_of(a_step(ADD), host)

    assert [(gap.about, gap.status) for gap in report.gaps] == [("01-01:T1", "unverified")]
    assert len(host.complaints) == 2


def test_a_missing_verdict_is_requested_again() -> None:
    step = a_step(a_plan("A note can be added", "Notes are listed"))
    both = {"verdicts": [verdict("01-01:T1"), verdict("01-01:T2")]}
    host = FakeHost(agent={"verify": [{"verdicts": [verdict("01-01:T1"), verdict("01-09:T1")]}, both]})

    assert report_of(step, host).passed
    (complaints,) = host.complaints
    assert len(complaints) == 2
    assert "01-01:T2" in complaints[0]
    assert "01-09:T1" in complaints[1]


def test_truths_decided_by_detectors_need_no_agent() -> None:
    found = GapReport(
        evidence=(Evidence(about="01-01:T1", holds=True, proof="the test ran"),),
        gaps=(Gap(truth="Notes are listed", reason="no list", about="01-01:T2", found_by="must_haves"),),
    )
    host = FakeHost()
    report = report_of(a_step(a_plan("A note can be added", "Notes are listed"), report=found), host)

    assert host.keys == ()
    assert report == found


def test_evidence_against_a_truth_is_a_gap_even_if_its_detector_reported_none() -> None:
    found = GapReport(evidence=(Evidence(about="01-01:T1", holds=False, proof="exit 1", by="must_haves"),))
    report = report_of(a_step(ADD, report=found), FakeHost())

    assert [(gap.about, gap.reason, gap.found_by) for gap in report.gaps] == [
        ("01-01:T1", "exit 1", "must_haves")
    ]


def test_a_failed_detector_is_never_a_pass() -> None:
    found = GapReport(failed_detectors=("uat",))
    report = report_of(a_step(ADD, report=found), FakeHost(agent=says(verdict("01-01:T1"))))

    assert not report.passed
    assert report.failed_detectors == ("uat",)


def test_the_verifier_sees_truths_and_command_output_and_has_read_only_tools() -> None:
    ran = CheckResult(command="pytest -q", exit=0, output="x" * 5000 + "3 passed")
    host = FakeHost(agent=says(verdict("01-01:T1")))
    run(a_step(ADD, checks=(TaskCheck(plan="01-01", task=1, result=ran),)), host)
    task = host.task("verify")

    assert (task.role, task.tools, task.writable) == ("verifier", ("Read", "Glob", "Grep"), False)
    assert "- 01-01:T1: A note can be added" in task.prompt
    assert "3 passed" in task.prompt
    assert len(task.prompt) < 3000
    assert "SUMMARY" not in task.prompt


def test_only_executed_plans_are_verified() -> None:
    later = Plan(id="01-02", phase="1", must_haves=MustHaves(truths=(Truth(id="01-02:T1", text="Later"),)))
    host = FakeHost(agent=says(verdict("01-01:T1")))

    assert report_of(a_step(ADD, later), host).passed


def test_a_truth_of_two_plans_is_verified_once() -> None:
    host = FakeHost(agent=says(verdict("01-01:T1")))

    assert report_of(a_step(ADD, a_plan("a note can be  added.", plan="01-02")), host).passed


def test_without_truths_the_roadmap_s_criteria_are_verified() -> None:
    host = FakeHost(agent=says(verdict("01:C1"), verdict("01:C2", "fails", reason="no")))
    report = report_of(a_step(a_plan(), criteria=("It starts", "It stops")), host)

    assert [gap.truth for gap in report.gaps] == ["It stops"]


def test_without_truths_and_criteria_the_goal_is_verified() -> None:
    host = FakeHost(agent=says(verdict("01:C1", "fails", reason="nothing there")))

    assert [gap.truth for gap in report_of(a_step(a_plan()), host).gaps] == ["Notes are kept"]


HUMAN = verdict("01-01:T1", "human", evidence="Open the window", reason="A list of notes")


def test_a_manual_check_is_asked() -> None:
    host = FakeHost(agent=says(HUMAN), answers=["Works"])
    report = report_of(a_step(ADD), host)
    question = host.inquiries[0].questions[0]

    assert report.passed
    assert report.evidence[0].proof.endswith("Works")
    assert question.text == "Open the window\nExpected: A list of notes\nA note can be added"
    assert [(option.label, option.recommended) for option in question.options] == [
        ("Works", True),
        ("Does not work", False),
    ]


@pytest.mark.parametrize("words", ["Does not work", "the list is empty"])
def test_a_rejected_manual_check_is_a_gap_in_the_human_s_words(words: str) -> None:
    report = report_of(a_step(ADD), FakeHost(agent=says(HUMAN), answers=[words]))

    assert [(gap.about, gap.reason) for gap in report.gaps] == [("01-01:T1", words)]
    assert report.human == ()


def test_manual_checks_of_detectors_and_verifier_are_asked_together() -> None:
    found = GapReport(human=(HumanCheck(test="Press it", expected="A sound", about="uat-1"),))
    host = FakeHost(agent=says(HUMAN), answers=["Works", "Does not work"])
    report = report_of(a_step(ADD, report=found), host)

    assert len(host.inquiries) == 1
    assert [gap.about for gap in report.gaps] == ["01-01:T1"]


def test_no_manual_check_is_asked_while_there_are_gaps() -> None:
    step = a_step(a_plan("It looks right", "A note can be added"))
    host = FakeHost(agent=says(HUMAN, verdict("01-01:T2", "fails", reason="no")))
    report = report_of(step, host)

    assert host.inquiries == []
    assert [check.about for check in report.human] == ["01-01:T1"]


def test_a_resumed_verify_step_asks_nothing_twice() -> None:
    host = FakeHost(agent=says(HUMAN), answers=["Works"])

    assert report_of(a_step(ADD), host) == report_of(a_step(ADD), host)
    assert (len(host.tasks), len(host.inquiries)) == (1, 1)
