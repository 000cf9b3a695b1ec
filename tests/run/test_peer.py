"""GSD's own tool reads the project that a finished run leaves."""

from __future__ import annotations

from pathlib import Path

from gsd_plugins.rehearsal import FakeAgent, Scenario
from tests.peer.reader import ask_gsd, needs_gsd

from . import harness as h


@needs_gsd
def test_gsd_reads_a_finished_run_as_complete(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    agent = FakeAgent(Scenario(h.IDEA, phases=2, question=False, overloaded=False))
    assert h.do(h.request(root, agent, given=h.idea())).outcome == "done"

    roadmap = ask_gsd(root, "roadmap", "analyze")

    assert roadmap["progress_percent"] == 100
    assert (roadmap["phase_count"], roadmap["completed_phases"]) == (2, 2)
    assert [phase["disk_status"] for phase in roadmap["phases"]] == ["complete", "complete"]
    assert all(phase["roadmap_complete"] for phase in roadmap["phases"])
    assert (roadmap["current_phase"], roadmap["next_phase"]) == (None, None)
    index = ask_gsd(root, "phase-plan-index", "1")
    assert [plan["id"] for plan in index["plans"]] == ["01-01", "01-02", "01-03"]
    assert index["incomplete"] == []
