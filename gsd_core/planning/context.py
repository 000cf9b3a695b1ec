"""Writes a phase's CONTEXT.md and a plan's SUMMARY.md in the shapes of v1.20.5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import PurePosixPath

from gsd_core.model.ids import padded, slug

from .markdown import inline, paragraphs, title
from .model import PhaseView


def render_context(
    phase: PhaseView, decisions: Sequence[tuple[str, str]], discretion: Sequence[str], date: str
) -> str:
    """Return CONTEXT.md; *decisions* are (area, text), *discretion* is what Claude may decide."""
    parts = [
        f"# Phase {phase.number}: {title(phase.name)} - Context",
        f"**Gathered:** {inline(date)}\n**Status:** Ready for planning",
        f"<domain>\n## Phase Boundary\n\n{paragraphs(phase.goal)}\n\n</domain>",
        "<decisions>\n## Implementation Decisions",
        *_decisions(decisions),
        f"### Claude's Discretion\n{_bullets(discretion) or '- None'}",
        "</decisions>",
        "<specifics>\n## Specific Ideas\n\nNone beyond the decisions above.\n\n</specifics>",
        "<deferred>\n## Deferred Ideas\n\nNone.\n\n</deferred>",
        f"---\n\n*Phase: {inline(_folder(phase))}*\n*Context gathered: {inline(date)}*",
    ]
    return "\n\n".join(parts) + "\n"


def _folder(phase: PhaseView) -> str:
    return PurePosixPath(phase.directory).name or f"{padded(phase.number)}-{slug(phase.name)}"


def _decisions(decisions: Sequence[tuple[str, str]]) -> Iterator[str]:
    number = 0
    for area, group in groupby(decisions, key=lambda decision: decision[0]):
        lines = [f"### {title(area)}"]
        for _, text in group:
            number += 1
            lines.append(f"- **D-{number:02d}:** {inline(text)}")
        yield "\n".join(lines)


def _bullets(texts: Sequence[str]) -> str:
    return "\n".join(f"- {inline(text)}" for text in texts if text.strip())
