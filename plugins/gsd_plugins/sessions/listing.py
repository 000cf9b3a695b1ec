"""The list of sessions for people: a table, or on a narrow terminal some lines for each."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import click

from gsd_core import GsdError, Session, dollars_text, safe_text

from .state import read_status

HEADINGS = ("session", "state", "slots", "agents", "for", "ended", "cost", "project", "command")
NARROW = 80
"""With fewer columns, a table would have no space for the command."""
MAX_PROJECT = 20
MAX_TEXT = 300
Statuses: TypeAlias = Mapping[Path, Mapping[str, Any]]
"""The JSON data of each project's last run."""
STYLES: Mapping[str, str] = {"running": "green", "waiting": "yellow", "failed": "red"}


def print_sessions(sessions: Sequence[Session]) -> None:
    """Print *sessions*, then what those that wait or have failed need."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    now = datetime.now(UTC)
    statuses = statuses_of(sessions)
    last = {one.project: one.id for one in sorted(sessions, key=lambda one: one.created)}
    details = {
        one.id: _details(one, statuses[one.project], is_last=last[one.project] == one.id) for one in sessions
    }
    rows = [_cells(one, statuses, now) for one in sessions]
    if width and width < NARROW:
        for session, cells in zip(sessions, rows, strict=True):
            _print_block(cells, details[session.id], width)
        return
    _print_table(rows, width)
    for session in sessions:
        # Not cut: they name commands to copy.
        for line in details[session.id]:
            click.echo(f"{session.id} {line}")


def _print_table(rows: Sequence[tuple[str, ...]], width: int) -> None:
    table = [HEADINGS, *rows]
    last = len(HEADINGS) - 1
    widths = [max(len(row[column]) for row in table) for column in range(last)]
    for row in table:
        cells = [_styled(cell.ljust(w), cell) for cell, w in zip(row, widths, strict=False)]
        left = width - sum(widths) - 2 * last if width else MAX_TEXT
        click.echo(f"{'  '.join(cells)}  {_short(row[last], max(left, 8))}".rstrip())


def _print_block(cells: tuple[str, ...], details: Sequence[str], width: int) -> None:
    name, state, _, _, age, ended, cost, project, command = cells
    about = [age, project, cost if cost != "-" else "", f"ended {ended}" if ended != "-" else ""]
    rest = _short(" ".join(filter(None, about)), width - len(name + state) - 2)
    click.echo(f"{name} {_styled(state, state)} {rest}")
    click.echo(f"  {_short(command, width - 2)}")
    for line in details:
        click.echo(f"  {line}")


def _cells(session: Session, statuses: Statuses, now: datetime) -> tuple[str, ...]:
    began, end = session.started or session.created, session.ended or now
    dollars = dollars_of(session, statuses)
    return (
        session.id,
        "waiting" if session.state == "waiting_checkpoint" else session.state,
        # Those of other hosts do not say how many.
        str(session.agents or int(session.slot > 0 and not session.has_ended) or "-"),
        str(len(_working(session, statuses[session.project])) or "-"),
        _age(end - began),
        f"{session.ended.astimezone():%b %d %H:%M}" if session.ended else "-",
        dollars_text(dollars) if dollars else "-",
        _short(session.project.name, MAX_PROJECT),
        _short(shlex.join(session.command), MAX_TEXT),
    )


def _details(session: Session, status: Mapping[str, Any], *, is_last: bool) -> list[str]:
    """Return what *session* waits for or why it ended, and what to do about it.

    *is_last*: no later session of its project is listed, which may have continued the run.
    """
    where = safe_text(shlex.quote(str(session.project)), multiline=False)
    working = _working(session, status)
    # Of one step alone, the command says enough.
    least = 1 if session.checkpoint else 2
    works = [f"works on {', '.join(working)}"] if len(working) >= least else []
    if session.checkpoint:
        asked = [one for one in status.get("questions", ()) if one["id"] == session.checkpoint]
        lines = [_short(f"{one['step'] or 'it'} asks: {one['text']}", MAX_TEXT) for one in asked]
        return [*works, *lines, f"waits for an answer: gsd -C {where} questions"]
    lines = [*works, *([_short(session.reason, MAX_TEXT)] if session.reason else [])]
    if is_last and session.run and session.state in ("failed", "stopped"):
        lines.append(f"continue it with: gsd -C {where} resume --bg")
    return lines


def _working(session: Session, status: Mapping[str, Any]) -> list[str]:
    """Return the steps on which agents of *session* work now; those that wait for an answer do not."""
    if session.has_ended or session.run != status.get("run"):
        return []
    return [one["id"] for one in status.get("steps_in_progress", ()) if one["status"] == "running"]


def dollars_of(session: Session, statuses: Statuses) -> str | None:
    """Return what the run of *session* has cost; ``None`` if that is unknown."""
    # The status is that of the project's last run; an earlier session may have worked on another one.
    status = statuses[session.project]
    cost: Mapping[str, Any] = status.get("cost") or {} if session.run == status.get("run") else {}
    return cost.get("dollars")


def statuses_of(sessions: Sequence[Session]) -> Statuses:
    """Return the status of each project of *sessions*; an empty one if it cannot be read."""
    found: dict[Path, Mapping[str, Any]] = {one.project: {} for one in sessions}
    for project in found:
        with suppress(GsdError, OSError):
            found[project] = read_status(project)
    return found


def _short(text: str, width: int) -> str:
    """Return *text*, which others wrote, on one line of at most *width* characters."""
    line = " ".join(safe_text(text).split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _styled(text: str, state: str) -> str:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return text if plain or state not in STYLES else click.style(text, fg=STYLES[state])


def _age(age: timedelta) -> str:
    seconds = max(0, int(age.total_seconds()))
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m"
    if seconds < 2 * 86400:
        return f"{seconds // 3600}h{seconds % 3600 // 60:02d}m"
    return f"{seconds // 86400}d"
