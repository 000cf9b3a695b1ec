"""The checks of ``gsd doctor`` about plugins, settings, security and the project."""

from __future__ import annotations

import asyncio
import shlex
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs

from gsd_core.git import data_directory
from gsd_core.git.command import Command
from gsd_core.git.refs import OWN
from gsd_core.git.repository import is_repository
from gsd_core.hookspecs import gsd_doctor, gsd_execute_step, gsd_notify, gsd_run_agent
from gsd_core.journal.lock import owner
from gsd_core.planning.health import SURVEYED, check_health, overall_status
from gsd_core.plugins.loading import settings_failures
from gsd_core.processes import start_time
from gsd_core.run.last_run import plugin_failures
from gsd_core.run.leftovers import find_leftovers, leftover_processes, unowned_files
from gsd_core.run.places import remove_empty
from gsd_core.run.private_home import empty_home
from gsd_core.run.sandbox import TURNED_OFF, choose_sandbox
from gsd_core.sanitize import REDACTED, one_line, redact
from gsd_core.settings import RunSettings, Settings
from gsd_core.views.amounts import names_text
from gsd_core.views.diagnosis import Check, CheckState
from gsd_core.views.status import status_of

from .global_options import GlobalOptions
from .health import check_journal
from .output import counted
from .plugin_loading import Loaded, findings_of, unused_sections
from .project import holder_of, load, open_journal
from .project_trust import ProjectTrust
from .variables import unread_variables

MAX_FOUND = 400
MAX_NAMED = 5
SAMPLE = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
"""Has the shape of a token, and is none."""


def check_plugins(loaded: Loaded) -> Iterator[Check]:
    """Yield what was loaded, and a check for each plugin that was not."""
    states: dict[str, list[str]] = {}
    for info in loaded.infos:
        states.setdefault(info.status, []).append(info.name)
    listed = "; ".join(
        f"{len(names)} {status}" + (f" ({', '.join(names)})" if status != "active" else "")
        for status, names in states.items()
    )
    own = [info.name for info in loaded.infos if info.source != "default" and info.status == "active"]
    more = f"; not built in: {', '.join(own)}" if own else ""
    yield Check("plugins", "plugins", "ok", f"{listed}{more}")
    for info in loaded.infos:
        if info.status == "broken":
            found = f"was not loaded: {one_line(info.reason, MAX_FOUND)}"
            fix = f"gsd plugins check {shlex.quote(info.path or info.name)}, or: -p no:{info.name}"
            state: CheckState = "problem" if info.needed or loaded.choice.strict else "warning"
            yield Check("plugins", info.name, state, found, fix)
    for failure in settings_failures(loaded.hooks):
        found = one_line(str(failure), MAX_FOUND)
        yield Check("plugins", failure.plugin, "problem", found, f"leave it out: -p no:{failure.plugin}")


def check_last_failures(root: Path) -> Iterator[Check]:
    """Yield the plugins that failed in the last run."""
    with open_journal(root) as journal:
        failures = plugin_failures(journal)
    for plugin, hook, error in failures:
        found = one_line(f"{hook} failed: {error}", MAX_FOUND)
        fix = f"gsd plugins check {shlex.quote(plugin)}"
        yield Check("plugins", f"last run: {plugin}", "warning", found, fix)


def check_agents(loaded: Loaded, settings: Settings, root: Path) -> Iterator[Check]:
    """Yield what plugins say about themselves, except for agents and executors that no setting chooses.

    It is what ``gsd run`` asks before it starts. No request goes to a model.
    """
    run: RunSettings = settings.of(RunSettings)
    hooks = attrs.evolve(loaded.hooks, strict=False)
    chosen = {*run.agent, *run.executors}
    roles = {*hooks.plugins_of(gsd_run_agent), *hooks.plugins_of(gsd_execute_step)}
    for name in run.agent:
        if name not in hooks.plugins_of(gsd_run_agent):
            found = f"the setting run.agent names {name!r}, which is not a loaded agent"
            yield Check("agent", name, "problem", found, "gsd plugins --hook run_agent")
    asked = [name for name in hooks.plugins_of(gsd_doctor) if name in chosen or name not in roles]
    collected = findings_of(hooks, settings, root, asked)
    needed = {*chosen, *hooks.plugins_of(gsd_notify)}
    for plugin, finding in collected.items:
        state: CheckState = "ok" if finding.ok else "problem" if plugin in needed else "warning"
        name = finding.name if finding.name.startswith(plugin) else f"{plugin}: {finding.name}"
        yield Check("agent", name, state, finding.message, "" if finding.ok else finding.fix)
    for failure in collected.failures:
        found = f"its check failed: {one_line(str(failure), MAX_FOUND)}"
        state = "problem" if failure.plugin in needed else "warning"
        yield Check("agent", failure.plugin, state, found, f"leave it out: -p no:{failure.plugin}")
    silent = chosen - {plugin for plugin, _ in collected.items} - {one.plugin for one in collected.failures}
    for name in sorted(silent & set(run.agent) & set(hooks.plugins_of(gsd_run_agent))):
        yield Check("agent", name, "ok", "chosen; it has no check of its own")


