"""Faults in SQL: each comparison also includes, or leaves out, its limit.

The core tries them one by one: it changes the file in a throwaway checkout, runs the plan's checks, and says
which faults no test notices.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gsd_core import Mutant, SourceFile, implements
from gsd_core.hookspecs import gsd_find_mutants

_COMPARISON = re.compile(r"(?<=\s)(?:<=|>=|<|>)(?=\s)")
_OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


@implements(gsd_find_mutants)
async def other_limits(source: SourceFile) -> Sequence[Mutant]:
    """Find the comparisons of an SQL file."""
    if not source.path.endswith(".sql"):
        return []
    return [_mutant(source.text, found) for found in _COMPARISON.finditer(source.text)]


def _mutant(text: str, found: re.Match[str]) -> Mutant:
    line = text.count("\n", 0, found.start()) + 1
    return Mutant(
        kind="condition",
        name=found[0],
        first=line,
        last=line,
        start=found.start(),
        end=found.end(),
        text=_OTHER[found[0]],
    )
