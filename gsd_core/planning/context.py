"""CONTEXT.md: writes the decisions about a phase that its plans have to respect.

Source: the contexts of GSD v1.20.5, which have no frontmatter. The ids ``D-01``, ``D-02``, … are counted
through all areas: gsd-core checks that the plans name each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import PurePosixPath

from gsd_core.model.ids import padded, slug

from .markdown import bullets, document, inline, paragraphs, title
from .model import PhaseView


def render_context(
    phase: PhaseView, decisions: Sequence[tuple[str, str]], discretion: Sequence[str], date: str
) -> str:
    """Return the text of a phase's CONTEXT.md.

    *decisions* are pairs of an area and the decision's text; *discretion* is what Claude may decide.
    """
    areas: list[str] = []
    numbered = enumerate(decisions, start=1)
    for area, group in groupby(numbered, key=lambda decision: decision[1][0]):
        lines = [f"- **D-{number:02d}:** {inline(text)}" for number, (_, text) in group]
        areas.append("\n".join([f"### {title(area)}", *lines]))
    folder = PurePosixPath(phase.directory).name or f"{padded(phase.number)}-{slug(phase.name)}"
    parts = [
        f"# Phase {phase.number}: {title(phase.name)} - Context",
        f"**Gathered:** {inline(date)}\n**Status:** Ready for planning",
        f"<domain>\n## Phase Boundary\n\n{paragraphs(phase.goal)}\n\n</domain>",
        "<decisions>\n## Implementation Decisions",
        *areas,
        f"### Claude's Discretion\n{bullets(discretion) or '- None'}",
        "</decisions>",
        "<specifics>\n## Specific Ideas\n\nNone beyond the decisions above.\n\n</specifics>",
        "<deferred>\n## Deferred Ideas\n\nNone.\n\n</deferred>",
        f"---\n\n*Phase: {inline(folder)}*\n*Context gathered: {inline(date)}*",
    ]
    return document(parts)
