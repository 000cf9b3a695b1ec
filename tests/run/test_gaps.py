"""Gaps: found, planned, executed and verified again; a detector that failed never lets a phase pass."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from gsd_core.hookspecs import gsd_execute_step, gsd_find_gaps, gsd_wrap_step
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.model.gap import Gap, GapReport
from gsd_core.model.step import RunStep, StepHost, StepRequest, StepResult, Verified
from gsd_core.planning.model import PhaseView
from gsd_core.planning.survey import read_planning
from gsd_core.testing import ScriptedHuman
from gsd_plugins import native
from tests.hooks import behaviors

from . import harness as h

pytestmark = pytest.mark.slow

LICENSE = Gap(truth="The license is MIT", reason="nothing says so")
Finds = Callable[[PhaseView], Awaitable[Any]]


def detector(find: Finds) -> object:
    async def found(phase: PhaseView) -> Any:
        return await find(phase)

    return h.plugin(gsd_find_gaps, found)


async def finds(phase: PhaseView) -> Sequence[Gap]:
    path = phase.project / "LICENSE"
    return [] if path.exists() and path.read_text() == "MIT\n" else [LICENSE]


def verdict(root: Path) -> str:
    [path] = root.glob(".planning/phases/*/01-VERIFICATION.md")
    return path.read_text()


def steps(root: Path, kind: str) -> list[str]:
    """Return the completed steps of that kind, in order."""
    return [fact.step for fact in h.facts(root, "step.completed") if f"/{kind}" in fact.step]


def test_a_gap_found_by_verification_is_closed_by_a_gap_round(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = h.do(h.request(root, h.one_phase(gap=True), given=h.idea()))

    assert end.outcome == "done"
    assert steps(root, "verify") == ["1/verify", "1/verify/r1"]
    assert steps(root, "plan") == ["1/plan", "1/plan/r1"]
    assert "status: passed" in verdict(root)


@define
class WritesLicense:
    """Writes the missing file before the agent executes a gap plan, from the *rounds*-th plan on."""

    rounds: int = 1
    prompts: list[str] = field(factory=list[str])

    async def __call__(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        # A planner is also asked about a check that passes before its task.
        if task.role == "planner" and "/plan" in task.step:
            self.prompts.append(task.prompt)
        if task.role == "executor" and len(self.prompts) > self.rounds:
            await h.write(task, host, "LICENSE", "MIT\n")
        return await notes(task, host)


async def notes(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Change something in each plan, so that there is something to commit."""
    if task.role == "executor":
        await h.write(task, host, f"{task.step.replace('/', '-')}.txt", "done\n")
    return None


def idle() -> h.Watched:
    """Return an agent that executes the plans of gap rounds, but closes no gap."""
    return h.Watched(h.one_phase(), notes)


