"""CONTEXT.md: the decisions about a phase that its plans have to respect.

Source: the contexts of GSD v1.20.5, which have no frontmatter. The ids ``D-01``, ``D-02``, … are counted
through all areas. gsd-core checks that the plans name each of them (``check decision-coverage-plan``), except
those under "Claude's Discretion" and those with a tag such as ``[informational]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import PurePosixPath

import attrs

from gsd_core.model.ids import padded, slug

from .markdown import bullets, document, inline, paragraphs, prose, title
from .model import PhaseView, Plan
from .plan import render_plan

INFORMATIONAL = "informational"
NOT_TRACKED = (INFORMATIONAL, "folded", "deferred")
"""GSD's tags for decisions that no plan has to name."""

SOFT_WORDS = 6
"""A plan that repeats that many words from the beginning of a decision covers it, as in gsd-core."""

_BLOCK = re.compile(r"^<decisions>[ \t]*$(.*?)^</decisions>", re.MULTILINE | re.DOTALL)
_AREA = re.compile(r"^#{3,4}\s+(.+?)\s*$")
_DECISION = re.compile(
    # Possessive, because a long line that is not closed would otherwise take quadratic time.
    r"^-\s+\*\*(D\d*+-[A-Za-z0-9][\w-]*+)(?:\s*\[([^\]\n]*+)\])?([^*\n]*+)\*\*:?\s*(.*)$"
)
_ABOUT = re.compile(r"About (S\d+(?:, S\d+)*)")
_NOTE = re.compile(r"^\s+-\s+(.+?)\s*$")


@attrs.frozen(kw_only=True)
class Decision:
    """One decision: its *id* (``D-01``), its *area*, and what was decided.

    *notes* say how it came about, such as the question and who answered it. *tag* is GSD's, if any: one that
    is ``informational`` holds without a plan that names it.
    """

    area: str
    text: str
    id: str = ""
    tag: str = ""
    notes: tuple[str, ...] = ()

    @property
    def statements(self) -> tuple[str, ...]:
        """The ids of the idea's statements that its notes say it is about."""
        about = (match[1] for note in self.notes if (match := _ABOUT.fullmatch(note)))
        return tuple(name for names in about for name in names.split(", "))

    @property
    def is_tracked(self) -> bool:
        """Whether a plan has to name it."""
        return self.tag.lower() not in NOT_TRACKED and "discretion" not in self.area.lower()


@attrs.frozen(kw_only=True)
class Scope:
    """What a phase is about: what is *included*, what is *excluded*, and ideas *deferred* to later ones.

    *discretion* is what Claude may decide.
    """

    included: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()
    discretion: tuple[str, ...] = ()


def about_statements(names: Sequence[str]) -> tuple[str, ...]:
    """Return the note of a decision that is about these statements of the idea; nothing without any."""
    return (f"About {', '.join(names)}",) if names else ()


