"""``--workstream NAME``: the option of the commands that can read a workstream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

VARIABLE = "GSD_WORKSTREAM"


def workstream_option(command: Any) -> Any:
    """Add ``--workstream`` (``--ws``, as in GSD) to a command; the variable is GSD's own."""
    return click.option(
        "--workstream",
        "--ws",
        "workstream",
        metavar="NAME",
        default="",
        envvar=VARIABLE,
        help=f"workstream of gsd-core (default: ${VARIABLE}, or the active one)",
    )(command)


def choose_workstream(root: Path, given: str) -> tuple[str, str]:
    """Return the workstream that was given or is active, empty if none, and its planning folder."""
    from gsd_core.planning.workstreams import active_workstream, planning_folder

    name = given.strip() or active_workstream(root)
    return name, planning_folder(root, name)


def refuse_run(name: str) -> None:
    """Raise ``ProjectError`` if a run was asked to work in a workstream."""
    from gsd_core.errors import ProjectError
    from gsd_core.planning.workstreams import resume_command

    if name := name.strip():
        raise ProjectError(
            f"gsd cannot work in a workstream ({name!r}) yet: it reads them, and works on .planning itself",
            hint=f"continue it with: {resume_command(name)}; or leave --workstream and ${VARIABLE} out",
        )
