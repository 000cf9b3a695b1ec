"""What a single step has written, in a few lines: its files, and what they say.

The files were written by an agent, or by a person since, so one that cannot be read is skipped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gsd_core.errors import PlanningError
from gsd_core.model.counts import counted
from gsd_core.model.ids import DISCUSS, EXECUTE, VERIFY, StepId
from gsd_core.planning.context import read_decisions
from gsd_core.planning.frontmatter import as_map, as_maps, as_text, read_frontmatter
from gsd_core.planning.markdown import prose, read_text
from gsd_core.planning.verification import parse_verdict
from gsd_core.sanitize import one_line

MAX_TEXT = 300
MAX_LISTED = 5
_CAUSE = re.compile(r"^(root_cause|fix):[ \t]*(.*)$", re.MULTILINE)
_RESOLUTION = re.compile(r"^## Resolution$", re.MULTILINE)
_HEADLINE = re.compile(r"^\*\*(.+?)\*\*", re.MULTILINE)
_ASSUMED = re.compile(r"nobody was asked|^Not answered")
"""How the note of a decision says that no person made it."""
_ITEM = re.compile(r"^[-*] ", re.MULTILINE)


def result_lines(root: Path, step: StepId, paths: Sequence[str], *, unchanged: bool) -> Iterator[str]:
    """Yield a line for each file that *step* has written, and what is in the most important one."""
    if unchanged and paths:
        others = f" and {counted(len(paths) - 1, 'other file')}" if len(paths) > 1 else ""
        yield f"no change: {paths[0]}{others} had the same content"
    else:
        gone = [path for path in paths if not os.path.lexists(root / path)]
        moved: dict[str, str] = {}
        for path in gone:
            name = path.rpartition("/")[2]
            for other in paths:
                if other not in gone and (f"/{other}".endswith(f"/{name}") or other.endswith(f"-{name}")):
                    moved[other] = path
        for path in paths:
            if path in moved:
                yield f"moved {moved[path]} to {path}"
            elif path not in gone:
                yield f"wrote {path}"
            elif path not in moved.values():
                yield f"removed {path}"
    for path in paths:
        try:
            yield from (one_line(line, MAX_TEXT) for line in _summary(step, path, read_text(root, path)))
        except (PlanningError, OSError):
            continue


def _summary(step: StepId, path: str, text: str) -> Iterator[str]:
    match step.kind:
        case kind if kind == DISCUSS and path.endswith("-CONTEXT.md"):
            decisions = read_decisions(text)
            assumed = sum(any(map(_ASSUMED.search, one.notes)) for one in decisions)
            more = f", {assumed} of them assumed" if assumed else ""
            yield f"decisions: {len(decisions)}{more}"
        case "debug" if path.startswith(".planning/debug/"):
            resolution = _RESOLUTION.split(text)[-1]
            found = {name: prose(value) for name, value in _CAUSE.findall(resolution)}
            yield f"root cause: {found.get('root_cause') or 'not found'}"
            if fix := found.get("fix"):
                yield f"suggested fix: {fix}"
        case "audit" if path.endswith("-AUDIT.md"):
            head = read_frontmatter(text, path=path)
            values = as_map(head.get("scores"))
            names = [name for name in ("requirements", "phases") if values.get(name)]
            counts = ", ".join(f"{name} {as_text(values[name])}" for name in names)
            yield f"audit: {head.text('status').replace('_', ' ')}" + (f" ({counts})" if counts else "")
            missing = as_maps(as_map(head.get("gaps")).get("requirements", []))
            for gap in missing[:MAX_LISTED]:
                yield f"missing: {as_text(gap.get('id', ''))} {as_text(gap.get('evidence', ''))}"
            if len(missing) > MAX_LISTED:
                yield f"missing: {len(missing) - MAX_LISTED} more"
        case kind if kind in (VERIFY, "quick") and path.endswith("-VERIFICATION.md"):
            verdict = parse_verdict(text, path=path)
            score = f" ({verdict.score})" if verdict.score else ""
            left = {"gap": verdict.gaps, "manual check": verdict.human}
            counts = ", ".join(counted(len(items), noun) for noun, items in left.items() if items)
            yield f"verdict: {verdict.status.replace('_', ' ')}{score}" + (f": {counts}" if counts else "")
        case kind if kind in (EXECUTE, "quick") and path.endswith("-SUMMARY.md"):
            if headline := _HEADLINE.search(text):
                yield f"result: {prose(headline[1])}"
        case "survey" if path.endswith("/CONCERNS.md"):
            yield f"concerns: {counted(len(_ITEM.findall(text)), 'item')} listed in {path}"
        case _:
            pass
