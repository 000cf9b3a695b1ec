"""``gsd gaps``: shows the gaps in a phase's verdict, and those that the detectors find now."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import attrs
import click

from gsd_core.own_process import data_output
from gsd_core.programs import own_command
from gsd_core.sanitize import one_line, safe_text

from .global_options import global_options_of, gsd_command
from .output import counted, json_flag, print_json, print_line, styled, warn
from .streams import can_ask

if TYPE_CHECKING:
    from gsd_core.model.gap import GapReport
    from gsd_core.planning.model import PhaseView
    from gsd_core.views.planning import PhaseGaps

    from .launch import RunOptions
    from .plugin_loading import Loaded
    from .project_trust import ProjectTrust


@gsd_command(
    "gaps",
    "gsd gaps 2",
    "gsd gaps 2 --run-checks",
    "# Try a detector while you write it.",
    "gsd gaps 2 --only my_detector --watch --trust",
    last=json_flag,
)
@click.argument("phase")
@click.option(
    "--only", multiple=True, metavar="NAME", help="ask this detector only, and show its gaps (repeatable)"
)
@click.option("--watch", "watches", is_flag=True, help="repeat this after each change, until Ctrl-C")
@click.option("--read-only", is_flag=True, help="show only the verdict on disk; run no detector")
@click.option(
    "--run-checks",
    is_flag=True,
    help="first run the commands of executed plans, also without their work, as the policies permit",
)
@click.option(
    "--trust",
    is_flag=True,
    help="trust the project's own plugins, settings and commands; with --watch, after each change as well",
)
def command(
    ctx: click.Context,
    phase: str,
    only: tuple[str, ...],
    watches: bool,
    read_only: bool,
    run_checks: bool,
    trust: bool,
    as_json: bool,
) -> None:
    """Show the gaps of PHASE.

    They come from the phase's VERIFICATION.md and from the gap detectors, which check the current files.
    Nothing is written. The plans' commands run only with --run-checks; if a policy wants a human to
    decide, you are asked at the terminal, and without a terminal the command does not run.

    To write a detector, leave --only NAME --watch running: each time you save the detector or a file of the
    project, it shows what that detector finds now. A detector in the project's .gsd/plugins changes with each
    edit, so add --trust.
    """
    from gsd_core.git import Git
    from gsd_core.hookspecs import gsd_find_gaps
    from gsd_core.model.gap import GapReport
    from gsd_core.planning.survey import survey
    from gsd_core.plugins.loading import detectors_left_out
    from gsd_core.run.snapshot import with_verdicts
    from gsd_core.run.verification import unique
    from gsd_core.views.planning import GAPS, PhaseGaps, verdict_status

    from .launch import RunOptions
    from .plugin_loading import loaded_plugins
    from .project import planned_root

    if read_only and run_checks:
        raise click.UsageError("--read-only and --run-checks cannot be combined", ctx)
    if read_only and only:
        raise click.UsageError("--read-only and --only cannot be combined", ctx)
    if watches and run_checks:
        # The commands change files, which would start them again and again.
        raise click.UsageError("--watch and --run-checks cannot be combined", ctx)
    root = planned_root(global_options_of(ctx))
    options = RunOptions(global_options=attrs.evolve(global_options_of(ctx), directory=root))
    view = survey(root).view(phase)
    admitted: _Admitted | None = None
    if not read_only:
        loaded = loaded_plugins(ctx, options.global_options, with_trusted_ones=True)
        admitted = _admit(loaded, options, run_checks=run_checks, trust_now=trust)
        _check_names(only, admitted.loaded)
    if watches:
        flags = {"--read-only": read_only, "--trust": trust, "--json": as_json}
        arguments = ["-C", str(root), *options.global_options.plugin_options]
        arguments += ["gaps", *(word for name in only for word in ("--only", name))]
        arguments += [*(name for name, given in flags.items() if given), "--", phase]
        _watch(arguments, root, admitted.loaded if admitted else None)
    [view] = asyncio.run(with_verdicts(Git(root), [view]))
    report, without = GapReport(), tuple[str, ...]()
    if admitted:
        report = asyncio.run(_detect(options, admitted, view, run_checks=run_checks, only=only))
        detectors, infos = admitted.loaded.hooks.plugins_of(gsd_find_gaps), admitted.loaded.infos
        without = (*sorted(set(detectors) - set(only) if only else ()), *detectors_left_out(infos))
    # With --only, these are the gaps that those detectors find now.
    verdict = None if only else view.verdict
    found = PhaseGaps(
        status=verdict_status(view.verdict),
        gaps=unique([*(verdict.gaps if verdict else ()), *report.gaps]),
        human=(*(verdict.human if verdict else ()), *report.human),
        failed=report.failed_detectors,
        without=without,
    )
    if not as_json:
        _show(view, found)
        return
    print_json(GAPS.dump(found))
    for failed in found.failed:
        warn([f"a detector failed: {one_line(failed, 300)}"])


@attrs.frozen
class _Admitted:
    """The plugins that may be used, and what is known about the trust in the project."""

    loaded: Loaded
    trust: ProjectTrust


def _admit(loaded: Loaded, options: RunOptions, *, run_checks: bool, trust_now: bool) -> _Admitted:
    """Warn about what is not trusted; raise ``Untrusted`` if such commands would run unconfined."""
    from gsd_core.processes import refuse_agents

    from .project_trust import admit, as_left_by_people, examine, lines_of, refuse_untrusted, remember

    if trust_now:
        refuse_agents("trust a project")
        loaded = as_left_by_people(loaded, options.global_options)
    trust = examine(loaded, options.root)
    if trust.new and trust_now:
        trust = remember(trust)
    if run_checks and any(want.kind == "command" for want in trust.new):
        refuse_untrusted(trust)
    for line in lines_of([want for want in trust.new if want.kind != "command"]):
        warn([f"not trusted (see gsd trust), so it does not count: {line}"])
    for setting in trust.consent:
        warn([f"{setting.origin} sets {setting.name}: consent cannot come from the project's files"])
    return _Admitted(admit(loaded, trust), trust)


def _check_names(only: Sequence[str], loaded: Loaded) -> None:
    """Raise ``click.UsageError`` if a plugin that ``--only`` names is not a loaded detector."""
    from gsd_core.errors import ConfigError, Untrusted
    from gsd_core.hookspecs import gsd_find_gaps
    from gsd_core.plugins.validation import nearest

    known = loaded.hooks.plugins_of(gsd_find_gaps)
    infos = {info.name: info for info in loaded.infos}
    for name in only:
        if name in known:
            continue
        match infos[name].status if name in infos else "":
            case "untrusted":
                hint = "read it, then trust it with `gsd trust`, or pass --trust"
                raise Untrusted(f"--only {name}: it is a file of the project, and not trusted", hint=hint)
            case "broken":
                reason = infos[name].reason
                raise ConfigError(f"--only {name}: cannot be used: {reason}", hint="see gsd plugins")
            case _:
                close = nearest(name, known) or f"; detectors: {', '.join(sorted(known)) or 'none'}"
                raise click.UsageError(f"--only {name}: no detector {name!r} is loaded{close}")


def _watch(arguments: Sequence[str], root: Path, loaded: Loaded | None) -> NoReturn:
    """Run ``gsd`` with *arguments*, and again whenever a file of the project, or of a plugin, changes."""
    # Built-in plugins are not edited, and the project's own are among its files.
    names = [info.name for info in loaded.infos if info.source != "default"] if loaded else []
    plugins = [loaded.manager.get_plugin(name) for name in names] if loaded else []
    files = [path for plugin in plugins for path in _sources_of(plugin)]
    before = _stamps(root, files)
    while True:
        out = data_output()
        # In a new process each time, because a module that was imported does not change any more.
        subprocess.run([*own_command(), *arguments], check=False, stdout=None if out is sys.stdout else out)
        changed = _wait(root, files, before)
        before = _stamps(root, files)
        listed = ", ".join(sorted({Path(name).name for name in changed})[:MAX_NAMES])
        more = f" (of {counted(len(changed), 'file')})" if len(changed) > MAX_NAMES else ""
        print_line(styled(f"\nchanged: {one_line(listed, 200)}{more}", "dim"))
        sys.stdout.flush()


def _sources_of(plugin: object) -> Iterator[Path]:
    """Yield the Python files of a plugin: its module, and the rest of its package."""
    file = getattr(plugin, "__file__", None)
    if file is None:
        file = getattr(sys.modules.get(type(plugin).__module__), "__file__", None)
    if file:
        path = Path(file)
        yield from path.parent.rglob("*.py") if path.name == "__init__.py" else [path]


async def _detect(
    options: RunOptions, admitted: _Admitted, phase: PhaseView, *, run_checks: bool, only: Sequence[str]
) -> GapReport:
    from gsd_core.planning.requirements import read_requirements
    from gsd_core.run.sandbox import choose_sandbox, warning_about
    from gsd_core.run.verification import InteractiveGate, examine
    from gsd_core.settings import LimitSettings, RunSettings, bind_settings

    from .launch import build_settings
    from .plugin_loading import hooks_of_only
    from .project import holder_of, load
    from .project_trust import require_sandbox

    loaded = admitted.loaded
    previous = load(options.global_options)
    believed = previous if previous.is_own or not admitted.trust.new else None
    settings = build_settings(options, loaded, believed)
    settings = require_sandbox(settings, admitted.trust)
    step = f"{phase.number}/verify"
    with bind_settings(settings.values):
        gate = None
        if run_checks:
            run: RunSettings = settings.of(RunSettings)
            # Without the project's lock: a run may be using its private home.
            sandbox = await choose_sandbox(loaded.hooks, run, phase.project, is_locked=False)
            if warning := warning_about(sandbox):
                warn([warning])
            gate = InteractiveGate(hooks=loaded.hooks, sandbox=sandbox, confirm=_confirm, step=step)
        try:
            found = await examine(
                hooks_of_only(loaded.hooks, only) if only else loaded.hooks,
                settings.of(LimitSettings),
                phase,
                gate,
                read_requirements(phase.project),
                admitted.trust.trusted_programs,
            )
        finally:
            if gate and holder_of(phase.project) is None:
                await gate.sandbox.close()
    if found.note:
        warn([found.note])
    for command_line in found.refused:
        warn([f"not run, or stopped: {one_line(command_line, 200)}"])
    return found.detected if only else found.report


def _confirm(command_line: str, reason: str) -> bool:
    """Ask the human at the terminal; without one the answer is no."""
    if not can_ask():
        return False
    # The permission gate has sanitized the command; nothing of it is cut, so that no part can hide.
    click.echo(f"{safe_text(reason)}:\n{safe_text(command_line)}", err=True)
    return click.confirm("Run it?", default=False, err=True)


def _show(phase: PhaseView, found: PhaseGaps) -> None:
    print_line(f"phase {phase.number} {phase.name}: verdict {found.status.replace('_', ' ')}")
    for gap in found.gaps:
        finder = f" ({gap.found_by})" if gap.found_by else ""
        print_line(styled(f"  {gap.status}: {one_line(gap.truth, 200)}{finder}", "red"))
        print_line(f"    {one_line(gap.reason, 300)}")
        for artifact in gap.artifacts:
            print_line(f"    {artifact.path}: {one_line(artifact.issue, 200)}")
        for missing in gap.missing:
            print_line(f"    missing: {one_line(missing, 200)}")
    for check in found.human:
        label = "assumed, nobody looked" if check.result == "assumed" else "for a human to check"
        print_line(f"  {label}: {one_line(check.test, 200)}")
    for failed in found.failed:
        print_line(styled(f"  a detector failed: {one_line(failed, 300)}", "yellow"))
    if not (found.gaps or found.human or found.failed):
        is_verified = found.status not in ("missing", "stale")
        more = "" if is_verified else f" known; verify the phase with: gsd verify {phase.number}"
        print_line(f"  no gaps{more}")
    if found.without:
        print_line(styled(f"  without the detectors {', '.join(found.without)}", "yellow"))


POLL_SECONDS = 0.3
MAX_FILES = 50_000
"""More files than this are not watched: comparing them would take as long as the pause between two looks."""
MAX_NAMES = 3
IGNORED = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", "target", ".mypy_cache"})

Stamp = tuple[int, int]


def _wait(folder: Path, files: Sequence[Path], before: Mapping[str, Stamp]) -> set[str]:
    """Return the paths that differ from *before*, once there are some and nothing changes any more."""
    latest, changed = before, set[str]()
    while True:
        time.sleep(POLL_SECONDS)
        now = _stamps(folder, files)
        if now == latest and changed:
            return changed
        changed = {path for path in {*before, *now} if before.get(path) != now.get(path)}
        latest = now


def _stamps(folder: Path, files: Iterable[Path]) -> dict[str, Stamp]:
    """Return the time and size of each file, by path; of *folder*, at most ``MAX_FILES``."""
    found: dict[str, Stamp] = {}
    for path in (*map(str, files), *_paths(folder)):
        try:
            about = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - called for each file, several times a second
        except OSError:
            continue
        found[path] = (about.st_mtime_ns, about.st_size)
        if len(found) >= MAX_FILES:
            break
    return found


def _paths(folder: Path) -> Iterator[str]:
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in IGNORED)
        yield from (os.path.join(base, name) for name in sorted(names))  # noqa: PTH118
