"""What a session of a project waits for besides its turn, so that sessions work on phases in a sound order.

The verify gate: a session that executes or runs phases waits until the phases that they depend on are
executed and verified, if another session of the project is to do that; one that executes a phase waits until
it is planned, one that verifies a phase until it is executed. The plan-ahead limit: a session that plans a
phase waits while too many phases before it are planned and not verified.

Both have an exit. The gate opens when the phases are done, or when no other session is left that would do
it; the limit when phases are verified, whoever does that. Any session that waits can be stopped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from gsd_core import PlanningError, normal_phase, phase_order

from .registry import Row

VERBS = ("run", "resume", "discuss", "plan", "execute", "verify")
GLOBAL_OPTIONS = ("-C", "-p", "--plugins-dir")
"""The options before the subcommand that take a value."""
RANGES = ("--phases", "--only")
PHASE = re.compile(r"[A-Za-z]*\d[\w.\-]*", re.ASCII)


@attrs.frozen(kw_only=True)
class Work:
    """What a command does with which phases: a subcommand's name, and a range; empty means all phases.

    *gaps*: it plans how to close the gaps of phases that are executed.
    """

    does: str = ""
    range: str = ""
    gaps: bool = False

    def covers(self, phase: str) -> bool:
        """Whether *phase* is in the range."""
        return not self.range or any(_is_between(phase, part) for part in self.range.split(","))

    @property
    def verifies(self) -> bool:
        """Whether it verifies the phases in its range."""
        return self.does in ("run", "resume", "verify")

    @property
    def executes(self) -> bool:
        """Whether it executes the phases in its range."""
        return self.does in ("run", "resume", "execute")

    def plans(self, facts: PhaseFacts) -> bool:
        """Whether it makes the plans that a phase in its range lacks, if any."""
        if self.does == "plan" and self.gaps:
            return facts.executed
        return self.does in ("run", "resume", "plan") and not facts.planned


@attrs.frozen(kw_only=True)
class PhaseFacts:
    """What the planning files say about a phase."""

    depends_on: tuple[str, ...] = ()
    planned: bool = False
    executed: bool = False
    verified: bool = False


def work_of(arguments: Sequence[str]) -> Work:
    """Return what the *arguments* after ``gsd`` do.

    A phase that is misread makes a session wait for too much or too little; the command itself checks it.
    """
    words = [*arguments]
    while words and words[0].startswith("-"):
        del words[: 2 if words[0] in GLOBAL_OPTIONS else 1]
    if not words or words[0] not in VERBS:
        return Work()
    verb, rest = words[0], words[1:]
    if verb in ("run", "resume"):
        return Work(does=verb, range=_range_in(rest))
    # A number after an option may be its value, so one that is not comes first.
    numbers = [(bool(i and rest[i - 1].startswith("-")), i) for i, w in enumerate(rest) if PHASE.fullmatch(w)]
    gaps = verb == "plan" and "--gaps" in rest
    return Work(does=verb, range=normal_phase(rest[min(numbers)[1]]) if numbers else "", gaps=gaps)


def phases_of(project: Path) -> Mapping[str, PhaseFacts]:
    """Return what is known about the project's phases, in order; nothing if its files cannot be read."""
    # Most sessions begin at once, and need none of this.
    from gsd_core.planning.survey import read_planning

    try:
        phases = read_planning(project).phases
    except (PlanningError, OSError):
        return {}
    return {
        phase.number: PhaseFacts(
            depends_on=phase.depends_on,
            planned=bool(phase.plans) and {plan.id for plan in phase.plans} >= {*phase.listed},
            executed=phase.ticked or bool(phase.plans and all(plan.summary for plan in phase.plans)),
            verified=phase.ticked
            or bool(phase.verdict and phase.verdict.status == "passed" and not phase.verdict.stale),
        )
        for phase in phases
    }


