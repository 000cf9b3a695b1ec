"""Milestones as ROADMAP.md names them: in headings, in ``<summary>``, in the list of milestones.

A milestone's state is in words and emoji. Those of v1.20.5's templates (✅ shipped, 🚧 in progress,
📋 planned, 🔄) are known, and the words that real roadmaps use for the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import attrs

from gsd_core.model.ids import phase_order

from .markdown import prose
from .numbers import CODE, phase_numbers

MAX_TEXT = 400

# Not a version: the middle of a word or path, or the beginning of a name such as v1.0-beta.
_VERSION = re.compile(r"(?<![\w.-])v\d{1,6}(?:\.\d{1,6}){0,4}(?![\w.]{0,40}-)")
_CLOSED = re.compile(r"✅|🗄|\b(?:shipped|closed|archived|abandoned|failed)\b", re.IGNORECASE)
_RUNNING = re.compile(r"🚧|🔄|\bin progress\b|\bactive\b|\bstarted\b|\bwip\b", re.IGNORECASE)
_BULLET = re.compile(r"^\s*[-*]\s+(.*)$")
_BRACKET = re.compile(rf"^\[({CODE})\]\s*(.*)$")
_PHASES = re.compile(r"\bPhases?\s+\d[^()\n]{0,100}", re.IGNORECASE)
_MORE_VERSIONS = re.compile(r"^(?:\s*[/&+]\s*v[\d.]+)+")
# What follows the name: "(Phases 1-4)", "— SHIPPED 2026-01-31", "✅ SHIPPED", "🚧".
_EMOJI = r"[✅✓✔☑🗄🚧🔄📋]\ufe0f?"
_STATE = re.compile(
    rf"\s?(?:\([^()]*\)|(?:[—–:-]|{_EMOJI})\s?(?:SHIPPED|COMPLETED?)\b[^()]*"
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
    else:
        return None
    running = _RUNNING.search(text) is not None
    named = _PHASES.search(text)
    return Milestone(
        version=version,
        name=_name(rest),
        shipped=_CLOSED.search(text) is not None and not running,
        running=running,
        phases=phase_numbers(named[0]) if named else (),
    )


def listed_milestone(line: str) -> Milestone | None:
    """Return the milestone of a line in the list: ``- ✅ **v1.0 MVP** — Phases 1-4 (shipped DATE)``."""
    match = _BULLET.match(line[:MAX_TEXT])
    if not match:
        return None
    bold = re.search(r"\*\*([^*]+)\*\*", match[1])
    found = milestone_of(match[1])
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
        found[milestone.version] = attrs.evolve(
            known, name=known.name or milestone.name, phases=known.phases or milestone.phases
        )
    return tuple(sorted(found.values(), key=lambda one: phase_order(one.version[1:])))


def current_milestone(
    milestones: Iterable[Milestone], listed: Iterable[Milestone], preferred: str
) -> Milestone | None:
    """Return the milestone in progress.

    It is the one marked so (of several, *preferred*), else *preferred*, else the first that has not
    shipped, else the last. *listed* ones count only if no heading names a milestone.
    """
    headed = list(milestones)
    running = [one for one in headed if one.running]
    preferred = same_version(preferred, [one.version for one in headed]) if preferred else ""
    for chosen in (
        [one for one in running if one.version == preferred],
        running,
        [one for one in headed if preferred and one.version == preferred],
        [one for one in headed if not one.shipped],
        headed[-1:],
        [one for one in listed if one.running],
    ):
        if chosen:
            return chosen[0]
    return None


def _name(text: str) -> str:
    before, text = "", _MORE_VERSIONS.sub("", text).rstrip()
    while before != text:  # several states may follow one another: "(Phases 1-4) — SHIPPED DATE"
        before, text = text, _STATE.sub("", text).rstrip()
    return prose(text.strip(" :—–-*#"))
