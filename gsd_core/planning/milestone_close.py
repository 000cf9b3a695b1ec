"""Closing a milestone: the texts of its archive, and what ROADMAP, PROJECT, MILESTONES and STATE say then.

The files and their forms are those of GSD's ``complete-milestone`` (gsd-core 1.14). ROADMAP.md is archived
as it is, so what is collapsed here is not lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import attrs

from gsd_core.errors import PlanningError
from gsd_core.model.counts import counted
from gsd_core.model.ids import phase_order

from .frontmatter import read_frontmatter
from .markdown import Lines, bullets, cell, cells, document, inline, prose, read_text, title
from .milestones import BULLET, is_version, listed_milestone, milestone_id, milestone_of, says_shipped
from .model import PhaseView, Planning, Requirement
from .next_milestone import HEADING, add_to_section, with_footer
from .plan_tasks import parts_of
from .state import section_lines

_BOX = re.compile(r"^\s*[-*]\s+(?:\[[ xX]\]\s*)?(.*)$")
MAX_ACCOMPLISHMENTS, MAX_DECISIONS = 20, 40


@attrs.frozen(kw_only=True)
class Shipped:
    """A milestone that is closed, with its *phases*; *date* is in ISO format.

    *accomplishments* and *decisions* (text, phase) come from the SUMMARYs.
    """

    version: str
    name: str
    date: str
    phases: tuple[PhaseView, ...]
    accomplishments: tuple[str, ...] = ()
    decisions: tuple[tuple[str, str], ...] = ()
    dates: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The version and the name."""
        is_said = milestone_id(self.name) in ("", self.version)
        return self.version if is_said else f"{self.version} {title(self.name)}"

    @property
    def extent(self) -> str:
        """The phases in words: ``Phases 1-4``."""
        numbers = sorted((phase.number for phase in self.phases), key=phase_order)
        if len(numbers) < 2:
            return f"Phase {''.join(numbers)}"
        joined = all(b.isdecimal() and a.isdecimal() and int(b) == int(a) + 1 for a, b in pairwise(numbers))
        return f"Phases {numbers[0]}-{numbers[-1]}" if joined else f"Phases {', '.join(numbers)}"


def shipped(planning: Planning, root: Path, date: str) -> Shipped:
    """Return the milestone in progress as it is recorded when it ships."""
    accomplishments: list[str] = []
    decisions: dict[str, str] = {}
    dates: list[str] = []
    for phase in planning.phases:
        for plan in phase.plans:
            try:
                text = read_text(root, plan.summary) if plan.summary else ""
                head = read_frontmatter(text, path=plan.summary)
            except PlanningError:
                continue  # other tools write summaries too; one that is broken loses its line here
            if line := head.text("one-liner", "one_liner") or one_liner(head.body):
                accomplishments.append(prose(line))
            for decision in head.texts("key-decisions", "key_decisions"):
                decisions.setdefault(prose(decision), phase.number)
            if re.fullmatch(r"\d{4}-\d{2}-\d{2}", done := head.text("completed")[:10]):
                dates.append(done)
    return Shipped(
        version=planning.milestone,
        name=planning.milestone_name or (planning.name if is_version(planning.milestone) else ""),
        date=date,
        phases=planning.phases,
        accomplishments=tuple(dict.fromkeys(accomplishments))[:MAX_ACCOMPLISHMENTS],
        decisions=tuple(decisions.items())[:MAX_DECISIONS],
        dates=tuple(sorted(dates)),
    )


def one_liner(body: str) -> str:
    """Return what a SUMMARY says in one line: what follows ``One-liner:``, or the bold text below a title."""
    text = body.replace("\r\n", "\n")
    if labeled := re.search(r"^\*\*One-liner:\*\*[ \t]*(\S[^\n]*)$", text, re.MULTILINE | re.IGNORECASE):
        return labeled[1]
    # "**Decisions:**" is the beginning of a list, and says nothing.
    match = re.search(r"^#[^\n]*\n+\*\*([^*\n]*[^*\n:])\*\*[ \t]*$", text, re.MULTILINE)
    return match[1] if match else ""


