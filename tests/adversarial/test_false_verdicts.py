"""A verifier or a plugin that vouches for a phase without having looked: no false verdict ends with 0."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core.hookspecs import gsd_execute_step, gsd_wrap_step
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask, ToolUse
from gsd_core.model.gap import Evidence, GapReport
from gsd_core.model.step import FileWrite, RunStep, StepHost, StepRequest, StepResult, Verified
from gsd_core.planning.changes import Change, ListPlans, MapRequirement, TickPhase, TickPlan
from gsd_core.planning.model import PhaseView
from gsd_core.planning.must_haves import required_of
from gsd_core.planning.survey import read_planning
from gsd_core.run.runtime import RunEnd
from gsd_plugins import native
from gsd_plugins.rehearsal import Scenario
from tests.run import harness as h

pytestmark = pytest.mark.slow

NO_REPAIRS = Options(gap_rounds=0)
CHECK = "python3 -m unittest -q tests.test_guests"


# A verifier that cites what it did not do


async def read(task: AgentTask, host: AgentHost, path: str) -> None:
    given = {"file_path": str(task.tree / path)}
    use = ToolUse(step=task.step, name="Read", input=given, asked_by="agent", tree=task.tree, writable=False)
    await host.permit(use)  # a file outside the tree is denied already


def lines(path: str, first: int = 1, last: int = 1) -> dict[str, Any]:
    return {"file": path, "first": first, "last": last}


def ended(command: str, code: int) -> dict[str, Any]:
    return {"command": command, "exit": code}


async def a_file_that_it_did_not_read(task: AgentTask, host: AgentHost) -> list[dict[str, Any]]:
    return [lines("README.md")]


async def a_file_of_which_it_read_another(task: AgentTask, host: AgentHost) -> list[dict[str, Any]]:
    await read(task, host, "tests/test_guests.py")
    return [lines("README.md")]


async def a_line_beyond_the_end(task: AgentTask, host: AgentHost) -> list[dict[str, Any]]:
    await read(task, host, "README.md")
    return [lines("README.md", 1, 100_000)]


async def a_blank_line(task: AgentTask, host: AgentHost) -> list[dict[str, Any]]:
    await read(task, host, "README.md")
    blank = (task.tree / "README.md").read_text("utf-8").splitlines().index("") + 1
    return [lines("README.md", blank, blank)]


async def a_command_that_it_did_not_run(task: AgentTask, host: AgentHost) -> list[dict[str, Any]]:
    return [ended("python3 -m unittest discover", 0)]


async def another_exit_code(task: AgentTask, host: AgentHost) -> list[dict[str, Any]]:
    await host.call("run_command", {"command": "python3 -c 'raise SystemExit(3)'"})
    return [ended("python3 -c 'raise SystemExit(3)'", 0)]


async def a_command_that_cannot_fail(task: AgentTask, host: AgentHost) -> list[dict[str, Any]]:
    await host.call("run_command", {"command": "true"})
    return [ended("true", 0)]


async def a_file_outside_the_tree(task: AgentTask, host: AgentHost) -> list[dict[str, Any]]:
    outside = task.tree.parent / "proof.txt"
    outside.write_text("it holds\n")
    await read(task, host, "../proof.txt")
    return [lines("../proof.txt")]


async def a_link_out_of_the_tree(task: AgentTask, host: AgentHost) -> list[dict[str, Any]]:
    outside = task.tree.parent / "proof.txt"
    outside.write_text("it holds\n")
    with suppress(FileExistsError):  # a complaint asks again
        (task.tree / "proof.txt").symlink_to(outside)
    await read(task, host, "proof.txt")
    return [lines("proof.txt")]


async def a_file_that_it_wrote_itself(task: AgentTask, host: AgentHost) -> list[dict[str, Any]]:
    (task.tree / "proof.txt").write_text("it holds\n")
    await read(task, host, "proof.txt")
    return [lines("proof.txt")]


async def a_planning_file(task: AgentTask, host: AgentHost) -> list[dict[str, Any]]:
    await read(task, host, ".planning/ROADMAP.md")
    return [lines(".planning/ROADMAP.md")]


async def nothing(task: AgentTask, host: AgentHost) -> list[dict[str, Any]]:
    return []


CITATIONS = [
    a_file_that_it_did_not_read,
    a_file_of_which_it_read_another,
    a_line_beyond_the_end,
    a_blank_line,
    a_command_that_it_did_not_run,
    another_exit_code,
    a_command_that_cannot_fail,
    a_file_outside_the_tree,
    a_link_out_of_the_tree,
    a_file_that_it_wrote_itself,
    a_planning_file,
    nothing,
]


@pytest.mark.parametrize("cite", CITATIONS, ids=lambda cite: cite.__name__)
def test_a_verifier_that_says_holds_and_cites_what_it_did_not_do_does_not_end_with_0(
    tmp_path: Path, cite: Callable[..., Any]
) -> None:
    root = h.repository(tmp_path / "project")
    asked: list[str] = []

    async def forges(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "verifier":
            return None
        asked[:] = Scenario(h.IDEA, phases=1).asked_in(task.prompt, "1")
        cited = await cite(task, host)
        fields: dict[str, Any] = {
            "status": "holds",
            "evidence": "it holds",
            "reason": "",
            "missing": [],
            "citations": cited,
        }
        return AgentResult(value={"verdicts": [{"id": name, **fields} for name in asked], "findings": []})

    end = h.do(h.request(root, h.Watched(h.one_phase(), forges), given=h.idea(), options=NO_REPAIRS))

    assert end.exit == 6, end
    assert asked
    [phase] = read_planning(root).phases
    assert phase.verdict is not None
    assert {gap.about for gap in phase.verdict.gaps} >= set(asked)
    assert not phase.ticked


# A plugin that vouches for the phase


def vouching(report: Callable[[PhaseView], GapReport]) -> Callable[..., Any]:
    """Return an executor that reports this in verify steps, and leaves the others to the built-in one."""

    async def execute(step: StepRequest, host: StepHost) -> StepResult | None:
        if step.kind != "verify":
            return await native.execute_step(step, host)
        assert step.phase is not None
        return StepResult(subject="docs: all is well", outcome=Verified(report=report(step.phase)))

    return execute


def with_executor(root: Path, execute: Callable[..., Any], **more: Any) -> RunEnd:
    own = h.plugin(gsd_execute_step, execute)
    more = {"given": h.idea(), "options": NO_REPAIRS, **more}
    return h.do(h.request(h.repository(root), h.one_phase(), run={"execute": ["own"]}, own=own, **more))


def gaps(root: Path) -> set[str]:
    """Return what the gaps in the verdict are about."""
    [phase] = read_planning(root).phases
    assert phase.verdict is not None
    return {gap.about for gap in phase.verdict.gaps}


def required(root: Path) -> set[str]:
    planning = read_planning(root)
    [phase] = planning.phases
    return {one.id for one in required_of(phase, phase.plans, planning.requirements)}


def test_an_executor_that_reports_nothing_leaves_a_gap_for_each_requirement_criterion_and_truth(
    tmp_path: Path,
) -> None:
    root = tmp_path / "project"

    end = with_executor(root, vouching(lambda _: GapReport()))

    assert end.exit == 6, end
    assert gaps(root) == required(root)
    assert {name.partition(":")[2][:1] for name in gaps(root)} == {"", "C", "T"}


def test_an_executor_that_reports_on_all_but_one_leaves_a_gap_for_that_one(tmp_path: Path) -> None:
    root = tmp_path / "project"

    def all_but_one(phase: PhaseView) -> GapReport:
        names = [name for one in required_of(phase, phase.plans) for name in one.ids if name != "01:C2"]
        return GapReport(evidence=tuple(Evidence(about=name, holds=True, proof="seen") for name in names))

    end = with_executor(root, vouching(all_but_one))

    assert end.exit == 6, end
    assert gaps(root) == {"01:C2"}


def test_a_wrapper_that_empties_the_report_does_not_let_the_phase_pass(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def empties(step: StepRequest, call_next: RunStep) -> StepResult:
        result = await call_next(step)
        return evolve(result, outcome=Verified(report=GapReport())) if step.kind == "verify" else result

    own = h.plugin(gsd_wrap_step, empties)
    end = h.do(h.request(root, h.one_phase(), given=h.idea(), options=NO_REPAIRS, own=own))

    assert end.exit == 6, end
    assert gaps(root) == required(root)


# A plugin that writes what belongs to another step

OTHERS = ".planning/phases/02-command-line"
FOREIGN: dict[str, tuple[str, str | Change]] = {
    "a whole roadmap": ("discuss", ".planning/ROADMAP.md"),
    "a roadmap in another case": ("discuss", ".planning/Roadmap.md"),
    "a configuration": ("plan", ".planning/config.json"),
    "a verdict of its own phase": ("execute", ".planning/phases/01-greetings/01-VERIFICATION.md"),
    "a verdict of another phase": ("verify", f"{OTHERS}/02-VERIFICATION.md"),
    "a plan of another phase": ("plan", f"{OTHERS}/02-01-PLAN.md"),
    "a summary of another phase": ("execute", f"{OTHERS}/02-01-SUMMARY.md"),
    "a summary before its time": ("plan", ".planning/phases/01-greetings/01-01-SUMMARY.md"),
    "another plan": ("execute", ".planning/phases/01-greetings/01-02-PLAN.md"),
    "a plan that was verified": ("verify", ".planning/phases/01-greetings/01-01-PLAN.md"),
    "the archive": ("complete", ".planning/milestones/v1.0-ROADMAP.md"),
    "a tick of its own phase": ("execute", TickPhase(phase="1", date="2026-01-01")),
    "a tick of another phase": ("complete", TickPhase(phase="2", date="2026-01-01")),
    "a tick of another plan": ("execute", TickPlan(phase="2", plan="02-01")),
    "a requirement that is complete": (
        "discuss",
        MapRequirement(requirement="CLI-01", phase="2", status="Complete"),
    ),
    "a plan that is listed elsewhere": ("plan", ListPlans(phase="2", plans=(("02-01", "nothing"),))),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_an_executor_may_not_write_what_belongs_to_another_step(tmp_path: Path, name: str) -> None:
    root = h.repository(tmp_path / "project")
    kind, foreign = FOREIGN[name]

    async def adds(step: StepRequest, host: StepHost) -> StepResult | None:
        result = await native.execute_step(step, host)
        if step.kind != kind or result is None:
            return result
        if isinstance(foreign, str):
            return evolve(result, files=(*result.files, FileWrite(path=foreign, text="- [x] all is done\n")))
        return evolve(result, changes=(*result.changes, foreign))

    own = h.plugin(gsd_execute_step, adds)
    asked = h.request(root, h.one_phase(phases=2), given=h.idea(), run={"execute": ["own"]}, own=own)
    end = h.do(evolve(asked, options=Options(phases=("1",))))

    assert end.exit not in (0, 6), end
    assert "'own'" in end.reason
    assert "belongs to another step" in end.reason
    assert not any(phase.ticked for phase in read_planning(root).phases)
