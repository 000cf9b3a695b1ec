"""From what was typed to a run: plugins, settings, agents, idea; nothing is written before all is well.

Carry a run out, and say how it ended.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import shlex
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO, TypeAlias

import attrs
import click
from attrs import frozen

from gsd_core.errors import ConfigError, Credentials, GsdError, ProjectError, exit_code
from gsd_core.hookspecs import RunInfo, gsd_doctor, gsd_execute_step, gsd_run_agent, gsd_workspace
from gsd_core.machine.state import Options
from gsd_core.planning.config import read_config
from gsd_core.planning.survey import read_planning
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.loading import build_manager
from gsd_core.run import RunEnd, run_project
from gsd_core.run.last_run import LastRun
from gsd_core.run.preflight import load_idea, merge_config
from gsd_core.run.runtime import RunRequest
from gsd_core.sanitize import one_line
from gsd_core.settings import (
    Layer,
    RunSettings,
    Settings,
    bind_settings,
    environment_layer,
    planning_layer,
    resolve,
    toml_layer,
    user_config,
)
from gsd_core.views.state_file import Projection
from gsd_core.views.status import SCHEMA_VERSION, History

from .dry_run import plan_json, show_plan
from .global_options import GlobalOptions
from .options import classes_of, parse_phases, value_of
from .output import print_json
from .plugin_loading import Loaded, choice_of, load_plugins, trust_of, vouched_for
from .project import ProjectState, check_folder, load, make_folder, now

SAID_FOR_ONE_PROCESS = ("yolo", "answers", "apprise")
Output: TypeAlias = Literal["text", "json", "stream-json"]


@frozen(kw_only=True)
class RunOptions:
    """What the command line asks for; *flags* are the settings that were typed."""

    where: GlobalOptions
    flags: Layer
    idea: Path | None = None
    resume: bool = False
    no_input: bool = False
    output: Output = "text"
    verbosity: int = 0
    seed: int | None = None
    dry: bool = False


def prepare(wish: RunOptions, project: ProjectState | None) -> RunRequest:
    """Return the request for the run; raise what is wrong with it. Only trust is written, if given.

    *project* is read once and passed on, because folding a long journal takes a while.
    """
    root = wish.where.directory.resolve()
    check_folder(root)
    idea = load_idea(wish.idea, _stdin()) if wish.idea else None
    loaded, settings = _load(wish, root, project)
    if str(wish.idea) == "-" and value_of(settings, "--answers") == "-":
        raise ConfigError(
            "standard input cannot be both the idea and the answers", hint="put one into a file"
        )
    check_listed(loaded.hooks, settings.of(RunSettings))
    if not wish.dry:
        check_agents(loaded.hooks, settings)
    return RunRequest(
        root=root,
        idea=idea,
        resume=wish.resume,
        settings=settings,
        hooks=loaded.hooks,
        plugins=loaded.infos,
        info=_info(wish, root, settings),
        options=_options(root, settings),
        clock=now,
        typed=_lasting(wish, project),
        observers=(Projection(root, project.history if project else History()),),
        last_run=LastRun(state=project.state, facts=project.facts, seq=project.seq) if project else None,
        command=_command(wish.where),
    )


def _command(where: GlobalOptions) -> str:
    """Return how hints call this program: with the folder that the user named, if any."""
    return "gsd" if where.directory == Path() else f"gsd -C {shlex.quote(str(where.directory))}"


def _stdin() -> BinaryIO:
    """Return standard input; an empty one if it is closed."""
    return sys.stdin.buffer if sys.stdin else io.BytesIO()


def _load(wish: RunOptions, root: Path, project: ProjectState | None) -> tuple[Loaded, Settings]:
    """Load the plugins, again if the project's own are trusted now, and resolve the settings."""
    choice = choice_of(attrs.evolve(wish.where, directory=root))
    loaded = load_plugins(choice, trust_of(root))
    settings = settings_for(wish, root, loaded, project)
    untrusted = [info for info in loaded.infos if info.status == "untrusted"]
    if not untrusted or wish.dry:
        return loaded, settings
    ask = _interactive(wish, settings)
    trusted = vouched_for(root, untrusted, yes=bool(value_of(settings, "--yes")), ask=ask)
    loaded = load_plugins(choice, trusted)
    return loaded, settings_for(wish, root, loaded, project)


