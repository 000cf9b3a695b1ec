"""Gaps between the must-haves of executed plans and the current tree, found without a model.

Artifacts must exist inside the project, be long enough, contain the required text, define their
exports and not be stubs; key links must be wired; the commands that the core has just run must have
succeeded. What code cannot judge, such as a link described in prose, yields neither a gap nor
evidence and is left to the verifier. Only the current tree counts, not which plan wrote it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from gsd_core import Artifact, Evidence, Gap, GapReport, PhaseView, TaskCheck, implements
from gsd_core.hookspecs import gsd_find_gaps

from .artifacts import check_artifact
from .files import Tree
from .links import check_link

OUTPUT_TAIL = 2_000
"""Characters of a failed command's output that its gap quotes."""


@implements(gsd_find_gaps)
async def must_haves_hold(phase: PhaseView) -> Sequence[Gap] | GapReport:
    """Check the must-haves and the commands of every executed plan."""
    tree = Tree.of(phase.project)
    plans = [plan for plan in phase.plans if plan.summary]
    found: list[Gap | Evidence | None] = [_command_result(check) for check in phase.checks]
    # Two plans may name the same file or link; each gets one verdict.
    artifacts: dict[str, list[Artifact]] = {}
    for plan in plans:
        for artifact in plan.must_haves.artifacts:
            artifacts.setdefault(artifact.path.strip().removeprefix("./"), []).append(artifact)
    for path, same_path in artifacts.items():
        found.append(await asyncio.to_thread(check_artifact, tree, path, same_path))
    links = dict.fromkeys(link for plan in plans for link in plan.must_haves.key_links)
    found += [await check_link(tree, link) for link in links]
    gaps = {item.key: item for item in found if isinstance(item, Gap)}
    evidence = tuple(item for item in found if isinstance(item, Evidence))
    return GapReport(gaps=tuple(gaps.values()), evidence=evidence)


def _command_result(check: TaskCheck) -> Gap | Evidence:
    about, result = f"{check.plan}/{check.task}", check.result
    if result.ok:
        return Evidence(about=about, holds=True, proof=f"`{result.command}` exited with 0")
    truth = f"The check of task {check.task} of plan {check.plan} passes: `{result.command}`"
    evidence = f"$ {result.command}\n{result.output[-OUTPUT_TAIL:]}".rstrip()
    if result.exit is None:
        reason = "the command was denied or timed out"
        return Gap(truth=truth, reason=reason, about=about, status="unverified", evidence=evidence)
    return Gap(truth=truth, reason=f"exit code {result.exit}", about=about, evidence=evidence)
