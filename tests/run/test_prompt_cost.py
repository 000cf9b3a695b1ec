"""The benchmark of our prompts runs, and they stay within their limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import prompt_cost


@pytest.mark.slow
def test_a_phase_costs_fewer_than_12_000_tokens_of_our_own(tmp_path: Path) -> None:
    costs = prompt_cost.measure(tmp_path)

    print(prompt_cost.table(costs))
    assert [cost.role for cost in costs] == ["discusser", "planner", "executor", "verifier"]
    assert 1_000 < prompt_cost.total(costs) < prompt_cost.LIMIT
    assert all(cost.content and cost.cli_tools for cost in costs), "what others add is counted separately"
