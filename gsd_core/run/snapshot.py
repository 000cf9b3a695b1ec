"""Observe the project: read its planning files and the order of their commits, and record a snapshot."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from gsd_core.errors import ConfigError
from gsd_core.files import read_below
from gsd_core.git import Git
from gsd_core.hookspecs import ProjectInfo, gsd_write_config
from gsd_core.machine.due import starts_milestone
from gsd_core.machine.facts import PlanEdited, QuestionWithdrawn, StepWithdrawn
from gsd_core.machine.obsolete import why_obsolete
from gsd_core.machine.state import PhaseSnapshot, PlanSnapshot, Snapshot, State
from gsd_core.model.step import Idea, StepSituation
from gsd_core.planning.codebase import read_codebase
from gsd_core.planning.config import merge_config
from gsd_core.planning.handoff import read_handoff
from gsd_core.planning.model import PhaseView, Planning
from gsd_core.planning.survey import flaws, read_planning
from gsd_core.planning.waves import plan_dependencies
from gsd_core.planning.workstreams import PLANNING
from gsd_core.plugins.calling import Hooks
from gsd_core.sanitize import redact, sanitize
from gsd_core.settings import RunSettings

from .step_types import StepTypes, completed_steps, with_due_steps

if TYPE_CHECKING:
    from .runtime import Run

log = logging.getLogger(__name__)

MAX_FILES = 20_000
"""How many of the tracked files of a project without phases the step types of plugins see."""
PROJECT_FILE_LIMIT = 16_000
"""Characters of the project's CLAUDE.md that go into prompts."""

PROGRAMS = (
    *("bash", "make", "cmake", "ninja", "gcc", "g++", "clang"),
    *("python3", "python", "pip", "uv", "poetry", "pytest", "tox", "ruff", "mypy"),
    *("node", "npm", "pnpm", "yarn", "bun", "deno", "tsc"),
    *("go", "cargo", "rustc", "java", "javac", "mvn", "gradle", "kotlinc", "dotnet", "swift"),
    *("ruby", "bundle", "php", "composer", "perl", "elixir", "mix", "ghc", "stack", "zig"),
    *("docker", "sqlite3", "psql", "curl", "jq", "shellcheck"),
)
"""Build tools and languages that a planner should know to be there or missing."""


async def observe(run: Run) -> None:
    """Read the project, and record a snapshot if it differs from the last one."""
    planning = await read_project(run.root, run.git)
    for flaw in (planning.note, *flaws(planning.phases)):
        if flaw not in ("", run.planning.note, *flaws(run.planning.phases)):  # once, not after every step
            log.warning("%s", sanitize(flaw, multiline=False))
    config = merge_config(run.progress.proposals, planning.config)
    run.progress.planning = evolve(planning, config=config)
    snapshot = await full_snapshot(
        run.state,
        run.planning,
        git=run.git,
        settings=run.settings,
        idea=run.idea,
        types=run.step_types,
        hooks=run.hooks,
    )
    if snapshot != run.state.seen:
        run.record(snapshot)


async def full_snapshot(
    state: State,
    planning: Planning,
    *,
    git: Git,
    settings: RunSettings,
    idea: Idea | None,
    types: StepTypes,
    hooks: Hooks,
) -> Snapshot:
    """Return what the machine needs to know, with the steps of plugins that are due according to them.

    Raises ``ConfigError`` if a plugin cannot say whether its step is due.
    """
    is_needed = types.types and not planning.phases and await git.is_repository()
    files = await git.files(MAX_FILES) if is_needed else ()
    # The milestone has to be closed if the run was started for the next one.
    completed = completed_steps(state)
    makes_room = starts_milestone(state) and planning.milestone != state.milestone

    def situation(phase: PhaseView | None) -> StepSituation:
        return StepSituation(
            project=git.root,
            planning=planning,
            phase=phase,
            files=files,
            completed=completed.get(phase.number if phase else "", ()),
            depth=settings.depth,
            idea=idea.text if idea else "",
            audit=settings.audit,
            close=settings.close_milestone or makes_room,
            workflow=settings.workflow,
        )

    return with_due_steps(snapshot_of(planning), types, situation, hooks, planning)


def drop_obsolete(run: Run) -> None:
    """Withdraw questions that need no answer any more, and steps that were asked for and cannot be done."""
    for key, record in run.state.inquiries.items():
        if record.open and (why := why_obsolete(run.state, record.inquiry.step)):
            run.record(QuestionWithdrawn(key=key, reason=why), step=record.inquiry.step)
    for step in run.state.asked:
        if why := why_obsolete(run.state, step):
            run.record(StepWithdrawn(reason=why), step=step)


