"""Phases side by side: plans of several phases at once, and the other steps one at a time beside them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from attrs import evolve

from gsd_core import AgentHost, AgentResult, AgentTask
from gsd_core.machine.state import Options

from . import harness as h
from .test_parallel import request

pytestmark = pytest.mark.slow


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project whose first phase is complete, and whose other two depend only on it."""
    root = h.repository(tmp_path / "project")
    first = request(root, h.one_phase(phases=3))
    end = h.do(evolve(first, options=Options(phases=("1",))))
    assert end.exit == 0, end.reason
    roadmap = root / ".planning" / "ROADMAP.md"
    roadmap.write_text(roadmap.read_text().replace("**Depends on**: Phase 2", "**Depends on**: Phase 1"))
    h.git(root, "commit", "-qam", "Build the last phase on the first")
    return root


class Clock:
    """Which steps have an agent at the same time.

    With *waits*, phase 2 is executed while phase 3 is discussed, and that lasts until there is a result: the
    rehearsal's phase 3 needs it.
    """

    def __init__(self, root: Path, *, waits: bool) -> None:
        self.root, self.waits = root, waits
        self.now: list[str] = []
        self.together: list[frozenset[str]] = []
        self.discusses = asyncio.Event()

    async def before(self, task: AgentTask, _: AgentHost) -> AgentResult | None:
        """Note what is done now."""
        self.now.append(task.step)
        self.together.append(frozenset(self.now))
        async with asyncio.timeout(60):
            if self.waits and task.step == "2/execute/02-01":
                await self.discusses.wait()
            if self.waits and task.step == "3/discuss":
                self.discusses.set()
                while "2/execute/02-01" not in {fact.step for fact in h.facts(self.root, "step.result")}:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        self.now.remove(task.step)
        return None


def test_phases_that_do_not_depend_on_each_other_are_worked_on_at_once(root: Path) -> None:
    clock = Clock(root, waits=True)
    agent = h.Watched(h.one_phase(phases=3), clock.before)
    end = h.do(request(root, agent, new=False, parallel_phases=True))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert {"2/execute/02-01", "3/discuss"} in clock.together
    # Of the steps in the project's folder, one at a time.
    assert all(sum("/execute/" not in step for step in steps) <= 1 for steps in clock.together)
    assert h.git(root, "status", "--porcelain") == ""
    assert len(h.git(root, "worktree", "list").splitlines()) == 1
    assert not h.facts(root, "guard.found")
    assert not h.facts(root, "guard.accepted")


def test_without_the_option_phases_come_one_after_the_other(root: Path) -> None:
    clock = Clock(root, waits=False)
    end = h.do(request(root, h.Watched(h.one_phase(phases=3), clock.before), new=False))

    assert end.exit == 0, end.reason
    assert clock.together
    assert all(len({step.split("/")[0] for step in steps}) == 1 for steps in clock.together)