def settings_for(wish: RunOptions, root: Path, loaded: Loaded, project: ProjectState | None) -> Settings:
    """Merge what was typed, the environment, the project's files and the user's own."""
    classes = classes_of(loaded)
    layers = [
        wish.flags,
        environment_layer(classes, os.environ),
        so_far(wish, project),
        toml_layer(root / "gsd.toml", "gsd.toml"),
        planning_layer(read_config(root)),
        toml_layer(user_config(), str(user_config())),
    ]
    absent = [info.name for info in loaded.infos if info.status != "active"]
    return resolve(classes, layers, tolerated=absent)


def so_far(wish: RunOptions, project: ProjectState | None) -> Layer:
    """Return what the run was started with, if this goes on with it: its agent, range, caps and models."""
    reading = _continued(wish, project)
    if reading is None:
        return Layer(origin="the run so far", sections={}, strict=False)
    options, typed = reading.state.options, reading.history.typed
    run: dict[str, Any] = {"skip_verify": options.skip_verify, "skip_discuss": options.skip_discuss}
    if options.phases and not {"phases", "only"} & set(typed.get("run", ())):
        run["phases"] = ",".join(options.phases)
    if reading.history.agents:
        run["agent"] = reading.history.agents
    sections = {**typed, "run": run | dict(typed.get("run", {}))}
    return Layer(origin="the run so far", sections=sections, strict=False)


def _continued(wish: RunOptions, project: ProjectState | None) -> ProjectState | None:
    """Return the run that this goes on with: an unfinished one, or any if the user says resume."""
    if project is None or not project.state.run:
        return None
    return project if wish.resume or project.state.closed != "done" else None


def _lasting(wish: RunOptions, project: ProjectState | None) -> dict[str, Any]:
    """Return the flags that hold for the whole run: not consent, nor who answers or is told."""
    before = _continued(wish, project)
    lasting = {
        section: {key: value for key, value in values.items() if (section, key) != ("run", "allow_dirty")}
        for section, values in wish.flags.sections.items()
        if section not in SAID_FOR_ONE_PROCESS
    }
    return merge_config(before.history.typed if before else {}, lasting)


def check_listed(hooks: Hooks, settings: RunSettings) -> None:
    """Raise ``ConfigError`` if a plugin that the settings list is not there, or has not that hook."""
    listed = (
        ("agent", gsd_run_agent, settings.agent),
        ("executor", gsd_execute_step, settings.execute),
        ("workspace", gsd_workspace, settings.workspace),
    )
    for what, spec, names in listed:
        known = hooks.plugins_of(spec)
        for name in names:
            if name not in known:
                installed = ", ".join(map(repr, sorted(known))) or "none"
                raise ConfigError(f"unknown {what} {name!r}; installed: {installed}", hint="gsd plugins")
        if not names:
            raise ConfigError(f"no {what} is chosen", hint=f"installed: {', '.join(known) or 'none'}")


def check_agents(hooks: Hooks, settings: Settings) -> None:
    """Raise ``Credentials`` if one of the agents that the settings list says that it cannot work."""
    names: Sequence[str] = settings.of(RunSettings).agent
    with bind_settings(settings.values):
        found = _only(hooks, names).collect(gsd_doctor, lambda finding: str(id(finding)))
    for plugin, finding in found.items:
        if not finding.ok:
            raise Credentials(f"agent {plugin!r} cannot work: {finding.message}", hint=finding.fix)


def _only(hooks: Hooks, names: Sequence[str]) -> Hooks:
    """Return the hooks of some plugins only: the others' doctors need not run."""
    manager = build_manager()
    for name in names:
        manager.register(hooks.manager.get_plugin(name), name=name)
    return attrs.evolve(hooks, manager=manager)


def _interactive(wish: RunOptions, settings: Settings) -> bool:
    """Whether a human sits at the terminal and standard input is not needed for something else."""
    taken = str(wish.idea) == "-" or value_of(settings, "--answers") == "-"
    return _is_terminal(sys.stdin) and _is_terminal(sys.stderr) and not wish.no_input and not taken


