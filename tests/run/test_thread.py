"""A whole run: an idea becomes verified, committed code."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gsd_core.hookspecs import ConfigValue, ProjectInfo, gsd_write_config

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
        ("audit/v1.0", ""),
    ]
    assert h.git(root, "status", "--porcelain") == ""


@pytest.mark.slow
def test_a_task_is_recorded_with_the_time_of_its_commit_and_the_files_it_created(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(), given=h.idea()))

    for fact in h.facts(root, "task.committed"):
        stamp = int(h.git(root, "show", "-s", "--format=%ct", fact.data["commit"]))
        new = h.git(root, "show", "--diff-filter=A", "--name-only", "--format=", fact.data["commit"])
        assert abs(datetime.fromisoformat(fact.data["at"]).timestamp() - stamp) < 60
        assert fact.data["created"] == new.split()
    assert len(h.facts(root, "task.committed")) == 2


@pytest.mark.slow
def test_a_config_writer_sees_what_is_set_already(tmp_path: Path) -> None:
    root, seen = h.repository(tmp_path / "project"), list[dict[str, Any]]()

    def write(project: ProjectInfo) -> list[ConfigValue]:
        seen.append(project.config)
        return []

    writer = h.plugin(gsd_write_config, write)
    for idea in (h.idea(), None):
        assert h.do(h.request(root, h.one_phase(), given=idea, writer=writer)).exit == 0

    written = json.loads((root / ".planning" / "config.json").read_text("utf-8"))
    assert (seen[0], seen[-1]) == ({}, written)