def numbered(decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """Return the decisions with ids; those that have one keep it, and the others get the numbers after it."""
    numbers = (re.fullmatch(r"D-(\d{1,6})", one.id) for one in decisions)
    last = max((int(match[1]) for match in numbers if match), default=0)
    result: list[Decision] = []
    for one in decisions:
        last += not one.id
        result.append(one if one.id else attrs.evolve(one, id=f"D-{last:02d}"))
    return tuple(result)


def render_context(phase: PhaseView, decisions: Sequence[Decision], scope: Scope, date: str) -> str:
    """Return the text of a phase's CONTEXT.md; decisions without an id are numbered."""
    folder = PurePosixPath(phase.directory).name or f"{padded(phase.number)}-{slug(phase.name)}"
    fence = "\n\n".join(
        f"**{name}:**\n{bullets(texts)}"
        for name, texts in (("In scope", scope.included), ("Out of scope", scope.excluded))
        if texts
    )
    boundary = "\n\n".join(part for part in (paragraphs(phase.goal), fence) if part)
    deferred = bullets(scope.deferred) or "None."
    parts = [
        f"# Phase {phase.number}: {title(phase.name)} - Context",
        f"**Gathered:** {inline(date)}\n**Status:** Ready for planning",
        f"<domain>\n## Phase Boundary\n\n{boundary}\n\n</domain>",
        "<decisions>\n## Implementation Decisions",
        _decision_lines(numbered(decisions)),
        f"### Claude's Discretion\n{bullets(scope.discretion) or '- None'}",
        "</decisions>",
        "<specifics>\n## Specific Ideas\n\nNone beyond the decisions above.\n\n</specifics>",
        f"<deferred>\n## Deferred Ideas\n\n{deferred}\n\n</deferred>",
        f"---\n\n*Phase: {inline(folder)}*\n*Context gathered: {inline(date)}*",
    ]
    return document(parts)


def add_decisions(context: str, decisions: Sequence[Decision]) -> str:
    """Return a CONTEXT.md with more decisions, numbered after its own; the rest stays as it is."""
    known = read_decisions(context)
    lines = _decision_lines(numbered([*known, *decisions])[len(known) :])
    if not lines:
        return context
    if (block := _BLOCK.search(context)) is None:
        return f"{context.rstrip()}\n\n<decisions>\n## Implementation Decisions\n\n{lines}\n\n</decisions>\n"
    discretion = re.compile(r"^### .*discretion.*$", re.MULTILINE | re.IGNORECASE).search(block[1])
    at = block.start(1) + discretion.start() if discretion else block.end(1)
    return f"{context[:at].rstrip()}\n\n{lines}\n\n{context[at:]}"


def _decision_lines(decisions: Sequence[Decision]) -> str:
    """Return decisions as a list under a heading for each area."""
    areas: list[str] = []
    for area, group in groupby(decisions, key=lambda decision: decision.area):
        lines: list[str] = []
        for one in group:
            tag = f" [{inline(one.tag)}]" if one.tag else ""
            lines += [f"- **{one.id}{tag}:** {inline(one.text)}", *(f"  - {inline(n)}" for n in one.notes)]
        areas.append("\n".join([f"### {title(area)}", *lines]))
    return "\n\n".join(areas)


def read_decisions(context: str) -> tuple[Decision, ...]:
    """Return the decisions of a CONTEXT.md that have an id, in their order; also of files by other tools."""
    block = _BLOCK.search(context.replace("\r\n", "\n"))
    area, found = "", list[Decision]()
    for line in block[1].splitlines() if block else ():
        if heading := _AREA.match(line):
            area = heading[1]
        elif match := _DECISION.match(line):
            # Some versions write a title between the id and the text: `**D-01 — Order:** newest first`.
            text = " ".join(part for part in (match[3].strip(" :—–"), match[4]) if part)
            found.append(Decision(id=match[1], tag=match[2] or "", area=area, text=prose(text)))
        elif found and (note := _NOTE.match(line)):
            found[-1] = attrs.evolve(found[-1], notes=(*found[-1].notes, prose(note[1])))
    unique = {one.id: one for one in reversed(found)}
    return tuple(reversed(unique.values()))


def uncovered(decisions: Iterable[Decision], plans: Sequence[Plan]) -> Iterator[Decision]:
    """Yield the decisions that no plan names: by their id, or by the first words of their text."""
    texts = [plan.text or render_plan(plan) for plan in plans]
    plain = [_words(text) for text in texts]
    for one in decisions:
        if not one.is_tracked:
            continue
        is_named = re.compile(rf"(?<![\w-]){re.escape(one.id)}(?![\w-])").search
        first = _words(one.text)[:SOFT_WORDS]
        said = f" {' '.join(first)} " if len(first) == SOFT_WORDS else ""
        if any(map(is_named, texts)) or (said and any(said in f" {' '.join(words)} " for words in plain)):
            continue
        yield one


def owed_decisions(phase: PhaseView) -> tuple[Decision, ...]:
    """Return the decisions of the phase's CONTEXT.md that its plans have to implement.

    Plans that name no decision at all, and do not say what their truths serve, were written by a version that
    knew neither: they owe none.
    """
    decisions = read_decisions(phase.context)
    knows_ids = any(one.id in plan.text for plan in phase.plans for one in decisions)
    if not knows_ids and not any(one.serves for plan in phase.plans for one in plan.must_haves.truths):
        return ()
    return tuple(one for one in decisions if one.is_tracked)


def _words(text: str) -> list[str]:
    return re.sub(r"[^a-z0-9\s]", " ", text.lower()).split()
