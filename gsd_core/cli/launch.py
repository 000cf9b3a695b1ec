"""A run from the command line to its end: options, plugins, settings, checks, request, run, summary.

Everything is checked before anything is written: a start that fails leaves no folder and no file behind.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import sys
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import click

from gsd_core.errors import (
    CannotNotify,
    ConfigError,
    Credentials,
    GsdError,
    ProjectError,
    Untrusted,
    UserError,
)
from gsd_core.git import Git
from gsd_core.hookspecs import RunInfo, gsd_execute_step, gsd_notify, gsd_run_agent, gsd_workspace
from gsd_core.machine.history import LIMITS, History
from gsd_core.machine.state import Options, State
from gsd_core.model.ids import StepId
from gsd_core.model.step import Idea
from gsd_core.model.usage import Unit
from gsd_core.planning.config import check_branch_templates, get, merge_config, read_config
from gsd_core.planning.survey import read_planning
from gsd_core.plugins.calling import Hooks
from gsd_core.processes import refuse_agents
from gsd_core.run import preflight
from gsd_core.run.edits import keep_asked
from gsd_core.run.last_run import LastRun
from gsd_core.run.runtime import RunRequest
from gsd_core.run.sandbox import check_sandbox_names
from gsd_core.run.start import farewell, run_project
from gsd_core.run.step_types import collect_step_types
from gsd_core.sanitize import one_line, register_secrets
from gsd_core.settings import (
    COMMAND_LINE,
    Layer,
    RunSettings,
    Settings,
    bind_settings,
    environment_layer,
    is_rehearsal,
    resolve,
    user_layer,
    without,
)
from gsd_core.trust import labels
from gsd_core.views.state_file import StateFileWriter

from . import project, project_trust
from .budgets import check_limits, without_limit
from .commands import base_command, with_global_options
from .dry_run import plan_json, show_plan
from .global_options import GlobalOptions
from .options import classes_of, lifecycle_options, origin_of, value_of
from .output import LabeledHandler, counted, print_json, warn
from .plugin_loading import Loaded, check_loaded, findings_of, resolved, unused_sections
from .project import REHEARSAL_AGENTS, ProjectState
from .project_trust import ProjectTrust
from .rehearsals import HINT, why_not_here
from .run_end import Output, show_end
from .single_steps import EXEC
from .streams import background_output, can_ask, finish_output
from .variables import unread_variables

NOT_CONTINUED = ("yolo", "answers", "apprise")
"""Sections whose flags hold for one process only: consent, and who answers or is notified."""
RANGE = {"phases", "only"}
"""The settings of section ``run`` that choose phases."""
CONSENT = {("run", "allow_dirty"), ("run", "accept_branch")}
"""Settings that agree to something about the project as it is now."""
WITHOUT_TRUST = "leave its plugins out with -p no:NAME, and remove its other wishes from gsd.toml"
MAX_REASON = 400
MAX_FILES_SHOWN = 5


@attrs.frozen(kw_only=True)
class RunOptions:
    """What the command line asks for; *flags* are the settings given as flags.

    *asked* are steps to do by themselves, by id, with the user's words: the lifecycle is left where it is.
    They are those of *command*, in its words. *run* is the id of the run that they are a part of, if it is
    another process's.
    *not_yet*: why they cannot be done now; only a session may wait for it.
    """

    global_options: GlobalOptions
    flags: Layer = Layer(origin=COMMAND_LINE, sections={})
    idea: Path | None = None
    resume: bool = False
    trust: bool = False
    no_input: bool = False
    output: Output = "text"
    verbosity: int = 0
    seed: int | None = None
    dry_run: bool = False
    background: bool = False
    asked: Mapping[str, str] = attrs.field(factory=dict[str, str])
    command: tuple[str, ...] = ()
    run: str = ""
    not_yet: UserError | None = None

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.global_options.directory.resolve()


def execute_run(options: RunOptions, loaded: Loaded) -> int:
    """Run, or show what a run would do, and return the exit code."""
    root = options.root
    project.refuse_system_folder(root)
    previous = project.load(options.global_options) if root.is_dir() else None
    if not options.dry_run:
        left = project_trust.as_left_by_people(loaded, options.global_options, previous)
        if left is not loaded:
            loaded, previous = left, project.load(options.global_options)
    _check_given(options, loaded)
    if options.asked or options.resume:
        project.project_root(options.global_options)
    new = project.needs_repository(root)
    if new and options.asked:
        raise ProjectError(f"{root} is not in a git repository", hint="run `git init` there first")
    # A closed standard input is None.
    if options.background and str(options.idea) == "-":
        raise ConfigError("a session has no standard input to read the idea from", hint="put it into a file")
    stdin = sys.stdin.buffer if sys.stdin else io.BytesIO()
    idea = preflight.load_idea(options.idea, stdin) if options.idea else None
    planned = (root / ".planning" / "ROADMAP.md").exists()
    if options.resume and not planned and not (previous and previous.state.run):
        raise ProjectError("nothing to resume in this project", hint="start with: gsd run IDEA")
    # Before the settings, plugins and logins, which do not matter if there is nothing to do.
    state = previous.state if previous else State()
    milestone = ""
    if not options.asked:
        preflight.check_idea(root, idea, state, base_command(options.global_options))
        if root.is_dir():
            milestone = preflight.milestone_to_start(root, idea, state, preflight.kept_idea(root))
    if milestone:
        previous = None  # it gets a run of its own, with its own options

    # A journal that came with the folder counts only if it is trusted: not for the question itself.
    own = previous if previous and previous.is_own else None
    settings = build_settings(options, loaded, own)
    trust = _settle_trust(options, loaded, settings, own)
    loaded = project_trust.admit(loaded, trust)
    previous = own if trust.new else previous
    settings = project_trust.require_sandbox(build_settings(options, loaded, previous), trust)

    check_loaded(loaded)
    warn(unused_sections(loaded, settings))
    if value_of(settings, "--answers") == "-" and (options.background or str(options.idea) == "-"):
        if options.background:
            problem = "a session has no standard input to read the answers from"
        else:
            problem = "standard input cannot be both the idea and the answers"
        raise ConfigError(problem, hint="put the answers into a file")
    check_plugins(loaded, settings.of(RunSettings))
    reports: frozenset[Unit] = frozenset()
    asks_agent = _asks_agent(options, loaded.hooks, settings.of(RunSettings))
    if not options.dry_run:
        if asks_agent:
            reports = check_agents(loaded.hooks, settings, root)
        check_notifiers(loaded.hooks, settings, root)
    request = _build_request(options, loaded, settings, idea, previous, trust)
    # Before the user is asked to agree to something that would not happen anyway.
    # A clone has the commits of the run that it is a part of.
    refused = "" if options.run else why_not_here(root, options.idea, settings)
    if refused and not options.dry_run:
        raise ProjectError(refused, hint=HINT)
    preflight.check_phases(request, state)
    check_branch_templates(read_config(root))
    if new:
        _confirm_repository(options, loaded, settings)
    if milestone:
        _confirm_milestone(options, loaded, settings, milestone)
    if asks_agent and not options.dry_run and not is_rehearsal(settings.of(RunSettings).agent):
        limited = check_limits(classes_of(loaded), settings, reports)
        # Once for a run, and not for a single step.
        if not limited and not options.asked and not _continued(options, previous):
            _confirm_spending(options, loaded, settings)

    if options.dry_run:
        warn([f"a rehearsal would not start here: {refused}"] if refused else [])
        if milestone:
            warn([f"this starts milestone {milestone}, in a run of its own"])
            request = attrs.evolve(request, last_run=LastRun(state=State(milestone=milestone)))
        plan = asyncio.run(plan_json(request, new=new))
        show_plan(plan, verbose=options.verbosity > 0) if options.output == "text" else print_json(plan)
        return 0

    agents = settings.of(RunSettings).agent
    if new:
        project.make_repository(root, agents)
    elif state.run and agents == REHEARSAL_AGENTS:
        asyncio.run(project.lend_identity(root))
    elif not root.is_dir():
        project.make_folder(root)
    if options.background:
        from .background import start_session

        with bind_settings(settings.values):
            return start_session(options, loaded.hooks)
    try:
        with background_output():
            with _warnings_on_stderr():
                end = asyncio.run(run_project(request))
            show_end(end, options, {flag: value_of(settings, flag) for flag in LIMITS})
    except KeyboardInterrupt as error:
        # A second signal when the run that the first one ended no longer listens, and has not said its end.
        if (ended := project.load(options.global_options).state).run:
            error.add_note(farewell(ended, request.info.command))
        raise
    # The exit code says how the run ended, also where its output cannot be written.
    finish_output(0)
    if options.asked and end.outcome in ("done", "gaps"):
        keep_asked(project.journal_path(root).parent, options.command, end.run, ())
    return end.exit


def obstacles(options: RunOptions, loaded: Loaded) -> Iterator[GsdError]:
    """Yield what refuses to start or resume a run as *options* say; nothing is asked, written or paid for."""
    root, previous = options.root, project.load(options.global_options)
    own = previous if previous.is_own else None
    try:
        settings = build_settings(options, loaded, own)
        trust = project_trust.examine(loaded, root, settings.of(RunSettings))
        if not trust.new:
            loaded = project_trust.admit(loaded, trust)
            settings = build_settings(options, loaded, own)
        request = _build_request(options, loaded, settings, None, previous, trust)
    except GsdError as error:
        yield error
        return
    if refused := why_not_here(root, None, settings):
        yield ProjectError(refused, hint=HINT)
    run: RunSettings = settings.of(RunSettings)
    checks: tuple[Callable[[], object], ...] = (
        partial(project_trust.refuse_consent, trust),
        partial(project_trust.refuse_untrusted, trust),
        partial(check_loaded, loaded),
        partial(check_plugins, loaded, run),
        partial(check_agents, loaded.hooks, settings, root),
        partial(check_notifiers, loaded.hooks, settings, root),
        lambda: asyncio.run(_check_project(request, previous.last_run)),
    )
    for check in checks:
        try:
            check()
        except GsdError as error:
            yield error


async def _check_project(request: RunRequest, last: LastRun) -> None:
    git = Git(request.root, trusted=request.programs)
    await preflight.check_repository(request, git)
    with project.open_journal(request.root) as journal:
        await preflight.check_project(request, git, journal, last)


def _settle_trust(
    options: RunOptions, loaded: Loaded, settings: Settings, previous: ProjectState | None
) -> ProjectTrust:
    """Return what the project wants, all of it trusted; raise ``Untrusted`` if the user does not trust it.

    A dry run asks nothing, and shows what would happen without trust.
    """
    run: RunSettings = settings.of(RunSettings)
    if any(StepId.parse(step).kind == EXEC for step in options.asked):
        # A prompt of the user runs with their own settings of the agent, as their commands do.
        run = attrs.evolve(run, workflow="commands")
    trust = project_trust.examine(loaded, options.root, run)
    project_trust.refuse_consent(trust)
    if not trust.new:
        return trust
    if options.dry_run:
        warn(f"not trusted, so it does not count: {line}" for line in project_trust.lines_of(trust.new))
        return trust
    refuse_agents("trust a project")
    continued = _continued(options, previous)
    changed = (
        project_trust.changed_since_start(trust, options.root, continued.last_run.id) if continued else ()
    )
    if options.trust and not changed:
        return project_trust.remember(trust)
    if _can_confirm(options, settings):
        if project_trust.ask(trust):
            return project_trust.remember(trust)
        raise Untrusted("the project is not trusted", hint=WITHOUT_TRUST)
    if options.trust:
        listed = "\n".join(f"  {line}" for line in project_trust.lines_of(changed))
        raise Untrusted(
            f"since this run began, the project has got\n{listed}\nan agent may have written it, so --trust "
            "does not cover it",
            hint="read it, then trust it with `gsd trust` at a terminal",
        )
    project_trust.refuse_untrusted(trust)
    return trust


def _build_request(
    options: RunOptions,
    loaded: Loaded,
    settings: Settings,
    idea: Idea | None,
    previous: ProjectState | None,
    trust: ProjectTrust,
) -> RunRequest:
    return RunRequest(
        root=options.root,
        idea=idea,
        settings=settings,
        hooks=loaded.hooks,
        plugins=loaded.infos,
        trusted=labels(trust.wants),
        programs=trust.trusted_programs,
        info=RunInfo(
            id=options.run,
            project=options.root,
            interactive=_is_interactive(options, settings),
            no_input=options.no_input,
            yes=bool(value_of(settings, "--yes")),
            output=options.output,
            verbosity=options.verbosity,
            agent=", ".join(settings.of(RunSettings).agent),
            seed=options.seed,
            command=with_global_options("gsd resume", options.global_options).removesuffix(" resume"),
            plain=options.global_options.plain,
        ),
        options=attrs.evolve(_machine_options(options.root, settings), only_asked=bool(options.asked)),
        asked=options.asked,
        command=options.command,
        clock=project.now,
        typed=_flags_to_keep(options, loaded, previous),
        observers=(StateFileWriter(options.root, previous.history if previous else History()),),
        last_run=previous.last_run if previous else None,
    )


# Settings: flags, environment, the unfinished run, and files.


def build_settings(options: RunOptions, loaded: Loaded, previous: ProjectState | None) -> Settings:
    """Merge the flags, the environment, the unfinished run's options, and the files."""
    classes = classes_of(loaded)
    layers = [
        options.flags,
        environment_layer(classes, os.environ),
        _previous_layer(_continued(options, previous)),
        *project_trust.project_layers(loaded, options.root),
        user_layer(),
    ]
    # Two ways to choose phases: what is nearer replaces both.
    nearest = next((layer for layer in layers if RANGE & {*layer.sections.get("run", ())}), None)
    others = {f"run.{name}" for name in RANGE}
    layers = [layer if layer is nearest else without(layer, others) for layer in layers]
    return resolved(loaded, layers)


