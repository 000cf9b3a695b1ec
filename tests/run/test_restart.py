"""A usage limit outlasts the machine: the wait is a recorded timer, and the next boot continues by itself."""

from __future__ import annotations

import multiprocessing
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve

from gsd_core import AgentHost, AgentResult, AgentTask, Transient
from gsd_core.machine.facts import Record
from gsd_core.machine.state import State
from gsd_core.run import start
from gsd_core.testing import FakeClock

from . import harness as h

pytestmark = pytest.mark.slow

POWER_CUT = 77


async def limited(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """The executor's usage limit ends in an hour."""
    if task.role == "executor":
        raise Transient("usage limit reached", until=h.now() + timedelta(hours=1))
    return None


def _cut_power(_: State, record: Record) -> None:
    if record.kind == "timer.set":
        os._exit(POWER_CUT)


def run_until_the_power_is_cut(root: Path) -> None:
    """What the first process does: it ends in the middle of the wait, with nothing tidied up."""
    request = h.request(root, h.Watched(h.one_phase(), limited), given=h.idea())
    h.do(evolve(request, observers=(_cut_power,)))


@pytest.mark.parametrize("passed", [timedelta(minutes=59, seconds=59), timedelta(days=3)])
def test_a_run_that_waits_for_a_limit_continues_after_a_restart_of_the_machine(
    tmp_path: Path, passed: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = h.repository(tmp_path / "project")
    first = multiprocessing.get_context("spawn").Process(target=run_until_the_power_is_cut, args=(root,))
    first.start()
    first.join(60)
    paid = len(h.facts(root, "agent.closed"))
    agent = h.Watched(h.one_phase())
    [timer] = h.facts(root, "timer.set")
    monkeypatch.setattr(start, "boot_id", lambda: "another boot")
    clock, began = FakeClock(start=timer.at + passed), time.monotonic()

    def let_time_pass(_: State, record: Record) -> None:
        if record.kind == "run.opened":
            clock.advance(timedelta(seconds=2))

    request = h.request(root, agent)
    end = h.do(evolve(request, clock=clock.now, observers=(let_time_pass,)))

    assert first.exitcode == POWER_CUT
    assert (end.outcome, end.exit) == ("done", 0)
    assert time.monotonic() - began < 60, "nobody waits for the hour"
    assert len(h.facts(root, "timer.fired")) == 1
    assert len({fact.data["boot"] for fact in h.facts(root, "run.opened")}) == 2
    # What was done before the restart is not asked for, or paid for, again.
    assert not agent.of("roadmapper")
    assert len(h.facts(root, "agent.closed")) > paid
    [executor] = [task for task in agent.of("executor") if task.step == "1/execute/01-01"]
    assert executor.conversation is not None
    assert executor.conversation.resume
