"""Phase numbers that change when a phase is removed, and the texts that name phases by number.

The rules are those of ``phase remove`` in gsd-core 1.14: of the phases after a removed integer, the integer
part is decremented (4 → 3, 4.1 → 3.1); of the siblings after a removed decimal, the last part (2.3 → 2.2).
Where GSD would change the order (3.1 when 3 is removed), removal is refused. Backlog phases (0 and 999.x),
and numbers with a milestone or a project code, keep theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import attrs

from gsd_core.errors import PlanningError
from gsd_core.model.ids import normal_phase, padded

from .numbers import NUMBER, RANGE, is_backlog, phase_numbers

PATH = ".planning/ROADMAP.md"
_PLAIN = re.compile(r"(\d{1,9})([A-Z]?)((?:\.\d{1,9})*)")


@attrs.frozen(kw_only=True)
class Renumbering:
    """The new numbers of phases, by the old ones; *removed* is the phase that no longer exists.

    *instead* are the phases that whatever needed the removed phase needs now.
    """

    removed: str
    numbers: Mapping[str, str]
    instead: tuple[str, ...] = ()

    def of(self, number: str) -> str:
        """Return the new number of a phase that still exists."""
        return self.numbers.get(number, number)

    def needed(self, depends_on: Sequence[str], own: str = "") -> tuple[str, ...]:
        """Return the new form of a list of dependencies of phase *own* (by its new number)."""
        new = [self.instead if number == self.removed else (self.of(number),) for number in depends_on]
        return tuple(dict.fromkeys(one for group in new for one in group if one != own))


def is_plain(number: str) -> bool:
    """Whether a number is one that GSD counts on from: ``3``, ``12A``, ``2.1``."""
    return _PLAIN.fullmatch(number) is not None and not is_backlog(number)


def renumbered(removed: str, known: Iterable[str]) -> dict[str, str]:
    """Return the new numbers of the *known* phases that get another one when *removed* is removed."""
    numbers = [number for number in known if is_plain(number) and number != removed]
    if not is_plain(removed):
        return {}
    below = [n for n in numbers if n.startswith(f"{removed}.") or re.fullmatch(rf"{removed}[A-Z].*", n)]
    if below:
        hint = f"remove phase {below[0]} first, or keep the numbers: --keep-numbers"
        raise PlanningError(f"phase {below[0]} was inserted after phase {removed}", path=PATH, hint=hint)
    head, dot, last = removed.rpartition(".")
    found: dict[str, str] = {}
    for number in numbers:
        if dot:
            match = re.match(rf"{re.escape(head)}\.(\d+)(.*)$", number)
            if match and int(match[1]) > int(last):
                found[number] = f"{head}.{int(match[1]) - 1}{match[2]}"
        elif removed.isdecimal() and (match := _PLAIN.fullmatch(number)) and int(match[1]) > int(removed):
            found[number] = f"{int(match[1]) - 1}{match[2]}{match[3]}"
    return found


def like(old: str, new: str) -> str:
    """Return the number *new*, with a leading zero if *old* is written with one (``04`` → ``03``)."""
    return padded(new) if old.startswith("0") else new


def in_list(text: str, change: Renumbering, *, own: str = "") -> str:
    """Return a list of phases (``Phases 1-3, 4 (auth)``) with new numbers; other words stay.

    If the numbers cannot be replaced one by one, the list is written anew: ``Phase 1, Phase 2``.
    """
    before = phase_numbers(text)
    after = change.needed(before, own)
    if after == before:
        return text

    def replace(match: re.Match[str]) -> str:
        number = normal_phase(match[0])
        return like(match[0], change.of(number)) if number in before else match[0]

    # What is in parentheses is no list: "Phase 3 (needs 4 cores)".
    parts = re.split(r"(\([^()]*\))", text)
    one_by_one = "".join(
        part if part.startswith("(") else re.sub(rf"(?<![\w.]){NUMBER}", replace, part) for part in parts
    )
    if change.removed not in before and phase_numbers(one_by_one) == after:
        return one_by_one
    return ", ".join(f"Phase {number}" for number in after) or "Nothing"


def in_ranges(text: str, change: Renumbering) -> str:
    """Return text with new numbers in the phases of a milestone: ``Phases 3-6`` → ``Phases 3-5``."""

    def replace(match: re.Match[str]) -> str:
        low, high = normal_phase(match["low"]), normal_phase(match["high"])
        if low == high or not (low.isdecimal() and high.isdecimal()):
            return match[0]
        new_low = change.of(low)
        if low == change.removed and not change.numbers:
            new_low = str(int(low) + 1)
        new_high = str(int(high) - 1) if high == change.removed else change.of(high)
        if new_low == new_high:
            return f"Phase {new_low}"
        head = text[match.start() : match.start("low")]
        between = text[match.end("low") : match.start("high")]
        return f"{head}{like(match['low'], new_low)}{between}{like(match['high'], new_high)}"

    return re.sub(rf"\bPhases?\s+{RANGE.pattern}", replace, text)


def in_plan_ids(text: str, change: Renumbering, folders: Mapping[str, str]) -> str:
    """Return a planning file's text with new numbers where it names plans, criteria and folders.

    *folders* are the new names of renamed phase folders. Prose (``see phase 4``) stays as it is.
    """
    if folders:
        # All at once: the new name of one folder may be the old one of another.
        names = "|".join(map(re.escape, sorted(folders, key=len, reverse=True)))
        text = re.sub(rf"(?<=phases/)({names})(?=/)", lambda match: folders[match[1]], text)
        own = rf"^(phase:[ \t]*[\"']?)({names})(?=[\"']?[ \t]*\r?$)"
        if found := re.search(own, text, flags=re.MULTILINE):
            rest = in_plan_ids(text[found.end() :], change, {})
            return f"{in_plan_ids(text[: found.start()], change, {})}{found[1]}{folders[found[2]]}{rest}"
    tokens = {padded(old): padded(new) for old, new in change.numbers.items()}
    tokens |= {old: new for old, new in change.numbers.items() if old not in tokens}
    if not tokens:
        return text
    any_of = "|".join(map(re.escape, sorted(tokens, key=len, reverse=True)))
    # A plan (04-01), a document (04-CONTEXT.md) or a criterion (04:C2); not a date (2026-04-01).
    ends = r"-\d{2}(?:-[A-Z]{4,}|(?![\d-]))|-[A-Z]{4,}[A-Z-]*\.(?:md|json)\b|:C\d"
    named = rf"(?<![\w.:-])({any_of})(?={ends})"
    text = re.sub(named, lambda match: tokens[match[1]], text)
    own = rf"^(phase:[ \t]*[\"']?)({any_of})(?=[\"']?[ \t]*\r?$)"
    return re.sub(own, lambda match: match[1] + tokens[match[2]], text, count=1, flags=re.MULTILINE)
