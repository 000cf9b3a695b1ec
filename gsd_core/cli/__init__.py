"""The command line: one module for each command; click and rich stay in here."""

from __future__ import annotations

import io
import sys

WINDOWS = """\
error: gsd does not run on native Windows
cause: it needs POSIX signals, file locks and process groups
hint: use WSL: run `wsl --install`, then install and start gsd inside it
"""


def main() -> None:
    """Run ``gsd`` with the arguments of this process; does not return."""
    if said := refusal_of(sys.platform):
        sys.stderr.write(said)
        sys.exit(2)
    try:
        _run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


def _run() -> None:
    from .app import gsd

    for stream in (sys.stdout, sys.stderr):
        # What a terminal cannot show must not end a run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    gsd.main(prog_name="gsd")


def refusal_of(platform: str) -> str:
    """Return why *platform* (a value of ``sys.platform``) cannot be used; empty if it can."""
    return WINDOWS if platform in ("win32", "cygwin", "msys") else ""
