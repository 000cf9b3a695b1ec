"""Long output through a pager, as git does it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import click

from gsd_core.programs import find_program

DEFAULT = "less"
LESS = "FRX"
"""Ends at once if all fits on a screen, shows colors, and leaves the text on the screen."""


@contextmanager
def paged(*, wanted: bool, project: Path) -> Generator[IO[str]]:
    """Provide the stream to print on: a pager's input if stdout is a terminal, else stdout.

    The pager is that of ``GSD_PAGER``, ``PAGER``, or ``less``; an empty one, or ``cat``, means none. The
    repository of *project* cannot bring its own ``less``. A reader who closes the pager ends the output,
    which is not an error.
    """
    process = _start(project) if wanted and sys.stdout.isatty() else None
    if process is None:
        yield sys.stdout
        return
    assert process.stdin is not None
    try:
        with suppress(BrokenPipeError):
            yield process.stdin
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()
        # Ctrl-C is for the pager, which has the terminal; without waiting, the shell would take it back.
        while process.poll() is None:
            with suppress(KeyboardInterrupt):
                process.wait()


def _start(project: Path) -> subprocess.Popen[str] | None:
    named = os.environ.get("GSD_PAGER", os.environ.get("PAGER", DEFAULT))
    try:
        words = shlex.split(named)
    except ValueError:
        click.echo(f"warning: not a command line, so there is no pager: {named!r}", err=True)
        return None
    if not words or words == ["cat"]:
        return None
    program = find_program(words[0], project)
    if program is None:
        return None
    environment = {**os.environ, "LESS": os.environ.get("LESS", LESS), "LV": os.environ.get("LV", "-c")}
    with suppress(OSError):
        return subprocess.Popen(
            [str(program), *words[1:]],
            stdin=subprocess.PIPE,
            env=environment,
            encoding="utf-8",
            errors="replace",
        )
    return None
