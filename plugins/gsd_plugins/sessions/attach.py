"""A person's terminal connected to a session's: output as it comes, keys and the window's size passed on."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty
from contextlib import suppress
from typing import Literal

import click

from gsd_core import Session, UserError, safe_text

from . import host

DETACH = b"\x1d"
"""Ctrl-], as in telnet: no program of ours uses it."""
POLL_SECONDS = 0.05
STATE_SECONDS = 0.3
REPLAY_BYTES = 20_000
READ_BYTES = 1 << 16
"""How much is written before keys are looked at again: a flood must not keep the user from leaving."""
RESTORE = b"\x1b[0m\x1b[?25h\x1b[?1049l\x1b[?2004l\x1b[?1000l\x1b[?1006l"
"""Undoes what a program may have done to the terminal: colors, cursor, screen, pasting and mouse."""


def attach_terminal(session: str) -> int:
    """Connect this terminal to *session* until it ends (return its exit code) or the user leaves (0)."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("gsd attach needs a terminal", hint=f"use: gsd logs --follow {session}")
    found = host.find_session(session)
    project = safe_text(found.project.name, multiline=False)
    click.echo(f"session {found.id} of {project}; Ctrl-] leaves it running", err=True)
    if found.has_ended:
        hint = f"what it printed: gsd logs {found.id}"
        raise UserError(f"session {found.id} is not running ({found.state})", hint=hint)
    # From a line's beginning near the end, so that no sequence of bytes is cut in two.
    end = host.output_of(found.id, -1).end
    chunk = host.output_of(found.id, max(0, end - REPLAY_BYTES), REPLAY_BYTES)
    cursor = chunk.start if chunk.start == 0 else chunk.start + chunk.data.find(b"\n") + 1
    while True:
        found = _wait_for_terminal(found)
        if found.has_ended:
            break
        try:
            control = host.Control(found.id)
        except UserError:
            time.sleep(POLL_SECONDS)  # it ends at this moment
            continue
        with control:
            how, cursor = _connect(found.id, control, cursor)
        if how == "left":
            click.echo(f"\nleft session {found.id}; it keeps running: gsd attach {found.id}", err=True)
            return 0
        found = host.find_session(found.id)
    code = "" if found.exit is None else f", exit code {found.exit}"
    reason = f": {safe_text(found.reason, multiline=False)}" if found.reason else ""
    click.echo(f"\nsession {found.id} {found.state}{code}{reason}", err=True)
    # A session whose process was lost has no exit code, and has not succeeded.
    return found.exit if found.exit is not None else int(found.state != "completed")


def _wait_for_terminal(session: Session) -> Session:
    """Return *session* as soon as it has a terminal, or has ended; Ctrl-C leaves."""
    said = ""
    while not session.has_ended and not session.pid:
        if session.reason != said:
            said = session.reason
            why = safe_text(said or session.state, multiline=False)
            click.echo(f"session {session.id} has no terminal now: {why}", err=True)
        time.sleep(STATE_SECONDS)
        session = host.find_session(session.id)
    return session


def _connect(session: str, control: host.Control, cursor: int) -> tuple[Literal["left", "ended"], int]:
    """Pass bytes in both directions until the user leaves or the command ends; return the cursor."""
    keys = sys.stdin.fileno()
    before = termios.tcgetattr(keys)
    resized = True
    checked = 0.0
    ended = False

    def note_resize(*_: object) -> None:
        nonlocal resized
        resized = True

    handler = signal.signal(signal.SIGWINCH, note_resize)
    tty.setraw(keys)
    try:
        while True:
            if time.monotonic() - checked > STATE_SECONDS:
                now = host.find_session(session)
                ended, checked = now.has_ended or not now.pid, time.monotonic()
            if resized and not ended:
                resized = False
                # Not shutil's function: an exported COLUMNS says how wide the terminal was once.
                size = os.get_terminal_size(sys.stdout.fileno())
                try:
                    control.resize(size.columns, size.lines)
                except UserError:
                    ended = True  # the session's terminal is gone, which its state will say
            chunk = host.output_of(session, cursor, READ_BYTES)
            if chunk.data:
                _write(chunk.data)
                cursor = chunk.end
            elif ended:
                return "ended", cursor
            readable, _, _ = select.select([keys], [], [], 0 if chunk.data else POLL_SECONDS)
            if readable and not ended:
                typed, leave, _ = (read := os.read(keys, 1024)).partition(DETACH)
                if typed:
                    with suppress(UserError):
                        control.send(typed)
                if leave or not read:
                    return "left", cursor
    finally:
        _write(RESTORE)
        termios.tcsetattr(keys, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, handler)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(sys.stdout.fileno(), data) :]
