"""Notifications on the desktop of this machine: ``--notify desktop``.

On Linux, ``notify-send`` (libnotify) or apprise's ``dbus://``; on macOS, ``osascript`` or apprise's
``macosx://``. The programs come first because one that hangs can be ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path

from gsd_core import Notice, find_program

from . import services

LIMIT_SECONDS = 5
_PROGRAM, _LIBRARY_URL = (
    ("osascript", "macosx://") if sys.platform == "darwin" else ("notify-send", "dbus://")
)
_URGENCY = {"info": "low", "warning": "normal", "error": "critical"}
# The text is an argument, not a part of the script: a title with quotes must not become code.
_APPLESCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


def problem() -> str:
    """Return why this machine has no desktop to send notifications to; empty if it has one."""
    if sys.platform != "darwin" and not has_session(os.environ):
        return "no desktop: this process belongs to no desktop session (DBUS_SESSION_BUS_ADDRESS is not set)"
    if find_program(_PROGRAM, Path.cwd()) or not services.problem(_LIBRARY_URL):
        return ""
    return f"no desktop notifications on this machine: {_PROGRAM} is not installed"


def has_session(environ: Mapping[str, str]) -> bool:
    """Return whether *environ* leads to the message bus of a session, as libdbus looks for it."""
    runtime = environ.get("XDG_RUNTIME_DIR")
    return bool(environ.get("DBUS_SESSION_BUS_ADDRESS")) or bool(runtime and Path(runtime, "bus").exists())


def send(notice: Notice) -> str:
    """Show a notification; return why that failed. It blocks."""
    if why := problem():
        return why
    program = find_program(_PROGRAM, Path.cwd())
    if program is None:
        return services.send(_LIBRARY_URL, notice)
    try:
        done = subprocess.run(
            [str(program), *_arguments(notice)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{program.name} did not end within {LIMIT_SECONDS} seconds"
    except OSError as error:
        return f"{program.name} cannot be started: {error.strerror}"
    return f"{program.name} ended with exit code {done.returncode}" if done.returncode else ""


def _arguments(notice: Notice) -> list[str]:
    body = services.message(notice)
    if sys.platform == "darwin":
        script = [part for line in _APPLESCRIPT for part in ("-e", line)]
        return [*script, notice.title, body]
    # Notification servers read the body, but not the title, as markup.
    urgency = f"--urgency={_URGENCY[notice.level]}"
    return ["--app-name=gsd", urgency, "--", notice.title, escape(body, quote=False)]
