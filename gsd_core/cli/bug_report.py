"""``gsd bug-report``: a text for a bug report, without secrets."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click

from gsd_core.errors import GsdError
from gsd_core.sanitize import safe_text

from .global_options import GlobalOptions, global_options_of, gsd_command

PRIVATE = {"git identity": "known", "git hooks": "some"}
"""What checks found that a report need not say of its author, and what it says instead."""


@gsd_command("bug-report", "gsd bug-report")
@click.option("--records", type=click.IntRange(min=0), default=30, metavar="N", help="how much of the log")
def command(ctx: click.Context, records: int) -> None:
    """Print a text for a bug report: versions, the results of gsd doctor, and the end of the log.

    Secrets are redacted, your home folder and the project's are replaced. Nothing is sent. Read it before you
    post it: the log names files and steps of the project.
    """
    from .project import project_root

    options = global_options_of(ctx)
    root = project_root(options)
    names = {str(root): "PROJECT"}
    with suppress(RuntimeError):  # nobody knows where the home folder is
        names[str(Path.home())] = "~"
    for line in _lines(options, root, records):
        # Redacted first: a replaced path could cut a secret in two.
        text = safe_text(line)
        for path, name in names.items():
            text = text.replace(path, name) if len(path) > 1 else text
        click.echo(text)


def _lines(options: GlobalOptions, root: Path, records: int) -> Iterator[str]:

    from gsd_core.views.story import Narrator, log_line

    from .doctor import diagnose
    from .project import open_journal
    from .version import versions

    found, libraries = versions()
    yield "## Versions"
    yield from (f"{name} {value or 'not found'}" for name, value in {**found, **libraries}.items())
    yield "## gsd doctor"
    for check in diagnose(options, root):
        about = PRIVATE.get(check.name, check.found) if check.state == "ok" else check.found
        yield f"{check.state}: {check.section}: {check.name}: {about}"
    yield f"## gsd log (at most {records} records)"
    try:
        with open_journal(root) as journal:
            narrator = Narrator()
            yield from deque((log_line(narrator, record) for record in journal.events()), maxlen=records)
    except (GsdError, OSError) as error:
        yield f"cannot be read: {error}"