def _check_given(options: RunOptions, loaded: Loaded) -> None:
    """Check the flags and the ``GSD_*`` variables by themselves; raise ``UserError`` if one is wrong.

    They are checked before anything else is asked of the user: a login or an idea helps nobody whose command
    line is wrong.
    """
    classes = classes_of(loaded)
    given = [options.flags, environment_layer(classes, os.environ)]
    try:
        settings = resolve(classes, given)
    except ConfigError:
        if options.root.is_dir():
            build_settings(options, loaded, None)  # raises for the files' mistakes as well
        raise
    register_secrets(settings.secrets())
    warn(f"{name} is set, and no setting has this variable{more}" for name, more in unread_variables(loaded))
    _machine_options(options.root, settings, known=())
    if not any(info.from_project for info in loaded.infos):
        # A project's own plugin is loaded only once the project is trusted.
        check_plugins(loaded, settings.of(RunSettings), only=settings.origins)
    sections = {section for layer in given for section in layer.sections}
    if notifiers := [name for name in loaded.hooks.plugins_of(gsd_notify) if name in sections]:
        check_notifiers(loaded.hooks, settings, options.root, notifiers)


def _continued(options: RunOptions, previous: ProjectState | None) -> ProjectState | None:
    """Return the run that this one continues: an unfinished one, or with ``gsd resume`` any."""
    if previous is None or not previous.state.run:
        return None
    return previous if options.resume or options.asked or previous.state.closed != "done" else None


