"""Checks of ``.planning/`` for missing, broken and contradictory files, and repairs.

Codes and severities are those of GSD's ``validate health`` (v1.20.5): E001 no folder, E002 PROJECT,
E003 ROADMAP, E004 STATE, E005 config broken; W001 a section of PROJECT is missing, W002 STATE names
an unknown phase, W003 no config, W004 unknown model profile, W005 a folder's name, W006 a phase
without a folder, W007 a folder without a phase; I001 a plan without a summary. A phase that has not
begun has no folder: its W006 is only information, as in gsd-core. Codes from 101 on are not GSD's: W101
a mistake in the frontmatter of a plan or of a verdict, E101 a requirement that no phase covers, E102 a
requirement that dropped out of REQUIREMENTS.md, E104 another file that a command refuses to read, E105 a
template for branches that a run refuses, W103 a handoff that cannot be read, W104 two folders of one phase,
I101 code that is surveyed before there is a project.

:func:`check_health` changes nothing. A repair is the new text of a whole file, and is shown as a diff
before it is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from difflib import unified_diff
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

import attrs

from gsd_core.errors import ConfigError, PlanningError
from gsd_core.files import FileRefused, kind_below, list_below, read_below
from gsd_core.model.ids import normal_phase
from gsd_core.model.step import Profile
from gsd_core.serializer import Serializer

from .changes import SetPosition
from .config import CONFIG, check_branch_templates, default_config, read_config, render_config
from .edit import apply_changes
from .edits import Edit, writing
from .handoff import read_handoff
from .idea import PATH as IDEA
from .idea import read_idea
from .markdown import read_text
from .model import PlannedPhase
from .numbers import CODE, TOKEN, is_backlog
from .phases import PHASES, every_folder, read_plan, read_verdict
from .plan import plan_id
from .project import core_value
from .requirements import PATH as REQUIREMENTS
from .requirements import read_requirements, requirement_ids
from .roadmap import PATH as ROADMAP
from .roadmap import check_names_phases, parse_roadmap
from .state import render_state
from .survey import ARCHIVE, Survey, read_planning, survey
from .todos import PENDING, markdown_files

Severity: TypeAlias = Literal["error", "warning", "info"]
HealthStatus: TypeAlias = Literal["healthy", "degraded", "broken"]

PROJECT, STATE = ".planning/PROJECT.md", ".planning/STATE.md"
SURVEYED, CODEBASE = "I101", ".planning/codebase"
BEFORE_A_PROJECT = frozenset({"codebase", "autopilot", "config.json"})
"""What ``.planning/`` may contain after ``gsd map``, before there is a project."""
SECTIONS = ("What This Is", "Core Value", "Requirements")
SEVERITIES: dict[str, Severity] = {"E": "error", "W": "warning", "I": "info"}
"""By the first letter of a code, the worst first."""

# v1.20.5 wants NN-slug or NN.N-slug; gsd-core also has the project's code, series and letters.
_FOLDER_NAME = re.compile(
    rf"(?:{CODE}-|[A-Z][A-Z0-9_]*-)?[A-Z]?\d{{2,}}[A-Za-z]?(?:\.\d+)*(?:-\d{{2}})*-[\w-]+"
)
_PHASE_MENTION = re.compile(rf"\bPhase:?(?:\*\*)?:?\s+({TOKEN})", re.IGNORECASE)
_POSITION = re.compile(r"^\s*(?:[-*]\s+)?(?:\*\*)?(?:Current )?(?:Phase|focus):?(?:\*\*)?:", re.IGNORECASE)


@attrs.frozen
class HealthIssue:
    """A problem: GSD's *code* for it, the file that has it, and how to fix it."""

    code: str
    path: str
    message: str
    fix: str
    line: int = attrs.field(default=0, kw_only=True)
    repairable: bool = attrs.field(default=False, kw_only=True)
    severity: Severity = attrs.field(
        default=attrs.Factory(lambda self: SEVERITIES[self.code[0]], takes_self=True), kw_only=True
    )


ISSUE = Serializer(HealthIssue, "code path line? message fix repairable")


