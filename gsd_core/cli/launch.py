"""A run from the command line to its end: options, plugins, settings, checks, request, run, summary.

Everything is checked before anything is written: a start that fails leaves no folder and no file behind.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import sys
from collections.abc import Container, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs
import click

from gsd_core.errors import CannotNotify, ConfigError, Credentials, ProjectError, Untrusted, UserError
from gsd_core.exit_codes import ExitCode
from gsd_core.hookspecs import (
    Finding,
    RunInfo,
    gsd_execute_step,
    gsd_notify,
    gsd_run_agent,
    gsd_workspace,
)
from gsd_core.machine.state import Options, State
from gsd_core.model.counts import dollars_text
from gsd_core.model.ids import StepId
from gsd_core.model.step import Idea
from gsd_core.planning.config import get, read_config
from gsd_core.planning.survey import read_planning
from gsd_core.plugins.calling import Hooks
from gsd_core.processes import refuse_agents
from gsd_core.run import RunEnd, run_project
from gsd_core.run.last_run import LastRun
from gsd_core.run.next_milestone import closes_first, milestone_to_start
from gsd_core.run.notes import with_notes
from gsd_core.run.preflight import check_idea, kept_idea, load_idea
from gsd_core.run.runtime import RunRequest
from gsd_core.run.sandbox import check_sandbox_names
from gsd_core.run.snapshot import merge_config
from gsd_core.sanitize import one_line, register_secrets, safe_text
from gsd_core.settings import (
    Layer,
    RunSettings,
    Settings,
    bind_settings,
    environment_layer,
    resolve,
    toml_layer,
    user_config,
)
from gsd_core.trust import labels
from gsd_core.views.state_file import StateFileWriter
from gsd_core.views.status import SCHEMA_VERSION, History

from .commands import base_command, with_global_options
from .dry_run import plan_json, show_plan
from .global_options import GlobalOptions
from .options import classes_of, origin_of, parse_phases, value_of
from .output import counted, print_json, print_labeled, warn
from .plugin_loading import Loaded, check_loaded, findings_of, tolerated_sections, unused_sections
from .project import (
    ProjectState,
    foreign_files,
    load,
    make_folder,
    make_repository,
    needs_repository,
    now,
    open_journal,
    project_root,
    refuse_system_folder,
)
from .project_trust import (
    PROJECT_SETTINGS,
    ProjectTrust,
    admit,
    ask,
    changed_since_start,
    examine,
    lines_of,
    project_layers,
    refuse_consent,
    refuse_untrusted,
    remember,
    require_sandbox,
)
from .rehearsals import HINT, why_not_here
from .run_end import read_finished, show_details
from .single_steps import EXEC
from .step_results import result_lines
from .streams import background_output
from .variables import unread_variables

Output: TypeAlias = Literal["text", "json", "stream-json"]

NOT_CONTINUED = ("yolo", "answers", "apprise")
"""Sections whose flags hold for one process only: consent, and who answers or is notified."""
CONSENT = {("run", "allow_dirty"), ("run", "accept_branch")}
"""Settings that agree to something about the project as it is now."""
WITHOUT_TRUST = "leave its plugins out with -p no:NAME, and remove its other wishes from gsd.toml"
MAX_REASON = 400
MAX_FILES_SHOWN = 5
NEXT_STEPS = {
    "blocked": "list the open questions with `gsd questions`, answer them, then run `gsd resume`",
    "stopped": "continue with `gsd resume`",
    "failed": "see what happened with `gsd log`, then run `gsd resume`",
    "gaps": "see what is missing in the phase's VERIFICATION.md, then run `gsd resume`",
    "budget": "raise the limit, then run `gsd resume`",
}


@attrs.frozen(kw_only=True)
class RunOptions:
    """What the command line asks for; *flags* are the settings given as flags.

    *asked* are steps to do by themselves, by id, with the user's words: the lifecycle is left where it is.
    *not_yet*: why they cannot be done now; only a session may wait for it.
    """

    global_options: GlobalOptions
    flags: Layer
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
    not_yet: UserError | None = None

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.global_options.directory.resolve()


def execute_run(options: RunOptions, loaded: Loaded) -> int:
    """Run, or show what a run would do, and return the exit code."""
    root = options.root
    refuse_system_folder(root)
    _check_given(options, loaded)
    if options.asked or options.resume:
        project_root(options.global_options)
    new = needs_repository(root)
    if new and options.asked:
        raise ProjectError(f"{root} is not in a git repository", hint="run `git init` there first")
    # A closed standard input is None.
    if options.background and str(options.idea) == "-":
        raise ConfigError("a session has no standard input to read the idea from", hint="put it into a file")
    idea = load_idea(options.idea, sys.stdin.buffer if sys.stdin else io.BytesIO()) if options.idea else None
    previous = load(options.global_options) if root.is_dir() else None
    planned = (root / ".planning" / "ROADMAP.md").exists()
    if options.resume and not planned and not (previous and previous.state.run):
        raise ProjectError("nothing to resume in this project", hint="start with: gsd run IDEA")
    # Before the settings, plugins and logins, which do not matter if there is nothing to do.
    state = previous.state if previous else State()
    milestone = ""
    if not options.asked:
        check_idea(root, idea, state, base_command(options.global_options))
        milestone = milestone_to_start(root, idea, state, kept_idea(root)) if root.is_dir() else ""
    if milestone:
        previous = None  # it gets a run of its own, with its own options

    # A journal that came with the folder counts only if it is trusted: not for the question itself.
    own = previous if previous and previous.is_own else None
    settings = build_settings(options, loaded, own)
    trust = _settle_trust(options, loaded, settings, own)
    loaded = admit(loaded, trust)
    previous = own if trust.new else previous
    settings = require_sandbox(build_settings(options, loaded, previous), trust)

    check_loaded(loaded)
    warn(unused_sections(loaded, settings))
    if str(options.idea) == "-" and value_of(settings, "--answers") == "-":
        raise ConfigError(
            "standard input cannot be both the idea and the answers", hint="put one of them into a file"
        )
    check_plugins(loaded.hooks, settings.of(RunSettings))
    if not options.dry_run:
        check_agents(loaded.hooks, settings, root)
        check_notifiers(loaded.hooks, settings, root)
    request = _build_request(options, loaded, settings, idea, previous, trust)
    # Before the user is asked to agree to something that would not happen anyway.
    refused = why_not_here(root, options.idea, settings)
    if refused and not options.dry_run:
        raise ProjectError(refused, hint=HINT)
    if new:
        _confirm_repository(options, loaded, settings)
    if milestone:
        _confirm_milestone(options, loaded, settings, milestone)

    if options.dry_run:
        warn([f"a rehearsal would not start here: {refused}"] if refused else [])
        if milestone:
            warn([f"this starts milestone {milestone}, in a run of its own"])
            request = attrs.evolve(request, last_run=LastRun(state=State(milestone=milestone)))
        plan = asyncio.run(plan_json(request, new=new))
        show_plan(plan, verbose=options.verbosity > 0) if options.output == "text" else print_json(plan)
        return 0

    if new:
        make_repository(root, settings.of(RunSettings).agent)
    elif not root.is_dir():
        make_folder(root)
    if options.background:
        from .background import start_session

        names = settings.of(RunSettings).session_host
        with bind_settings(settings.values):
            return start_session(
                options.global_options,
                root,
                loaded.hooks,
                names,
                not_yet=options.not_yet,
                as_json=options.output != "text",
            )
    with background_output():
        with _warnings_on_stderr():
            end = asyncio.run(run_project(request))
        if options.output == "text":
            for line in _results(root, end, options.asked):
                click.echo(safe_text(line), err=True)
        _show_end(end, options, settings, _answers(root, end, options.asked))
    return end.exit


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
    trust = examine(loaded, options.root, run)
    refuse_consent(trust)
    if not trust.new:
        return trust
    if options.dry_run:
        warn(f"not trusted, so it does not count: {line}" for line in lines_of(trust.new))
        return trust
    refuse_agents("trust a project")
    continued = _continued(options, previous)
    changed = changed_since_start(trust, continued.last_run.facts) if continued else ()
    if options.trust and not changed:
        return remember(trust)
    if _can_confirm(options, settings):
        if ask(trust):
            return remember(trust)
        raise Untrusted("the project is not trusted", hint=WITHOUT_TRUST)
    if options.trust:
        listed = "\n".join(f"  {line}" for line in lines_of(changed))
        raise Untrusted(
            f"since this run began, the project has got\n{listed}\nan agent may have written it, so --trust "
            "does not cover it",
            hint="read it, then trust it with `gsd trust` at a terminal",
        )
    refuse_untrusted(trust)
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
        resume=options.resume,
        settings=settings,
        hooks=loaded.hooks,
        plugins=loaded.infos,
        trusted=labels(trust.wants),
        programs=trust.trusted_programs,
        info=RunInfo(
            id="",
            project=options.root,
            interactive=_is_interactive(options, settings),
            no_input=options.no_input,
            yes=bool(value_of(settings, "--yes")),
            output=options.output,
            verbosity=options.verbosity,
            agent=", ".join(settings.of(RunSettings).agent),
            seed=options.seed,
            command=base_command(options.global_options),
            plain=options.global_options.plain,
        ),
        options=attrs.evolve(_machine_options(options.root, settings), only_asked=bool(options.asked)),
        asked=options.asked,
        clock=now,
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
        *project_layers(loaded, options.root),
        toml_layer(user_config(), str(user_config())),
    ]
    settings = resolve(classes, layers, tolerated=tolerated_sections(loaded))
    register_secrets(settings.secrets())
    return settings


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
        check_plugins(loaded.hooks, settings.of(RunSettings), only=settings.origins)
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
        if machine.phases and not {"phases", "only"} & set(typed.get("run", ())):
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
    return merge_config(continued.history.typed if continued else {}, kept)


def _machine_options(root: Path, settings: Settings, known: Sequence[str] | None = None) -> Options:
    """Return what the machine needs to know; the *known* phases are by default those of the project."""
    run: RunSettings = settings.of(RunSettings)
    phases, only = settings.origins.get("run.phases"), settings.origins.get("run.only")
    if run.phases and run.only and phases == only:
        raise ConfigError("--phases and --only cannot be combined", hint="pass only one of them")
    if known is None:
        known = [phase.number for phase in read_planning(root).phases] if root.is_dir() else []
    return Options(
        phases=parse_phases(run.only or run.phases, known),
        skip_verify=run.skip_verify,
        skip_discuss=run.skip_discuss,
        gap_rounds=run.gap_rounds,
    )


# Checks and confirmations.


def _is_interactive(options: RunOptions, settings: Settings) -> bool:
    """Whether a human can be asked: at a terminal, with standard input not needed for anything else."""
    taken = str(options.idea) == "-" or value_of(settings, "--answers") == "-"
    # A closed stream is None.
    terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    return terminal and not options.no_input and not taken


def _can_confirm(options: RunOptions, settings: Settings) -> bool:
    """Whether somebody is at the terminal now: a session has one too, but often nobody looks at it."""
    return _is_interactive(options, settings) and not os.environ.get("GSD_SESSION")


def _has_consent(loaded: Loaded, settings: Settings) -> bool:
    """Whether the user passed ``--yes``; a repository's own ``gsd.toml`` cannot consent for the user."""
    given_by_project = origin_of(settings, classes_of(loaded), "--yes") == PROJECT_SETTINGS
    return bool(value_of(settings, "--yes")) and not given_by_project


