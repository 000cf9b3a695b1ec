"""How finely the work is divided: phases of a project and plans of a phase, by the depth of the run.

Source: GSD's depths: quick (3 to 5 phases with 1 to 3 plans), standard (5 to 8, 3 to 5) and comprehensive
(8 to 12, 5 to 10). The ranges are for a large idea; only their upper ends
are checked.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from gsd_core import Depth


@attrs.frozen(kw_only=True)
class Division:
    """The usual number of *phases* of a large idea and *plans* of a large phase, each with the most allowed.

    *statements* is how many statements of the idea one phase usually delivers.
    """

    phases: tuple[int, int]
    plans: tuple[int, int]
    statements: int


DIVISIONS: Mapping[Depth, Division] = {
    "quick": Division(phases=(3, 5), plans=(1, 3), statements=15),
    "standard": Division(phases=(5, 8), plans=(3, 5), statements=10),
    "comprehensive": Division(phases=(8, 12), plans=(5, 10), statements=6),
}


def phases_hint(depth: Depth, statements: int) -> str:
    """Return what the roadmapper is told about the number of phases for an idea with that many statements."""
    division = DIVISIONS[depth]
    fewest, most = division.phases
    usual = min(max(1, round(statements / division.statements)), most)
    about = "1 phase is" if usual == 1 else f"{usual} phases are"
    return (
        f"Depth {depth}: large ideas have {fewest} to {most} phases; about {about} usual for one of this "
        f"size. At most {most} phases."
    )


def plans_hint(depth: Depth) -> str:
    """Return what the planner is told about the number of plans."""
    fewest, most = DIVISIONS[depth].plans
    usual = f"large phases have {fewest} to {most} plans, small ones fewer"
    return f"Depth {depth}: {usual}. At most {most} plans."