def check_health(root: Path) -> tuple[HealthIssue, ...]:
    """Return all issues of the project at *root*, the worst first."""
    if not (root / ".planning").is_dir():
        fix = "start a project with: gsd run IDEA"
        return (HealthIssue("E001", ".planning", "the project has no .planning folder", fix),)
    names = {entry.name for entry in list_below(root, ".planning")}
    if "codebase" in names and names <= BEFORE_A_PROJECT:
        # GSD's own health calls that broken.
        message = "the existing code is surveyed, and there is no project yet"
        flawed = _config_issues(root) if (root / CONFIG).exists() else ()
        return (HealthIssue(SURVEYED, CODEBASE, message, "start with: gsd run IDEA"), *flawed)
    if refused := tuple(_refused_folders(root)):
        return refused
    roadmap = _roadmap_issue(root)
    state = _unreadable(root, STATE, "E004", "gsd health --repair rebuilds it", repairable=True)
    found = [*_project_issues(root), *_config_issues(root), *(one for one in (roadmap, state) if one)]
    try:
        surveyed = survey(root)
    except PlanningError as error:
        found += _refused(error, found)
    else:
        if surveyed.roadmap_phases:
            found += [] if state else _state_issues(root, surveyed)
            found += _mismatches(surveyed)
            found += _requirement_issues(root, surveyed)
    found += _file_issues(root)
    # What any command refuses to read is not healthy, whatever it is.
    todos = (partial(read_text, root, f"{PENDING}/{name}") for name in markdown_files(root, PENDING))
    readers: Iterable[Callable[[], object]] = (partial(read_planning, root), *todos)
    for read in readers:
        try:
            read()
        except PlanningError as error:
            found += _refused(error, found)
    order = list(SEVERITIES.values())
    return tuple(sorted(found, key=lambda one: (order.index(one.severity), one.code)))


def _refused(error: PlanningError, found: Iterable[HealthIssue]) -> Iterator[HealthIssue]:
    """Yield the issue of a file that cannot be read, unless it is among those that were *found*."""
    if error.path not in {one.path for one in found if one.severity == "error"}:
        code = "E003" if error.path.endswith("ROADMAP.md") else "E104"
        yield HealthIssue(code, error.path, str(error), error.hint, line=error.line)


def _refused_folders(root: Path) -> Iterator[HealthIssue]:
    """Yield the issue of each folder that commands refuse to read."""
    for folder in (PHASES, ARCHIVE, PENDING):
        try:
            list_below(root, folder)
        except FileRefused as error:
            message = f"cannot be read: {error.strerror}"
            yield HealthIssue("E104", folder, message, "replace the link by a folder")


def overall_status(issues: tuple[HealthIssue, ...]) -> HealthStatus:
    """Return the status of the whole project, in GSD's terms."""
    severities = {issue.severity for issue in issues}
    if "error" in severities:
        return "broken"
    return "degraded" if "warning" in severities else "healthy"


def _unreadable(
    root: Path, path: str, code: str, fix: str, *, repairable: bool = False
) -> HealthIssue | None:
    """Return the issue of a file that is missing, empty or cannot be read."""
    if not (root / path).exists():
        return HealthIssue(code, path, "is missing", fix, repairable=repairable)
    try:
        text = read_text(root, path)
    except PlanningError as error:
        return HealthIssue(code, path, str(error), error.hint, line=error.line, repairable=repairable)
    return None if text.strip() else HealthIssue(code, path, "is empty", fix, repairable=repairable)


def _roadmap_issue(root: Path) -> HealthIssue | None:
    fix = "restore it from git; no other file lists the phases"
    if issue := _unreadable(root, ROADMAP, "E003", fix):
        return issue
    try:
        check_names_phases(parse_roadmap(read_text(root, ROADMAP)))
    except PlanningError as error:
        return HealthIssue("E003", ROADMAP, str(error), error.hint, line=error.line)
    return None


def _project_issues(root: Path) -> Iterator[HealthIssue]:
    fix = "describe the project in it: what it is, and its core value"
    if issue := _unreadable(root, PROJECT, "E002", fix):
        yield issue
        return
    text = read_text(root, PROJECT)
    for section in SECTIONS:
        if not re.search(rf"^##[ \t]+{section}\b", text, re.MULTILINE | re.IGNORECASE):
            yield HealthIssue("W001", PROJECT, f"has no section {section!r}", f"add a heading '## {section}'")


def _config_issues(root: Path) -> Iterator[HealthIssue]:
    if not (root / CONFIG).exists():
        fix = "gsd health --repair writes the defaults"
        yield HealthIssue("W003", CONFIG, "is missing, so the defaults apply", fix, repairable=True)
        return
    try:
        config = read_config(root)
    except PlanningError as error:
        yield HealthIssue("E005", CONFIG, str(error), error.hint, line=error.line, repairable=True)
        return
    profile = config.get("model_profile", "balanced")
    try:
        check_branch_templates(config)
    except ConfigError as error:
        yield HealthIssue("E105", CONFIG, str(error).removeprefix(f"{CONFIG}: "), error.hint)
    if profile not in get_args(Profile):
        fix = f"set it to one of {', '.join(get_args(Profile))}"
        yield HealthIssue("W004", CONFIG, f"has the unknown model_profile {profile!r}", fix)