def archived_requirements(text: str, about: Shipped) -> str:
    """Return milestones/vX.Y-REQUIREMENTS.md."""
    return (
        f"# Requirements Archive: {about.label}\n\n**Archived:** {about.date}\n**Status:** SHIPPED\n\n"
        f"For current requirements, see `.planning/REQUIREMENTS.md`.\n\n---\n\n{text}"
    )


def milestones_entry(
    text: str,
    about: Shipped,
    known_gaps: Sequence[str] = (),
    open_items: Sequence[str] = (),
    active: Sequence[str] = (),
) -> str:
    """Return MILESTONES.md with an entry for the milestone, the newest first; an entry that exists stays.

    *active* are the requirements of PROJECT.md that no met one is recognized in.
    """
    heading = f"## {about.label} (Shipped: {about.date})"
    if any(line.startswith(f"## {about.version} ") for line in text.splitlines()):
        return text
    plans = sum(len(phase.plans) for phase in about.phases)
    # A test-driven feature is one task with several commits, as in GSD's summaries.
    tasks = sum(1 for phase in about.phases for plan in phase.plans for _ in parts_of(plan.tasks))
    stats = f"{len(about.phases)} phases"
    # The plans of a phase whose folder was moved away cannot be counted.
    if all(phase.directory or phase.plans for phase in about.phases):
        stats += f", {plans} plans, {tasks} tasks"
    why = "These stay active in PROJECT.md, because no requirement that was met has their id or words:"
    parts = [
        heading,
        f"**Phases completed:** {about.extent.removeprefix('Phases ').removeprefix('Phase ')} ({stats})",
        f"**Key accomplishments:**\n{bullets(about.accomplishments) or '- (none recorded)'}",
        f"**Timeline:** {about.dates[0]} → {about.dates[-1]}" if about.dates else "",
        f"### Known Gaps\n\n{bullets(known_gaps)}" if known_gaps else "",
        f"### Open Items\n\n{bullets(open_items)}" if open_items else "",
        f"### Still Active\n\n{why}\n\n{bullets(active)}" if active else "",
        "---",
    ]
    entry = document(parts)
    head = re.match(r"#[ \t][^\n]*\n+", text)
    if not text.strip():
        return f"# Milestones\n\n{entry}"
    at = head.end() if head else 0
    return f"{text[:at].rstrip() + chr(10) * 2 if at else ''}{entry}\n{text[at:].lstrip()}"


