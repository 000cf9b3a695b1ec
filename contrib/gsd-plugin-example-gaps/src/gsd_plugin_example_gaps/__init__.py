"""A gap detector for GSD: TODO and FIXME comments without an issue, in the files of a phase."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import attrs

from gsd_core import BadArtifact, Gap, PhaseView, implements, setting, settings_of
from gsd_core.hookspecs import gsd_find_gaps, gsd_settings

from .todos import find_todos


@attrs.frozen(kw_only=True)
class ExampleGapsSettings:
    """*words* to look for, and a regular expression that matches a reference to an *issue*."""

    words: tuple[str, ...] = setting(("TODO", "FIXME"))
    issue: str = setting(r"#\d+")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the settings section ``example_gaps``."""
    yield ExampleGapsSettings


@implements(gsd_find_gaps)
async def todos_without_issue(phase: PhaseView) -> Sequence[Gap]:
    """Report each file of the phase that contains a TODO without an issue."""
    configured = settings_of(ExampleGapsSettings)
    paths = sorted({path for plan in phase.plans for path in plan.files_modified})
    # In a thread, because reading many files would block the other detectors.
    found = await asyncio.to_thread(
        find_todos, phase.project, paths, words=configured.words, issue=configured.issue
    )
    return [
        Gap(
            truth=f"Every TODO in {path} references an issue",
            reason=f"{len(todos)} without an issue, the first in line {todos[0].line}",
            # Not the line: a gap keeps its identity from round to round while the file changes.
            about=path,
            status="partial",
            artifacts=(BadArtifact(path=path, issue="TODO without an issue"),),
            missing=tuple(f"do it, or reference its issue: {todo.text}" for todo in todos),
            evidence="\n".join(f"{path}:{todo.line}: {todo.text}" for todo in todos),
        )
        for path, todos in found.items()
    ]
