"""``gsd health``: checks the files in ``.planning/`` and the journal, and repairs some of the files."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from gsd_core.sanitize import safe_text

from .commands import with_global_options
from .global_options import global_options_of, gsd_command
from .output import json_flag, print_json, print_line, styled

if TYPE_CHECKING:
    from gsd_core.planning.health import HealthIssue, Repair

    from .editing import Editor

STYLES = {"error": "red", "warning": "yellow", "info": "dim"}


@gsd_command("health", "gsd health", "gsd health --repair", last=json_flag)
@click.option("--repair", is_flag=True, help="show each possible repair as a diff, and ask before writing it")
@click.option("-y", "--yes", is_flag=True, help="with --repair: write without asking")
def command(ctx: click.Context, repair: bool, yes: bool, as_json: bool) -> int:
    """Check .planning/ and the journal, and repair some of the files.

    Issues have GSD's codes: E001-E005, W001-W007, I001; gsd's own are W101 (a mistake in the
    frontmatter of a plan or verdict), W102 (a command was interrupted), W103 (a handoff that cannot be
    read), W104 (two folders of one phase), E101 and E102 (requirements that were lost), E103 (a journal that
    is damaged, or of a newer gsd; it is never changed), E104 (another file that a command refuses to read),
    E105 (a template for branches that a run refuses), E106 (settings that are invalid) and I101 (surveyed
    code, and no project yet).
    --repair rebuilds STATE.md and config.json only; without a terminal and without --yes it shows the diffs
    and writes nothing. The exit code is 1 if there are errors.
    """
    from gsd_core.errors import ConfigError
    from gsd_core.planning.config import CONFIG
    from gsd_core.planning.health import ISSUE, HealthIssue, check_health, overall_status

    from .editing import editing
    from .plugin_loading import loaded_plugins
    from .project import core_folder, project_root
    from .project_settings import settings_without_run

    if yes and not repair:
        raise click.UsageError("--yes only goes with --repair")
    options = global_options_of(ctx)
    root = project_root(options)
    done: list[tuple[Repair, bool]] = []
    if repair:
        # Without a repository there is no lock, and no place for what was begun.
        command = ("health", "--repair", *(["--yes"] if yes else []))
        with editing(root, command) if core_folder(root) else nullcontext() as editor:
            done = _repair(root, editor, yes=yes, quiet=as_json)
    issues = (*check_journal(root), *check_health(root))
    # The settings include config.json.
    if not any(issue.path == CONFIG for issue in issues):
        try:
            settings_without_run(loaded_plugins(ctx, with_trusted_ones=True), root)
        except ConfigError as error:
            fix = error.hint or "correct it, or see it with: gsd settings show"
            issues = (HealthIssue(code="E106", path="", message=str(error), fix=fix), *issues)
    if as_json:
        names = {"errors": "error", "warnings": "warning", "info": "info"}
        data: dict[str, Any] = {
            name: [ISSUE.dump(issue) for issue in issues if issue.severity == severity]
            for name, severity in names.items()
        }
        applied = [
            {"path": repair.path, "codes": list(repair.codes), "diff": repair.diff(), "applied": written}
            for repair, written in done
        ]
        count = sum(issue.repairable for issue in issues)
        status = overall_status(issues)
        print_json({"status": status, **data, "repairable_count": count, "repairs": applied})
    else:
        print_line(styled(overall_status(issues), "bold"))
        for issue in issues:
            # Many messages begin with the path already.
            line = f":{issue.line}" if issue.line and issue.path not in issue.message else ""
            location = "" if issue.message.startswith(issue.path) else f"{issue.path}{line}: "
            text = safe_text(f"{location}{issue.message}", multiline=False)
            note = " (--repair)" if issue.repairable else ""
            print_line(styled(f"  {issue.code} {text}{note}", STYLES[issue.severity]))
            fix = with_global_options(safe_text(issue.fix, multiline=False), options)
            print_line(styled(f"       {fix}", "dim"))
    return 1 if overall_status(issues) == "broken" else 0


def check_journal(root: Path) -> tuple[HealthIssue, ...]:
    """Return what is wrong beside the project: its journal is damaged, or a command was interrupted."""
    from gsd_core.errors import JournalError
    from gsd_core.journal.schema import MOVE_AWAY, check_file, check_version
    from gsd_core.planning.health import HealthIssue
    from gsd_core.run.last_run import read_last_run

    from .editing import interrupted
    from .project import journal_path, open_journal

    path = journal_path(root)
    try:
        found, fix = check_file(path), MOVE_AWAY
        message = f"the journal {path} is damaged: {found}" if found else ""
        if not found:
            check_version(path)
            with open_journal(root) as journal:
                read_last_run(journal)
    except JournalError as error:
        message, fix = str(error), error.hint
    if not message:
        if (first := interrupted(root, "gsd")) is None:
            return ()
        what, fix = first.reason, first.command
        return (HealthIssue(code="W102", path=str(path), message=what, fix=fix),)
    return (HealthIssue(code="E103", path=str(path), message=message, fix=fix),)


def _repair(root: Path, editor: Editor | None, *, yes: bool, quiet: bool) -> list[tuple[Repair, bool]]:
    """Show each possible repair, write it if the user agrees, and return whether it was written."""
    from gsd_core.planning.edits import apply_edit
    from gsd_core.planning.health import check_health, plan_repair, repairs

    from .project import now

    done: list[tuple[Repair, bool]] = []
    # What was interrupted is finished, so what is left to repair is found here.
    for repair in repairs(root, check_health(root), now().date().isoformat()):
        if not quiet:
            print_line(safe_text(repair.diff()), exact=True)
        can_ask = not quiet and sys.stdin is not None and sys.stdin.isatty()
        write = yes or (can_ask and click.confirm(f"Write {repair.path}?", default=False, err=True))
        if write:
            plan = partial(plan_repair, root, repair)
            if editor:
                attrs.evolve(editor, finished=None).carry_out(plan, commit=False)
            else:
                apply_edit(root, plan(), root)
        done.append((repair, write))
        if not quiet:
            print_line(f"{repair.path}: {'repaired' if write else 'not changed'}")
    if not quiet and not done:
        print_line("nothing to repair automatically")
    return done
