"""Which steps the commands for one step ask for, and why they cannot.

Everything is checked before the run starts, against the files and the last run: a command for one step that
does nothing, or another step, would surprise its user. Each function returns the user's words by the id of
the step, in an order that works.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from gsd_core.errors import ConfigError, ProjectError, UserError
from gsd_core.git import Git
from gsd_core.git.command import Command
from gsd_core.git.repository import files, is_repository
from gsd_core.machine.due import round_of, startable_plans
from gsd_core.machine.state import PlanSnapshot, State
from gsd_core.model.counts import some_of
from gsd_core.model.ids import DISCUSS, EXECUTE, PLAN, VERIFY, StepId, is_kind, normal_phase, slug
from gsd_core.planning.model import PhaseView, Planning
from gsd_core.planning.phases import no_such_phase
from gsd_core.planning.survey import read_planning, survey
from gsd_core.planning.workstreams import refuse_workstream
from gsd_core.run.edits import asked_by
from gsd_core.run.snapshot import with_verdicts

from .global_options import GlobalOptions
from .output import warn
from .project import core_folder, load, planned_root, project_root

DEBUG, QUICK, SURVEY, EXEC = "debug", "quick", "survey", "exec"
"""The kinds of the steps that only these commands ask for, or that plugins execute."""
MAX_FILES = 100
"""How many of the tracked files are looked at to see whether there are any."""
FULL = "--full "
"""What the words of a quick task that is to be verified begin with: a step has only its words."""


class NotYet(UserError):
    """Other steps have to be done before these *steps*; another session may be about to do them."""

    def __init__(self, message: str, *, hint: str = "", steps: Mapping[str, str]) -> None:
        super().__init__(message, hint=hint)
        self.steps = steps


def interrupted_steps(options: GlobalOptions, command: tuple[str, ...]) -> dict[str, str]:
    """Return the steps of *command*, done or not, if it was interrupted before it said the result.

    Whether it could ask for them now does not matter: what it began may have changed that.
    """
    directory = core_folder(options.directory) if options.directory.is_dir() else None
    if directory is None:
        return {}
    state = load(options).state
    steps = asked_by(directory, command, state)
    if done := [step for step, is_done in steps.items() if is_done]:
        warn([f"an earlier try, which was interrupted, has done: {', '.join(done)}"])
    return {step: state.asked.get(step, "") for step in steps}


def discuss_step(options: GlobalOptions, phase: str, words: str) -> dict[str, str]:
    """Return the step that discusses *phase*; with a CONTEXT, it adds decisions to it."""
    _, view, state = _read(options, phase)
    return {str(_next(state, StepId(kind=DISCUSS, phase=view.number))): words}


def plan_steps(options: GlobalOptions, phase: str, *, gaps: bool) -> dict[str, str]:
    """Return the step that plans *phase*, or with *gaps* the gaps that its last verification found."""
    _, view, state = _read(options, phase)
    number = view.number
    waiting = _waiting(view)
    if not gaps:
        missing = set(view.listed) - {plan.id for plan in view.plans}
        if view.plans and not missing:
            next_step = f"gsd execute {number}" if waiting else f"gsd plan {number} --gaps"
            hint = f"execute them with: {next_step}" if waiting else f"plan what is missing with: {next_step}"
            plans = some_of([plan.id for plan in view.plans])
            raise UserError(f"phase {number} is planned already: {plans}", hint=hint)
        return {str(round_of(state, PLAN, number)): ""}
    if view.verdict is None:
        raise UserError(f"phase {number} was not verified, so no gaps are known", hint=f"gsd verify {number}")
    if waiting:
        unexecuted = f"phase {number} has plans that are not executed: {some_of(waiting)}"
        raise UserError(unexecuted, hint=f"gsd execute {number}")
    if view.verdict.status != "gaps_found" or not view.verdict.gaps:
        no_gaps = f"the last verification of phase {number} found no gaps"
        raise UserError(no_gaps, hint=f"see it with: gsd gaps {number}")
    [judged] = asyncio.run(with_verdicts(Git(planned_root(options)), [view]))
    if judged.verdict and judged.verdict.stale:
        outdated = f"the verification of phase {number} is older than its last executed plan"
        raise UserError(outdated, hint=f"verify it again with: gsd verify {number}")
    step = round_of(state, PLAN, number)
    # Round 0 is the plan step of the phase itself, even if other tools made its plans.
    return {str(StepId(kind=PLAN, phase=number, round=max(step.round, 1))): ""}


def execute_steps(options: GlobalOptions, phase: str, only: str | None = None) -> dict[str, str]:
    """Return the steps that execute the plans of *phase* that have no summary, in an order that works.

    With *only*, that is the one plan with this id, and those that it depends on have to be executed.
    """
    planning, view, _ = _read(options, phase)
    number = view.number
    # Which plans there will be is not known yet; the session that waits for them asks again.
    unknown = {str(StepId(kind=EXECUTE, phase=number)): ""}
    if not view.plans:
        raise NotYet(f"phase {number} has no plans", hint=f"gsd plan {number}", steps=unknown)
    if missing := sorted(set(view.listed) - {plan.id for plan in view.plans}):
        message = f"ROADMAP.md lists plans of phase {number} that have no file: {some_of(missing)}"
        raise NotYet(message, hint=f"gsd plan {number}", steps=unknown)
    waiting = [plan for plan in view.plans if not plan.summary]
    if not waiting:
        message = f"phase {number} is executed already: {some_of([plan.id for plan in view.plans])}"
        raise NotYet(message, hint=f"verify it with: gsd verify {number}", steps=unknown)
    for one in waiting:
        if one.unreadable:
            raise ProjectError(f"plan {one.id} cannot be read: {one.unreadable}", hint="fix it")
    left = sorted(
        (PlanSnapshot(id=plan.id, depends_on=plan.depends_on, wave=plan.wave) for plan in waiting),
        key=lambda plan: (plan.wave, plan.id),
    )
    steps: dict[str, str] = {}
    while left:
        plan = startable_plans(left)[0]
        left.remove(plan)
        steps[str(StepId(kind=EXECUTE, phase=number, detail=plan.id))] = ""
    if only:
        steps = {step: "" for step in steps if StepId.parse(step).detail == only}
        _require_startable(view, only)
    for other in filter(None, map(planning.phase, view.depends_on)):
        if not other.ticked and (not other.plans or any(not plan.summary for plan in other.plans)):
            message = f"phase {number} depends on phase {other.number}, which is not executed"
            hint = f"gsd {'execute' if other.plans else 'plan'} {other.number}"
            raise NotYet(message, hint=hint, steps=steps)
    return steps


def _require_startable(phase: PhaseView, plan: str) -> None:
    """Raise ``UserError`` unless *plan* is one of the phase's that can be executed now."""
    done = {one.id: bool(one.summary) for one in phase.plans}
    if plan not in done:
        message = f"phase {phase.number} has no plan {plan!r}, but {some_of(list(done))}"
        raise UserError(message, hint=f"see them with: gsd plans {phase.number}")
    if done[plan]:
        hint = f"verify the phase with: gsd verify {phase.number}"
        raise UserError(f"plan {plan} is executed already", hint=hint)
    needed = next(one.depends_on for one in phase.plans if one.id == plan)
    if waiting := [one for one in needed if not done.get(one, True)]:
        message = f"plan {plan} depends on plans that are not executed: {some_of(waiting)}"
        raise UserError(message, hint=f"gsd execute {phase.number} --plan {waiting[0]}")