async def read_project(root: Path, git: Git, folder: str = PLANNING) -> Planning:
    """Return the planning files, with stale verdicts marked, the project's CLAUDE.md, and its handoff.

    *folder* is ``.planning``, or that of a workstream.
    """
    planning = read_planning(root, folder)
    phases = tuple(await with_verdicts(git, planning.phases, folder))
    documents = dict(planning.documents)
    # It is optional, and written by people: an unreadable one must not stop the run.
    with suppress(OSError, UnicodeDecodeError):
        documents["CLAUDE.md"] = read_below(root, "CLAUDE.md").decode("utf-8")[:PROJECT_FILE_LIMIT]
    for name, text in read_codebase(root).items():
        # Other tools write these files too, and they go into prompts.
        documents[f"codebase/{name}"] = redact(text)
    if handoff := read_handoff(root):
        documents["HANDOFF"] = handoff.text
    return evolve(planning, phases=phases, documents=documents)


async def with_verdicts(git: Git, phases: Sequence[PhaseView], folder: str = PLANNING) -> Sequence[PhaseView]:
    """Return the phases with each verdict marked as stale if a summary was committed after it."""
    if not any(phase.verdict for phase in phases):
        return phases  # asking git for the order takes seconds in a large repository
    # Not only in phases/: those of a milestone that is closed are in milestones/.
    order = await git.order(folder)
    return [_with_staleness(phase, order) for phase in phases]


def _with_staleness(phase: PhaseView, order: dict[str, int]) -> PhaseView:
    """Mark the phase's verdict as stale if a summary is newer; in *order*, a larger number is later.

    The order of commits decides, not the files' times, which a checkout or a clone resets.
    """
    verdict = phase.verdict
    if verdict is None:
        return phase
    at = order.get(verdict.path, 0)
    newer = any(order.get(plan.summary, 0) > at for plan in phase.plans if plan.summary)
    return evolve(phase, verdict=evolve(verdict, stale=newer))


def snapshot_of(planning: Planning) -> Snapshot:
    """Return what the machine needs to know of the planning files."""
    phases = tuple(map(_phase, planning.phases))
    return Snapshot(milestone=planning.milestone, phases=phases, idle=planning.idle)


def _phase(phase: PhaseView) -> PhaseSnapshot:
    after = plan_dependencies(phase.plans)
    plans = [
        PlanSnapshot(
            id=plan.id,
            summary=bool(plan.summary),
            depends_on=after[plan.id],
            wave=plan.wave,
            gap_closure=plan.gap_closure,
        )
        for plan in phase.plans
    ]
    # The roadmap lists a phase's plans before their files are written: these are still to be planned.
    missing = [PlanSnapshot(id=plan, on_disk=False) for plan in phase.listed if plan not in after]
    verdict = phase.verdict
    return PhaseSnapshot(
        number=phase.number,
        name=phase.name,
        depends_on=phase.depends_on,
        ticked=phase.ticked,
        context=bool(phase.context),
        research=bool(phase.research),
        plans=(*plans, *missing),
        verdict=verdict.status if verdict else "",
        stale=bool(verdict and verdict.stale),
        gaps=tuple(gap.key for gap in verdict.gaps) if verdict else (),
    )


def installed_programs() -> tuple[str, ...]:
    """Return which of :data:`PROGRAMS` are on PATH."""
    return tuple(name for name in PROGRAMS if shutil.which(name))


def proposed_config(hooks: Hooks, project: ProjectInfo) -> dict[str, Any]:
    """Return what plugins propose for GSD's ``config.json``; overlapping proposals are an error."""
    proposals = hooks.collect(gsd_write_config, lambda value: value.key, project).items
    owners = {value.key: plugin for plugin, value in proposals}
    config: dict[str, Any] = {}
    for plugin, value in proposals:
        table, path = config, ""
        *parents, last = value.key.split(".")
        for name in parents:
            path = f"{path}.{name}" if path else name
            if path in owners:
                both = f"{owners[path]!r} contributes {path!r} and {plugin!r} contributes {value.key!r}"
                hint = f"block one of them: -p no:{plugin}"
                raise ConfigError(f"{both} to {gsd_write_config.__name__}", hint=hint)
            table = table.setdefault(name, {})
        table[last] = value.value
    return config


def plan_digests(planning: Planning, paths: Collection[str]) -> dict[str, str]:
    """Return the SHA-256 of each PLAN among *paths*."""
    plans = [plan for phase in planning.phases for plan in phase.plans if plan.path in paths]
    return {plan.path: hashlib.sha256(plan.text.encode("utf-8", "replace")).hexdigest() for plan in plans}


def note_edited_plans(run: Run) -> None:
    """Record which of the run's own plans are no longer as it wrote them: a person edited them.

    An agent cannot: the guard puts planning files back after each of its calls.
    """
    if any(record.status == "result" for record in run.state.steps.values()):
        return  # a plan may be written already, and its digest recorded only when the result is applied
    known = run.state.plan_digests
    ids = {plan.path: plan.id for phase in run.planning.phases for plan in phase.plans}
    for path, digest in plan_digests(run.planning, known).items():
        if digest != known[path]:
            run.record(PlanEdited(plan=ids[path], path=path, sha256=digest, before=known[path]))
