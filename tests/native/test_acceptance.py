"""User acceptance tests: asked in one batch, kept in UAT.md, and not repeated once they passed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from gsd_core import Answer, Gap, GapReport, HumanCheck, PhaseView, Plan, Planning, StepRequest
from gsd_core.testing.fakes import FakeHost
from gsd_plugins.native.acceptance import ask_person, severity_of
from gsd_plugins.uat import find_uat_gaps

LOOK = HumanCheck(test="Open the page", expected="It is readable", why="Pages are readable", about="UI-01")
HEAR = HumanCheck(test="Play a sound", expected="It is heard", about="UI-02")
FOLDER = ".planning/phases/01-ui"


def phase_of(project: Path, *plans: Plan) -> PhaseView:
    done = Plan(id="01-01", phase="1", summary=f"{FOLDER}/01-01-SUMMARY.md")
    return PhaseView(number="1", name="UI", project=project, directory=FOLDER, plans=(done, *plans))


CLOSED = Plan(id="01-02", phase="1", gap_closure=True, summary=f"{FOLDER}/01-02-SUMMARY.md")


def ask(phase: PhaseView, report: GapReport, answer: Any = None) -> tuple[GapReport, FakeHost, str]:
    """Ask, write what comes back as the core does, and return the text of the file."""
    step = StepRequest(
        id="1/verify",
        run="r-1",
        kind="verify",
        project=phase.project,
        tree=phase.project,
        now=datetime(2026, 1, 31, 12, 0, tzinfo=UTC),
        phase=phase,
        planning=Planning(phases=(phase,)),
    )
    host = FakeHost(answers=answer)
    answered, files = asyncio.run(ask_person(step, host, report))
    path = phase.project / FOLDER / "01-UAT.md"
    for file in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        (phase.project / file.path).write_text(file.text)
    return answered, host, path.read_text() if path.exists() else ""


def find(phase: PhaseView) -> GapReport:
    report = asyncio.run(find_uat_gaps(phase))
    assert isinstance(report, GapReport)
    return report


def says(works: Sequence[str] = (), how: Any = "human", words: str = "the font looks off") -> Any:
    def answer(question: Any) -> Answer:
        good = question.text.partition("\n")[0] in works
        return Answer(
            question=question.id,
            chosen=("Works",) if good else (),
            text="" if good else words,
            how=how,
            by="ada",
        )

    return answer


def test_all_tests_are_asked_in_one_batch_and_kept_with_their_results(tmp_path: Path) -> None:
    phase = phase_of(tmp_path)
    answered, host, text = ask(phase, GapReport(human=(LOOK, HEAR)), says(["Play a sound"]))

    [inquiry] = host.inquiries
    assert len(inquiry.questions) == 2
    [gap] = answered.gaps
    assert (gap.about, gap.reason, gap.found_by) == ("UI-01", "the font looks off (cosmetic)", "human")
    assert [one.about for one in answered.evidence] == ["UI-02"]
    assert "### 1. Open the page\nexpected: It is readable\nresult: issue\nreported: the font" in text
    assert "total: 2\npassed: 1\nissues: 1\npending: 0\nskipped: 0\nblocked: 0" in text
    assert text.startswith('---\nstatus: complete\nphase: 01-ui\nsource:\n  - "01-01-SUMMARY.md"\n')
    # The detector of the next verification reads the same.
    found = find(phase)
    assert [(one.about, one.reason) for one in found.gaps] == [
        ("01-UAT:1", "User reported: the font looks off (cosmetic)")
    ]


def test_only_a_test_that_failed_is_repeated_once_its_gap_is_closed(
    tmp_path: Path,
) -> None:
    ask(phase_of(tmp_path), GapReport(human=(LOOK, HEAR)), says(["Play a sound"]))
    phase = phase_of(tmp_path, CLOSED)
    found = find(phase)

    assert found.gaps == ()
    assert [check.about for check in found.human] == ["01-UAT:1"]
    # The verifier asks for both again; the failed test is there twice.
    report = attrs.evolve(found, human=(*found.human, LOOK, HEAR))
    answered, host, text = ask(phase, report, says(["Open the page"]))

    [inquiry] = host.inquiries
    assert len(inquiry.questions) == 1
    assert answered.passed
    assert {one.about for one in answered.evidence} >= {"01-UAT:1", "UI-01", "UI-02"}
    assert "passed: 2\nissues: 0" in text
    assert "  status: resolved" in text
    assert find(phase).passed


def test_what_a_policy_answers_stays_pending(tmp_path: Path) -> None:
    phase = phase_of(tmp_path)
    answered, _, text = ask(phase, GapReport(human=(LOOK,)), says(["Open the page"], how="policy"))

    assert [check.about for check in answered.assumed] == ["UI-01"]
    assert "status: partial" in text
    assert "result: [pending]\nreason: assumed, nobody looked (ada)" in text
    assert [check.about for check in find(phase).human] == ["01-UAT:1"]


@pytest.mark.parametrize("more", [{"gaps": (Gap(truth="t", reason="r"),)}, {"failed_detectors": ("d",)}, {}])
def test_nothing_is_asked_while_there_are_gaps_or_nothing_to_ask(tmp_path: Path, more: Any) -> None:
    report = GapReport(human=(LOOK,) if more else (), **more)
    answered, host, text = ask(phase_of(tmp_path), report)

    assert (answered, host.inquiries, text) == (report, [], "")


def test_the_tests_of_other_tools_stay(tmp_path: Path) -> None:
    path = tmp_path / FOLDER / "01-UAT.md"
    path.parent.mkdir(parents=True)
    path.write_text(
        "---\nstatus: partial\nstarted: 2025-01-01T00:00:00Z\n---\n\n## Tests\n\n### 7. Log in\n"
        "expected: A page\nresult: skipped\nreason: no account\n\n### 8. Log out\nexpected: |\n  Nothing\n"
        'result: blocked\nblocked_by: server\n\n## Gaps\n\n- truth: "Old"\n  status: resolved\n'
    )
    phase = phase_of(tmp_path)
    words = "crashes\n### 1. Injected\nresult: pass"
    _, _, text = ask(phase, GapReport(human=(*find(phase).human, LOOK)), says(["Log out"], words=words))

    assert "started: 2025-01-01T00:00:00Z" in text.replace('"', "")
    assert "### 7. Log in\nexpected: A page\nresult: skipped\nreason: no account\n" in text
    assert "### 8. Log out\nexpected: Nothing\nresult: pass\n" in text
    assert "### 9. Open the page\n" in text
    assert "severity: blocker" in text
    assert "\n### 1. Injected" not in text
    assert "- truth: Old\n  status: resolved" in text.replace('"', "")


@pytest.mark.parametrize(
    ("words", "severity"),
    [
        ("It crashed with a traceback", "blocker"),
        ("The button doesn’t work", "major"),
        ("Works but is slow", "minor"),
        ("wrong colour", "cosmetic"),
        ("hmm", "major"),
        ("", "major"),
    ],
)
def test_the_severity_is_inferred_from_the_words(words: str, severity: str) -> None:
    assert severity_of(words) == severity
