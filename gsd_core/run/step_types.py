"""The kinds of steps that plugins add: what is due, and which files their steps may write.

The machine is pure, so it cannot call a plugin. The plugins are asked what is due when the project is
observed, and their answers are part of the recorded snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import get_args, get_type_hints

import attrs

from gsd_core.errors import ConfigError, PluginError, StepError
from gsd_core.hookspecs import gsd_steps
from gsd_core.machine.state import DueStep, PhaseSnapshot, Snapshot, State
from gsd_core.model.ids import CORE_KINDS, is_kind, padded, slug
from gsd_core.model.step import CompletedStep, StepSituation, StepType
from gsd_core.planning.model import PhaseView, Planning
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.isolation import Call, call_blocking, report_failure

PLACES: tuple[str, ...] = get_args(get_type_hints(StepType)["before"])
OF_THE_PROJECT = ("init", "end")


@attrs.frozen(kw_only=True)
class StepTypes:
    """The step types of all plugins, each with the name of its plugin, in the order in which they come."""

    types: tuple[tuple[str, StepType], ...] = ()

    def find(self, kind: str) -> tuple[str, StepType] | None:
        """Return the plugin and the type of a kind; ``None`` for the core's own kinds and unknown ones."""
        return next(((plugin, one) for plugin, one in self.types if one.kind == kind), None)


def collect_step_types(hooks: Hooks) -> StepTypes:
    """Return what the plugins contribute; raise ``ConfigError`` for an invalid kind or place."""
    found = hooks.collect(gsd_steps, lambda one: one.kind).items
    for plugin, one in found:
        problem = ""
        if not is_kind(one.kind):
            problem = f"{one.kind!r} cannot be a kind: lower-case letters, digits and hyphens, at most 40"
        elif one.kind in CORE_KINDS:
            problem = f"{one.kind!r} is a kind of the core"
        elif one.before not in PLACES:
            places = ", ".join(filter(None, PLACES))
            problem = f"{one.kind!r} comes before {one.before!r}, not one of {places}"
        if problem:
            hint = f"run with -p no:{plugin} to continue without it"
            raise ConfigError(f"plugin {plugin!r}: {problem}", hint=hint)
    return StepTypes(types=tuple(found))


def with_due_steps(
    snapshot: Snapshot,
    types: StepTypes,
    situation: Callable[[PhaseView | None], StepSituation],
    hooks: Hooks,
    planning: Planning,
) -> Snapshot:
    """Return the snapshot with the steps that are due according to their plugins.

    Raises ``ConfigError`` if a plugin cannot say: a step that may be needed must not be left out.
    """
    if not types.types:
        return snapshot

    def due(phase: PhaseView | None) -> Iterator[DueStep]:
        for plugin, one in types.types:
            if not one.before or (one.before in OF_THE_PROJECT) != (phase is None):
                continue
            call = Call(plugin, gsd_steps.__name__)
            try:
                wanted = call_blocking(call, partial(one.due, situation(phase)))
            except (StepError, PluginError) as exc:
                report_failure(hooks.report, plugin, gsd_steps.__name__, exc)
                message = f"plugin {plugin!r} cannot tell whether {one.kind!r} is due: {exc}"
                hint = f"run with -p no:{plugin} to continue without its steps"
                raise ConfigError(message, hint=hint) from exc
            if wanted:
                yield DueStep(kind=one.kind, before=one.before)

    def of_phase(phase: PhaseSnapshot) -> PhaseSnapshot:
        view = planning.phase(phase.number)
        return attrs.evolve(phase, due=tuple(due(view))) if view else phase

    return attrs.evolve(snapshot, due=tuple(due(None)), phases=tuple(map(of_phase, snapshot.phases)))


def completed_steps(state: State) -> dict[str, tuple[CompletedStep, ...]]:
    """Return the completed steps by phase, and all under ``""``, in the order in which they ended."""
    found: dict[str, list[CompletedStep]] = {"": []}
    for name, record in state.steps.items():
        if record.completed and record.ended_at:
            step = CompletedStep(id=name, kind=record.id.kind, at=record.ended_at)
            for phase in {"", record.id.phase}:
                found.setdefault(phase, []).append(step)
    return {phase: tuple(sorted(steps, key=lambda step: step.at)) for phase, steps in found.items()}


def may_write(kind: StepType, phase: PhaseView | None, path: str) -> bool:
    """Whether a step of that kind declared that it writes *path*, which is relative to the project's root."""
    number = padded(phase.number) if phase else ""
    folder = (phase.directory or f".planning/phases/{number}-{slug(phase.name)}") if phase else ""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        return False
    for written in kind.writes:
        pattern = written.replace("{phase}", folder).replace("{number}", number)
        # match() begins at the end of the path: without the count, "*.md" would match in every folder.
        if len(PurePosixPath(pattern).parts) == len(pure.parts) and pure.match(pattern):
            return True
        if pattern.endswith("/**") and pure.is_relative_to(pattern.removesuffix("/**")):
            return True
    return False
