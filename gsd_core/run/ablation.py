"""Ablation: does a check fail without the work that it is to prove? A check that still passes proves nothing.

In a throwaway checkout of HEAD, the files of one plan are as they were before the plan, its tests stay, and
the plan's checks run again. SWE-bench calls it FAIL_TO_PASS (arXiv 2310.06770); here each plan is measured.

Files with tests of their own are left alone, and so is a plan that has only such files: with the work, the
tests would go. The project's folder is not touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import attrs

from gsd_core.files import read_below, remove_below
from gsd_core.git import Git
from gsd_core.git.command import Command
from gsd_core.git.history import paths_of
from gsd_core.model.checks import TaskCheck
from gsd_core.model.gap import Observation
from gsd_core.planning.model import PhaseView
from gsd_core.planning.plan_tasks import is_test_file
from gsd_core.settings import LimitSettings

from .checkout import Checkout, checkout_of
from .commands import CommandGate

OWN_TESTS = (b"#[test]", b"#[cfg(test)]", b"import.meta.vitest", b">>> ")
"""What a file has that contains its tests: Rust, Vitest's tests in source, Python's doctest."""
LEAST_TIME = timedelta(seconds=30)
TIMES = 3
"""The most time for all plans of a phase, as a multiple of what their checks took."""


@attrs.frozen(kw_only=True)
class Ablation:
    """The *checks* of a phase, marked if they pass without the work of their plan; *seen* is what was not
    measured."""

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
    found, left_out = set[tuple[str, str]](), set[str]()
    for plan, commits in phase.commits.items():
        commands = dict.fromkeys(
            one.result.command
            for one in phase.checks
            if one.plan == plan and one.result.ok and not one.result.passed_before
        )
        if not commands or not limits.ablation:
            continue
        async with checkout_of(git) as clean:
            if clean is None or not await git.call(_take_out, git.command, clean, commits):
                continue
            for command in commands:
                if (left := timedelta(seconds=end - loop.time())) <= timedelta():
                    left_out.add(plan)
                elif (await clean.run(command, gate, min(limits.check, left))).ok:
                    found.add((plan, command))
    return Ablation(
        checks=tuple(
            attrs.evolve(one, result=attrs.evolve(one.result, passes_without=True))
            if (one.plan, one.result.command) in found
            else one
            for one in phase.checks
        ),
        seen=tuple(
            Observation(
                text=f"not measured in time: whether plan {plan}'s checks need its work", severity="minor"
            )
            for plan in sorted(left_out)
        ),
    )


def _take_out(git: Command, clean: Checkout, commits: Sequence[str]) -> bool:
    """Put the files of a plan, but not its tests, back to before its *commits*; return if there are any."""
    work = [path for path in paths_of(git, commits) if _is_work(clean.tree, path)]
    here = git.at(clean.tree)
    base = f"{commits[0]}^" if here.succeeds("rev-parse", "--quiet", "--verify", f"{commits[0]}^") else ""
    known = here("ls-tree", "-r", "-z", "--name-only", base, "--", *work).split("\0") if base and work else []
    before = [path for path in work if path in known]
    if before:
        here("checkout", "--quiet", base, "--", *before)
    for path in {*work} - {*before}:
        remove_below(clean.tree, path)
    return bool(work)


def _is_work(tree: Path, path: str) -> bool:
    """Whether a file of a plan is neither a test nor one of the planning, and has no tests of its own."""
    if is_test_file(path) or path.startswith(".planning/"):
        return False
    try:
        text = read_below(tree, path)
    except OSError:
        return False
    return not any(mark in text for mark in OWN_TESTS)
