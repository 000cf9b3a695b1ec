"""Dependencies: which wave a thing belongs to, and whether they run in a circle.

Which wave each plan of a phase belongs to, by what it depends on.

Source: ``phase-plan-index`` of gsd-core 1.14. A declared wave counts only where a circle leaves none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .model import Plan


def waves(dependencies: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the wave of each key: 1 without dependencies, else one after its last dependency.

    Names that are no keys do not count. What lies on a circle, or behind one, has no wave.
    """
    known = {key: _known(dependencies, key) for key in dependencies}
    found: dict[str, int] = {}
    while ready := [key for key in known if key not in found and all(n in found for n in known[key])]:
        for key in ready:
            found[key] = 1 + max((found[name] for name in known[key]), default=0)
    return {key: found[key] for key in dependencies if key in found}


def cycle(dependencies: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return one circle of dependencies (``("a", "b", "a")``), or nothing if there is none."""
    placed = waves(dependencies)
    stuck = {
        key: [name for name in _known(dependencies, key) if name not in placed]
        for key in dependencies
        if key not in placed
    }
    if not stuck:
        return ()
    path = [next(iter(stuck))]
    while (following := stuck[path[-1]][0]) not in path:
        path.append(following)
    return (*path[path.index(following) :], following)


def _known(dependencies: Mapping[str, Sequence[str]], key: str) -> list[str]:
    return [name for name in dependencies[key] if name in dependencies]


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