def _state_issues(root: Path, surveyed: Survey) -> Iterator[HealthIssue]:
    """Yield each unknown phase that STATE.md names, once; only its position can be repaired."""
    known = {phase.number for phase in surveyed.roadmap_phases}
    known |= {name for folder in surveyed.on_disk_only() for name in folder.names}
    for number, line in enumerate(read_text(root, STATE).split("\n"), start=1):
        for match in _PHASE_MENTION.finditer(line):
            phase = normal_phase(match[1])
            if phase in known or is_backlog(phase):
                continue
            known.add(phase)
            message, position = f"names phase {phase}, which does not exist", bool(_POSITION.match(line))
            fix = "gsd health --repair sets the position" if position else "correct the number"
            yield HealthIssue("W002", STATE, message, fix, line=number, repairable=position)


def _mismatches(surveyed: Survey) -> Iterator[HealthIssue]:
    """Yield phases of the current milestone without a folder, and folders without a phase."""
    for phase in surveyed.phases():
        if phase.folder is None:
            message = f"phase {phase.number} {phase.name!r} has no folder on disk"
            begun = "restore the folder, or remove the phase from the roadmap"
            fix = begun if phase.complete else "nothing to do until the phase begins"
            issue = HealthIssue("W006", ROADMAP, message, fix)
            yield issue if phase.complete else attrs.evolve(issue, severity="info")
    for folder in surveyed.on_disk_only():
        if not is_backlog(folder.number):
            message = f"phase {folder.number} is on disk, but in no roadmap"
            yield HealthIssue("W007", folder.path, message, "add it to ROADMAP.md, or remove the folder")


def _requirement_issues(root: Path, surveyed: Survey) -> Iterator[HealthIssue]:
    """Yield each requirement of the current version that is open and in no phase, or no longer listed."""
    try:
        requirements = read_requirements(root)
    except PlanningError as error:
        yield HealthIssue("E101", REQUIREMENTS, str(error), error.hint, line=error.line)
        return
    phases = surveyed.roadmap_phases
    covered = {name for one in phases for name in one.roadmap.details(one.mention).requirements}
    versions = {"v1", surveyed.current}
    for one in requirements:
        if one.version in versions and not one.done and not one.phase and one.id not in covered:
            message = f"requirement {one.id} is in no phase: {one.text}"
            fix = f"add {one.id} to the requirements of a phase in ROADMAP.md, or move it to a later version"
            yield HealthIssue("E101", REQUIREMENTS, message, fix)
    yield from _lost_requirements(root, {one.id for one in requirements})


def _lost_requirements(root: Path, known: set[str]) -> Iterator[HealthIssue]:
    idea = read_idea(root)
    became: dict[str, list[str]] = {}
    for statement in idea.statements if idea else ():
        for name in statement.used_by:
            if requirement_ids(name) == (name,):
                became.setdefault(name, []).append(statement.id)
    # After a milestone is shipped, REQUIREMENTS.md has other requirements, and the idea's are in the archive.
    if known.isdisjoint(became):
        return
    for name, statements in became.items():
        if name not in known:
            message = f"{name}, which {', '.join(statements)} of the idea became, is no longer listed"
            fix = f"restore {name}, or correct the table in {IDEA}"
            yield HealthIssue("E102", REQUIREMENTS, message, fix)