def _previous_layer(continued: ProjectState | None) -> Layer:
    """Return the agent, range, limits and models of the unfinished run."""
    sections: dict[str, Any] = {}
    if continued and (machine := continued.state.lifecycle):
        typed = continued.history.typed
        run: dict[str, Any] = {"skip_verify": machine.skip_verify, "skip_discuss": machine.skip_discuss}
        if machine.phases and not RANGE & set(typed.get("run", ())):
            run["phases"] = ",".join(machine.phases)
        if continued.history.agents:
            run["agent"] = continued.history.agents
        sections = {**typed, "run": run | dict(typed.get("run", {}))}
    return Layer(origin="the run so far", sections=sections, strict=False)


def _flags_to_keep(options: RunOptions, loaded: Loaded, previous: ProjectState | None) -> dict[str, Any]:
    """Return the flags that also hold for later processes of this run; consent and secrets do not."""
    secret = {
        (section, field.name)
        for section, kind in classes_of(loaded)
        for field in attrs.fields(kind)
        if field.metadata.get("secret")
    }
    kept = {
        section: {key: value for key, value in values.items() if (section, key) not in {*CONSENT, *secret}}
        for section, values in options.flags.sections.items()
        # Those of a single step hold for this step only.
        if section not in NOT_CONTINUED and not options.asked
    }
    continued = _continued(options, previous)
    earlier: Mapping[str, Mapping[str, Any]] = continued.history.typed if continued else {}
    typed = {section: dict(values) for section, values in earlier.items()}
    if RANGE & {*kept.get("run", ())}:
        typed["run"] = {key: value for key, value in typed.get("run", {}).items() if key not in RANGE}
    return merge_config(typed, kept)


