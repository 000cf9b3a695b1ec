"""A person's terminal connected to a session's: output as it comes, keys and the window's size passed on."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import termios
import tty
from contextlib import suppress

import click

from gsd_core import UserError

from . import host

DETACH = b"\x1d"
"""Ctrl-], as in telnet: no program of ours uses it."""
POLL_SECONDS = 0.05
REPLAY_BYTES = 20_000


def attach_terminal(session: str) -> int:
    """Connect this terminal to *session* until it ends (return its exit code) or the user leaves (0)."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("gsd attach needs a terminal", hint=f"use: gsd logs --follow {session}")
    found = host.find_session(session)
    click.echo(f"session {found.id} of {found.project.name}; Ctrl-] leaves it running", err=True)
    if found.has_ended or found.state == "idle":
        raise UserError(
            f"session {found.id} is not running ({found.state})", hint=f"what it printed: gsd logs {found.id}"
        )
    with host.Control(session) as control:
        left = _connect(found.id, control)
    end = host.find_session(session)
    if left or not end.has_ended:
        click.echo(f"\r\nleft session {found.id}; it keeps running: gsd attach {found.id}", err=True)
        return 0
    code = "" if end.exit is None else f", exit code {end.exit}"
    click.echo(f"\r\nsession {found.id} {end.state}{code}", err=True)
    return end.exit or 0


def _connect(session: str, control: host.Control) -> bool:
    """Pass bytes in both directions; return true if the user left."""
    keys = sys.stdin.fileno()
    before = termios.tcgetattr(keys)
    resized = True

    def note_resize(*_: object) -> None:
        nonlocal resized
        resized = True

    handler = signal.signal(signal.SIGWINCH, note_resize)
    cursor = max(0, host.output_of(session, -1).end - REPLAY_BYTES)
    tty.setraw(keys)
    try:
        while True:
            if resized:
                resized = False
                size = shutil.get_terminal_size()
                control.resize(size.columns, size.lines)
            ended = host.find_session(session).has_ended
            chunk = host.output_of(session, cursor)
            if chunk.data:
                os.write(sys.stdout.fileno(), chunk.data)
                cursor = chunk.end
                continue
            if ended:
                return False
            readable, _, _ = select.select([keys], [], [], POLL_SECONDS)
            if readable:
                typed = os.read(keys, 1024)
                if DETACH in typed or not typed:
                    return True
                with suppress(OSError):
                    control.send(typed)
    finally:
        termios.tcsetattr(keys, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, handler)
