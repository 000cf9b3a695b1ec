"""What ``gsd doctor`` found, as values and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import attrs

from gsd_core.serializer import Serializer

CheckState: TypeAlias = Literal["ok", "warning", "problem", "skipped"]
Section: TypeAlias = Literal["machine", "settings", "plugins", "agent", "security", "project", "leftovers"]
SECTIONS: tuple[Section, ...] = get_args(Section)


@attrs.frozen
class Check:
    """One check: *found* says what is there, *fix* what to do about it, with a command if there is one.

    *problem*: a run cannot start, or cannot be relied on. *warning*: it can, with a disadvantage. The fields
    are positional: each check is a row of a table.
    """

    section: Section
    name: str
    state: CheckState
    found: str
    fix: str = ""


CHECK = Serializer(Check, "section name state found fix?")


def overall_state(checks: Iterable[Check]) -> CheckState:
    """Return the worst state; what was skipped counts as good."""
    states = {check.state for check in checks}
    return "problem" if "problem" in states else "warning" if "warning" in states else "ok"


def diagnosis_json(checks: Sequence[Check], project: str, fixed: Sequence[str]) -> dict[str, Any]:
    """Return the JSON of ``gsd doctor``; *fixed* are the descriptions of what ``--fix`` has done."""
    return {
        "project": project,
        "state": overall_state(checks),
        "checks": [*map(CHECK.dump, checks)],
        "fixed": list(fixed),
    }
