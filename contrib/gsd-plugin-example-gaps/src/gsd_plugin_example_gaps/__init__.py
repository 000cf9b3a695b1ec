"""A gap detector for GSD: TODO and FIXME without an issue, in the files that a phase touched."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from attrs import frozen

from gsd_core import BadArtifact, Gap, PhaseView, implements, setting, settings_of
from gsd_core.hookspecs import gsd_find_gaps, gsd_settings

from .leftovers import Leftover, find_leftovers


@frozen
class ExampleGapsSettings:
    """*words* to look for; *issue*, a regular expression of what refers to one."""

    words: tuple[str, ...] = setting(("TODO", "FIXME"))
    issue: str = setting(r"#\d+")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the settings."""
    yield ExampleGapsSettings


@implements(gsd_find_gaps)
async def unowned_leftovers(phase: PhaseView) -> Sequence[Gap]:
    """Find work that was left in the phase's files and that no issue keeps."""
    wanted = settings_of(ExampleGapsSettings)
    paths = sorted({path for plan in phase.plans for path in plan.files_modified})
    found = await asyncio.to_thread(find_leftovers, phase.project, paths, wanted.words, wanted.issue)
    return [_gap(path, leftovers) for path, leftovers in found.items()]


def _gap(path: str, leftovers: Sequence[Leftover]) -> Gap:
    lines = "\n".join(f"{path}:{left.line}: {left.text}" for left in leftovers)
    return Gap(
        truth=f"What is left to do in {path} is kept by an issue",
        reason=f"{len(leftovers)} without an issue, the first in line {leftovers[0].line}",
        about=path,
        status="partial",
        artifacts=(BadArtifact(path=path, issue="work left, and no issue"),),
        missing=tuple(f"do it, or name its issue: {left.text}" for left in leftovers),
        evidence=lines,
    )
