"""Gaps between the must-haves of executed plans and the current tree, found without a model.

Artifacts must exist inside the project, be long enough, contain the required text, export their names and not
be stubs. The other files that a plan lists must not be stubs either. Key links must be wired in code, and new
dependencies must be used. Python, JavaScript, TypeScript and Go are judged by their syntax trees. What code
cannot judge, such as a link to a route or a table, yields neither a gap nor evidence and is left to the
verifier. Only the current tree counts, not which plan wrote it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence

from gsd_core import (
    Artifact,
    Evidence,
    Gap,
    GapReport,
    Mutant,
    Observation,
    PhaseView,
    Plan,
    SourceFile,
    implements,
)
from gsd_core.hookspecs import gsd_find_gaps, gsd_find_mutants
from gsd_core.planning.model import History

from .artifacts import check_file, only_tested, unused_parameters
from .dependencies import find_unused
from .files import Tree
from .links import bare_path, check_link
from .modules import Sources
from .mutants import mutants_of


@implements(gsd_find_gaps)
async def must_haves_hold(phase: PhaseView) -> Sequence[Gap] | GapReport:
    """Check the must-haves and the files of every executed plan."""
    plans = [plan for plan in phase.plans if plan.summary]
    history = phase.history or History()
    # What the plans say they do: their must-haves, and the names, actions and ends of their tasks.
    said = [str(plan.must_haves) for plan in plans]
    said += [text for plan in plans for task in plan.tasks for text in (task.name, task.action, task.done)]
    sources = Sources(
        tree=Tree.of(phase.project),
        files=history.files,
        before=history.before,
        removed=history.removed,
        promises="\n".join(said),
    )
    # Two plans may name the same file or link; each gets one verdict.
    files: dict[str, list[Artifact]] = {}
    for plan in plans:
        for artifact in plan.must_haves.artifacts:
            files.setdefault(artifact.path.strip().removeprefix("./"), []).append(artifact)
    for plan in plans:
        for path in listed_files(plan):
            files.setdefault(path, [])

    def check_files() -> list[Gap | Evidence | Observation | None]:
        judged = (check_file(sources, path, same) for path, same in files.items())
        seen = (one for path, same in files.items() for one in unused_parameters(sources, path, same))
        return [*judged, *seen, *only_tested(sources, files), *find_unused(sources, phase.changed)]

    found = await asyncio.to_thread(check_files)
    links = dict.fromkeys(link for plan in plans for link in plan.must_haves.key_links)
    links = {link: None for link in links if bare_path(link.source) not in sources.removed}
    found += [await check_link(sources, link) for link in links]
    gaps = {item.key: item for item in found if isinstance(item, Gap)}
    evidence = tuple(item for item in found if isinstance(item, Evidence))
    seen = tuple(item for item in found if isinstance(item, Observation))
    return GapReport(gaps=tuple(gaps.values()), evidence=evidence, observations=seen)


@implements(gsd_find_mutants)
async def faults_in_code(source: SourceFile) -> Sequence[Mutant]:
    """Return faults of a file in Python, JavaScript, TypeScript or Go."""
    return await asyncio.to_thread(lambda: [*mutants_of(source)])


def listed_files(plan: Plan) -> Iterator[str]:
    """Yield the files that a plan changes, without those that are only described (``src/*``, folders)."""
    for path in (*plan.files_modified, *(path for task in plan.tasks for path in task.files)):
        bare = path.strip().strip("`").removeprefix("./")
        if bare and re.search(r"[*\s{}]|/$|^\.planning/", bare) is None:
            yield bare
