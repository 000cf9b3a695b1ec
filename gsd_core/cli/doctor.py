"""``gsd doctor``: checks whether everything that a run needs is there and works."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from gsd_core.errors import GsdError, machine_error
from gsd_core.exit_codes import ExitCode
from gsd_core.views.diagnosis import SECTIONS, Check, Section, diagnosis_json, overall_state

from .commands import with_global_options
from .global_options import GlobalOptions, global_options_of, gsd_command
from .output import counted, json_flag, print_json, print_line, shown_signs, styled

if TYPE_CHECKING:
    from gsd_core.settings import Settings

    from .plugin_loading import Loaded

SIGNS = {"ok": "✓", "warning": "!", "problem": "✗", "skipped": "-"}
STYLES = {"ok": "green", "warning": "yellow", "problem": "red", "skipped": "dim"}


@gsd_command("doctor", "gsd doctor", "gsd doctor --json", last=json_flag)
@click.option("--fix", is_flag=True, help="remove what runs that were killed left behind")
def command(ctx: click.Context, fix: bool, as_json: bool) -> int:
    """Check the machine, the agent, the settings and the project, and say what to do about problems.

    Nothing that costs money is started, no program of the project runs, and no plugin of the project is
    loaded unless you trust it. --fix removes stale locks, drafts and temporary folders of runs that have
    ended, and nothing else. The exit code is 1 if there is a problem; warnings do not count.
    """
    options = global_options_of(ctx)
    from .project import project_root

    root = project_root(options)
    fixed: list[str] = []
    checks: list[Check] = []
    if fix:
        checks += _guarded("leftovers", "fix", partial(_fix, root, fixed))
    checks += diagnose(options, root)
    checks = _in_order(checks, options)
    if as_json:
        print_json(diagnosis_json(checks, str(root), fixed))
    else:
        signs = shown_signs(SIGNS)
        for line in fixed:
            print_line(styled(line, "green"))
        section = ""
        for check in checks:
            if check.section != section:
                section = check.section
                print_line(styled(section, "bold"))
            sign = styled(f"  {signs[check.state]} ", STYLES[check.state])
            print_line(sign.append_text(styled(f"{check.name}: {check.found}")))
            if check.fix:
                print_line(styled(f"      {check.fix}", "dim"))
        counts = {state: sum(check.state == state for check in checks) for state in ("problem", "warning")}
        listed = ", ".join(counted(number, state) for state, number in counts.items() if number)
        print_line(styled(listed or "no problems", "bold"))
    return ExitCode.FAILED if overall_state(checks) == "problem" else ExitCode.OK


def _in_order(checks: list[Check], options: GlobalOptions) -> list[Check]:
    """Return *checks* by section, each problem once: a missing git fails many of them."""
    found: list[Check] = []
    first: dict[tuple[str, str], str] = {}
    for check in sorted(checks, key=lambda check: SECTIONS.index(check.section)):
        key = (check.found, check.fix)
        if check.state == "problem" and key in first:
            found.append(attrs.evolve(check, state="skipped", found=f"see {first[key]}", fix=""))
            continue
        if check.state == "problem":
            first[key] = check.name
        found.append(attrs.evolve(check, fix=with_global_options(check.fix, options)))
    return found


def diagnose(options: GlobalOptions, root: Path) -> list[Check]:
    """Return all checks for the project at *root*; one that fails is a problem, and the others continue."""
    from gsd_core.settings import RunSettings

    from . import environment_checks as environment
    from . import project_checks as project

    checks = [
        *_guarded("machine", "python", environment.check_python),
        *_guarded("machine", "git", partial(environment.check_git, root)),
        *_guarded("machine", "temporary files", environment.check_temporary),
        *_guarded("machine", "state folder", environment.check_own_folder),
        *_guarded("machine", "disk", partial(environment.check_space, root)),
        *_guarded("project", "repository", partial(environment.check_repository, root)),
        *_guarded("project", "file system", partial(environment.check_file_system, root)),
        *_guarded("project", "run", partial(project.check_run, options)),
        *_guarded("project", "planning", partial(project.check_planning, root)),
        *_guarded("leftovers", "leftovers", partial(project.check_leftovers, root)),
    ]
    loaded = _loaded(options, checks)
    loaded, settings = _settled(loaded, root, checks)
    # Without its settings, the agent that would be checked is not the one of a run.
    run: RunSettings = settings.of(RunSettings) if settings else RunSettings()
    agents = [Check("agent", "agent", "skipped", "see settings")]
    if settings:
        agents = _guarded("agent", "agent", partial(project.check_agents, loaded, settings, root))
    return [
        *checks,
        *_guarded("plugins", "plugins", partial(project.check_plugins, loaded)),
        *_guarded("plugins", "last run", partial(project.check_last_failures, root)),
        *agents,
        *_guarded("security", "sandbox", partial(project.check_sandbox, loaded, run, root)),
        *_guarded("security", "secrets", project.check_redaction),
        *_guarded("settings", "variables", partial(project.check_variables, loaded)),
    ]


def _loaded(options: GlobalOptions, checks: list[Check]) -> Loaded:
    """Return the plugins, none of them the project's; if the command line names wrong ones, without those."""
    from .plugin_loading import choose_plugins, load_plugins

    # With GSD_STRICT_PLUGINS, the first broken plugin would hide everything else.
    choice = choose_plugins(options)
    lenient = attrs.evolve(choice, strict=False)
    try:
        loaded = load_plugins(lenient, frozenset())
    except GsdError as error:
        checks.append(_problem("plugins", "-p", error))
        loaded = load_plugins(attrs.evolve(lenient, named=(), directories=()), frozenset())
    return attrs.evolve(loaded, choice=choice)


