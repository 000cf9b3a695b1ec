"""A gap about behavior is diagnosed before it is planned, and the planner is given the root cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_core.model.agent import AgentHost, AgentResult, AgentTask

from . import harness as h


def completed(root: Path) -> list[str]:
    return [fact.step for fact in h.facts(root, "step.completed")]


@pytest.mark.slow
def test_the_root_cause_of_a_gap_reaches_its_plan(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def doubt(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "verifier" or len(agent.of("verifier")) > 1:
            return None
        result = await agent.agent.run_agent(task, host)
        assert result is not None
        result.value["verdicts"][0] |= {"status": "fails", "reason": "the list is in any order"}
        return result

    # The agent leaves the README without its usage too: a gap that says itself what is missing.
    agent = h.Watched(h.one_phase(gap=True), doubt)
    end = h.do(h.request(root, agent, given=h.idea()))

    assert end.outcome == "done"
    after = completed(root)[completed(root).index("1/verify") :]
    gap_round = ["1/debug/r1", "1/plan/r1", "1/execute/01-02", "1/verify/r1"]
    assert after == ["1/verify", *gap_round, "1/complete", "audit/v1.0"]
    [task] = agent.of("debugger")
    assert "the list is in any order" in task.prompt
    assert "## Usage" not in task.prompt
    [file] = (root / ".planning/debug").iterdir()
    assert "root_cause: What" in file.read_text()
    assert "root cause: What" in agent.of("planner")[-1].prompt
    assert "GSD-Step: 1/debug/r1" in h.git(root, "log", "-1", "--format=%B", "--", str(file))