def check_plugins(hooks: Hooks, settings: RunSettings, *, only: Container[str] | None = None) -> None:
    """Raise ``ConfigError`` if a plugin that the settings list is missing or lacks the hook.

    *only* these settings are checked (``run.agent``); by default all.
    """
    for kind, setting, spec, names in (
        ("agent", "agent", gsd_run_agent, settings.agent),
        ("executor", "execute", gsd_execute_step, settings.executors),
        ("workspace", "workspace", gsd_workspace, settings.workspace),
    ):
        if only is not None and f"run.{setting}" not in only:
            continue
        known = hooks.plugins_of(spec)
        installed = ", ".join(map(repr, sorted(known))) or "none"
        if not names:
            raise ConfigError(f"no {kind} is chosen", hint=f"installed: {installed}")
        for name in names:
            if name not in known:
                raise ConfigError(f"unknown {kind} {name!r}; installed: {installed}", hint="gsd plugins")
    if only is None or "run.sandboxes" in only:
        check_sandbox_names(hooks, settings)


def check_agents(hooks: Hooks, settings: Settings, root: Path) -> None:
    """Raise ``Credentials`` if one of the chosen agents or executors reports that it cannot work."""
    chosen: RunSettings = settings.of(RunSettings)
    for plugin, finding in _failed_checks(hooks, settings, root, (*chosen.agent, *chosen.executors)):
        kind = "agent" if plugin in chosen.agent else "executor"
        raise Credentials(f"{kind} {plugin!r} cannot work: {finding.message}", hint=finding.fix)


