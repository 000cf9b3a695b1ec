"""Gaps between what executed plans promised and the tree as it is, found by code.

Artifacts exist inside the project, are long enough, hold what they must, name their exports and
are no stubs; key links are wired; the commands that the core ran just now succeeded. What code
cannot judge (a link described in prose, say) gets neither a gap nor evidence: it stays open, for
whoever verifies. The tree is judged as it is, whatever plan wrote it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from gsd_core import Artifact, Evidence, Gap, GapReport, KeyLink, PhaseView, Plan, TaskCheck, implements
from gsd_core.hookspecs import gsd_find_gaps

from .artifacts import judge_artifact
from .files import Tree
from .links import judge_link

OUTPUT_END = 2_000


@implements(gsd_find_gaps)
async def must_haves_hold(phase: PhaseView) -> Sequence[Gap] | GapReport:
    """Judge the must-haves of every executed plan, and its commands."""
    tree = Tree.of(phase.project)
    plans = [plan for plan in phase.plans if plan.summary]
    found: list[Gap | Evidence] = [_checked(check) for check in phase.checks]
    for path, promises in _promises(plans).items():
        found.append(await asyncio.to_thread(judge_artifact, tree, path, promises))
    judged = [await judge_link(tree, link) for link in _links(plans)]
    found.extend(verdict for verdict in judged if verdict is not None)
    return GapReport(
        gaps=tuple(_once(item for item in found if isinstance(item, Gap))),
        evidence=tuple(item for item in found if isinstance(item, Evidence)),
    )


def _promises(plans: Iterable[Plan]) -> dict[str, list[Artifact]]:
    """Group what all plans promise of the same file, so that a file has one verdict."""
    promises: dict[str, list[Artifact]] = {}
    for plan in plans:
        for artifact in plan.must_haves.artifacts:
            promises.setdefault(artifact.path.strip().removeprefix("./"), []).append(artifact)
    return promises


def _links(plans: Iterable[Plan]) -> Iterable[KeyLink]:
    """Two plans may promise the same link."""
    return dict.fromkeys(link for plan in plans for link in plan.must_haves.key_links)


def _once(gaps: Iterable[Gap]) -> Iterable[Gap]:
    """Two plans may describe the same link in different ways."""
    return {gap.key: gap for gap in gaps}.values()


def _checked(check: TaskCheck) -> Gap | Evidence:
    about, result = f"{check.plan}/{check.task}", check.result
    if result.ok:
        return Evidence(about=about, holds=True, proof=f"`{result.command}` exited with 0")
    end = result.output[-OUTPUT_END:]
    evidence = f"$ {result.command}\n{end}".rstrip()
    truth = f"The check of task {check.task} of plan {check.plan} passes: `{result.command}`"
    if result.exit is None:
        reason = "the command was refused or did not end in time"
        return Gap(truth=truth, reason=reason, about=about, status="unverified", evidence=evidence)
    return Gap(truth=truth, reason=f"exit code {result.exit}", about=about, evidence=evidence)