def test_a_gap_of_a_third_party_s_detector_is_planned_and_executed_like_any_other(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    writes = WritesLicense()

    end = h.do(h.request(root, h.Watched(h.one_phase(), writes), given=h.idea(), licenses=detector(finds)))

    assert end.outcome == "done", end
    assert [LICENSE.truth in prompt for prompt in writes.prompts] == [False, True]
    assert steps(root, "verify") == ["1/verify", "1/verify/r1"]
    assert "LICENSE" in h.git(root, "ls-files")


def test_a_detector_that_returns_nothing_found_no_gap(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def silent(phase: PhaseView) -> None:
        return None

    end = h.do(h.request(root, h.one_phase(), given=h.idea(), silent=detector(silent)))

    assert (end.outcome, h.facts(root, "plugin.failed")) == ("done", [])


def test_a_gap_that_remains_is_in_the_verdict_with_its_detector_and_the_run_exits_with_6(
    tmp_path: Path,
) -> None:
    root = h.repository(tmp_path / "project")

    end = h.do(h.request(root, idle(), given=h.idea(), licenses=detector(finds)))

    [phase] = read_planning(root).phases
    assert (end.outcome, end.exit) == ("gaps", 6)
    assert end.reason == f"gaps remain: {LICENSE.truth}"
    assert phase.verdict is not None
    assert (phase.ticked, phase.verdict.status) == (False, "gaps_found")
    assert [(gap.truth, gap.found_by) for gap in phase.verdict.gaps] == [(LICENSE.truth, "licenses")]
    assert h.facts(root, "question.asked")[-1].data["inquiry"]["kind"] == "escalation"
    assert steps(root, "verify") == ["1/verify", "1/verify/r1"], "no progress ends the rounds early"


@define
class Countdown:
    """Finds one gap fewer each time."""

    left: int

    async def __call__(self, phase: PhaseView) -> Sequence[Gap]:
        self.left -= 1
        return [Gap(truth=f"Thing {n} is there", reason="it is not") for n in range(self.left)]


def test_there_are_at_most_three_gap_rounds_and_the_last_one_is_verified_too(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = h.do(h.request(root, idle(), given=h.idea(), counting=detector(Countdown(9))))

    assert end.exit == 6
    assert steps(root, "plan") == ["1/plan", "1/plan/r1", "1/plan/r2", "1/plan/r3"]
    assert steps(root, "verify") == ["1/verify", "1/verify/r1", "1/verify/r2", "1/verify/r3"]


def test_a_human_can_allow_one_more_gap_round(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    writes, human = WritesLicense(rounds=2), ScriptedHuman({"gaps": "Retry"})

    end = h.do(
        h.request(
            root,
            h.Watched(h.one_phase(), writes),
            given=h.idea(),
            licenses=detector(finds),
            human=human,
        )
    )

    assert end.outcome == "done", end
    assert steps(root, "verify") == ["1/verify", "1/verify/r1", "1/verify/r2"]


@pytest.mark.parametrize(
    ("choice", "reason"), [("Skip", "skipped, not done"), ("Abort", "aborted at 1/verify")]
)
def test_a_human_can_leave_a_phase_with_its_gaps(tmp_path: Path, choice: str, reason: str) -> None:
    root = h.repository(tmp_path / "project")
    human = ScriptedHuman({"gaps": choice})

    end = h.do(h.request(root, idle(), given=h.idea(), licenses=detector(finds), human=human))

    assert end.exit == 6
    assert reason in end.reason


async def raises(_: PhaseView) -> Any:
    raise RuntimeError("broken")


async def hangs(_: PhaseView) -> Any:
    await asyncio.Event().wait()


async def swallows(_: PhaseView) -> Any:
    await behaviors.ignores_cancellation()


async def exits(_: PhaseView) -> Any:
    await behaviors.exits()


async def returns_nonsense(_: PhaseView) -> Any:
    return 42


async def returns_nonsense_within(_: PhaseView) -> Any:
    words: Any = 42
    return [Gap(truth=words, reason=words, about=words)]


async def returns_nonsense_in_a_report(_: PhaseView) -> Any:
    words: Any = ["no gap"]
    return GapReport(gaps=words, evidence=words, human=words)


BROKEN = [raises, returns_nonsense_in_a_report]
SLOWLY_BROKEN = [returns_nonsense_within, hangs, swallows, exits, returns_nonsense]


@pytest.mark.parametrize(
    "broken", [*BROKEN, *(pytest.param(b, marks=pytest.mark.slow) for b in SLOWLY_BROKEN)]
)
def test_a_detector_that_fails_never_lets_a_phase_pass(tmp_path: Path, broken: Finds) -> None:
    root = h.repository(tmp_path / "project")
    sections = {"limits": {"detector": 0.3}}

    end = h.do(h.quick(h.request(root, idle(), given=h.idea(), broken=detector(broken), sections=sections)))

    assert (end.outcome, end.exit) == ("gaps", 6), end
    assert "broken" in {fact.data["plugin"] for fact in h.facts(root, "plugin.failed")}
    assert "broken" in end.reason
    assert "status: passed" not in verdict(root)


async def drops_gaps(step: StepRequest, host: StepHost) -> StepResult | None:
    """An executor that passes every phase."""
    if step.kind != "verify":
        return await native.execute_step(step, host)
    return StepResult(subject="docs: all is well", outcome=Verified(report=GapReport()))


async def drops_gaps_later(step: StepRequest, call_next: RunStep) -> StepResult:
    """A wrapper that passes every phase."""
    result = await call_next(step)
    if step.kind != "verify":
        return result
    return StepResult(subject="docs: all is well", outcome=Verified(report=GapReport()))


def test_no_executor_can_drop_a_detector_s_gap(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    kind = h.plugin(gsd_execute_step, drops_gaps)

    end = h.do(
        h.request(
            root,
            idle(),
            given=h.idea(),
            run={"execute": ["kind"]},
            kind=kind,
            licenses=detector(finds),
        )
    )

    assert (end.exit, LICENSE.truth in end.reason) == (6, True)
    assert "found_by: licenses" in verdict(root)


def test_no_wrapper_can_drop_a_detector_s_gap(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    kind = h.plugin(gsd_wrap_step, drops_gaps_later)

    end = h.do(h.request(root, idle(), given=h.idea(), kind=kind, licenses=detector(finds)))

    assert (end.exit, LICENSE.truth in end.reason) == (6, True)
    assert "found_by: licenses" in verdict(root)


def test_a_run_without_verification_says_so(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    options = Options(skip_verify=True)

    end = h.do(h.request(root, idle(), given=h.idea(), options=options, licenses=detector(finds)))

    assert (end.exit, end.reason) == (0, "1 phase complete (verification skipped)")


def unfinished(root: Path) -> Path:
    """Make a project that ended with a gap, and delete its journal."""
    h.do(h.request(h.repository(root), idle(), given=h.idea(), licenses=detector(finds)))
    shutil.rmtree(root / ".git" / "gsd")
    return root


def test_gaps_in_the_verdict_of_an_earlier_run_are_closed(tmp_path: Path) -> None:
    root = unfinished(tmp_path / "project")
    writes = WritesLicense(rounds=0)

    end = h.do(h.request(root, h.Watched(h.one_phase(), writes), licenses=detector(finds)))

    assert end.outcome == "done", end
    assert LICENSE.truth in writes.prompts[0]
    assert steps(root, "plan") == ["1/plan/r1"]


ANSWERS: list[Any] = [
    "all is well",
    {"verdicts": []},
    {"verdicts": "all hold"},
    {"verdicts": [{"id": "01-01:T1", "status": "fine", "evidence": "", "reason": "", "missing": []}]},
]


@pytest.mark.parametrize(
    "value", [ANSWERS[0], *(pytest.param(value, marks=pytest.mark.slow) for value in ANSWERS[1:])]
)
def test_an_unreadable_answer_of_the_verifier_does_not_pass(tmp_path: Path, value: Any) -> None:
    root = h.repository(tmp_path / "project")

    async def mumbles(task: AgentTask, host: AgentHost) -> AgentResult | None:
        return AgentResult(value=value) if task.role == "verifier" else await notes(task, host)

    agent = h.Watched(h.one_phase(), mumbles)

    end = h.do(h.request(root, agent, given=h.idea()))

    # What the verifier leaves out says nothing about the product, so nothing is planned for it.
    assert end.exit == 1, end
    assert "01-01:T1" in end.reason
    assert "1/plan/r1" not in {fact.step for fact in h.facts(root, "step.completed")}
