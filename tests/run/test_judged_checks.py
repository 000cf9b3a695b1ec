"""What the result of a plan's check says: evidence, or a gap that quotes the output."""

from __future__ import annotations

from gsd_core import CheckResult, Evidence, Gap, TaskCheck
from gsd_core.run.verification import judge_check


def judged(exit_code: int | None, output: str = "") -> Evidence | Gap:
    result = CheckResult(command="pytest -q", exit=exit_code, output=output)
    return judge_check(TaskCheck(plan="01-02", task=1, result=result))


def test_a_check_that_succeeded_is_evidence() -> None:
    found = judged(0)

    assert isinstance(found, Evidence)
    assert (found.about, found.proof) == ("01-02/1", "`pytest -q` exited with 0")


def test_a_check_that_failed_is_a_gap_with_the_end_of_its_output() -> None:
    gap = judged(1, "x" * 5000 + "\n1 failed\n")

    assert isinstance(gap, Gap)
    assert (gap.about, gap.reason, gap.status) == ("01-02/1", "exited with 1", "failed")
    assert gap.evidence.startswith("$ pytest -q\nx")
    assert gap.evidence.endswith("1 failed")
    assert len(gap.evidence) < 2100


def test_a_check_that_was_refused_is_unverified() -> None:
    gap = judged(None)

    assert isinstance(gap, Gap)
    assert (gap.about, gap.status) == ("01-02/1", "unverified")
