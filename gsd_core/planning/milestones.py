"""Milestones as ROADMAP.md names them: in headings, in ``<summary>``, in the list of milestones.

A milestone's state is in words and emoji. Those of v1.20.5's templates (✅ shipped, 🚧 in progress,
📋 planned, 🔄) are known, and the words that real roadmaps use for the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import attrs

from gsd_core.model.ids import phase_order

from .markdown import prose
from .numbers import CODE, phase_numbers

MAX_TEXT = 400
MAX_ID = 80

# Not a version: the middle of a word or path, or the beginning of a name such as v1.0-beta.
# "v1.x" and "v2+" are no versions either.
_VERSION = re.compile(r"(?<![\w.-])v\d{1,6}(?:\.\d{1,6}){0,4}(?![\w+]|\.\w|[\w.]{0,40}-(?!-))")
_CLOSED = re.compile(r"✅|🗄|\b(?:shipped|closed|archived|abandoned|failed)\b", re.IGNORECASE)
_RUNNING = re.compile(r"🚧|🔄|\bin progress\b|\bactive\b|\bstarted\b|\bwip\b", re.IGNORECASE)
BULLET = re.compile(r"^\s*[-*]\s+(.*)$")
_BRACKET = re.compile(rf"^\[({CODE})\]\s*(.*)$")
_PHASES = re.compile(r"\bPhases?\s+\d[^()\n]{0,100}", re.IGNORECASE)
# Milestones without a version: "Milestone: Clean-up", "Milestone M6: Motion". A number alone is not a name.
_NAMED = re.compile(r"\W*milestone(?:\s+([a-z][\w.-]*\d))?(?::|\s+[—–-])\s+(\w.*)", re.IGNORECASE)
_BEFORE = re.compile(r"(?:.*\bmilestones?)?\W*", re.IGNORECASE)
_MORE_VERSIONS = re.compile(r"^(?:\s*[/&+]\s*v[\d.]+)+")
# What follows the name: "(Phases 1-4)", "— SHIPPED 2026-01-31", "✅ SHIPPED", "🚧".
_EMOJI = r"[✅✓✔☑🗄🚧🔄📋]\ufe0f?"
_STATE = re.compile(
    rf"\s?(?:\([^()]*\)|(?:[—–:-]|{_EMOJI})\s?(?:SHIPPED|COMPLETED?|ACTIVE)\b[^()]*"
    rf"|{_EMOJI}\s?(?:IN PROGRESS|PLANNED)?)$",
    re.IGNORECASE,
)


@attrs.frozen(kw_only=True)
class Milestone:
    """A milestone; *phases* are the numbers that the list of milestones gives for it."""

    version: str
    name: str
    shipped: bool
    running: bool
    phases: tuple[str, ...] = ()


def milestone_of(text: str) -> Milestone | None:
    """Return the milestone that a heading or a summary names, if any."""
    text = text[:MAX_TEXT]
    if bracket := _BRACKET.match(text.strip()):
        version, rest = f"v{int(bracket[1].rpartition('.')[2])}.0", bracket[2]
    elif found := _VERSION.search(text):
        version, rest = found[0], text[found.end() :]
    elif named := _NAMED.match(text):
        version, rest = (named[1], named[2]) if named[1] else (milestone_id(_name(named[2])), "")
    else:
        return None
    running = _RUNNING.search(text) is not None
    # "Phases 17–24, 14 plans" are not phase 14.
    extent = _PHASES.search(re.sub(r",?\s*\d+ plans?\b", "", text))
    return Milestone(
        version=version,
        name=_name(rest),
        shipped=_CLOSED.search(text) is not None and not running,
        running=running,
        phases=phase_numbers(extent[0]) if extent else (),
    )


def milestone_id(text: str) -> str:
    """Return a milestone's version, or its name, as it is in file names, tags and ids of steps."""
    return "-".join(re.findall(r"\w+(?:\.\w+)*", text))[:MAX_ID].rstrip("-.")


def is_version(text: str) -> bool:
    """Whether a milestone has a version, such as ``v1.0``, and not only a name."""
    return re.match(r"v\d", text) is not None


def listed_milestone(line: str) -> Milestone | None:
    """Return the milestone of a line in the list: ``- ✅ **v1.0 MVP** — Phases 1-4 (shipped DATE)``."""
    if not (match := BULLET.match(line[:MAX_TEXT])):
        return None
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)?", r"\1", match[1])
    bold = re.search(r"\*\*([^*]+)\*\*", text)
    found = milestone_of(text)
    if found is None or not bold:
        return found
    named = milestone_of(bold[1])
    return attrs.evolve(found, name=named.name) if named else None


def same_version(version: str, known: Iterable[str]) -> str:
    """Return how *known* writes a version (``v1`` and ``v1.0`` are one), or the version itself."""

    def short(text: str) -> str:
        return re.sub(r"(?:\.0)+$", "", text)

    return next((other for other in known if short(other) == short(version)), version)


