"""Runs without a limit, and what ``gsd status`` and ``gsd cost`` say about a call in progress."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gsd_core.journal.store import Journal
from tests.cli.bench import BEGAN, Bench, call, repository, said
from tests.cli.test_cost import spend
from tests.terminal.pseudo_terminal import on_a_terminal

ORACLE = """
from gsd_core import Finding, Permanent, implements
from gsd_core.hookspecs import gsd_doctor, gsd_run_agent

@implements(gsd_run_agent)
async def run_agent(task, host):
    raise Permanent("the oracle was reached")

@implements(gsd_doctor)
def doctor():
    yield Finding(name="oracle", ok=True, message="is here", reports=("dollars",))
"""


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the arguments of a run in a new project, with an agent that fails."""
    monkeypatch.setenv("GSD_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "oracle.py").write_text(ORACLE)
    (tmp_path / "idea.md").write_text("# A greeter\n")
    root = repository(tmp_path / "project")
    return ["run", f"{tmp_path}/idea.md", "-C", str(root), "-p", f"{tmp_path}/oracle.py", "--agent", "oracle"]


@pytest.mark.slow
def test_a_run_without_a_limit_is_started_only_if_a_person_agrees(options: list[str]) -> None:
    with on_a_terminal("gsd_core", *options, NO_COLOR="1", COLUMNS="200") as screen:
        shown = screen.until("[y/N]: ", 120)
        screen.type("\n")
        refused = screen.ended()
    begun = said("status", "-C", options[3])["run"]
    with on_a_terminal("gsd_core", *options, NO_COLOR="1", COLUMNS="200") as screen:
        screen.until("[y/N]: ", 120)
        screen.type("y\n")
        screen.until("the oracle was reached", 120)

    assert "nothing limits what this run may use" in " ".join(shown.split())
    assert (refused, begun) == (2, None)


def test_nobody_is_asked_who_cannot_answer_and_a_run_says_it_once(options: list[str]) -> None:
    first = call(*options, stdin="")
    limited = call(*options, "--max-budget-usd", "5", stdin="")
    again = call("resume", *options[2:], stdin="")

    assert "warning: nothing limits what this run may use" in first.stderr
    assert "this project has no history for an estimate" in first.stderr
    assert first.exit_code == again.exit_code == 1
    assert "nothing limits" not in limited.stderr + again.stderr


def test_an_estimate_comes_from_the_history_of_the_project(options: list[str]) -> None:
    bench = Bench(Path(options[3]))
    bench.fact("run.started")
    bench.fact("run.opened", agent=["oracle"], options={})
    spend(bench, "1/plan", "opus", "1.00", "reported")
    spend(bench, "2/plan", "opus", "2.00", "reported")
    bench.close()
    (bench.root / ".planning").mkdir()
    bench.run = "r-2"
    bench.fact("run.started")
    bench.fact("run.opened", agent=["rehearsal"], options={})
    spend(bench, "1/plan", "opus", "100.00", "reported")
    bench.close()

    shown = call(*options, stdin="").stderr

    assert "by this project's journal, a phase takes $1.50 on average (2 phases)" in shown


@pytest.mark.slow
def test_a_rehearsal_never_asks(options: list[str]) -> None:
    with on_a_terminal(
        "gsd_core", *options[:4], "--agent", "rehearsal", NO_COLOR="1", GSD_REHEARSAL_CLI="false"
    ) as screen:
        shown = screen.until("init", 120)

    assert "nothing limits" not in shown


@pytest.mark.parametrize("limit", ["-1", "nan", "1.5", "many"])
def test_a_limit_that_is_no_number_is_refused(options: list[str], limit: str) -> None:
    assert call(*options, "--max-budget-tokens", limit).exit_code == 2


def test_status_and_cost_include_the_call_in_progress(bench: Bench) -> None:
    bench.start()
    spend(bench, "2/plan", "opus", "1.00", "reported")
    bench.fact("agent.opened", "2/execute/02-02", key="k", model="opus")
    _turn(bench, "2/execute/02-02", input_tokens=500, turns=1, dollars="0.25", basis="reported")
    _turn(bench, "2/execute/02-02", input_tokens=500, turns=1, dollars="0.50", basis="reported")

    status, cost = said("status", "-C", bench.root)["cost"], said("cost", "-C", bench.root)["total"]

    assert status == {"dollars": "1.75", "tokens": 2010, "calls": 2, "basis": "reported"}
    assert (cost["dollars"], cost["calls"], cost["tokens"]["total"]) == ("1.75", 2, 2010)

    spend(bench, "2/execute/02-02", "opus", "0.90", "reported")

    assert said("status", "-C", bench.root)["cost"]["dollars"] == "1.90"


def test_what_is_left_of_a_budget_is_unknown_if_a_cost_is(bench: Bench) -> None:
    bench.fact("run.started", idea={"name": "idea.md", "text": "", "sha256": ""})
    bench.fact("run.opened", agent=["fake"], options={}, typed={"budget": {"max_usd": "1"}})
    spend(bench, "init", "gpt", None, "unknown", tokens=816_000_000)

    assert said("cost", "-C", bench.root)["budget"] == {"dollars": "1", "left": None}
    assert "budget: an unknown amount is left of $1.00" in call("cost", "-C", bench.root).stdout


def _turn(bench: Bench, step: str, **usage: Any) -> None:
    with Journal.open(bench.journal, clock=lambda: BEGAN) as journal:
        journal.activity("agent.activity", {"key": "k", "usage": usage}, run=bench.run, step=step)
