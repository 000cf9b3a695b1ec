"""``gsd gaps``: what a phase's verdict says, and what the detectors see in the tree now."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING

import click
from attrs import evolve
from rich_click import RichCommand

from gsd_core.sanitize import one_line, sanitize

from .global_options import GlobalOptions, global_options, global_options_of
from .output import json_flag, print_json, print_line, styled

if TYPE_CHECKING:
    from gsd_core.model.gap import GapReport
    from gsd_core.planning.model import PhaseView
    from gsd_core.views.planning import GapsSeen


@click.command("gaps", cls=RichCommand)
@global_options
@click.argument("phase")
@click.option("--read-only", is_flag=True, help="only the verdict on disk; asks no detector")
@click.option(
    "--run-checks",
    is_flag=True,
    help="run the commands of executed plans first, as the permission gate allows",
)
@json_flag
@click.pass_context
def command(ctx: click.Context, phase: str, read_only: bool, run_checks: bool, as_json: bool) -> None:
    """Show what PHASE lacks: by its VERIFICATION.md, and by the detectors.

    Nothing is written. Commands of plans run only with --run-checks; where the policies would ask,
    a human at the terminal is asked, and without a terminal the answer is no.
    """
    from gsd_core.planning.survey import survey

    from .project import project_root

    if read_only and run_checks:
        raise click.UsageError("--read-only and --run-checks exclude each other", ctx)
    where = evolve(global_options_of(ctx), directory=project_root(global_options_of(ctx)))
    view = survey(where.directory).view(phase)
    seen = asyncio.run(_seen(where, view, read_only=read_only, run_checks=run_checks))
    if as_json:
        from gsd_core.views.planning import gaps_json

        print_json(gaps_json(seen))
        for failed in seen.failed:
            click.echo(f"warning: a detector failed: {sanitize(one_line(failed, 300))}", err=True)
    else:
        _show(view, seen)


async def _seen(where: GlobalOptions, phase: PhaseView, *, read_only: bool, run_checks: bool) -> GapsSeen:
    from gsd_core.model.gap import GapReport
    from gsd_core.run.verification import unique, with_verdict
    from gsd_core.views.planning import GapsSeen, verdict_status

    phase = await with_verdict(phase)
    verdict = phase.verdict
    report = GapReport() if read_only else await _report(where, phase, run_checks=run_checks)
    return GapsSeen(
        status=verdict_status(verdict),
        gaps=unique([*(verdict.gaps if verdict else ()), *report.gaps]),
        human=(*(verdict.human if verdict else ()), *report.human),
        failed=report.failed_detectors,
    )


async def _report(where: GlobalOptions, phase: PhaseView, *, run_checks: bool) -> GapReport:
    from gsd_core.run.verification import InteractiveGate, examine
    from gsd_core.settings import Layer, LimitSettings, bind_settings

    from .launch import RunOptions, settings_for
    from .plugin_loading import choice_of, load_plugins, trust_of
    from .project import load

    loaded = load_plugins(choice_of(where), trust_of(where.directory))
    wish = RunOptions(where=where, flags=Layer(origin="the command line", sections={}))
    settings = settings_for(wish, where.directory, loaded, load(where))
    desk = (
        InteractiveGate(hooks=loaded.hooks, confirm=_confirm, step=f"{phase.number}/verify")
        if run_checks
        else None
    )
    with bind_settings(settings.values):
        report, refused = await examine(loaded.hooks, settings.of(LimitSettings), phase, desk)
    _tell_refused(refused)
    return report


def _confirm(command: str, reason: str) -> bool:
    """Ask the human at the terminal; without one the answer is no."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    click.echo(f"{sanitize(reason)}:\n{command}", err=True)
    return click.confirm("run it?", default=False, err=True)


def _tell_refused(commands: Collection[str]) -> None:
    for refused in commands:
        click.echo(f"warning: not run, or stopped: {sanitize(one_line(refused, 200))}", err=True)


def _show(phase: PhaseView, seen: GapsSeen) -> None:
    print_line(f"phase {phase.number} {phase.name}: verdict {seen.status}")
    for gap in seen.gaps:
        finder = f" ({gap.found_by})" if gap.found_by else ""
        print_line(styled(f"  {gap.status}: {one_line(gap.truth, 200)}{finder}", "red"))
        print_line(f"    {one_line(gap.reason, 300)}")
        for artifact in gap.artifacts:
            print_line(f"    {artifact.path}: {one_line(artifact.issue, 200)}")
        for missing in gap.missing:
            print_line(f"    missing: {one_line(missing, 200)}")
    for check in seen.human:
        print_line(f"  for a human: {one_line(check.test, 200)}")
    for failed in seen.failed:
        print_line(styled(f"  a detector failed: {one_line(failed, 300)}", "yellow"))
    if not (seen.gaps or seen.human or seen.failed):
        print_line("  no gaps")
