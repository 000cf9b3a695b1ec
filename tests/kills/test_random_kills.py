"""SIGKILL at random moments: everything that was started is finished, once."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.e2e.project import EXAMPLE, FAKE, Project, defects

SEED = 20260801
STARTS = 60
"""A run that is not finished by then hangs."""


def run_with_kills(project: Project, chance: random.Random, kills: int) -> int:
    """Run a project to its end, killed at random moments up to *kills* times; return how often it was."""
    project.create()
    project.environment = {"GSD_FAKE_PHASES": "2", "GSD_RETRY_ATTEMPTS": "2"}
    killed = 0
    for _ in range(STARTS):
        started = project.start("run", EXAMPLE, *FAKE, "--yes", "--output-format", "stream-json")
        if killed < kills:
            started.until(started.has_lines(chance.randint(0, 14)))
            time.sleep(chance.uniform(0, 0.12))
            ended = started.kill(group=killed % 2 == 1)
            killed += ended.exit == -9
        else:
            ended = started.wait()
        if ended.exit == 0:
            return killed
        # Lost three times in a row is a question; with nobody to answer the run ends, and starts again.
        assert ended.exit == -9 or "three attempts in a row were lost" in ended.out, ended.out + ended.err
    raise AssertionError(f"not finished after {STARTS} starts")


def test_a_run_killed_five_times_is_finished_once(project: Project) -> None:
    killed = run_with_kills(project, random.Random(SEED), 5)

    assert killed == 5
    assert list(defects(project)) == []


@pytest.mark.slow
def test_runs_killed_forty_times_are_each_finished_once(tmp_path: Path) -> None:
    chance = random.Random(SEED + 1)
    left = 40
    while left > 0:
        project = Project(tmp_path / str(left))
        project.base.mkdir()
        left -= run_with_kills(project, chance, left)
        assert list(defects(project)) == []
