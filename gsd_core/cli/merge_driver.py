"""``gsd merge-driver``: merges the planning files of two branches by meaning, when git asks it to."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .global_options import global_options_of, gsd_command
from .output import print_line, warn

if TYPE_CHECKING:
    from gsd_core.git.command import Command

CONFLICTS = range(128)
"""What ``git merge-file`` exits with if it worked: the number of conflicts, at most 127."""


@gsd_command("merge-driver", "gsd merge-driver --install", "gsd merge-driver --remove")
@click.argument("files", nargs=-1, metavar="[BASE OURS THEIRS [SIZE [PATH]]]")
@click.option("--install", "change", flag_value="install", help="let git merge this clone with it")
@click.option("--remove", "change", flag_value="remove", help="undo --install")
def command(ctx: click.Context, files: tuple[str, ...], change: str | None) -> int:
    """Merge the planning files of two branches by meaning, when git merges.

    Set it up once in each clone, with --install. git then calls it with the files of the BASE, OURS and
    THEIRS, the SIZE of conflict markers and the PATH of the file, and it writes the result to OURS. The exit
    code is 1 if there are conflicts, which are between markers.
    """
    from gsd_core.errors import ProjectError
    from gsd_core.git.command import Command
    from gsd_core.git.merge_driver import install_driver, remove_driver
    from gsd_core.journal.lock import ProjectLock
    from gsd_core.planning.merge import MERGED

    from .commands import program
    from .project import core_folder, planned_root, project_root, refuse_agents_at

    options = global_options_of(ctx)
    if (len(files) not in (3, 4, 5)) if change is None else files:
        raise click.UsageError("give --install, --remove, or the files BASE OURS THEIRS", ctx)
    if change is None:
        folder = project_root(options)
        for name in files[:3]:
            if (folder / name).is_symlink() or not (folder / name).is_file():
                raise click.UsageError(f"{name!r} is not a file", ctx)
        base, ours, theirs, size, path = (*files, *("7", files[1])[len(files) - 3 :])
        if not re.fullmatch("[1-9][0-9]{0,2}", size):
            raise click.UsageError(f"{size!r} is not the size of a conflict marker", ctx)
        return _merge(Command(root=folder), base, ours, theirs, int(size), path)
    root = planned_root(options)
    refuse_agents_at(root, "change how git merges")
    if (directory := core_folder(root)) is None:
        raise ProjectError(f"{str(root)!r} is in no git repository", hint="make one: git init")
    # A run would take a change of git's settings for that of an agent, and undo it.
    with ProjectLock(directory):
        if change == "install":
            install_driver(Command(root=root), program(), MERGED)
        else:
            remove_driver(Command(root=root), MERGED)
    how = "by meaning from now on" if change == "install" else "line by line, as usual"
    print_line(f"git merges the planning files of this clone {how}")
    return 0


def _merge(git: Command, base: str, ours: str, theirs: str, size: int, path: str) -> int:
    """Write the merged file to *ours*, and return the exit code."""
    from gsd_core.files import read_below, write_below
    from gsd_core.planning.markdown import decoded
    from gsd_core.planning.merge import merge_planning

    def merge_lines(*texts: str) -> str:
        with tempfile.TemporaryDirectory(prefix="gsd-merge-") as folder:
            names = [str(Path(folder) / name) for name in ("base", "ours", "theirs")]
            for name, text in zip(names, texts, strict=True):
                Path(name).write_text(text, encoding="utf-8")
            o, a, b = names
            return git.run("merge-file", "-p", "--diff3", a, o, b, ok=CONFLICTS)[1]

    try:
        texts = [read_below(git.root, one) for one in (base, ours, theirs)]
        for data in texts:
            decoded(data, path)
        o, a, b = (data.decode() for data in texts)
        text, conflicts = merge_planning(Path(path).name, o, a, b, merge_lines, size=size)
        write_below(git.root, ours, text.encode())
    except Exception as error:
        # Whatever is wrong with the files: git's own merge loses nothing.
        warn([f"{path} is merged line by line: {error}"])
        options = (f"--marker-size={size}", "-L", "ours", "-L", "base", "-L", "theirs")
        return 1 if git.run("merge-file", "-q", *options, ours, base, theirs, ok=range(256))[0] else 0
    return int(conflicts)
