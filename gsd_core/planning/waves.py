"""Which wave each plan of a phase belongs to, by what it depends on.

Source: ``phase-plan-index`` of gsd-core 1.14. A declared wave counts only where a circle leaves none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gsd_core.planning.graph import waves
from gsd_core.planning.model import Plan

_ZERO = re.compile(r"^wave:[ \t]*[\"']?0[\"']?[ \t]*\r?$", re.MULTILINE)


def plan_waves(plans: Sequence[Plan]) -> dict[str, int]:
    """Return each plan's wave: one after that of the last plan of the phase that it depends on.

    A phase with a wave 0 (what must be there first) begins with it.
    """
    known = resolved(plans)
    found = waves({plan.id: known[plan.id] for plan in plans})
    first = 0 if any(_ZERO.search(plan.text[:4000]) for plan in plans) else 1
    return {plan.id: found[plan.id] + first - 1 if plan.id in found else plan.wave for plan in plans}


def resolved(plans: Sequence[Plan]) -> dict[str, tuple[str, ...]]:
    """Return the plans of the same phase that each plan depends on, by their ids."""
    names = _names(plans)
    return {
        plan.id: tuple(dict.fromkeys(names[key] for name in plan.depends_on if (key := _key(name)) in names))
        for plan in plans
    }


def _names(plans: Sequence[Plan]) -> Mapping[str, str]:
    """Return the names by which a plan may be meant: its id, or the number that its id begins with."""
    names: dict[str, str] = {}
    for plan in plans:
        if short := re.match(r"\d+[A-Za-z]?(?:\.\d+)*-\d{2}[A-Za-z]?(?=-)", plan.id):
            names.setdefault(short[0].lower(), plan.id)
    return names | {plan.id.lower(): plan.id for plan in plans}


def _key(name: str) -> str:
    return re.sub(r"(?:-PLAN)?(?:\.md)?$", "", name.rpartition("/")[2], flags=re.IGNORECASE).lower()
