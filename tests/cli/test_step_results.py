"""What a single step says about the files that it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_core.cli.step_results import result_lines
from gsd_core.model.ids import StepId
from tests.cli.bench import EVIL, Bench, call

CONTEXT = """<decisions>
## Implementation Decisions

### Output
- **D-01:** Stars — shorter
  - Which bullet?
  - Answered by a person
- **D-02:** Newest first
  - Recommended option taken, nobody was asked (yolo)
- **D-03:** Local time
  - Assumed: nobody was asked
</decisions>
"""
DEBUG = "---\nstatus: diagnosed\n---\n\n## Resolution\n\nroot_cause: {}\nfix: {}\nfiles:\n"
AUDIT = """---
milestone: v1.0
status: gaps_found
scores:
  requirements: "1/2"
  phases: "1/1"
gaps:
  requirements:
    - id: CORE-02
      status: unsatisfied
      evidence: "nothing serves it"
---
"""
VERDICT = "---\nstatus: human_needed\nscore: 3/4\nhuman_verification:\n  - test: Look at it\n---\n"


def said(tmp_path: Path, step: str, path: str, text: str) -> list[str]:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return [*result_lines(tmp_path, StepId.parse(step), [path], unchanged=False)][1:]


@pytest.mark.parametrize(
    ("step", "path", "text", "lines"),
    [
        ("1/discuss", "phases/01-a/01-CONTEXT.md", CONTEXT, ["decisions: 3, 2 of them assumed"]),
        (
            "debug/x",
            "debug/x.md",
            DEBUG.format("A typo", "Fix it"),
            ["root cause: A typo", "suggested fix: Fix it"],
        ),
        ("debug/x", "debug/x.md", DEBUG.format("", ""), ["root cause: not found"]),
        (
            "audit/v1.0",
            "v1.0-MILESTONE-AUDIT.md",
            AUDIT,
            ["audit: gaps found (requirements 1/2, phases 1/1)", "missing: CORE-02 nothing serves it"],
        ),
        (
            "1/verify",
            "phases/01-a/01-VERIFICATION.md",
            VERDICT,
            ["verdict: human needed (3/4): 1 manual check"],
        ),
        (
            "survey",
            "codebase/CONCERNS.md",
            "- a\n",
            ["concerns: 1 item listed in .planning/codebase/CONCERNS.md"],
        ),
        ("audit/v1.0", "v1.0-MILESTONE-AUDIT.md", "---\n: [\n---\n", []),
    ],
)
def test_the_result_is_summarized_from_the_file(
    tmp_path: Path, step: str, path: str, text: str, lines: list[str]
) -> None:
    assert said(tmp_path, step, f".planning/{path}", text) == lines


def test_a_file_that_is_gone_is_no_error_and_text_cannot_control_the_terminal(tmp_path: Path) -> None:
    gone = [*result_lines(tmp_path, StepId.parse("1/verify"), ["1-VERIFICATION.md"], unchanged=False)]
    [line, *_] = said(tmp_path, "debug/x", ".planning/debug/x.md", DEBUG.format(EVIL, "x"))

    assert gone == ["removed 1-VERIFICATION.md"]
    assert line.startswith("root cause: ")
    assert not {"\x1b", "\x07", "\u202e", "\n"} & {*line}


@pytest.mark.parametrize("command", ["verify", "plan", "execute", "discuss"])
def test_a_phase_of_a_closed_milestone_is_refused_with_its_milestone(bench: Bench, command: str) -> None:
    planning = bench.root / ".planning"
    (planning / "milestones" / "v1.0-phases" / "01-entries").mkdir(parents=True)
    phases = "## Phases\n\n- [x] **Phase 1: Entries** - list them\n"
    (planning / "milestones" / "v1.0-ROADMAP.md").write_text(f"# Roadmap: Milestone v1.0\n\n{phases}")
    (planning / "ROADMAP.md").write_text(
        "# Roadmap\n\n## Milestones\n\n- ✅ **v1.0 First** — Phase 1 (shipped 2026-01-02)\n"
        "- 🚧 **v1.1 Second** — Phase 2 (in progress)\n\n"
        "## Phases\n\n### 🚧 v1.1 Second (In Progress)\n\n- [ ] **Phase 2: More** - more\n\n"
        "### Phase 2: More\n**Goal**: more\n"
    )

    result = call(command, "1", "-C", bench.root)

    assert result.exit_code == 2
    assert "phase 1 belongs to milestone v1.0, which is closed" in result.stderr
    assert "phases --all" in result.stderr


def test_files_that_a_step_moved_or_removed_are_not_reported_as_written(tmp_path: Path) -> None:
    archive = tmp_path / ".planning/milestones"
    (archive / "v1.0-phases/01-greetings").mkdir(parents=True)
    (archive / "v1.0-REQUIREMENTS.md").write_text("# Requirements\n")
    (tmp_path / ".planning/ROADMAP.md").write_text("# Roadmap\n")
    paths = [
        ".planning/milestones/v1.0-REQUIREMENTS.md",
        ".planning/ROADMAP.md",
        ".planning/phases/01-greetings",
        ".planning/milestones/v1.0-phases/01-greetings",
        ".planning/REQUIREMENTS.md",
        ".planning/HANDOFF.md",
    ]

    assert [*result_lines(tmp_path, StepId.parse("close/v1.0"), paths, unchanged=False)] == [
        "moved .planning/REQUIREMENTS.md to .planning/milestones/v1.0-REQUIREMENTS.md",
        "wrote .planning/ROADMAP.md",
        "moved .planning/phases/01-greetings to .planning/milestones/v1.0-phases/01-greetings",
        "removed .planning/HANDOFF.md",
    ]
