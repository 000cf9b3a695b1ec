"""What stands in ``.planning/``, as values. Source: GSD v1.20.5's files (the planning format).

Paths are POSIX text relative to the project's root. Phase numbers are text without leading
zeros (``2.1``); plan ids have them (``02.1-03``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from gsd_core.model.checks import TaskCheck
from gsd_core.model.gap import Gap, HumanCheck

VerdictStatus: TypeAlias = Literal["passed", "gaps_found", "human_needed", "unknown"]
TaskType: TypeAlias = Literal[
    "auto", "checkpoint:human-verify", "checkpoint:decision", "checkpoint:human-action"
]


@frozen(kw_only=True)
class Truth:
    """Something observable that must be true; *id* is ``01-02:T1``, the first truth of plan 01-02."""

    id: str
    text: str


@frozen(kw_only=True)
class Artifact:
    """A file that must exist, be no stub, have *min_lines*, name its *exports*, hold *contains*."""

    path: str
    provides: str = ""
    min_lines: int = 0
    exports: tuple[str, ...] = ()
    contains: str = ""


@frozen(kw_only=True)
class KeyLink:
    """A connection that must be there: *source* (``from``) refers to *target* (``to``).

    *pattern* is a regular expression that must match in *source*.
    """

    source: str
    target: str
    via: str = ""
    pattern: str = ""


@frozen(kw_only=True)
class MustHaves:
    """What must hold when a plan is done."""

    truths: tuple[Truth, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    key_links: tuple[KeyLink, ...] = ()


@frozen(kw_only=True)
class Task:
    """One task of a plan; *number* counts from 1; *check* is the command that proves it, if any.

    A checkpoint has its own texts in *details* (``what-built``, ``how-to-verify``, ``decision``,
    ``options`` …), by the name of their element.
    """

    number: int
    name: str
    type: TaskType = "auto"
    files: tuple[str, ...] = ()
    action: str = ""
    verify: str = ""
    check: str = ""
    done: str = ""
    details: Mapping[str, str] = field(factory=dict[str, str])


@frozen(kw_only=True)
class Plan:
    """One plan; *path* where it lies, *text* the whole file, *summary* the path of its SUMMARY or empty."""

    id: str
    phase: str
    name: str = ""
    objective: str = ""
    type: str = "execute"
    wave: int = 1
    depends_on: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    autonomous: bool = True
    requirements: tuple[str, ...] = ()
    must_haves: MustHaves = field(factory=MustHaves)
    tasks: tuple[Task, ...] = ()
    gap_closure: bool = False
    path: str = ""
    summary: str = ""
    text: str = ""


@frozen(kw_only=True)
class Requirement:
    """One line of REQUIREMENTS.md; *phase* and *status* from the traceability table.

    *version* is ``v1``, ``v2`` or whatever the section's heading says.
    """

    id: str
    text: str
    category: str = ""
    version: str = "v1"
    done: bool = False
    phase: str = ""
    status: str = "Pending"


@frozen(kw_only=True)
class Verdict:
    """What a VERIFICATION.md says; *stale* if a SUMMARY of the phase is newer; *path* where it lies."""

    status: VerdictStatus
    score: str = ""
    verified: str = ""
    stale: bool = False
    gaps: tuple[Gap, ...] = ()
    human: tuple[HumanCheck, ...] = ()
    path: str = ""


@frozen(kw_only=True)
class PhaseView:
    """A phase as its detectors see it.

    *project* is the tree to look at (a workspace, perhaps), *directory* the phase's folder in it.
    *listed* are the ids of the plans that ROADMAP.md names, *plans* those that are on disk.
    *context*, *research*: the texts of the files, empty if there are none.
    *checks*: what the commands of the executed plans did just now (verify only; the core ran them).
    """

    number: str
    name: str
    project: Path
    goal: str = ""
    depends_on: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    directory: str = ""
    plans: tuple[Plan, ...] = ()
    listed: tuple[str, ...] = ()
    context: str = ""
    research: str = ""
    verdict: Verdict | None = None
    checks: tuple[TaskCheck, ...] = ()
    ticked: bool = False
    milestone: str = ""


@frozen(kw_only=True)
class Planning:
    """A project's ``.planning/`` as a whole, for the milestone in progress.

    *documents* are the texts of the root files that exist, by name (``PROJECT.md``).
    *config* is ``config.json`` as it stands, legacy keys and all.
    """

    name: str = ""
    core_value: str = ""
    milestone: str = "v1.0"
    milestone_name: str = ""
    phases: tuple[PhaseView, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    config: Mapping[str, Any] = field(factory=dict[str, Any])
    documents: Mapping[str, str] = field(factory=dict[str, str])

    def phase(self, number: str) -> PhaseView | None:
        """Return the phase with that number, compared as text (``1`` is not ``1.1``)."""
        return next((phase for phase in self.phases if phase.number == number), None)


@frozen(kw_only=True)
class PlannedPhase:
    """A phase as a roadmap is made of it, before there is anything on disk."""

    number: str
    name: str
    goal: str
    depends_on: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
