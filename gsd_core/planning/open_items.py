"""What a project still has open when a milestone is closed, besides its requirements.

They are the same files and end states as in GSD's ``audit-open`` (get-shit-done-cc 1.42): acceptance tests,
debug sessions, quick tasks and pending todos. Verifications and deferred items are a part of the audit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from gsd_core.errors import PlanningError
from gsd_core.files import list_below

from .frontmatter import Frontmatter, read_frontmatter
from .markdown import prose, read_text
from .model import Planning
from .todos import markdown_files, pending_todos

DEBUG, QUICK = ".planning/debug", ".planning/quick"
MAX_TEXT = 120
_PENDING = re.compile(
    r"^[-*\s]*\**result\**:\**\s*(?:\[?pending\]?|\[\s*\])\s*$", re.IGNORECASE | re.MULTILINE
)


def open_items(planning: Planning, root: Path) -> tuple[str, ...]:
    """Return each open item in words; a file that cannot be read is open."""
    todos = (f"Todo: {prose(todo.title)[:MAX_TEXT]}" for todo in pending_todos(root))
    return (*_acceptance_tests(planning, root), *_debug_sessions(root), *_quick_tasks(root), *todos)


def _acceptance_tests(planning: Planning, root: Path) -> Iterator[str]:
    for phase in planning.phases:
        for name in markdown_files(root, phase.directory) if phase.directory else ():
            if "-UAT" not in name:
                continue
            head = _head(root, f"{phase.directory}/{name}")
            status = head.text("status").lower() or "unknown"
            is_passed = status == "unknown" and head.text("result").lower() == "all_pass"
            if is_passed or status in ("complete", "resolved"):
                continue
            left = len(_PENDING.findall(head.body))
            tests = f", {left} without a result" if left else ""
            yield f"Acceptance tests of phase {phase.number}: {prose(status)[:MAX_TEXT]}{tests} ({name})"


def _debug_sessions(root: Path) -> Iterator[str]:
    for name in markdown_files(root, DEBUG):
        status = _head(root, f"{DEBUG}/{name}").text("status").lower() or "unknown"
        if status not in ("resolved", "complete"):
            yield f"Debug session {name.removesuffix('.md')}: {prose(status)[:MAX_TEXT]}"


def _quick_tasks(root: Path) -> Iterator[str]:
    for entry in (one for one in list_below(root, QUICK) if one.kind == "folder"):
        folder = f"{QUICK}/{entry.name}"
        summaries = [name for name in markdown_files(root, folder) if name.endswith("SUMMARY.md")]
        # Older versions wrote summaries without a status, after the task was done.
        statuses = [_head(root, f"{folder}/{name}").text("status").lower() for name in summaries]
        if not any(status in ("", "complete", "completed") for status in statuses):
            yield f"Quick task {entry.name}: {prose(statuses[0])[:MAX_TEXT] if statuses else 'no summary'}"


def _head(root: Path, path: str) -> Frontmatter:
    try:
        return read_frontmatter(read_text(root, path), path=path)
    except PlanningError:
        return Frontmatter(values={"status": "unreadable"})