def _settled(loaded: Loaded, root: Path, checks: list[Check]) -> tuple[Loaded, Settings | None]:
    """Return the plugins with those of a trusted project, and the settings if they are valid."""
    from gsd_core.settings import RunSettings

    from .project_checks import check_settings, check_trust
    from .project_settings import settings_without_run
    from .project_trust import admit, examine

    settings: Settings | None = None
    try:
        settings = settings_without_run(loaded, root)
    except Exception as error:
        checks.append(_problem("settings", "settings", error))
    try:
        trust = examine(loaded, root, settings.of(RunSettings) if settings else None)
        checks += check_trust(trust)
        if settings and trust.wants and not trust.new:
            admitted = admit(loaded, trust)
            loaded, settings = admitted, settings_without_run(admitted, root)
    except Exception as error:
        checks.append(_problem("security", "trust", error))
    if settings:
        checks += check_settings(loaded, settings)
    return loaded, settings


def _guarded(section: Section, name: str, check: Callable[[], Iterable[Check]]) -> list[Check]:
    """Return the results of *check*; whatever it raises becomes a problem, after what it found before."""
    found: list[Check] = []
    try:
        # One by one: what a generator has yielded stays when it fails.
        for one in check():
            found.append(one)  # noqa: PERF402
    except Exception as error:
        found.append(_problem(section, name, error))
    return found


def _problem(section: Section, name: str, error: Exception) -> Check:
    """Return the check for an *error* that kept it from being made."""
    trouble = error if isinstance(error, GsdError) else machine_error(error)
    if trouble is None:
        text = f"this check failed, which is a bug in gsd: {type(error).__name__}: {error}"
        return Check(section, name, "problem", text)
    return Check(section, name, "problem", str(trouble), trouble.hint)


def _fix(root: Path, fixed: list[str]) -> Sequence[Check]:
    from gsd_core.git import data_directory
    from gsd_core.processes import refuse_agents
    from gsd_core.run.leftovers import remove_leftovers

    refuse_agents("remove leftovers")
    fixed += [f"removed {path}" for path in remove_leftovers(root, data_directory(root))]
    return ()