def merged(*groups: Sequence[Milestone]) -> tuple[Milestone, ...]:
    """Return each milestone once, in order of version; earlier groups take precedence."""
    found: dict[str, Milestone] = {}
    for milestone in (one for group in groups for one in group):
        known = found.setdefault(milestone.version, milestone)
        name, phases = known.name or milestone.name, known.phases or milestone.phases
        found[milestone.version] = attrs.evolve(known, name=name, phases=phases)
    return tuple(sorted(found.values(), key=lambda one: phase_order(one.version[1:])))


def says_shipped(text: str) -> bool:
    """Whether a heading says that milestones are over: ``Shipped Milestones``, ``Completed milestones``."""
    return _CLOSED.search(text) is not None or re.search(r"\bcompleted\b", text, re.IGNORECASE) is not None


def begins_milestone(heading: str) -> bool:
    """Whether a heading is about a milestone: ``🚧 v1.1 More``, ``Milestone: v1.1``, ``Milestone: Tidy``."""
    if _BRACKET.match(heading):
        return True
    found = _VERSION.search(heading)
    return (_BEFORE.fullmatch(heading[: found.start()]) if found else _NAMED.match(heading)) is not None


@attrs.frozen(kw_only=True)
class Evidence:
    """What other files than ROADMAP.md say about the milestones.

    STATE.md names the milestone *version* (*name*) and the current *phase*. *recorded* are those in
    MILESTONES.md, *kept* the versions that have an archived roadmap or a tag.
    """

    version: str = ""
    name: str = ""
    phase: str = ""
    recorded: tuple[Milestone, ...] = ()
    kept: frozenset[str] = frozenset()


@attrs.frozen(kw_only=True)
class Standing:
    """All milestones in order of version, and the one in progress, if any.

    *newest* is the last version that has shipped or is in progress, and *note* says how sources disagree.
    """

    milestones: tuple[Milestone, ...]
    running: Milestone | None = None
    newest: str = ""
    note: str = ""


OPEN = "the first open phase"


def standing_of(
    named: Mapping[str, Sequence[Milestone]], evidence: Evidence, owners: Mapping[str, str]
) -> Standing:
    """Weigh all evidence of which milestones have shipped, and which one is in progress.

    *named* are the milestones by the places that name them, *owners* those of the phase that STATE.md names
    and of the first open one.

    A milestone has shipped if more places say so than say that it is in progress; if as many do, STATE.md
    decides. An archive or a tag alone does not show it as long as a phase of it is open. Of the others, the
    one in progress is that which most places name.
    """
    groups = {**named, "MILESTONES.md": evidence.recorded}
    known = merged(*groups.values())
    stated = same_version(evidence.version, [one.version for one in known]) if evidence.version else ""
    marks = [one for group in groups.values() for one in group]

    def has_shipped(version: str) -> bool:
        shipped = sum(one.shipped for one in marks if one.version == version)
        running = sum(one.running for one in marks if one.version == version)
        if shipped or running:
            return shipped > running or (shipped == running and version != stated)
        kept = {same_version(one, [version]) for one in evidence.kept}
        return version in kept and owners.get(OPEN) != version

    over = {one.version for one in known if has_shipped(one.version)}
    votes: dict[str, list[str]] = {stated: ["STATE.md"]}
    for source, group in groups.items():
        for version in dict.fromkeys(one.version for one in group if one.running):
            votes.setdefault(version, []).append(source)
    for source, version in owners.items():
        votes.setdefault(version, []).append(source)
    votes = {version: sources for version, sources in votes.items() if version and version not in over}
    milestones = tuple(attrs.evolve(one, shipped=one.version in over) for one in known)
    chosen = max(votes, key=lambda version: len(votes[version]), default="")
    found = next((one for one in milestones if one.version == chosen), None)
    if found is None and chosen:
        found = Milestone(version=chosen, name=evidence.name, shipped=False, running=True)
    # A file in the archive is a weak sign: it counts if nothing else says what has shipped.
    marked = {one.version for one in marks if one.shipped} & over | {chosen}
    versions = [one.version for one in merged(milestones, [found] if found else [])]
    numbered = [*filter(is_version, versions)] or versions
    newest = [one for one in numbered if one in marked] or [one for one in numbered if one in over]
    # A planned milestone may have a phase with a lower number: that alone is no contradiction.
    strong = {
        version: sources for version, sources in votes.items() if sources != [OPEN] or version == chosen
    }
    said = "; ".join(f"{version} by {' and '.join(sources)}" for version, sources in strong.items())
    note = f"the files disagree about the milestone in progress: {said}; {chosen} counts"
    note = note if len(strong) > 1 else ""
    return Standing(milestones=milestones, running=found, newest=newest[-1] if newest else "", note=note)


def _name(text: str) -> str:
    before, text = "", _MORE_VERSIONS.sub("", text).rstrip()
    while before != text:  # several states may follow one another: "(Phases 1-4) — SHIPPED DATE"
        before, text = text, _STATE.sub("", text).rstrip()
    return prose(text.strip(" :—–-*#"))
