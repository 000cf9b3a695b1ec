"""GSD's own tool reads the project that a finished run leaves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gsd_core.planning.state import STATUSES
from gsd_plugins.rehearsal import FakeAgent, Scenario
from tests.peer.reader import ask_gsd, needs_gsd

from . import harness as h


@pytest.mark.slow
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


@pytest.mark.slow
@needs_gsd
def test_gsd_computes_the_position_that_we_write_after_each_step(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    agent = FakeAgent(Scenario(h.IDEA, phases=2, question=False, overloaded=False))
    assert h.do(h.request(root, agent, given=h.idea())).outcome == "done"
    commits = [line.split(" ", 1) for line in h.git(root, "log", "--reverse", "--format=%H %s").splitlines()]
    steps = [(commit, subject) for commit, subject in commits if subject.startswith("docs(")]
    compared = 0
    for commit, subject in steps:
        tree = tmp_path / commit[:12]
        h.git(tmp_path, "clone", "-q", str(root), str(tree))
        h.git(tree, "checkout", "-q", commit)
        theirs = ask_gsd(tree, "state", "json")
        state = (tree / ".planning/STATE.md").read_text()
        if "verify phase" in subject:
            continue  # GSD counts a verified phase before it is marked complete
        compared += 1
        # Its own two numbers differ, and this one is that of `gsd progress`: the written plans.
        assert f"] {ask_gsd(tree, 'roadmap', 'analyze')['progress_percent']}%" in state, subject
        assert f"Phase: {theirs['current_phase']} of {theirs['progress']['total_phases']}" in state, subject
        status = re.search(r"^Status: (.*)$", state, re.MULTILINE)
        assert status, subject
        assert STATUSES[status[1].lower()][0] == theirs["status"], subject
        # S004: the next phase has no folder yet, as after GSD's own `phase complete`.
        warnings = ask_gsd(tree, "state", "validate")["warnings"]
        assert {warning["code"] for warning in warnings} <= {"S004"}, subject

    assert compared > 8
