"""Budgets of a run, a phase, a project and a day, in dollars, tokens and turns."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core.codec import unstructure
from gsd_core.errors import Permanent
from gsd_core.journal.store import Journal
from gsd_core.model.agent import Activity, AgentHost, AgentResult, AgentTask
from gsd_core.model.usage import Usage
from gsd_core.run.runtime import RunEnd
from gsd_core.run.start import run_project
from gsd_core.settings import journals_folder
from gsd_core.trust import KnownJournals

from . import harness as h

Limits = dict[str, object]


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests' projects are projects of the same user."""
    monkeypatch.setenv("GSD_STATE_DIR", str(tmp_path / "state"))


def uses(turns: int = 1, role: str = "roadmapper", **usage: Any) -> h.Watched:
    """Return an agent that reports so much after each turn in this *role*."""

    async def work(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != role:
            return None
        values: dict[str, Any] = {"turns": 1, **usage}
        turn = Usage(**values)
        for _ in range(turns):
            await host.progress(Activity(kind="text"), turn)
        return None

    return h.Watched(h.one_phase(), work)


def reached() -> h.Watched:
    """Return an agent that fails in its first call: a run that may spend ends with exit code 1."""

    async def fail(task: AgentTask, host: AgentHost) -> AgentResult | None:
        raise Permanent("the agent was reached")

    return h.Watched(h.one_phase(), fail)


def run(
    root: Path, agent: object, limits: Limits, *, clock: Callable[[], datetime] = h.now, **more: Any
) -> RunEnd:
    resume = h.journal(root).exists() and h.facts(root, "run.started")
    given = None if resume else h.idea()
    request = h.request(root, agent, given=given, sections={"budget": limits}, **more)
    return h.do(evolve(request, clock=clock))


def test_tokens_of_an_agent_that_does_not_know_its_price_are_limited(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = run(root, uses(100, input_tokens=1_000_000, basis="unknown"), {"max_tokens": 3_000_000})

    used = sum(fact.data["usage"]["input_tokens"] for fact in h.facts(root, "agent.closed"))
    assert (end.outcome, end.exit) == ("budget", 5)
    assert "of the 3,000,000-token budget is spent" in end.reason
    assert used <= 3_000_000


def test_a_budget_in_dollars_stops_at_the_first_turn_of_unknown_cost(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = run(root, uses(100, input_tokens=1_000_000), {"max_usd": "1"})

    last = h.facts(root, "agent.closed")[-1]
    assert (end.outcome, end.exit, last.data["usage"]["turns"]) == ("budget", 5, 1)
    assert "does not report how many dollars it uses, so a budget in dollars cannot be kept" in end.reason
    assert "--max-budget-turns" in end.reason


async def _nothing(task: AgentTask, host: AgentHost) -> AgentResult | None:
    return AgentResult(value={}, usage=Usage())


@pytest.mark.parametrize("limits", [{"max_usd": "1"}, {"max_tokens": 1000}])
def test_an_agent_that_reports_nothing_gets_one_call_at_most(tmp_path: Path, limits: Limits) -> None:
    root, agent = h.repository(tmp_path / "project"), h.Watched(h.one_phase(), _nothing)

    end = run(root, agent, limits)

    assert (end.outcome, end.exit, len(agent.tasks)) == ("budget", 5, 1)


def test_each_call_of_an_agent_that_reports_nothing_is_a_turn(tmp_path: Path) -> None:
    root, agent = h.repository(tmp_path / "project"), h.Watched(h.one_phase(), _nothing)

    end = run(root, agent, {"max_turns": 2})

    assert (end.exit, len(agent.tasks)) == (5, 2)
    assert [task.limits.turns for task in agent.tasks] == [2, 1]
    assert "2 of the 2-turn budget is spent" in end.reason


@pytest.mark.parametrize("role", ["executor", "roadmapper"])
def test_a_phase_has_a_budget_of_its_own_and_what_is_outside_of_phases_too(tmp_path: Path, role: str) -> None:
    root = h.repository(tmp_path / "project")

    end = run(root, uses(100, role, dollars=Decimal("0.10"), basis="reported"), {"phase_usd": "0.50"})

    assert end.exit == 5
    assert "$0.50 budget of the phase is spent" in end.reason
    assert "raise the setting budget.phase_usd and resume" in end.reason


def test_a_project_counts_its_earlier_runs_and_a_run_does_not(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    _spent(root, "r-0", "1.00")

    end = run(root, h.one_phase(), {"project_usd": "1", "max_usd": "1"})

    assert end.exit == 5
    assert "$1.00 of the $1.00 budget of the project is spent" in end.reason


@pytest.mark.parametrize("agent", ["fake", "rehearsal"])
def test_a_day_counts_other_projects_and_what_is_in_progress_there(tmp_path: Path, agent: str) -> None:
    root, other = h.repository(tmp_path / "project"), h.repository(tmp_path / "other")
    _spent(other, "r-0", "0.60", agent=agent)
    _spent(other, "r-0", "0.40", agent=agent, ends=False)

    end = run(root, reached(), {"day_usd": "1"})

    # A rehearsal costs nothing.
    assert end.exit == (5 if agent == "fake" else 1)
    assert ("of the $1.00 budget of the day is spent" in end.reason) == (agent == "fake")


def test_a_copy_of_a_project_does_not_count_twice(tmp_path: Path) -> None:
    root, other = h.repository(tmp_path / "project"), tmp_path / "other"
    _spent(root, "r-0", "0.60")
    shutil.copytree(root, other)
    run(other, reached(), {"max_usd": "0"})

    assert run(root, reached(), {"day_usd": "1"}).exit == 1


@pytest.mark.parametrize(
    ("later", "code"), [(timedelta(hours=-1), 5), (timedelta(days=1), 1), (timedelta(days=-9), 5)]
)
def test_a_day_ends_at_midnight_by_the_clock_of_the_run(tmp_path: Path, later: timedelta, code: int) -> None:
    """Also in a run that goes on over midnight; a clock that is set back hides nothing."""
    root, other = h.repository(tmp_path / "project"), h.repository(tmp_path / "other")
    noon = datetime(2031, 5, 5, 12, tzinfo=datetime.now(UTC).astimezone().tzinfo)
    _spent(other, "r-0", "1.00", at=noon)

    end = run(root, reached(), {"day_usd": "1"}, clock=lambda: noon.astimezone(UTC) + later)

    assert end.exit == code


def test_a_run_that_is_stopped_for_the_day_goes_on_after_midnight(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    noon = datetime(2031, 5, 5, 12, tzinfo=UTC)
    first = run(root, h.one_phase(), {"day_usd": "0.002"}, clock=lambda: noon)

    same_day = run(root, h.one_phase(), {"day_usd": "0.002"}, clock=lambda: noon + timedelta(hours=1))
    next_day = run(root, reached(), {"day_usd": "0.002"}, clock=lambda: noon + timedelta(days=1))

    assert (first.exit, same_day.exit, next_day.exit) == (5, 5, 1)


def test_the_state_of_another_project_does_not_stop_the_run(tmp_path: Path) -> None:
    root, other = h.repository(tmp_path / "project"), h.repository(tmp_path / "other")
    _spent(other, "r-0", "0.10")
    h.journal(other).write_bytes(b"SQLite format 3\0 damaged")

    assert run(root, reached(), {"day_usd": "1"}).exit == 1


@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": -1_000_000},
        {"dollars": Decimal(-5)},
        {"dollars": Decimal("NaN")},
        {"dollars": Decimal("Infinity")},
        {"output_tokens": 10**40},
        {"cache_read_tokens": 1.5},
        {"dollars": 0.1},
    ],
)
def test_an_impossible_usage_fails_the_step_and_lowers_nothing(tmp_path: Path, usage: dict[str, Any]) -> None:
    root = h.repository(tmp_path / "project")

    end = run(root, uses(**usage), {"max_usd": "1"})

    assert end.exit == 1
    assert "is impossible" in end.reason


@pytest.mark.parametrize("ends_with_an_error", [False, True])
def test_what_an_agent_says_at_the_end_takes_nothing_back(tmp_path: Path, ends_with_an_error: bool) -> None:
    root = h.repository(tmp_path / "project")

    async def understates(task: AgentTask, host: AgentHost) -> AgentResult | None:
        turn = Usage(turns=1, input_tokens=70, dollars=Decimal("0.60"), basis="reported")
        for _ in range(3):
            await host.progress(Activity(kind="text"), turn)
        last = Usage(turns=1, output_tokens=5, dollars=Decimal("0.01"), basis="reported")
        value: Any = object() if ends_with_an_error else {}
        return AgentResult(text="", value=value, usage=last)

    run(root, h.Watched(h.one_phase(), understates), {})

    used = h.facts(root, "agent.closed")[0].data["usage"]
    assert (used["dollars"], used["turns"]) == ("1.80", 3)
    assert (used["input_tokens"], used["output_tokens"]) == (210, 5)


@pytest.mark.parametrize(("limit", "code"), [("0.001", 5), ("5", 1)])
def test_a_resumed_run_counts_what_it_spent_against_its_new_budget(
    tmp_path: Path, limit: str, code: int
) -> None:
    root = h.repository(tmp_path / "project")
    assert run(root, h.one_phase(), {"max_usd": "0.004"}).exit == 5

    assert run(root, reached(), {"max_usd": limit}).exit == code


def test_the_turns_of_a_killed_call_count_when_the_run_is_resumed(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def killed() -> None:
        async def work(task: AgentTask, host: AgentHost) -> AgentResult | None:
            if task.role == "executor":
                await host.progress(
                    Activity(kind="text"), Usage(turns=1, dollars=Decimal("0.90"), basis="reported")
                )
                main.cancel()
                await asyncio.sleep(60)
            return None

        request = h.request(root, h.Watched(h.one_phase(), work), given=h.idea())
        main = asyncio.ensure_future(run_project(request))
        with pytest.raises(asyncio.CancelledError):
            await main

    asyncio.run(killed())

    end = run(root, h.one_phase(), {"max_usd": "0.90"})

    assert end.exit == 5
    assert "of the $0.90 budget is spent" in end.reason


def _spent(
    root: Path,
    name: str,
    dollars: str,
    *,
    at: datetime | None = None,
    agent: str = "fake",
    ends: bool = True,
) -> None:
    """Write a run with one agent call, which may be in progress, as another session of the user does."""
    h.journal(root).parent.mkdir(parents=True, exist_ok=True)
    with Journal.open(h.journal(root), clock=lambda: (at or h.now()).astimezone(UTC)) as journal:
        used = unstructure(Usage(turns=1, dollars=Decimal(dollars), basis="reported"))
        journal.append("run.opened", {"agent": [agent]}, run=name)
        journal.append("agent.opened", {"key": f"k{dollars}"}, run=name, step="1/plan")
        if ends:
            journal.append(
                "agent.closed",
                {"key": f"k{dollars}", "ended": "done", "usage": used},
                run=name,
                step="1/plan",
            )
        else:
            journal.activity("agent.activity", {"key": f"k{dollars}", "usage": used}, run=name, step="1/plan")
        KnownJournals(journals_folder()).add(journal, root, h.now())
