"""Gaps from user acceptance tests, through the hook."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gsd_core import GapReport, PhaseView, PlanningError
from gsd_plugins import uat

FOLDER = ".planning/phases/01-greeting"
HEAD = "---\nstatus: {status}\nphase: 01-greeting\nsource: [01-01-SUMMARY.md]\n---\n\n## Tests\n\n"


def found(project: Path, text: str | None, *, status: str = "testing", name: str = "01-UAT.md") -> GapReport:
    folder = project / FOLDER
    folder.mkdir(parents=True)
    if text is not None:
        (folder / name).write_text(HEAD.format(status=status) + text, encoding="utf-8")
    return read(project)


def read(project: Path) -> GapReport:
    phase = PhaseView(number="1", name="Greeting", project=project, directory=FOLDER)
    report = asyncio.run(uat.find_uat_gaps(phase))
    assert isinstance(report, GapReport)
    return report


def test_no_file_gives_an_empty_report(tmp_path: Path) -> None:
    assert found(tmp_path, None) == GapReport()


def test_a_phase_without_a_folder_gives_an_empty_report(tmp_path: Path) -> None:
    phase = PhaseView(number="1", name="Greeting", project=tmp_path)

    assert asyncio.run(uat.find_uat_gaps(phase)) == GapReport()


def test_the_file_of_another_phase_is_ignored(tmp_path: Path) -> None:
    assert found(tmp_path, "### 1. A\nresult: issue\n", name="01.1-UAT.md") == GapReport()


def test_a_test_that_passed_is_evidence(tmp_path: Path) -> None:
    report = found(tmp_path, "### 1. It greets\nexpected: hello\nresult: pass (after a fix)\n")

    assert report.passed
    assert [evidence.about for evidence in report.evidence] == ["01-UAT:1"]
    assert report.evidence[0].proof.endswith(": pass (after a fix)")


def test_an_issue_is_a_gap_with_the_reported_words(tmp_path: Path) -> None:
    text = '### 1. It greets\nexpected: hello\nresult: issue\nreported: "it says bye"\nseverity: major\n'

    (gap,) = found(tmp_path, text).gaps

    assert (gap.truth, gap.reason, gap.about) == ("It greets", "it says bye (major)", "01-UAT:1")
    assert gap.evidence == "expected: hello"


@pytest.mark.parametrize("result", ["[pending]", "pending", ""])
def test_a_pending_test_is_a_manual_check(result: str, tmp_path: Path) -> None:
    (check,) = found(tmp_path, f"### 1. It greets\nexpected: hello\nresult: {result}\n").human

    assert (check.test, check.expected, check.why) == ("It greets", "hello", "pending")


def test_a_blocked_test_is_a_manual_check_with_its_reason(tmp_path: Path) -> None:
    (check,) = found(tmp_path, "### 1. On a phone\nresult: blocked\nblocked_by: physical-device\n").human

    assert check.why == "physical-device"


def test_a_test_skipped_with_a_reason_stays_skipped(tmp_path: Path) -> None:
    report = found(
        tmp_path, "### 1. A\nresult: skipped\nreason: not in this release\n\n### 2. B\nresult: skipped\n"
    )

    assert [check.test for check in report.human] == ["B"]


def test_an_unknown_result_is_a_manual_check(tmp_path: Path) -> None:
    (check,) = found(tmp_path, "### 1. A\nresult: perhaps\n").human

    assert check.why == "perhaps"


GAPS = """### 3. Colors
expected: a red button
result: issue
reported: it is blue

## Gaps

- truth: "The button is red"
  status: {status}
  reason: "User reported: it is blue"
  severity: minor
  test: 3
  root_cause: |
    The stylesheet
    is not loaded.
  artifacts:
    - path: src/app.css
      issue: not linked
    - src/index.html (head)
  missing:
    - a link to the stylesheet
"""


def test_a_failed_entry_is_a_gap_with_all_its_details(tmp_path: Path) -> None:
    (gap,) = found(tmp_path, GAPS.format(status="failed")).gaps

    assert (gap.truth, gap.about) == ("The button is red", "01-UAT:3")
    assert gap.reason == "User reported: it is blue (minor)"
    assert [bad.path for bad in gap.artifacts] == ["src/app.css", "src/index.html"]
    assert gap.missing == ("a link to the stylesheet",)
    assert "stylesheet" in gap.evidence


def test_a_test_whose_gap_is_resolved_is_closed(tmp_path: Path) -> None:
    assert found(tmp_path, GAPS.format(status="resolved")).passed


def test_two_gaps_of_one_test_get_different_names(tmp_path: Path) -> None:
    gaps = "## Gaps\n- truth: A\n  status: failed\n  test: 1\n- truth: B\n  status: failed\n  test: 1\n"

    assert [gap.about for gap in found(tmp_path, gaps).gaps] == ["01-UAT:1", "01-UAT:1/2"]


@pytest.mark.parametrize("nothing", ["[none yet]", "", "[]", "None", "<!-- yaml -->"])
def test_an_empty_gaps_section_has_no_gaps(nothing: str, tmp_path: Path) -> None:
    assert found(tmp_path, f"### 1. A\nresult: pass\n\n## Gaps\n\n{nothing}\n").passed


def test_a_plain_sentence_is_a_gap_until_the_file_is_closed(tmp_path: Path) -> None:
    text = "## Gaps\n\n- The settings page needs polish (layout, spacing)\n"
    (gap,) = found(tmp_path / "open", text).gaps

    assert gap.truth == "The settings page needs polish (layout, spacing)"
    assert found(tmp_path / "closed", text, status="accepted").passed


def test_a_resolved_file_has_no_gaps(tmp_path: Path) -> None:
    assert found(tmp_path, "### 1. A\nresult: issue\nreported: no\n", status="resolved").passed


def test_a_field_can_span_several_lines(tmp_path: Path) -> None:
    (check,) = found(tmp_path, "### 1) A\nexpected: |\n  one\n  two\nresult: [pending]\n").human

    assert check.expected == "one two"


def test_a_file_that_is_not_utf_8_fails_the_detector(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    (folder / "01-UAT.md").write_bytes(b"\xff\xfe")

    with pytest.raises(PlanningError, match="not UTF-8"):
        read(tmp_path)


def test_a_folder_in_place_of_the_file_fails_the_detector(tmp_path: Path) -> None:
    (tmp_path / FOLDER / "01-UAT.md").mkdir(parents=True)

    with pytest.raises(PlanningError, match="cannot be read"):
        read(tmp_path)


def test_invalid_yaml_in_the_gaps_fails_the_detector(tmp_path: Path) -> None:
    with pytest.raises(PlanningError, match="section Gaps"):
        found(tmp_path, '## Gaps\n- truth: "never closed\n   status: [failed\n')