def check_settings(loaded: Loaded, settings: Settings) -> Iterator[Check]:
    """Yield the settings that are not defaults, by their origins, and those that have no effect."""
    origins: dict[str, list[str]] = {}
    for name, origin in settings.origins.items():
        origins.setdefault(origin, []).append(name)
    found = "; ".join(f"{origin}: {', '.join(names)}" for origin, names in origins.items())
    yield Check("settings", "settings", "ok", found or "all are defaults")
    for line in unused_sections(loaded, settings):
        yield Check("settings", "unused", "warning", line, "gsd plugins list")


def check_variables(loaded: Loaded) -> Iterator[Check]:
    """Yield the ``GSD_*`` variables that nothing reads, which are often misspelled."""
    for name, more in unread_variables(loaded):
        found = "is set, and no setting has this variable"
        yield Check("settings", name, "warning", found, f"unset {name}{more}")


def check_trust(trust: ProjectTrust) -> Iterator[Check]:
    """Yield whether the user trusts what the project wants."""
    if trust.consent:
        names = ", ".join(each.name for each in trust.consent)
        found = f"{trust.consent[0].origin} sets {names}: consent cannot come from the project's files"
        fix = "remove it there; pass the flag, or set it in your own config.toml"
        yield Check("security", "consent", "problem", found, fix)
    if not trust.wants:
        found, fix = "the project wants nothing that needs trust", ""
    elif not trust.new:
        found, fix = f"this project is trusted ({counted(len(trust.wants), 'item')})", ""
    else:
        names = names_text([f"{want.kind} {want.name}" for want in trust.new])
        found = one_line(f"not trusted, so a run asks first: {names}", MAX_FOUND)
        fix = "gsd trust --show"
    yield Check("security", "trust", "warning" if trust.new else "ok", found, fix)


def check_sandbox(loaded: Loaded, run: RunSettings, root: Path) -> Iterator[Check]:
    """Yield which sandbox a *run* would use, by starting ``true`` in it; nothing of the project runs."""
    in_project = is_repository(Command(root=root))
    with tempfile.TemporaryDirectory(prefix="gsd-") as folder:
        home = empty_home(Path(folder))
        # Outside of a project, the sandbox must not put its folders into whatever folder this is.
        place = root if in_project else Path(folder) / "project"
        place.mkdir(exist_ok=True)
        try:
            # "auto", because with "required" the reasons would be an error.
            asked = attrs.evolve(run, sandbox="off" if run.sandbox == "off" else "auto")
            sandbox = asyncio.run(choose_sandbox(loaded.hooks, asked, place, home=home))
        finally:
            if in_project and holder_of(root) is None:
                remove_empty(root)
    setting = f"run.sandbox is {run.sandbox}"
    if sandbox.name:
        yield Check("security", "sandbox", "ok", f"{sandbox.name} works; {setting}")
        return
    fix = "; or ".join(sandbox.fixes) or "use a container or a virtual machine around gsd"
    if sandbox.why == TURNED_OFF:
        fix = "remove run.sandbox from your settings, or set it to auto or required"
    found = f"none: agents and commands can change all that you can: {sandbox.why}; {setting}"
    yield Check("security", "sandbox", "problem" if run.sandbox == "required" else "warning", found, fix)


def check_redaction() -> Iterator[Check]:
    """Yield whether secrets are recognized, with a sample."""
    works = SAMPLE not in redact(f"token {SAMPLE}") and REDACTED in redact(f"token {SAMPLE}")
    found = "are redacted" if works else "a sample is not recognized"
    fix = "" if works else "reinstall gsd-core"
    yield Check("security", "secrets", "ok" if works else "problem", found, fix)


