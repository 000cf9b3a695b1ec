"""One plan of a scenario, and its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from attrs import field, frozen

from .product import FileEdit

Json: TypeAlias = dict[str, Any]


@frozen(kw_only=True)
class Job:
    """One task: the files it writes, the *check* that proves it, and whether it *asks* first."""

    name: str
    edits: tuple[FileEdit, ...]
    action: str
    check: str
    done: str
    asks: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the files that the task writes."""
        return tuple(edit.path for edit in self.edits)

    def value(self) -> Json:
        """Return the task as a planner gives it."""
        return {
            "name": self.name,
            "files": list(self.files),
            "action": self.action,
            "verify": f"`{self.check}` succeeds",
            "check": self.check,
            "done": self.done,
        }


@frozen(kw_only=True)
class Work:
    """One plan."""

    name: str
    objective: str
    depends_on: tuple[int, ...] = ()
    requirements: tuple[str, ...] = ()
    truths: tuple[str, ...]
    artifacts: tuple[Mapping[str, Any], ...]
    links: tuple[Mapping[str, str], ...] = ()
    jobs: tuple[Job, ...] = field()

    def value(self) -> Json:
        """Return the plan as a planner gives it."""
        return {
            "name": self.name,
            "objective": self.objective,
            "depends_on": list(self.depends_on),
            "files_modified": sorted({path for job in self.jobs for path in job.files}),
            "requirements": list(self.requirements),
            "truths": list(self.truths),
            "artifacts": [dict(artifact) for artifact in self.artifacts],
            "key_links": [dict(link) for link in self.links],
            "tasks": [job.value() for job in self.jobs],
        }


def artifact(path: str, provides: str, **more: Any) -> Json:
    """Return a file that must exist, as a planner gives it."""
    return {"path": path, "provides": provides, **more}


def link(source: str, target: str, via: str, pattern: str) -> dict[str, str]:
    """Return a connection that must be there, as a planner gives it."""
    return {"from": source, "to": target, "via": via, "pattern": pattern}


USAGE = artifact("README.md", "What it is and how it is used", contains="## Usage")
