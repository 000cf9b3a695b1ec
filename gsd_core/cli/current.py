"""A project as it is now: its files, and the steps that are due, also according to its plugins.

For the commands that only show something. They ask the plugins that a run would load, so that they name the
step that a run would start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import attrs
import click

from gsd_core.errors import ConfigError
from gsd_core.git import Git
from gsd_core.machine.state import Snapshot, State
from gsd_core.planning.model import Planning
from gsd_core.planning.survey import read_planning
from gsd_core.planning.workstreams import PLANNING
from gsd_core.run.preflight import kept_idea
from gsd_core.run.snapshot import full_snapshot, read_project, snapshot_of
from gsd_core.run.step_types import collect_step_types
from gsd_core.settings import Layer, RunSettings, Settings, bind_settings, resolve
from gsd_core.views.next import Added

from .options import classes_of, lifecycle_options
from .output import warn
from .plugin_loading import Loaded, loaded_plugins
from .project import ProjectState
from .project_settings import run_settings, settings_without_run


@attrs.frozen(kw_only=True)
class Current:
    """The *planning* files now, the *snapshot* of them, and the run's *state*.

    The options of *state* are those of the unfinished run, else those that a new one would have. *added*
    are the kinds of steps that plugins add. *missing* are plugins that were not asked, and why. *settings*
    are those of section ``run``.
    """

    planning: Planning
    snapshot: Snapshot
    state: State
    settings: Settings
    added: Added = ()
    missing: tuple[str, ...] = ()


def read_current(ctx: click.Context, project: ProjectState, folder: str = PLANNING) -> Current:
    """Return the project as it is now; *folder* is ``.planning``, or that of a workstream.

    Of a workstream only the files count: no run works in it. Raises ``ConfigError`` for invalid settings, or
    if a plugin cannot say whether its step is due.
    """
    root = project.root
    git = Git(root)
    if asyncio.run(git.is_repository()):
        planning = asyncio.run(read_project(root, git, folder))
    else:
        planning = read_planning(root, folder)
    known = [phase.number for phase in planning.phases]
    if folder != PLANNING:
        settings = run_settings(root, planning.config)
        state = State(options=lifecycle_options(settings.of(RunSettings), known))
        return Current(planning=planning, snapshot=snapshot_of(planning), state=state, settings=settings)
    state = project.state
    typed = Layer(
        origin="the run so far", sections=project.history.typed if state.unfinished else {}, strict=False
    )
    settings = run_settings(root, planning.config, typed)
    if not state.unfinished:
        # A finished run says nothing about what is due now; its options were for what it did.
        options = lifecycle_options(settings.of(RunSettings), known)
        state = attrs.evolve(state, options=options, lifecycle=options)
    loaded = loaded_plugins(ctx, with_trusted_ones=True)
    types = collect_step_types(loaded.hooks)
    try:
        values = settings_without_run(loaded, root, typed).values
    except ConfigError as error:
        # A run would refuse them; what is due can be shown all the same.
        warn([f"the settings of plugins are invalid, so their defaults count: {error}"])
        values = resolve(classes_of(loaded), []).values
    with bind_settings(values):
        snapshot = asyncio.run(
            full_snapshot(
                state,
                planning,
                git=git,
                settings=settings.of(RunSettings),
                idea=kept_idea(root),
                types=types,
                hooks=loaded.hooks,
            )
        )
    return Current(
        planning=planning,
        snapshot=snapshot,
        state=state,
        settings=settings,
        added=types.types,
        missing=tuple(_missing(loaded)),
    )


def _missing(loaded: Loaded) -> Iterator[str]:
    for info in loaded.infos:
        if info.status == "untrusted":
            yield f"plugin {info.name!r} is not trusted (see gsd trust), so its steps are not shown"
        elif info.status == "broken":
            yield f"plugin {info.name!r} was not loaded, so its steps are not shown: {info.reason}"