def check_run(options: GlobalOptions) -> Iterator[Check]:
    """Yield the state of the last run, and who works on the project now."""
    project = load(options)
    status = status_of(project.state, project.history, project.holder, project.pending_answers)
    if holder := project.holder:
        found = f"active: pid {holder.pid} on {holder.host} since {holder.since}"
        state: CheckState = "ok"
        fix = ""
        if holder.pid and holder.host == socket.gethostname() and start_time(holder.pid) is None:
            # The kernel frees the lock of a process that ended; so another one has inherited it.
            state, found = "warning", f"locked, but process {holder.pid} has ended"
            fix = f"find who has the file open: lsof {shlex.quote(str(data_directory(project.root)))}/lock"
        yield Check("project", "run", state, found, fix)
    elif status.run_status == "interrupted":
        found = f"run {status.run} was interrupted"
        yield Check("project", "run", "warning", found, "gsd resume")
    else:
        found = f"run {status.run}: {status.run_status}" if status.run_status != "none" else "no run so far"
        yield Check("project", "run", "ok", found)


def check_planning(root: Path) -> Iterator[Check]:
    """Yield what ``gsd health`` finds in the journal and in ``.planning/``, in one line."""
    issues = check_journal(root) if data_directory(root) else ()
    if (root / ".planning").is_dir():
        issues = (*issues, *check_health(root))
    elif not issues:
        yield Check("project", "planning", "skipped", "no .planning folder here")
        return
    status = overall_status(issues)
    counts = {kind: sum(issue.severity == kind for issue in issues) for kind in ("error", "warning")}
    listed = ", ".join(counted(number, kind) for kind, number in counts.items() if number)
    # Worth a word although it is no problem: what comes next.
    is_surveyed = any(issue.code == SURVEYED for issue in issues)
    first = f": {issues[0].code} {issues[0].message}" if listed or is_surveyed else ""
    states: dict[str, CheckState] = {"healthy": "ok", "degraded": "warning", "broken": "problem"}
    found = one_line(f"{status}{f' ({listed})' if listed else ''}{first}", MAX_FOUND)
    fix = "gsd health" if listed else "start with: gsd run IDEA" if is_surveyed else ""
    yield Check("project", "planning", states[status], found, fix)


def check_leftovers(root: Path) -> Iterator[Check]:
    """Yield what dead runs left: files, locks, processes, saved work."""
    in_repository = is_repository(Command(root=root))
    data = data_directory(root) if in_repository else None
    if data and owner(data):
        found = "a run is active: what it uses is not a leftover"
        yield Check("leftovers", "leftovers", "skipped", found)
    else:
        left = find_leftovers(root, data)
        if left.paths:
            # A lock of git stops every commit; the rest is in nobody's way.
            found = f"left by runs that ended: {names_text(left.paths)}"
            fix = "gsd doctor --fix"
            yield Check("leftovers", "leftovers", "problem" if left.locks else "warning", found, fix)
        else:
            yield Check("leftovers", "leftovers", "ok", "none")
        marks: set[str] = set()
        if data:
            with open_journal(root) as journal:
                marks = {journal.mark_of(record.run) for record in journal.events(kinds=["run.opened"])}
        if marks and (processes := leftover_processes(marks)):
            pids = " ".join(str(process.pid) for process in processes)
            found = f"processes of a run that ended still work: {pids}"
            yield Check("leftovers", "processes", "warning", found, f"gsd resume ends them, or: kill {pids}")
    if unowned := unowned_files():
        paths = " ".join(shlex.quote(str(path)) for path in unowned[:MAX_NAMED])
        found = f"{counted(len(unowned), 'temporary file')} of gsd, older than a day"
        yield Check("leftovers", "old files", "warning", found, f"rm -r {paths}")
    if in_repository:
        git = Command(root=root)
        if saved := git("for-each-ref", "--format=%(refname)", OWN).splitlines():
            found = f"{counted(len(saved), 'ref')} with work that a run saved before it changed or undid it"
            fix = f"look at it: git show --stat {saved[-1]}; drop it: git update-ref -d {saved[-1]}"
            yield Check("leftovers", "saved work", "ok", found, fix)
        blocks = git("worktree", "list", "--porcelain").split("\n\n")
        if gone := [block.splitlines()[0] for block in blocks if "\nprunable" in block]:
            paths = ", ".join(line.removeprefix("worktree ") for line in gone[:MAX_NAMED])
            found = f"git lists worktrees whose folders are gone: {paths}"
            yield Check("leftovers", "worktrees", "warning", found, "git worktree prune")
