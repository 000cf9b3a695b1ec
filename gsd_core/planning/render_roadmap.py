"""Writes ROADMAP.md, STATE.md and config.json in the shapes of v1.20.5."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gsd_core.planning.inline import cell, inline, paragraphs, title
from gsd_core.planning.model import PlannedPhase


def render_roadmap(name: str, overview: str, phases: Sequence[PlannedPhase], date: str) -> str:
    """Return ROADMAP.md for a first milestone."""
    order = " → ".join(phase.number for phase in phases)
    parts = [
        f"# Roadmap: {title(name)}",
        "## Overview",
        paragraphs(overview),
        "## Phases",
        "**Phase Numbering:**\n- Integer phases (1, 2, 3): Planned milestone work\n"
        "- Decimal phases (2.1, 2.2): Urgent insertions (marked with INSERTED)",
        "\n".join(
            f"- [ ] **Phase {phase.number}: {title(phase.name)}** - {inline(phase.goal)}" for phase in phases
        ),
        "## Phase Details",
        *("\n".join(_details(phase)) for phase in phases),
        "## Progress",
        f"**Execution Order:**\nPhases execute in numeric order: {order}",
        _progress(phases),
        f"---\n*Roadmap created: {inline(date)}*",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def render_state(*, core_value: str, phases: Sequence[PlannedPhase], date: str) -> str:
    """Return STATE.md at the start of the first phase."""
    first = title(phases[0].name) if phases else "None"
    number = phases[0].number if phases else "0"
    return STATE.format(
        date=inline(date), core_value=inline(core_value), first=first, number=number, count=len(phases)
    )


def render_config(config: Mapping[str, Any]) -> str:
    """Return config.json."""
    return json.dumps(config, indent=2, ensure_ascii=False) + "\n"


def _details(phase: PlannedPhase) -> Iterator[str]:
    needed = ", ".join(f"Phase {number}" for number in phase.depends_on)
    yield f"### Phase {phase.number}: {title(phase.name)}"
    yield f"**Goal**: {inline(phase.goal)}"
    yield f"**Depends on**: {needed or 'Nothing (first phase)'}"
    yield f"**Requirements**: {', '.join(map(inline, phase.requirements)) or 'None'}"
    yield "**Success Criteria** (what must be TRUE):"
    yield from (f"  {i}. {inline(text)}" for i, text in enumerate(phase.criteria, start=1))
    yield "**Plans**: TBD"


def _progress(phases: Sequence[PlannedPhase]) -> str:
    head = "| Phase | Plans Complete | Status | Completed |\n|-------|----------------|--------|-----------|"
    rows = [f"| {phase.number}. {cell(title(phase.name))} | 0/TBD | Not started | - |" for phase in phases]
    return "\n".join([head, *rows])


STATE = """\
# Project State

## Project Reference

See: .planning/PROJECT.md (updated {date})

**Core value:** {core_value}
**Current focus:** Phase {number} — {first}

## Current Position

Phase: {number} of {count} ({first})
Plan: 0 of TBD in current phase
Status: Ready to plan
Last activity: {date} — Project initialized

Progress: [░░░░░░░░░░] 0%

## Performance Metrics

**Velocity:**
- Total plans completed: 0
- Average duration: -
- Total execution time: -

**By Phase:**

| Phase | Plans | Total | Avg/Plan |
|-------|-------|-------|----------|
| - | - | - | - |

**Recent Trend:**
- Last 5 plans: -
- Trend: -

*Updated after each plan completion*

## Accumulated Context

### Decisions

Decisions are logged in PROJECT.md Key Decisions table.
Recent decisions affecting current work:

None yet.

### Pending Todos

None yet.

### Blockers/Concerns

None yet.

## Session Continuity

Last session: {date}
Stopped at: Project initialized
Resume file: None
"""
