"""The thread: an idea becomes verified, committed code."""

from __future__ import annotations

from pathlib import Path

from . import harness as h


def test_an_idea_becomes_a_verified_phase_with_a_commit_for_each_task(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = h.do(h.request(root, h.one_phase(), given=h.idea()))

    assert (end.outcome, end.exit, end.reason) == ("done", 0, "1 phase complete")
    assert h.trailed(root) == [
        ("init", ""),
        ("1/discuss", ""),
        ("1/plan", ""),
        ("1/execute/01-01", "01-01/1"),
        ("1/execute/01-01", "01-01/2"),
        ("1/execute/01-01", ""),
        ("1/verify", ""),
        ("1/complete", ""),
    ]
    assert h.git(root, "status", "--porcelain") == ""
