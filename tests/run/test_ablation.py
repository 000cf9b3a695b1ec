"""Checks that still pass without the work of their plan are marked; those that fail without it are not."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve

from gsd_core.git import Git
from gsd_core.planning.model import PhaseView, Plan, Task
from gsd_core.run.ablation import Ablation, ablation
from gsd_core.run.verification import check_plans
from gsd_core.settings import LimitSettings

from . import harness as h
from .test_checkout import Gate, commit, write

RUN = "python3 -m unittest -q test_adder"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a function that is not done yet, and no tests."""
    root = h.repository(tmp_path / "project")
    write(root, "adder.py", "def add(a, b):\n    raise NotImplementedError\n")
    commit(root)
    return root


def measured(root: Path, *checks: str, time: timedelta = timedelta(minutes=1)) -> Ablation:
    """Return what is known about the checks of the plan that HEAD is the only commit of."""
    git, limits = Git(root), LimitSettings(ablation=time)
    tasks = tuple(Task(number=number, name="t", check=check) for number, check in enumerate(checks, 1))
    plan = Plan(id="01-01", phase="1", summary="01-01-SUMMARY.md", tasks=tasks)
    commits = {plan.id: (h.git(root, "rev-parse", "HEAD").strip(),)}
    phase = PhaseView(project=root, number="1", name="Adding", plans=(plan,), commits=commits)

    async def measure() -> Ablation:
        found = await check_plans(Gate(), phase, limits.check, git)
        assert all(one.result.ok for one in found.results), found.results
        return await ablation(Gate(), git, evolve(phase, checks=found.results), limits, found.took)

    return asyncio.run(measure())


def passes_without(root: Path, *checks: str) -> list[bool]:
    """Return for each check of the plan whether it passes without that plan too."""
    return [one.result.passes_without for one in measured(root, *checks).checks]


def test_a_test_that_uses_the_work_fails_without_it(root: Path) -> None:
    write(root, "adder.py", "def add(a, b):\n    return a + b\n")
    write(root, "test_adder.py", TEST.format("adder.add(1, 2)"))
    commit(root)
    before = h.git(root, "status", "--porcelain")

    assert passes_without(root, RUN) == [False]
    assert h.git(root, "status", "--porcelain") == before
    assert "return a + b" in (root / "adder.py").read_text()


TEST = """import unittest
import adder

class Adding(unittest.TestCase):
    def test_it(self):
        self.assertEqual({}, 3)
"""


def test_a_test_that_repeats_the_constant_and_a_check_that_hides_its_failure_pass_without_it(
    root: Path,
) -> None:
    write(root, "adder.py", "def add(a, b):\n    return a + b\n")
    write(root, "test_adder.py", TEST.format("1 + 2"))
    commit(root)

    assert passes_without(root, RUN, "python3 -c 'import adder; adder.add(1, 2)' || true") == [True, True]


def test_what_a_plan_adds_is_taken_out_and_its_documents_are_work_too(root: Path) -> None:
    write(root, "subtracter.py", "def subtract(a, b):\n    return a - b\n")
    write(root, "README.md", "Usage: add and subtract\n")
    commit(root)

    checks = "python3 -c 'import subtracter'", "grep -q Usage README.md", "python3 -c 'import adder'"
    assert passes_without(root, *checks) == [False, False, True]


@pytest.mark.parametrize(
    ("path", "text", "measured"),
    [
        ("lib.rs", "pub fn add() {}\n#[cfg(test)]\nmod tests {}\n", False),
        ("notes.py", 'def add():\n    """\n    >>> add()\n    """\n', False),
        ("notes.js", "export const half = (x) => x >>> 1;\n", True),
    ],
)
def test_a_plan_with_a_file_that_has_its_own_tests_is_not_measured(
    root: Path, path: str, text: str, measured: bool
) -> None:
    write(root, path, text)
    write(root, "README.md", "Usage\n")
    commit(root)

    assert passes_without(root, "true") == [measured]


def test_a_file_that_the_plan_deleted_is_there_again(root: Path) -> None:
    (root / "adder.py").unlink()
    write(root, "sums.py", "def add(a, b):\n    return a + b\n")
    commit(root)

    assert passes_without(root, "test ! -e adder.py", "test -e README.md || true") == [False, True]


def test_the_first_commit_of_a_repository_has_nothing_before_it(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "other")
    write(root, "adder.py", "def add(a, b):\n    return a + b\n")
    commit(root)

    assert passes_without(root, "python3 -c 'import adder'") == [False]


def test_what_is_not_measured_in_time_is_said_and_with_no_time_nothing_is(root: Path) -> None:
    write(root, "adder.py", "def add(a, b):\n    return a + b\n")
    commit(root)

    found = measured(root, "sleep 0.3", "true", time=timedelta(seconds=0.2))
    assert [one.text for one in found.seen] == [
        "not measured in time: whether plan 01-01's checks need its work"
    ]
    found = measured(root, "true", time=timedelta())
    assert ([one.result.passes_without for one in found.checks], found.seen) == ([False], ())
