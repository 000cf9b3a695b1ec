"""The content of ``.planning/`` as values; the modules of the files read and write them.

Source: the files of GSD v1.20.5. Paths are POSIX text relative to the project's root. Phase numbers are
text without leading zeros (``2.1``); plan ids have them (``02.1-03``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs

from gsd_core.model.checks import TaskCheck
from gsd_core.model.gap import Gap, HumanCheck
from gsd_core.model.mutant import Unnoticed

VerdictStatus: TypeAlias = Literal["passed", "gaps_found", "human_needed", "unknown"]
TaskType: TypeAlias = Literal[
    "auto", "checkpoint:human-verify", "checkpoint:decision", "checkpoint:human-action"
]

Cycle: TypeAlias = Literal["", "red", "green", "refactor"]
"""A task's place in a test-driven cycle: write the failing test, make it pass, clean up."""


@attrs.frozen(kw_only=True)
class Statement:
    """One numbered statement of the idea; *id* is ``S7`` for the seventh, *line* counts from 1.

    *used_by* says what the roadmap made of it: ids of requirements (also of later ones), ``constraint``,
    ``out of scope`` or ``context`` (it asks for nothing). A statement is used at least once. *heading* is
    the one that it is under in the idea.
    """

    id: str
    text: str
    line: int = 0
    used_by: tuple[str, ...] = ()
    heading: str = ""


@attrs.frozen(kw_only=True)
class Truth:
    """Something observable that must be true; *id* is ``01-02:T1`` for the first truth of plan 01-02.

    *serves* are the requirements (``CORE-01``) and success criteria (``01:C2``) that it makes true.
    """

    id: str
    text: str
    serves: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Artifact:
    """A file that must exist and must not be a stub.

    It must have at least *min_lines* lines, define its *exports*, and contain the text *contains*.
    """

    path: str
    provides: str = ""
    min_lines: int = 0
    exports: tuple[str, ...] = ()
    contains: str = ""


@attrs.frozen(kw_only=True)
class KeyLink:
    """A connection that must exist: *source* (``from``) refers to *target* (``to``).

    *pattern* is a regular expression that must match in *source*; *via* describes the connection.
    """

    source: str
    target: str
    via: str = ""
    pattern: str = ""


