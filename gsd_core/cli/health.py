"""``gsd health``: is the project's ``.planning/`` whole, and what can be repaired?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich_click import RichCommand

from gsd_core.errors import ProjectError
from gsd_core.sanitize import sanitize

from .global_options import global_options, global_options_of
from .output import json_flag, print_json, print_line, styled

if TYPE_CHECKING:
    from gsd_core.planning.health import HealthIssue, Repair

STYLES = {"error": "red", "warning": "yellow", "info": "dim"}


@click.command("health", cls=RichCommand)
@global_options
@click.option("--repair", is_flag=True, help="show as a diff what can be repaired, and ask before each")
@click.option("--yes", is_flag=True, help="with --repair: apply without asking")
@json_flag
@click.pass_context
def command(ctx: click.Context, repair: bool, yes: bool, as_json: bool) -> int:
    """Check .planning/ with GSD's codes: E001-E005, W001-W007, I001.

    --repair rebuilds STATE.md and config.json, and nothing else. Without a terminal and without
    --yes the diffs are only shown. Exit code 1: something is broken.
    """
    from gsd_core.planning.health import examine, standing

    from .project import project_root

    root = project_root(global_options_of(ctx))
    ailments = examine(root)
    done = _repaired(root, ailments, yes=yes, quiet=as_json) if repair else []
    if any(applied for _, applied in done):
        ailments = examine(root)
    if as_json:
        print_json(_json(ailments, done))
    else:
        _show(ailments)
    return 1 if standing(ailments) == "broken" else 0


def _repaired(
    root: Path, ailments: tuple[HealthIssue, ...], *, yes: bool, quiet: bool
) -> list[tuple[Repair, bool]]:
    """Show each repair, apply those that are wanted, and return whether each was."""
    from gsd_core.planning.health import apply, repairs

    from .project import holder_of, now

    if holder := holder_of(root):
        raise ProjectError(f"a run works on the project (pid {holder.pid})", hint="stop it first: gsd stop")
    done: list[tuple[Repair, bool]] = []
    for repair in repairs(root, ailments, now().date().isoformat()):
        if not quiet:
            print_line(sanitize(repair.diff()))
        wanted = yes or (not quiet and _agreed(repair))
        if wanted:
            apply(root, repair)
        done.append((repair, wanted))
        if not quiet:
            print_line(f"{repair.path}: {'repaired' if wanted else 'left as it is'}")
    if not quiet and not done:
        print_line("nothing can be repaired")
    return done


def _agreed(repair: Repair) -> bool:
    if not (sys.stdin and sys.stdin.isatty()):
        return False
    return click.confirm(f"write {repair.path}?", default=False, err=True)


def _json(ailments: tuple[HealthIssue, ...], done: list[tuple[Repair, bool]]) -> dict[str, Any]:
    from gsd_core.planning.health import standing
    from gsd_core.views.status import SCHEMA_VERSION

    return {
        "schema_version": SCHEMA_VERSION,
        "status": standing(ailments),
        "errors": [_ailment(one) for one in ailments if one.severity == "error"],
        "warnings": [_ailment(one) for one in ailments if one.severity == "warning"],
        "info": [_ailment(one) for one in ailments if one.severity == "info"],
        "repairable_count": sum(one.repairable for one in ailments),
        "repairs": [
            {"path": repair.path, "codes": list(repair.cures), "diff": repair.diff(), "applied": applied}
            for repair, applied in done
        ],
    }


def _ailment(one: HealthIssue) -> dict[str, Any]:
    return {
        "code": one.code,
        "path": one.path,
        "line": one.line or None,
        "message": one.message,
        "fix": one.fix,
        "repairable": one.repairable,
    }


def _show(ailments: tuple[HealthIssue, ...]) -> None:
    from gsd_core.planning.health import standing

    print_line(styled(standing(ailments), "bold"))
    for one in ailments:
        place = f"{one.path}:{one.line}" if one.line and one.path not in one.message else one.path
        text = one.message if one.message.startswith(one.path) else f"{place}: {one.message}"
        fix = " (--repair)" if one.repairable else ""
        print_line(styled(f"  {one.code} {sanitize(text, multiline=False)}{fix}", STYLES[one.severity]))
        print_line(styled(f"       {sanitize(one.fix, multiline=False)}", "dim"))
