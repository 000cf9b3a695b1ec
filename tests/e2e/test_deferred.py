"""A task that was deferred, and that a gap round makes up for: the run is as good as any other."""

from __future__ import annotations

import pytest

from tests.e2e.project import EXAMPLE, Project

pytestmark = pytest.mark.slow
SCRIPT = """
[scenario]
phases = 2

[[rule]]
when = { plan = "01-02", task = 2 }
do = "lie"
times = 3
"""


def test_a_gap_round_that_closes_a_deferral_ends_the_run_with_0(project: Project) -> None:
    project.create()
    script = project.base / "deferred.toml"
    script.write_text(SCRIPT)
    project.environment = {"GSD_REHEARSAL_CLI": "false", "GSD_SANDBOX": "off"}

    done = project.gsd("run", EXAMPLE, "--agent", "rehearsal", "--script", script, "--yes")

    assert done.exit == 0, done.err
    [deferred] = project.facts("task.deferred")
    assert (deferred.data["plan"], deferred.data["task"]) == ("01-02", 2)
    gaps = [fact.data["gaps"] for fact in project.facts("step.completed") if fact.step.startswith("1/verify")]
    assert "01-02/2" in gaps[0]
    assert gaps[-1] == []
    last = done.out.splitlines()[-1]
    assert last.startswith("done: 2 phases complete")
    assert "deferred" not in last
    [items] = project.root.glob(".planning/phases/01-*/deferred-items.md")
    assert "- [x] Task 2 was not done: " in items.read_text("utf-8")
    audit = (project.root / ".planning" / "v1.0-MILESTONE-AUDIT.md").read_text("utf-8")
    assert "Deferred: " not in audit
    assert (project.root / "README.md").is_file()
