"""Milestones as ROADMAP.md names them: in headings, in ``<summary>``, in the list of milestones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import attrs
from attrs import frozen

from gsd_core.model.ids import phase_order

from .markdown import prose
from .numbers import CODE, phase_numbers

MAX_TEXT = 400

_VERSION = re.compile(r"(?<![\w.-])v\d{1,6}(?:\.\d{1,6}){0,4}(?![\w.]{0,40}-)")
_CLOSED = re.compile(r"✅|🗄|\b(?:shipped|closed|archived|abandoned|failed)\b", re.IGNORECASE)
_RUNNING = re.compile(r"🚧|🔄|\bin progress\b|\bactive\b|\bstarted\b|\bwip\b", re.IGNORECASE)
_BULLET = re.compile(r"^\s*[-*]\s+(.*)$")
_BRACKET = re.compile(rf"^\[({CODE})\]\s*(.*)$")
_PHASES = re.compile(r"\bPhases?\s+\d[^()\n]{0,100}", re.IGNORECASE)
_STATE = re.compile(r"\s?(?:\([^()]*\)|[—–:-]\s?(?:SHIPPED|COMPLETED?)\b[^()]*)$", re.IGNORECASE)
_MORE = re.compile(r"^(?:\s*[/&+]\s*v[\d.]+)+")


@frozen(kw_only=True)
class Milestone:
    """A milestone; *phases* are the numbers that the list of milestones gives it."""

    version: str
    name: str
    shipped: bool
    running: bool
    phases: tuple[str, ...] = ()


def milestone_of(text: str) -> Milestone | None:
    """Return the milestone that a heading or a summary names, if it names one."""
    text = text[:MAX_TEXT]
    if bracket := _BRACKET.match(text.strip()):
        version, rest = f"v{int(bracket[1].rpartition('.')[2])}.0", bracket[2]
    elif found := _VERSION.search(text):
        version, rest = found[0], text[found.end() :]
    else:
        return None
    running = _RUNNING.search(text) is not None
    return Milestone(
        version=version,
        name=_name(rest),
        shipped=_CLOSED.search(text) is not None and not running,
        running=running,
        phases=_phases(text),
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
    """Return how a version is written elsewhere (``v1`` and ``v1.0`` are one), or as it is."""
    return next((other for other in known if _short(other) == _short(version)), version)


def _short(version: str) -> str:
    return re.sub(r"(?:\.0)+$", "", version)


def merged(*groups: Sequence[Milestone]) -> tuple[Milestone, ...]:
    """Return each milestone once, in order of version; earlier groups know better."""
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
    """Return the milestone in progress: marked so (of several, *preferred*), else *preferred*, else
    the next, else the last; *listed* ones count where no heading says more."""
    headed = list(milestones)
    running = [one for one in headed if one.running]
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
    before, text = "", _MORE.sub("", text).rstrip()
    while before != text:
        before, text = text, _STATE.sub("", text).rstrip()
    return prose(text.strip(" :—–-*#"))


def _phases(text: str) -> tuple[str, ...]:
    named = _PHASES.search(text)
    return phase_numbers(named[0]) if named else ()