def check_notifiers(
    hooks: Hooks, settings: Settings, root: Path, plugins: Sequence[str] | None = None
) -> None:
    """Raise ``CannotNotify`` if a notifier reports that it cannot work: nobody watches an unattended run.

    Only these *plugins* are asked; by default all notifiers.
    """
    if failed := _failed_checks(hooks, settings, root, plugins or hooks.plugins_of(gsd_notify)):
        problems = "; ".join(f"{finding.name}: {finding.message}" for _, finding in failed)
        raise CannotNotify(f"cannot notify: {problems}", hint=failed[0][1].fix)


def _failed_checks(
    hooks: Hooks, settings: Settings, root: Path, plugins: Sequence[str]
) -> Sequence[tuple[str, Finding]]:
    """Return the failed checks of these *plugins*; those of other plugins do not matter here."""
    findings = findings_of(hooks, settings, root, plugins)
    return [(plugin, finding) for plugin, finding in findings.items if not finding.ok]


def _confirm_repository(options: RunOptions, loaded: Loaded, settings: Settings) -> None:
    """Ask before a folder with other files becomes a repository; raise ``ProjectError`` if it may not."""
    files = foreign_files(options.root, options.idea)
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
        raise ProjectError(
            f"{str(options.root)!r} is not a git repository", hint="run `git init` there first"
        )