@attrs.frozen(kw_only=True)
class MustHaves:
    """What must hold when a plan is done."""

    truths: tuple[Truth, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    key_links: tuple[KeyLink, ...] = ()


@attrs.frozen(kw_only=True)
class Task:
    """One task of a plan; *number* counts from 1; *check* is the command that verifies it, if any.

    A checkpoint has additional texts in *details* (``what-built``, ``how-to-verify``, ``decision``,
    ``options`` …), by the name of their element. *cycle* is set for the tasks that a ``<feature>`` of a
    test-driven plan, or a ``<task tdd="true">``, consists of: the check of a ``red`` one has to fail.
    """

    number: int
    name: str
    type: TaskType = "auto"
    files: tuple[str, ...] = ()
    action: str = ""
    verify: str = ""
    check: str = ""
    done: str = ""
    details: Mapping[str, str] = attrs.field(factory=dict[str, str])
    cycle: Cycle = ""


@attrs.frozen(kw_only=True)
class Plan:
    """One plan, with the *text* of its file at *path*.

    *summary* is the path of its SUMMARY.md, empty if the plan has not been executed; *decisions* and
    *issues* are what that file records for later plans (only in requests to plan, execute and verify).
    *flaws* are mistakes
    that do not prevent reading the file. *unreadable* says why it could not be; then nothing else is known
    but its id, path and summary, and the plan cannot be executed or verified. *lists_requirements* is false
    for a file without ``requirements``, as early versions of GSD wrote it: nobody knows which they are.
    """

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
    lists_requirements: bool = True
    must_haves: MustHaves = attrs.field(factory=MustHaves)
    tasks: tuple[Task, ...] = ()
    gap_closure: bool = False
    path: str = ""
    summary: str = ""
    decisions: tuple[str, ...] = ()
    issues: tuple[str, ...] = ()
    text: str = ""
    flaws: tuple[str, ...] = ()
    unreadable: str = ""


@attrs.frozen(kw_only=True)
class Requirement:
    """One line of REQUIREMENTS.md; *phase* and *status* are from the traceability table.

    *version* is ``v1``, ``v2`` or another name from the section's heading. *statements* are the ids of the
    idea's statements that it comes from.
    """

    id: str
    text: str
    category: str = ""
    version: str = "v1"
    done: bool = False
    phase: str = ""
    status: str = "Pending"
    statements: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Verdict:
    """The verdict in the VERIFICATION.md at *path*; *stale* if a SUMMARY.md of the phase is newer.

    *flaws* are mistakes in the file; its status is ``unknown`` then, because it may be another one.
    """

    status: VerdictStatus
    score: str = ""
    verified: str = ""
    stale: bool = False
    gaps: tuple[Gap, ...] = ()
    human: tuple[HumanCheck, ...] = ()
    path: str = ""
    flaws: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class History:
    """What git says about the project's tree: values, so that a detector needs no git.

    *files* are the paths in HEAD, *changed* those that differ from HEAD or are untracked, *ignored* those
    of the phase's promised files that git ignores, *nested* the folders inside the project that are
    nested repositories. *commits* are the full ids of HEAD and its ancestors. *before* has the texts of the
    promised and changed files as they were before the first commit of the phase, *removed* the promised ones
    that a commit of another phase removed since, with its subject.
    """

    files: frozenset[str] = frozenset()
    changed: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    commits: frozenset[str] = frozenset()
    before: Mapping[str, str] = attrs.field(factory=dict[str, str])
    removed: Mapping[str, str] = attrs.field(factory=dict[str, str])


@attrs.frozen(kw_only=True)
class PhaseView:
    """A phase as its detectors see it.

    *project* is the root of the tree to examine (perhaps a workspace), *directory* the phase's folder in it.
    *listed* are the ids of the plans that ROADMAP.md names, *plans* the plans that exist on disk. *context*
    and *research* are the texts of the files, empty if they do not exist. *checks* are the current results of
    the commands of all executed plans (only in verify; the core runs them). *ticked* is the phase's checkbox
    in ROADMAP.md. *history* is ``None`` if the project is not in a repository. *commits* are the full ids of
    the commits of executed plans, by plan, *changed* the paths that these commits changed (both for
    detectors, in verify, and in steps of plugins' own kinds). *unnoticed* are faults in these files that none
    of the checks notices (only in verify, as far as there was time); *measured_for* is how long it took to
    find out what fails without the phase's work, and *measured_all* whether there was time for all faults.
    *absent* are exact words and numbers of requirements and decisions that no file of the project contains,
    by id (only in verify).
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
    history: History | None = None
    commits: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]])
    changed: tuple[str, ...] = ()
    unnoticed: tuple[Unnoticed, ...] = ()
    measured_for: timedelta = timedelta()
    measured_all: bool = True
    absent: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]])

    @property
    def changed_files(self) -> tuple[str, ...]:
        """The files that the phase's work changed, and that still exist; sorted.

        Those of the commits of its executed plans, and those that are not committed yet, without those in
        ``.planning/``. For a detector that looks at the phase's work only, and not at the whole project.
        """
        uncommitted = self.history.changed if self.history else ()
        found = {path for path in (*self.changed, *uncommitted) if not path.startswith(".planning/")}
        return tuple(sorted(path for path in found if (self.project / path).is_file()))


@attrs.frozen(kw_only=True)
class Planning:
    """A project's whole ``.planning/``, for the milestone in progress.

    *documents* are the texts of the root files that exist, by name (``PROJECT.md``).
    *config* is the unchanged content of ``config.json``, including legacy keys. *statements* are those of
    ``.planning/IDEA.md``, which keeps the idea; none if there is no such file. *idle* says why there are no
    phases although there is a project (``v1.2 is shipped: no milestone is in progress``); else it is empty.
    *note* says how the files disagree about the milestone in progress, and what counts; empty if they agree.
    """

    name: str = ""
    core_value: str = ""
    milestone: str = "v1.0"
    milestone_name: str = ""
    phases: tuple[PhaseView, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    statements: tuple[Statement, ...] = ()
    config: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    documents: Mapping[str, str] = attrs.field(factory=dict[str, str])
    idle: str = ""
    note: str = ""

    def phase(self, number: str) -> PhaseView | None:
        """Return the phase with that number, compared as text (``1`` is not ``1.1``)."""
        return next((phase for phase in self.phases if phase.number == number), None)


@attrs.frozen(kw_only=True)
class PlannedPhase:
    """A phase of a roadmap that is about to be written, before anything of it exists on disk.

    *inserted*: it comes between others, and is marked so.
    """

    number: str
    name: str
    goal: str
    depends_on: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    inserted: bool = False