def collapse_roadmap(text: str, about: Shipped) -> str:
    """Return ROADMAP.md with the milestone folded to one line for each phase.

    Kept as they are: earlier milestones that are folded, planned ones, and the backlog.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    head = next((line for line in lines if line.startswith("# ")), "# Roadmap")
    listed = _listed(lines, about)
    folded = [block for block in _details(lines) if not _names(block[1] if block[1:] else "", about.version)]
    done = [_entry(phase) for phase in sorted(about.phases, key=lambda phase: phase_order(phase.number))]
    summary = f"<summary>✅ {about.label} ({about.extent}) — SHIPPED {about.date}</summary>"
    own = ["<details>", summary, "", *done, "", "</details>"]
    parts = [head, "## Milestones", "\n".join(listed), "## Phases"]
    parts += ["\n".join(block).strip() for block in (*folded, own)]
    parts += ["\n".join(block).strip() for block in _kept(lines, about)]
    return document(parts)


def _entry(phase: PhaseView) -> str:
    plans = len(phase.plans)
    done = sum(bool(plan.summary) for plan in phase.plans)
    date = phase.verdict.verified[:10] if phase.verdict else ""
    when = f" — completed {date}" if re.fullmatch(r"\d{4}-\d{2}-\d{2}", date) else ""
    box = "x" if phase.ticked or (phase.verdict and phase.verdict.status == "passed") else " "
    count = f" ({done}/{counted(plans, 'plan')})" if phase.directory or plans else ""
    return f"- [{box}] Phase {phase.number}: {title(phase.name)}{count}{when}"


def _listed(lines: Sequence[str], about: Shipped) -> list[str]:
    """Return the list of milestones, with a line for the one that shipped."""
    own = f"- ✅ **{about.label}** — {about.extent} (shipped {about.date})"
    found: list[str] = []
    for start, end in _sections(lines, lambda name: name == "milestones"):
        found += [line for line in lines[start + 1 : end] if BULLET.match(line)]
    if not found:
        # Without a list, the folded milestones are the only record of the earlier ones.
        for block in _details(lines):
            match = re.search(r"<summary>(.*?)</summary>", block[1] if block[1:] else "")
            named = milestone_of(match[1]) if match else None
            if named and named.version != about.version:
                found.append(f"- ✅ **{f'{named.version} {named.name}'.strip()}**")
    at = next((i for i, line in enumerate(found) if _names(line, about.version)), None)
    if at is None:
        listed = [listed_milestone(line) for line in found]
        shipped_before = [i for i, one in enumerate(listed) if one and one.shipped]
        found.insert(shipped_before[-1] + 1 if shipped_before else 0, own)
    else:
        found[at] = own
    return found


def _names(line: str, version: str) -> bool:
    named = milestone_of(line)
    return named.version == version if named else f"{milestone_id(line)}-".startswith(f"{version}-")


def _details(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the outermost ``<details>`` blocks that fold a milestone, with the summary as second line."""
    depth, block = 0, list[str]()
    for line in lines:
        opens, closes = line.lower().count("<details"), line.lower().count("</details>")
        if depth or opens:
            block.append(line)
        depth = max(0, depth + opens - closes)
        if block and not depth:
            if len(block) > 1 and (milestone_of(block[1]) or says_shipped(block[1])):
                yield block
            block = []


def _kept(lines: Sequence[str], about: Shipped) -> Iterator[list[str]]:
    """Yield the sections of planned milestones, and the backlog."""

    def is_planned(name: str) -> bool:
        named = milestone_of(name)
        return named is not None and named.version != about.version.lower() and not named.shipped

    backlog = _sections(lines, lambda name: name.startswith("backlog"))
    yield from (list(lines[start:end]) for start, end in (*_sections(lines, is_planned), *backlog))


