"""Rate limits: what one run learns, another one waits for, and says so."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gsd_core import AgentHost, AgentResult, AgentTask, Outage, Postpone, Spend, Transient
from gsd_core.hookspecs import gsd_check_budget
from gsd_core.machine.due import due
from gsd_core.machine.fold import fold
from gsd_core.machine.state import State
from gsd_core.views.next import describe_due
from gsd_plugins import governor

from . import harness as h

pytestmark = pytest.mark.slow

QUICK = {"slowest": "1s"}
"""After a limit, a call each second, instead of each quarter of a minute."""


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GSD_STATE_DIR", str(tmp_path / "state"))


def do(root: Path, before: Any = None, **more: Any) -> Any:
    agent = h.Watched(h.one_phase(), before)
    sections: dict[str, dict[str, Any]] = {"retry": {"outage": 0}, "governor": QUICK}
    return h.do(h.request(root, agent, given=h.idea(), sections=sections, governor=governor, **more))


@pytest.mark.parametrize("kind", [Outage, Transient])
def test_a_run_waits_for_the_limit_that_another_one_has_met_and_says_so(
    tmp_path: Path, kind: type[Transient]
) -> None:
    one, two = h.repository(tmp_path / "one"), h.repository(tmp_path / "two")
    until = h.now() + timedelta(seconds=4)

    async def refused(task: AgentTask, host: AgentHost) -> AgentResult | None:
        raise kind("429", until)

    sections: dict[str, dict[str, Any]] = {
        "retry": {"outage": 0},
        "limits": {"max_wait": 0},
        "governor": QUICK,
    }
    first = h.do(
        h.request(
            one, h.Watched(h.one_phase(), refused), given=h.idea(), sections=sections, governor=governor
        )
    )
    second = do(two)

    [timer, *_] = waits = h.facts(two, "timer.set")
    assert (first.exit, second.exit) == (75 if kind is Outage else 5, 0)
    assert datetime.fromisoformat(timer.data["until"]) >= until - timedelta(milliseconds=1)
    assert timer.data["why"].startswith("the rate limit of the agent 'fake'")
    assert {fact.data["why"] for fact in h.facts(two, "attempt.lost")} == {"postponed"}
    assert h.facts(two, "attempt.failed") == []
    # Nothing was opened, and so nothing reserved, before its time had come.
    assert all(fact.at >= until - timedelta(milliseconds=1) for fact in h.facts(two, "agent.opened"))
    state = fold(State(), [fact for fact in h.facts(two) if fact.seq <= waits[0].seq])
    [work, *_] = due(state)
    assert re.match("it waits until .*: the rate limit of the agent 'fake'", describe_due(work, state))


def test_a_policy_may_postpone_each_call_once(tmp_path: Path) -> None:
    root, seen = h.repository(tmp_path / "project"), set[int]()

    async def later(spend: Spend) -> Postpone | None:
        if not spend.agents or spend.calls in seen:
            return None
        seen.add(spend.calls)
        return Postpone(reason="not yet", until=h.now() + timedelta(milliseconds=30))

    end = do(root, policy=h.plugin(gsd_check_budget, later))

    answers = [fact for fact in h.facts(root, "agent.closed") if fact.data["ended"] == "done"]
    assert end.exit == 0
    assert len(h.facts(root, "timer.set")) == len(answers) == len(seen)
    assert len({(fact.step, fact.data["key"]) for fact in answers}) == len(answers)
