"""What a project has to be if its run ended with 0, and how tests write files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from gsd_core.planning.survey import read_planning
from tests.run.harness import facts, git

PLAN = ".planning/phases/01-greetings/01-01-PLAN.md"


def problems(root: Path, copy: Path) -> Iterator[str]:
    """Yield what is not genuine about a project whose run ended with 0, judged by a clone of its HEAD."""
    subprocess.run(["git", "clone", "-q", str(root), str(copy)], check=True)
    tests = subprocess.run(
        [sys.executable, "-B", "-m", "unittest"], cwd=copy, capture_output=True, text=True, check=False
    )
    if tests.returncode or "Ran 0 tests" in tests.stderr:
        yield f"the tests of HEAD do not pass: {tests.stderr}"
    planning = read_planning(copy)
    plans = [plan for phase in planning.phases for plan in phase.plans]
    if not plans or not all(plan.must_haves.truths for plan in plans):
        yield "a plan promises nothing"
    for plan in plans:
        yield from (f"not in HEAD: {path}" for path in plan.files_modified if not (copy / path).is_file())
    completed = {fact.step for fact in facts(root, "step.completed")}
    for phase in planning.phases:
        if phase.ticked and f"{phase.number}/complete" not in completed:
            yield f"phase {phase.number} is ticked but was not completed by the run"
    if (branch := git(root, "branch", "--show-current").strip()) != "main":
        yield f"on branch {branch!r}"
    if dirty := git(root, "status", "--porcelain"):
        yield f"not clean: {dirty}"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def append(path: Path, text: str) -> None:
    write(path, (path.read_text("utf-8") if path.exists() else "") + text)
