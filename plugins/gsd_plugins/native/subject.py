"""The first line of a task's commit: ``feat(01-02): Store notes in a file``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from gsd_core import Plan, Task

LONGEST = 100


def subject_of(plan: Plan, task: Task, files: Sequence[str]) -> str:
    """Return the subject of a task's commit, in one line."""
    name = " ".join(task.name.split())
    subject = f"{_type(plan, task, files)}({plan.id}): {name}"
    return subject if len(subject) <= LONGEST else subject[: LONGEST - 1].rstrip() + "…"


def _type(plan: Plan, task: Task, files: Sequence[str]) -> str:
    """Files that are all tests make a ``test``, all documents ``docs``; what mends is a ``fix``."""
    paths = [PurePosixPath(path) for path in files or task.files]
    if paths and all(map(_is_test, paths)):
        return "test"
    if paths and all(map(_is_document, paths)):
        return "docs"
    mends = plan.gap_closure or task.type != "auto" or task.name.lower().startswith("fix")
    return "fix" if mends else "feat"


def _is_test(path: PurePosixPath) -> bool:
    stem = path.name.partition(".")[0].lower()
    named = stem.startswith("test_") or stem.endswith(("_test", "-test")) or ".test." in path.name
    return named or ".spec." in path.name or bool({"test", "tests", "__tests__"} & set(path.parts[:-1]))


def _is_document(path: PurePosixPath) -> bool:
    return path.suffix.lower() in (".md", ".rst", ".txt", ".adoc") or path.parts[0] == "docs"
