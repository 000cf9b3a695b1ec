"""Continuing a project for a plan writes the numbers that its files have on disk.

The real projects are optional; see ``tests.planning.trees``.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core import FileWrite, ListPlans, StepHost, StepRequest, StepResult, TickPlan, padded
from gsd_core.hookspecs import gsd_execute_step
from gsd_core.machine.state import Options
from gsd_core.planning.frontmatter import read_frontmatter
from gsd_core.planning.roadmap import parse_roadmap
from gsd_plugins.native.paths import phase_file, phase_of, position
from tests.cli.bench import said as json_of
from tests.planning.trees import CORPUS_PROJECTS, TREES, make_project, plan_text
from tests.run import harness as h

SAMPLE = ("night-bus", "quiz-night", "ski-trails")
projects = [
    *(pytest.param(path, id=path.name) for path in TREES if path.name in SAMPLE),
    *(pytest.param(path, id=path.name, marks=pytest.mark.slow) for path in CORPUS_PROJECTS),
]


async def does_it(step: StepRequest, host: StepHost) -> StepResult | None:
    """Write one plan, or the summary of one: what an executor returns once the work is done."""
    if step.kind not in ("plan", "execute"):
        return None
    phase = phase_of(step)
    if step.kind == "plan":
        used = [int(plan.id[-2:]) for plan in phase.plans if plan.id[-2:].isdigit()]
        new = f"{padded(phase.number)}-{max(used, default=0) + 1:02}"
        changes = (
            ListPlans(phase=phase.number, plans=((new, "Go on"),)),
            position(step, status="Ready to execute", activity="Planned"),
        )
        files = (FileWrite(path=phase_file(phase, f"{new}-PLAN.md"), text=plan_text()),)
        return StepResult(subject="docs: plan", files=files, changes=changes)
    assert step.plan is not None
    path = f"{step.plan.path.rpartition('/')[0]}/{step.plan.id}-SUMMARY.md"
    done = (
        TickPlan(phase=phase.number, plan=step.plan.id),
        position(step, status="In progress", activity=f"Completed {step.plan.id}"),
    )
    return StepResult(subject="docs: done", files=(FileWrite(path=path, text="# Done\n"),), changes=done)


def continue_for_a_plan(root: Path) -> str:
    """Execute an open plan, or plan and execute one of the first open phase; return the phase."""
    phases = json_of("phases", "-C", root)["phases"]
    for phase in phases:
        shown: dict[str, Any] = json_of("plans", phase["number"], "-C", root) if phase["plans"] else {}
        waiting: list[dict[str, Any]] = shown.get("plans", [])
        if open_plans := [plan["id"] for plan in waiting if not plan["has_summary"]]:
            steps = {f"{phase['number']}/execute/{open_plans[0]}": "gsd execute"}
            break
    else:
        phase = next((one for one in phases if not one["complete"]), phases[-1])
        steps = {f"{phase['number']}/plan": "gsd plan"}
    plugin = h.plugin(gsd_execute_step, does_it)
    for _ in range(2):
        given = h.request(root, h.one_phase(), run={"execute": ["does"]}, does=plugin)
        end = h.do(evolve(given, asked=steps, options=Options(only_asked=True)))
        assert end.outcome == "done", end.reason
        plans = json_of("plans", phase["number"], "-C", root)["plans"]
        left = [plan["id"] for plan in plans if not plan["has_summary"]]
        if not left or "execute" in next(iter(steps)):
            break
        steps = {f"{phase['number']}/execute/{left[-1]}": "gsd execute"}
    return str(phase["number"])


def state_numbers(text: str) -> dict[str, Any]:
    """Return the numbers of STATE.md, by the name that ``gsd progress`` has for them."""
    names = {
        "total_phases": "phases_total",
        "completed_phases": "phases_complete",
        "total_plans": "plans",
        "completed_plans": "done",
        "percent": "percent",
    }
    head = text.split("\n---", 1)[0] if text.startswith("---") else ""
    found = {
        names[name]: int(value) for name, value in re.findall(r"^ +([a-z_]+): (\d+)$", head, re.MULTILINE)
    }
    if match := re.search(r"^(?:\*\*)?Progress:.*?(\d+)%", text, re.MULTILINE):
        found["percent in the line"] = int(match[1])
    return found


@pytest.mark.parametrize("project", projects)
def test_the_numbers_that_are_written_are_those_on_disk(tmp_path: Path, project: Path) -> None:
    root = h.repository(tmp_path / "project")
    shutil.copytree(project / ".planning", root / ".planning")
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", "start")
    if not json_of("phases", "-C", root)["phases"] or json_of("next", "-C", root)["step"] is None:
        pytest.skip("no milestone is in progress")
    before = {name: (root / ".planning" / name) for name in ("STATE.md", "ROADMAP.md")}
    texts = {name: path.read_text() if path.exists() else "" for name, path in before.items()}

    number = continue_for_a_plan(root)

    after = {name: path.read_text() if path.exists() else "" for name, path in before.items()}
    shown = json_of("progress", "-C", root)
    shown |= {"done": shown["plans"]["done"], "plans": shown["plans"]["total"]}
    shown["percent in the line"] = shown["percent"]
    if re.search(r"^Progress:.*\d/\d+ phases", after["STATE.md"], re.MULTILINE):
        shown["percent in the line"] = round(100 * shown["phases_complete"] / shown["phases_total"])
    old, new = state_numbers(texts["STATE.md"]), state_numbers(after["STATE.md"])
    wrong = {name: value for name, value in new.items() if value not in (shown[name], old[name])}
    assert wrong == {}
    roadmap = parse_roadmap(after["ROADMAP.md"])
    folder = next(root.glob(f".planning/phases/*{padded(number)}-*"))
    plans = [path for path in folder.rglob("*PLAN*.md") if "SUMMARY" not in path.name]
    count = f"{len(list(folder.rglob('*SUMMARY*.md')))}/{len(plans)}"
    row, section = roadmap.row(number), roadmap.section(number)
    if row and re.match(r"\d+/", row.text("plans")):
        assert row.text("plans").startswith(count)
    assert section is not None
    if match := re.search(
        r"\*\*Plans:?\*\*:? *(\d+/\d+)", "\n".join(roadmap.lines[section.line : section.end])
    ):
        assert match[1] == count
    assert read_frontmatter(after["STATE.md"], path="STATE.md").text("milestone") == read_frontmatter(
        texts["STATE.md"], path="STATE.md"
    ).text("milestone")


def test_a_phase_that_only_the_old_position_calls_complete_stays_complete(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    table = "| Phase | Plans | Status | Completed |\n|---|---|---|---|\n| 2. B | 0/1 | Not started | - |\n"
    make_project(
        root,
        {
            "ROADMAP.md": f"### Phase 1: A\n\n### Phase 2: B\n\n### Phase 3: C\n\n## Progress\n\n{table}",
            "STATE.md": "## Current Position\n\nPhase: 2 of 3 (B) — COMPLETE\nStatus: x\nProgress: 40%\n",
            "phases/02-b/02-01-SUMMARY.md": "done",
        },
    )
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", "start")
    assert [one["complete"] for one in json_of("phases", "-C", root)["phases"]] == [False, True, False]

    continue_for_a_plan(root)

    assert [one["complete"] for one in json_of("phases", "-C", root)["phases"]] == [False, True, False]
    assert "Complete    | - |" in (root / ".planning/ROADMAP.md").read_text(), "its date is not known"
    state = (root / ".planning/STATE.md").read_text()
    assert "Phase: 1 of 3 (A)" in state
    assert "Progress: 40%" in state, "the plans of phase 2 were removed, and nobody can count them"