def _machine_options(root: Path, settings: Settings, known: Sequence[str] | None = None) -> Options:
    """Return what the machine needs to know; the *known* phases are by default those of the project."""
    run: RunSettings = settings.of(RunSettings)
    phases, only = settings.origins.get("run.phases"), settings.origins.get("run.only")
    if run.phases and run.only and phases == only:
        raise ConfigError("--phases and --only cannot be combined", hint="pass only one of them")
    if known is None:
        known = [phase.number for phase in read_planning(root).phases] if root.is_dir() else []
    return lifecycle_options(run, known)


# Checks and confirmations.


def _is_interactive(options: RunOptions, settings: Settings) -> bool:
    """Whether a human can be asked: at a terminal, with standard input not needed for anything else."""
    taken = str(options.idea) == "-" or value_of(settings, "--answers") == "-"
    return can_ask() and not options.no_input and not taken


def _can_confirm(options: RunOptions, settings: Settings) -> bool:
    """Whether somebody is at the terminal now: a session has one too, but often nobody looks at it."""
    return _is_interactive(options, settings) and not os.environ.get("GSD_SESSION")


def _has_consent(loaded: Loaded, settings: Settings) -> bool:
    """Whether the user passed ``--yes``; a repository's own ``gsd.toml`` cannot consent for the user."""
    given_by_project = origin_of(settings, classes_of(loaded), "--yes") == project_trust.PROJECT_SETTINGS
    return bool(value_of(settings, "--yes")) and not given_by_project