def _is_terminal(stream: TextIO | None) -> bool:
    """Whether *stream* is a terminal; a closed one is ``None``."""
    return stream is not None and stream.isatty()


def _info(wish: RunOptions, root: Path, settings: Settings) -> RunInfo:
    return RunInfo(
        id="",
        project=root,
        interactive=_interactive(wish, settings),
        no_input=wish.no_input,
        yes=bool(value_of(settings, "--yes")),
        output=wish.output,
        verbosity=wish.verbosity,
        agent=", ".join(settings.of(RunSettings).agent),
        seed=wish.seed,
    )


def _options(root: Path, settings: Settings) -> Options:
    run: RunSettings = settings.of(RunSettings)
    if run.phases and run.only and "run.only" in settings.origins:
        _refuse_both(settings.origins)
    known = [phase.number for phase in read_planning(root).phases] if root.is_dir() else []
    return Options(
        phases=parse_phases(run.only or run.phases, known),
        skip_verify=run.skip_verify,
        skip_discuss=run.skip_discuss,
        gap_rounds=run.gap_rounds,
    )


def _refuse_both(origins: Mapping[str, str]) -> None:
    if origins.get("run.phases") == origins["run.only"]:
        raise ConfigError("--phases and --only exclude each other", hint="name one of them")


LONGEST = 400
NEXT = {
    "blocked": "see what waits with `gsd questions`, or `gsd status`; then go on with `gsd resume`",
    "stopped": "go on with `gsd resume`",
    "failed": "see what happened with `gsd log`; go on with `gsd resume`",
    "gaps": "see what is missing in the VERIFICATION.md of the phase; go on with `gsd resume`",
    "budget": "raise the limit, then go on with `gsd resume`",
}


def execute_run(wish: RunOptions) -> int:
    """Run, or say what would be run; return the exit code."""
    try:
        return _carry_out(wish)
    except GsdError as error:
        if wish.output == "json":
            _tell_json(error)
        raise


def _carry_out(wish: RunOptions) -> int:
    project = load(wish.where) if wish.resume or wish.where.directory.is_dir() else None
    if wish.resume and project:
        _check_resumable(project)
    request = prepare(wish, project)
    if wish.dry:
        plan = asyncio.run(plan_json(request))
        show_plan(plan) if wish.output == "text" else print_json(plan)
        return 0
    if check_folder(request.root):
        make_folder(request.root, request.settings.of(RunSettings).agent)
    with _warnings_shown():
        end = asyncio.run(run_project(request))
    _tell_end(end, wish)
    return end.exit


@contextmanager
def _warnings_shown() -> Generator[None]:
    """Show what cannot be told as an event: a plugin that blocks the loop keeps those back as well."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("warning: %(message)s"))
    log = logging.getLogger("gsd_core.run")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _check_resumable(reading: ProjectState) -> None:
    planned = (reading.root / ".planning" / "ROADMAP.md").exists()
    if not reading.state.run and not planned:
        raise ProjectError("nothing to resume in this project", hint="start with: gsd run IDEA")


def _tell_end(end: RunEnd, wish: RunOptions) -> None:
    if wish.output == "json":
        print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "run": end.run,
                "outcome": end.outcome,
                "exit": end.exit,
                "reason": end.reason,
                "dollars": end.dollars or None,
                "commits": end.commits,
            }
        )
    if wish.output == "text":
        _tell_people(end)


def _tell_people(end: RunEnd) -> None:
    cost = f", ${end.dollars}" if end.dollars else ""
    reason = one_line(end.reason, LONGEST)
    click.echo(f"{end.outcome}: {reason} ({end.commits} commits{cost}, run {end.run})", err=True)
    if hint := NEXT.get(end.outcome):
        click.echo(f"hint: {hint}", err=True)


def _tell_json(error: GsdError) -> None:
    said = {"kind": type(error).__name__, "message": str(error), "hint": error.hint}
    click.echo(json.dumps({"schema_version": SCHEMA_VERSION, "error": said, "exit": exit_code(error)}))
