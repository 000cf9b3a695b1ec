"""Writes PROJECT.md and REQUIREMENTS.md in the shapes of v1.20.5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from gsd_core.planning.inline import cell, inline, paragraphs, title
from gsd_core.planning.model import PlannedPhase, Requirement


def render_project(
    name: str,
    summary: str,
    core_value: str,
    requirements: Sequence[Requirement],
    later: Sequence[Requirement],
    out_of_scope: Sequence[tuple[str, str]],
    constraints: Sequence[tuple[str, str, str]],
    date: str,
) -> str:
    """Return PROJECT.md; *out_of_scope* is (feature, reason), *constraints* (type, what, why)."""
    active = [f"- [ ] {inline(requirement.text)}" for requirement in requirements]
    excluded = [f"- {inline(feature)} — {inline(reason)}" for feature, reason in out_of_scope]
    deferred = [f"- {inline(requirement.text)} — deferred to v2" for requirement in later]
    limits = [f"- **{title(kind)}**: {inline(what)} — {inline(why)}" for kind, what, why in constraints]
    return _document(
        f"# {title(name)}",
        "## What This Is",
        paragraphs(summary),
        "## Core Value",
        paragraphs(inline(core_value)),
        "## Requirements",
        "### Validated",
        "(None yet — ship to validate)",
        "### Active",
        "\n".join(active),
        "### Out of Scope",
        "\n".join([*excluded, *deferred]) or "(Nothing excluded yet)",
        "## Context",
        "(None recorded)",
        "## Constraints",
        "\n".join(limits) or "(None)",
        "## Key Decisions",
        "| Decision | Rationale | Outcome |\n|----------|-----------|---------|",
        f"---\n*Last updated: {inline(date)} after initialization*",
    )


def render_requirements(
    name: str,
    core_value: str,
    requirements: Sequence[Requirement],
    later: Sequence[Requirement],
    out_of_scope: Sequence[tuple[str, str]],
    phases: Sequence[PlannedPhase],
    date: str,
) -> str:
    """Return REQUIREMENTS.md with each requirement traced to the phase that has it."""
    traced = {identity: phase.number for phase in phases for identity in phase.requirements}
    mapped = sum(requirement.id in traced for requirement in requirements)
    missing = len(requirements) - mapped
    return _document(
        f"# Requirements: {title(name)}",
        f"**Defined:** {inline(date)}\n**Core Value:** {inline(core_value)}",
        "## v1 Requirements",
        *_by_category(requirements, box=True),
        "## v2 Requirements",
        *(_by_category(later, box=False) if later else ["(None)"]),
        "## Out of Scope",
        _table(("Feature", "Reason"), out_of_scope),
        "## Traceability",
        _table(("Requirement", "Phase", "Status"), list(_trace(requirements, traced))),
        f"**Coverage:**\n- v1 requirements: {len(requirements)} total\n"
        f"- Mapped to phases: {mapped}\n- Unmapped: {missing} {'⚠️' if missing else '✓'}",
        f"---\n*Requirements defined: {inline(date)}*\n"
        f"*Last updated: {inline(date)} after initial definition*",
    )


def _by_category(requirements: Sequence[Requirement], *, box: bool) -> Iterator[str]:
    ordered = sorted(requirements, key=lambda requirement: _first(requirements, requirement.category))
    for category, group in groupby(ordered, key=lambda requirement: requirement.category):
        yield f"### {title(category)}"
        mark = "[ ] " if box else ""
        yield "\n".join(f"- {mark}**{inline(one.id)}**: {inline(one.text)}" for one in group)


def _first(requirements: Sequence[Requirement], category: str) -> int:
    return next(i for i, one in enumerate(requirements) if one.category == category)


def _trace(requirements: Sequence[Requirement], traced: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    for one in requirements:
        yield one.id, f"Phase {traced[one.id]}" if one.id in traced else "Unmapped", "Pending"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join('-' * (len(name) + 2) for name in head)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(cell, row))} |" for row in rows)])


def _document(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"
