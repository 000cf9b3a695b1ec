"""``gsd health``: checks the files in ``.planning/`` and the journal, and repairs some of the files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gsd_core.errors import ProjectError
from gsd_core.sanitize import safe_text

from .commands import with_global_options
from .global_options import GlobalOptions, global_options, global_options_of
from .help import Command, examples
from .output import json_flag, print_json, print_line, styled

if TYPE_CHECKING:
    from gsd_core.planning.health import HealthIssue, Repair

STYLES = {"error": "red", "warning": "yellow", "info": "dim"}


@click.command("health", cls=Command, epilog=examples("gsd health", "gsd health --repair"))
@global_options
@click.option("--repair", is_flag=True, help="show each possible repair as a diff, and ask before writing it")
@click.option("-y", "--yes", is_flag=True, help="with --repair: write without asking")
@json_flag
@click.pass_context
def command(ctx: click.Context, repair: bool, yes: bool, as_json: bool) -> int:
    """Check .planning/ and the journal, and repair some of the files.

    Issues have GSD's codes: E001-E005, W001-W007, I001; gsd's own are W101 (a mistake in the
    frontmatter of a plan or verdict), E101 and E102 (requirements that were lost), E103 (a damaged
    journal, which is never changed), E104 (another file that a command refuses to read), W102 (a handoff
    that cannot be read) and I101 (surveyed code, and no project yet). --repair rebuilds STATE.md and
    config.json only; without a terminal and without --yes it shows the diffs and writes nothing. The exit
    code is 1 if there are errors.
    """
    from gsd_core.planning.health import check_health, overall_status

    from .project import project_root

    options = global_options_of(ctx)
    root = project_root(options)
    journal = check_journal(root)
    issues = (*journal, *check_health(root))
    done = _repair(root, issues, yes=yes, quiet=as_json) if repair else []
    if any(applied for _, applied in done):
        issues = (*journal, *check_health(root))
    if as_json:
        print_json(_json(issues, done))
    else:
        _show(issues, options)
    return 1 if overall_status(issues) == "broken" else 0


def check_journal(root: Path) -> tuple[HealthIssue, ...]:
    """Return what is wrong with the project's journal, which GSD's own codes do not cover."""
    from gsd_core.errors import JournalError
    from gsd_core.journal.schema import MOVE_AWAY, check_file
    from gsd_core.planning.health import HealthIssue
    from gsd_core.run.last_run import read_last_run

    from .project import journal_path, open_journal

    path = journal_path(root)
    try:
        found, fix = check_file(path), MOVE_AWAY
        message = f"the journal {path} is damaged: {found}" if found else ""
        if not found:
            with open_journal(root) as journal:
                read_last_run(journal)
    except JournalError as error:
        message, fix = str(error), error.hint
    if not message:
        return ()
    return (HealthIssue(code="E103", severity="error", path=str(path), message=message, fix=fix),)


def _repair(
    root: Path, issues: tuple[HealthIssue, ...], *, yes: bool, quiet: bool
) -> list[tuple[Repair, bool]]:
    """Show each possible repair, write it if the user agrees, and return whether it was written."""
    from gsd_core.planning.health import apply, repairs

    from .project import holder_of, now

    if holder := holder_of(root):
        message = f"another run is active in this project (pid {holder.pid})"
        raise ProjectError(message, hint="stop it first: gsd stop")
    done: list[tuple[Repair, bool]] = []
    for repair in repairs(root, issues, now().date().isoformat()):
        if not quiet:
            print_line(safe_text(repair.diff()), exact=True)
        can_ask = not quiet and sys.stdin is not None and sys.stdin.isatty()
        write = yes or (can_ask and click.confirm(f"Write {repair.path}?", default=False, err=True))
        if write:
            apply(root, repair)
        done.append((repair, write))
        if not quiet:
            print_line(f"{repair.path}: {'repaired' if write else 'not changed'}")
    if not quiet and not done:
        print_line("nothing to repair automatically")
    return done


def _json(issues: tuple[HealthIssue, ...], done: list[tuple[Repair, bool]]) -> dict[str, Any]:
    from gsd_core.planning.health import overall_status
    from gsd_core.views.status import SCHEMA_VERSION

    return {
        "schema_version": SCHEMA_VERSION,
        "status": overall_status(issues),
        "errors": [_issue_json(issue) for issue in issues if issue.severity == "error"],
        "warnings": [_issue_json(issue) for issue in issues if issue.severity == "warning"],
        "info": [_issue_json(issue) for issue in issues if issue.severity == "info"],
        "repairable_count": sum(issue.repairable for issue in issues),
        "repairs": [
            {"path": repair.path, "codes": list(repair.codes), "diff": repair.diff(), "applied": applied}
            for repair, applied in done
        ],
    }


def _issue_json(issue: HealthIssue) -> dict[str, Any]:
    return {
        "code": issue.code,
        "path": issue.path,
        "line": issue.line or None,
        "message": issue.message,
        "fix": issue.fix,
        "repairable": issue.repairable,
    }


def _show(issues: tuple[HealthIssue, ...], options: GlobalOptions) -> None:
    from gsd_core.planning.health import overall_status

    print_line(styled(overall_status(issues), "bold"))
    for issue in issues:
        # Many messages begin with the path already.
        location = (
            f"{issue.path}:{issue.line}" if issue.line and issue.path not in issue.message else issue.path
        )
        text = issue.message if issue.message.startswith(issue.path) else f"{location}: {issue.message}"
        repair = " (--repair)" if issue.repairable else ""
        print_line(
            styled(f"  {issue.code} {safe_text(text, multiline=False)}{repair}", STYLES[issue.severity])
        )
        fix = with_global_options(safe_text(issue.fix, multiline=False), options)
        print_line(styled(f"       {fix}", "dim"))
