"""SIGKILL at random moments: everything that was started is finished, once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.e2e.project import EXAMPLE, FAKE, Project

from .campaign import all_defects, bought_twice, run_with_kills

pytestmark = pytest.mark.slow

SEED = 20260801


def test_an_answer_that_was_recorded_and_bought_again_is_noticed(project: Project) -> None:
    project.create()
    project.environment = {"GSD_FAKE_PHASES": "1"}
    project.gsd("run", EXAMPLE, *FAKE, "--yes")
    facts = project.facts("agent.opened", "agent.closed")
    assert list(bought_twice(facts)) == []

    assert list(bought_twice([*facts, facts[0]])) == ["bought twice: init roadmap"]


def test_runs_killed_sixty_times_are_each_finished_once(tmp_path: Path) -> None:
    chance = random.Random(SEED + 1)
    left = 60
    while left > 0:
        project = Project(tmp_path / str(left))
        project.base.mkdir()
        left -= len(run_with_kills(project, chance, left))
        assert list(all_defects(project)) == []


@pytest.mark.parametrize("seed", range(SEED + 2, SEED + 5))
def test_plans_side_by_side_that_are_killed_sixty_times_are_merged_once_each(
    project: Project, seed: int
) -> None:
    hit = run_with_kills(project, random.Random(seed), 20, parallel=True)

    assert len(hit) == 20
    assert list(all_defects(project)) == []