def check_plugins(loaded: Loaded, settings: RunSettings, *, only: Container[str] | None = None) -> None:
    """Raise ``ConfigError`` if a plugin that the settings list is missing, turned off, or lacks the hook.

    *only* these settings are checked (``run.agent``); by default all.
    """
    off = {info.name: info.reason for info in loaded.infos if info.status == "blocked"}
    for kind, setting, spec, names in (
        ("agent", "agent", gsd_run_agent, settings.agent),
        ("executor", "execute", gsd_execute_step, settings.executors),
        ("workspace", "workspace", gsd_workspace, settings.workspace),
    ):
        if only is not None and f"run.{setting}" not in only:
            continue
        known = loaded.hooks.plugins_of(spec)
        installed = ", ".join(map(repr, sorted(known))) or "none"
        if not names:
            raise ConfigError(f"no {kind} is chosen", hint=f"installed: {installed}")
        for name in names:
            if name in off and name not in known:
                hint = f"a run needs it: turn it on again, or choose another {kind} (installed: {installed})"
                raise ConfigError(f"the {kind} {name!r} is turned off: {off[name]}", hint=hint)
            if name not in known:
                raise ConfigError(f"unknown {kind} {name!r}; installed: {installed}", hint="gsd plugins")
    if only is None or "run.sandboxes" in only:
        check_sandbox_names(loaded.hooks, settings)


def _asks_agent(options: RunOptions, hooks: Hooks, run: RunSettings) -> bool:
    """Whether an agent may be asked: code alone does some of the steps that a user asks for."""
    if not options.asked or run.workflow != "native":
        return True
    alone = {one.kind for _, one in collect_step_types(hooks).types if not one.asks_agent}
    return not alone.issuperset(StepId.parse(step).kind for step in options.asked)