def _confirm_milestone(options: RunOptions, loaded: Loaded, settings: Settings, milestone: str) -> None:
    """Ask before a finished milestone is closed for the next one; raise ``ProjectError`` if it may not be."""
    finished = closes_first(options.root)
    gate = get(read_config(options.root), "gates.confirm_milestone_scope", True)
    if not finished or options.dry_run or not gate or _has_consent(loaded, settings):
        return
    hint = f"pass --yes to close it and start {milestone}, or close it with: gsd milestone complete"
    if not _can_confirm(options, settings):
        raise ProjectError(f"milestone {finished} is complete, but not closed", hint=hint)
    question = f"Close milestone {finished} (archive and tag it), and start {milestone} with this idea?"
    if not click.confirm(one_line(question, MAX_REASON), default=True, err=True):
        raise ProjectError(f"milestone {finished} is kept open", hint=hint)


class _WarningHandler(logging.Handler):
    """Prints records on standard error as it is at that time: a live view replaces it while it is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record, sanitized and redacted."""
        try:
            print_labeled("warning", safe_text(self.format(record)))
        except Exception:
            self.handleError(record)


@contextmanager
def _warnings_on_stderr() -> Generator[None]:
    """Print the run's warnings directly: a plugin that blocks the event loop also holds up all events."""
    handler = _WarningHandler()
    logs = [logging.getLogger(name) for name in ("gsd_core.run", "gsd_plugins")]
    for log in logs:
        log.addHandler(handler)
    try:
        yield
    finally:
        for log in logs:
            log.removeHandler(handler)


def _answers(root: Path, end: RunEnd, asked: Mapping[str, str]) -> dict[str, str]:
    """Return the last words of the agents of the steps that the user asked for, by step."""
    if not asked:
        return {}
    with open_journal(root) as journal:
        closed = journal.events(run=end.run, kinds=["agent.closed"])
        return {
            fact.step: safe_text(str(value["text"]))
            for fact in closed
            if fact.step in asked and (value := fact.data.get("value"))
        }


def _results(root: Path, end: RunEnd, asked: Mapping[str, str]) -> list[str]:
    """Return the files that the steps that the user asked for have written in this process, in short."""
    found: list[str] = []
    if asked:
        with open_journal(root) as journal:
            for fact in journal.events(run=end.run, kinds=["run.opened", "step.completed"]):
                if fact.kind == "run.opened":
                    found.clear()
                elif fact.step in asked:
                    found += result_lines(
                        root,
                        StepId.parse(fact.step),
                        fact.data.get("paths") or (),
                        unchanged=bool(fact.data.get("unchanged")),
                    )
    return found


def _show_end(end: RunEnd, options: RunOptions, settings: Settings, answers: Mapping[str, str]) -> None:
    """Print the agents' answers, and how the run ended; ``stream-json`` has said so in its last event."""
    if options.output == "text" and end.exit == 0:
        for step, text in answers.items():
            # Other steps return data, which is in the files that they write.
            if StepId.parse(step).kind == EXEC:
                click.echo(text)
    if options.output == "json":
        print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "run": end.run,
                "outcome": end.outcome,
                "exit": end.exit,
                "reason": end.reason,
                "notes": list(end.notes),
                "dollars": end.dollars or None,
                "commits": end.commits,
                **({"answers": dict(answers)} if options.asked else {}),
            }
        )
    elif options.output == "text":
        # A step that was asked for alone has only questions to add.
        in_full = options.verbosity >= 0 and (not options.asked or end.exit)
        finished = read_finished(options.global_options) if in_full else None
        if finished:
            show_details(finished, end, options.global_options, value_of(settings, "--max-budget-usd"))
        cost = f", {dollars_text(end.dollars)}" if end.dollars else ""
        reason = one_line(with_notes(one_line(end.reason, MAX_REASON), end.notes), 2 * MAX_REASON)
        reason = with_global_options(reason, options.global_options)
        print_labeled(end.outcome, f"{reason} ({counted(end.commits, 'commit')}{cost}, run {end.run})")
        hint = NEXT_STEPS.get(end.outcome)
        if finished and (end.exit == ExitCode.QUESTION or end.outcome == "stopped") and not options.asked:
            hint = None  # the commands that answer and resume have just been listed
        if end.outcome == "blocked" and end.exit != ExitCode.QUESTION:
            hint = "fix this, or choose other phases, then run `gsd resume`"
        if hint and options.asked:
            # `gsd resume` continues the lifecycle, which was left where it is.
            hint = hint.replace("run `gsd resume`", "repeat this command")
        if hint:
            print_labeled("hint", with_global_options(hint, options.global_options))
