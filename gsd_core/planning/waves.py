"""Waves: which plans of a phase can run at the same time, by what they depend on.

Source: ``phase-plan-index`` of gsd-core 1.14. The wave that a plan declares counts only if its
dependencies form a cycle, because then none can be computed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from .model import Plan

_WAVE_ZERO = re.compile(r"^wave:[ \t]*[\"']?0[\"']?[ \t]*\r?$", re.MULTILINE)


def waves(dependencies: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the wave of each key: 1 without dependencies, else one after its last dependency.

    Unknown names are ignored. A key on a cycle, or one that depends on a cycle, has no wave.
    """
    sorter, found, wave = _sorter(dependencies), dict[str, int](), 0
    # After this error the sorter still yields all keys that do not depend on the cycle.
    with suppress(CycleError):
        sorter.prepare()
    while ready := sorter.get_ready():
        wave += 1
        found |= dict.fromkeys(ready, wave)
        sorter.done(*ready)
    return {key: found[key] for key in dependencies if key in found}


def cycle(dependencies: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return one cycle of dependencies, such as ``("a", "b", "a")``; empty if there is none."""
    try:
        _sorter(dependencies).prepare()
    except CycleError as error:
        # graphlib lists what comes first first; a reader expects "a depends on b".
        return tuple(reversed(error.args[1]))
    return ()


def _sorter(dependencies: Mapping[str, Sequence[str]]) -> TopologicalSorter[str]:
    return TopologicalSorter(
        {key: [name for name in names if name in dependencies] for key, names in dependencies.items()}
    )


def plan_waves(plans: Sequence[Plan]) -> dict[str, int]:
    """Return the wave of each of a phase's plans, by plan id.

    The first wave is 1, or 0 if a plan declares ``wave: 0`` (for what must exist before all else).
    """
    found = waves(plan_dependencies(plans))
    # `Plan.wave` is at least 1, so that only the text knows; the frontmatter is at its beginning.
    first = 0 if any(_WAVE_ZERO.search(plan.text[:4000]) for plan in plans) else 1
    return {plan.id: found[plan.id] + first - 1 if plan.id in found else plan.wave for plan in plans}


def plan_dependencies(plans: Sequence[Plan]) -> dict[str, tuple[str, ...]]:
    """Return, by plan id, the ids of the plans of the same phase that each plan depends on."""
    ids: dict[str, str] = {}
    for plan in plans:
        # A plan `01-02-login` may be referred to as `01-02`; the full id of another plan goes first.
        if short := re.match(r"\d+[A-Za-z]?(?:\.\d+)*-\d{2}[A-Za-z]?(?=-)", plan.id):
            ids.setdefault(short[0].lower(), plan.id)
    ids |= {plan.id.lower(): plan.id for plan in plans}
    return {
        plan.id: tuple(dict.fromkeys(ids[key] for name in plan.depends_on if (key := _key(name)) in ids))
        for plan in plans
    }


def _key(name: str) -> str:
    """Return the plan's id in a reference, which may be the path or the name of its file."""
    return re.sub(r"(?:-PLAN)?(?:\.md)?$", "", name.rpartition("/")[2], flags=re.IGNORECASE).lower()
