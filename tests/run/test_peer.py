"""A run of ours that is finished, as the peer's own reader sees it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gsd_plugins.rehearsal import FakeAgent, Scenario

from . import harness as h

TOOLS = "node_modules/@opengsd/gsd-core/gsd-core/bin/gsd-tools.cjs"


@pytest.fixture(scope="module")
def peer() -> Path:
    """Return the peer's reader; it is installed by tests/peer/install.sh."""
    tools = Path(os.environ.get("GSD_PEER_DIR", "absent")) / TOOLS
    if not (tools.exists() and shutil.which("node")):
        if "CI" in os.environ:
            pytest.fail("the peer's reader is not installed: sh tests/peer/install.sh DIR; GSD_PEER_DIR=DIR")
        pytest.skip("the peer's reader is not installed (GSD_PEER_DIR)")
    return tools


def asked(peer: Path, root: Path, *question: str) -> Any:
    done = subprocess.run(["node", peer, *question], cwd=root, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_peers_reader_sees_a_finished_run_as_complete(peer: Path, tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    agent = FakeAgent(Scenario(h.IDEA, phases=2, question=False, overloaded=False))
    assert h.do(h.request(root, agent, given=h.idea())).outcome == "done"

    roadmap = asked(peer, root, "roadmap", "analyze")

    assert roadmap["progress_percent"] == 100
    assert (roadmap["phase_count"], roadmap["completed_phases"]) == (2, 2)
    assert [phase["disk_status"] for phase in roadmap["phases"]] == ["complete", "complete"]
    assert all(phase["roadmap_complete"] for phase in roadmap["phases"])
    assert (roadmap["current_phase"], roadmap["next_phase"]) == (None, None)
    index = asked(peer, root, "phase-plan-index", "1")
    assert [plan["id"] for plan in index["plans"]] == ["01-01", "01-02", "01-03"]
    assert index["incomplete"] == []