def gate_of(row: Row, others: Sequence[Row], phases: Mapping[str, PhaseFacts], plan_ahead: int) -> str:
    """Return what *row* waits for, given the *others* of its project that have not ended; empty: nothing."""
    work = work_of(row.session.command)
    if work.does == "plan":
        before = [number for number in phases if phase_order(number) < phase_order(work.range or "0")]
        waiting = [number for number in before if phases[number].planned and not phases[number].verified]
        limit = f"({len(waiting)} are planned ahead, sessions.plan_ahead = {plan_ahead})"
        return f"phase {waiting[0]} to be verified {limit}" if len(waiting) > plan_ahead else ""
    for other in _providers(row, others, phases):
        if not _waits_in_turn(other, row, others, phases):
            provided = _provided(work, work_of(other.session.command), phases)
            phase = min(provided, key=phase_order)
            return f"session {other.session.id}, which is to {provided[phase]} phase {phase}"
    return ""


def _providers(row: Row, others: Sequence[Row], phases: Mapping[str, PhaseFacts]) -> list[Row]:
    """Return the sessions that are to do something which *row* needs."""
    work = work_of(row.session.command)
    return [other for other in others if _provided(work, work_of(other.session.command), phases)]


def will_be_possible(
    arguments: Sequence[str], others: Sequence[Row], phases: Mapping[str, PhaseFacts]
) -> bool:
    """Whether the *others*, sessions of the project that have not ended, will do what is missing."""
    work = work_of(arguments)
    works = [work_of(other.session.command) for other in others]
    missing = {number for number in _to_be_executed(work, phases) if not phases[number].executed}
    unplanned = _to_be_planned(work, phases)
    return (
        bool(missing or unplanned)
        and all(any(one.executes and one.covers(n) for one in works) for n in missing)
        and all(any(one.plans(phases[n]) and one.covers(n) for one in works) for n in unplanned)
    )


def _to_be_planned(work: Work, phases: Mapping[str, PhaseFacts]) -> set[str]:
    """Return the phases that *work* executes and that have no plan left to execute; a run makes its own."""
    if work.does != "execute":
        return set()
    return {
        number
        for number, facts in phases.items()
        if work.covers(number) and (facts.executed or not facts.planned)
    }


def _to_be_executed(work: Work, phases: Mapping[str, PhaseFacts]) -> set[str]:
    """Return the phases that have to be executed before *work* can be done, and are not part of it."""
    targets = {number for number in phases if work.covers(number)}
    if work.does == "verify":
        return targets
    if not work.executes:
        return set()
    needed = {name for number in targets for name in phases[number].depends_on if name in phases}
    return needed - targets


def _provided(work: Work, other: Work, phases: Mapping[str, PhaseFacts]) -> dict[str, str]:
    """Return the phases that *other* does something with that *work* needs: plan, execute or verify them."""
    unplanned = {number for number in _to_be_planned(work, phases) if other.covers(number)}
    found = {n: "plan" for n in unplanned if other.plans(phases[n])}
    needed = {number for number in _to_be_executed(work, phases) if other.covers(number)}
    found |= {n: "execute" for n in needed if other.executes and not phases[n].executed}
    if work.executes and other.verifies:
        found |= {n: "verify" for n in needed if not phases[n].verified}
    return found


def _waits_in_turn(provider: Row, row: Row, others: Sequence[Row], phases: Mapping[str, PhaseFacts]) -> bool:
    """Whether *provider* waits for *row* too, maybe through others: of such a circle the oldest begins."""
    if provider.number < row.number:
        return False
    family = [*others, row]
    seen: set[int] = set()
    left = [provider]
    while left:
        one = left.pop()
        if one.number == row.number:
            return True
        if one.number not in seen:
            seen.add(one.number)
            left += _providers(one, [other for other in family if other.number != one.number], phases)
    return False


def _range_in(words: Sequence[str]) -> str:
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in RANGES:
            return value if equals else next(iter(words[index + 1 :]), "")
    return ""


def _is_between(phase: str, part: str) -> bool:
    low, dash, high = (end.strip() for end in part.partition("-"))
    if not low or (dash and not high):
        return False
    return phase_order(low) <= phase_order(phase) <= phase_order(high or low)