def _file_issues(root: Path) -> Iterator[HealthIssue]:
    """Yield names of folders, handoffs that cannot be read, plans without a SUMMARY, and frontmatter."""
    for entry in list_below(root, PHASES):
        if entry.kind == "folder" and not _FOLDER_NAME.fullmatch(entry.name):
            fix = "rename it like 01-foundation or 02.1-hotfix"
            yield HealthIssue("W005", f"{PHASES}/{entry.name}", "is not the name of a phase's folder", fix)
    handoff = read_handoff(root)
    for flaw in handoff.flaws if handoff else ():
        yield HealthIssue("W103", flaw.partition(" ")[0], flaw, "fix the file, or remove it")
    paths: dict[tuple[str, ...], str] = {}
    for folder in every_folder(root):
        if (other := paths.setdefault(folder.names, folder.path)) != folder.path:
            message = f"is a second folder of phase {folder.number}, besides {other}"
            yield HealthIssue("W104", folder.path, message, "remove or rename the wrong one")
        for name in folder.live_plans():
            plan, path = read_plan(folder, name, folder.number), f"{folder.path}/{name}"
            if not folder.summary_of(name, plan_id(name, folder.number)):
                yield HealthIssue("I001", path, "has no SUMMARY", "nothing to do until the plan is executed")
            if plan.unreadable:
                fix = "fix the file: until then, the plan cannot be executed and the phase cannot be verified"
                yield HealthIssue("W101", path, plan.unreadable, fix)
            for flaw in plan.flaws:
                fix = "keep one of them: until then, lists are joined, and of other values the last counts"
                if "duplicate key" not in flaw:
                    fix = "put the pattern in single quotes, and write each ' in it twice"
                yield HealthIssue("W101", path, flaw, fix)
        if verdict := read_verdict(folder):
            for flaw in verdict.flaws:
                yield HealthIssue("W101", verdict.path, flaw, "fix the file, or verify the phase again")


@attrs.frozen(kw_only=True)
class Repair:
    """A file's content *before* (``None`` if it does not exist) and *after*.

    *codes* are those of the issues that this fixes.
    """

    path: str
    before: bytes | None
    after: str
    codes: tuple[str, ...]

    def diff(self) -> str:
        """Return the change as a unified diff; bytes that are not UTF-8 are shown escaped."""
        before = (self.before or b"").decode("utf-8", "backslashreplace").splitlines()
        source = f"a/{self.path}" if self.before is not None else "/dev/null"
        after = self.after.splitlines()
        return "\n".join(unified_diff(before, after, source, f"b/{self.path}", lineterm=""))


def repairs(root: Path, issues: Iterable[HealthIssue], date: str) -> tuple[Repair, ...]:
    """Return a repair for each file with an issue that can be repaired; *date* is an ISO date."""
    found = {issue.path: issue for issue in issues if issue.repairable}
    proposed: list[Repair] = []
    for path in (CONFIG, STATE):
        if not (issue := found.get(path)):
            continue
        after = _repaired_config(root) if path == CONFIG else _repaired_state(root, issue, date)
        before = _bytes(root, path)
        if before is None or before.decode("utf-8", "replace") != after:
            proposed.append(Repair(path=path, before=before, after=after, codes=(issue.code,)))
    return tuple(proposed)


def plan_repair(root: Path, repair: Repair) -> Edit:
    """Plan to write a repair; refuse if the file is no longer the one in the diff."""
    if _bytes(root, repair.path) != repair.before:
        hint = "run `gsd health --repair` again"
        raise PlanningError("has changed since the repair was proposed", path=repair.path, line=1, hint=hint)
    return Edit(subject=f"repair {repair.path}", operations=writing(root, repair.path, repair.after))


def _bytes(root: Path, path: str) -> bytes | None:
    return read_below(root, path) if kind_below(root, path) == "file" else None


def _repaired_config(root: Path) -> str:
    """Return a config that can be read: the broken one without its usual defects, else the defaults."""
    loaded: object = None
    with suppress(PlanningError, ValueError, RecursionError):
        # People write comments and trailing commas, which JSON does not have.
        text = re.sub(r"^[ \t]*//.*$", "", read_text(root, CONFIG), flags=re.MULTILINE)
        loaded = json.loads(re.sub(r",(\s*[}\]])", r"\1", text))
    return render_config(cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else default_config())


def _repaired_state(root: Path, issue: HealthIssue, date: str) -> str:
    """Return STATE.md with the position that the files show: edited, or a new one if it cannot be read."""
    surveyed = survey(root)
    phases = surveyed.phases()
    if issue.code == "W002":
        text = read_text(root, STATE)
    else:
        project = read_text(root, PROJECT) if (root / PROJECT).exists() else ""
        planned = [PlannedPhase(number=one.number, name=one.name, goal=one.goal) for one in phases]
        text = render_state(core_value=core_value(project), phases=planned, date=date)
    if not phases:
        return text
    current = next((phase for phase in phases if not (phase.complete or phase.status == "complete")), None)
    status = {"planned": "Ready to execute", "partial": "In progress"}
    position = SetPosition(
        phase=(current or phases[-1]).number,
        name=(current or phases[-1]).name,
        status=status.get(current.status, "Ready to plan") if current else "All phases complete",
        date=date,
        activity="Position rebuilt from the files",
    )
    return apply_changes({"STATE.md": text}, [surveyed.counted(position)]).get("STATE.md", text)
