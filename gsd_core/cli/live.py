"""Carry a run out, and say how it ended."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager

import click

from gsd_core.errors import GsdError, ProjectError
from gsd_core.run import RunEnd, run_project
from gsd_core.settings import RunSettings
from gsd_core.text import one_line
from gsd_core.views.status import SCHEMA_VERSION

from .dry_run import plan_json, show_plan
from .failure import exit_code
from .folder import check_folder, make_folder
from .output import print_json
from .reading import read
from .start import Wish, prepare

LONGEST = 400
NEXT = {
    "blocked": "see what waits with `gsd questions`, or `gsd status`; then go on with `gsd resume`",
    "stopped": "go on with `gsd resume`",
    "failed": "see what happened with `gsd log`; go on with `gsd resume`",
    "gaps": "see what is missing in the VERIFICATION.md of the phase; go on with `gsd resume`",
    "budget": "raise the limit, then go on with `gsd resume`",
}


def carry_out(wish: Wish) -> int:
    """Run, or say what would be run; return the exit code."""
    try:
        return _carry_out(wish)
    except GsdError as error:
        if wish.output == "json":
            _tell_json(error)
        raise


def _carry_out(wish: Wish) -> int:
    if wish.resume:
        _check_resumable(wish)
    request = prepare(wish)
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


def _check_resumable(wish: Wish) -> None:
    reading = read(wish.where)
    planned = (reading.root / ".planning" / "ROADMAP.md").exists()
    if not reading.state.run and not planned:
        raise ProjectError("nothing to resume in this project", hint="start with: gsd run IDEA")


def _tell_end(end: RunEnd, wish: Wish) -> None:
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