def check_agents(hooks: Hooks, settings: Settings, root: Path) -> frozenset[Unit]:
    """Return in what all chosen agents report their usage.

    Raises ``Credentials`` if one of them, or of the executors, reports that it cannot work.
    """
    chosen: RunSettings = settings.of(RunSettings)
    found = findings_of(hooks, settings, root, (*chosen.agent, *chosen.executors)).items
    for plugin, finding in found:
        if not finding.ok:
            kind = "agent" if plugin in chosen.agent else "executor"
            raise Credentials(f"{kind} {plugin!r} cannot work: {finding.message}", hint=finding.fix)
    units: Sequence[Unit] = ("dollars", "tokens", "turns")
    return frozenset(
        unit for unit in units if {*chosen.agent} <= {name for name, one in found if unit in one.reports}
    )


def check_notifiers(
    hooks: Hooks, settings: Settings, root: Path, plugins: Sequence[str] | None = None
) -> None:
    """Raise ``CannotNotify`` if a notifier reports that it cannot work: nobody watches an unattended run.

    Only these *plugins* are asked; by default all notifiers.
    """
    findings = findings_of(hooks, settings, root, plugins or hooks.plugins_of(gsd_notify))
    if failed := [(plugin, finding) for plugin, finding in findings.items if not finding.ok]:
        problems = "; ".join(f"{finding.name}: {finding.message}" for _, finding in failed)
        raise CannotNotify(f"cannot notify: {problems}", hint=failed[0][1].fix)


def _confirm_repository(options: RunOptions, loaded: Loaded, settings: Settings) -> None:
    """Ask before a folder with other files becomes a repository; raise ``ProjectError`` if it may not."""
    files = project.foreign_files(options.root, options.idea)
    if not files or _has_consent(loaded, settings):
        return
    more = ", …" if len(files) > MAX_FILES_SHOWN else ""
    contents = f"{counted(len(files), 'other file')}: {', '.join(files[:MAX_FILES_SHOWN])}{more}"
    if options.dry_run or not _can_confirm(options, settings):
        raise ProjectError(
            f"{str(options.root)!r} is not a git repository and contains {contents}",
            hint="if this is the project, run `git init` there, or pass --yes to let gsd do it",
        )
    question = f"Initialize a git repository in {options.root}? It contains {contents}"
    if not click.confirm(one_line(question, MAX_REASON), default=False, err=True):
        message = f"{str(options.root)!r} is not a git repository"
        raise ProjectError(message, hint="run `git init` there first")


def _confirm_milestone(options: RunOptions, loaded: Loaded, settings: Settings, milestone: str) -> None:
    """Ask before a finished milestone is closed for the next one; raise ``ProjectError`` if it may not be."""
    finished = preflight.closes_first(options.root)
    gate = get(read_config(options.root), "gates.confirm_milestone_scope", True)
    if not finished or options.dry_run or not gate or _has_consent(loaded, settings):
        return
    hint = f"pass --yes to close it and start {milestone}, or close it with: gsd milestone complete"
    if not _can_confirm(options, settings):
        raise ProjectError(f"milestone {finished} is complete, but not closed", hint=hint)
    question = f"Close milestone {finished} (archive and tag it), and start {milestone} with this idea?"
    if not click.confirm(one_line(question, MAX_REASON), default=True, err=True):
        raise ProjectError(f"milestone {finished} is kept open", hint=hint)


def _confirm_spending(options: RunOptions, loaded: Loaded, settings: Settings) -> None:
    """Ask before a run starts that nothing limits, or say that it is one if nobody can be asked."""
    about, hint = without_limit(options.root), "--max-budget-usd 20, or a limit for each day: budget.day_usd"
    if _has_consent(loaded, settings) or not _can_confirm(options, settings):
        warn([f"{about}; to limit it: {hint}"])
    elif not click.confirm(f"{about}. Start without a limit?", default=False, err=True):
        raise ConfigError("the run has no limit, and was not started", hint=f"limit it with {hint}")


@contextmanager
def _warnings_on_stderr() -> Generator[None]:
    """Print the run's warnings directly: a plugin that blocks the event loop also holds up all events."""
    handler = LabeledHandler("warning")
    logs = [logging.getLogger(name) for name in ("gsd_core.run", "gsd_plugins")]
    for log in logs:
        log.addHandler(handler)
    try:
        yield
    finally:
        for log in logs:
            log.removeHandler(handler)
