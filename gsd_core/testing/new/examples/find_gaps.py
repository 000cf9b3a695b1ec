"""A gap detector that finds merge conflicts left in a phase's files.

It checks the files that the phase's plans list as modified.
A conflict marker in one of them is a gap: GSD plans and executes a fix, and the phase does not pass until
the marker is gone.
A detector looks at the tree as it is now, never at an earlier verdict.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gsd_core import BadArtifact, Gap, PhaseView, implements
from gsd_core.hookspecs import gsd_find_gaps

_MARKER = re.compile(r"^(?:<{7}|>{7}) ")
_MAX_BYTES = 1_000_000  # larger files are generated, not edited by hand


@implements(gsd_find_gaps)
async def unresolved_conflicts(phase: PhaseView) -> Sequence[Gap]:
    """Find conflict markers in the files that the phase's plans modify."""
    paths = sorted({path for plan in phase.plans for path in plan.files_modified})
    # Reading files blocks, and the whole run shares one event loop.
    return await asyncio.to_thread(lambda: list(_gaps(phase.project, paths)))


def _gaps(tree: Path, paths: Sequence[str]) -> Iterator[Gap]:
    for path in paths:
        if line := _first_marker(tree, path):
            yield Gap(
                truth=f"{path} has no unresolved merge conflict",
                reason=f"conflict marker on line {line}",
                about=path,
                artifacts=(BadArtifact(path=path, issue="unresolved merge conflict"),),
                missing=(f"resolve the conflict in {path}",),
                evidence=f"{path}:{line}",
            )


def _first_marker(tree: Path, path: str) -> int:
    """Return the line number of the first marker; 0 if there is none."""
    file = tree / path
    # A plan is written by a model: do not follow a path that leads out of the project.
    if not file.resolve().is_relative_to(tree.resolve()) or not file.is_file():
        return 0
    if file.stat().st_size > _MAX_BYTES:
        return 0
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((number for number, line in enumerate(lines, 1) if _MARKER.match(line)), 0)
