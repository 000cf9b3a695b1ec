"""RESEARCH.md: writes what was found out about the technology of a phase, with its sources.

Source: the research files of GSD v1.20.5, which have no frontmatter. A claim names its sources by number
(``[2]``), one without any is marked, and the sources are grouped by how far they can be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import attrs

from gsd_core.model.ids import padded

from .markdown import bullets, clean, document, inline, paragraphs, title
from .model import PhaseView

Confidence: TypeAlias = Literal["high", "medium", "low"]
Topic: TypeAlias = Literal["stack", "architecture", "existing solution", "pitfall", "example", "change"]

UNSOURCED = "no source"
HEADINGS: Mapping[Topic, str] = {
    "stack": "Standard Stack",
    "architecture": "Architecture Patterns",
    "existing solution": "Don't Hand-Roll",
    "pitfall": "Common Pitfalls",
    "example": "Code Examples",
    "change": "State of the Art",
}
_GROUPS: Mapping[Confidence, str] = {
    "high": "Primary (HIGH confidence)",
    "medium": "Secondary (MEDIUM confidence)",
    "low": "Tertiary (LOW confidence, to be validated)",
}


@attrs.frozen(kw_only=True)
class Source:
    """A page: its *url*, what it *supports*, how far it is trusted, and whether it was *opened*."""

    url: str
    supports: str
    confidence: Confidence = "low"
    opened: bool = False


@attrs.frozen(kw_only=True)
class Claim:
    """Something that the plans should know; *sources* are numbers of sources, counted from 1."""

    topic: Topic
    name: str
    text: str
    sources: tuple[int, ...] = ()


def render_research(
    phase: PhaseView,
    *,
    summary: str,
    claims: Sequence[Claim],
    questions: Sequence[str],
    sources: Sequence[Source],
    confidence: Confidence,
    date: str,
) -> str:
    """Return the text of a phase's RESEARCH.md; *questions* are those that stayed open."""
    decided = f"The decisions in {padded(phase.number)}-CONTEXT.md come first."
    parts = [
        f"# Phase {phase.number}: {title(phase.name)} - Research",
        f"**Researched:** {inline(date)}\n**Domain:** {inline(phase.goal) or title(phase.name)}\n"
        f"**Confidence:** {confidence.upper()}",
        f"<user_constraints>\n{decided}\n</user_constraints>" if phase.context else "",
        f"## Summary\n\n{paragraphs(summary)}",
        *(_section(topic, claims) for topic in HEADINGS),
        f"## Open Questions\n\n{bullets(questions) or 'None.'}",
        "## Sources",
        *(_group(level, sources) for level in _GROUPS),
        "" if sources else "None: nothing above was looked up.",
        f"---\n\n*Phase: {padded(phase.number)}*\n*Research completed: {inline(date)}*",
    ]
    return document(parts)


def _section(topic: Topic, claims: Sequence[Claim]) -> str:
    found = [_claim(claim) for claim in claims if claim.topic == topic]
    return "\n\n".join([f"## {HEADINGS[topic]}", *found]) if found else ""


def _claim(claim: Claim) -> str:
    cited = ", ".join(map(str, claim.sources)) or UNSOURCED
    if claim.topic == "example":
        # Indented, because a model's code can contain whatever would close a fence.
        code = "\n".join(f"    {line}" for line in clean(claim.text).strip("\n").split("\n"))
        return f"### {title(claim.name)} [{cited}]\n\n{code}"
    return f"- **{title(claim.name)}:** {inline(claim.text)} [{cited}]"


def _group(level: Confidence, sources: Sequence[Source]) -> str:
    lines = [
        f"- [{number}] {inline(source.url)} - {inline(source.supports)}"
        + ("" if source.opened else " (not opened)")
        for number, source in enumerate(sources, start=1)
        if source.confidence == level
    ]
    return "\n".join([f"### {_GROUPS[level]}", *lines]) if lines else ""
