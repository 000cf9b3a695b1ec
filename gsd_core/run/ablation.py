"""Ablation: does a check fail without the work that it is to prove? A check that still passes proves nothing.

In a throwaway checkout of HEAD, the files of one plan are as they were before the plan, its tests stay, and
the plan's checks run again. SWE-bench calls it FAIL_TO_PASS (arXiv 2310.06770); here each plan is measured.

A plan is not measured if a file of it has tests of its own (with the work, the tests would go), or cannot be
read: what is left of the work could be what the check needs. The project's folder is not touched.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import attrs

from gsd_core.files import read_below, remove_below
from gsd_core.git import Git
from gsd_core.git.command import Command
from gsd_core.git.history import before, paths_of
from gsd_core.model.checks import CheckResult, TaskCheck
from gsd_core.model.gap import Observation
from gsd_core.planning.model import PhaseView
from gsd_core.planning.plan_tasks import is_test_file
from gsd_core.settings import LimitSettings

from .checkout import Checkout, checkout_of
from .commands import CommandGate

OWN_TESTS = re.compile(rb"#\[(?:test|cfg\(test\))\]|import\.meta\.vitest|^\s*>>> ", re.MULTILINE)
"""What a file has that contains its tests: Rust, Vitest's tests in source, Python's doctest."""
LEAST_TIME = timedelta(seconds=30)
TIMES = 3
"""The most time for all plans of a phase, as a multiple of what their checks took."""


@attrs.frozen(kw_only=True)
class Ablation:
    """The *checks* of a phase, marked if they pass without the work of their plan.

    *seen* says which plans were not measured, because no time was left.
    """

    checks: tuple[TaskCheck, ...]
    seen: tuple[Observation, ...] = ()


async def ablation(
    gate: CommandGate, git: Git, phase: PhaseView, limits: LimitSettings, took: timedelta
) -> Ablation:
    """Run the checks of the phase's plans that have passed again, each without the work of its plan.

    *took* is how long they took before.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + min(limits.ablation, max(LEAST_TIME, TIMES * took)).total_seconds()
    found, left_out = dict[tuple[str, str], CheckResult](), set[str]()
    for plan, commits in phase.commits.items():
        results = {
            one.result.command: one.result
            for one in phase.checks
            if one.plan == plan and one.result.ok and not one.result.passed_before
        }
        if not results or not limits.ablation:
            continue
        async with checkout_of(git) as clean:
            if clean is None or not await git.call(_take_out, git.command, clean, commits):
                continue
            for command, result in results.items():
                if (left := timedelta(seconds=end - loop.time())) <= timedelta():
                    left_out.add(plan)
                    continue
                limit = min(limits.check, left)
                without = await clean.run(command, gate, limit, reported=bool(result.cases))
                found[plan, command] = _compared(result, without)
    return Ablation(
        checks=tuple(
            attrs.evolve(one, result=found.get((one.plan, one.result.command), one.result))
            for one in phase.checks
        ),
        seen=tuple(
            Observation(
                text=f"not measured in time: whether plan {plan}'s checks need its work", severity="minor"
            )
            for plan in sorted(left_out)
        ),
    )


def _compared(result: CheckResult, without: CheckResult) -> CheckResult:
    """Return *result*, marked with what passed too when it ran *without* the work of its plan."""
    passed = {case.name for case in without.cases if case.outcome == "passed"}
    cases = (attrs.evolve(case, passes_without=case.name in passed) for case in result.cases)
    return attrs.evolve(result, passes_without=without.ok, cases=tuple(cases))


def _take_out(git: Command, clean: Checkout, commits: Sequence[str]) -> bool:
    """Put the files of a plan, but not its tests, back to before its *commits*; return whether all are.

    Those that it deleted are there again.
    """
    paths = paths_of(git, commits)
    work = [path for path in paths if not (is_test_file(path) or path.startswith(".planning/"))]
    if not work or any(_has_tests(clean.tree, path) for path in work):
        return False
    here, base = git.at(clean.tree), before(git, commits)
    known = here("ls-tree", "-r", "-z", "--name-only", base, "--", *work).split("\0") if base else []
    if old := [path for path in work if path in known]:
        here("checkout", "--quiet", base, "--", *old)
    for path in {*work} - {*old}:
        remove_below(clean.tree, path)
    return True


def _has_tests(tree: Path, path: str) -> bool:
    """Whether a file has tests of its own, or may have: it cannot be read. One that is gone has none."""
    try:
        return OWN_TESTS.search(read_below(tree, path)) is not None
    except FileNotFoundError:
        return False
    except OSError:
        return True
