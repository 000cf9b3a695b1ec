"""``gsd cost``: what the agent calls of a run cost, in groups, against the budget."""

from __future__ import annotations

from pathlib import Path

from tests.cli.bench import EVIL, Bench, call, said


def spend(bench: Bench, step: str, model: str, dollars: str | None, basis: str, tokens: int = 1000) -> None:
    usage = {"input_tokens": tokens, "output_tokens": 10, "turns": 1, "basis": basis, "dollars": dollars}
    bench.fact("agent.opened", step, key="k", model=model)
    bench.fact("agent.closed", step, key="k", ended="done", usage=usage)


def test_without_a_run_there_is_no_cost(bench: Bench) -> None:
    assert "no run yet" in call("cost", "-C", bench.root).stdout
    assert said("cost", "-C", bench.root)["total"]["calls"] == 0


def test_the_cost_is_grouped_by_phase_step_model_and_day(bench: Bench) -> None:
    bench.start()
    spend(bench, "init", "opus", "0.50", "reported")
    spend(bench, "2/plan", "opus", "1.25", "reported")
    spend(bench, "2/execute/02-02", "sonnet", "0.25", "reported", tokens=5000)

    def groups(by: str) -> list[tuple[str, str, int]]:
        found = said("cost", "--by", by, "-C", bench.root)
        return [(row[by], row["dollars"], row["tokens"]["total"]) for row in found["groups"]]

    assert groups("phase") == [("no phase", "0.50", 1010), ("2", "1.50", 6020)]
    assert [name for name, _, _ in groups("step")] == ["init", "2/plan", "2/execute/02-02"]
    assert groups("model") == [("opus", "1.75", 2020), ("sonnet", "0.25", 5010)]
    assert [dollars for _, dollars, _ in groups("day")] == ["2.00"]
    assert said("cost", "-C", bench.root)["total"]["dollars"] == "2.00"


def test_an_estimate_and_an_unknown_cost_are_called_so(bench: Bench) -> None:
    bench.start()
    spend(bench, "2/plan", "opus", "1.00", "priced")
    spend(bench, "2/verify", "opus", None, "unknown")

    shown = call("cost", "-C", bench.root).stdout
    found = said("cost", "-C", bench.root)["total"]

    assert shown.startswith("about $1.00 + unknown, 2,020 tokens, 2 agent calls\n")
    assert "1 call estimated from tokens and list prices" in shown
    assert "1 call of unknown cost not included in the dollars" in shown
    assert (found["estimated_calls"], found["calls_of_unknown_cost"]) == (1, 1)


def test_the_budget_is_the_one_that_the_run_was_given(bench: Bench) -> None:
    bench.fact("run.started", idea={"name": "idea.md", "text": "", "sha256": ""})
    bench.fact("run.opened", agent=["fake"], options={}, typed={"budget": {"max_usd": "5"}})
    spend(bench, "init", "opus", "1.50", "reported")

    assert said("cost", "-C", bench.root)["budget"] == {"dollars": "5", "left": "3.50"}
    assert "budget: $3.50 left of $5.00 (--max-budget-usd)" in call("cost", "-C", bench.root).stdout


def test_all_runs_are_added_up_on_request(bench: Bench) -> None:
    bench.start()
    spend(bench, "init", "opus", "1.00", "reported")
    bench.close()
    bench.run = "r-2"
    bench.start()
    spend(bench, "init", "opus", "0.25", "reported")

    assert said("cost", "-C", bench.root)["total"]["dollars"] == "0.25"
    every = said("cost", "--all", "-C", bench.root)
    assert (every["runs"], every["total"]["dollars"]) == (["r-1", "r-2"], "1.25")


def test_names_of_models_cannot_control_the_terminal(bench: Bench) -> None:
    bench.start()
    spend(bench, "init", EVIL, "1.00", "reported")

    shown = call("cost", "--by", "model", "-C", bench.root).stdout

    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_an_unknown_grouping_is_a_usage_error(bench: Bench, tmp_path: Path) -> None:
    assert call("cost", "--by", "hour", "-C", bench.root).exit_code == 2