def _sections(lines: Sequence[str], wanted: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """Yield the lines of each section of level 2 or 3 whose title, in lower case, is *wanted*."""
    folded = 0
    for start, line in enumerate(lines):
        folded = max(0, folded + line.lower().count("<details") - line.lower().count("</details>"))
        heading = HEADING.match(line)
        if folded or not heading or len(heading[1]) not in (2, 3) or not wanted(heading[2].lower()):
            continue
        level = len(heading[1])
        below = ((at, HEADING.match(lines[at])) for at in range(start + 1, len(lines)))
        yield start, next((at for at, other in below if other and len(other[1]) <= level), len(lines))


def still_active(text: str, met: Sequence[Requirement], open_: Sequence[Requirement] = ()) -> tuple[str, ...]:
    """Return what PROJECT.md lists as active and keeps so: no requirement that is *met* is the same."""
    lines = Lines.of(text)
    _take_met(lines, met, open_)
    section = section_lines(lines, "active")
    found = (_BOX.match(lines[at]) for at in range(*section)) if section else ()
    return tuple(inline(match[1]) for match in found if match and match[1].strip())


def evolve_project(
    text: str, about: Shipped, met: Sequence[Requirement], open_: Sequence[Requirement] = ()
) -> str:
    """Return PROJECT.md after the milestone: requirements that are *met* are validated, *open_* ones not."""
    lines = Lines.of(text)
    validated = _take_met(lines, met, open_)
    add_to_section(lines, "validated", [f"- ✓ {one} — {about.version}" for one in validated])
    _add_decisions(lines, about)
    rest = str(lines).split("\n")
    if current := next(_sections(rest, lambda name: name.startswith("current milestone")), None):
        del rest[slice(*current)]
    return with_footer("\n".join(rest), f"{about.date} after {about.version} milestone")


def _take_met(lines: Lines, met: Sequence[Requirement], open_: Sequence[Requirement]) -> list[str]:
    """Remove the active requirements that are met, and return their texts."""
    section = section_lines(lines, "active")
    if not section:
        return []
    found: list[str] = []
    for at in range(section[1] - 1, section[0] - 1, -1):
        match = _BOX.match(lines[at])
        if match and _is_met(match[1], met, open_):
            found.append(inline(match[1]))
            del lines.lines[at]
    left = section_lines(lines, "active")
    if found and left and not any(lines[at].strip() for at in range(*left)):
        del lines.lines[left[0] : left[1]]
        lines.insert(left[0], ["", "(None — the next milestone defines them)", ""])
    return found[::-1]


def _is_met(item: str, met: Sequence[Requirement], open_: Sequence[Requirement]) -> bool:
    """Whether an active item is a requirement that is met: by the ids that it names, else by its words."""
    known = {one.id for one in (*met, *open_)}
    if named := known & {*re.findall(r"[A-Z][A-Z0-9_-]*-\d+", item)}:
        return named <= {one.id for one in met}
    text = prose(item)
    of_met = max((_likeness(text, one.text) for one in met), default=0.0)
    of_open = max((_likeness(text, one.text) for one in open_), default=0.0)
    return of_met >= LIKE and of_met > of_open


LIKE = 0.75
"""How much of the longer of two texts, in words that matter, the shorter one has to contain."""
_FILLERS = re.compile(
    r"an?|the|of|to|in|into|on|onto|for|from|with|by|per|as|at|and|or|is|are|be|been|can|could|will|would"
    r"|should|shall|must|may|its?|their|his|her|they|that|which|this|these|those"
)
_DECISIVE = re.compile(r"no|not|never|without|except|only|nor|non|.*[\d_].*")


def _likeness(one: str, other: str) -> float:
    """Return from 0 to 1 how alike two statements are; 0 if each has a word that the other has not.

    The words are compared in their order, without endings and fillers. "as CSV" and "as PDF" are two
    requirements, however many other words they share, and so are those that differ in a number or a negation.
    """
    if _words(one) == _words(other):
        return 1.0
    short, long = sorted((_stems(one), _stems(other)), key=len)
    rest = iter(long)
    extra = list[str]()
    for stem in short:
        for candidate in rest:
            if candidate == stem:
                break
            extra.append(candidate)
        else:
            return 0.0
    extra += rest
    if not short or any(map(_DECISIVE.fullmatch, extra)):
        return 0.0
    return len(short) / len(long)


def _stems(text: str) -> list[str]:
    return [_stem(word) for word in _words(text).split() if not _FILLERS.fullmatch(word)]


def _stem(word: str) -> str:
    """Return an English word without the endings of plurals and verbs; a word of another language stays."""
    for ending, instead in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return f"{word.removesuffix(ending)}{instead}".rstrip("e")
    return word.rstrip("e") if len(word) > 3 else word


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _add_decisions(lines: Lines, about: Shipped) -> None:
    """Add the decisions to the table; one of a phase that passed its verification has held so far."""
    section = section_lines(lines, "key decisions")
    rows = [at for at in range(*section) if cells(lines[at])] if section else []
    if not rows:
        return
    known = {_words(cells(lines[at])[0]) for at in rows}
    passed = {phase.number for phase in about.phases if phase.verdict and phase.verdict.status == "passed"}
    new = [
        f"| {cell(text)} | Phase {number} | {'✓ Good' if number in passed else '— Pending'} |"
        for text, number in about.decisions
        if _words(text) not in known
    ]
    lines.insert(rows[-1] + 1, new)
