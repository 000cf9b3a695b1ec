"""The status of each must-have in VERIFICATION.md, and the score."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from gsd_core import (
    Artifact,
    BadArtifact,
    CheckResult,
    Evidence,
    Gap,
    GapReport,
    HumanCheck,
    KeyLink,
    MustHaves,
    PhaseView,
    Plan,
    TaskCheck,
    Truth,
    Verdict,
)
from gsd_core.planning.must_haves import unserved_requirements
from gsd_core.planning.verification import parse_verdict, render_verification
from gsd_plugins import must_haves

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
APP = Artifact(path="app.py", provides="the program")
LINK = KeyLink(source="app.py", target="store.py", via="import")


def a_plan(
    *truths: str,
    artifacts: tuple[Artifact, ...] = (),
    links: tuple[KeyLink, ...] = (),
    plan: str = "01-01",
    **fields: Any,
) -> Plan:
    found = tuple(Truth(id=f"{plan}:T{n}", text=text) for n, text in enumerate(truths, start=1))
    must = MustHaves(truths=found, artifacts=artifacts, key_links=links)
    return Plan(id=plan, phase="1", must_haves=must, summary="SUMMARY.md", **fields)


def a_phase(*plans: Plan, project: Path = Path("/p"), **fields: Any) -> PhaseView:
    return PhaseView(number="1", name="Notes", project=project, goal="Notes are kept", plans=plans, **fields)


def holds(*names: str) -> tuple[Evidence, ...]:
    return tuple(Evidence(about=name, holds=True, proof=f"saw {name}") for name in names)


def rendered(phase: PhaseView, *gaps: Gap, **fields: Any) -> str:
    return render_verification(phase, GapReport(gaps=gaps, **fields), now=NOW)


def score(text: str) -> str:
    found = parse_verdict(text, path="v.md").score
    assert f"**Score:** {found}\n" in text
    return found


def rows(text: str, title: str) -> list[list[str]]:
    """Return the rows of the table under a heading."""
    lines = text.partition(f"### {title}\n\n")[2].partition("\n\n")[0].splitlines()
    return [[part.strip() for part in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize(("count", "length"), [(107, 90), (400, 1_900), (2_000, 60)])
def test_a_verdict_of_any_size_is_read_back(count: int, length: int) -> None:
    text = "it says 'no' \\d " * 200
    gaps = [
        Gap(
            truth=f"{n} {text}"[:length],
            reason=text[:length],
            evidence=text[:length],
            about=f"01-01:T{n}",
            artifacts=(BadArtifact(path="src/a.py", issue=text[:length]),) * 20,
            missing=(text[:length],) * 20,
            found_by="must_haves",
        )
        for n in range(count)
    ]
    looks = tuple(HumanCheck(test=f"{n} {text}"[:length], expected=text[:length]) for n in range(100))
    before = parse_verdict(rendered(a_phase(a_plan("x")), *gaps[: count // 2]), path="v.md")
    report = GapReport(gaps=tuple(gaps), human=looks)
    written = render_verification(a_phase(a_plan("x")), report, now=NOW, previous=before)
    verdict = parse_verdict(written, path="v.md")

    assert (verdict.status, verdict.flaws, len(verdict.human)) == ("gaps_found", (), len(looks))
    assert [gap.about for gap in verdict.gaps[:50]] == [gap.about for gap in gaps[:50]]
    [*listed, last] = verdict.gaps
    assert len(verdict.gaps) == count or last.truth == f"{count - len(listed)} more gaps are closed"
    assert count > 107 or len(verdict.gaps) == count


def test_the_detector_s_findings_on_files_and_links_are_reported(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("from store import load\n\nprint(load())\n")
    promised = Artifact(path="./app.py", provides="the program")
    phase = a_phase(a_plan("It runs", artifacts=(promised,), links=(LINK,)), project=tmp_path)
    report = asyncio.run(must_haves.must_haves_hold(phase))
    assert isinstance(report, GapReport)

    text = render_verification(phase, report, now=NOW)

    assert [row[0] for row in rows(text, "Required Artifacts")] == ["app.py"]
    assert "✓ VERIFIED" in rows(text, "Required Artifacts")[0]
    assert "✓ WIRED" in rows(text, "Key Link Verification")[0]


def test_a_missing_file_and_a_missing_link_are_reported(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("print('hello')\n")
    promised = (APP, Artifact(path="store.py"))
    phase = a_phase(a_plan("It runs", artifacts=promised, links=(LINK,)), project=tmp_path)
    report = asyncio.run(must_haves.must_haves_hold(phase))
    assert isinstance(report, GapReport)

    text = render_verification(phase, report, now=NOW)

    assert "✗ MISSING" in rows(text, "Required Artifacts")[1]
    assert "✗ NOT_WIRED" in rows(text, "Key Link Verification")[0]


def test_a_must_have_of_two_plans_has_one_row() -> None:
    one = a_plan("It runs", artifacts=(APP,), links=(LINK,))
    other = a_plan("it runs.", artifacts=(Artifact(path="./app.py"),), links=(LINK,), plan="01-02")
    text = rendered(a_phase(one, other), evidence=holds("01-02:T1", "01-02:A1", "01-02:L1"))

    titles = ("Observable Truths", "Required Artifacts", "Key Link Verification")
    assert [len(rows(text, title)) for title in titles] == [1, 1, 1]
    assert score(text) == "3/3 must-haves verified"


def test_the_score_counts_the_truths_files_and_links_that_were_examined() -> None:
    phase = a_phase(a_plan("It runs", "It stops", artifacts=(APP,), links=(LINK,)))
    gap = Gap(truth="app.py provides the program", reason="it does not exist", about="app.py")
    text = rendered(phase, gap, evidence=holds("01-01:T1", "01-01:T2"))

    assert score(text) == "2/3 must-haves verified"


def test_a_gap_that_is_not_about_a_must_have_lowers_the_score() -> None:
    gap = Gap(truth="The check of task 2 passes", reason="exit code 1", about="01-01/2")
    text = rendered(a_phase(a_plan("It runs")), gap, evidence=holds("01-01:T1"))

    assert score(text) == "1/2 must-haves verified"


def test_a_failed_detector_lowers_the_score() -> None:
    text = rendered(a_phase(a_plan("It runs")), evidence=holds("01-01:T1"), failed_detectors=("uat: broken",))

    assert score(text) == "1/2 must-haves verified"


def test_a_must_have_that_needs_a_human_is_not_verified_yet() -> None:
    check = HumanCheck(test="Open the page", expected="It is blue", about="01-01:T2")
    text = rendered(a_phase(a_plan("It runs", "It is blue")), evidence=holds("01-01:T1"), human=(check,))

    assert "? NEEDS HUMAN" in rows(text, "Observable Truths")[1]
    assert score(text) == "1/2 must-haves verified"


def test_without_truths_the_success_criteria_are_counted() -> None:
    phase = a_phase(a_plan(), criteria=("A note is kept", "A note is found"))
    gap = Gap(truth="A note is found", reason="no search", about="01:C2")
    text = rendered(phase, gap, evidence=holds("01:C1"))

    assert [row[1:3] for row in rows(text, "Observable Truths")] == [
        ["A note is kept", "✓ VERIFIED"],
        ["A note is found", "✗ FAILED"],
    ]
    assert score(text) == "1/2 must-haves verified"


def test_without_truths_and_criteria_the_goal_is_counted() -> None:
    text = rendered(a_phase(a_plan()), evidence=holds("01:C1"))

    assert rows(text, "Observable Truths")[0][1:3] == ["Notes are kept", "✓ VERIFIED"]
    assert score(text) == "1/1 must-haves verified"


def test_an_unverified_must_have_is_uncertain_and_not_counted() -> None:
    gap = Gap(truth="It runs", reason="could not tell", about="01-01:T1", status="unverified")
    text = rendered(a_phase(a_plan("It runs")), gap)

    assert rows(text, "Observable Truths")[0][2] == "? UNCERTAIN"
    assert score(text) == "0/1 must-haves verified"


def test_a_verification_states_whether_it_is_a_re_verification() -> None:
    phase, report = a_phase(a_plan("It runs")), GapReport(evidence=holds("01-01:T1"))
    gap = Gap(truth="It runs", reason="it does not", about="01-01:T1")
    first = render_verification(phase, report, now=NOW)
    again = render_verification(phase, report, now=NOW, previous=Verdict(status="gaps_found", gaps=(gap,)))

    assert "**Re-verification:** No" in first
    assert "**Re-verification:** Yes" in again


def test_the_time_that_measuring_the_checks_took_is_shown_without_test_cases_too() -> None:
    check = TaskCheck(plan="01-01", task=1, result=CheckResult(command="sh check.sh", exit=0))
    phase = a_phase(a_plan(), checks=(check,), measured_for=timedelta(seconds=2))
    cut = attrs.evolve(phase, measured_all=False)

    assert "It took 2.0 s to see which of them need the work.\n" in rendered(phase)
    assert "the work. There was no time to try all faults.\n" in rendered(cut)


def test_a_link_is_shown_with_both_ends_and_its_means() -> None:
    text = rendered(a_phase(a_plan("It runs", links=(LINK,))))

    assert rows(text, "Key Link Verification") == [["app.py", "store.py", "import", "? UNCERTAIN", "-"]]


def covered(*plans: Plan, gaps: tuple[Gap, ...] = (), **fields: Any) -> list[list[str]]:
    phase = a_phase(*plans, requirements=("NOTE-01",), criteria=("It is kept",))
    return [row[1:3] for row in rows(rendered(phase, *gaps, **fields), "Requirements Coverage")]


def test_a_requirement_is_satisfied_if_the_must_haves_of_its_plans_hold() -> None:
    one = a_plan("It runs", requirements=("NOTE-01",))
    other = a_plan("It stops", plan="01-02")

    assert covered(one, other, evidence=holds("01-01:T1", "NOTE-01")) == [["01-01", "✓ SATISFIED"]]


def test_a_requirement_is_not_satisfied_by_its_truths_alone() -> None:
    plan = a_plan("It runs", requirements=("NOTE-01",))

    assert covered(plan, evidence=holds("01-01:T1")) == [["01-01", "? UNCERTAIN"]]


def test_a_requirement_is_judged_by_the_truths_that_serve_it() -> None:
    serving = Truth(id="01-01:T1", text="It runs", serves=("NOTE-01",))
    other = Truth(id="01-01:T2", text="It stops", serves=("01:C1",))
    plan = attrs.evolve(a_plan(requirements=("NOTE-01",)), must_haves=MustHaves(truths=(serving, other)))
    gap = Gap(truth="It stops", reason="it does not", about="01-01:T2")

    evidence = holds("NOTE-01", "01-01:T1")
    assert covered(plan, gaps=(gap,), evidence=evidence) == [["01-01", "✓ SATISFIED"]]


def test_a_gap_closes_only_what_it_is_about() -> None:
    phase = a_phase(a_plan("It is kept", requirements=("NOTE-01",)), criteria=("It is kept",))
    text = rendered(phase, Gap(truth="It is kept", reason="no", about="01:C1"), evidence=holds("01-01:T1"))

    assert [row[2] for row in rows(text, "Observable Truths")] == ["✓ VERIFIED", "✗ FAILED"]


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (a_plan("It runs"), "no plan"),
        (
            attrs.evolve(
                a_plan(requirements=("NOTE-01",)),
                must_haves=MustHaves(truths=(Truth(id="01-01:T1", text="t", serves=("01:C1",)),)),
            ),
            "no truth",
        ),
    ],
)
def test_a_requirement_without_a_plan_or_a_truth_is_a_gap(plan: Plan, reason: str) -> None:
    [gap] = unserved_requirements(a_phase(plan, requirements=("NOTE-01",)))

    assert (gap.about, gap.status) == ("NOTE-01", "unverified")
    assert gap.reason.startswith(reason)


def test_a_requirement_that_a_truth_serves_is_no_gap() -> None:
    truth = Truth(id="01-01:T1", text="t", serves=("NOTE-01",))
    plan = attrs.evolve(a_plan(), must_haves=MustHaves(truths=(truth,)))

    assert list(unserved_requirements(a_phase(plan, requirements=("NOTE-01",)))) == []


def test_what_was_assumed_does_not_count_as_verified_and_is_read_back() -> None:
    look = HumanCheck(test="Open the page", expected="It is blue", about="01-01:T2")
    text = rendered(a_phase(a_plan("It runs", "It is blue")), evidence=holds("01-01:T1"), assumed=(look,))
    verdict = parse_verdict(text, path="v.md")

    assert (verdict.status, verdict.score) == ("passed", "1/2 must-haves verified")
    assert [(check.test, check.result) for check in verdict.human] == [("Open the page", "assumed")]
    assert rows(text, "Observable Truths")[1][2] == "? ASSUMED"


def test_a_requirement_is_blocked_by_a_gap_in_one_of_its_plans() -> None:
    plan = a_plan("It runs", artifacts=(APP,), requirements=("NOTE-01",))
    missing = Gap(truth="app.py is there", reason="it does not exist", about="app.py")
    failing = Gap(truth="The check passes", reason="exit code 1", about="01-01/1")
    unmet = Gap(truth="Notes are kept", reason="they are not", about="NOTE-01")
    proven = holds("01-01:T1", "NOTE-01")

    for gap in (missing, failing, unmet):
        assert covered(plan, gaps=(gap,), evidence=proven) == [["01-01", "✗ BLOCKED"]]


def test_a_requirement_is_uncertain_or_needs_a_human_if_one_of_its_must_haves_does() -> None:
    plan = a_plan("It runs", "It is blue", artifacts=(APP,), requirements=("NOTE-01",))
    look = HumanCheck(test="Open the page", expected="It is blue", about="01-01:T2")

    assert covered(plan, evidence=holds("app.py", "NOTE-01")) == [["01-01", "? UNCERTAIN"]]
    proven = holds("01-01:T1", "NOTE-01")
    assert covered(plan, evidence=proven, human=(look,)) == [["01-01", "? NEEDS HUMAN"]]
    assert covered(plan, evidence=proven, assumed=(look,)) == [["01-01", "? ASSUMED"]]


def test_a_requirement_that_no_plan_names_is_orphaned() -> None:
    assert covered(a_plan("It runs"), evidence=holds("01-01:T1")) == [["-", "✗ ORPHANED"]]


def test_a_requirement_that_no_truth_serves_is_orphaned() -> None:
    truth = Truth(id="01-01:T1", text="t", serves=("01:C1",))
    plan = attrs.evolve(a_plan(requirements=("NOTE-01",)), must_haves=MustHaves(truths=(truth,)))

    assert covered(plan, evidence=holds("01:C1", "NOTE-01")) == [["01-01", "✗ ORPHANED"]]


@pytest.mark.parametrize("count", [1, 12, 60])
def test_a_very_long_verification_can_be_read(count: int) -> None:
    long = 'line "one"\n' * 180
    gaps = tuple(
        Gap(truth=f"Truth {n}", reason=long, about=f"01-01:T{n}", evidence=long, missing=(long, long))
        for n in range(1, count + 1)
    )
    text = rendered(a_phase(a_plan(*(gap.truth for gap in gaps))), *gaps)

    verdict = parse_verdict(text, path="v.md")
    assert (verdict.status, verdict.score) == ("gaps_found", f"0/{count} must-haves verified")
    assert [gap.key for gap in verdict.gaps] == [gap.key for gap in gaps]