def verify_step(options: GlobalOptions, phase: str) -> dict[str, str]:
    """Return the step that verifies *phase* again, all of whose plans have to be executed."""
    _, view, state = _read(options, phase)
    steps = {str(_next(state, StepId(kind=VERIFY, phase=view.number))): ""}
    if not view.plans:
        raise NotYet(f"phase {view.number} has no plans", hint=f"gsd plan {view.number}", steps=steps)
    if waiting := _waiting(view):
        message = f"phase {view.number} has plans that are not executed: {some_of(waiting)}"
        raise NotYet(message, hint=f"gsd execute {view.number}", steps=steps)
    return steps


def debug_step(options: GlobalOptions, words: str) -> dict[str, str]:
    """Return the step that investigates a problem in the user's *words*."""
    if not words.strip():
        raise UserError("there is no problem to investigate", hint="gsd debug 'what happens'")
    planned_root(options)
    return {str(_next(load(options).state, StepId(kind=DEBUG, detail=slug(words)))): words}


def quick_step(options: GlobalOptions, words: str, *, full: bool) -> dict[str, str]:
    """Return the step that does a small task; with *full*, its result is verified.

    The same words again continue a task that is not complete.
    """
    words = words.strip()
    if not words:
        raise UserError("the task is empty", hint='gsd quick "what to do"')
    root: Path = planned_root(options)
    refuse_workstream(root)
    if not (root / ".planning" / "ROADMAP.md").exists():
        raise ProjectError("a quick task needs a project with a roadmap", hint="start one with: gsd run IDEA")
    state = load(options).state
    wanted = f"{FULL}{words}" if full else words
    same = [step for step, asked in state.asked.items() if asked == wanted]
    step = next((step for step in same if step.startswith(f"{QUICK}/")), "")
    if not step:
        folder = root / ".planning" / "quick"
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        names += [record.id.detail for record in state.steps.values() if record.id.kind == QUICK]
        names += [StepId.parse(other).detail for other in state.asked]
        # Later versions of GSD name them by date (260131-abc), which is no number of ours.
        numbers = [int(match[1]) for name in names if (match := re.match(r"(\d{1,5})-", name))]
        step = str(StepId(kind=QUICK, detail=f"{max([0, *numbers]) + 1:03d}-{slug(words)}"))
    return {step: wanted}


