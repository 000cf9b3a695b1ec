"""Plans side by side: each in a work tree of its own, merged one by one, nothing lost or done twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from gsd_core import AgentHost, AgentResult, AgentTask
from gsd_core.run.runtime import RunRequest

from . import harness as h

SIX = [f"01-0{number}" for number in range(1, 7)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return h.repository(tmp_path / "project")


@define
class Clock:
    """Who executes a plan at the same time as whom; each takes as long as *pause* says."""

    pause: float = 0.3
    now: set[str] = field(factory=set[str], init=False)
    together: list[frozenset[str]] = field(factory=list[frozenset[str]], init=False)

    async def before(self, task: AgentTask, _: AgentHost) -> AgentResult | None:
        """Note who works now."""
        if task.role == "executor":
            plan = task.step.rpartition("/")[2]
            self.now.add(plan)
            self.together.append(frozenset(self.now))
            await asyncio.sleep(self.pause)
            self.now.discard(plan)
        return None


def request(root: Path, agent: object, *, new: bool = True, **run: Any) -> RunRequest:
    """Return a request for a run that executes plans in work trees."""
    settings = {"workspace": ["worktree", "inplace"], "depth": "comprehensive", **run}
    return h.request(root, agent, given=h.idea() if new else None, run=settings)


def order(root: Path) -> list[str]:
    """Return the plans in the order in which they were completed."""
    return [one.step.rpartition("/")[2] for one in h.facts(root, "step.completed") if "execute" in one.step]


def check_all_is_there(root: Path, agent: h.Watched) -> None:
    """Check that each plan was executed once, and that the project has all of it."""
    assert sorted(order(root)) == SIX
    assert len(agent.of("executor")) == len(SIX) + len(h.facts(root, "merge.failed"))
    history = h.git(root, "log", "--format=%H").split()
    assert {fact.data["commit"] for fact in h.facts(root, "task.committed")} <= {*history}
    assert sorted((root / "NOTES.md").read_text().split("\n")) == [
        "",
        "- Search b is there.",
        "- Search c is there.",
    ]
    assert h.git(root, "status", "--porcelain") == ""
    assert len(h.git(root, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("most", [1, 2, 3])
def test_plans_that_wait_for_nothing_are_executed_side_by_side_and_merged(root: Path, most: int) -> None:
    clock = Clock()
    agent = h.Watched(h.one_phase(wide=True), clock.before)
    end = h.do(request(root, agent, max_parallel=most))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert max(map(len, clock.together)) == most
    assert (order(root)[0], order(root)[-1]) == (SIX[0], SIX[-1])
    check_all_is_there(root, agent)
    conflicts = [fact.data["paths"] for fact in h.facts(root, "merge.failed")]
    assert conflicts == [["NOTES.md"]] * (most > 1)
