"""Verdicts that are older than the work that they are about."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gsd_core.git import Git
from gsd_core.planning.model import PhaseView, Plan, Verdict
from gsd_core.run.snapshot import with_verdicts

from . import harness as h


@pytest.mark.parametrize("folder", [".planning/phases/01-one", ".planning/milestones/v1.0-phases/01-one"])
def test_a_summary_that_is_committed_after_the_verdict_makes_it_stale(tmp_path: Path, folder: str) -> None:
    root = h.repository(tmp_path / "project")
    verdict, summary = f"{folder}/01-VERIFICATION.md", f"{folder}/01-01-SUMMARY.md"
    (root / folder).mkdir(parents=True)

    def is_stale_after(path: str, text: str) -> bool:
        """Commit a file, and return whether the verdict is stale then."""
        (root / path).write_text(text)
        h.git(root, "add", "-A")
        h.git(root, "commit", "-q", "-m", path)
        plan = Plan(id="01-01", phase="1", summary=summary)
        passed = Verdict(status="passed", path=verdict)
        view = PhaseView(number="1", name="One", project=root, plans=(plan,), verdict=passed)
        [judged] = asyncio.run(with_verdicts(Git(root), [view]))
        assert judged.verdict
        return judged.verdict.stale

    assert not is_stale_after(verdict, "first")
    assert is_stale_after(summary, "later")
    assert not is_stale_after(verdict, "second")