def survey_step(options: GlobalOptions) -> dict[str, str]:
    """Return the step that describes the existing code; a project without planning files has one too."""
    root = project_root(options)
    if not is_repository(Command(root=root)):
        raise ProjectError(f"{root} is not in a git repository", hint="run `git init` there first")
    tracked = [path for path in files(Command(root=root), MAX_FILES) if not path.startswith(".planning/")]
    if not tracked:
        # Agents work with what git tracks, and so does the survey before a new project.
        hint = "commit the code first: git add FILES, then git commit; then: gsd map"
        raise ProjectError(f"git tracks no files in {root}, so there is no code to describe", hint=hint)
    return {str(_next(load(options).state, StepId(kind=SURVEY))): ""}


def exec_step(options: GlobalOptions, prompt: str, name: str | None) -> dict[str, str]:
    """Return the step that runs *prompt*, called *name* in the journal, or after the prompt."""
    if not prompt.strip():
        raise ConfigError("the prompt is empty", hint='gsd exec "PROMPT or /command"')
    # "r2" would be the second round of a step without a name.
    if name is not None and (not is_kind(name) or re.fullmatch(r"r\d+", name)):
        hint = "use lower-case letters, digits and hyphens, at most 40"
        raise ConfigError(f"{name!r} cannot name a step", hint=hint)
    digest = hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()[:8]
    detail = name or f"{slug(prompt)[:24].rstrip('-')}-{digest}"
    # The folder may not exist yet: the run says how to make a project of it.
    state = load(options).state if options.directory.resolve().is_dir() else State()
    return {str(_next(state, StepId(kind=EXEC, detail=detail))): prompt}


def _read(options: GlobalOptions, phase: str) -> tuple[Planning, PhaseView, State]:
    planning = read_planning(planned_root(options))
    number = normal_phase(phase)
    view = planning.phase(number)
    if view is None:
        _refuse_archived(options, planning, phase)
        raise no_such_phase(phase, (one.number for one in planning.phases), planning.idle)
    return planning, view, load(options).state


def _refuse_archived(options: GlobalOptions, planning: Planning, phase: str) -> None:
    """Raise ``UserError`` if *phase* belongs to another milestone than the one in progress."""
    found = survey(planned_root(options))
    same = [one for one in found.phases(every=True) if one.number == normal_phase(phase)]
    shipped = {one.version for one in found.milestones if one.shipped}
    if not same or (same[-1].milestone in ("", planning.milestone) and not planning.idle):
        return
    version = same[-1].milestone
    state = "which is closed" if version in shipped or planning.idle else "which is not in progress"
    start = "gsd run IDEA" if planning.idle else "gsd phase add NAME"
    raise UserError(
        f"phase {phase} belongs to milestone {version}, {state}: its files are left as they are",
        hint=f"list the phases of all milestones with: gsd phases --all; for more work: {start}",
    )


def _waiting(view: PhaseView) -> list[str]:
    return [plan.id for plan in view.plans if not plan.summary]


def _next(state: State, wanted: StepId) -> StepId:
    """Return the step of that kind that is in progress, or that of the next round."""
    key = (wanted.kind, wanted.phase, wanted.detail)
    known = [one for one in state.steps.values() if (one.id.kind, one.id.phase, one.id.detail) == key]
    running = [record.id.round for record in known if record.status not in ("completed", "skipped")]
    number = min(running) if running else max([0, *(record.id.round + 1 for record in known)])
    return StepId(kind=wanted.kind, phase=wanted.phase, detail=wanted.detail, round=number)
