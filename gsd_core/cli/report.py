"""``gsd report``: writes a page about the last run, to read and to pass on."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gsd_core import __version__
from gsd_core.errors import ProjectError, UserError

from .global_options import global_options_of, gsd_command
from .output import print_line

if TYPE_CHECKING:
    from gsd_core.git import Git
    from gsd_core.views.report import Report, ReportedCommit
    from gsd_core.views.summary import RunSummary

    from .project import ProjectState

NAME = "report.html"
MAX_HEAD = 4096
"""How many bytes of a file are read to see whether it is a report."""
MAX_COMMITS = 500
MAX_PATCHES = 4_000_000
"""How many characters of patches a report has; later commits are listed without theirs."""


@gsd_command("report", "gsd report --open", "gsd report -o report.html")
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path, allow_dash=True),
    default=None,
    metavar="FILE",
    help="write to FILE, or to stdout with - (default: report.html beside the journal)",
)
@click.option("--open", "open_it", is_flag=True, help="open the report in a browser")
def command(ctx: click.Context, target: Path | None, open_it: bool) -> None:
    """Write a report about the last run: one HTML file without scripts that loads nothing.

    It contains the evidence for each requirement (the idea's words, plans, commits, checks, verdict), the
    phases, time and cost of each step, questions and who answered them, gaps found and closed, and the
    commits with their changes. Secrets are redacted, but read it before you pass it on: it contains code.
    """
    from gsd_core.files import write_below
    from gsd_core.programs import open_in_browser
    from gsd_core.views.report import render_report

    from .project import core_folder, load, planned_root

    to_stdout = str(target) == "-"
    if to_stdout and open_it:
        raise click.UsageError("--open needs a file, so it cannot be combined with -o -", ctx)
    options = global_options_of(ctx)
    project = load(options)
    root = planned_root(options, run=project.state.run)
    folder = core_folder(root)
    if target is None and folder is None:
        raise ProjectError("the project is in no repository", hint="name a file: gsd report -o report.html")
    page = render_report(asyncio.run(_collect(project, root)))
    if to_stdout:
        click.echo(page, nl=False)
        return
    path = (target or (folder or root) / NAME).absolute()
    if path.is_dir():
        raise UserError(f"{str(path)!r} is a folder", hint="name a file: gsd report -o FILE")
    # An earlier report is replaced at once, so that a full disk leaves it as it is; nothing else is replaced.
    try:
        if path.exists() and not path.is_symlink() and not _is_report(path):
            hint = "name another file, or print the report with: gsd report -o -"
            raise UserError(f"{str(path)!r} exists, and is not a report of gsd", hint=hint)
        write_below(path.parent, path.name, page.encode())
    except OSError as error:
        message = f"cannot write the report to {str(path)!r}: {error.strerror or error}"
        raise UserError(message, hint="name another file: gsd report -o FILE") from error
    print_line(str(path), exact=True)
    if open_it and not open_in_browser(path.as_uri(), root):
        click.echo("warning: there is no browser to open it with", err=True)


async def _collect(project: ProjectState, root: Path) -> Report:
    from gsd_core.git import Git
    from gsd_core.journal.store import damage_reported
    from gsd_core.planning.survey import read_planning
    from gsd_core.run.tracing import trace_all
    from gsd_core.views.report import Report
    from gsd_core.views.status import status_of
    from gsd_core.views.summary import summarize

    from .project import now, open_journal

    with open_journal(root) as journal, damage_reported(journal.path):
        summary = summarize(journal.events(run=project.last_run.id, facts_only=True))
        status = status_of(project.state, project.history, project.holder, project.pending_answers)
    git = Git(root)
    planning = read_planning(root)
    commits = await _commits(git, summary) if await git.is_repository() else ()
    return Report(
        planning=planning,
        state=project.state,
        summary=summary,
        rows=await trace_all(root, planning),
        commits=commits,
        written_at=now(),
        version=__version__,
        status="no run" if status.run_status == "none" else status.run_status,
        about=(
            ("run", project.state.run),
            ("agent", ", ".join(project.history.agents)),
            ("sandbox", project.history.sandbox or ("none" if project.state.run else "")),
        ),
    )


async def _commits(git: Git, summary: RunSummary) -> tuple[ReportedCommit, ...]:
    """Return the run's commits, oldest first; one that a person rewrote since is left without a patch."""
    from gsd_core.git import GitError
    from gsd_core.views.report import ReportedCommit

    found: list[ReportedCommit] = []
    room = MAX_PATCHES
    for step in summary.steps:
        named = [(task.commit, task.name or f"task {task.task}") for task in step.tasks]
        named += [(step.commit, step.subject)] if step.commit else []
        for sha, subject in named[: MAX_COMMITS - len(found)]:
            patch = ""
            if room > 0:
                with suppress(GitError):
                    patch = await git.patch_of(sha, room)
            room -= len(patch)
            patch = patch if room > 0 else ""
            found.append(ReportedCommit(sha=sha, subject=subject, step=step.id, patch=patch))
    return tuple(found)


def _is_report(path: Path) -> bool:
    """Whether *path* is a file that this command has written, or an empty one."""
    from gsd_core.views.report import GENERATOR

    # A device or a pipe is not opened: reading could wait forever.
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(MAX_HEAD)
    return not start or GENERATOR.encode() in start
