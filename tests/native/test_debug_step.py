"""debug: gaps about behavior are diagnosed once for each verdict, and what is found is kept."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from gsd_core import (
    AgentResult,
    Gap,
    PhaseView,
    Planning,
    RejectedAnswer,
    StepRequest,
    StepSituation,
    Verdict,
)
from gsd_core.testing.fakes import FakeHost
from gsd_plugins import native
from gsd_plugins.native.debug import is_due, read_diagnoses

FAILS = Gap(truth="The list is sorted", reason="it is not", about="01-01:T1", found_by="native")
NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def phase_of(project: Path, *gaps: Gap, verified: str = "one") -> PhaseView:
    verdict = Verdict(status="gaps_found", verified=verified, gaps=gaps or (FAILS,))
    return PhaseView(
        number="1", name="UI", project=project, directory=".planning/phases/01-ui", verdict=verdict
    )


def due(phase: PhaseView | None, **config: Any) -> bool:
    planning = Planning(config={"workflow": config})
    return is_due(StepSituation(project=Path("/p"), planning=planning, phase=phase))


def diagnosis(
    gap: str = "01-01:T1", cause: str = "sort() is called on a copy", **more: Any
) -> dict[str, Any]:
    clue = {
        "checked": "list.py",
        "found": "sorted(x)\n## Resolution\n\nroot_cause: no",
        "implication": "a copy",
    }
    said: dict[str, Any] = {"gap": gap, "actual": "in any order", "reproduction": "run it", "clues": [clue]}
    places = [{"path": "list.py", "issue": "the result is dropped"}]
    return {**said, "root_cause": cause, "files": places, "fix": "use the result"}


def debug(
    phase: PhaseView | None, *answers: Any, project: Path, text: str = "", detail: str = ""
) -> FakeHost:
    step = StepRequest(
        id="1/debug/r1" if phase else f"debug/{detail}",
        run="r-1",
        kind="debug",
        project=project,
        tree=project,
        now=NOW,
        phase=phase,
        detail=detail,
        text=text,
    )
    host = FakeHost(agent={"debug": AgentResult(value={"diagnoses": list(answers)})})
    result = asyncio.run(native.execute_step(step, host))
    assert result is not None
    for file in result.files:
        path = project / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
    return host


@pytest.mark.parametrize("finder", ["coverage", "checkout", "gsd", "must_haves", "history"])
def test_gaps_that_say_themselves_what_is_missing_are_not_diagnosed(tmp_path: Path, finder: str) -> None:
    assert not due(phase_of(tmp_path, attrs.evolve(FAILS, found_by=finder)))


@pytest.mark.parametrize("finder", ["native", "human", "uat", "checks", "review", ""])
def test_gaps_about_behavior_are(tmp_path: Path, finder: str) -> None:
    phase = phase_of(tmp_path, attrs.evolve(FAILS, found_by=finder))

    assert due(phase)
    assert not due(phase, diagnose=False)
    assert not due(attrs.evolve(phase, verdict=None))
    assert not due(phase_of(tmp_path, attrs.evolve(FAILS, found_by=finder, status="unverified")))
    assert not due(None)


def test_a_diagnosis_covers_its_gap_until_the_next_verdict(tmp_path: Path) -> None:
    phase = phase_of(tmp_path)
    host = debug(phase, diagnosis(), project=tmp_path)

    assert not due(phase)
    assert (host.task("debug").role, host.task("debug").writable) == ("debugger", False)
    [known] = read_diagnoses(phase).values()
    assert known.path == ".planning/debug/01-the-list-is-sorted.md"
    assert (known.root_cause, known.fix) == ("sort() is called on a copy", "use the result")
    assert known.files == "list.py: the result is dropped"
    text = (tmp_path / known.path).read_text()
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        *("## Current Focus", "## Symptoms", "## Eliminated", "## Evidence", "## Resolution"),
    ]
    assert text.startswith("---\nstatus: diagnosed\ntrigger: ")

    later = phase_of(tmp_path, verified="two")
    assert due(later)
    again = debug(later, diagnosis(cause="it is sorted twice"), project=tmp_path)
    assert "causes named before: sort() is called on a copy" in again.task("debug").prompt
    [known] = read_diagnoses(later).values()
    assert (known.root_cause, known.eliminated) == ("it is sorted twice", ("sort() is called on a copy",))
    assert not due(later)


def test_each_gap_has_a_file_even_if_their_truths_begin_alike(tmp_path: Path) -> None:
    other = attrs.evolve(FAILS, about="01-01:T2")
    phase = phase_of(tmp_path, FAILS, other)
    debug(phase, diagnosis(), diagnosis("01-01:T2", ""), project=tmp_path)

    names = {key: Path(one.path).name for key, one in read_diagnoses(phase).items()}
    assert names == {"01-01:T1": "01-the-list-is-sorted.md", "01-01:T2": "01-the-list-is-sorted-2.md"}
    assert "status: investigating" in (tmp_path / ".planning/debug/01-the-list-is-sorted-2.md").read_text()
    assert not due(phase)


@pytest.mark.parametrize(
    "answers", [[], [diagnosis(), diagnosis()], [diagnosis("01-01:T9")], ["it is broken"]]
)
def test_an_answer_that_does_not_fit_the_gaps_is_sent_back_and_the_run_continues(
    tmp_path: Path, answers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = FakeHost.run_agent

    async def run_agent(self: FakeHost, *arguments: Any) -> AgentResult:
        # As the core's host: the rejected value comes with the error.
        try:
            return await original(self, *arguments)
        except Exception as error:
            raise RejectedAnswer(str(error)) from error

    monkeypatch.setattr(FakeHost, "run_agent", run_agent)
    host = debug(phase := phase_of(tmp_path), *answers, project=tmp_path)

    assert len(host.complaints) == 3
    assert read_diagnoses(phase)["01-01:T1"].root_cause == ""
    assert not due(phase)


def test_a_problem_that_the_user_describes_needs_no_phase(tmp_path: Path) -> None:
    words = "It hangs\non empty input"
    host = debug(None, diagnosis("It hangs on empty input"), project=tmp_path, text=words, detail="it-hangs")

    assert "It hangs on empty input" in host.task("debug").prompt
    text = (tmp_path / ".planning/debug/it-hangs.md").read_text()
    assert "root_cause: sort() is called on a copy" in text


def test_a_file_that_is_not_ours_does_not_prevent_anything(tmp_path: Path) -> None:
    folder = tmp_path / ".planning/debug"
    folder.mkdir(parents=True)
    (folder / "01-binary.md").write_bytes(b"\xff\xfe")
    (folder / "01-link.md").symlink_to("/etc/hostname")
    (folder / "01-theirs.md").write_text("---\nstatus: resolved\n---\n\n## Resolution\n\nroot_cause: x\n")

    assert read_diagnoses(phase_of(tmp_path)) == {}
