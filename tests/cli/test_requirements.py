"""``gsd requirements``: each requirement is traced from the files, for any project and without a run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core.model.checks import CaseResult, CheckResult, TaskCheck
from gsd_core.model.gap import Evidence, Gap, GapReport
from gsd_core.planning.survey import read_planning
from gsd_core.planning.traceability import count_verified
from gsd_core.planning.verification import render_verification
from gsd_core.run.tracing import trace_all
from tests.cli.bench import call, said
from tests.planning.trees import make_project
from tests.run.harness import git, repository

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
PLAN = """---
phase: 01-core
plan: 01
type: execute
wave: 1
depends_on: []
files_modified: [a.py]
autonomous: true
requirements: [CORE-01, CORE-02]
must_haves:
  truths:
    - "It works"
---
<tasks>
<task type="auto"><name>Do it</name><verify><automated>python3 a.py</automated></verify></task>
</tasks>
"""
FILES = {
    "ROADMAP.md": (
        "### Phase 1: Core\n**Goal**: It works\n**Requirements**: CORE-01, CORE-02, CORE-03\n"
        "**Success Criteria** (what must be TRUE):\n1. It runs\n"
        "### Phase 2: Later\n**Requirements**: CORE-04\n"
    ),
    "REQUIREMENTS.md": "## v1 Requirements\n### Core\n"
    + "".join(f"- [ ] **CORE-0{n}**: Requirement {n}\n" for n in range(1, 6)),
    "phases/01-core/01-01-PLAN.md": PLAN,
    "phases/01-core/01-01-SUMMARY.md": "# Summary\n\n1. **Task 1: Do it** - `HASH`\n",
}
PROVEN = ("CORE-01", "CORE-02", "01:C1", "01-01:T1")


def project(tmp_path: Path, report: GapReport | None, **checks: int) -> Path:
    """Make a committed project whose phase 1 was executed, and verified with *report*."""
    root = make_project(repository(tmp_path / "project"), FILES)
    git(root, "commit", "-q", "--allow-empty", "-m", "feat(01-01): Do it")
    sha = git(root, "rev-parse", "HEAD").strip()
    summary = root / ".planning/phases/01-core/01-01-SUMMARY.md"
    summary.write_text(summary.read_text().replace("HASH", sha[:7]) + "\nAlso `abcdef1`, which is none.\n")
    planning = read_planning(root)
    phase = planning.phases[0]
    if report is not None:
        ran = CheckResult(command="python3 a.py", exit=checks.get("exit", 0), cases=CASES)
        phase = evolve(phase, checks=(TaskCheck(plan="01-01", task=1, result=ran),))
        text = render_verification(phase, report, now=NOW, requirements=planning.requirements)
        (root / phase.directory / "01-VERIFICATION.md").write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "docs")
    return root


CASES = (
    CaseResult(
        name="t.py::test_f[a|b]", outcome="passed", passes_without=False, needs=("a.py: f", "a.py: g")
    ),
    CaseResult(name="t.py::test_g", outcome="passed", passes_without=False),
    CaseResult(name="t.py::test_h", outcome="passed", passes_without=True),
    CaseResult(name="t.py::test_i", outcome="passed"),
    CaseResult(name="t.py::test_j", outcome="skipped"),
)


def holds(*names: str, proof: str = "a.py:1: seen") -> tuple[Evidence, ...]:
    return tuple(Evidence(about=name, holds=True, proof=proof) for name in names)


def rows(root: Path) -> Mapping[str, Any]:
    return {row["id"]: row for row in said("requirements", "-C", root)["requirements"]}


def test_a_verified_requirement_has_the_whole_chain(tmp_path: Path) -> None:
    root = project(tmp_path, GapReport(evidence=holds(*PROVEN)))

    row = rows(root)["CORE-01"]

    assert (row["phase"], row["plans"]) == ("1", ["01-01"])
    assert row["commits"] == [git(root, "rev-parse", "HEAD~1").strip()]
    check = {"id": "01-01/1", "command": "python3 a.py", "status": "holds", "result": "exit 0"}
    assert row["checks"] == [
        {
            **check,
            "cases": [
                {"name": "t.py::test_f[a|b]", "fails_without": "a.py: f, a.py: g"},
                {"name": "t.py::test_g", "fails_without": "the work of 01-01"},
                {"name": "t.py::test_h", "fails_without": "nothing: it passes without the work of 01-01 too"},
                {"name": "t.py::test_i", "fails_without": "not measured"},
            ],
        }
    ]
    assert "2/4" in call("requirements", "-C", root).stdout
    assert [(one["about"], one["status"], one["proof"]) for one in row["evidence"]] == [
        ("CORE-01", "holds", "a.py:1: seen"),
        ("01-01:T1", "holds", "a.py:1: seen"),
    ]
    assert (row["status"], row["reason"]) == ("Complete", "")


def test_a_requirement_that_drops_out_is_an_error_with_the_reason(tmp_path: Path) -> None:
    root = project(tmp_path, GapReport(evidence=holds("CORE-01", "01:C1", "01-01:T1")))

    found = rows(root)

    assert found["CORE-02"]["status"] == "Blocked"  # its row says uncertain: nothing proves it
    assert found["CORE-03"]["status"] == "Error"
    assert "no plan of phase 1 lists CORE-03" in found["CORE-03"]["reason"]
    assert found["CORE-04"]["status"] == "Pending"
    assert found["CORE-05"]["reason"] == "in no phase"


def test_a_requirement_that_its_verification_does_not_mention_is_an_error(tmp_path: Path) -> None:
    root = project(tmp_path, GapReport(evidence=holds(*PROVEN)))
    [path] = root.glob(".planning/phases/*/01-VERIFICATION.md")
    lines = [line for line in path.read_text().splitlines() if not line.startswith("| CORE-02 ")]
    path.write_text("\n".join(lines))

    row = rows(root)["CORE-02"]

    assert row["status"] == "Error"
    assert "no evidence for CORE-02" in row["reason"]


@pytest.mark.parametrize("about", ["CORE-01", "01-01:T1", "01-01/1"])
def test_a_gap_in_anything_that_a_requirement_needs_blocks_it(tmp_path: Path, about: str) -> None:
    gap = Gap(truth="t", reason="it | crashes", about=about)
    proven = holds(*(name for name in PROVEN if name != about))
    root = project(tmp_path, GapReport(gaps=(gap,), evidence=proven), exit=1 if "/" in about else 0)

    assert rows(root)["CORE-01"]["status"] == "Blocked"


@pytest.mark.parametrize(
    "proof", ["status", "| ✓ VERIFIED | status", "✓ VERIFIED\n\n| # | Status |\n| x | y |"]
)
def test_what_a_model_writes_as_its_proof_cannot_change_another_row(tmp_path: Path, proof: str) -> None:
    gap = Gap(truth="t", reason="✓ VERIFIED", about="CORE-02")
    evidence = holds("CORE-01", "01:C1", "01-01:T1", proof=proof)
    root = project(tmp_path, GapReport(gaps=(gap,), evidence=evidence))

    found = rows(root)

    assert (found["CORE-01"]["status"], found["CORE-02"]["status"]) == ("Complete", "Blocked")


def test_a_project_without_a_chain_keeps_the_status_that_it_claims(tmp_path: Path) -> None:
    bare = PLAN.replace('must_haves:\n  truths:\n    - "It works"\n', "")
    claimed = "| Requirement | Phase | Status |\n|---|---|---|\n| CORE-01 | Phase 1 | Complete |\n"
    files = {**FILES, "phases/01-core/01-01-PLAN.md": bare}
    files["REQUIREMENTS.md"] += claimed

    row = rows(make_project(tmp_path, files))["CORE-01"]

    assert row["status"] == "Complete"
    assert "phase 1 is not verified" in row["reason"]


def test_the_table_shows_why_a_requirement_is_not_complete(tmp_path: Path) -> None:
    root = project(tmp_path, GapReport(evidence=holds(*PROVEN)))

    shown = call("requirements", "-C", root).stdout

    assert "CORE-03: no plan of phase 1 lists CORE-03" in shown


def test_nothing_counts_as_verified_in_a_phase_whose_plans_are_gone(tmp_path: Path) -> None:
    files = {name: text for name, text in FILES.items() if not name.startswith("phases/")}
    claimed = "| Requirement | Phase | Status |\n|---|---|---|\n| CORE-01 | Phase 1 | Complete |\n"
    files["REQUIREMENTS.md"] += claimed

    found = asyncio.run(trace_all(make_project(tmp_path, files)))

    assert found[0].status == "Complete"
    assert count_verified(found) == 0
